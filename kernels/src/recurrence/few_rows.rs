//! Steps of few rows: group by group of cells, the products, and then what completes them. What is the same in all steps
//! is set up once, because such a step takes as long as some hundred instructions for each matrix.

use std::array;
use std::mem;
use std::ops::Range;
use std::slice::ChunksExactMut;

use ndarray::iter::AxisIterMut;
use ndarray::{ArrayView2, ArrayViewMut2, ArrayViewMut3, Axis, Ix2};

use super::forward::Cell;
use super::{Lengths, Rows};
use crate::Storage;
use crate::gemm::{FEW_ROWS, GroupSums, groups, padded};
use crate::simd::{Simd, WithSimd};

/// A row of a step.
pub(crate) struct RowStep<'s, E, const K: usize, const N: usize> {
    /// Products of its x with each of its weights, as a tile of all cells has its sums.
    pub(crate) products: [&'s mut [f32]; 2],
    /// The states that enter it.
    pub(crate) before: [&'s [E]; N],
    pub(crate) kept: [&'s mut [E]; K],
    pub(crate) states: [&'s mut [E]; N],
}

/// Some steps of a few rows, in groups of so many cells.
pub(super) struct FewRows<'s, E, C, const K: usize, const N: usize> {
    pub(super) cell: &'s C,
    pub(super) lengths: Lengths<'s>,
    pub(super) steps: Range<usize>,
    /// Rows and cells.
    pub(super) shape: (usize, usize),
    /// The cells of a group.
    pub(super) width: usize,
    /// Products of x of these steps with each of its weights.
    pub(super) products: [ChunksExactMut<'s, f32>; 2],
    /// The states that enter the first of these steps.
    pub(super) before: [&'s [E]; N],
    pub(super) kept: [OfSteps<'s, E>; K],
    pub(super) states: [AxisIterMut<'s, E, Ix2>; N],
}

/// What steps leave in a tensor.
pub(super) enum OfSteps<'s, E> {
    /// In memory that serves all of them.
    Latest(&'s mut [E]),
    Each(AxisIterMut<'s, E, Ix2>),
}

impl<'s, E> OfSteps<'s, E> {
    /// In a tensor of all steps or of one, from step `start` on.
    pub(super) fn of(tensor: &'s mut ArrayViewMut3<'_, E>, start: usize) -> Self {
        if tensor.len_of(Axis(0)) == 1 {
            return OfSteps::Latest(elements(tensor.index_axis_mut(Axis(0), 0)));
        }
        OfSteps::Each(tensor.outer_iter_mut().split_at(start).1)
    }

    #[inline(always)]
    fn next(&mut self) -> &mut [E] {
        match self {
            OfSteps::Latest(latest) => latest,
            OfSteps::Each(steps) => next(steps),
        }
    }
}

/// The states that enter step `start`, if `first` enter the first one, and those that it and later steps leave.
pub(super) fn states<'s, E>(
    tensor: &'s mut ArrayViewMut3<'_, E>,
    first: ArrayView2<'s, E>,
    start: usize,
) -> (&'s [E], AxisIterMut<'s, E, Ix2>) {
    let (mut done, steps) = tensor.outer_iter_mut().split_at(start);
    let before = done.next_back().map(|before| &*elements(before));
    (before.unwrap_or_else(|| first.to_slice().expect("rows without gaps")), steps)
}

/// What the next step leaves.
#[inline(always)]
fn next<'s, E>(steps: &mut AxisIterMut<'s, E, Ix2>) -> &'s mut [E] {
    elements(steps.next().expect("memory for each step"))
}

/// The elements of the rows of a step.
#[inline(always)]
fn elements<E>(rows: ArrayViewMut2<'_, E>) -> &mut [E] {
    rows.into_slice().expect("rows without gaps")
}

impl<E, C, const K: usize, const N: usize> WithSimd for FewRows<'_, E, C, K, N>
where
    E: Storage,
    C: Cell<E, K, N>,
{
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let FewRows { cell, lengths, shape, width, mut before, mut kept, mut states, .. } = self;
        let mut products = self.products;
        let mut memory = GroupSums::zeros();
        for t in self.steps {
            let mut after = states.each_mut().map(next);
            let step = RowStep {
                products: products.each_mut().map(|steps| steps.next().unwrap_or_default()),
                before,
                kept: kept.each_mut().map(OfSteps::next),
                states: after.each_mut().map(|state| &mut **state),
            };
            let mut rows = [const { None }; FEW_ROWS];
            let count = step.rows(Rows { lengths, t }, shape, &mut rows);
            let rows = &mut rows[..count];
            let groups = groups(shape.1, width, t % 2 == 1);
            for group in groups.take_while(|_| count > 0) {
                let sums = &mut memory.0[..count * C::GATES * padded(group.len())];
                cell.sums(simd, rows, &group, sums);
                let sums = sums.chunks_exact_mut(C::GATES * padded(group.len()));
                for (row, sums) in rows.iter_mut().flatten().zip(sums) {
                    cell.finish(simd, row, &group, sums);
                }
            }
            before = after.map(|state| &*state);
        }
    }
}

impl<'s, E: Storage, const K: usize, const N: usize> RowStep<'s, E, K, N> {
    /// Of all rows, collects those that have the step, and returns how many. Outputs of the others become zero.
    #[inline(always)]
    fn rows(
        mut self,
        of_step: Rows<'_>,
        (batch, cells): (usize, usize),
        to: &mut [Option<Self>; FEW_ROWS],
    ) -> usize {
        let lens = self.products.each_ref().map(|products| products.len() / batch);
        let mut count = 0;
        for b in 0..batch {
            let mut products = self.products.each_mut().into_iter().zip(lens);
            let row = RowStep {
                products: array::from_fn(|_| {
                    products.next().map_or(&mut [][..], |(rest, len)| split_off(rest, len))
                }),
                before: self.before.each_ref().map(|state| &state[b * cells..(b + 1) * cells]),
                kept: self.kept.each_mut().map(|rest| split_off(rest, cells)),
                states: self.states.each_mut().map(|rest| split_off(rest, cells)),
            };
            if of_step.has(b) {
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
