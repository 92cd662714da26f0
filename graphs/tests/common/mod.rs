//! What the tests share: short words for graphs as text, checks of what becomes of them, a copy that
//! changes are replayed on, an executor, another one that computes numbers, and random graphs.

pub(crate) mod executor;
pub(crate) mod floats;
pub(crate) mod large;
pub(crate) mod notation;
pub(crate) mod random;
pub(crate) mod replay;
pub(crate) mod rewriting;
