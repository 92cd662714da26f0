//! Instruction sets: what the processor can do, as values that exist only where it can.
//!
//! An algorithm is written once, generic over [`Simd`], and given to [`Isa::run`] as a value of a type that
//! implements [`WithSimd`]. `run` enters it through a function compiled for the instruction set. Everything
//! that the algorithm calls must be `#[inline(always)]` to be compiled for it too, or be entered through
//! [`Simd::enter`].
//!
//! A token of [`Simd`] (such as `avx512::Avx512`) can be made only after the processor was asked, so holding one
//! proves that its instructions may be executed.
//!
//! This module and its children are the only place of the crate where `unsafe` is allowed.

// The intrinsics are `unsafe`. For each instruction we rely on the proof above. For each access to memory we rely on
// the slice to have as many elements as the instruction touches; lanes that are masked out touch none.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
mod twice;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::{Add, Div, Mul, Sub};
use std::sync::OnceLock;

use half::f16;

pub(crate) use twice::Twice;

/// Numbers in the longest vector: two of AVX-512.
pub(crate) const MOST_LANES: usize = 32;

/// Bytes in a cache line.
pub(crate) const LINE: usize = 64;

/// Vectors of `f32` of one instruction set, and the proof that the processor has it.
pub trait Simd: Copy + Send + Sync + 'static {
    /// A vector of [`Self::LANES`] numbers.
    type F32: Copy
        + Add<Output = Self::F32>
        + Sub<Output = Self::F32>
        + Mul<Output = Self::F32>
        + Div<Output = Self::F32>;

    /// Numbers in a vector.
    const LANES: usize;

    /// Vectors that fit in registers.
    const REGISTERS: usize;

    /// How precise [`Simd::reciprocal_estimate`] is.
    const ESTIMATE_BITS: u32;

    /// `value` in every lane.
    fn splat(self, value: f32) -> Self::F32;

    /// The first elements of `from`: all lanes, or `from.len()` of them and then zeros.
    fn load(self, from: &[f32]) -> Self::F32;

    /// Writes lanes to the front of `to`: all of them, or `to.len()`.
    fn store(self, vector: Self::F32, to: &mut [f32]);

    /// [`Simd::load`] with conversion from half, which is exact.
    fn load_f16(self, from: &[f16]) -> Self::F32;

    /// [`Simd::store`] with conversion to half, to nearest, ties to even.
    fn store_f16(self, vector: Self::F32, to: &mut [f16]);

    /// Runs `work` in a function of its own, compiled for the instruction set: a call in place of one more copy.
    fn enter<W: WithSimd<T>, T>(self, work: W) -> T;

    /// Prefetches the cache line at `address`, which need not be valid, into the first level cache.
    fn prefetch(self, address: *const u8);

    /// [`Simd::prefetch`] to the second level cache.
    fn prefetch_second_level(self, address: *const u8);

    /// `a * b + c`, rounded once where the instruction set can.
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;

    /// `c - a * b`, rounded once.
    fn neg_mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;

    /// The larger of `a` and `b`; `b` where one is NaN.
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32;

    /// The smaller of `a` and `b`; `b` where one is NaN.
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32;

    /// The magnitude.
    fn abs(self, vector: Self::F32) -> Self::F32;

    /// `vector` where the magnitude of `tested` is at most `bound`; zero elsewhere, and where one of these is NaN.
    fn where_within(self, vector: Self::F32, tested: Self::F32, bound: Self::F32) -> Self::F32;

    /// `magnitude`, which is not negative, with the sign of `sign`.
    fn copysign(self, magnitude: Self::F32, sign: Self::F32) -> Self::F32;

    /// The nearest integer, ties to even, for magnitudes below 2^22.
    fn round(self, vector: Self::F32) -> Self::F32;

    /// `2^n` for integers up to 127; for those below -126 that or `2^-126`.
    fn power_of_2(self, n: Self::F32) -> Self::F32;

    /// `vector * 2^n` for integers from -252 to 252, rounded once.
    fn scale(self, vector: Self::F32, n: Self::F32) -> Self::F32;

    /// `1 / vector` for normal numbers, to [`Self::ESTIMATE_BITS`].
    fn reciprocal_estimate(self, vector: Self::F32) -> Self::F32;

    /// The lanes of `a` and `b` in turn, `a[0], b[0], a[1], ...`, as two vectors.
    fn interleave(self, a: Self::F32, b: Self::F32) -> [Self::F32; 2];

    /// The sum of all lanes, always in the same order.
    fn sum(self, vector: Self::F32) -> f32;
}

/// A piece of work that is compiled once for each instruction set, and returns a `T`.
pub trait WithSimd<T = ()> {
    /// Does the work. Implementations are `#[inline(always)]`.
    fn run<S: Simd>(self, simd: S) -> T;
}

/// An instruction set that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Isa(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Portable(portable::Portable),
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
}

impl Isa {
    /// The environment variable that forces an instruction set: `portable`, `avx2` or `avx512`.
    pub const VARIABLE: &'static str = "BLOCKCELL_ISA";

    /// The instruction sets of this processor, the best last.
    #[must_use]
    pub fn available() -> Vec<Isa> {
        let mut all = vec![Isa(Kind::Portable(portable::Portable))];
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(avx2::Avx2::new().map(|simd| Isa(Kind::Avx2(simd))));
            all.extend(avx512::Avx512::new().map(|simd| Isa(Kind::Avx512(simd))));
        }
        all
    }

    /// The instruction set to use: the one that `BLOCKCELL_ISA` names if the processor has it, otherwise the
    /// best. The environment is read once, by the rule of [`switch`](crate::switch()).
    #[must_use]
    pub fn get() -> Isa {
        static CHOSEN: OnceLock<Isa> = OnceLock::new();
        *CHOSEN.get_or_init(|| {
            let meaning = |place| if place == 0 { "the best of this processor" } else { "slower" };
            let best_first = Isa::available().into_iter().rev().enumerate();
            let values: Vec<_> =
                best_first.map(|(place, isa)| (isa.name(), isa, meaning(place))).collect();
            crate::switch(Isa::VARIABLE, &values)
        })
    }

    /// `"portable"`, `"avx2"` or `"avx512"`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable(_) => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(_) => "avx512",
        }
    }

    /// How many `f32` a vector holds.
    #[must_use]
    pub fn lanes(self) -> usize {
        self.run(Vectors).0
    }

    /// How many vectors fit in registers.
    #[must_use]
    pub fn registers(self) -> usize {
        self.run(Vectors).1
    }

    /// Runs `work`, compiled for this instruction set.
    #[inline]
    pub fn run<W: WithSimd<T>, T>(self, work: W) -> T {
        match self.0 {
            Kind::Portable(simd) => simd.enter(work),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(simd) => simd.enter(work),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(simd) => simd.enter(work),
        }
    }
}

/// The lanes of a vector, and how many vectors fit in registers.
struct Vectors;

impl WithSimd<(usize, usize)> for Vectors {
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> (usize, usize) {
        (S::LANES, S::REGISTERS)
    }
}
