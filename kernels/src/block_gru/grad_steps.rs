//! The backward steps: products and elementwise passes, from the last step to the first.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2, Axis, Slice};

use super::grad::GradSequence;
use crate::elementwise::{self, Equation};
use crate::executor::for_each;
use crate::gemm::{self, Right, Weights};
use crate::gru::step;
use crate::lengths::{Lengths, Span};
use crate::simd::Simd;
use crate::tiles::{Place, Tiling};
use crate::{Context, Isa, Storage};

/// Sums over the batch: the gradients of b_r, b_u, b_c and b_hc.
pub(crate) const SUMS: usize = 4;

/// What is the same in every step.
pub(super) struct GradSteps<'a, 'w> {
    isa: Isa,
    reset_after: bool,
    tiling: Tiling,
    cell_size: usize,
    lengths: Lengths<'a>,
    /// The transposes of those of the state, for the gates and for the candidate.
    weights: [Weights<'w>; 2],
}

/// Inputs of one step, `[batch, cell_size]` each.
#[derive(Clone, Copy)]
pub(super) struct StepInputs<'a, E> {
    pub(super) t: usize,
    pub(super) h_prev: ArrayView2<'a, E>,
    pub(super) h_grad: ArrayView2<'a, E>,
}

/// Gradients of one step with respect to what the weights were multiplied by, in `f32`.
pub(super) struct StepGradients<'a> {
    /// d_r_bar and d_u_bar, `[batch, 2 * cell_size]`.
    pub(super) gates: ArrayViewMut2<'a, f32>,
    /// d_c_bar, or d_hc where the reset comes after the product, `[batch, cell_size]`.
    pub(super) candidate: ArrayViewMut2<'a, f32>,
}

impl<'a> StepGradients<'a> {
    /// In memory for three gates of the state's shape.
    pub(super) fn new((batch, cell_size): (usize, usize), memory: &'a mut [f32]) -> Self {
        let (gates, candidate) = memory.split_at_mut(2 * batch * cell_size);
        let view = |columns, memory| {
            ArrayViewMut2::from_shape((batch, columns), memory).expect("of this size")
        };
        StepGradients { gates: view(2 * cell_size, gates), candidate: view(cell_size, candidate) }
    }
}

/// What a step hands on to the one before it.
pub(super) struct Carried<'a> {
    /// The elementwise part of the gradient with respect to the state, `[batch, cell_size]`.
    pub(super) state: ArrayViewMut2<'a, f32>,
    /// What each row of tiles has summed, `[SUMS, rows of tiles, cell_size]`.
    pub(super) sums: &'a mut [f32],
}

