//! Copies of factors in the order in which the innermost loops read them.

use std::ops::Range;

use ndarray::ArrayView2;

use super::block::{Lying, group};
use super::{COLUMN_ROWS, DEPTH, Right, Strips, UNIT, runs, slices};
use crate::simd::{Kernel, Simd};
use crate::tiles::row;
use crate::{Element, Isa};

/// Numbers in a packed right factor of some depth.
pub(super) fn packed_len(depth: usize, strips: Strips<'_>) -> usize {
    depth * runs(strips).map(|columns| columns.len().next_multiple_of(UNIT)).sum::<usize>()
}

/// Packs a right factor for the strips of a tile into `to`, of [`packed_len`].
pub(super) fn pack<E: Element>(
    isa: Isa,
    right: Right<'_, E>,
    depth: usize,
    strips: Strips<'_>,
    mut to: &mut [f32],
) {
    for slice in slices(depth) {
        for columns in runs(strips) {
            let size = slice.len() * columns.len().next_multiple_of(UNIT);
            let (packed, rest) = to.split_at_mut(size);
            isa.run(Pack { right, slice: slice.clone(), columns, to: packed });
            to = rest;
        }
    }
}

/// Packs a slice of one run of strips: its groups of columns one after the other, each `[k][column]`.
pub(super) struct Pack<'r, 't, E> {
    pub(super) right: Right<'r, E>,
    pub(super) slice: Range<usize>,
    pub(super) columns: Range<usize>,
    pub(super) to: &'t mut [f32],
}

impl<E: Element> Kernel for Pack<'_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Pack { right, slice, columns, mut to } = self;
        for start in columns.clone().step_by(group::<S>()) {
            let columns = start..columns.end.min(start + group::<S>());
            let size = slice.len() * columns.len().next_multiple_of(UNIT);
            let (packed, rest) = to.split_at_mut(size);
            match right {
                Right::Rows(matrix) => {
                    let pitch = matrix.ncols();
                    let data = matrix.to_slice().expect("a right factor without gaps");
                    let data = &data[slice.start * pitch..slice.end * pitch];
                    let from = Lying { data, pitch, at: columns.start, width: columns.len() };
                    pack_rows(simd, from, packed);
                }
                Right::Columns(matrix) => {
                    pack_columns(simd, matrix, slice.clone(), columns, packed);
                }
                Right::Packed(_) => unreachable!("packed already"),
            }
            to = rest;
        }
    }
}

/// Packs the columns of one group.
#[inline(always)]
pub(super) fn pack_rows<S: Simd, E: Element>(simd: S, from: Lying<'_, E, true>, to: &mut [f32]) {
    let Lying { data, pitch, at, width } = from;
    let full = width - width % S::LANES;
    let rows = data.chunks_exact(pitch);
    for (from, to) in rows.zip(to.chunks_exact_mut(width.next_multiple_of(UNIT))) {
        let from = &from[at..at + width];
        for at in (0..full).step_by(S::LANES) {
            simd.store(E::load(simd, &from[at..at + S::LANES]), &mut to[at..at + S::LANES]);
        }
        for at in (full..to.len()).step_by(S::LANES) {
            simd.store(E::load(simd, &from[width.min(at)..]), &mut to[at..at + S::LANES]);
        }
    }
}

/// [`pack_rows`] from the transpose.
#[inline(always)]
pub(super) fn pack_columns<S: Simd, E: Element>(
    simd: S,
    matrix: ArrayView2<'_, E>,
    slice: Range<usize>,
    columns: Range<usize>,
    to: &mut [f32],
) {
    let (depth, pitch) = (slice.len(), columns.len().next_multiple_of(UNIT));
    for at in (0..pitch).step_by(S::LANES) {
        for k in (0..depth).step_by(S::LANES) {
            // LANES rows of the matrix become as many columns.
            let length = (depth - k).min(S::LANES);
            let mut square = [simd.splat(0.0); UNIT];
            for (lane, vector) in square[..S::LANES].iter_mut().enumerate() {
                if at + lane < columns.len() {
                    let from = row(matrix, columns.start + at + lane);
                    *vector = E::load(simd, &from[slice.start + k..][..length]);
                }
            }
            let square = transpose(simd, square);
            for (k, &vector) in (k..k + length).zip(&square) {
                simd.store(vector, &mut to[k * pitch + at..][..S::LANES]);
            }
        }
    }
}

/// The first `LANES` vectors as the rows of a matrix: its columns.
#[inline(always)]
fn transpose<S: Simd>(simd: S, mut rows: [S::F32; UNIT]) -> [S::F32; UNIT] {
    // Interleaving the halves of the rows halves the distance of what is to be neighbours.
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

/// Copies a slice of a left factor that is given by columns.
pub(super) struct CopyColumns<'f, 't, E> {
    pub(super) from: ArrayView2<'f, E>,
    /// As in [`super::Left::Columns`].
    pub(super) valid: Option<&'f [bool]>,
    pub(super) to: &'t mut [[f32; COLUMN_ROWS]; DEPTH],
}

impl<E: Element> Kernel for CopyColumns<'_, '_, E> {
    type Output = ();

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

/// Copies a slice of a left factor that is given by rows.
pub(super) struct CopyRows<'f, 't, E> {
    pub(super) from: ArrayView2<'f, E>,
    pub(super) to: &'t mut [[f32; DEPTH]],
}

impl<E: Element> Kernel for CopyRows<'_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (at, to) in self.to.iter_mut().enumerate() {
            let from = row(self.from, at).chunks(S::LANES);
            for (from, to) in from.zip(to.chunks_exact_mut(S::LANES)) {
                simd.store(E::load(simd, from), to);
            }
        }
    }
}
