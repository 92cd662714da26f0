//! `BlockLSTM` and `BlockLSTMV2`.

use std::slice;

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut3, Axis};

use super::Variant;
use crate::gemm::{self, StepShape, weights_len};
use crate::lstm::Attributes;
use crate::lstm::step::{GroupedLstm, Lstm, LstmStep, Projected};
use crate::ops::{Keeps, Sizes};
use crate::recurrence::{self, GroupedProduct, Grouping, Lengths, Product, products_len};
use crate::{Activations, Context, Element, Error, Storage};

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
/// The terms in brackets exist only with `use_peephole`. Data of 16 bits is converted to `f32`,
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
    let sizes = op.check_call(attributes.use_peephole, &inputs, &outputs, keeps)?;
    op.check_steps(&sizes, [inputs.seq_len_max as i128])?;
    let scratch = op.check_scratch(forward_scratch(&sizes), scratch)?;
    let forget_bias = match variant {
        Variant::BlockLstm => attributes.forget_bias,
        Variant::BlockLstmV2 => 0.0,
    };
    let attributes = Attributes { forget_bias, ..*attributes };
    let Inputs { seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b } = inputs;
    let (w_x, w_h) = w.split_at(Axis(0), sizes.input_size);
    let (activations, order, peepholes) =
        (Activations::default(), variant.order(), [wci, wcf, wco]);
    let step = LstmStep { attributes, activations, order, b, peepholes };
    let (lengths, w_x) = (Lengths::Same(seq_len_max), Some(w_x));
    let sequence = LstmSequence { lengths, x, cs_prev, h_prev, w_x, w_h, step };
    let Outputs { i, cs, f, o, ci, co, h } = outputs;
    E::block_lstm(context, sequence, [i, cs, f, o, ci, co, h], scratch);
    Ok(())
}

/// How many elements of scratch memory [`forward`] needs; `usize::MAX` if more than can be counted.
#[must_use]
pub fn forward_scratch(sizes: &Sizes) -> usize {
    let cells = sizes.cell_size;
    weights_len(cells, 4, cells).saturating_add(products_len(sizes, 4))
}

/// What the steps of a sequence are computed from. Weights may lie in memory as their transposes.
#[derive(Clone, Copy)]
pub struct LstmSequence<'a, E> {
    pub(crate) lengths: Lengths<'a>,
    pub(crate) x: ArrayView3<'a, E>,
    pub(crate) cs_prev: ArrayView2<'a, E>,
    pub(crate) h_prev: ArrayView2<'a, E>,
    /// `[input_size, 4 * cell_size]`. Without them x is added to the pre-activations of every gate.
    pub(crate) w_x: Option<ArrayView2<'a, E>>,
    /// `[cell_size, 4 * cell_size]`; with a projection `[num_proj, 4 * cell_size]`.
    pub(crate) w_h: ArrayView2<'a, E>,
    pub(crate) step: LstmStep<'a, E>,
}

/// A projection of the outputs: their products with weights take their place as the state.
pub(crate) struct Projection<'a, E> {
    /// `[cell_size, num_proj]`, or in memory its transpose. `num_proj` is at most `cell_size`.
    pub(crate) weights: ArrayView2<'a, E>,
    /// The products, `[time, batch, num_proj]`; previous contents do not matter.
    pub(crate) h: ArrayViewMut3<'a, E>,
    /// Of [`Product::memory`].
    pub(crate) memory: &'a mut [f32],
    /// The magnitude that the products are clipped to.
    pub(crate) clip: Option<f32>,
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    sequence: LstmSequence<'_, E>,
    outputs: [ArrayViewMut3<'_, E>; 7],
    scratch: &mut [f32],
) {
    sequence.compute(context, outputs, None, scratch);
}

impl<E: Storage> LstmSequence<'_, E> {
    /// All steps. The outputs are i, cs, f, o, ci, co and h: zero in steps that a row does not have. All but cs and h
    /// may have the memory of one step. `scratch` has at least [`forward_scratch`] elements. With a projection h is
    /// what is projected.
    pub(crate) fn compute(
        &self,
        context: &Context<'_>,
        [i, cs, f, o, ci, co, h]: [ArrayViewMut3<'_, E>; 7],
        projection: Option<Projection<'_, E>>,
        scratch: &mut [f32],
    ) {
        let LstmSequence { lengths, x, cs_prev, h_prev, w_h, step, .. } = *self;
        let (batch, cells) = cs_prev.dim();
        let (weights, products) = scratch.split_at_mut(weights_len(cells, 4, cells));
        let steps = lengths.longest();
        let tiling = gemm::sequence_tiling::<E>(context, StepShape::new((batch, cells), 4), steps);
        let w_x = self.w_x.as_ref().map(slice::from_ref);
        let sequence = recurrence::Sequence { lengths, x, w_x, first: [cs_prev, h_prev] };
        let product = Product::plain(tiling, w_h);
        let Some(projection) = projection else {
            let outputs = recurrence::Outputs { kept: [i, f, o, ci, co], states: [cs, h] };
            if let Some(grouping) = Grouping::new::<E>(context, tiling, (cells, steps), &[4]) {
                let product = GroupedProduct::new(context, grouping, (w_h, 0..4 * cells), weights);
                let cell = GroupedLstm { step, grouping, product };
                return recurrence::forward_in_groups(context, &cell, &sequence, outputs, products);
            }
            let cell = Lstm { step, product: product.packed_for(context, steps, weights) };
            return recurrence::forward(context, &cell, &sequence, outputs, products);
        };
        let lstm = Lstm { step, product: product.packed_for(context, steps, weights) };
        let Projection { weights, h: projected, memory, clip } = projection;
        let projection = Product::of_rows(context, batch, weights).packed(context, memory);
        let outputs = recurrence::Outputs { kept: [i, f, o, ci, co, h], states: [cs, projected] };
        recurrence::forward(
            context,
            &Projected { lstm, projection, clip },
            &sequence,
            outputs,
            products,
        );
    }
}
