//! What a call runs on.

use crate::constants::Constants;
use crate::executor::{Executor, Serial};
use crate::simd::Isa;
use crate::{Precision, Storage};

/// What a call runs on.
#[derive(Clone, Copy)]
pub struct Context<'e> {
    /// The instruction set.
    pub isa: Isa,
    /// The threads.
    pub executor: &'e dyn Executor,
    /// How precise products are; the highest by default.
    pub precision: Precision,
    /// Inputs that are the same in every call; none by default.
    pub constants: Constants<'e>,
}

impl<'e> Context<'e> {
    /// These, and no constants.
    #[must_use]
    pub fn new(isa: Isa, executor: &'e dyn Executor) -> Self {
        let (precision, constants) = (Precision::default(), Constants::default());
        Context { isa, executor, precision, constants }
    }

    /// Whether factors of products are rounded to bfloat16. Half keeps its precision.
    pub(crate) fn wants_pairs<E: Storage>(&self) -> bool {
        !E::IS_HALF && self.precision.on(self.isa) == Precision::Medium
    }

    /// The same for products for which a lower precision pays, or for others.
    pub(crate) fn where_it_pays(&self, pays: bool) -> Self {
        if pays { *self } else { Context { precision: Precision::Highest, ..*self } }
    }
}

impl Default for Context<'_> {
    /// The calling thread and [`Isa::get`].
    fn default() -> Self {
        Context::new(Isa::get(), &Serial)
    }
}
