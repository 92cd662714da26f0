//! The steps of a sequence, from the last to the first.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis, Zip, s};

use super::bands::{band_rows, cut, for_each_band, steps_of_slice};
use super::lengths::{At, Lengths, Rows};
use super::steps::{all_rows, state_before};
use super::sums::{ColumnSums, sums_len};
use crate::tiles::{self, Tiling, parts};
use crate::{Context, Storage};

/// The gradient of the steps of a cell: it reads `I` tensors, works in place of `K` others, and ends with the gradients
/// with respect to `N` states.
pub(crate) trait CellGrad<E, const I: usize, const K: usize, const N: usize>: Sync {
    /// Sums over the batch.
    const BIAS_SUMS: usize;
    /// What is carried from step to step for each cell: gradients with respect to products.
    const GATES: usize;

    /// How a step is cut, and the processor cycles that a tile may take.
    fn tiles(&self) -> (Tiling, u64);

    /// One step: what is left in place becomes zero in rows that do not have it.
    fn step(&self, step: GradStep<'_, E, I>, in_place: [ArrayViewMut2<'_, E>; K]);

    /// The gradients with respect to the states before step 0.
    fn finish(&self, left: StepsLeft<'_>, states: [ArrayViewMut2<'_, E>; N]);
}

/// What the backward steps have left.
pub(crate) struct StepsLeft<'s> {
    /// Step 0.
    pub(crate) at: At<'s>,
    /// Gradients with respect to its products; none if no row had a step.
    pub(crate) d: Option<ArrayView2<'s, f32>>,
    /// As in [`GradStep`].
    pub(crate) carried: ArrayView2<'s, f32>,
}

/// What a backward step reads and hands on.
pub(crate) struct GradStep<'s, E, const I: usize> {
    pub(crate) at: At<'s>,
    /// The state of [`Backward::first`] before the step.
    pub(crate) before: ArrayView2<'s, E>,
    pub(crate) saved: [ArrayView2<'s, E>; I],
    /// Gradients with respect to products, `[rows, GATES * cells]`: those of the step after, if any row had it, and
    /// those of this step, which stay as they are in rows that do not have it.
    pub(crate) d_next: Option<ArrayView2<'s, f32>>,
    pub(crate) d: ArrayViewMut2<'s, f32>,
    /// The part of the gradient with respect to the state that does not go through products, `[rows, cells]`: that of
    /// the step after, to be replaced by this one's.
    pub(crate) carried: ArrayViewMut2<'s, f32>,
    pub(crate) sums: ColumnSums<'s>,
}

/// What all steps work on.
pub(crate) struct Backward<'a, 'o, E, const I: usize, const K: usize, const N: usize> {
    pub(crate) lengths: Lengths<'a>,
    /// The state of each cell that equations read: before the first step, and after each step.
    pub(crate) first: ArrayView2<'a, E>,
    pub(crate) states: ArrayView3<'a, E>,
    /// Other tensors, `[time, batch, any]`.
    pub(crate) saved: [ArrayView3<'a, E>; I],
    pub(crate) in_place: [ArrayViewMut3<'o, E>; K],
    /// What each row's last step finds carried; zeros if there is none.
    pub(crate) last_grad: Option<ArrayView2<'a, E>>,
    pub(crate) first_grads: [ArrayViewMut2<'o, E>; N],
}

/// The least steps whose gradients with respect to products [`backward()`] needs memory for: the one that it computes,
/// and the one after it.
pub(crate) const D_STEPS: usize = 2;

/// How many elements of scratch memory [`backward()`] needs for `gates` gates, where it has room for the gradients with
/// respect to products of `d_steps` steps.
pub(crate) fn backward_scratch(
    d_steps: usize,
    (batch, cells): (usize, usize),
    gates: usize,
) -> usize {
    let carried = batch.saturating_mul(cells);
    let d = carried.saturating_mul(gates).saturating_mul(d_steps);
    d.saturating_add(carried)
}

/// All steps. `sums` is memory of [`sums_len`], and `scratch` of [`backward_scratch`]. What comes back are the
/// gradients with respect to products of all steps, `[steps * batch, GATES * cells]`, zero in rows that do not have the
/// step, if there is room for them.
pub(crate) fn backward<'m, E, C, const I: usize, const K: usize, const N: usize>(
    context: &Context<'_>,
    cell: &C,
    mut work: Backward<'_, '_, E, I, K, N>,
    d_steps: usize,
    sums: &mut [f32],
    scratch: &'m mut [f32],
) -> Option<ArrayView2<'m, f32>>
where
    E: Storage,
    C: CellGrad<E, I, K, N>,
{
    let (steps, (tiling, cost)) = (work.lengths.longest(), cell.tiles());
    let (batch, cells) = work.first.dim();
    let rows = band_rows(tiling, (batch, cells));
    sums.fill(0.0);
    let shape = (d_steps, batch, C::GATES * cells);
    let (d, carried) = scratch.split_at_mut(d_steps * batch * C::GATES * cells);
    let mut memory = [ArrayViewMut3::from_shape(shape, &mut *d).expect("of this size")];
    let sums = sums.chunks_mut(sums_len(C::BIAS_SUMS, (rows, cells), tiling.rows));
    let memory = cut(&mut memory, rows).zip(carried.chunks_mut(rows * cells)).zip(sums);
    let bands = work.bands(rows).zip(memory);
    let mut bands: Vec<_> =
        bands.map(|(work, (([d], carried), sums))| Band::new(work, d, carried, sums)).collect();
    let at_once = steps_of_slice(cost).clamp(1, steps.max(1));
    for steps in parts(0..steps, at_once).rev() {
        let cost = cost.saturating_mul(steps.len() as u64);
        for_each_band(context, cost, bands.iter_mut().collect(), |context, band| {
            band.steps(context, cell, steps.clone());
        });
    }
    for_each_band(context, cost, bands, |context, band| band.finish(context, cell));
    let d = ArrayView3::from_shape(shape, d).expect("of this size");
    (d_steps >= steps).then(|| all_rows(d, 0..steps))
}

impl<E: Storage, const I: usize, const K: usize, const N: usize> Backward<'_, '_, E, I, K, N> {
    /// Bands of `rows` rows of the batch.
    fn bands<'b>(&'b mut self, rows: usize) -> impl Iterator<Item = Backward<'b, 'b, E, I, K, N>> {
        let Backward { lengths, first, states, saved, last_grad, .. } = *self;
        let batch = first.nrows();
        let mut grads =
            self.first_grads.each_mut().map(|to| to.axis_chunks_iter_mut(Axis(0), rows));
        let in_place = cut(&mut self.in_place, rows);
        parts(0..batch, rows).zip(in_place).map(move |(rows, in_place)| {
            let of_steps = |tensor: ArrayView3<'b, E>| tensor.slice_move(s![.., rows.clone(), ..]);
            Backward {
                lengths: lengths.rows(rows.clone()),
                first: tiles::rows(first, rows.clone()),
                states: of_steps(states),
                saved: saved.map(of_steps),
                in_place,
                last_grad: last_grad.map(|last| tiles::rows(last, rows.clone())),
                first_grads: grads.each_mut().map(|to| to.next().expect("a part for each band")),
            }
        })
    }
}

/// Some rows of the batch.
struct Band<'b, E, const I: usize, const K: usize, const N: usize> {
    work: Backward<'b, 'b, E, I, K, N>,
    /// Gradients with respect to products, `[d_steps, rows, GATES * cells]`: those of step t are at the remainder of t.
    d: ArrayViewMut3<'b, f32>,
    carried: ArrayViewMut2<'b, f32>,
    sums: &'b mut [f32],
}

