//! The steps of a sequence, from the last to the first.

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis, Zip, s};

use super::bands::{band_rows, bands, cut, for_each_band};
use super::steps::state_before;
use super::{At, Lengths, Rows, Sums, sums_len};
use crate::tiles::{self, Tiling};
use crate::{Context, Storage};

/// The gradient of the steps of a cell: it reads `I` tensors, works in place of `K` others, and ends with the gradients
/// with respect to `N` states.
pub(crate) trait CellGrad<E, const I: usize, const K: usize, const N: usize>: Sync {
    /// Sums over the batch.
    const SUMS: usize;
    /// What is carried from step to step for each cell: gradients with respect to products.
    const GATES: usize;

    /// How a step is cut, and the processor cycles that a tile may take.
    fn tiles(&self) -> (Tiling, u64);

    /// One step: what is left in place becomes zero in rows that do not have it.
    fn step(&self, step: GradStep<'_, E, I>, in_place: [ArrayViewMut2<'_, E>; K]);

    /// The gradients with respect to the states before step 0. `d` and `carried` are what it has left; `d` is none if
    /// no row had a step.
    fn first(
        &self,
        at: At<'_>,
        d: Option<ArrayView2<'_, f32>>,
        carried: ArrayView2<'_, f32>,
        states: [ArrayViewMut2<'_, E>; N],
    );
}

/// What a backward step reads and hands on.
pub(crate) struct GradStep<'s, E, const I: usize> {
    pub(crate) at: At<'s>,
    /// The state of [`Backward::first`] before the step.
    pub(crate) before: ArrayView2<'s, E>,
    pub(crate) saved: [ArrayView2<'s, E>; I],
    /// Gradients with respect to products, `[rows, GATES * cells]`: those of the step after, if any row had it, and those
    /// of this step, which stay as they are in rows that do not have it.
    pub(crate) d_next: Option<ArrayView2<'s, f32>>,
    pub(crate) d: ArrayViewMut2<'s, f32>,
    /// The part of the gradient with respect to the state that does not go through products, `[rows, cells]`: that of
    /// the step after, to be replaced by this one's.
    pub(crate) carried: ArrayViewMut2<'s, f32>,
    pub(crate) sums: Sums<'s>,
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

/// How many elements of scratch memory [`backward()`] needs for so many gates.
pub(crate) fn backward_scratch(batch: usize, cells: usize, gates: usize) -> usize {
    // d of two steps, and what is carried.
    batch.saturating_mul(cells).saturating_mul(2 * gates + 1)
}

/// All steps. `sums` is memory of [`sums_len`], and `scratch` of [`backward_scratch`].
pub(crate) fn backward<E, C, const I: usize, const K: usize, const N: usize>(
    context: &Context<'_>,
    cell: &C,
    mut work: Backward<'_, '_, E, I, K, N>,
    sums: &mut [f32],
    scratch: &mut [f32],
) where
    E: Storage,
    C: CellGrad<E, I, K, N>,
{
    let (steps, (tiling, cost)) = (work.lengths.longest(), cell.tiles());
    let (batch, cells) = work.first.dim();
    let rows = band_rows(tiling, (batch, cells));
    sums.fill(0.0);
    let mut scratch = scratch.chunks_mut(backward_scratch(rows, cells, C::GATES));
    let mut sums = sums.chunks_mut(sums_len(C::SUMS, (rows, cells), tiling.rows));
    let memory = std::iter::repeat_with(|| {
        [&mut sums, &mut scratch].map(|parts| parts.next().expect("memory for each band"))
    });
    let bands: Vec<_> = work.bands(rows).zip(memory).collect();
    let cost = cost.saturating_mul(steps as u64);
    for_each_band(context, cost, bands, |context, (mut band, [sums, scratch])| {
        // All bands of a step are read together later.
        let ended = band.lengths.longest();
        for tensor in &mut band.in_place {
            tensor.slice_mut(s![ended..steps, .., ..]).fill(E::ZERO);
        }
        band.steps(context, cell, sums, scratch);
    });
}

impl<E: Storage, const I: usize, const K: usize, const N: usize> Backward<'_, '_, E, I, K, N> {
    /// Bands of so many rows of the batch.
    fn bands<'b>(&'b mut self, rows: usize) -> impl Iterator<Item = Backward<'b, 'b, E, I, K, N>> {
        let Backward { lengths, first, states, saved, last_grad, .. } = *self;
        let batch = first.nrows();
        let mut grads =
            self.first_grads.each_mut().map(|to| to.axis_chunks_iter_mut(Axis(0), rows));
        let in_place = cut(&mut self.in_place, rows);
        bands(batch, rows).zip(in_place).map(move |(rows, in_place)| {
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

    fn steps<C: CellGrad<E, I, K, N>>(
        self,
        context: &Context<'_>,
        cell: &C,
        sums: &mut [f32],
        scratch: &mut [f32],
    ) {
        let Backward { lengths, first, states, saved, mut in_place, last_grad, first_grads } = self;
        let (rows, cells) = first.dim();
        let (carried, d) = scratch.split_at_mut(rows * cells);
        // In rows that do not have a step, d stays zero.
        if let Lengths::Each(_) = lengths {
            d.fill(0.0);
        }
        let mut carried = matrix((rows, cells), carried);
        match last_grad {
            Some(last) => Zip::from(&mut carried).and(&last).for_each(|to, d| *to = d.to_f32()),
            None => carried.fill(0.0),
        }
        let (d, d_next) = d.split_at_mut(rows * C::GATES * cells);
        let d_next = &mut d_next[..d.len()];
        let mut d = [d, d_next].map(|d| matrix((rows, C::GATES * cells), d));
        let steps = lengths.longest();
        for t in (0..steps).rev() {
            let [d, d_next] = &mut d;
            let step = GradStep {
                at: At { context, rows: Rows { lengths, t } },
                before: state_before(t, first, states),
                saved: saved.map(|tensor| tensor.index_axis_move(Axis(0), t)),
                d_next: (t + 1 < steps).then(|| d_next.view()),
                d: d.view_mut(),
                carried: carried.view_mut(),
                sums: Sums::new(sums, C::SUMS),
            };
            let of_step = in_place.each_mut().map(|tensor| tensor.index_axis_mut(Axis(0), t));
            cell.step(step, of_step);
            std::mem::swap(d, d_next);
        }
        let d = (steps > 0).then(|| d[1].view());
        let at = At { context, rows: Rows { lengths, t: 0 } };
        cell.first(at, d, carried.view(), first_grads);
    }
}

fn matrix<T>(shape: (usize, usize), memory: &mut [T]) -> ArrayViewMut2<'_, T> {
    ArrayViewMut2::from_shape(shape, memory).expect("of this size")
}
