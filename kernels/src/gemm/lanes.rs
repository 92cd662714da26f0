//! What a lane of a packed factor holds: a term of each sum, or a pair of terms in bfloat16.

use crate::simd::{Simd, WithSimd};
use crate::{Isa, Storage};

/// What the lanes of both factors of a product hold. In what follows a factor is as deep as it has lanes.
pub(super) trait Lanes: Copy + Send + Sync + 'static {
    /// Terms in a lane.
    const TERMS: usize;

    /// Runs `work` where the instructions are.
    fn run<W: WithSimd<T>, T>(isa: Isa, work: W) -> T;

    /// A vector of consecutive terms; zeros after the last one.
    fn along<S: Simd, E: Storage>(simd: S, terms: &[E]) -> S::F32;

    /// A vector with a term of each lane from `first`, and the next one, if a lane has it, from `second`; zeros where
    /// these end.
    fn across<S: Simd, E: Storage>(simd: S, first: &[E], second: &[E]) -> S::F32;

    /// `c`, and the products of the terms in each lane of `a` and `b`.
    fn multiply_add<S: Simd>(simd: S, a: S::F32, b: S::F32, c: S::F32) -> S::F32;
}

/// A term.
#[derive(Clone, Copy)]
pub(super) struct Floats;

/// Two terms, rounded to bfloat16.
#[derive(Clone, Copy)]
pub(super) struct Pairs;

impl Lanes for Floats {
    const TERMS: usize = 1;

    #[inline(always)]
    fn run<W: WithSimd<T>, T>(isa: Isa, work: W) -> T {
        isa.run(work)
    }

    #[inline(always)]
    fn along<S: Simd, E: Storage>(simd: S, terms: &[E]) -> S::F32 {
        E::load(simd, terms)
    }

    #[inline(always)]
    fn across<S: Simd, E: Storage>(simd: S, first: &[E], _: &[E]) -> S::F32 {
        E::load(simd, first)
    }

    #[inline(always)]
    fn multiply_add<S: Simd>(simd: S, a: S::F32, b: S::F32, c: S::F32) -> S::F32 {
        simd.mul_add(a, b, c)
    }
}

impl Lanes for Pairs {
    const TERMS: usize = 2;

    #[inline(always)]
    fn run<W: WithSimd<T>, T>(isa: Isa, work: W) -> T {
        isa.run_pairs(work)
    }

    #[inline(always)]
    fn along<S: Simd, E: Storage>(simd: S, terms: &[E]) -> S::F32 {
        let (first, rest) = terms.split_at(terms.len().min(S::LANES));
        simd.neighbours(load(simd, first), load(simd, rest))
    }

    #[inline(always)]
    fn across<S: Simd, E: Storage>(simd: S, first: &[E], second: &[E]) -> S::F32 {
        simd.pairs(load(simd, first), load(simd, second))
    }

    #[inline(always)]
    fn multiply_add<S: Simd>(simd: S, a: S::F32, b: S::F32, c: S::F32) -> S::F32 {
        simd.add_pairs(a, b, c)
    }
}

/// A vector of these elements. A masked load is slow if its address is not mapped, even where the mask is empty.
#[inline(always)]
fn load<S: Simd, E: Storage>(simd: S, from: &[E]) -> S::F32 {
    if from.is_empty() { simd.splat(0.0) } else { E::load(simd, from) }
}

/// How many lanes hold this many terms.
pub(super) fn lanes<L: Lanes>(terms: usize) -> usize {
    terms.div_ceil(L::TERMS)
}