impl<'a, 'w> GradSteps<'a, 'w> {
    pub(super) fn new<E: Storage>(
        context: &Context<'_>,
        &GradSequence { lengths, h_prev, w_h, reset_after, .. }: &GradSequence<'a, E>,
        [gates, candidate]: [&'w mut [f32]; 2],
    ) -> Self {
        let (batch, cell_size) = h_prev.dim();
        let tiling = gemm::step_tiling(context, (batch, cell_size), 2);
        let [w_ru, w_c] = w_h.map(|w| Right::of(w.reversed_axes()));
        let strips = |cells: &Range<usize>| [cells.clone()];
        let (once, twice) = (cell_size, 2 * cell_size);
        let gates = Weights::pack(context, tiling, cell_size, twice, w_ru, strips, gates);
        let candidate = Weights::pack(context, tiling, cell_size, once, w_c, strips, candidate);
        let weights = [gates, candidate];
        GradSteps { isa: context.isa, reset_after, tiling, cell_size, lengths, weights }
    }

    /// One step. `gates` holds r, u, c and hc, and then d_r_bar, d_u_bar, d_c_bar and, where the
    /// reset comes after the product, d_hc. `next` is what the step done before left in `now`.
    pub(super) fn step<E: Storage>(
        &self,
        context: &Context<'_>,
        inputs: StepInputs<'_, E>,
        gates: [ArrayViewMut2<'_, E>; 4],
        next: Option<&StepGradients<'_>>,
        now: &mut StepGradients<'_>,
        carried: Carried<'_>,
    ) {
        let Carried { mut state, sums } = carried;
        let (d_r, d_u) = now.gates.view_mut().split_at(Axis(1), self.cell_size);
        let mut d_candidate = now.candidate.view_mut();
        let [r, u, c, hc] = gates;
        if self.reset_after {
            let wide = [state, d_r, d_u, d_candidate];
            let parts = self.parts([r, u, c, hc], wide, sums);
            return self.whole_step(context, inputs, next, parts);
        }
        let (sum_r, others) = sums.split_at_mut(sums.len() / SUMS);
        let (sums_u_c, _) = others.split_at_mut(2 * sum_r.len());
        let wide = [state.view_mut(), d_u, d_candidate.view_mut()];
        let parts = self.parts([u, c], wide, sums_u_c);
        self.candidate_and_update(context, inputs, next, parts);
        let parts = self.parts([r], [state, d_r], sum_r);
        self.reset(context, inputs, d_candidate.view(), parts);
    }

    /// The gradient with respect to the state before the first step. `next` is what that step left.
    pub(super) fn state_gradient<E: Storage>(
        &self,
        context: &Context<'_>,
        next: &StepGradients<'_>,
        state: ArrayView2<'_, f32>,
        out: ArrayViewMut2<'_, E>,
    ) {
        let tiles = self.tiling.tiles(out).collect();
        for_each(context.executor, self.cost(3), tiles, |(place, out)| {
            gemm::tile_at(self.isa, &place, |tile| {
                self.add_products(tile, &place, Some(next), 0);
                let [mut strip] = tile.strips_mut();
                strip += &place.of(state);
                tile.store(out);
            });
        });
    }

    /// d_u_bar and d_c_bar where the reset comes before the product.
    fn candidate_and_update<E: Storage>(
        &self,
        context: &Context<'_>,
        StepInputs { t, h_prev, h_grad }: StepInputs<'_, E>,
        next: Option<&StepGradients<'_>>,
        parts: Vec<Part<'_, E, 2, 3, 2>>,
    ) {
        for_each(context.executor, self.cost(2), parts, |part| {
            let place = part.place.clone();
            gemm::tile_at(self.isa, &place, |tile| {
                self.add_products(tile, &place, next, t + 1);
                let ([strip], [state, d_u, d_c]) = (tile.strips_mut(), part.wide);
                let wide = [strip, state, d_u, d_c];
                let outputs = part.outputs;
                let inputs = [h_prev, h_grad];
                self.elementwise(t, &place, CandidateAndUpdate, inputs, outputs, wide, part.sums);
            });
        });
    }

    /// d_r_bar where the reset comes before the product.
    fn reset<E: Storage>(
        &self,
        context: &Context<'_>,
        StepInputs { t, h_prev, .. }: StepInputs<'_, E>,
        d_c: ArrayView2<'_, f32>,
        parts: Vec<Part<'_, E, 1, 2, 1>>,
    ) {
        for_each(context.executor, self.cost(1), parts, |part| {
            let place = part.place.clone();
            gemm::tile_at(self.isa, &place, |tile| {
                let d_c = place.rows_of(d_c);
                tile.add(d_c, self.weights[1].at(&place));
                let ([d_hc], [state, d_r]) = (tile.strips_mut(), part.wide);
                let (outputs, wide) = (part.outputs, [d_hc, state, d_r]);
                self.elementwise(t, &place, Reset, [h_prev], outputs, wide, part.sums);
            });
        });
    }

    /// Everything where the reset comes after the product.
    fn whole_step<E: Storage>(
        &self,
        context: &Context<'_>,
        StepInputs { t, h_prev, h_grad }: StepInputs<'_, E>,
        next: Option<&StepGradients<'_>>,
        parts: Vec<Part<'_, E, 4, 4, 4>>,
    ) {
        for_each(context.executor, self.cost(3), parts, |part| {
            let place = part.place.clone();
            gemm::tile_at(self.isa, &place, |tile| {
                self.add_products(tile, &place, next, t + 1);
                let ([strip], [state, d_r, d_u, d_hc]) = (tile.strips_mut(), part.wide);
                let wide = [strip, state, d_r, d_u, d_hc];
                let inputs = [h_prev, h_grad];
                self.elementwise(t, &place, ResetAfter, inputs, part.outputs, wide, part.sums);
            });
        });
    }

    /// Adds the part of the gradient with respect to the state that goes through those products of step `t` that
    /// are known: all of them where the reset comes after the product. `next` is what the step left,
    /// if there was one.
    fn add_products(
        &self,
        tile: &mut gemm::Tile<'_>,
        place: &Place,
        next: Option<&StepGradients<'_>>,
        t: usize,
    ) {
        let Some(next) = next else {
            return;
        };
        let gates = place.rows_of(next.gates.view());
        tile.add(gates, self.weights[0].at(place));
        if self.reset_after {
            let candidate = place.rows_of(next.candidate.view());
            tile.add(candidate, self.weights[1].at(place));
        }
        // The products of rows that have ended are zeros, unless weights are not finite.
        let [strip] = tile.strips_mut();
        self.lengths.clear_ended(place.rows.clone(), t, strip);
    }

    /// `equation` on the rows that have step `t`. In the others outputs are zero, and so are the wide
    /// matrices but the first two: the product and the carried state.
    #[allow(clippy::too_many_arguments)]
    fn elementwise<E, Q, const I: usize, const O: usize, const R: usize, const W: usize>(
        &self,
        t: usize,
        place: &Place,
        equation: Q,
        inputs: [ArrayView2<'_, E>; I],
        mut outputs: [ArrayViewMut2<'_, E>; O],
        mut wide: [ArrayViewMut2<'_, f32>; W],
        mut sums: [&mut [f32]; R],
    ) where
        E: Storage,
        Q: Equation<I, O, R, W>,
    {
        for Span { rows, have_step } in self.lengths.spans(place.rows.clone(), t) {
            let slice = Slice::from(rows.start - place.rows.start..rows.end - place.rows.start);
            let mut outputs = outputs.each_mut().map(|m| m.slice_axis_mut(Axis(0), slice));
            let mut wide = wide.each_mut().map(|m| m.slice_axis_mut(Axis(0), slice));
            if have_step {
                let place = Place { rows, columns: place.columns.clone() };
                let inputs = inputs.map(|input| place.of(input));
                let sums = sums.each_mut().map(|sum| &mut **sum);
                self.isa.run(elementwise::Pass { equation, inputs, outputs, wide, sums });
            } else {
                outputs.iter_mut().for_each(|output| output.fill(E::ZERO));
                wide[2..].iter_mut().for_each(|d| d.fill(0.0));
            }
        }
    }

    /// Processor cycles of a tile with products of so many gates.
    fn cost(&self, gates: usize) -> u64 {
        gemm::cost(self.tiling, gates, self.cell_size)
    }

    /// Cuts what a phase of a step writes.
    fn parts<'m, E, const O: usize, const W: usize, const R: usize>(
        &self,
        outputs: [ArrayViewMut2<'m, E>; O],
        wide: [ArrayViewMut2<'m, f32>; W],
        sums: &'m mut [f32],
    ) -> Vec<Part<'m, E, O, W, R>> {
        let wide = self.tiling.tiles_of(wide);
        let sums = self.tiling.sums_of(self.cell_size, sums);
        let tiles = self.tiling.tiles_of(outputs).into_iter().zip(wide).zip(sums);
        tiles
            .map(|(((place, outputs), (_, wide)), sums)| Part { place, outputs, wide, sums })
            .collect()
    }
}

/// What one tile of a phase writes.
struct Part<'m, E, const O: usize, const W: usize, const R: usize> {
    place: Place,
    outputs: [ArrayViewMut2<'m, E>; O],
    wide: [ArrayViewMut2<'m, f32>; W],
    sums: [&'m mut [f32]; R],
}

#[derive(Clone, Copy)]
struct CandidateAndUpdate;

impl Equation<2, 2, 2, 4> for CandidateAndUpdate {
    const READ: usize = 1;

    #[inline(always)]
    fn apply<S: Simd>(
        self,
        simd: S,
        [h_prev, h_grad]: [S::F32; 2],
        [u, c]: [S::F32; 2],
        [strip, state, ..]: [S::F32; 4],
    ) -> ([S::F32; 2], [S::F32; 4], [S::F32; 2]) {
        let d_h = h_grad + state + strip;
        let [d_c, d_u] = step::through_state(simd, d_h, h_prev, u, c);
        ([d_u, d_c], [strip, d_h * u, d_u, d_c], [d_u, d_c])
    }
}

#[derive(Clone, Copy)]
struct Reset;

impl Equation<1, 1, 1, 3> for Reset {
    const READ: usize = 1;

    #[inline(always)]
    fn apply<S: Simd>(
        self,
        simd: S,
        [h_prev]: [S::F32; 1],
        [r]: [S::F32; 1],
        [d_hc, state, _]: [S::F32; 3],
    ) -> ([S::F32; 1], [S::F32; 3], [S::F32; 1]) {
        let d_r = step::through_reset(simd, d_hc, h_prev, r);
        ([d_r], [d_hc, simd.mul_add(d_hc, r, state), d_r], [d_r])
    }
}

#[derive(Clone, Copy)]
struct ResetAfter;

impl Equation<2, 4, 4, 5> for ResetAfter {
    const READ: usize = 1;

    #[inline(always)]
    fn apply<S: Simd>(
        self,
        simd: S,
        [h_prev, h_grad]: [S::F32; 2],
        [r, u, c, hc]: [S::F32; 4],
        [strip, state, ..]: [S::F32; 5],
    ) -> ([S::F32; 4], [S::F32; 5], [S::F32; 4]) {
        let d_h = h_grad + state + strip;
        let [d_c, d_u] = step::through_state(simd, d_h, h_prev, u, c);
        let d_hc = d_c * r;
        // d_c * hc * r * (1 - r)
        let d_r = d_hc * hc * (simd.splat(1.0) - r);
        let d = [d_r, d_u, d_c, d_hc];
        (d, [strip, d_h * u, d_r, d_u, d_hc], d)
    }
}
