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
//! A row of the batch ends after `sequence_length` steps of its own: past them its outputs are zero
//! and its state is carried on.

mod backward;
pub(crate) mod forward;
pub(crate) mod grad;
mod lengths;
mod recurrence;

pub use forward::{Inputs, Outputs, forward, forward_scratch};
pub use grad::{GradInPlace, GradInputs, GradOutputs, grad, grad_scratch};
