//! Elementwise passes: an equation applied to every element of some matrices, in one sweep over the
//! data, with sums over the batch where the equation has them.

use ndarray::{ArrayView2, ArrayViewMut2};

use crate::executor::for_each;
use crate::simd::{Kernel, Simd};
use crate::tiles::{Tiling, row, row_mut};
use crate::{Context, Element};

/// What is computed from the elements at one place of `I` inputs: the elements there of `O` outputs,
/// and the terms of `R` sums over the batch.
pub(crate) trait Equation<const I: usize, const O: usize, const R: usize = 0>:
    Copy + Send + Sync
{
    /// The equation on vectors. `before` holds the previous contents of the outputs, for those that
    /// are updated in place. Implementations are `#[inline(always)]`.
    fn apply<S: Simd>(
        self,
        simd: S,
        inputs: [S::F32; I],
        before: [S::F32; O],
    ) -> ([S::F32; O], [S::F32; R]);
}

/// Elements in a tile: some 10 microseconds of memory traffic.
const TILE: usize = 1 << 13;

/// Columns in a tile that has sums, of which a task keeps one for each column on its stack.
const SUM_COLUMNS: usize = 256;

/// Rows that are summed by themselves before they are added to the total: the rounding error grows
/// with this and the number of such groups, not with the whole batch.
const SUM_ROWS: usize = 64;

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
    E: Element,
    Q: Equation<I, O, R>,
{
    let shape = outputs[0].dim();
    if shape.0 == 0 || shape.1 == 0 {
        return sums.iter_mut().for_each(|sum| sum.fill(E::ZERO));
    }
    let Context { isa, executor } = *context;
    // Where rows end within a cache line, the outputs that are parts of wider rows start anywhere in
    // one. Vectors of half a line are split by fewer ends, and bandwidth is the limit, not arithmetic.
    let whole_lines = (shape.1 * size_of::<E>()).is_multiple_of(64);
    let isa = if whole_lines { isa } else { isa.narrower() };
    let tiling = if R == 0 { row_tiling(shape) } else { column_tiling(shape) };
    if tiling.is_one_tile(shape) {
        return isa.run(Tile { equation, inputs, outputs, sums });
    }
    let mut outputs = outputs.map(|output| tiling.split(output).into_iter());
    let mut sums = sums.map(|sum| tiling.split(sum).into_iter());
    let tiles = tiling.places(shape).into_iter().map(|place| Tile {
        equation,
        inputs: inputs.map(|input| place.of(input)),
        outputs: outputs.each_mut().map(|tiles| tiles.next().expect("a tile for each place")),
        sums: sums.each_mut().map(|tiles| tiles.next().expect("a tile for each place")),
    });
    // A dozen streams of four bytes from the second level cache: some 3 cycles an element.
    let cost = 3 * tiling.rows.min(shape.0) * tiling.columns.min(shape.1);
    for_each(executor, cost as u64, tiles.collect(), |tile| isa.run(tile));
}

fn row_tiling((_, columns): (usize, usize)) -> Tiling {
    Tiling { rows: (TILE / columns.max(1)).max(1), columns: usize::MAX }
}

fn column_tiling((rows, _): (usize, usize)) -> Tiling {
    let columns = (4 * TILE / rows.max(1)).next_multiple_of(64).clamp(64, SUM_COLUMNS);
    Tiling { rows: usize::MAX, columns }
}

/// [`map`] on one tile.
pub(crate) struct Tile<'i, 'o, E, Q, const I: usize, const O: usize, const R: usize> {
    pub(crate) equation: Q,
    pub(crate) inputs: [ArrayView2<'i, E>; I],
    pub(crate) outputs: [ArrayViewMut2<'o, E>; O],
    pub(crate) sums: [ArrayViewMut2<'o, E>; R],
}

type Sums<const R: usize> = [[f32; SUM_COLUMNS]; R];

impl<E, Q, const I: usize, const O: usize, const R: usize> Kernel for Tile<'_, '_, E, Q, I, O, R>
where
    E: Element,
    Q: Equation<I, O, R>,
{
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let rows = self.outputs[0].nrows();
        let mut totals: Sums<R> = [[0.0; SUM_COLUMNS]; R];
        for first in (0..rows).step_by(SUM_ROWS) {
            let mut partial: Sums<R> = [[0.0; SUM_COLUMNS]; R];
            for row in first..rows.min(first + SUM_ROWS) {
                self.row(simd, row, &mut partial);
            }
            for (total, partial) in totals.as_flattened_mut().iter_mut().zip(partial.as_flattened())
            {
                *total += partial;
            }
        }
        for (sum, total) in self.sums.iter_mut().zip(totals) {
            for (sum, total) in sum.iter_mut().zip(total) {
                *sum = E::from_f32(total);
            }
        }
    }
}

impl<E, Q, const I: usize, const O: usize, const R: usize> Tile<'_, '_, E, Q, I, O, R>
where
    E: Element,
    Q: Equation<I, O, R>,
{
    #[inline(always)]
    fn row<S: Simd>(&mut self, simd: S, at: usize, sums: &mut Sums<R>) {
        let inputs = self.inputs.map(|input| row(input, at));
        let mut outputs = self.outputs.each_mut().map(|output| row_mut(output, at));
        let columns = outputs[0].len();
        // Rows of whole matrices start at the same place of a cache line. From the next line on, no
        // vector of theirs lies across two.
        let line = match outputs[0].as_ptr().align_offset(S::LANES * size_of::<E>()) {
            line if line < S::LANES => line.min(columns),
            _ => 0,
        };
        let end = columns - (columns - line) % S::LANES;
        if line > 0 {
            step(simd, self.equation, inputs, &mut outputs, sums, 0, line);
        }
        for at in (line..end).step_by(S::LANES) {
            step(simd, self.equation, inputs, &mut outputs, sums, at, S::LANES);
        }
        if end < columns {
            step(simd, self.equation, inputs, &mut outputs, sums, end, columns - end);
        }
    }
}

/// Elements `at .. at + len` of a row, where `len` is at most [`Simd::LANES`].
#[inline(always)]
fn step<S: Simd, E, Q, const I: usize, const O: usize, const R: usize>(
    simd: S,
    equation: Q,
    inputs: [&[E]; I],
    outputs: &mut [&mut [E]; O],
    sums: &mut Sums<R>,
    at: usize,
    len: usize,
) where
    E: Element,
    Q: Equation<I, O, R>,
{
    let zero = simd.splat(0.0);
    let mut values = [zero; I];
    for (value, input) in values.iter_mut().zip(inputs) {
        *value = E::load(simd, &input[at..at + len]);
    }
    let mut before = [zero; O];
    for (before, output) in before.iter_mut().zip(outputs.iter()) {
        *before = E::load(simd, &output[at..at + len]);
    }
    let (results, terms) = equation.apply(simd, values, before);
    for (output, result) in outputs.iter_mut().zip(results) {
        E::store(simd, result, &mut output[at..at + len]);
    }
    for (sum, term) in sums.iter_mut().zip(terms) {
        let sum = &mut sum[at..at + len];
        simd.store(simd.load(sum) + term, sum);
    }
}

#[cfg(test)]
mod tests;
