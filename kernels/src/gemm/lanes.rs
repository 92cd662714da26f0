//! What a lane of a packed factor holds: a term of each sum, or a pair of terms in bfloat16.

use crate::simd::{Simd, WithSimd};
use crate::tuning::KC;
use crate::{Isa, Storage};

/// What the lanes of both factors of a product hold. In what follows a factor is as deep as it has lanes.
pub(super) trait Lanes: Copy + Send + Sync + 'static {
    /// What those of a packed right factor hold, where that differs.
    type Right: Lanes;

    /// Terms in a lane.
    const TERMS: usize;

    /// Rows of a packed slice beside those with its lanes: before these one of what sums begin with, and after them one of
    /// the scales of columns. Rows of the left factor have scales, too.
    const AROUND: usize = 0;

    /// Whether rows of the left factor are filled up to a multiple of [`UNIT`](crate::tuning::UNIT), as tiles need it.
    const FILLS_UNITS: bool = false;

    /// Runs `work` where the instructions are.
    fn run<W: WithSimd<T>, T>(isa: Isa, work: W) -> T;

    /// A vector of consecutive terms; zeros after the last one. Where rows have scales, `factor` makes terms of numbers.
    fn along<S: Simd, E: Storage>(simd: S, terms: &[E], factor: f32) -> S::F32;

    /// A vector with a term of each lane from `first`, and the next one, if a lane has it, from `second`; zeros where
    /// these end.
    fn across<S: Simd, E: Storage>(simd: S, first: &[E], second: &[E]) -> S::F32;

    /// `c`, and the products of the terms in each lane of `a` and `b`.
    fn multiply_add<S: Simd>(simd: S, a: S::F32, b: S::F32, c: S::F32) -> S::F32;

    /// What the sums of a slice begin with, from its first row.
    #[inline(always)]
    fn first<S: Simd, const V: usize>(simd: S, _: impl FnOnce() -> [S::F32; V]) -> [S::F32; V] {
        [simd.splat(0.0); V]
    }

    /// The sums of a slice as numbers, by its last row and the scales of rows.
    #[inline(always)]
    fn last<S: Simd, const M: usize, const V: usize>(
        _: S,
        sums: [[S::F32; V]; M],
        _: impl FnOnce() -> [S::F32; V],
        _: impl Fn(usize) -> f32,
    ) -> [[S::F32; V]; M] {
        sums
    }
}

/// A term.
#[derive(Clone, Copy)]
pub(super) struct Floats;

/// Two terms, rounded to bfloat16.
#[derive(Clone, Copy)]
pub(super) struct Pairs;

/// A term. A lane of a packed right factor holds two, rounded to bfloat16, which become `f32` again when they are
/// multiplied: that pays where reading them takes longer.
#[derive(Clone, Copy)]
pub(super) struct Rounded;

/// Four terms in int8.
#[derive(Clone, Copy)]
pub(super) struct Quads;

/// The same with no [`Simd::QUAD_OFFSET`] in the left factor, so that sums begin with zeros.
#[derive(Clone, Copy)]
pub(super) struct SignedQuads;

impl Lanes for Floats {
    type Right = Self;

    const TERMS: usize = 1;

    #[inline(always)]
    fn run<W: WithSimd<T>, T>(isa: Isa, work: W) -> T {
        isa.run(work)
    }

