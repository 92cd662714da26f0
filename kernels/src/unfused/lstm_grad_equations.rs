//! The equations of `BlockcellLSTMCellGrad`, element by element.
//!
//! They are those of [`crate::lstm::cell_grad`], but for what `clip_by_value` did to the state: what was clipped
//! gets no gradient.

use std::marker::PhantomData;

use crate::Storage;
use crate::activation::Functions;
use crate::elementwise::{Computed, Elements, Equation};
use crate::lstm::cell_grad::{through_cell, through_output};
use crate::simd::Simd;

/// A backward step of a cell whose states are stored as `E`, and were clipped to `clip` if `CLIPS`.
#[derive(Clone, Copy)]
pub(super) struct Backward<E, F, const CLIPS: bool> {
    functions: F,
    clip: f32,
    stored: PhantomData<E>,
}

impl<E: Storage, F> Backward<E, F, false> {
    pub(super) fn unclipped(functions: F) -> Self {
        Backward { functions, clip: f32::INFINITY, stored: PhantomData }
    }
}

impl<E: Storage, F> Backward<E, F, true> {
    pub(super) fn clipped(functions: F, clip: f32) -> Self {
        Backward { functions, clip, stored: PhantomData }
    }
}

impl<E: Storage, F: Functions, const CLIPS: bool> Backward<E, F, CLIPS> {
    /// The gradient of the state before it was clipped. That state is computed as the forward step does it, and
    /// rounded as the small operations round it.
    #[inline(always)]
    fn before_clip<S: Simd>(
        self,
        simd: S,
        dcs: S::F32,
        [cs_prev, i, f, ci]: [S::F32; 4],
    ) -> S::F32 {
        if const { !CLIPS } {
            return dcs;
        }
        let state = E::rounded(simd, simd.mul_add(f, cs_prev, i * ci));
        simd.where_within(dcs, state, simd.splat(self.clip))
    }
}

/// `[dcs * f, di, dci, df, do]` from `[cs_prev, i, f, o, ci, co, cs_grad, h_grad]`.
impl<E: Storage, F: Functions, const CLIPS: bool> Equation<8, 5> for Backward<E, F, CLIPS> {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 8, 5>) -> Computed<S::F32, 5> {
        let Elements { inputs: [cs_prev, i, f, o, ci, co, cs_grad, h_grad], .. } = at;
        let [d_o, dcs] = through_output(simd, self.functions, o, co, cs_grad, h_grad);
        let dcs = self.before_clip(simd, dcs, [cs_prev, i, f, ci]);
        let [di, dci, df] = through_cell(simd, self.functions, dcs, [cs_prev, i, f, ci]);
        ([dcs * f, di, dci, df, d_o], [], [])
    }
}

/// With peepholes, from those and `[cs, wci, wcf, wco]`: also `[di * wci, df * wcf]`, and the terms of the
/// weights' gradients.
impl<E: Storage, F: Functions, const CLIPS: bool> Equation<12, 7, 3> for Backward<E, F, CLIPS> {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 12, 7>) -> Computed<S::F32, 7, 0, 3> {
        let Elements {
            inputs: [cs_prev, i, f, o, ci, co, cs_grad, h_grad, cs, wci, wcf, wco], ..
        } = at;
        let [d_o, dcs] = through_output(simd, self.functions, o, co, cs_grad, h_grad);
        let dcs = self.before_clip(simd, dcs + d_o * wco, [cs_prev, i, f, ci]);
        let [di, dci, df] = through_cell(simd, self.functions, dcs, [cs_prev, i, f, ci]);
        let terms = [di * cs_prev, df * cs_prev, d_o * cs];
        ([dcs * f, di, dci, df, d_o, di * wci, df * wcf], [], terms)
    }
}
