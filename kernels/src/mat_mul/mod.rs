//! The matrix products around a cell in a training graph: TensorFlow's `MatMul`, fused with what
//! stands before and after it.
//!
//! The gradient of a cell's weights is a product `[x | h_prev]^T @ dz` at every step, and the sum of
//! these over all steps. [`add_n`] computes the whole sum: no product is stored. The gradient of a
//! cell's inputs is `dz @ w^T`, cut in two; [`slice()`] computes the parts. [`bias_add_grad_add_n`] is the
//! sum for the biases.
//!
//! Products and sums are in `f32`, whatever the element type, and each result is rounded once. Each
//! element is summed in an order that depends on the shapes alone.

mod add_n;
mod bias;
mod slice;

pub use add_n::{AddNInputs, AddNOutputs, add_n, add_n_shapes};
pub use bias::{BiasInputs, BiasOutputs, bias_add_grad_add_n, bias_add_grad_add_n_shapes};
pub use slice::{Part, SliceInputs, SliceOutputs, slice, slice_shapes};

pub(crate) use add_n::compute as compute_add_n;
pub(crate) use bias::compute as compute_bias;
pub(crate) use slice::compute as compute_slice;
