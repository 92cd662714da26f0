//! Copies of factors in the order in which the micro-kernels read them.

use std::marker::PhantomData;
use std::mem;
use std::ops::Range;

use ndarray::{ArrayView2, ArrayView3};

use super::columns::{Strips, pitch, runs};
use super::lanes::{Lanes, Pairs, lanes};
use super::micro_kernel::{Unpacked, groups_of};
use super::right::Right;
use super::tiling::{padded, slices};
use crate::simd::{Simd, WithSimd};
use crate::tiles::row;
use crate::tuning::{KC, PANEL_ROWS, PREFETCH_ROWS, UNIT};
use crate::{Isa, Storage};

/// Packs a right factor for the strips of a tile into `to`, of [`packed_len`]: each slice by [`pack_slice`].
#[cfg(any(test, feature = "bench_internals"))]
pub(super) fn pack<E: Storage, L: Lanes>(
    isa: Isa,
    right: Right<'_, E>,
    depth: usize,
    strips: Strips<'_>,
    vectors: usize,
    to: &mut [f32],
) {
    for (slice, packed) in packed_slices::<L>(depth, strips, to) {
        pack_slice::<E, L::Right>(isa, right, slice, strips, vectors, packed);
    }
}

/// The slices of a packed right factor of `depth` terms, and their memory.
pub(super) fn packed_slices<'t, L: Lanes>(
    depth: usize,
    strips: Strips<'_>,
    mut to: &'t mut [f32],
) -> impl Iterator<Item = (Range<usize>, &'t mut [f32])> {
    let pitch = pitch(strips);
    slices::<L>(depth).map(move |slice| {
        let len = lanes::<L::Right>(slice.len()) * pitch;
        let (packed, rest) = mem::take(&mut to).split_at_mut(len);
        to = rest;
        (slice, packed)
    })
}

/// Packs a slice as groups of `vectors` vectors of columns, one after the other, each `[k][column]`. The columns are
/// those of the tile's sums, so that a group may have the end of a run of strips and the start of the next.
pub(super) fn pack_slice<E: Storage, L: Lanes>(
    isa: Isa,
    right: Right<'_, E>,
    slice: Range<usize>,
    strips: Strips<'_>,
    vectors: usize,
    to: &mut [f32],
) {
    let pitch = pitch(strips);
    let mut at = 0;
    for columns in runs(strips) {
        let end = at + padded(columns.len());
        let (slice, place) = (slice.clone(), at..end);
        let to = &mut *to;
        let lanes = PhantomData::<L>;
        L::run(isa, Pack { right, slice, columns, place, pitch, vectors, to, lanes });
        at = end;
    }
}

/// Packs a slice of one run of strips.
struct Pack<'r, 't, E, L> {
    right: Right<'r, E>,
    slice: Range<usize>,
    columns: Range<usize>,
    /// Where the columns are in a row of sums, and the length of such a row.
    place: Range<usize>,
    pitch: usize,
    vectors: usize,
    /// For the whole slice.
    to: &'t mut [f32],
    lanes: PhantomData<L>,
}

impl<E: Storage, L: Lanes> WithSimd for Pack<'_, '_, E, L> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Pack { right, slice, columns, place, pitch, vectors, to, .. } = self;
        let depth = lanes::<L>(slice.len());
        for group in groups_of::<S>(pitch, vectors) {
            let part = group.start.max(place.start)..group.end.min(place.end);
            if part.is_empty() {
                continue;
            }
            let column = |at: usize| columns.end.min(columns.start + at - place.start);
            let columns = column(part.start)..column(part.end);
            let packed = &mut to[depth * group.start..depth * group.end];
            let packed = &mut packed[part.start - group.start..];
            pack_columns::<S, E, L>(simd, right, slice.clone(), columns, packed, group.len());
        }
    }
}

/// Packs some columns of a slice of a right factor into rows that are `group` apart.
#[inline(always)]
pub(super) fn pack_columns<S: Simd, E: Storage, L: Lanes>(
    simd: S,
    right: Right<'_, E>,
    slice: Range<usize>,
    columns: Range<usize>,
    to: &mut [f32],
    group: usize,
) {
    match right {
        Right::RowMajor(matrix) => {
            let pitch = matrix.ncols();
            let data = matrix.to_slice().expect("a right factor without gaps");
            let data = &data[slice.start * pitch..slice.end * pitch];
            let from = Unpacked { data, pitch, at: columns.start, width: columns.len() };
            pack_rows::<S, E, L>(simd, from, to, group);
        }
        Right::Transposed(matrix) => {
            pack_transposed::<S, E, L>(simd, matrix, slice, columns, to, group);
        }
        Right::Packed { .. } | Right::Quads(_) => unreachable!("packed already"),
    }
}

