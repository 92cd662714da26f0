//! Products `a @ b^T` of matrices whose rows are contiguous.
//!
//! This is the product of a backward step, `d_gates @ w^T`: there are few rows of `d_gates`, one a
//! batch row, for many rows of weights. Packing the weights, as general products do, would cost as
//! much as the product itself. Instead each element of the result is a dot product of two rows
//! taken as they lie, a block of rows of `a` against a block of rows of `b` at a time, so that a
//! vector once loaded serves a whole row or column of the block.
//!
//! Every element is summed in the same order whatever block it falls in. A result therefore depends
//! on its two rows alone: not on the batch, the tiling or the number of threads.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2};

use crate::simd::{Kernel, Simd};
use crate::tiles::{Tiling, row, row_mut};

/// What becomes of the previous contents of a result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Update {
    /// They are overwritten.
    Store,
    /// They are added to.
    Add,
}

/// `out = a @ b^T`, or `out += a @ b^T`.
pub(crate) struct Product<'a, 'o> {
    /// `[m, k]`
    pub(crate) a: ArrayView2<'a, f32>,
    /// `[n, k]`
    pub(crate) b: ArrayView2<'a, f32>,
    /// `[m, n]`
    pub(crate) out: ArrayViewMut2<'o, f32>,
    /// Store or add.
    pub(crate) update: Update,
}

impl Kernel for Product<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let (m, n) = self.out.dim();
        let most = block_rows(S::REGISTERS);
        let blocks = m.div_ceil(most);
        let columns = block_columns(S::REGISTERS, m.div_ceil(blocks.max(1)));
        let mut at = 0;
        while at < n {
            let width = if n - at >= columns { columns } else { 1 };
            for block in 0..blocks {
                // Blocks of nearly equal height: 7 rows are 4 + 3, not 5 + 2.
                let rows = block * m / blocks..(block + 1) * m / blocks;
                self.block(simd, rows, at..at + width);
            }
            at += width;
        }
    }
}

/// Tiles for a result of `m` rows whose elements are dot products of length `k`.
///
/// A tile is worth a thread's attention (some 10 microseconds), its rows of `a` stay in the second
/// level cache, and the blocks of [`block_columns`] divide its width.
pub(crate) fn tiling(m: usize, k: usize) -> Tiling {
    const ENOUGH: usize = 1 << 19;
    const MOST_ROWS: usize = 128;
    let rows = m.div_ceil(m.div_ceil(MOST_ROWS).max(1)).max(1);
    let unit = if rows <= 6 { 120 } else { 60 };
    let work = rows.saturating_mul(k.max(1)).saturating_mul(unit);
    Tiling { rows, columns: unit * ENOUGH.div_ceil(work) }
}

/// Processor cycles that a tile of [`tiling`] may take, for an executor.
pub(crate) fn cost(tiling: Tiling, k: usize) -> u64 {
    (tiling.rows * tiling.columns * k.max(1) / 16) as u64
}

/// Rows of `a` in a block: as many as keep the block's sums in registers.
const fn block_rows(registers: usize) -> usize {
    match registers {
        32.. => 5,
        16.. => 3,
        _ => 2,
    }
}

/// Rows of `b` in a block that has `rows` rows of `a`.
const fn block_columns(registers: usize, rows: usize) -> usize {
    match (registers, rows) {
        (32.., 5) => 5,
        (32.., 4) => 6,
        (32.., _) => 8,
        (16.., 1) => 8,
        (16.., _) => 4,
        (_, 1) => 4,
        _ => 2,
    }
}

impl Product<'_, '_> {
    /// One block of the result, with the loops of its height and width unrolled.
    #[inline(always)]
    fn block<S: Simd>(&mut self, simd: S, rows: Range<usize>, columns: Range<usize>) {
        macro_rules! of_shape {
            ($(($m:literal, $n:literal))*) => {
                match (rows.len(), columns.len()) {
                    $(($m, $n) => {
                        let a = slices(self.a, rows.start);
                        let b = slices(self.b, columns.start);
                        self.write(rows, columns, dots::<S, $m, $n>(simd, a, b));
                    })*
                    (m, n) => unreachable!("no block of {m} x {n}"),
                }
            };
        }
        match S::REGISTERS {
            32.. => of_shape! {
                (5, 5) (4, 5) (4, 6) (3, 6) (3, 8) (2, 8) (1, 8) (5, 1) (4, 1) (3, 1) (2, 1) (1, 1)
            },
            16.. => of_shape! { (3, 4) (2, 4) (1, 8) (3, 1) (2, 1) (1, 1) },
            _ => of_shape! { (2, 2) (1, 2) (1, 4) (2, 1) (1, 1) },
        }
    }

    #[inline(always)]
    fn write<const M: usize, const N: usize>(
        &mut self,
        rows: Range<usize>,
        columns: Range<usize>,
        block: [[f32; N]; M],
    ) {
        for (row, values) in rows.zip(block) {
            let out = &mut row_mut(&mut self.out, row)[columns.clone()];
            match self.update {
                Update::Store => out.copy_from_slice(&values),
                Update::Add => out.iter_mut().zip(values).for_each(|(out, value)| *out += value),
            }
        }
    }
}

/// Rows `at .. at + R`.
#[inline(always)]
fn slices<const R: usize>(matrix: ArrayView2<'_, f32>, at: usize) -> [&[f32]; R] {
    let mut rows = [&[] as &[f32]; R];
    for (n, slice) in rows.iter_mut().enumerate() {
        *slice = row(matrix, at + n);
    }
    rows
}

/// All dot products of a row of `a` and a row of `b`.
#[inline(always)]
fn dots<S: Simd, const M: usize, const N: usize>(
    simd: S,
    a: [&[f32]; M],
    b: [&[f32]; N],
) -> [[f32; N]; M] {
    let k = a[0].len();
    let mut sums = [[simd.splat(0.0); N]; M];
    let full = k - k % S::LANES;
    for at in (0..full).step_by(S::LANES) {
        accumulate(simd, &mut sums, a, b, at, S::LANES);
    }
    if full < k {
        accumulate(simd, &mut sums, a, b, full, k - full);
    }
    let mut dots = [[0.0; N]; M];
    for (dots, sums) in dots.iter_mut().zip(sums) {
        for (dot, sum) in dots.iter_mut().zip(sums) {
            *dot = simd.sum(sum);
        }
    }
    dots
}

/// Adds the products of elements `at .. at + len`.
#[inline(always)]
fn accumulate<S: Simd, const M: usize, const N: usize>(
    simd: S,
    sums: &mut [[S::F32; N]; M],
    a: [&[f32]; M],
    b: [&[f32]; N],
    at: usize,
    len: usize,
) {
    let mut columns = [simd.splat(0.0); N];
    for (column, b) in columns.iter_mut().zip(b) {
        *column = simd.load(&b[at..at + len]);
    }
    for (sums, a) in sums.iter_mut().zip(a) {
        let row = simd.load(&a[at..at + len]);
        for (sum, column) in sums.iter_mut().zip(columns) {
            *sum = simd.mul_add(row, column, *sum);
        }
    }
}

#[cfg(test)]
mod tests;
