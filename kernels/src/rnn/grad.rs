//! The backward steps: one product and one elementwise pass each, from the last step to the first.

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis};

use super::Activation;
use crate::Context;
use crate::elementwise::{self, Equation};
use crate::executor::for_each;
use crate::gemm::{self, Given, Tile};
use crate::lengths::Lengths;
use crate::sequence::{self, StepProduct, WeightGradient, all_rows, input_gradient};
use crate::simd::Simd;
use crate::tiles::Place;

/// What the gradients of a sequence are computed from. Weights may lie in memory as their transposes.
#[derive(Clone, Copy)]
pub(crate) struct GradSequence<'a> {
    pub(crate) activation: Activation,
    /// At least one row has a step.
    pub(crate) lengths: Lengths<'a>,
    pub(crate) x: ArrayView3<'a, f32>,
    pub(crate) h_prev: ArrayView2<'a, f32>,
    /// `[input_size, cell_size]`, if there are any.
    pub(crate) w_x: Option<ArrayView2<'a, f32>>,
    /// `[cell_size, cell_size]`
    pub(crate) w_h: ArrayView2<'a, f32>,
    pub(crate) h: ArrayView3<'a, f32>,
}

/// The length of the memory for sums.
pub(crate) fn sums_len(batch: usize, cell_size: usize) -> usize {
    sequence::sums_len(1, (batch, cell_size), gemm::step_rows((batch, cell_size), 1))
}

impl GradSequence<'_> {
    /// All steps, from the last to the first. `d` holds the gradient with respect to h, zero in steps that a row
    /// does not have, and then that with respect to the pre-activations. `weights` is memory for the packed weights
    /// of the state; the sums of `d` over the batch are added to `sums`.
    pub(crate) fn all_steps(
        &self,
        context: &Context<'_>,
        mut d: ArrayViewMut3<'_, f32>,
        h_prev_grad: ArrayViewMut2<'_, f32>,
        weights: &mut [f32],
        sums: &mut [f32],
    ) {
        let Context { isa, executor } = *context;
        let batch = self.h_prev.nrows();
        let through = StepProduct::pack(context, batch, self.w_h.reversed_axes(), weights);
        let steps = self.lengths.longest();
        for t in (0..steps).rev() {
            let (now, next) = d.view_mut().split_at(Axis(0), t + 1);
            let now = now.index_axis_move(Axis(0), t);
            let next = (t + 1 < steps).then(|| next.index_axis_move(Axis(0), 0));
            let next = next.as_ref().map(|d| d.view());
            self.step(context, t, through, now, next, sums);
        }
        let d = d.view().index_axis_move(Axis(0), 0);
        let tiles = through.tiling.tiles(h_prev_grad).collect();
        for_each(executor, through.cost(), tiles, |(place, h_prev_grad)| {
            gemm::tile_at(isa, &place, |tile| {
                self.add_product(tile, &place, through, Some(d), 0);
                tile.store(h_prev_grad);
            });
        });
    }

    fn step(
        &self,
        context: &Context<'_>,
        t: usize,
        through: StepProduct<'_>,
        now: ArrayViewMut2<'_, f32>,
        next: Option<ArrayView2<'_, f32>>,
        sums: &mut [f32],
    ) {
        let Context { isa, executor } = *context;
        let h = self.h.index_axis_move(Axis(0), t);
        let tiling = through.tiling;
        let tiles = tiling.tiles(now).zip(tiling.sums_of(h.ncols(), sums)).collect();
        for_each(executor, through.cost(), tiles, |((place, d), sums)| {
            gemm::tile_at(isa, &place, |tile| {
                self.add_product(tile, &place, through, next, t + 1);
                isa.run(elementwise::Pass {
                    equation: Backward(self.activation),
                    inputs: [place.of(h)],
                    outputs: [d],
                    wide: tile.strips_mut(),
                    sums,
                });
            });
        });
    }

    /// Adds the gradient with respect to the state that enters step `t`, if there is one.
    fn add_product(
        &self,
        tile: &mut Tile<'_>,
        place: &Place,
        through: StepProduct<'_>,
        d: Option<ArrayView2<'_, f32>>,
        t: usize,
    ) {
        let Some(d) = d else { return };
        tile.add(place.rows_of(d), through.weights.at(place));
        // The products of rows that have ended are zeros, unless weights are not finite.
        let [strip] = tile.strips_mut();
        self.lengths.clear_ended(place.rows.clone(), t, strip);
    }

    /// `d @ w_x^T` of all steps, from what [`GradSequence::all_steps`] has left in `d`.
    pub(crate) fn input_gradient(
        &self,
        context: &Context<'_>,
        d: ArrayView2<'_, f32>,
        x_grad: ArrayViewMut2<'_, f32>,
    ) {
        input_gradient(context, [d], self.w_x.map(|w| [w]), x_grad);
    }

    /// `[x | h_prev]^T @ d` of all steps. Where the memory of the weights holds their transposes, that of the
    /// gradients does, too; then x must be finite in steps that a row does not have.
    pub(crate) fn weight_gradients(
        &self,
        context: &Context<'_>,
        d: ArrayView2<'_, f32>,
        w_x_grad: Option<ArrayViewMut2<'_, f32>>,
        w_h_grad: ArrayViewMut2<'_, f32>,
    ) {
        let (batch, steps) = (self.h_prev.nrows(), self.lengths.longest());
        let x = all_rows(self.x, 0..steps);
        let h = all_rows(self.h, 0..steps - 1);
        let outs = w_x_grad.map(|out| (out, true)).into_iter().chain([(w_h_grad, false)]);
        let results = outs.map(|(out, of_x)| WeightGradient::target(out, of_x));
        let depth = steps * batch;
        gemm::products(context, Given::Transposed, depth, results, |tile, gradient, place| {
            if gradient.terms() {
                gradient.add(tile, place, x, None, d);
            } else {
                let (first, rest) = d.split_at(Axis(0), batch);
                gradient.add(tile, place, self.h_prev, None, first);
                gradient.add(tile, place, h, None, rest);
            }
        });
    }
}

#[derive(Clone, Copy)]
struct Backward(Activation);

impl Equation<1, 1, 1, 1> for Backward {
    const READ: usize = 1;

    #[inline(always)]
    fn apply<S: Simd>(
        self,
        simd: S,
        [h]: [S::F32; 1],
        [h_grad]: [S::F32; 1],
        [strip]: [S::F32; 1],
    ) -> ([S::F32; 1], [S::F32; 1], [S::F32; 1]) {
        let d = (h_grad + strip) * self.0.derivative(simd, h);
        ([d], [strip], [d])
    }
}
