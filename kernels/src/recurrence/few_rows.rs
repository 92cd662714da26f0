//! Steps of few rows: group by group of cells, the products, and then what completes them. What is the same in all steps
//! is set up once, because such a step takes as long as some hundred instructions for each matrix.

use std::mem;
use std::ops::Range;

use ndarray::ArrayViewMut3;

use super::forward::{Cell, Outputs, Sequence};
use super::{Lengths, Rows};
use crate::gemm::{FEW_ROWS, GroupSums, groups, padded};
use crate::simd::{Simd, WithSimd};
use crate::{Context, Storage};

/// A row of a step.
pub(crate) struct RowStep<'s, E, const K: usize, const N: usize> {
    /// Products of its x with the weights of all gates.
    pub(crate) products: &'s mut [f32],
    /// The states that enter it.
    pub(crate) before: [&'s [E]; N],
    pub(crate) kept: [&'s mut [E]; K],
    pub(crate) states: [&'s mut [E]; N],
}

/// The steps `steps` of all rows, whose products of x are `products`, in groups of so many cells.
pub(super) fn few_rows<E: Storage, C: Cell<E, K, N>, const K: usize, const N: usize>(
    context: &Context<'_>,
    cell: &C,
    sequence: &Sequence<'_, E, N>,
    outputs: &mut Outputs<'_, E, K, N>,
    products: ArrayViewMut3<'_, f32>,
    (steps, width): (Range<usize>, usize),
) {
    let (batch, cells) = sequence.first[0].dim();
    context.isa.run(Steps {
        cell,
        lengths: sequence.lengths,
        shape: (batch, cells),
        first: sequence.first.each_ref().map(|state| state.to_slice().expect("without gaps")),
        products: products.into_slice().expect("without gaps"),
        kept: outputs.kept.each_mut().map(|kept| kept.as_slice_mut().expect("without gaps")),
        states: outputs.states.each_mut().map(|state| state.as_slice_mut().expect("without gaps")),
        steps,
        width,
    });
}

/// Some steps.
struct Steps<'s, E, C, const K: usize, const N: usize> {
    cell: &'s C,
    lengths: Lengths<'s>,
    /// Rows and cells.
    shape: (usize, usize),
    first: [&'s [E]; N],
    /// Of these steps.
    products: &'s mut [f32],
    /// Of one step, or of all.
    kept: [&'s mut [E]; K],
    states: [&'s mut [E]; N],
    steps: Range<usize>,
    width: usize,
}

impl<E, C, const K: usize, const N: usize> WithSimd for Steps<'_, E, C, K, N>
where
    E: Storage,
    C: Cell<E, K, N>,
{
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let (cell, cells, width) = (self.cell, self.shape.1, self.width);
        let mut memory = GroupSums::zeros();
        for t in self.steps.clone() {
            let mut rows = [const { None }; FEW_ROWS];
            let count = self.rows(t, &mut rows);
            if count == 0 {
                continue;
            }
            let rows = &mut rows[..count];
            for group in groups(cells, width, t % 2 == 1) {
                let sums = &mut memory.0[..count * C::GATES * padded(group.len())];
                cell.sums(simd, rows, &group, sums);
                let sums = sums.chunks_exact_mut(C::GATES * padded(group.len()));
                for (row, sums) in rows.iter_mut().flatten().zip(sums) {
                    cell.finish(simd, row, &group, sums);
                }
            }
        }
    }
}

impl<E: Storage, C: Cell<E, K, N>, const K: usize, const N: usize> Steps<'_, E, C, K, N> {
    /// Collects the rows that have step `t`, and returns how many. Outputs of the others become zero.
    #[inline(always)]
    fn rows<'r>(
        &'r mut self,
        t: usize,
        to: &mut [Option<RowStep<'r, E, K, N>>; FEW_ROWS],
    ) -> usize {
        let (batch, cells) = self.shape;
        let size = batch * cells;
        let mut before: [&[E]; N] = self.first;
        let mut states: [&mut [E]; N] = std::array::from_fn(|_| Default::default());
        let of_step = before.iter_mut().zip(&mut states);
        for ((before, states), all) in of_step.zip(&mut self.states) {
            let (done, rest) = all.split_at_mut(t * size);
            if t > 0 {
                *before = &done[(t - 1) * size..];
            }
            *states = &mut rest[..size];
        }
        let mut kept: [&mut [E]; K] = std::array::from_fn(|_| Default::default());
        for (to, kept) in kept.iter_mut().zip(&mut self.kept) {
            let start = if kept.len() == size { 0 } else { t * size };
            *to = &mut kept[start..start + size];
        }
        let start = (t - self.steps.start) * C::GATES * size;
        let mut products = &mut self.products[start..start + C::GATES * size];
        let rows = Rows { lengths: self.lengths, t };
        let mut count = 0;
        for b in 0..batch {
            let mut row = RowStep {
                products: split_off(&mut products, C::GATES * cells),
                before: std::array::from_fn(|_| Default::default()),
                kept: std::array::from_fn(|_| Default::default()),
                states: std::array::from_fn(|_| Default::default()),
            };
            for (to, before) in row.before.iter_mut().zip(&before) {
                *to = &before[b * cells..(b + 1) * cells];
            }
            for (to, rest) in row.kept.iter_mut().zip(&mut kept) {
                *to = split_off(rest, cells);
            }
            for (to, rest) in row.states.iter_mut().zip(&mut states) {
                *to = split_off(rest, cells);
            }
            if rows.has(b) {
                to[count] = Some(row);
                count += 1;
            } else {
                row.kept.into_iter().chain(row.states).for_each(|output| output.fill(E::ZERO));
            }
        }
        count
    }
}

/// The first elements of a slice, which becomes the others.
#[inline(always)]
fn split_off<'a, T>(rest: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    let (part, after) = mem::take(rest).split_at_mut(len);
    *rest = after;
    part
}
