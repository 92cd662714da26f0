//! How precise products of matrices are, and what constant weights are packed as.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::Isa;

/// How precise products of matrices in float32 are. States, equations and sums are float32 in any case.
///
/// A lower level is chosen for its speed alone: where it does not pay, and where the processor has no instructions for
/// it, the level above runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// Factors in bfloat16, or weights alone.
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

    /// What runs at this level: a level above where the processor has no instructions for this one. *High* takes three
    /// products, which with AVX512-BF16 take longer than one in float32. *Medium* rounds weights alone, of few rows,
    /// where the processor cannot multiply numbers in bfloat16.
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

/// What weights that are constants of a call are packed as.
///
/// In int8, products are computed with the weights of a sequence in forward steps where that pays: weights have a scale
/// for each column, and their left factors, which are rounded in the call, one for each row. Sums are int32; states,
/// equations and outputs are float32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weights {
    /// As [`Precision`] says.
    #[default]
    Float32,
    /// In int8.
    Int8,
    /// In int8, but for the weights of x.
    Int8ExceptX,
}

impl Weights {
    /// All of them, the default first.
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

/// What a call has multiplied with less than float32.
#[derive(Debug, Default)]
pub struct Ran {
    in_int8: AtomicBool,
    in_bfloat16: AtomicBool,
}

impl Ran {
    /// Whether it had weights in int8.
    #[must_use]
    pub fn in_int8(&self) -> bool {
        self.in_int8.load(Ordering::Relaxed)
    }

    /// Whether it had factors in bfloat16.
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