/// Packs the columns of one group, or a part of them, whose packed rows are `group` long.
#[inline(always)]
pub(super) fn pack_rows<S: Simd, E: Storage, L: Lanes>(
    simd: S,
    from: Unpacked<'_, E, true>,
    to: &mut [f32],
    group: usize,
) {
    let Unpacked { data, pitch, at, width } = from;
    let full = width - width % S::LANES;
    let rows = data.chunks(L::TERMS * pitch);
    for (from, to) in rows.zip(to.chunks_mut(group)) {
        // The rows of the terms of a lane.
        let second = match from.get(pitch..) {
            Some(second) if const { L::TERMS > 1 } && !second.is_empty() => &second[at..at + width],
            _ => &[],
        };
        let from = &from[at..at + width];
        let to = &mut to[..padded(width)];
        let ahead = from.as_ptr().wrapping_add(PREFETCH_ROWS * pitch);
        let (whole, last) = to.split_at_mut(full);
        for (at, to) in (0..full).step_by(S::LANES).zip(whole.chunks_exact_mut(S::LANES)) {
            for row in 0..L::TERMS {
                simd.prefetch(ahead.wrapping_add(row * pitch + at).cast());
            }
            let second = second.get(at..at + S::LANES).unwrap_or_default();
            simd.store(L::across(simd, &from[at..at + S::LANES], second), to);
        }
        for (at, to) in (full..).step_by(S::LANES).zip(last.chunks_exact_mut(S::LANES)) {
            let second = second.get(at..).unwrap_or_default();
            simd.store(L::across(simd, &from[width.min(at)..], second), to);
        }
    }
}

/// [`pack_rows`] from the transpose.
#[inline(always)]
pub(super) fn pack_transposed<S: Simd, E: Storage, L: Lanes>(
    simd: S,
    matrix: ArrayView2<'_, E>,
    slice: Range<usize>,
    columns: Range<usize>,
    to: &mut [f32],
    group: usize,
) {
    let depth = lanes::<L>(slice.len());
    for at in (0..padded(columns.len())).step_by(S::LANES) {
        // LANES rows of the matrix become as many columns.
        let mut rows = [&[] as &[E]; UNIT];
        for (lane, from) in rows[..S::LANES].iter_mut().enumerate() {
            if at + lane < columns.len() {
                *from = &row(matrix, columns.start + at + lane)[slice.clone()];
            }
        }
        let whole = at + S::LANES <= columns.len();
        for k in (0..depth).step_by(S::LANES) {
            let to = &mut to[k * group + at..];
            if whole && (k + S::LANES) * L::TERMS <= slice.len() {
                pack_square::<S, E, L, true>(simd, &rows, k, to, group);
            } else {
                pack_square::<S, E, L, false>(simd, &rows, k, to, group);
            }
        }
    }
}

/// `LANES` lanes of as many rows, from `k` on, become as many columns. Only where the square is
/// not `WHOLE` do rows end before.
#[inline(always)]
fn pack_square<S: Simd, E: Storage, L: Lanes, const WHOLE: bool>(
    simd: S,
    rows: &[&[E]; UNIT],
    k: usize,
    to: &mut [f32],
    pitch: usize,
) {
    let mut square = [simd.splat(0.0); UNIT];
    for (vector, from) in square[..S::LANES].iter_mut().zip(rows) {
        let (first, end) = (k * L::TERMS, (k + S::LANES) * L::TERMS);
        let from = if WHOLE {
            &from[first..end]
        } else {
            from.get(first..end.min(from.len())).unwrap_or_default()
        };
        // A masked load is slow if its address is not mapped, even where the mask is empty.
        if WHOLE || !from.is_empty() {
            *vector = L::along(simd, from, 1.0);
        }
    }
    let square = transpose(simd, square);
    if WHOLE {
        let to = &mut to[..(S::LANES - 1) * pitch + S::LANES];
        for (n, &vector) in square[..S::LANES].iter().enumerate() {
            simd.store(vector, &mut to[n * pitch..][..S::LANES]);
        }
    } else {
        for (to, vector) in to.chunks_mut(pitch).zip(square).take(S::LANES) {
            simd.store(vector, &mut to[..S::LANES]);
        }
    }
}

/// The first `LANES` vectors as the rows of a matrix: its columns.
#[inline(always)]
fn transpose<S: Simd>(simd: S, mut rows: [S::F32; UNIT]) -> [S::F32; UNIT] {
    // Interleaving the first half of the rows with the second halves the distance between elements that become
    // neighbours.
    let mut step = 1;
    while step < S::LANES {
        let from = rows;
        for n in 0..S::LANES / 2 {
            let [first, rest] = simd.interleave(from[n], from[n + S::LANES / 2]);
            rows[2 * n] = first;
            rows[2 * n + 1] = rest;
        }
        step *= 2;
    }
    rows
}

