//! Steps of few rows: group by group of cells, the products, and then what completes them. What is the same in all
//! steps is set up once, because such a step takes as long as some hundred instructions for each matrix.

use std::array;
use std::ops::Range;
use std::slice::ChunksExact;

use ndarray::iter::AxisIterMut;
use ndarray::{ArrayView2, ArrayViewMut2, ArrayViewMut3, Axis, Ix1, Ix2};

use super::cell::StepCell;
use super::forward::{Band, BandStep, Outputs, Sequence, Way, all_steps};
use super::lengths::{At, Lengths, Rows};
use crate::executor::for_each;
use crate::gemm::{GroupSums, RowLanes, groups, padded};
use crate::simd::{Simd, WithSimd};
use crate::tiles::row;
use crate::tuning::GROUPED_ROWS;
use crate::{Context, Storage, workspace};

/// A cell whose steps are computed group by group of cells.
pub(crate) trait GroupedCell<E, const K: usize, const N: usize>: StepCell<E, K, N> {
    /// Sums for each cell that [`GroupedCell::sums`] sets.
    const SUMS: usize = Self::OF_X;

    /// The state that enters products.
    const LEFT: usize = N - 1;

    /// How its rows are multiplied by weights.
    fn row_lanes(&self) -> RowLanes;

    /// The cells of a group.
    fn group_width(&self) -> usize;

