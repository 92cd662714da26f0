//! Elementwise passes: an equation applied to every element of some matrices, in one pass over the data, with sums
//! over the batch where the equation has them.
//!
//! Each equation is compiled once for each instruction set and element type, as a function that works on one row.

mod narrow;

use ndarray::{ArrayView2, ArrayViewMut2};

use crate::executor::for_each;
use crate::simd::{Simd, Twice, WithSimd};
use crate::tiles::{Tiling, row, row_mut};
use crate::tuning::{
    PASS_CYCLES_PER_ELEMENT, PASS_ELEMENTS, STORE_AHEAD_BYTES, SUM_COLUMNS, SUM_ROWS,
};
use crate::{Context, Isa, Storage};

/// The elements at one place that an equation reads, as vectors.
pub(crate) struct Elements<V, const I: usize, const O: usize, const W: usize = 0> {
    pub(crate) inputs: [V; I],
    /// The previous contents of the outputs, for those that are updated in place.
    pub(crate) before: [V; O],
    pub(crate) f32_operands: [V; W],
}

/// New elements of `O` outputs and `W` matrices in `f32`, and the terms of `R` sums.
pub(crate) type Computed<V, const O: usize, const W: usize = 0, const R: usize = 0> =
    ([V; O], [V; W], [V; R]);

/// What is computed from the elements at one place of `I` inputs: the elements there of `O` outputs and of `W` matrices
/// that are in `f32` whatever the element type (`f32_operands`), and the terms of `R` sums over the batch.
pub(crate) trait Equation<const I: usize, const O: usize, const R: usize = 0, const W: usize = 0>:
    Copy + Send + Sync
{
    /// Whether to work on two vectors at a time, which pays where operations wait for each other.
    const PAIR_VECTORS: bool = false;

    /// How many of these matrices, the first ones, are only read: what `apply` returns for them is
    /// not written.
    const READ_ONLY: usize = 0;

    /// The equation on vectors. Implementations are `#[inline(always)]`.
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, I, O, W>) -> Computed<S::F32, O, W, R>;
}

