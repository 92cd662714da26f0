//! The backward step as a cell of the engine.

use ndarray::{ArrayView2, ArrayViewMut2, Axis};

use super::step;
use crate::Storage;
use crate::activation::{Activations, Functions, Usual};
use crate::elementwise::{Computed, Elements, Equation};
use crate::recurrence::{CellGrad, GradStep, Input, Phase, Product, Rows, StepsLeft, Sum};
use crate::simd::Simd;
use crate::tiles::Tiling;

/// Sums over the batch: the gradients of b_r, b_u, b_c and b_hc.
pub(crate) const BIAS_SUMS: usize = 4;

/// The gradient of [`Gru`](super::step::Gru). It reads the gradient with respect to h, and works in place of r, u, c
/// and hc: they become d_r_bar, d_u_bar, d_c_bar and, where the reset comes after the product, d_hc.
pub(crate) struct GruGrad<'w, E> {
    pub(crate) reset_after: bool,
    pub(crate) activations: Activations,
    /// The transposes of the weights of the state, for the gates and for the candidate.
    pub(crate) gates: Product<'w, E, 1>,
    pub(crate) candidate: Product<'w, E, 1>,
}

impl<'w, E: Storage> GruGrad<'w, E> {
    /// The gradient with respect to the state that enters step `of`, through those products that are known from what
    /// the step has left in `d`: all of them where the reset comes after the product.
    fn state_backprop<'s>(
        &'s self,
        of: Rows<'s>,
        d: Option<ArrayView2<'s, f32>>,
    ) -> Sum<'s, 'w, 's, 's, f32, E, 1, 2> {
        let parts = d.map(|d| d.split_at(Axis(1), d.ncols() / 3 * 2));
        let gates = parts.map(|(gates, _)| gates);
        let candidate = parts.map(|(_, candidate)| candidate).filter(|_| self.reset_after);
        let products = [&self.gates, &self.candidate];
        Sum { of, input: Input::Zeros, products, left: [gates, candidate] }
    }
}

impl<E: Storage> CellGrad<E, 1, 4, 1> for GruGrad<'_, E> {
    const BIAS_SUMS: usize = BIAS_SUMS;
    const GATES: usize = 3;

    fn tiles(&self) -> (Tiling, u64) {
        (self.gates.tiling, self.gates.cost() + self.candidate.cost())
    }

    fn step(&self, step: GradStep<'_, E, 1>, gates: [ArrayViewMut2<'_, E>; 4]) {
        match self.activations.are_usual() {
            true => self.run(Usual, step, gates),
            false => self.run(self.activations, step, gates),
        }
    }

    fn finish(&self, left: StepsLeft<'_>, [h_prev_grad]: [ArrayViewMut2<'_, E>; 1]) {
        let StepsLeft { at, d, carried } = left;
        self.state_backprop(at.rows, d).store(at.context, h_prev_grad, Some(carried));
    }
}

impl<E: Storage> GruGrad<'_, E> {
    fn run(
        &self,
        functions: impl Functions,
        step: GradStep<'_, E, 1>,
        [r, u, c, hc]: [ArrayViewMut2<'_, E>; 4],
    ) {
        let GradStep { at, before: h_prev, saved: [h_grad], d_next, d, mut carried, mut sums } =
            step;
        let cells = h_prev.ncols();
        let products = self.state_backprop(at.rows.next(), d_next);
        let (d_r, rest) = d.split_at(Axis(1), cells);
        let (d_u, mut d_candidate) = rest.split_at(Axis(1), cells);
        let inputs = [h_prev, h_grad];
        if self.reset_after {
            let (outputs, f32_operands) = ([r, u, c, hc], [carried, d_r, d_u, d_candidate]);
            return Phase { equation: ResetAfter(functions), inputs, outputs, f32_operands, sums }
                .run(at, products);
        }
        Phase {
            equation: CandidateAndUpdate(functions),
            inputs,
            outputs: [u, c],
            f32_operands: [carried.view_mut(), d_u, d_candidate.view_mut()],
            sums: sums.from(1),
        }
        .run(at, products);
        Phase {
            equation: Reset(functions),
            inputs: [h_prev],
            outputs: [r],
            f32_operands: [carried, d_r],
            sums,
        }
        .run(at, self.candidate.of(at.rows, Some(d_candidate.view())));
    }
}

#[derive(Clone, Copy)]
struct CandidateAndUpdate<F>(F);

impl<F: Functions> Equation<2, 2, 2, 4> for CandidateAndUpdate<F> {
    const READ_ONLY: usize = 1;

    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 2, 2, 4>) -> Computed<S::F32, 2, 4, 2> {
        let Elements { inputs: [h_prev, h_grad], before: [u, c], f32_operands: [strip, state, ..] } =
            at;
        let d_h = h_grad + state + strip;
        let [d_c, d_u] = step::through_state(simd, self.0, d_h, h_prev, u, c);
        ([d_u, d_c], [strip, d_h * u, d_u, d_c], [d_u, d_c])
    }
}

#[derive(Clone, Copy)]
struct Reset<F>(F);

impl<F: Functions> Equation<1, 1, 1, 3> for Reset<F> {
    const READ_ONLY: usize = 1;

    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 1, 1, 3>) -> Computed<S::F32, 1, 3, 1> {
        let Elements { inputs: [h_prev], before: [r], f32_operands: [d_hc, state, _] } = at;
        let d_r = step::through_reset(simd, self.0, d_hc, h_prev, r);
        ([d_r], [d_hc, simd.mul_add(d_hc, r, state), d_r], [d_r])
    }
}

#[derive(Clone, Copy)]
struct ResetAfter<F>(F);

impl<F: Functions> Equation<2, 4, 4, 5> for ResetAfter<F> {
    const READ_ONLY: usize = 1;

    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 2, 4, 5>) -> Computed<S::F32, 4, 5, 4> {
        let Elements {
            inputs: [h_prev, h_grad],
            before: [r, u, c, hc],
            f32_operands: [strip, state, ..],
        } = at;
        let d_h = h_grad + state + strip;
        let [d_c, d_u] = step::through_state(simd, self.0, d_h, h_prev, u, c);
        let d_r = step::through_reset(simd, self.0, d_c, hc, r);
        let d_hc = d_c * r;
        let d = [d_r, d_u, d_c, d_hc];
        (d, [strip, d_h * u, d_r, d_u, d_hc], d)
    }
}
