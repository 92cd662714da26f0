//! The forward steps.

use std::ops::Range;

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, Axis};

use super::Inputs;
use crate::elementwise;
use crate::executor::for_each;
use crate::gemm::{self, Left, Right, Weights, weights_len};
use crate::gru::step;
use crate::tiles::{self, Place, Tiling};
use crate::{Context, Element, Isa};

/// What is the same in every step.
pub(super) struct Recurrence<'a, 'w, E> {
    isa: Isa,
    reset_after: bool,
    tiling: Tiling,
    cell_size: usize,
    sequence_length: ArrayView1<'a, i64>,
    /// The state's rows of w_ru and of w_c.
    weights: [Weights<'w>; 2],
    b_ru: ArrayView1<'a, E>,
    b_c: ArrayView1<'a, E>,
    b_hc: ArrayView1<'a, E>,
}

impl<'a, 'w, E: Element> Recurrence<'a, 'w, E> {
    pub(super) fn new(
        context: &Context<'_>,
        inputs: &Inputs<'a, E>,
        reset_after: bool,
        weights: &'w mut [f32],
    ) -> Self {
        let Inputs { sequence_length, x, h_prev, w_ru, w_c, b_ru, b_c, b_hc } = *inputs;
        let (batch, cell_size) = h_prev.dim();
        let tiling = step::tiling(batch, cell_size, 2);
        let state = x.dim().2..w_c.nrows();
        let [w_ru, w_c] = [w_ru, w_c].map(|w| Right::Rows(tiles::rows(w, state.clone())));
        let (gates, candidate) = weights.split_at_mut(weights_len(cell_size, 2, cell_size));
        let strips = |cells: &Range<usize>| step::gates(cell_size, cells);
        let gates = Weights::pack(context, tiling, cell_size, cell_size, w_ru, strips, gates);
        let strips = |cells: &Range<usize>| [cells.clone()];
        let candidate =
            Weights::pack(context, tiling, cell_size, cell_size, w_c, strips, candidate);
        let (isa, weights) = (context.isa, [gates, candidate]);
        Recurrence {
            isa,
            reset_after,
            tiling,
            cell_size,
            sequence_length,
            weights,
            b_ru,
            b_c,
            b_hc,
        }
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
        let (of_gates, of_candidate) = products.split_at(Axis(1), 2 * self.cell_size);
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
        let Recurrence { tiling, cell_size, .. } = *self;
        let cost = gemm::cost(2 * tiling.rows * tiling.columns, cell_size);
        for_each(context.executor, cost, tiling.tiles_of(outputs), |(place, mut outputs)| {
            let strips = step::gates(cell_size, &place.columns);
            gemm::tile(self.isa, place.rows.len(), &strips, |tile| {
                tile.set(tiles::rows(products, place.rows.clone()));
                tile.add(state_rows(h_prev, &place), self.weights[0].at(&place));
                let [b_r, b_u] = strips.clone().map(|columns| place.broadcast(self.b_ru, columns));
                self.isa.run(elementwise::Tile {
                    equation: step::Gates,
                    inputs: [place.of(h_prev), b_r, b_u],
                    outputs: outputs.each_mut().map(|output| output.view_mut()),
                    wide: tile.strips_mut(),
                    sums: [],
                });
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
        let Recurrence { tiling, cell_size, .. } = *self;
        let cost = gemm::cost(tiling.rows * tiling.columns, cell_size);
        for_each(context.executor, cost, tiling.tiles_of(outputs), |(place, mut outputs)| {
            let cells = [place.columns.clone()];
            gemm::tile(self.isa, place.rows.len(), &cells, |tile| {
                tile.set(tiles::rows(products, place.rows.clone()));
                tile.add(state_rows(hc, &place), self.weights[1].at(&place));
                let b_c = place.broadcast(self.b_c, place.columns.clone());
                self.isa.run(elementwise::Tile {
                    equation: step::Candidate,
                    inputs: [place.of(h_prev), place.of(u), b_c],
                    outputs: outputs.each_mut().map(|output| output.view_mut()),
                    wide: tile.strips_mut(),
                    sums: [],
                });
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
        let Recurrence { isa, tiling, cell_size, b_ru, b_c, b_hc, .. } = *self;
        let cost = gemm::cost(3 * tiling.rows * tiling.columns, cell_size);
        let tiles = tiling.tiles_of(outputs).into_iter().zip(tiling.split(of_candidate));
        for_each(context.executor, cost, tiles.collect(), |((place, mut outputs), z_c)| {
            let (rows, cells) = (place.rows.len(), [place.columns.clone()]);
            let strips = step::gates(cell_size, &place.columns);
            gemm::tile(isa, rows, &strips, |gates| {
                gemm::tile(isa, rows, &cells, |candidate| {
                    gates.set(tiles::rows(of_gates, place.rows.clone()));
                    gates.add(state_rows(h_prev, &place), self.weights[0].at(&place));
                    candidate.add(state_rows(h_prev, &place), self.weights[1].at(&place));
                    let [z_r, z_u] = gates.strips_mut();
                    let [z_hc] = candidate.strips_mut();
                    let [b_r, b_u] = strips.clone().map(|columns| place.broadcast(b_ru, columns));
                    let [b_c, b_hc] =
                        [b_c, b_hc].map(|b| place.broadcast(b, place.columns.clone()));
                    isa.run(elementwise::Tile {
                        equation: step::ResetAfter,
                        inputs: [place.of(h_prev), b_r, b_u, b_c, b_hc],
                        outputs: outputs.each_mut().map(|output| output.view_mut()),
                        wide: [z_r, z_u, z_hc, z_c],
                        sums: [],
                    });
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
        mut outputs: [ArrayViewMut2<'_, E>; N],
    ) {
        for (row, b) in place.rows.clone().enumerate() {
            if self.sequence_length[b] <= t as i64 {
                outputs.iter_mut().for_each(|output| output.row_mut(row).fill(E::ZERO));
            }
        }
    }
}

/// The rows of a state that a tile needs.
fn state_rows<'a, E>(state: ArrayView2<'a, E>, place: &Place) -> Left<'a, E> {
    Left::Rows(tiles::rows(state, place.rows.clone()))
}
