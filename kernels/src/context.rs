//! What a call runs on.

use crate::constants::Constants;
use crate::executor::{Executor, Serial};
use crate::simd::Isa;
use crate::tuning::{PAIR_TERMS, QUAD_TERMS};
use crate::{Precision, Ran, Storage, Weights};

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
    /// Notes what the call computes with less than float32; none by default.
    pub ran: Option<&'e Ran>,
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
            ran: None,
            constants: Constants::default(),
        }
    }

    /// Whether factors of products are rounded to bfloat16, which is noted. Those of 16 bits stay as they are.
    pub(crate) fn takes_pairs<E: Storage>(&self) -> bool {
        self.noted(self.wants_pairs::<E>())
    }

    /// The same before it is known whether there are such products.
    fn wants_pairs<E: Storage>(&self) -> bool {
        self.is_medium::<E>() && self.isa.has_pairs()
    }

    /// Whether weights are rounded to bfloat16, and nothing else, which is noted. `pays` tells where reading them takes
    /// longer than multiplying.
    pub(crate) fn takes_rounded_weights<E: Storage>(&self, pays: bool) -> bool {
        self.noted(self.is_medium::<E>() && !self.isa.has_pairs() && pays)
    }

    fn noted(&self, in_bfloat16: bool) -> bool {
        if let Some(ran) = self.ran.filter(|_| in_bfloat16) {
            ran.note_bfloat16();
        }
        in_bfloat16
    }

    fn is_medium<E: Storage>(&self) -> bool {
        !E::IS_16_BIT && self.precision.on(self.isa) == Precision::Medium
    }

    /// Whether constant weights are packed in int8. Those of 16 bits stay as they are.
    pub(crate) fn wants_quads<E: Storage>(&self) -> bool {
        !E::IS_16_BIT && self.weights != Weights::Float32
    }

    /// The same for products of x.
    pub(crate) fn for_x(&self) -> Self {
        let keeps_x = self.weights == Weights::Int8ExceptX;
        Context { weights: if keeps_x { Weights::Float32 } else { self.weights }, ..*self }
    }

    /// Notes that weights in int8 are multiplied by.
    pub(crate) fn note_int8(&self) {
        if let Some(ran) = self.ran {
            ran.note_int8();
        }
    }

    /// The same for products for which a lower precision pays, or for others.
    pub(crate) fn where_it_pays(&self, pays: bool) -> Self {
        if pays { *self } else { Context { precision: Precision::Highest, ..*self } }
    }

    /// The bytes of a weight of products of `terms` terms in every step of a sequence, as it is packed.
    pub(crate) fn weight_bytes<E: Storage>(&self, terms: usize) -> usize {
        if self.wants_quads::<E>() && terms >= QUAD_TERMS {
            size_of::<i8>()
        } else if self.wants_pairs::<E>() && terms >= PAIR_TERMS {
            size_of::<u16>()
        } else {
            size_of::<f32>()
        }
    }
}

impl Default for Context<'_> {
    /// The calling thread and [`Isa::get`].
    fn default() -> Self {
        Context::new(Isa::get(), &Serial)
    }
}
