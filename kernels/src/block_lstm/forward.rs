//! `BlockLSTM` and `BlockLSTMV2`.

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis, Slice};

use super::Variant;
use super::forward_steps::ForwardSteps;
use crate::gemm::weights_len;
use crate::lengths::Lengths;
use crate::lstm::Attributes;
use crate::lstm::step::LstmStep;
use crate::ops::{Keeps, Sizes};
use crate::sequence::{
    StepProduct, all_rows, at_step, clear_from, input_products, state_before, steps_at_once,
};
use crate::{Context, Element, Error, Storage};

pub use crate::ops::block_lstm::{Inputs, Outputs};

/// `BlockLSTM` and `BlockLSTMV2`: the forward steps.
///
/// For `t` from 0 to `seq_len_max - 1`, where `cs[-1]` and `h[-1]` are `cs_prev` and `h_prev`:
///
/// ```text
/// [i_bar | ci_bar | f_bar | o_bar] = [x[t] | h[t-1]] @ w + b
///                                       (V2: [i_bar | f_bar | ci_bar | o_bar] = ...)
/// i[t]  = S(i_bar [+ wci * cs[t-1]])     f[t]  = S(f_bar + forget_bias [+ wcf * cs[t-1]])
/// ci[t] = tanh(ci_bar)                   cs[t] = clip(i[t] * ci[t] + f[t] * cs[t-1])
/// o[t]  = S(o_bar [+ wco * cs[t]])       co[t] = tanh(cs[t])        h[t] = o[t] * co[t]
/// ```
///
/// The terms in brackets exist only with `use_peephole`. Half-precision data is converted to `f32`,
/// and every result is rounded once. The state that enters a step is the stored, rounded state of
/// the step before. `forget_bias` (0 in V2, whatever the attribute says) and `cell_clip` are rounded
/// to the element type first.
///
/// `keeps` tells whether outputs that nobody reads may have the memory of one step.
///
/// `scratch` is memory for intermediate values. It has at least [`forward_scratch`] elements, of
/// which neither the values before the call nor those after it matter.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, `seq_len_max` above `time`, too short a `scratch`; nothing
/// is written then.
pub fn forward<E: Element>(
    context: &Context<'_>,
    variant: Variant,
    attributes: &Attributes,
    inputs: Inputs<'_, E>,
    outputs: Outputs<'_, E>,
    keeps: Keeps,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let op = variant.op();
    let sizes = Inputs::check(op, attributes.use_peephole, &inputs, &outputs, keeps)?;
    op.check_steps(&sizes, [inputs.seq_len_max as i128])?;
    let scratch = op.check_scratch(forward_scratch(&sizes), scratch)?;
    let forget_bias = match variant {
        Variant::BlockLstm => attributes.forget_bias,
        Variant::BlockLstmV2 => 0.0,
    };
    let attributes = Attributes { forget_bias, ..*attributes };
    E::block_lstm(context, sizes, variant, &attributes, inputs, outputs, scratch);
    Ok(())
}

/// How many elements of scratch memory [`forward`] needs; `usize::MAX` if more than can be counted.
#[must_use]
pub fn forward_scratch(sizes: &Sizes) -> usize {
    let Sizes { time, batch, cell_size, .. } = *sizes;
    let weights = weights_len(cell_size, 4, cell_size);
    let rows = steps_at_once(time, batch).saturating_mul(batch);
    weights.saturating_add(rows.saturating_mul(cell_size).saturating_mul(4))
}

