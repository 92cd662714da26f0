//! `LSTMBlockCell`, the forward step.

use ndarray::{ArrayView2, Axis};

use super::Attributes;
use super::step::{ICFO, LstmStep};
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
/// The terms in brackets exist only with `use_peephole`. Data of 16 bits is converted to `f32`,
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
    let BlockCellInputs { x, cs_prev, h_prev, w, wci, wcf, wco, b } = inputs;
    let (w_x, w_h) = w.split_at(Axis(0), sizes.input_size);
    let step = LstmStep {
        attributes: *attributes,
        order: ICFO,
        b,
        peepholes: [wci, wcf, wco],
        activations: Activations::default(),
    };
    SingleStep { x, cs_prev, h_prev, w_x, w_h, step }.compute(context, outputs);
}

/// What a step is computed from, with the gates in any order.
pub(crate) struct SingleStep<'a, E> {
    pub(crate) x: ArrayView2<'a, E>,
    pub(crate) cs_prev: ArrayView2<'a, E>,
    pub(crate) h_prev: ArrayView2<'a, E>,
    /// The weights of x.
    pub(crate) w_x: ArrayView2<'a, E>,
    /// Those of `h_prev`.
    pub(crate) w_h: ArrayView2<'a, E>,
    pub(crate) step: LstmStep<'a, E>,
}

impl<E: Storage> SingleStep<'_, E> {
    pub(crate) fn compute(self, context: &Context<'_>, outputs: BlockCellOutputs<'_, E>) {
        let BlockCellOutputs { i, cs, f, o, ci, co, h } = outputs;
        let tiling = gemm::cell_tiling(context, StepShape::new(self.cs_prev.dim(), 4));
        let product = Product::plain(tiling, self.w_h);
        let at = At::only_step(context);
        let of_x = Input::Product(self.x, self.w_x);
        let products = product.after(of_x, at.rows, Some(self.h_prev));
        self.step.run(at, products, self.cs_prev, [i, cs, f, o, ci, co, h]);
    }
}