    #[inline(always)]
    fn along<S: Simd, E: Storage>(simd: S, terms: &[E], _: f32) -> S::F32 {
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
    type Right = Self;

    const TERMS: usize = 2;
    const FILLS_UNITS: bool = true;

    #[inline(always)]
    fn run<W: WithSimd<T>, T>(isa: Isa, work: W) -> T {
        isa.run_pairs(work)
    }

    #[inline(always)]
    fn along<S: Simd, E: Storage>(simd: S, terms: &[E], _: f32) -> S::F32 {
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

impl Lanes for Rounded {
    type Right = Pairs;

    const TERMS: usize = 1;

    #[inline(always)]
    fn run<W: WithSimd<T>, T>(isa: Isa, work: W) -> T {
        isa.run(work)
    }

    #[inline(always)]
    fn along<S: Simd, E: Storage>(simd: S, terms: &[E], factor: f32) -> S::F32 {
        Floats::along(simd, terms, factor)
    }

    #[inline(always)]
    fn across<S: Simd, E: Storage>(simd: S, first: &[E], second: &[E]) -> S::F32 {
        Floats::across(simd, first, second)
    }

    /// The first term of a lane of `b`.
    #[inline(always)]
    fn multiply_add<S: Simd>(simd: S, a: S::F32, b: S::F32, c: S::F32) -> S::F32 {
        simd.mul_add(a, simd.unpair(b)[0], c)
    }
}

impl Lanes for Quads {
    type Right = Self;

    const TERMS: usize = 4;
    const AROUND: usize = 2;

    #[inline(always)]
    fn run<W: WithSimd<T>, T>(isa: Isa, work: W) -> T {
        isa.run_quads(work)
    }

    #[inline(always)]
    fn along<S: Simd, E: Storage>(simd: S, terms: &[E], factor: f32) -> S::F32 {
        let (factor, mut rest) = (simd.splat(factor), terms);
        let mut vectors = [factor; 4];
        for vector in &mut vectors {
            let (some, after) = rest.split_at(rest.len().min(S::LANES));
            (*vector, rest) = (load(simd, some) * factor, after);
        }
        simd.quads(vectors)
    }

    #[inline(always)]
    fn across<S: Simd, E: Storage>(_: S, _: &[E], _: &[E]) -> S::F32 {
        unreachable!("constants are packed in units")
    }

    #[inline(always)]
    fn multiply_add<S: Simd>(simd: S, a: S::F32, b: S::F32, c: S::F32) -> S::F32 {
        simd.add_quads(a, b, c)
    }

    #[inline(always)]
    fn first<S: Simd, const V: usize>(_: S, row: impl FnOnce() -> [S::F32; V]) -> [S::F32; V] {
        row()
    }

    #[inline(always)]
    fn last<S: Simd, const M: usize, const V: usize>(
        simd: S,
        mut sums: [[S::F32; V]; M],
        columns: impl FnOnce() -> [S::F32; V],
        rows: impl Fn(usize) -> f32,
    ) -> [[S::F32; V]; M] {
        let columns = columns();
        for (m, sums) in sums.iter_mut().enumerate() {
            let row = simd.splat(rows(m));
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum = simd.of_integers(*sum) * (row * column);
            }
        }
        sums
    }
}

impl Lanes for SignedQuads {
    type Right = Self;

    const TERMS: usize = Quads::TERMS;
    const AROUND: usize = Quads::AROUND;
    const FILLS_UNITS: bool = true;

    /// With vectors that have no offset.
    #[inline(always)]
    fn run<W: WithSimd<T>, T>(isa: Isa, work: W) -> T {
        isa.run(work)
    }

    #[inline(always)]
    fn along<S: Simd, E: Storage>(simd: S, terms: &[E], factor: f32) -> S::F32 {
        const { assert!(S::QUAD_OFFSET == 0) }
        Quads::along(simd, terms, factor)
    }

    #[inline(always)]
    fn across<S: Simd, E: Storage>(simd: S, first: &[E], second: &[E]) -> S::F32 {
        Quads::across(simd, first, second)
    }

    #[inline(always)]
    fn multiply_add<S: Simd>(simd: S, a: S::F32, b: S::F32, c: S::F32) -> S::F32 {
        Quads::multiply_add(simd, a, b, c)
    }

    #[inline(always)]
    fn last<S: Simd, const M: usize, const V: usize>(
        simd: S,
        sums: [[S::F32; V]; M],
        columns: impl FnOnce() -> [S::F32; V],
        rows: impl Fn(usize) -> f32,
    ) -> [[S::F32; V]; M] {
        Quads::last(simd, sums, columns, rows)
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

/// How many rows a packed right factor has for as many lanes of the left one.
pub(super) fn packed_depth<L: Lanes>(lanes: usize) -> usize {
    (lanes * L::TERMS).div_ceil(L::Right::TERMS)
}

/// The rows of packed columns with this many terms, whose slices are about equal.
pub(super) fn packed_rows<L: Lanes>(terms: usize) -> usize {
    lanes::<L>(terms) + L::AROUND * terms.div_ceil(L::TERMS * KC)
}
