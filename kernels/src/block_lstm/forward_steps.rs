//! The forward steps: one product and one elementwise pass each.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2};

use crate::executor::for_each;
use crate::gemm::{self, Right, Weights};
use crate::lstm::step::{self, LstmStep};
use crate::ops::Sizes;
use crate::tiles::Tiling;
use crate::{Context, Storage};

/// What is the same in every step.
pub(super) struct ForwardSteps<'a, E> {
    step: LstmStep<'a, E>,
    tiling: Tiling,
    cell_size: usize,
    /// The state's rows of w, and a packed copy of them if there are enough steps.
    w_h: ArrayView2<'a, E>,
    weights: Option<Weights<'a>>,
}

/// The number of steps from which on packing the weights pays.
const WORTH_PACKING: usize = 9;

impl<'a, E: Storage> ForwardSteps<'a, E> {
    pub(super) fn new(
        context: &Context<'_>,
        step: LstmStep<'a, E>,
        &Sizes { batch, cell_size, .. }: &Sizes,
        steps: usize,
        w_h: ArrayView2<'a, E>,
        weights: &'a mut [f32],
    ) -> Self {
        let tiling = gemm::step_tiling(context, (batch, cell_size), 4);
        let strips = |cells: &Range<usize>| step::strips(step.order, cell_size, cells);
        let weights = (steps >= WORTH_PACKING).then(|| {
            let right = Right::RowMajor(w_h);
            Weights::pack(context, tiling, cell_size, cell_size, right, strips, weights)
        });
        ForwardSteps { step, tiling, cell_size, w_h, weights }
    }

    /// One step. `products` are those of its x.
    pub(super) fn step(
        &self,
        context: &Context<'_>,
        products: ArrayView2<'_, f32>,
        cs_prev: ArrayView2<'_, E>,
        h_prev: ArrayView2<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 7],
    ) {
        let ForwardSteps { step, tiling, cell_size, w_h, weights } = *self;
        let cost = gemm::cost(4 * tiling.rows * tiling.columns, cell_size);
        for_each(context.executor, cost, tiling.tiles_of(outputs), |(place, outputs)| {
            let strips = step::strips(step.order, cell_size, &place.columns);
            gemm::tile(step.isa, place.rows.len(), &strips, |tile| {
                tile.set(place.rows_of(products));
                let h_prev = place.rows_of(h_prev);
                match weights {
                    Some(weights) => tile.add(h_prev, weights.at(&place)),
                    None => tile.add(h_prev, Right::RowMajor(w_h)),
                }
                step.finish(tile, &place, cell_size, place.of(cs_prev), outputs);
            });
        });
    }
}