/// A slice of a left factor that is given by its transpose.
pub(super) struct Panel<'f, E> {
    pub(super) from: ArrayView2<'f, E>,
    /// As for [`super::Tile::add_tn`].
    pub(super) valid: Option<&'f [bool]>,
}

impl<'f, E> Panel<'f, E> {
    /// Row `k`; empty if it counts as zeros, or is none.
    #[inline(always)]
    fn terms(&self, k: usize) -> &'f [E] {
        let is_valid = k < self.from.nrows() && self.valid.is_none_or(|valid| valid[k]);
        if is_valid { row(self.from, k) } else { &[] }
    }
}

/// Copies a slice of a left factor that is given by its transpose.
pub(super) struct CopyPanel<'f, 't, E, L> {
    panel: Panel<'f, E>,
    to: &'t mut [[f32; PANEL_ROWS]],
    lanes: PhantomData<L>,
}

impl<'f, 't, E: Storage, L: Lanes> CopyPanel<'f, 't, E, L> {
    /// `valid` is as for [`super::Tile::add_tn`].
    pub(super) fn new(
        from: ArrayView2<'f, E>,
        valid: Option<&'f [bool]>,
        to: &'t mut [[f32; PANEL_ROWS]],
    ) -> Self {
        CopyPanel { panel: Panel { from, valid }, to, lanes: PhantomData }
    }
}

impl<E: Storage, L: Lanes> WithSimd for CopyPanel<'_, '_, E, L> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (depth, columns) = self.panel.from.dim();
        for k in 0..lanes::<L>(depth) {
            let terms = |n| self.panel.terms(L::TERMS * k + n);
            let (first, second) = (terms(0), if const { L::TERMS > 1 } { terms(1) } else { &[] });
            if first.is_empty() && second.is_empty() {
                self.to[k].fill(0.0);
                continue;
            }
            let to = self.to[k].chunks_exact_mut(S::LANES);
            for (at, to) in (0..columns).step_by(S::LANES).zip(to) {
                let part = at..columns.min(at + S::LANES);
                let of_second = second.get(part.clone()).unwrap_or_default();
                simd.store(L::across(simd, first.get(part).unwrap_or_default(), of_second), to);
            }
        }
    }
}

/// Copies the same, with pairs of terms, as [`CopyRows`] does.
pub(super) struct CopyTransposed<'f, 't, E> {
    pub(super) panel: Panel<'f, E>,
    pub(super) to: &'t mut [f32],
    /// From a row to the next.
    pub(super) pitch: usize,
}

impl<E: Storage> WithSimd for CopyTransposed<'_, '_, E> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let CopyTransposed { panel, to, pitch } = self;
        let (depth, columns) = panel.from.dim();
        let units = (0..padded(lanes::<Pairs>(depth))).step_by(S::LANES);
        for (k, at) in units.flat_map(|k| (0..columns).step_by(S::LANES).map(move |at| (k, at))) {
            let part = at..columns.min(at + S::LANES);
            let mut square = [simd.splat(0.0); UNIT];
            for (n, vector) in square[..S::LANES].iter_mut().enumerate() {
                let first = Pairs::TERMS * (k + n);
                let [first, second] = [first, first + 1]
                    .map(|k| panel.terms(k).get(part.clone()).unwrap_or_default());
                *vector = Pairs::across(simd, first, second);
            }
            for (m, vector) in part.zip(transpose(simd, square)) {
                simd.store(vector, &mut to[m * pitch + k..][..S::LANES]);
            }
        }
    }
}

/// Copies a slice of row-major left factors, one below the other; each row is filled up to a whole vector with zeros.
pub(super) struct CopyRows<'f, 't, E, L> {
    pub(super) from: ArrayView3<'f, E>,
    pub(super) to: &'t mut [f32],
    /// From a row to the next.
    pub(super) pitch: usize,
    pub(super) lanes: PhantomData<L>,
}

impl<E: Storage, L: Lanes> WithSimd for CopyRows<'_, '_, E, L> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut rows = self.to.chunks_exact_mut(self.pitch.max(1));
        for matrix in self.from.outer_iter() {
            for (at, to) in (0..matrix.nrows()).zip(&mut rows) {
                let factor = if const { L::AROUND > 0 } { to[KC + 1] } else { 1.0 };
                let from = row(matrix.view(), at);
                if const { L::FILLS_UNITS && S::LANES < UNIT } {
                    let lanes = lanes::<L>(from.len());
                    to[lanes..padded(lanes)].fill(0.0);
                }
                let from = from.chunks(L::TERMS * S::LANES);
                for (from, to) in from.zip(to.chunks_exact_mut(S::LANES)) {
                    simd.store(L::along(simd, from, factor), to);
                }
            }
        }
    }
}
