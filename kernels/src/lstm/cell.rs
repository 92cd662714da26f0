//! `LSTMBlockCell`, the forward step.

use ndarray::Axis;

use super::Attributes;
use super::step::{GateOrder, ICFO, LstmStep};
use crate::gemm::{self, StepShape};
use crate::ops::{Keeps, LSTM_BLOCK_CELL, Sizes};
use crate::recurrence::{At, Input, Product};
use crate::{Activations, Context, Element, Error, Storage};

pub use crate::ops::lstm::{BlockCellInputs, BlockCellOutputs};

/// `LSTMBlockCell`: the forward step.
///
/// ```text
/// [i_bar | ci_bar | f_bar | o_bar] = [x | h_prev] @ w + b
/// i  = S(i_bar [+ wci * cs_prev])     f  = S(f_bar + forget_bias [+ wcf * cs_prev])
/// ci = tanh(ci_bar)                   cs = clip(i * ci + f * cs_prev)
/// o  = S(o_bar [+ wco * cs])          co = tanh(cs)          h = o * co
/// ```
///
/// The terms in brackets exist only with `use_peephole`. Half-precision data is converted to `f32`,
/// and every result is rounded once. `forget_bias` and `cell_clip` are rounded to the element type
/// first. A NaN remains NaN after the clip.
///
/// # Errors
///
/// A tensor of the wrong shape or layout; nothing is written then.
pub fn block_cell<E: Element>(
    context: &Context<'_>,
    attributes: &Attributes,
    inputs: BlockCellInputs<'_, E>,
    outputs: BlockCellOutputs<'_, E>,
) -> Result<(), Error> {
    let op = &LSTM_BLOCK_CELL;
    let sizes = op.check_call(attributes.use_peephole, &inputs, &outputs, Keeps::All)?;
    E::lstm_block_cell(context, sizes, attributes, inputs, outputs);
    Ok(())
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    sizes: Sizes,
    attributes: &Attributes,
    inputs: BlockCellInputs<'_, E>,
    outputs: BlockCellOutputs<'_, E>,
) {
    let attributes = (attributes, ICFO, Activations::default());
    compute_in_order(context, sizes, attributes, inputs, outputs);
}

/// [`compute`] with the gates in another order, and other functions.
pub(crate) fn compute_in_order<E: Storage>(
    context: &Context<'_>,
    sizes: Sizes,
    (attributes, order, activations): (&Attributes, GateOrder, Activations),
    inputs: BlockCellInputs<'_, E>,
    outputs: BlockCellOutputs<'_, E>,
) {
    let BlockCellInputs { x, cs_prev, h_prev, w, wci, wcf, wco, b } = inputs;
    let BlockCellOutputs { i, cs, f, o, ci, co, h } = outputs;
    let Sizes { batch, input_size, cell_size, .. } = sizes;
    let (attributes, peepholes) = (*attributes, [wci, wcf, wco]);
    let step = LstmStep { attributes, activations, order, b, peepholes };
    let (w_x, w_h) = w.split_at(Axis(0), input_size);
    let tiling = gemm::cell_tiling(context, StepShape::new((batch, cell_size), 4));
    let product = Product::plain(tiling, w_h);
    let at = At::only_step(context);
    let products = product.after(Input::Product(x, w_x), at.rows, Some(h_prev));
    step.run(at, products, cs_prev, [i, cs, f, o, ci, co, h]);
}