/// Applies `equation` to matrices of one shape, whose rows are contiguous.
///
/// `sums[k][0, j]` becomes the sum of the equation's term `k` over column `j`.
pub(crate) fn map<E, Q, const I: usize, const O: usize, const R: usize>(
    context: &Context<'_>,
    equation: Q,
    inputs: [ArrayView2<'_, E>; I],
    outputs: [ArrayViewMut2<'_, E>; O],
    mut sums: [ArrayViewMut2<'_, E>; R],
) where
    E: Storage,
    Q: Equation<I, O, R>,
{
    let shape = outputs[0].dim();
    if shape.0 == 0 || shape.1 == 0 {
        return sums.iter_mut().for_each(|sum| sum.fill(E::ZERO));
    }
    let Context { isa, executor, .. } = *context;
    let tiling = if R == 0 { row_tiling(shape) } else { column_tiling(shape) };
    if tiling.is_one_tile(shape) {
        return run(isa, equation, inputs, outputs, sums);
    }
    let places = tiling.places(shape).map(|place| inputs.map(|input| place.of(input)));
    let tiles = places.zip(tiling.split_each(outputs)).zip(tiling.split_each(sums));
    let elements = tiling.rows.min(shape.0) * tiling.columns.min(shape.1);
    let cost = (PASS_CYCLES_PER_ELEMENT * elements) as u64;
    for_each(executor, cost, tiles.collect(), |((inputs, outputs), sums)| {
        run(isa, equation, inputs, outputs, sums);
    });
}

/// [`map`] on one of its tiles.
fn run<E, Q, const I: usize, const O: usize, const R: usize>(
    isa: Isa,
    equation: Q,
    inputs: [ArrayView2<'_, E>; I],
    outputs: [ArrayViewMut2<'_, E>; O],
    mut sums: [ArrayViewMut2<'_, E>; R],
) where
    E: Storage,
    Q: Equation<I, O, R>,
{
    let columns = outputs[0].ncols();
    let mut totals = [[0.0; SUM_COLUMNS]; R];
    let parts = totals.each_mut().map(|total| if R == 0 { &mut [] } else { &mut total[..columns] });
    isa.run(Pass { equation, inputs, outputs, f32_operands: [], sums: parts });
    for (sum, total) in sums.iter_mut().zip(totals) {
        for (sum, total) in sum.iter_mut().zip(total) {
            *sum = E::from_f32(total);
        }
    }
}

fn row_tiling((_, columns): (usize, usize)) -> Tiling {
    Tiling { rows: (PASS_ELEMENTS / columns.max(1)).max(1), columns: usize::MAX }
}

fn column_tiling((rows, _): (usize, usize)) -> Tiling {
    let columns = (4 * PASS_ELEMENTS / rows.max(1)).next_multiple_of(64).clamp(64, SUM_COLUMNS);
    Tiling { rows: usize::MAX, columns }
}

/// An equation on matrices of one shape, whose rows are contiguous. With sums they have at most
/// [`SUM_COLUMNS`] columns.
pub(crate) struct Pass<'i, 'o, E, Q, const I: usize, const O: usize, const R: usize, const W: usize>
{
    pub(crate) equation: Q,
    pub(crate) inputs: [ArrayView2<'i, E>; I],
    pub(crate) outputs: [ArrayViewMut2<'o, E>; O],
    pub(crate) f32_operands: [ArrayViewMut2<'o, f32>; W],
    /// What the sums over the batch are added to.
    pub(crate) sums: [&'o mut [f32]; R],
}

type Sums<const R: usize> = [[f32; SUM_COLUMNS]; R];

impl<E, Q, const I: usize, const O: usize, const R: usize, const W: usize> WithSimd
    for Pass<'_, '_, E, Q, I, O, R, W>
where
    E: Storage,
    Q: Equation<I, O, R, W>,
{
    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let (rows, columns) = self.outputs[0].dim();
        if const { Q::PAIR_VECTORS && R == 0 } && rows > 1 && narrow::is_narrow::<S>(columns) {
            return narrow::run(self, simd);
        }
        for first in (0..rows).step_by(SUM_ROWS) {
            let mut partial: Sums<R> = [[0.0; SUM_COLUMNS]; R];
            for row in first..rows.min(first + SUM_ROWS) {
                simd.enter(self.row(row, &mut partial));
            }
            for (total, partial) in self.sums.iter_mut().zip(partial) {
                total.iter_mut().zip(partial).for_each(|(total, partial)| *total += partial);
            }
        }
    }
}

impl<E, Q, const I: usize, const O: usize, const R: usize, const W: usize>
    Pass<'_, '_, E, Q, I, O, R, W>
where
    E: Storage,
    Q: Equation<I, O, R, W>,
{
    #[inline(always)]
    fn row<'r>(&'r mut self, at: usize, sums: &'r mut Sums<R>) -> Row<'r, E, Q, I, O, R, W> {
        // Not `map`, which becomes a call of its own, here and in `rows_mut`.
        let mut inputs = [&[] as &[E]; I];
        for (to, input) in inputs.iter_mut().zip(self.inputs) {
            *to = row(input, at);
        }
        let outputs = rows_mut(&mut self.outputs, at);
        let f32_operands = rows_mut(&mut self.f32_operands, at);
        let columns = outputs[0].len();
        let mut parts: [&mut [f32]; R] = empty();
        for (to, sum) in parts.iter_mut().zip(sums) {
            *to = &mut sum[..columns];
        }
        Row { equation: self.equation, inputs, outputs, f32_operands, sums: parts }
    }
}

/// One row of each matrix.
#[inline(always)]
fn rows_mut<'a, T, const N: usize>(
    matrices: &'a mut [ArrayViewMut2<'_, T>; N],
    at: usize,
) -> [&'a mut [T]; N] {
    let mut rows = empty();
    for (to, matrix) in rows.iter_mut().zip(matrices) {
        *to = row_mut(matrix, at);
    }
    rows
}

#[inline(always)]
fn empty<'a, T, const N: usize>() -> [&'a mut [T]; N] {
    std::array::from_fn(|_| Default::default())
}

/// One row of what a [`Pass`] works on, or a part of it.
pub(crate) struct Row<'r, E, Q, const I: usize, const O: usize, const R: usize, const W: usize> {
    pub(crate) equation: Q,
    pub(crate) inputs: [&'r [E]; I],
    pub(crate) outputs: [&'r mut [E]; O],
    pub(crate) f32_operands: [&'r mut [f32]; W],
    pub(crate) sums: [&'r mut [f32]; R],
}

impl<E, Q, const I: usize, const O: usize, const R: usize, const W: usize> WithSimd
    for Row<'_, E, Q, I, O, R, W>
where
    E: Storage,
    Q: Equation<I, O, R, W>,
{
    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let columns = self.outputs[0].len();
        if const { S::REGISTERS < 16 } {
            // Larger code would not be faster with so few registers.
            for at in (0..columns).step_by(S::LANES) {
                self.step(simd, at, S::LANES.min(columns - at));
            }
            return;
        }
        // Rows of whole matrices start at the same place of a cache line. From the next line on, no
        // vector of theirs crosses lines. In short rows that is not worth a vector more.
        let line = match self.outputs[0].as_ptr().align_offset(S::LANES * size_of::<E>()) {
            line if line < S::LANES && columns >= 8 * S::LANES => line,
            _ => 0,
        };
        let mut end = columns - (columns - line) % S::LANES;
        let mut singles = line;
        if const { Q::PAIR_VECTORS } {
            singles += (end - line) / (2 * S::LANES) * 2 * S::LANES;
            for at in (line..singles).step_by(2 * S::LANES) {
                self.step(Twice(simd), at, 2 * S::LANES);
            }
            // A vector and a part of one, which would wait for each other, too.
            if columns - singles > S::LANES {
                self.step(Twice(simd), singles, columns - singles);
                (singles, end) = (columns, columns);
            }
        } else {
            for at in (line..end).step_by(S::LANES) {
                self.step(simd, at, S::LANES);
            }
            singles = end;
        }
        // What is left, in one loop, so that the equation is compiled once for all of it: before the first
        // line, a vector without a second one, and after the last vector.
        for (at, len) in [(0, line), (singles, end - singles), (end, columns - end)] {
            if len > 0 {
                self.step(simd, at, len);
            }
        }
    }
}

impl<E, Q, const I: usize, const O: usize, const R: usize, const W: usize> Row<'_, E, Q, I, O, R, W>
where
    E: Storage,
    Q: Equation<I, O, R, W>,
{
    /// Elements `at .. at + len`, where `len` is at most [`Simd::LANES`].
    #[inline(always)]
    fn step<S: Simd>(&mut self, simd: S, at: usize, len: usize) {
        for output in &self.outputs {
            prefetch_after(simd, output, at);
        }
        for f32_operands in self.f32_operands.iter().skip(Q::READ_ONLY) {
            prefetch_after(simd, f32_operands, at);
        }
        let zero = simd.splat(0.0);
        let (mut inputs, mut before, mut f32_operands) = ([zero; I], [zero; O], [zero; W]);
        for (value, input) in inputs.iter_mut().zip(self.inputs) {
            *value = E::load(simd, &input[at..at + len]);
        }
        for (before, output) in before.iter_mut().zip(&self.outputs) {
            *before = E::load(simd, &output[at..at + len]);
        }
        for (value, f32_operands) in f32_operands.iter_mut().zip(&self.f32_operands) {
            *value = simd.load(&f32_operands[at..at + len]);
        }
        let elements = Elements { inputs, before, f32_operands };
        let (results, f32_operands, terms) = self.equation.apply(simd, elements);
        for (output, result) in self.outputs.iter_mut().zip(results) {
            E::store(simd, result, &mut output[at..at + len]);
        }
        for (to, result) in self.f32_operands.iter_mut().zip(f32_operands).skip(Q::READ_ONLY) {
            simd.store(result, &mut to[at..at + len]);
        }
        for (sum, term) in self.sums.iter_mut().zip(terms) {
            let sum = &mut sum[at..at + len];
            simd.store(simd.load(sum) + term, sum);
        }
    }
}

/// Prefetches the line [`STORE_AHEAD_BYTES`] of element `at`, which may be past the row's end.
#[inline(always)]
fn prefetch_after<S: Simd, T>(simd: S, row: &[T], at: usize) {
    simd.prefetch(row.as_ptr().wrapping_add(at).wrapping_byte_add(STORE_AHEAD_BYTES).cast());
}

#[cfg(test)]
mod tests;
