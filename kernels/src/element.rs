//! Storage types of tensors. Arithmetic is in `f32` whatever the storage.

use half::f16;

use crate::compiled::Kernels;
use crate::simd::Simd;

/// An element type of a tensor.
pub trait Element: Copy + Send + Sync + 'static + Kernels {
    /// Zero.
    const ZERO: Self;

    /// Converts exactly.
    fn to_f32(self) -> f32;

    /// Rounds to nearest, ties to even.
    fn from_f32(value: f32) -> Self;

    /// The first elements of `from` as a vector: all lanes, or `from.len()` of them and then zeros.
    fn load<S: Simd>(simd: S, from: &[Self]) -> S::F32;

    /// Rounds the lanes into `to`: as many as `to` has places, at most all.
    fn store<S: Simd>(simd: S, vector: S::F32, to: &mut [Self]);

    /// The elements as numbers of type `f32`, if they are.
    fn as_f32_mut(elements: &mut [Self]) -> Option<&mut [f32]>;
}

impl Element for f32 {
    const ZERO: Self = 0.0;

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

    fn as_f32_mut(elements: &mut [Self]) -> Option<&mut [f32]> {
        Some(elements)
    }
}

impl Element for f16 {
    const ZERO: Self = f16::ZERO;

    fn to_f32(self) -> f32 {
        self.to_f32()
    }

    fn from_f32(value: f32) -> Self {
        f16::from_f32(value)
    }

    #[inline(always)]
    fn load<S: Simd>(simd: S, from: &[Self]) -> S::F32 {
        simd.load_f16(from)
    }

    #[inline(always)]
    fn store<S: Simd>(simd: S, vector: S::F32, to: &mut [Self]) {
        simd.store_f16(vector, to);
    }

    fn as_f32_mut(_: &mut [Self]) -> Option<&mut [f32]> {
        None
    }
}
