//! Long short-term memory over a sequence: the cell of [`crate::lstm`] applied to the steps of a time-major input,
//! where the state of each step is that of the previous step.
//!
//! TensorFlow has two variants, which differ in the order of the gates' columns in w and b; the order of their outputs
//! is the same. All rows of the batch have the same length: steps from `seq_len_max` on are skipped, and every output
//! is zero there.
//!
//! This library has a third one, with a length for each row and a choice of activations: [`forward_by_row`] and
//! [`grad_by_row`].

pub(crate) mod by_row;
pub(crate) mod forward;
pub(crate) mod grad;

pub use by_row::{
    ByRowGradInPlace, ByRowGradInputs, ByRowGradOutputs, ByRowInputs, ByRowOutputs, forward_by_row,
    grad_by_row,
};
pub(crate) use forward::LstmSequence;
pub use forward::{Inputs, Outputs, forward, forward_scratch};
pub(crate) use grad::LstmGradSequence;
pub use grad::{GradInPlace, GradInputs, GradOutputs, grad, grad_scratch};

use crate::lstm::step::{GateOrder, ICFO, IFCO};
use crate::ops::{BLOCK_LSTM, BLOCK_LSTM_GRAD, BLOCK_LSTM_GRAD_V2, BLOCK_LSTM_V2, Op};

/// One of TensorFlow's two operations, which order the columns of w and b differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// `BlockLSTM` and `BlockLSTMGrad`: ICFO, for input gate, cell input, forget gate, output gate.
    BlockLstm,
    /// `BlockLSTMV2` and `BlockLSTMGradV2`: IFCO. They have no `forget_bias`: it is 0.
    BlockLstmV2,
}

impl Variant {
    /// Where the gates' columns are.
    pub(crate) fn order(self) -> GateOrder {
        match self {
            Variant::BlockLstm => ICFO,
            Variant::BlockLstmV2 => IFCO,
        }
    }

    /// The forward operation.
    #[must_use]
    pub fn op(self) -> &'static Op {
        match self {
            Variant::BlockLstm => &BLOCK_LSTM,
            Variant::BlockLstmV2 => &BLOCK_LSTM_V2,
        }
    }

    /// The operation of the gradient.
    #[must_use]
    pub fn grad_op(self) -> &'static Op {
        match self {
            Variant::BlockLstm => &BLOCK_LSTM_GRAD,
            Variant::BlockLstmV2 => &BLOCK_LSTM_GRAD_V2,
        }
    }
}
