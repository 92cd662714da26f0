//! Gated recurrent unit over a sequence, with a length for each row of the batch: operations that
//! TensorFlow does not have.
//!
//! There are two conventions of where the reset gate acts:
//!
//! * `reset_after = false`: before the matrix product, as in `GRUBlockCell` ([`crate::gru`]); Cho et
//!   al., "Learning Phrase Representations using RNN Encoder-Decoder" (2014).
//! * `reset_after = true`: after it, which gives the product a bias of its own; the default of
//!   Keras, and what cuDNN computes.
//!
//! Each row of the batch ends after a number of steps of its own, `sequence_length`. Past them its outputs are zero
//! and its state stays as it is.
//!
//! The equations stand with [`forward()`] and [`grad()`].

pub(crate) mod forward;
pub(crate) mod grad;

use crate::Activations;

pub use forward::{Inputs, Outputs, forward, forward_scratch};
pub use grad::{GradInPlace, GradInputs, GradOutputs, grad, grad_scratch};

/// The attributes of both operations, as they stand in a TensorFlow graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Whether the reset gate is applied after the matrix product.
    pub reset_after: bool,
    /// The functions of the gates, and of the candidate.
    pub activations: Activations,
}
