//! Rewrites: what they look for, their conditions, and what they put in its place.

mod candidate;
pub(crate) mod cells;
pub(crate) mod keras2_functions;
mod layer;
pub(crate) mod loops;
mod replacement;
pub(crate) mod shield;
pub(crate) mod slices;
pub(crate) mod sums;
pub(crate) mod unrolled;
mod zeros;
