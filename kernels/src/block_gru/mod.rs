//! Gated recurrent unit over a sequence, with a length for each row of the batch: operations that
//! TensorFlow does not have.
//!
//! There are two conventions for the reset gate:
//!
//! * `reset_after = false`: before the matrix product, as in `GRUBlockCell` ([`crate::gru`]); Cho et
//!   al., "Learning Phrase Representations using RNN Encoder-Decoder" (2014).
//! * `reset_after = true`: after it, with a separate bias of the product; as in cuDNN, and by default in Keras.
//!
//! Each row of the batch has its own number of steps, `sequence_length`. After them its outputs are zero and its state
//! does not change.
//!
//! The equations are in the documentation of the operations.

pub(crate) mod forward;
pub(crate) mod grad;

use crate::Activations;

pub use forward::{Inputs, Outputs, forward, forward_scratch};
pub use grad::{GradInPlace, GradInputs, GradOutputs, grad, grad_scratch};

/// The attributes of both operations, as in a TensorFlow graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Whether the reset gate is applied after the matrix product.
    pub reset_after: bool,
    /// The functions of the gates, and of the candidate.
    pub activations: Activations,
}
