//! The steps of a sequence, from the first to the last.

use std::array;
use std::ops::Range;

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3};

use super::bands::{band_rows, bands, cut, for_each_band};
use super::few_rows::{RowStep, few_rows};
use super::gradients::input_products;
use super::steps::{all_rows, all_rows_mut, at_step, clear_from, state_before, steps_at_once};
use super::{At, Lengths, Rows};
use crate::simd::Simd;
use crate::tiles::Tiling;
use crate::{Context, Storage, tiles};

/// What the steps of a cell compute: `K` tensors that may be kept, and `N` states.
pub(crate) trait Cell<E, const K: usize, const N: usize>: Sync {
    /// Products of x for each cell.
    const GATES: usize;

    /// How a step is cut, and the processor cycles that a tile may take.
    fn tiles(&self) -> (Tiling, u64);

    /// The cells of a group, if steps are computed group by group: by [`Cell::sums`] and [`Cell::finish`].
    fn group_width(&self) -> Option<usize> {
        None
    }

    /// Sets `sums`, `[rows, gates, cells]`, to those of a group of cells of few rows.
    fn sums<S: Simd>(
        &self,
        _: S,
        _: &[Option<RowStep<'_, E, K, N>>],
        _: &Range<usize>,
        _: &mut [f32],
    ) {
        unreachable!("not computed in groups")
    }

    /// Completes a group of cells of a row that has the step, whose sums are `[gates, cells]`.
    fn finish<S: Simd>(&self, _: S, _: &mut RowStep<'_, E, K, N>, _: &Range<usize>, _: &mut [f32]) {
        unreachable!("not computed in groups")
    }

    /// One step: what it keeps, and the states that it leaves. Rows that do not have it become zero.
    fn step(
        &self,
        step: Step<'_, E, N>,
        kept: [ArrayViewMut2<'_, E>; K],
        states: [ArrayViewMut2<'_, E>; N],
    );
}

/// What a step is computed from.
pub(crate) struct Step<'s, E, const N: usize> {
    pub(crate) at: At<'s>,
    /// Products of its x with the weights of all gates.
    pub(crate) products: ArrayViewMut2<'s, f32>,
    /// The states that enter it.
    pub(crate) before: [ArrayView2<'s, E>; N],
}

/// What all steps are computed from, beside the cell.
#[derive(Clone, Copy)]
pub(crate) struct Sequence<'a, E, const N: usize> {
    pub(crate) lengths: Lengths<'a>,
    pub(crate) x: ArrayView3<'a, E>,
    /// The weights of x, `[input_size, columns]`, whose columns are side by side. They may lie in memory as their
    /// transposes. Without them x is added to the pre-activations of every gate.
    pub(crate) w_x: Option<&'a [ArrayView2<'a, E>]>,
    /// The states that enter the first step.
    pub(crate) first: [ArrayView2<'a, E>; N],
}

/// What is computed. Tensors that nobody reads may have the memory of one step, but for states.
pub(crate) struct Outputs<'a, E, const K: usize, const N: usize> {
    pub(crate) kept: [ArrayViewMut3<'a, E>; K],
    pub(crate) states: [ArrayViewMut3<'a, E>; N],
}

/// How many elements of memory [`forward()`] needs for products of so many columns.
pub(crate) fn products_len(time: usize, batch: usize, columns: usize) -> usize {
    steps_at_once(time, batch).saturating_mul(batch).saturating_mul(columns)
}

/// All steps. Outputs are zero in steps that a row does not have.
pub(crate) fn forward<E: Storage, C: Cell<E, K, N>, const K: usize, const N: usize>(
    context: &Context<'_>,
    cell: &C,
    sequence: &Sequence<'_, E, N>,
    mut outputs: Outputs<'_, E, K, N>,
    products: &mut [f32],
) {
    let Sequence { lengths, x, w_x, first } = *sequence;
    let (time, (batch, cells)) = (x.dim().0, first[0].dim());
    let steps = lengths.longest();
    clear_from(&mut outputs.kept, steps);
    clear_from(&mut outputs.states, steps);
    if batch == 0 || cells == 0 {
        return;
    }
    let (tiling, cost) = cell.tiles();
    let at_once = steps_at_once(time, batch);
    let rows = band_rows(tiling, (batch, cells));
    for start in (0..steps).step_by(at_once) {
        let steps = start..steps.min(start + at_once);
        let shape = (steps.len(), batch, C::GATES * cells);
        let products = &mut products[..steps.len() * batch * C::GATES * cells];
        let products = ArrayViewMut3::from_shape(shape, products).expect("of this size");
        let mut products = [products];
        let of_steps = all_rows_mut(products[0].view_mut(), 0..steps.len());
        input_products(context, all_rows(x, steps.clone()), w_x, of_steps);
        if let Some(width) = cell.group_width() {
            let [products] = products;
            few_rows(context, cell, sequence, &mut outputs, products, (steps, width));
            continue;
        }
        let bands: Vec<_> = outputs.bands(sequence, &mut products, rows).collect();
        let cost = cost.saturating_mul(steps.len() as u64);
        for_each_band(context, cost, bands, |context, band| {
            band.steps(context, cell, steps.clone());
        });
    }
}

/// Some rows of the batch.
struct Band<'b, E, const K: usize, const N: usize> {
    lengths: Lengths<'b>,
    first: [ArrayView2<'b, E>; N],
    /// Of the steps that are computed.
    products: ArrayViewMut3<'b, f32>,
    kept: [ArrayViewMut3<'b, E>; K],
    states: [ArrayViewMut3<'b, E>; N],
}

impl<E: Storage, const K: usize, const N: usize> Outputs<'_, E, K, N> {
    /// Bands of so many rows of the batch.
    fn bands<'b, 's: 'b>(
        &'b mut self,
        sequence: &Sequence<'s, E, N>,
        products: &'b mut [ArrayViewMut3<'_, f32>; 1],
        rows: usize,
    ) -> impl Iterator<Item = Band<'b, E, K, N>> {
        let Sequence { lengths, first, .. } = *sequence;
        let ranges = bands(first[0].nrows(), rows);
        let parts = cut(products, rows).zip(cut(&mut self.kept, rows));
        let parts = parts.zip(cut(&mut self.states, rows));
        ranges.zip(parts).map(move |(rows, (([products], kept), states))| Band {
            lengths: lengths.rows(rows.clone()),
            first: first.map(|state| tiles::rows(state.reborrow(), rows.clone())),
            products,
            kept,
            states,
        })
    }
}

impl<E: Storage, const K: usize, const N: usize> Band<'_, E, K, N> {
    fn steps(mut self, context: &Context<'_>, cell: &impl Cell<E, K, N>, steps: Range<usize>) {
        let Band { lengths, first, .. } = self;
        for (t, products) in steps.zip(self.products.outer_iter_mut()) {
            let (_, mut kept) = at_step(&mut self.kept, t);
            let (done, mut states) = at_step(&mut self.states, t);
            if t >= lengths.longest() {
                kept.iter_mut().chain(&mut states).for_each(|output| output.fill(E::ZERO));
                continue;
            }
            let at = At { context, rows: Rows { lengths, t } };
            let before = array::from_fn(|n| state_before(t, first[n], done[n].view()));
            cell.step(Step { at, products, before }, kept, states);
        }
    }
}
