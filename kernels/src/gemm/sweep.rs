//! Products of few rows with a large, unpacked right factor.
//!
//! Such a product is bound by reading that factor. Two vectors of columns at a time would read short runs from
//! one page after the other, which do not trigger the hardware prefetcher. So several rows of the right factor
//! are read side by side, over as many columns as have sums that stay in the first level cache, and then the
//! next rows.

use std::ops::Range;

use ndarray::ArrayView2;

use super::micro_kernel::{
    Accumulators, LeftRows, LeftSlice, add, block_count, block_rows, rows_of_block, with_height,
};
use super::strip::Strip;
use crate::Isa;
use crate::simd::{Simd, WithSimd};
use crate::tiles::parts;
use crate::tuning::{SWEEP_LEAST_BYTES, SWEEP_MOST_ROWS, SWEEP_MOST_RUN_BYTES, SWEEP_TERMS};

/// Vectors of columns that are multiplied together.
const VECTORS: usize = 2;

/// How many of `columns` columns are in whole groups, which are all that sweeps take.
pub(super) fn whole(isa: Isa, columns: usize) -> usize {
    columns - columns % (VECTORS * isa.lanes())
}

/// Whether to sweep over `right` for `rows` rows. The result is the same.
pub(super) fn pays(isa: Isa, rows: usize, right: ArrayView2<'_, f32>) -> bool {
    let size = size_of::<f32>();
    // What is read together without a sweep. Up to 3 rows take more vectors still.
    let vectors = if rows <= block_rows(isa.registers(), 4) { 4 } else { 2 };
    right.len() * size > SWEEP_LEAST_BYTES
        && rows <= SWEEP_MOST_ROWS
        && vectors * isa.lanes() * size < SWEEP_MOST_RUN_BYTES
}

/// `sums += left @ right` for whole groups of columns.
pub(super) struct AddSwept<'r, 's, 'l, 't> {
    pub(super) strip: Strip<'s, LeftRows<'l>>,
    /// A slice of the right factor.
    pub(super) right: ArrayView2<'r, f32>,
    /// Memory for the sums of a slice.
    pub(super) memory: &'t mut [f32],
}

impl WithSimd for AddSwept<'_, '_, '_, '_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let AddSwept { strip, right, memory } = self;
        let Strip { left, depth, rows, columns, mut sums } = strip;
        let data = right.to_slice().expect("a right factor without gaps");
        let pitch = right.ncols();
        let group = VECTORS * S::LANES;
        let count = block_count::<S, VECTORS>(rows);
        for part in parts(0..columns.len() / group, memory.len() / (rows.max(1) * group)) {
            let part = part.start * group..part.end * group;
            let at = columns.start + part.start;
            for terms in parts(0..depth, SWEEP_TERMS) {
                let mut rest = &mut memory[..rows * part.len()];
                for block in 0..count {
                    let rows = rows_of_block((block, count, rows));
                    let (memory, after) = rest.split_at_mut(rows.len() * part.len());
                    rest = after;
                    let before = rows.start * sums.pitch;
                    let sweep = Sweep {
                        left: left.block(rows.start, rows.len()),
                        right: &data[terms.start * pitch + at..],
                        pitch,
                        first: terms.start == 0,
                        last: terms.end == depth,
                        terms: terms.clone(),
                        memory,
                        sums: sums.from(before + part.start),
                    };
                    with_height!(rows.len(), M if M <= block_rows(S::REGISTERS, VECTORS) => {
                        sweep.run::<S, M>(simd);
                    });
                }
            }
        }
    }
}

/// Some terms of a block of rows and some columns.
struct Sweep<'l, 'r, 't, 's> {
    left: LeftRows<'l>,
    terms: Range<usize>,
    /// From the first of these terms and columns on.
    right: &'r [f32],
    pitch: usize,
    /// Whether these are the first terms, and the last ones, of a slice.
    first: bool,
    last: bool,
    /// Sums of the terms before, one group of columns after the other.
    memory: &'t mut [f32],
    /// What the sums of a slice are added to.
    sums: Accumulators<'s>,
}

impl Sweep<'_, '_, '_, '_> {
    #[inline(always)]
    fn run<S: Simd, const M: usize>(mut self, simd: S) {
        let group = VECTORS * S::LANES;
        let memory = std::mem::take(&mut self.memory);
        for (n, memory) in memory.chunks_exact_mut(M * group).enumerate() {
            let mut sums = [[simd.splat(0.0); VECTORS]; M];
            if !self.first {
                for (sums, from) in sums.iter_mut().zip(memory.chunks_exact(group)) {
                    for (sum, from) in sums.iter_mut().zip(from.chunks_exact(S::LANES)) {
                        *sum = simd.load(from);
                    }
                }
            }
            self.multiply(simd, n * group, &mut sums);
            if self.last {
                let to = self.sums.from(n * group);
                add(simd, sums, to.data, to.pitch);
                continue;
            }
            for (sums, to) in sums.iter().zip(memory.chunks_exact_mut(group)) {
                for (&sum, to) in sums.iter().zip(to.chunks_exact_mut(S::LANES)) {
                    simd.store(sum, to);
                }
            }
        }
    }

    /// Adds the terms for the group of columns `at`, and prefetches the next ones.
    #[inline(always)]
    fn multiply<S: Simd, const M: usize>(
        &self,
        simd: S,
        at: usize,
        sums: &mut [[S::F32; VECTORS]; M],
    ) {
        let mut rest = self.right;
        for k in self.terms.clone() {
            let row = &rest[at..][..VECTORS * S::LANES];
            rest = rest.get(self.pitch..).unwrap_or_default();
            let mut columns = [simd.splat(0.0); VECTORS];
            for (column, from) in columns.iter_mut().zip(row.chunks_exact(S::LANES)) {
                let next = from.as_ptr().wrapping_add(SWEEP_TERMS * self.pitch);
                simd.prefetch_second_level(next.cast());
                *column = simd.load(from);
            }
            for (m, sums) in sums.iter_mut().enumerate() {
                let coefficient = simd.splat(self.left.coefficient(m, k));
                for (sum, column) in sums.iter_mut().zip(columns) {
                    *sum = simd.mul_add(coefficient, column, *sum);
                }
            }
        }
    }
}
