//! Steps of plain cells, as graphs write them with small operations, and loops of such steps.
//!
//! For an LSTM cell: the equations of [`crate::lstm`], for tensors that `LSTMBlockCell` and its gradient would
//! refuse.
//!
//! * Small operations broadcast: the state of one row may stand for that of all rows.
//! * A state of zeros is left out.
//! * The gradients of the state and of the output are lists of summands; without one, it is zero.
//! * With a projection, the output is narrower than the state.
//! * The backward step takes what its equations read. It adds gradients up where the state is larger
//!   than the gates. What was clipped gets no gradient.
//!
//! For a GRU cell: the equations of [`crate::gru`] backward, without the products, which are operations of
//! their own in a graph. The forward step is `GRUBlockCell`, or [`gru_cell`] where that does not compute the same.
//!
//! And the normalizations of cells whose gradient somebody takes, each for itself.

mod columns;
mod gru;
mod gru_grad;
mod gru_layer;
mod keras;
mod keras_gru;
mod keras_lstm;
mod layer_norm;
mod loops;
mod lstm;
mod lstm_grad;
mod lstm_grad_equations;
mod lstm_grad_sums;
mod lstm_layer;
mod memory;
mod normalized;
mod normalized_layer;
mod one_round;
mod rows;

pub use columns::GateColumns;
pub use gru::{GruAttributes, GruCellInputs, GruCellOutputs};
pub use gru::{gru_cell, gru_cell_scratch, gru_cell_shapes};
pub use gru_grad::gru_cell_grad_scratch;
pub use gru_grad::{GruCellGradCInputs, GruCellGradCOutputs, gru_cell_grad_c};
pub use gru_grad::{GruCellGradRuInputs, GruCellGradRuOutputs, gru_cell_grad_ru};
pub use gru_layer::{GruLayerInputs, GruLayerOutputs};
pub use gru_layer::{gru_layer, gru_layer_scratch, gru_layer_shapes};
pub use keras_gru::{KerasGruInputs, KerasGruOutputs};
pub use keras_gru::{keras_gru, keras_gru_scratch, keras_gru_shapes};
pub use keras_lstm::{KerasLstmInputs, KerasLstmOutputs};
pub use keras_lstm::{keras_lstm, keras_lstm_scratch, keras_lstm_shapes};
pub use layer_norm::{LayerNormAttributes, LayerNormInputs, LayerNormOutputs};
pub use layer_norm::{LayerNormGradAttributes, LayerNormGradInputs, LayerNormGradOutputs};
pub use layer_norm::{layer_norm, layer_norm_shapes};
pub use layer_norm::{layer_norm_grad, layer_norm_grad_scratch, layer_norm_grad_shapes};
pub use loops::{Loop, Numbers, copied_x};
pub use lstm::{LstmCellInputs, LstmCellOutputs};
pub use lstm::{lstm_cell, lstm_cell_scratch, lstm_cell_shapes};
pub use lstm_grad::{LstmCellGradAttributes, LstmCellGradInputs, LstmCellGradOutputs};
pub use lstm_grad::{lstm_cell_grad, lstm_cell_grad_scratch, lstm_cell_grad_shapes};
pub use lstm_layer::{LstmLayerInputs, LstmLayerOutputs};
pub use lstm_layer::{lstm_layer, lstm_layer_scratch, lstm_layer_shapes, projection_scratch};
pub use one_round::other_width_scratch;

pub use normalized::{NormalizedAttributes, NormalizedLstmCellInputs, NormalizedLstmCellOutputs};
pub use normalized::{
    normalized_lstm_cell, normalized_lstm_cell_scratch, normalized_lstm_cell_shapes,
};
pub use normalized_layer::{NormalizedLstmLayerInputs, NormalizedLstmLayerOutputs};
pub use normalized_layer::{
    normalized_lstm_layer, normalized_lstm_layer_scratch, normalized_lstm_layer_shapes,
};

pub(crate) use gru::compute as compute_gru_cell;
pub(crate) use gru_grad::{
    compute_c as compute_gru_cell_grad_c, compute_ru as compute_gru_cell_grad_ru,
};
pub(crate) use gru_layer::compute as compute_gru_layer;
pub(crate) use keras_gru::compute as compute_keras_gru;
pub(crate) use keras_lstm::compute as compute_keras_lstm;
pub(crate) use layer_norm::{
    compute as compute_layer_norm, compute_grad as compute_layer_norm_grad,
};
pub(crate) use lstm::compute as compute_lstm_cell;
pub(crate) use lstm_grad::compute as compute_lstm_cell_grad;
pub(crate) use lstm_layer::compute as compute_lstm_layer;
pub(crate) use normalized::compute as compute_normalized_lstm_cell;
pub(crate) use normalized_layer::compute as compute_normalized_lstm_layer;
