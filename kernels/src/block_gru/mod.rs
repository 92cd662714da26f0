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

pub use forward::{Inputs, Outputs, forward, forward_scratch};
pub use grad::{GradInPlace, GradInputs, GradOutputs, grad, grad_scratch};
