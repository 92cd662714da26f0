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
mod int8;
#[cfg(target_arch = "aarch64")]
mod neon;
mod pairs;
mod portable;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
mod token;
mod twice;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::{Add, Div, Mul, Sub};
use std::sync::OnceLock;

use half::{bf16, f16};

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

    /// Whether rounding to bfloat16 and back takes a few instructions: [`Simd::pairs`], [`Simd::neighbours`] and
    /// [`Simd::unpair`].
    const ROUNDS: bool = false;

    /// What [`Simd::quads`] adds to each term.
    const QUAD_OFFSET: i32 = 0;

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

    /// [`Simd::load`] with conversion from bfloat16, which is exact.
    fn load_bf16(self, from: &[bf16]) -> Self::F32;

    /// [`Simd::store`] with conversion to bfloat16, to nearest, ties to even, as [`struct@bf16`] does it. It keeps
    /// what is subnormal.
    fn store_bf16(self, vector: Self::F32, to: &mut [bf16]);

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

    /// `low` and `high` of each lane, rounded to bfloat16, in the bits of that lane.
    #[inline(always)]
    fn pairs(self, low: Self::F32, high: Self::F32) -> Self::F32 {
        pairs::pairs(self, low, high)
    }

    /// The lanes of `first` and then of `rest`, rounded to bfloat16: each and its neighbour in the bits of one lane.
    #[inline(always)]
    fn neighbours(self, first: Self::F32, rest: Self::F32) -> Self::F32 {
        pairs::neighbours(self, first, rest)
    }

    /// `low` and `high` of each lane of [`Simd::pairs`].
    #[inline(always)]
    fn unpair(self, pairs: Self::F32) -> [Self::F32; 2] {
        pairs::unpair(self, pairs)
    }

    /// `c` and the products of both numbers in each lane of `a` and `b`, as [`Simd::pairs`] has them
    /// ([`Isa::has_pairs`]).
    #[inline(always)]
    fn add_pairs(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 {
        pairs::add_pairs(self, a, b, c)
    }

    /// Terms that follow each other, in four vectors, and have magnitudes of at most 127: rounded to int8, to nearest, ties
    /// to even, and four neighbours in the bits of each lane, with [`Simd::QUAD_OFFSET`] added to each.
    #[inline(always)]
    fn quads(self, terms: [Self::F32; 4]) -> Self::F32 {
        int8::quads(self, terms)
    }

    /// `c`, an int32 in the bits of each lane, and the products of the four terms there of `a`, as [`Simd::quads`] has
    /// them, and of `b`, in int8 without an offset.
    #[inline(always)]
    fn add_quads(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 {
        int8::add_quads(self, a, b, c)
    }

    /// The numbers that are int32 in the bits of each lane.
    #[inline(always)]
    fn of_integers(self, integers: Self::F32) -> Self::F32 {
        int8::of_integers(self, integers)
    }

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
pub struct Isa {
    kind: Kind,
    pairs: Pairs,
    quads: Quads,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Portable(portable::Portable),
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon<{ neon::PLAIN }>),
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2<false>),
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512<{ avx512::PLAIN }>),
}

/// What computes with pairs of numbers in bfloat16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pairs {
    None,
    /// The model of the instructions.
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512<{ avx512::BF16 }>),
}

/// What computes with four terms in int8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Quads {
    /// What computes with all else.
    Kind,
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon<{ neon::DOT }>),
    #[cfg(target_arch = "x86_64")]
    AvxVnni(avx2::Avx2<true>),
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512<{ avx512::VNNI }>),
}

impl Isa {
    /// The environment variable that forces an instruction set: `portable`, `neon`, `neon_dotprod`, `avx2`, `avx2_vnni`,
    /// `avx512`, `avx512_vnni`, `avx512_bf16`, or `portable_bf16` ([`Isa::model`]).
    pub const VARIABLE: &'static str = "BLOCKCELL_ISA";

    /// The instruction sets of this processor, the best last. The best has all that there is for pairs and for int8.
    #[must_use]
    pub fn available() -> Vec<Isa> {
        let kinds = [
            Some(Kind::Portable(portable::Portable)),
            #[cfg(target_arch = "aarch64")]
            neon::Neon::<{ neon::PLAIN }>::new().map(Kind::Neon),
            #[cfg(target_arch = "x86_64")]
            avx2::Avx2::<false>::new().map(Kind::Avx2),
            #[cfg(target_arch = "x86_64")]
            avx512::Avx512::<{ avx512::PLAIN }>::new().map(Kind::Avx512),
        ];
        let mut all: Vec<_> = kinds.into_iter().flatten().map(Isa::plain).collect();
        if let Some(best) = all.last_mut() {
            *best = best.whole();
        }
        all
    }

    fn plain(kind: Kind) -> Self {
        Isa { kind, pairs: Pairs::None, quads: Quads::Kind }
    }

    /// The same with all that the processor has for pairs and for int8.
    fn whole(self) -> Self {
        match self.kind {
            Kind::Portable(_) => self,
            #[cfg(target_arch = "aarch64")]
            Kind::Neon(_) => {
                let quads = neon::Neon::<{ neon::DOT }>::new().map_or(Quads::Kind, Quads::Neon);
                Isa { quads, ..self }
            }
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(_) => {
                let quads = avx2::Avx2::<true>::new().map_or(Quads::Kind, Quads::AvxVnni);
                Isa { quads, ..self }
            }
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(_) => {
                let pairs = avx512::Avx512::<{ avx512::BF16 }>::new();
                let quads = avx512::Avx512::<{ avx512::VNNI }>::new();
                let pairs = pairs.map_or(Pairs::None, Pairs::Avx512);
                Isa { pairs, quads: quads.map_or(Quads::Kind, Quads::Avx512), ..self }
            }
        }
    }

