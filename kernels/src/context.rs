//! What a call runs on.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::constants::Constants;
use crate::executor::{Executor, Serial};
use crate::simd::Isa;
use crate::{Precision, Storage, Weights};

/// What a call runs on.
#[derive(Clone, Copy)]
pub struct Context<'e> {
    /// The instruction set.
    pub isa: Isa,
    /// The threads.
    pub executor: &'e dyn Executor,
    /// How precise products are; the highest by default.
    pub precision: Precision,
    /// What constant weights are packed as; float32 by default.
    pub weights: Weights,
    /// Set where a product is computed in int8; none by default.
    pub ran_int8: Option<&'e AtomicBool>,
    /// Inputs that are the same in every call; none by default.
    pub constants: Constants<'e>,
}

impl<'e> Context<'e> {
    /// These, and no constants.
    #[must_use]
    pub fn new(isa: Isa, executor: &'e dyn Executor) -> Self {
        Context {
            isa,
            executor,
            precision: Precision::default(),
            weights: Weights::default(),
            ran_int8: None,
            constants: Constants::default(),
        }
    }

    /// Whether factors of products are rounded to bfloat16. Half keeps its precision.
    pub(crate) fn wants_pairs<E: Storage>(&self) -> bool {
        !E::IS_HALF && self.precision.on(self.isa) == Precision::Medium
    }

    /// Whether constant weights are packed in int8. Half keeps its precision.
    pub(crate) fn wants_quads<E: Storage>(&self) -> bool {
        !E::IS_HALF && self.weights != Weights::Float32
    }

    /// The same for products of x.
    pub(crate) fn for_x(&self) -> Self {
        let keeps_x = self.weights == Weights::Int8ExceptX;
        Context { weights: if keeps_x { Weights::Float32 } else { self.weights }, ..*self }
    }

    /// Notes that weights in int8 are multiplied by.
    pub(crate) fn note_int8(&self) {
        if let Some(ran) = self.ran_int8 {
            ran.store(true, Ordering::Relaxed);
        }
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
