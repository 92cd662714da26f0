//! One step of a plain LSTM cell, as graphs write it with small operations: the equations of
//! [`crate::lstm`], for tensors that `LSTMBlockCell` and its gradient would refuse.
//!
//! * Small operations broadcast: the state of one row may stand for that of all rows.
//! * A state of zeros is left out.
//! * The gradients of the state and of the output are lists of summands; without one, it is zero.
//! * With a projection, the output is narrower than the state.
//! * The backward step takes what its equations read. It adds gradients up where the state is larger
//!   than the gates.

mod lstm;
mod lstm_grad;
mod lstm_grad_sums;

pub use lstm::{LSTM_CELL, LstmCellInputs, LstmCellOutputs, LstmCellShapes};
pub use lstm::{lstm_cell, lstm_cell_scratch, lstm_cell_shapes};
pub use lstm_grad::{LSTM_CELL_GRAD, LstmCellGradInputs, LstmCellGradOutputs, LstmCellGradShapes};
pub use lstm_grad::{lstm_cell_grad, lstm_cell_grad_scratch, lstm_cell_grad_shapes};

pub(crate) use lstm::compute as compute_lstm_cell;
pub(crate) use lstm_grad::compute as compute_lstm_cell_grad;