    /// Plain Rust, and in it what AVX512-BF16 does, for tests on processors without it. It is slow.
    #[must_use]
    pub fn model() -> Isa {
        Isa { pairs: Pairs::Portable, ..Isa::plain(Kind::Portable(portable::Portable)) }
    }

    /// All that [`Isa::VARIABLE`] can name on this processor: the best first, which is the default, the others with and
    /// without what the processor has for pairs and for int8, and [`Isa::model`].
    #[must_use]
    pub fn choices() -> Vec<Isa> {
        let all = Isa::available().into_iter().rev();
        let mut all: Vec<_> = all.flat_map(|isa| [isa.whole(), Isa::plain(isa.kind)]).collect();
        all.dedup();
        all.push(Isa::model());
        all
    }

    /// The instruction set to use: the one that `BLOCKCELL_ISA` names if the processor has it, otherwise the
    /// best. The environment is read once, by the rule of [`switch`](crate::switch()).
    #[must_use]
    pub fn get() -> Isa {
        static CHOSEN: OnceLock<Isa> = OnceLock::new();
        *CHOSEN.get_or_init(|| {
            let choices = Isa::choices();
            let mut meanings = vec!["slower"; choices.len()];
            (meanings[0], meanings[choices.len() - 1]) =
                ("the best of this processor", "for tests");
            let values = choices.iter().zip(meanings);
            let values: Vec<_> = values.map(|(&isa, meaning)| (isa.name(), isa, meaning)).collect();
            crate::switch(Isa::VARIABLE, &values)
        })
    }

    /// The name, as [`Isa::VARIABLE`] has it. `avx512_bf16` has VNNI, too.
    #[must_use]
    pub fn name(self) -> &'static str {
        match (self.kind, self.pairs, self.quads) {
            (Kind::Portable(_), Pairs::Portable, _) => "portable_bf16",
            (Kind::Portable(_), ..) => "portable",
            #[cfg(target_arch = "aarch64")]
            (Kind::Neon(_), _, Quads::Kind) => "neon",
            #[cfg(target_arch = "aarch64")]
            (Kind::Neon(_), ..) => "neon_dotprod",
            #[cfg(target_arch = "x86_64")]
            (Kind::Avx2(_), _, Quads::Kind) => "avx2",
            #[cfg(target_arch = "x86_64")]
            (Kind::Avx2(_), ..) => "avx2_vnni",
            #[cfg(target_arch = "x86_64")]
            (Kind::Avx512(_), Pairs::None, Quads::Kind) => "avx512",
            #[cfg(target_arch = "x86_64")]
            (Kind::Avx512(_), Pairs::None, _) => "avx512_vnni",
            #[cfg(target_arch = "x86_64")]
            (Kind::Avx512(_), ..) => "avx512_bf16",
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

    /// Whether there are instructions for pairs of numbers in bfloat16, or their model.
    #[must_use]
    pub fn has_pairs(self) -> bool {
        self.pairs != Pairs::None
    }

    /// Runs `work`, compiled for this instruction set.
    #[inline]
    pub fn run<W: WithSimd<T>, T>(self, work: W) -> T {
        match self.kind {
            Kind::Portable(simd) => simd.enter(work),
            #[cfg(target_arch = "aarch64")]
            Kind::Neon(simd) => simd.enter(work),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(simd) => simd.enter(work),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(simd) => simd.enter(work),
        }
    }

    /// Whether numbers become bfloat16, and these become float32 again, in a few instructions.
    #[must_use]
    pub(crate) fn rounds(self) -> bool {
        self.run(Vectors).2
    }

    /// [`Isa::run`] of what computes with pairs, with vectors of the same length. Without [`Isa::has_pairs`] it can make
    /// pairs, but is slow to add them.
    #[inline]
    pub fn run_pairs<W: WithSimd<T>, T>(self, work: W) -> T {
        match self.pairs {
            Pairs::None => self.run(work),
            Pairs::Portable => portable::Portable.enter(work),
            #[cfg(target_arch = "x86_64")]
            Pairs::Avx512(simd) => simd.enter(work),
        }
    }

    /// [`Isa::run`] of what computes with [`Simd::quads`], with vectors of the same length.
    #[inline]
    pub fn run_quads<W: WithSimd<T>, T>(self, work: W) -> T {
        match self.quads {
            Quads::Kind => self.run(work),
            #[cfg(target_arch = "aarch64")]
            Quads::Neon(simd) => simd.enter(work),
            #[cfg(target_arch = "x86_64")]
            Quads::AvxVnni(simd) => simd.enter(work),
            #[cfg(target_arch = "x86_64")]
            Quads::Avx512(simd) => simd.enter(work),
        }
    }
}

/// The lanes of a vector, how many vectors fit in registers, and [`Simd::ROUNDS`].
struct Vectors;

impl WithSimd<(usize, usize, bool)> for Vectors {
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> (usize, usize, bool) {
        (S::LANES, S::REGISTERS, S::ROUNDS)
    }
}
