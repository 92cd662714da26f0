//! Every op through the Rust API, and the oracle against finite differences.
//!
//! One crate, so that what the tests share is compiled once.

#[path = "../common/mod.rs"]
mod common;

mod accuracy;
mod activations;
mod constants;
mod cudnn_rnn;
mod determinism;
mod empty;
mod errors;
mod guards;
mod int8;
mod keras_layers;
mod layer_norm;
mod normalized;
mod oracle_gradients;
mod overflow;
mod precision;
mod products;
mod properties;
mod sequences;
mod unfused;
mod unfused_gru;
mod unfused_layers;
mod unfused_lstm_grad;
mod unfused_numbers;
mod values;

/// For `guards`; it is the system's everywhere else.
#[global_allocator]
static ALLOCATOR: guards::allocator::Guards = guards::allocator::Guards;