    /// Sets `sums`, `[rows, Self::SUMS, cells]`, to those of a group of cells of few rows.
    fn sums<S: Simd>(
        &self,
        simd: S,
        rows: &[Option<RowStep<'_, E, K, N>>],
        cells: &Range<usize>,
        sums: &mut [f32],
    );

    /// Completes a group of cells of a row that has the step, whose sums are `[Self::SUMS, cells]`.
    fn finish<S: Simd>(
        &self,
        simd: S,
        row: &mut RowStep<'_, E, K, N>,
        cells: &Range<usize>,
        sums: &mut [f32],
    );
}

/// [`forward()`](super::forward()) group by group of cells.
pub(crate) fn forward_in_groups<E, C, const K: usize, const N: usize>(
    context: &Context<'_>,
    cell: &C,
    sequence: &Sequence<'_, E, N>,
    outputs: Outputs<'_, E, K, N>,
    memory: &mut [f32],
) where
    E: Storage,
    C: GroupedCell<E, K, N>,
{
    all_steps::<ByGroups, _, _, K, N>(context, cell, sequence, outputs, memory);
}

/// Group by group of cells.
struct ByGroups;

impl<C, E, const K: usize, const N: usize> Way<C, E, K, N> for ByGroups
where
    E: Storage,
    C: GroupedCell<E, K, N>,
{
    const CUTS_STEPS: bool = false;

    fn steps(
        context: &Context<'_>,
        cell: &C,
        band: &mut Band<'_, E, K, N>,
        steps: Range<usize>,
        [first, second]: [&mut [f32]; 2],
        len: [usize; 2],
    ) {
        let Band { lengths, first: entering, .. } = *band;
        let mut states = band.states.each_mut().into_iter().zip(entering).map(|(states, first)| {
            let (before, states) = states_from(states, first, steps.start);
            (before, Some(states))
        });
        let mut states: [_; N] = array::from_fn(|_| states.next().expect("as many states"));
        let shape = entering[0].dim();
        let work = |lanes: &mut [f32]| {
            context.isa.run(FewRows {
                cell,
                lengths,
                shape,
                lanes,
                products: [first.chunks_exact(len[0]), second.chunks_exact(len[1])],
                before: states.each_ref().map(|(before, _)| *before),
                kept: band.kept.each_mut().map(|kept| OfSteps::of(kept, steps.start)),
                states: states.each_mut().map(|(_, states)| states.take().expect("taken once")),
                steps,
            })
        };
        workspace::with(shape.0 * cell.row_lanes().memory(), work);
    }

    fn step(cell: &C, products: ArrayViewMut2<'_, f32>, step: BandStep<'_, E, K, N>) {
        let BandStep { at: At { context, rows: of_step }, before, kept, states } = step;
        let (isa, (tiling, cost)) = (context.isa, cell.tiles());
        let products = products.view();
        let outputs = tiling.split_each(kept).zip(tiling.split_each(states));
        let parts = tiling.places(before[0].dim()).zip(outputs);
        let parts = parts.map(|(place, (kept, states))| {
            let cells = place.columns;
            StepPart { cell, of_step, products, before, cells, kept, states }
        });
        let memory = before[0].nrows() * cell.row_lanes().memory();
        for_each(context.executor, cost, parts.collect(), |part| {
            workspace::with(memory, |lanes| isa.run(InMemory { part, lanes }));
        });
    }
}

/// A row of a step, or some cells of it.
pub(crate) struct RowStep<'s, E, const K: usize, const N: usize> {
    /// Products of its x with each of its weights, for all cells.
    pub(crate) products: [&'s [f32]; 2],
    /// The states that enter it, of all cells.
    pub(crate) before: [&'s [E]; N],
    /// The lanes of the one that enters products.
    pub(crate) left: &'s [f32],
    /// The first of the cells that are computed here.
    start: usize,
    kept: [&'s mut [E]; K],
    states: [&'s mut [E]; N],
}

/// Some steps of a few rows.
struct FewRows<'s, E, C, const K: usize, const N: usize> {
    cell: &'s C,
    lengths: Lengths<'s>,
    steps: Range<usize>,
    /// Rows and cells.
    shape: (usize, usize),
    /// Products of x of these steps with each of its weights.
    products: [ChunksExact<'s, f32>; 2],
    /// The states that enter the first of these steps.
    before: [&'s [E]; N],
    /// Memory for the lanes of a state.
    lanes: &'s mut [f32],
    kept: [OfSteps<'s, E>; K],
    states: [AxisIterMut<'s, E, Ix2>; N],
}

/// What steps leave in a tensor.
enum OfSteps<'s, E> {
    /// In memory that serves all of them.
    Latest(&'s mut [E]),
    Each(AxisIterMut<'s, E, Ix2>),
}

impl<'s, E> OfSteps<'s, E> {
    /// In a tensor of all steps or of one, from step `start` on.
    fn of(tensor: &'s mut ArrayViewMut3<'_, E>, start: usize) -> Self {
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
fn states_from<'s, E>(
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
    C: GroupedCell<E, K, N>,
{
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let FewRows { cell, lengths, shape: (batch, cells), mut before, lanes, .. } = self;
        let (mut products, mut kept, mut states) = (self.products, self.kept, self.states);
        let mut memory = GroupSums::zeros();
        for t in self.steps {
            let mut after = states.each_mut().map(next);
            let mut of_kept = kept.each_mut().map(OfSteps::next);
            let mut of_states = after.each_mut().map(|state| &mut **state);
            let products = products.each_mut().map(|steps| steps.next().unwrap_or_default());
            let lens = products.map(|products| products.len() / batch);
            let of_rows = (0..batch).map(|b| RowStep {
                products: array::from_fn(|n| &products[n][b * lens[n]..(b + 1) * lens[n]]),
                before: before.map(|state| &state[b * cells..(b + 1) * cells]),
                left: &[],
                start: 0,
                kept: of_kept.each_mut().map(|rest| split_off(rest, cells)),
                states: of_states.each_mut().map(|rest| split_off(rest, cells)),
            });
            let of_step = Rows { lengths, t };
            compute(simd, cell, of_rows, of_step, 0..cells, (&mut memory, &mut *lanes));
            before = after.map(|state| &*state);
        }
    }
}

impl<'s, E: Storage, const K: usize, const N: usize> RowStep<'s, E, K, N> {
    /// What some cells keep, and the states that they leave.
    #[inline(always)]
    pub(crate) fn outputs(&mut self, cells: &Range<usize>) -> ([&mut [E]; K], [&mut [E]; N]) {
        let at = cells.start - self.start..cells.end - self.start;
        let kept = self.kept.each_mut().map(|output| &mut output[at.clone()]);
        (kept, self.states.each_mut().map(|output| &mut output[at.clone()]))
    }

    /// Collects the rows that have the step, and returns how many. Outputs of the others become zero.
    #[inline(always)]
    fn collect(
        rows: impl Iterator<Item = Self>,
        of_step: Rows<'_>,
        to: &mut [Option<Self>; GROUPED_ROWS],
    ) -> usize {
        let mut count = 0;
        for (b, row) in rows.enumerate() {
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

/// Computes some cells of the rows that have a step, group by group.
#[inline(always)]
fn compute<'s, S, E, C, const K: usize, const N: usize>(
    simd: S,
    cell: &C,
    all_rows: impl Iterator<Item = RowStep<'s, E, K, N>>,
    of_step: Rows<'_>,
    cells: Range<usize>,
    (memory, lanes): (&mut GroupSums, &'s mut [f32]),
) where
    S: Simd,
    E: Storage,
    C: GroupedCell<E, K, N>,
{
    let mut rows = [const { None }; GROUPED_ROWS];
    let count = RowStep::collect(all_rows, of_step, &mut rows);
    let rows = &mut rows[..count];
    if rows.is_empty() {
        return;
    }
    let (row_lanes, mut rest) = (cell.row_lanes(), lanes);
    for row in rows.iter_mut().flatten() {
        let state = E::as_f32(row.before[C::LEFT]).expect("elements of type f32");
        row.left = row_lanes.of(state, split_off(&mut rest, row_lanes.memory()));
    }
    for group in groups(cells, cell.group_width(), of_step.t % 2 == 1) {
        let pitch = C::SUMS * padded(group.len());
        let sums = &mut memory.0[..rows.len() * pitch];
        cell.sums(simd, rows, &group, sums);
        for (row, sums) in rows.iter_mut().flatten().zip(sums.chunks_exact_mut(pitch)) {
            cell.finish(simd, row, &group, sums);
        }
    }
}

/// Some cells of a step.
struct StepPart<'p, 's, E, C, const K: usize, const N: usize> {
    cell: &'p C,
    of_step: Rows<'p>,
    /// Those of x, with each of its weights.
    products: ArrayView2<'p, f32>,
    before: [ArrayView2<'s, E>; N],
    cells: Range<usize>,
    kept: [ArrayViewMut2<'s, E>; K],
    states: [ArrayViewMut2<'s, E>; N],
}

/// The same, and memory for the lanes of a state.
struct InMemory<'m, P> {
    part: P,
    lanes: &'m mut [f32],
}

impl<E, C, const K: usize, const N: usize> WithSimd for InMemory<'_, StepPart<'_, '_, E, C, K, N>>
where
    E: Storage,
    C: GroupedCell<E, K, N>,
{
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let StepPart { cell, of_step, products, before, cells, mut kept, mut states } = self.part;
        let (batch, all) = before[0].dim();
        let of_first = C::GATES[0] * all;
        let mut kept = kept.each_mut().map(|output| output.outer_iter_mut());
        let mut states = states.each_mut().map(|output| output.outer_iter_mut());
        let rows = (0..batch).map(|b| RowStep {
            products: <[_; 2]>::from(row(products, b).split_at(of_first)),
            before: before.map(|state| row(state, b)),
            left: &[],
            start: cells.start,
            kept: kept.each_mut().map(next_row),
            states: states.each_mut().map(next_row),
        });
        compute(simd, cell, rows, of_step, cells.clone(), (&mut GroupSums::zeros(), self.lanes));
    }
}

/// The elements of the next row of a matrix.
#[inline(always)]
fn next_row<'s, E>(rows: &mut AxisIterMut<'s, E, Ix1>) -> &'s mut [E] {
    rows.next().and_then(|row| row.into_slice()).expect("rows without gaps")
}

/// The first elements of a slice, which becomes the others.
#[inline(always)]
fn split_off<'a, T>(rest: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    rest.split_off_mut(..len).expect("as many elements")
}
