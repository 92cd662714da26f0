//! Long short-term memory, one step, with optional diagonal peepholes: Gers, Schraudolph and
//! Schmidhuber, "Learning Precise Timing with LSTM Recurrent Networks" (2002); Sak, Senior and
//! Beaufays, "Long Short-Term Memory Recurrent Neural Network Architectures for Large Scale
//! Acoustic Modeling" (2014).
//!
//! The forward step, with the gates in the column order ICFO (input, cell input, forget, output),
//! `S` the logistic function, and the terms in brackets only with peepholes:
//!
//! ```text
//! [i_bar | ci_bar | f_bar | o_bar] = [x | h_prev] @ w + b
//! i  = S(i_bar [+ wci * cs_prev])     f  = S(f_bar + forget_bias [+ wcf * cs_prev])
//! ci = tanh(ci_bar)                   cs = clip(i * ci + f * cs_prev)
//! o  = S(o_bar [+ wco * cs])          co = tanh(cs)          h = o * co
//! ```
//!
//! `clip(v) = min(max(v, -k), k)` with `k = cell_clip` if `cell_clip > 0`, otherwise `v`.

pub(crate) mod cell;
pub(crate) mod cell_grad;
pub(crate) mod normalized;
pub(crate) mod step;
pub(crate) mod step_grad;

pub use cell::{BlockCellInputs, BlockCellOutputs, block_cell};
pub use cell_grad::{BlockCellGradInputs, BlockCellGradOutputs, block_cell_grad};

use crate::Storage;

/// The attributes of the forward operations, as in a TensorFlow graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attributes {
    /// Whether there are peepholes.
    pub use_peephole: bool,
    /// Added to the forget gate's pre-activation.
    pub forget_bias: f32,
    /// The magnitude the cell state is clipped to; 0, negative numbers and NaN mean no clipping.
    pub cell_clip: f32,
}

impl Attributes {
    /// `forget_bias` as used in computations on elements of type `E`, to which it is rounded.
    #[must_use]
    pub fn forget_bias_in<E: Storage>(&self) -> f32 {
        E::from_f32(self.forget_bias).to_f32()
    }

    /// `cell_clip` as used in computations on elements of type `E`; `None` for no clipping.
    ///
    /// As in TensorFlow, the unrounded attribute decides whether states are clipped, and is then rounded to `E`: in
    /// half, 1e-9 becomes 0, which clips all states to 0, and 1e6 becomes infinity, which clips nothing.
    #[must_use]
    pub fn cell_clip_in<E: Storage>(&self) -> Option<f32> {
        (self.cell_clip > 0.0).then(|| E::from_f32(self.cell_clip).to_f32())
    }
}
