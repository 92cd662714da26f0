//! Copies of factors in the order in which the innermost loops read them.

use std::ops::Range;

use ndarray::ArrayView2;

use super::block::whole_rows;
use super::{COLUMN_ROWS, DEPTH, Right, STRIP, Strips, UNIT, slices, units};
use crate::simd::{Kernel, Simd};
use crate::tiles::row;
use crate::{Element, Isa};

/// Numbers in a packed right factor of some depth.
pub(super) fn packed_len(depth: usize, strips: Strips<'_>) -> usize {
    depth * units(strips) * UNIT
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
        for columns in strips {
            let size = packed_len(slice.len(), std::slice::from_ref(columns));
            let (packed, rest) = to.split_at_mut(size);
            isa.run(Pack { right, slice: slice.clone(), columns: columns.clone(), to: packed });
            to = rest;
        }
    }
}

/// Packs a slice of one strip.
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
        let Pack { right, slice, columns, to } = self;
        match right {
            Right::Rows(matrix) => pack_rows(simd, matrix, slice, columns, to),
            Right::Columns(matrix) => pack_columns(simd, matrix, slice, columns, to),
            Right::Packed(_) => unreachable!("packed already"),
        }
    }
}

/// Where row `k` of a slice of a strip has its unit.
#[inline(always)]
fn place<S: Simd>(k: usize, depth: usize, unit: usize, units: usize) -> usize {
    UNIT * if whole_rows(S::REGISTERS) { k * units + unit } else { unit * depth + k }
}

#[inline(always)]
fn pack_rows<S: Simd, E: Element>(
    simd: S,
    matrix: ArrayView2<'_, E>,
    slice: Range<usize>,
    columns: Range<usize>,
    to: &mut [f32],
) {
    let (depth, width) = (slice.len(), columns.len());
    let units = width.div_ceil(UNIT);
    let pitch = matrix.ncols();
    let data = matrix.to_slice().expect("a right factor without gaps");
    let rows = data[slice.start * pitch..slice.end * pitch].chunks_exact(pitch);
    if width == STRIP && whole_rows(S::REGISTERS) {
        for (from, to) in rows.zip(to.chunks_exact_mut(STRIP)) {
            let from = &from[columns.start..][..STRIP];
            for at in (0..STRIP).step_by(S::LANES) {
                let vector = E::load(simd, &from[at..at + S::LANES]);
                simd.store(vector, &mut to[at..at + S::LANES]);
            }
        }
        return;
    }
    let full = width - width % S::LANES;
    for (k, from) in rows.enumerate() {
        let from = &from[columns.clone()];
        let mut put = |at: usize, vector| {
            let place = place::<S>(k, depth, at / UNIT, units) + at % UNIT;
            simd.store(vector, &mut to[place..][..S::LANES]);
        };
        for at in (0..full).step_by(S::LANES) {
            put(at, E::load(simd, &from[at..at + S::LANES]));
        }
        for at in (full..units * UNIT).step_by(S::LANES) {
            put(at, E::load(simd, &from[width.min(at)..]));
        }
    }
}

#[inline(always)]
fn pack_columns<S: Simd, E: Element>(
    simd: S,
    matrix: ArrayView2<'_, E>,
    slice: Range<usize>,
    columns: Range<usize>,
    to: &mut [f32],
) {
    let (depth, units) = (slice.len(), columns.len().div_ceil(UNIT));
    for at in (0..units * UNIT).step_by(S::LANES) {
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
                let place = place::<S>(k, depth, at / UNIT, units) + at % UNIT;
                simd.store(vector, &mut to[place..][..S::LANES]);
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
