//! The precision of matrix products, and the type in which constant weights are packed.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::Isa;

/// The precision of matrix products in float32. States, equations and sums are always float32.
///
/// A lower level is used only where it is faster. Otherwise, and on processors that do not support it, a higher level
/// is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// Factors, or only weights, in bfloat16.
    Medium,
    /// Factors as sums of two numbers in bfloat16.
    High,
    /// Factors in float32.
    #[default]
    Highest,
}

impl Precision {
    /// All levels, the highest first.
    pub const ALL: [Self; 3] = [Self::Highest, Self::High, Self::Medium];

    /// The level that is used for this one on an instruction set: a higher one if the processor does not support it.
    /// *High* needs three products, which take longer with AVX512-BF16 than one in float32. Without instructions for
    /// bfloat16, *Medium* rounds only weights, and only for few rows.
    #[must_use]
    pub fn on(self, isa: Isa) -> Self {
        let has_medium = isa.has_pairs() || isa.rounds();
        if self == Self::Medium && has_medium { self } else { Self::Highest }
    }

    /// `"highest"`, `"high"` or `"medium"`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Highest => "highest",
            Self::High => "high",
            Self::Medium => "medium",
        }
    }
}

/// The type in which constant weights are packed.
///
/// In int8, the forward steps of a sequence multiply by packed weights where that is faster. Weights have a scale for
/// each column, and left factors, which are rounded in the call, one for each row. Sums are int32; states, equations
/// and outputs are float32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weights {
    /// According to [`Precision`].
    #[default]
    Float32,
    /// In int8.
    Int8,
    /// In int8, except for the weights of x.
    Int8ExceptX,
}

impl Weights {
    /// All types, the default first.
    pub const ALL: [Self; 3] = [Self::Float32, Self::Int8, Self::Int8ExceptX];

    /// `"float32"`, `"int8"` or `"int8_except_x"`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Int8 => "int8",
            Self::Int8ExceptX => "int8_except_x",
        }
    }
}

/// Which products of a call were computed at a lower precision than float32.
#[derive(Debug, Default)]
pub struct Ran {
    in_int8: AtomicBool,
    in_bfloat16: AtomicBool,
}

impl Ran {
    /// Whether weights were in int8.
    #[must_use]
    pub fn in_int8(&self) -> bool {
        self.in_int8.load(Ordering::Relaxed)
    }

    /// Whether factors were in bfloat16.
    #[must_use]
    pub fn in_bfloat16(&self) -> bool {
        self.in_bfloat16.load(Ordering::Relaxed)
    }

    pub(crate) fn note_int8(&self) {
        self.in_int8.store(true, Ordering::Relaxed);
    }

    pub(crate) fn note_bfloat16(&self) {
        self.in_bfloat16.store(true, Ordering::Relaxed);
    }
}
