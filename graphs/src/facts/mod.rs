//! Facts about a whole graph, which the conditions of rewrites ask for.

pub(crate) mod availability;
pub(crate) mod levels;
pub(crate) mod memory;
pub(crate) mod placement;
pub(crate) mod shapes;
pub(crate) mod waits;
pub(crate) mod writers;
