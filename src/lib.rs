//! The shared library that a TensorFlow program loads by `tf.load_op_library`.
//!
//! The C++ shim in `cpp/` registers operations with TensorFlow and unpacks tensors; [`bridge`] turns
//! them into views and calls the kernels of the crate `blockcell_kernels`.

mod bridge;
mod functions;
mod graphs;
mod switches;