impl<'b, E: Storage, const I: usize, const K: usize, const N: usize> Band<'b, E, I, K, N> {
    fn new(
        work: Backward<'b, 'b, E, I, K, N>,
        mut d: ArrayViewMut3<'b, f32>,
        carried: &'b mut [f32],
        sums: &'b mut [f32],
    ) -> Self {
        // In rows that do not have a step, d stays zero.
        if let Lengths::Each(_) = work.lengths {
            d.fill(0.0);
        }
        let carried = ArrayViewMut2::from_shape(work.first.raw_dim(), carried);
        let mut carried = carried.expect("of this size");
        match work.last_grad {
            Some(last) => Zip::from(&mut carried).and(&last).for_each(|to, d| *to = d.to_f32()),
            None => carried.fill(0.0),
        }
        Band { work, d, carried, sums }
    }

    fn steps<C>(&mut self, context: &Context<'_>, cell: &C, steps: Range<usize>)
    where
        C: CellGrad<E, I, K, N>,
    {
        let Band { work, d, carried, sums } = self;
        let Backward { lengths, first, states, saved, .. } = *work;
        let d_steps = d.len_of(Axis(0));
        for t in steps.rev() {
            let mut of_step =
                work.in_place.each_mut().map(|tensor| tensor.index_axis_mut(Axis(0), t));
            if t >= lengths.longest() {
                of_step.iter_mut().for_each(|tensor| tensor.fill(E::ZERO));
                d.index_axis_mut(Axis(0), t % d_steps).fill(0.0);
                continue;
            }
            let (now, next) = (t % d_steps, (t + 1) % d_steps);
            let (d_now, d_next) = d.multi_slice_mut((s![now, .., ..], s![next, .., ..]));
            let step = GradStep {
                at: At { context, rows: Rows { lengths, t } },
                before: state_before(t, first, states),
                saved: saved.map(|tensor| tensor.index_axis_move(Axis(0), t)),
                d_next: (t + 1 < lengths.longest()).then(|| d_next.view()),
                d: d_now,
                carried: carried.view_mut(),
                sums: ColumnSums::new(sums, C::BIAS_SUMS),
            };
            cell.step(step, of_step);
        }
    }

    fn finish(self, context: &Context<'_>, cell: &impl CellGrad<E, I, K, N>) {
        let Band { work, d, carried, .. } = self;
        let lengths = work.lengths;
        let d = (lengths.longest() > 0).then(|| d.index_axis(Axis(0), 0));
        let at = At { context, rows: Rows { lengths, t: 0 } };
        cell.finish(StepsLeft { at, d, carried: carried.view() }, work.first_grads);
    }
}
