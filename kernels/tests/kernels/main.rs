//! Every kernel through the Rust API.
//!
//! One crate, because the kernels are generic: each crate that calls them compiles them again.

#[path = "../common/mod.rs"]
mod common;

mod accuracy;
mod determinism;
mod empty;
mod errors;
mod oracle_gradients;
mod overflow;
mod properties;
mod sequences;
mod values;
