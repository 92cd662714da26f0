//! The forward steps: products and elementwise passes.

use std::ops::Range;

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, Axis};

use super::forward::Sequence;
use crate::executor::for_each;
use crate::gemm::{self, Right, Weights, weights_len};
use crate::gru::step::{self, GruStep};
use crate::lengths::Lengths;
use crate::tiles::{Place, Tiling};
use crate::{Context, Storage};

/// What is the same in every step.
pub(super) struct ForwardSteps<'a, 'w, E> {
    step: GruStep<'a, E>,
    reset_after: bool,
    tiling: Tiling,
    lengths: Lengths<'a>,
    /// Those of the state, for the gates and for the candidate.
    weights: [Weights<'w>; 2],
    b_hc: ArrayView1<'a, E>,
}

impl<'a, 'w, E: Storage> ForwardSteps<'a, 'w, E> {
    pub(super) fn new(
        context: &Context<'_>,
        sequence: &Sequence<'a, E>,
        weights: &'w mut [f32],
    ) -> Self {
        let Sequence { lengths, h_prev, w_h, b_ru, b_c, b_hc, reset_after, .. } = *sequence;
        let (batch, cell_size) = h_prev.dim();
        let tiling = gemm::step_tiling(context, (batch, cell_size), 2);
        let [w_ru, w_c] = w_h.map(Right::of);
        let (gates, candidate) = weights.split_at_mut(weights_len(cell_size, 2, cell_size));
        let strips = |cells: &Range<usize>| step::gates(cell_size, cells);
        let gates = Weights::pack(context, tiling, cell_size, cell_size, w_ru, strips, gates);
        let strips = |cells: &Range<usize>| [cells.clone()];
        let candidate =
            Weights::pack(context, tiling, cell_size, cell_size, w_c, strips, candidate);
        let weights = [gates, candidate];
        let step = GruStep { isa: context.isa, cell_size, b_ru, b_c };
        ForwardSteps { step, reset_after, tiling, lengths, weights, b_hc }
    }

    /// Step `t`. `products` are those of its x; the outputs are r, u, c, hc and h.
    pub(super) fn step(
        &self,
        context: &Context<'_>,
        t: usize,
        products: ArrayViewMut2<'_, f32>,
        h_prev: ArrayView2<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 5],
    ) {
        let (of_gates, of_candidate) = products.split_at(Axis(1), 2 * self.step.cell_size);
        if self.reset_after {
            return self.whole_step(context, t, of_gates.view(), of_candidate, h_prev, outputs);
        }
        let [r, mut u, c, mut hc, h] = outputs;
        self.gates(context, t, of_gates.view(), h_prev, [r, u.view_mut(), hc.view_mut()]);
        self.candidate(context, t, of_candidate.view(), h_prev, u.view(), hc.view(), [c, h]);
    }

    /// r, u and hc where the reset comes before the product.
    fn gates(
        &self,
        context: &Context<'_>,
        t: usize,
        products: ArrayView2<'_, f32>,
        h_prev: ArrayView2<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 3],
    ) {
        let ForwardSteps { step, tiling, .. } = *self;
        let tiles = tiling.tiles_of(outputs);
        for_each(context.executor, self.cost(2), tiles, |(place, mut outputs)| {
            let strips = step::gates(step.cell_size, &place.columns);
            gemm::tile(step.isa, place.rows.len(), &strips, |tile| {
                tile.set(place.rows_of(products));
                tile.add(place.rows_of(h_prev), self.weights[0].at(&place));
                let outputs = outputs.each_mut().map(|output| output.view_mut());
                step.finish_gates(tile, &place, h_prev, outputs);
            });
            self.clear_ended(t, &place, outputs);
        });
    }

    /// c and h where the reset comes before the product.
    #[allow(clippy::too_many_arguments)]
    fn candidate(
        &self,
        context: &Context<'_>,
        t: usize,
        products: ArrayView2<'_, f32>,
        h_prev: ArrayView2<'_, E>,
        u: ArrayView2<'_, E>,
        hc: ArrayView2<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 2],
    ) {
        let ForwardSteps { step, tiling, .. } = *self;
        let tiles = tiling.tiles_of(outputs);
        for_each(context.executor, self.cost(1), tiles, |(place, mut outputs)| {
            gemm::tile_at(step.isa, &place, |tile| {
                tile.set(place.rows_of(products));
                tile.add(place.rows_of(hc), self.weights[1].at(&place));
                let outputs = outputs.each_mut().map(|output| output.view_mut());
                step.finish_candidate(tile, &place, h_prev, u, outputs);
            });
            self.clear_ended(t, &place, outputs);
        });
    }

    /// All outputs where the reset comes after the product.
    fn whole_step(
        &self,
        context: &Context<'_>,
        t: usize,
        of_gates: ArrayView2<'_, f32>,
        of_candidate: ArrayViewMut2<'_, f32>,
        h_prev: ArrayView2<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 5],
    ) {
        let ForwardSteps { step, tiling, b_hc, .. } = *self;
        let tiles = tiling.tiles_of(outputs).into_iter().zip(tiling.split(of_candidate));
        for_each(context.executor, self.cost(3), tiles.collect(), |((place, mut outputs), z_c)| {
            let (rows, cells) = (place.rows.len(), [place.columns.clone()]);
            let strips = step::gates(step.cell_size, &place.columns);
            gemm::tile(step.isa, rows, &strips, |gates| {
                gemm::tile(step.isa, rows, &cells, |candidate| {
                    gates.set(place.rows_of(of_gates));
                    gates.add(place.rows_of(h_prev), self.weights[0].at(&place));
                    candidate.add(place.rows_of(h_prev), self.weights[1].at(&place));
                    let [z_r, z_u] = gates.strips_mut();
                    let [z_hc] = candidate.strips_mut();
                    let products = [z_r, z_u, z_hc, z_c];
                    let outputs = outputs.each_mut().map(|output| output.view_mut());
                    step.finish_reset_after(products, &place, b_hc, h_prev, outputs);
                });
            });
            self.clear_ended(t, &place, outputs);
        });
    }

    /// Sets to zero the rows that had ended before step `t`.
    fn clear_ended<const N: usize>(
        &self,
        t: usize,
        place: &Place,
        outputs: [ArrayViewMut2<'_, E>; N],
    ) {
        for output in outputs {
            self.lengths.clear_ended(place.rows.clone(), t, output);
        }
    }

    /// Processor cycles of a tile with products of so many gates.
    fn cost(&self, gates: usize) -> u64 {
        gemm::cost(self.tiling, gates, self.step.cell_size)
    }
}