/// What the steps of a sequence are computed from. Weights may lie in memory as their transposes.
#[derive(Clone, Copy)]
pub(crate) struct Sequence<'a, E> {
    /// The number of steps to compute.
    pub(crate) steps: usize,
    /// The steps of each row, where they differ: at most `steps`.
    pub(crate) lengths: Option<Lengths<'a>>,
    pub(crate) x: ArrayView3<'a, E>,
    pub(crate) cs_prev: ArrayView2<'a, E>,
    pub(crate) h_prev: ArrayView2<'a, E>,
    /// `[input_size, 4 * cell_size]`. Without them x is added to the pre-activations of every gate.
    pub(crate) w_x: Option<ArrayView2<'a, E>>,
    /// `[cell_size, 4 * cell_size]`; with a projection `[num_proj, 4 * cell_size]`.
    pub(crate) w_h: ArrayView2<'a, E>,
    pub(crate) step: LstmStep<'a, E>,
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    sizes: Sizes,
    variant: Variant,
    attributes: &Attributes,
    inputs: Inputs<'_, E>,
    outputs: Outputs<'_, E>,
    scratch: &mut [f32],
) {
    let Inputs { seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b } = inputs;
    let Outputs { i, cs, f, o, ci, co, h } = outputs;
    let (w_x, w_h) = w.split_at(Axis(0), sizes.input_size);
    let step = LstmStep {
        isa: context.isa,
        attributes: *attributes,
        order: variant.order(),
        b,
        peepholes: [wci, wcf, wco],
    };
    let (steps, w_x) = (seq_len_max, Some(w_x));
    let sequence = Sequence { steps, lengths: None, x, cs_prev, h_prev, w_x, w_h, step };
    sequence.compute(context, [i, cs, f, o, ci, co, h], None, scratch);
}

/// A projection of the outputs: their products with weights take their place as the state.
pub(crate) struct Projection<'a, E> {
    /// `[cell_size, num_proj]`, or in memory its transpose. `num_proj` is at most `cell_size`.
    pub(crate) weights: ArrayView2<'a, E>,
    /// The products, `[time, batch, num_proj]`; previous contents do not matter.
    pub(crate) h: ArrayViewMut3<'a, E>,
    /// Of [`StepProduct::memory`].
    pub(crate) memory: &'a mut [f32],
}

impl<E: Storage> Sequence<'_, E> {
    /// All steps. The outputs are i, cs, f, o, ci, co and h: zero in steps that a row does not have. All but cs and h
    /// may have the memory of one step. `scratch` has at least [`forward_scratch`] elements. With a projection h is
    /// what is projected.
    pub(crate) fn compute(
        &self,
        context: &Context<'_>,
        mut outputs: [ArrayViewMut3<'_, E>; 7],
        projection: Option<Projection<'_, E>>,
        scratch: &mut [f32],
    ) {
        let (steps, (batch, cell_size)) = (self.steps, self.cs_prev.dim());
        clear_from(&mut outputs, steps);
        if batch == 0 || cell_size == 0 {
            return;
        }
        let (weights, products) = scratch.split_at_mut(weights_len(cell_size, 4, cell_size));
        let forward_steps = ForwardSteps::new(context, self, weights);
        let mut projection = projection.map(|Projection { weights, mut h, memory }| {
            h.slice_axis_mut(Axis(0), Slice::from(steps..)).fill(E::ZERO);
            (StepProduct::pack(context, batch, weights, memory), [h])
        });
        let at_once = steps_at_once(self.x.dim().0, batch);
        for first in (0..steps).step_by(at_once) {
            let steps = first..steps.min(first + at_once);
            let shape = (steps.len() * batch, 4 * cell_size);
            let products = &mut products[..shape.0 * shape.1];
            let mut products = ArrayViewMut2::from_shape(shape, products).expect("of this size");
            let x = all_rows(self.x, steps.clone());
            input_products(context, x, self.w_x.map(|w| [w]), [products.view_mut()]);
            for (t, products) in steps.zip(products.axis_chunks_iter(Axis(0), batch)) {
                let ([_, cs, .., h], step) = at_step(&mut outputs, t);
                let cs_prev = state_before(t, self.cs_prev, cs.view());
                let Some((product, projected)) = &mut projection else {
                    let h_prev = state_before(t, self.h_prev, h.view());
                    forward_steps.step(context, t, products, cs_prev, h_prev, step);
                    continue;
                };
                let ([before], [now]) = at_step(projected, t);
                let h_prev = state_before(t, self.h_prev, before.view());
                forward_steps.step(context, t, products, cs_prev, h_prev, step);
                let [.., h] = &outputs;
                product.compute(context, h.index_axis(Axis(0), t), now, false);
            }
        }
    }
}
