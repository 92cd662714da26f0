//! What the integration tests share: the operations behind one trait, float64 oracles, realistic
//! data, executors, and comparisons that report every failing case.

// Each test crate uses a part of it.
#![allow(dead_code)]

pub(crate) mod compare;
pub(crate) mod data;
pub(crate) mod executors;
pub(crate) mod kernels;
pub(crate) mod oracle;

/// The tensors of a call, in the operation's order. Values of every element type are exact in `f64`.
pub(crate) type Tensors = Vec<ndarray::ArrayD<f64>>;
