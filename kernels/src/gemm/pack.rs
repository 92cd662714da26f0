//! Copies of factors in the order in which the micro-kernels read them.

use std::mem;
use std::ops::Range;

use ndarray::{ArrayView2, ArrayView3};

use super::columns::{Strips, pitch, runs};
use super::micro_kernel::{Unpacked, groups_of};
use super::right::Right;
use super::tiling::{padded, slices};
use crate::simd::{Simd, WithSimd};
use crate::tiles::row;
use crate::tuning::{PANEL_ROWS, PREFETCH_ROWS, UNIT};
use crate::{Isa, Storage};

/// Packs a right factor for the strips of a tile into `to`, of [`packed_len`]: each slice by [`pack_slice`].
#[cfg(any(test, feature = "bench_internals"))]
pub(super) fn pack<E: Storage>(
    isa: Isa,
    right: Right<'_, E>,
    depth: usize,
    strips: Strips<'_>,
    vectors: usize,
    to: &mut [f32],
) {
    for (slice, packed) in packed_slices(depth, strips, to) {
        pack_slice(isa, right, slice, strips, vectors, packed);
    }
}

/// The slices of a packed right factor, and their memory.
pub(super) fn packed_slices<'t>(
    depth: usize,
    strips: Strips<'_>,
    mut to: &'t mut [f32],
) -> impl Iterator<Item = (Range<usize>, &'t mut [f32])> {
    let pitch = pitch(strips);
    slices(depth).map(move |slice| {
        let (packed, rest) = mem::take(&mut to).split_at_mut(slice.len() * pitch);
        to = rest;
        (slice, packed)
    })
}

/// Packs a slice as groups of `vectors` vectors of columns, one after the other, each `[k][column]`. The columns are
/// those of the tile's sums, so that a group may have the end of a run of strips and the start of the next.
pub(super) fn pack_slice<E: Storage>(
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
        isa.run(Pack { right, slice, columns, place, pitch, vectors, to: &mut *to });
        at = end;
    }
}

/// Packs a slice of one run of strips.
struct Pack<'r, 't, E> {
    right: Right<'r, E>,
    slice: Range<usize>,
    columns: Range<usize>,
    /// Where the columns are in a row of sums, and the length of such a row.
    place: Range<usize>,
    pitch: usize,
    vectors: usize,
    /// For the whole slice.
    to: &'t mut [f32],
}

impl<E: Storage> WithSimd for Pack<'_, '_, E> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Pack { right, slice, columns, place, pitch, vectors, to } = self;
        for group in groups_of::<S>(pitch, vectors) {
            let part = group.start.max(place.start)..group.end.min(place.end);
            if part.is_empty() {
                continue;
            }
            let column = |at: usize| columns.end.min(columns.start + at - place.start);
            let columns = column(part.start)..column(part.end);
            let packed = &mut to[slice.len() * group.start..slice.len() * group.end];
            let packed = &mut packed[part.start - group.start..];
            pack_columns(simd, right, slice.clone(), columns, packed, group.len());
        }
    }
}

/// Packs some columns of a slice of a right factor into rows that are `group` apart.
#[inline(always)]
pub(super) fn pack_columns<S: Simd, E: Storage>(
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
            pack_rows(simd, from, to, group);
        }
        Right::Transposed(matrix) => pack_transposed(simd, matrix, slice, columns, to, group),
        Right::Packed { .. } => unreachable!("packed already"),
    }
}

/// Packs the columns of one group, or a part of them, whose packed rows are `group` long.
#[inline(always)]
pub(super) fn pack_rows<S: Simd, E: Storage>(
    simd: S,
    from: Unpacked<'_, E, true>,
    to: &mut [f32],
    group: usize,
) {
    let Unpacked { data, pitch, at, width } = from;
    let full = width - width % S::LANES;
    let rows = data.chunks_exact(pitch);
    for (from, to) in rows.zip(to.chunks_mut(group)) {
        let from = &from[at..at + width];
        let to = &mut to[..padded(width)];
        let ahead = from.as_ptr().wrapping_add(PREFETCH_ROWS * pitch);
        for at in (0..full).step_by(S::LANES) {
            simd.prefetch(ahead.wrapping_add(at).cast());
            simd.store(E::load(simd, &from[at..at + S::LANES]), &mut to[at..at + S::LANES]);
        }
        for at in (full..to.len()).step_by(S::LANES) {
            simd.store(E::load(simd, &from[width.min(at)..]), &mut to[at..at + S::LANES]);
        }
    }
}

/// [`pack_rows`] from the transpose.
#[inline(always)]
pub(super) fn pack_transposed<S: Simd, E: Storage>(
    simd: S,
    matrix: ArrayView2<'_, E>,
    slice: Range<usize>,
    columns: Range<usize>,
    to: &mut [f32],
    group: usize,
) {
    let depth = slice.len();
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
            if whole && k + S::LANES <= depth {
                pack_square::<S, E, true>(simd, &rows, k, to, group);
            } else {
                pack_square::<S, E, false>(simd, &rows, k, to, group);
            }
        }
    }
}

/// `LANES` elements of as many rows, from `k` on, become as many columns. Only where the square is
/// not `WHOLE` do rows end before.
#[inline(always)]
fn pack_square<S: Simd, E: Storage, const WHOLE: bool>(
    simd: S,
    rows: &[&[E]; UNIT],
    k: usize,
    to: &mut [f32],
    pitch: usize,
) {
    let mut square = [simd.splat(0.0); UNIT];
    for (vector, from) in square[..S::LANES].iter_mut().zip(rows) {
        let from = if WHOLE { &from[k..k + S::LANES] } else { from.get(k..).unwrap_or_default() };
        // A masked load is slow if its address is not mapped, even where the mask is empty.
        if WHOLE || !from.is_empty() {
            *vector = E::load(simd, from);
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

/// Copies a slice of a left factor that is given by its transpose.
pub(super) struct CopyPanel<'f, 't, E> {
    pub(super) from: ArrayView2<'f, E>,
    /// As for [`super::Tile::add_tn`].
    pub(super) valid: Option<&'f [bool]>,
    pub(super) to: &'t mut [[f32; PANEL_ROWS]],
}

impl<E: Storage> WithSimd for CopyPanel<'_, '_, E> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (k, to) in self.to.iter_mut().enumerate().take(self.from.nrows()) {
            if self.valid.is_some_and(|valid| !valid[k]) {
                to.fill(0.0);
                continue;
            }
            let from = row(self.from, k);
            for (from, to) in from.chunks(S::LANES).zip(to.chunks_exact_mut(S::LANES)) {
                simd.store(E::load(simd, from), to);
            }
        }
    }
}

/// Copies a slice of row-major left factors, one below the other; each row is filled up to a whole vector with zeros.
pub(super) struct CopyRows<'f, 't, E> {
    pub(super) from: ArrayView3<'f, E>,
    pub(super) to: &'t mut [f32],
    /// From a row to the next.
    pub(super) pitch: usize,
}

impl<E: Storage> WithSimd for CopyRows<'_, '_, E> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut rows = self.to.chunks_exact_mut(self.pitch.max(1));
        for matrix in self.from.outer_iter() {
            for (at, to) in (0..matrix.nrows()).zip(&mut rows) {
                let from = row(matrix.view(), at).chunks(S::LANES);
                for (from, to) in from.zip(to.chunks_exact_mut(S::LANES)) {
                    simd.store(E::load(simd, from), to);
                }
            }
        }
    }
}
