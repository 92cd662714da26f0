//! Storage of tensors' elements. Arithmetic is in `f32` whatever the storage.

use half::{bf16, f16};

use crate::ops::DataType;
use crate::simd::{MOST_LANES, Simd};

/// How the elements of a tensor are stored: as `f32`, [`struct@f16`] or [`struct@bf16`].
pub trait Storage: Copy + Send + Sync + 'static + sealed::Sealed {
    /// Zero.
    const ZERO: Self;

    /// The type, as operations have it.
    const TYPE: DataType;

    /// Whether elements have 16 bits. Then a tensor's memory is too small for as many `f32`.
    const IS_16_BIT: bool = size_of::<Self>() == 2;

    /// Converts exactly.
    fn to_f32(self) -> f32;

    /// Rounds to nearest, ties to even.
    fn from_f32(value: f32) -> Self;

    /// The first elements of `from` as a vector: all lanes, or `from.len()` of them and then zeros.
    fn load<S: Simd>(simd: S, from: &[Self]) -> S::F32;

    /// Rounds the lanes into `to`: as many as `to` has places, at most all.
    fn store<S: Simd>(simd: S, vector: S::F32, to: &mut [Self]);

    /// A vector as it is after it was stored.
    fn rounded<S: Simd>(simd: S, vector: S::F32) -> S::F32;

    /// The elements, if their type is `f32`.
    #[inline(always)]
    fn as_f32(_: &[Self]) -> Option<&[f32]> {
        None
    }

    /// The elements, if their type is `f32`.
    #[inline(always)]
    fn as_f32_mut(_: &mut [Self]) -> Option<&mut [f32]> {
        None
    }
}

impl Storage for f32 {
    const ZERO: Self = 0.0;
    const TYPE: DataType = DataType::Float;

    fn to_f32(self) -> f32 {
        self
    }

    fn from_f32(value: f32) -> Self {
        value
    }

    #[inline(always)]
    fn load<S: Simd>(simd: S, from: &[Self]) -> S::F32 {
        simd.load(from)
    }

    #[inline(always)]
    fn store<S: Simd>(simd: S, vector: S::F32, to: &mut [Self]) {
        simd.store(vector, to);
    }

    #[inline(always)]
    fn rounded<S: Simd>(_: S, vector: S::F32) -> S::F32 {
        vector
    }

    #[inline(always)]
    fn as_f32(elements: &[Self]) -> Option<&[f32]> {
        Some(elements)
    }

    #[inline(always)]
    fn as_f32_mut(elements: &mut [Self]) -> Option<&mut [f32]> {
        Some(elements)
    }
}

/// Types of 16 bits, and the methods of [`Simd`] that load and store them.
macro_rules! of_16_bits {
    ($($type:ident = $of:ident: $load:ident, $store:ident;)+) => {
        $(impl Storage for $type {
            const ZERO: Self = $type::ZERO;
            const TYPE: DataType = DataType::$of;

            fn to_f32(self) -> f32 {
                self.to_f32()
            }

            fn from_f32(value: f32) -> Self {
                $type::from_f32(value)
            }

            #[inline(always)]
            fn load<S: Simd>(simd: S, from: &[Self]) -> S::F32 {
                simd.$load(from)
            }

            #[inline(always)]
            fn store<S: Simd>(simd: S, vector: S::F32, to: &mut [Self]) {
                simd.$store(vector, to);
            }

            #[inline(always)]
            fn rounded<S: Simd>(simd: S, vector: S::F32) -> S::F32 {
                let mut lanes = [$type::ZERO; MOST_LANES];
                let lanes = &mut lanes[..S::LANES];
                simd.$store(vector, lanes);
                simd.$load(lanes)
            }
        })+
    };
}

of_16_bits! {
    f16 = Half: load_f16, store_f16;
    bf16 = BFloat16: load_bf16, store_bf16;
}

mod sealed {
    /// Keeps [`super::Storage`] to the types of this module.
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
}
