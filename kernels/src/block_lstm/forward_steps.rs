//! The forward steps: one product and one elementwise pass each.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2};

use super::forward::Sequence;
use crate::executor::for_each;
use crate::gemm::{self, Right, Weights};
use crate::lengths::Lengths;
use crate::lstm::step::{self, LstmStep};
use crate::tiles::Tiling;
use crate::{Context, Storage};

/// What is the same in every step.
pub(super) struct ForwardSteps<'a, 'w, E> {
    step: LstmStep<'a, E>,
    tiling: Tiling,
    cell_size: usize,
    lengths: Option<Lengths<'a>>,
    /// The weights of the state, and a packed copy of them if there are enough steps.
    w_h: ArrayView2<'a, E>,
    weights: Option<Weights<'w>>,
}

/// The number of steps from which on packing the weights pays.
const WORTH_PACKING: usize = 9;

impl<'a, 'w, E: Storage> ForwardSteps<'a, 'w, E> {
    pub(super) fn new(
        context: &Context<'_>,
        &Sequence { steps, lengths, cs_prev, w_h, step, .. }: &Sequence<'a, E>,
        weights: &'w mut [f32],
    ) -> Self {
        let (batch, cell_size) = cs_prev.dim();
        let tiling = gemm::step_tiling(context, (batch, cell_size), 4);
        let strips = |cells: &Range<usize>| step::strips(step.order, cell_size, cells);
        let weights = (steps >= WORTH_PACKING).then(|| {
            let right = Right::of(w_h);
            Weights::pack(context, tiling, cell_size, w_h.nrows(), right, strips, weights)
        });
        ForwardSteps { step, tiling, cell_size, lengths, w_h, weights }
    }

    /// Step `t`. `products` are those of its x.
    pub(super) fn step(
        &self,
        context: &Context<'_>,
        t: usize,
        products: ArrayView2<'_, f32>,
        cs_prev: ArrayView2<'_, E>,
        h_prev: ArrayView2<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 7],
    ) {
        let ForwardSteps { step, tiling, cell_size, lengths, w_h, weights } = *self;
        let cost = gemm::cost(tiling, 4, cell_size);
        for_each(context.executor, cost, tiling.tiles_of(outputs), |(place, mut outputs)| {
            let strips = step::strips(step.order, cell_size, &place.columns);
            gemm::tile(step.isa, place.rows.len(), &strips, |tile| {
                tile.set(place.rows_of(products));
                let h_prev = place.rows_of(h_prev);
                match weights {
                    Some(weights) => tile.add(h_prev, weights.at(&place)),
                    None => tile.add(h_prev, Right::of(w_h)),
                }
                let outputs = outputs.each_mut().map(|output| output.view_mut());
                step.finish(tile, &place, cell_size, place.of(cs_prev), outputs);
            });
            if let Some(lengths) = lengths {
                for output in outputs {
                    lengths.clear_ended(place.rows.clone(), t, output);
                }
            }
        });
    }
}
