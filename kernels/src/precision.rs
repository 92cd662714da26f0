//! How precise products of matrices are, and what constant weights are packed as.

use crate::Isa;

/// How precise products of matrices in float32 are. States, equations and sums are float32 in any case.
///
/// A lower level is chosen for its speed alone: where it does not pay, and where the processor has no instructions for
/// it, the level above runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// Factors in bfloat16.
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
    /// products, which with AVX512-BF16 take longer than one in float32.
    #[must_use]
    pub fn on(self, isa: Isa) -> Self {
        if self == Self::Medium && isa.has_pairs() { self } else { Self::Highest }
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
