//! Reading a graph: what tensors are computed from, and what that means.

pub(crate) mod accumulators;
pub(crate) mod clips;
pub(crate) mod constants;
pub(crate) mod functions;
pub(crate) mod gradients;
pub(crate) mod neighbours;
pub(crate) mod normalizations;
pub(crate) mod products;
pub(crate) mod stacks;
pub(crate) mod terms;
pub(crate) mod variables;
