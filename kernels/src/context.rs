//! What a call runs on.

use crate::constants::Constants;
use crate::executor::{Executor, Serial};
use crate::simd::Isa;

/// What a call runs on.
#[derive(Clone, Copy)]
pub struct Context<'e> {
    /// The instruction set.
    pub isa: Isa,
    /// The threads.
    pub executor: &'e dyn Executor,
    /// Inputs that are the same in every call; none by default.
    pub constants: Constants<'e>,
}

impl<'e> Context<'e> {
    /// These, and no constants.
    #[must_use]
    pub fn new(isa: Isa, executor: &'e dyn Executor) -> Self {
        Context { isa, executor, constants: Constants::default() }
    }
}

impl Default for Context<'_> {
    /// The calling thread and [`Isa::get`].
    fn default() -> Self {
        Context::new(Isa::get(), &Serial)
    }
}
