//! `BlockGRU`.

use ndarray::{ArrayView1, ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis};

use super::forward_steps::ForwardSteps;
use crate::gemm::weights_len;
use crate::lengths::Lengths;
use crate::ops::{BLOCK_GRU, Keeps, Sizes};
use crate::sequence::{
    all_rows, at_step, clear_from, input_products, last_states, state_before, steps_at_once,
};
use crate::{Context, Element, Error, Storage};

pub use crate::ops::block_gru::{Inputs, Outputs};

/// `BlockGRU`: the forward steps.
///
/// For every row `b` of the batch and `t` from 0 to `sequence_length[b] - 1`, where `h[-1]` is
/// `h_prev`, and `w[:D]` and `w[D:]` are the rows of weights for x and for the state:
///
/// ```text
/// [r_bar | u_bar] = [x[t] | h[t-1]] @ w_ru + b_ru        r[t] = S(r_bar)   u[t] = S(u_bar)
///
/// reset_after = false:   hc[t] = r[t] * h[t-1]
///                        c[t]  = tanh(x[t] @ w_c[:D] + hc[t] @ w_c[D:] + b_c)
/// reset_after = true:    hc[t] = h[t-1] @ w_c[D:] + b_hc
///                        c[t]  = tanh(x[t] @ w_c[:D] + b_c + r[t] * hc[t])
///
/// h[t] = u[t] * h[t-1] + (1 - u[t]) * c[t]
/// ```
///
/// Half-precision data is converted to `f32`, and every result is rounded once. The state that
/// enters a step is the stored, rounded state of the step before.
///
/// `keeps` tells whether outputs that nobody reads may have the memory of one step.
///
/// `scratch` is memory for intermediate values. It has at least [`forward_scratch`] elements, of
/// which neither the values before the call nor those after it matter.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, a number in `sequence_length` that is negative or above
/// `time`, too short a `scratch`; nothing is written then.
pub fn forward<E: Element>(
    context: &Context<'_>,
    reset_after: bool,
    inputs: Inputs<'_, E>,
    outputs: Outputs<'_, E>,
    keeps: Keeps,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let op = &BLOCK_GRU;
    let sizes = Inputs::check(op, reset_after, &inputs, &outputs, keeps)?;
    op.check_steps(&sizes, inputs.sequence_length.iter().map(|&steps| steps.into()))?;
    let scratch = op.check_scratch(forward_scratch(&sizes), scratch)?;
    E::block_gru(context, sizes, reset_after, inputs, outputs, scratch);
    Ok(())
}

/// How many elements of scratch memory [`forward`] needs; `usize::MAX` if more than can be counted.
#[must_use]
pub fn forward_scratch(sizes: &Sizes) -> usize {
    let Sizes { time, batch, cell_size, .. } = *sizes;
    let rows = steps_at_once(time, batch).saturating_mul(batch);
    weights_len(cell_size, 3, cell_size)
        .saturating_add(rows.saturating_mul(cell_size).saturating_mul(3))
}

/// What the steps of a sequence are computed from. Weights are those of the gates and those of the candidate, and may
/// lie in memory as their transposes.
#[derive(Clone, Copy)]
pub(crate) struct Sequence<'a, E> {
    pub(crate) lengths: Lengths<'a>,
    pub(crate) x: ArrayView3<'a, E>,
    pub(crate) h_prev: ArrayView2<'a, E>,
    /// `[input_size, 2 * cell_size]` and `[input_size, cell_size]`. Without them x is added to the pre-activations of
    /// the gates and of the candidate.
    pub(crate) w_x: Option<[ArrayView2<'a, E>; 2]>,
    /// `[cell_size, 2 * cell_size]` and `[cell_size, cell_size]`.
    pub(crate) w_h: [ArrayView2<'a, E>; 2],
    pub(crate) b_ru: ArrayView1<'a, E>,
    pub(crate) b_c: ArrayView1<'a, E>,
    pub(crate) b_hc: ArrayView1<'a, E>,
    pub(crate) reset_after: bool,
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    sizes: Sizes,
    reset_after: bool,
    inputs: Inputs<'_, E>,
    outputs: Outputs<'_, E>,
    scratch: &mut [f32],
) {
    let Inputs { sequence_length, x, h_prev, w_ru, w_c, b_ru, b_c, b_hc } = inputs;
    let lengths = Lengths::new(sequence_length);
    let [(ru_x, ru_h), (c_x, c_h)] = [w_ru, w_c].map(|w| w.split_at(Axis(0), sizes.input_size));
    let (w_x, w_h) = (Some([ru_x, c_x]), [ru_h, c_h]);
    let sequence = Sequence { lengths, x, h_prev, w_x, w_h, b_ru, b_c, b_hc, reset_after };
    let Outputs { r, u, c, hc, mut h, h_last } = outputs;
    sequence.compute(context, [r, u, c, hc, h.view_mut()], scratch);
    last_states(lengths, h_prev, h.view(), h_last);
}

impl<E: Storage> Sequence<'_, E> {
    /// All steps. The outputs are r, u, c, hc and h: zero in steps that a row does not have. All but h may have
    /// the memory of one step. `scratch` has at least [`forward_scratch`] elements.
    pub(crate) fn compute(
        &self,
        context: &Context<'_>,
        mut outputs: [ArrayViewMut3<'_, E>; 5],
        scratch: &mut [f32],
    ) {
        let (batch, cell_size) = self.h_prev.dim();
        let steps = self.lengths.longest();
        clear_from(&mut outputs, steps);
        if batch == 0 || cell_size == 0 {
            return;
        }
        let (weights, products) = scratch.split_at_mut(weights_len(cell_size, 3, cell_size));
        let forward_steps = ForwardSteps::new(context, self, weights);
        let at_once = steps_at_once(self.x.dim().0, batch);
        for first in (0..steps).step_by(at_once) {
            let steps = first..steps.min(first + at_once);
            let shape = (steps.len() * batch, 3 * cell_size);
            let products = &mut products[..shape.0 * shape.1];
            let mut products = ArrayViewMut2::from_shape(shape, products).expect("of this size");
            let parts = products.view_mut().split_at(Axis(1), 2 * cell_size);
            input_products(context, all_rows(self.x, steps.clone()), self.w_x, parts.into());
            for (t, products) in steps.zip(products.axis_chunks_iter_mut(Axis(0), batch)) {
                let ([.., h], step) = at_step(&mut outputs, t);
                let h_prev = state_before(t, self.h_prev, h.view());
                forward_steps.step(context, t, products, h_prev, step);
            }
        }
    }
}
