//! `BlockcellLSTM` and `BlockcellLSTMGrad`.

use ndarray::{ArrayViewMut1, Axis};

use super::{
    GradInPlace, GradOutputs, LstmGradSequence, LstmSequence, forward_scratch, grad_scratch,
};
use crate::lstm::Attributes;
use crate::lstm::step::{IFCO, LstmStep};
use crate::ops::{Keeps, LSTM, LSTM_GRAD};
use crate::recurrence::{self, Lengths};
use crate::{Activations, Context, Element, Error};

pub use crate::ops::lstm_by_row::{
    ByRowGradInPlace, ByRowGradInputs, ByRowGradOutputs, ByRowInputs, ByRowOutputs,
};

/// Without peepholes, bias and clipping.
pub(crate) const PLAIN: Attributes =
    Attributes { use_peephole: false, forget_bias: 0.0, cell_clip: 0.0 };

/// `BlockcellLSTM`: the forward steps, as [`LSTM`] says.
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
pub fn forward_by_row<E: Element>(
    context: &Context<'_>,
    activations: Activations,
    inputs: ByRowInputs<'_, E>,
    outputs: ByRowOutputs<'_, E>,
    keeps: Keeps,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let op = &LSTM;
    let sizes = op.check_call(false, &inputs, &outputs, keeps)?;
    op.check_steps(&sizes, inputs.sequence_length.iter().map(|&steps| steps.into()))?;
    let scratch = op.check_scratch(forward_scratch(&sizes), scratch)?;
    let ByRowInputs { sequence_length, x, cs_prev, h_prev, w, b } = inputs;
    let (w_x, w_h) = w.split_at(Axis(0), sizes.input_size);
    let step = LstmStep { attributes: PLAIN, activations, order: IFCO, b, peepholes: [b; 3] };
    let (lengths, w_x) = (Lengths::new(sequence_length), Some(w_x));
    let sequence = LstmSequence { lengths, x, cs_prev, h_prev, w_x, w_h, step };
    let ByRowOutputs { i, cs, f, o, ci, co, h } = outputs;
    E::block_lstm(context, sequence, [i, cs, f, o, ci, co, h], scratch);
    Ok(())
}

/// `BlockcellLSTMGrad`: the backward steps, as [`LSTM_GRAD`] says.
///
/// `scratch` is memory for intermediate values. It has at least [`grad_scratch`] elements, of
/// which neither the values before the call nor those after it matter.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, a number in `sequence_length` that is negative or above
/// `time`, too short a `scratch`; nothing is written then.
pub fn grad_by_row<E: Element>(
    context: &Context<'_>,
    activations: Activations,
    inputs: ByRowGradInputs<'_, E>,
    in_place: ByRowGradInPlace<'_, E>,
    outputs: ByRowGradOutputs<'_, E>,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let op = &LSTM_GRAD;
    let sizes = op.check_call(false, &(&inputs, &in_place), &outputs, Keeps::WhatIsRead)?;
    op.check_steps(&sizes, inputs.sequence_length.iter().map(|&steps| steps.into()))?;
    let needed = grad_scratch(&sizes, E::IS_16_BIT || outputs.w_grad.is_empty());
    let scratch = op.check_scratch(needed, scratch)?;
    let ByRowGradInputs { sequence_length, x, cs_prev, h_prev, w, .. } = inputs;
    let ByRowGradInputs { cs, co, h, cs_grad, h_grad, .. } = inputs;
    let (w_x, w_h) = w.split_at(Axis(0), sizes.input_size);
    let lengths = Lengths::new(sequence_length);
    let sequence = LstmGradSequence {
        inputs: recurrence::Inputs { lengths, x, h_prev, h },
        order: IFCO,
        activations,
        cs_prev,
        w_x: Some(w_x),
        w_h,
        peepholes: None,
        cs,
        co,
        cs_grad,
        h_grad,
        cs_last_grad: None,
    };
    let ByRowGradInPlace { i, f, o, ci } = in_place;
    let ByRowGradOutputs { x_grad, cs_prev_grad, h_prev_grad, w_grad, b_grad } = outputs;
    let [wci_grad, wcf_grad, wco_grad] = [(); 3].map(|()| ArrayViewMut1::from(&mut []));
    let (in_place, outputs) = (
        GradInPlace { i, f, o, ci },
        GradOutputs {
            x_grad,
            cs_prev_grad,
            h_prev_grad,
            w_grad,
            wci_grad,
            wcf_grad,
            wco_grad,
            b_grad,
        },
    );
    E::block_lstm_grad(context, sizes, sequence, in_place, outputs, scratch);
    Ok(())
}
