//! The innermost loop: blocks of rows by columns whose sums are in registers.

use std::ops::Range;

use super::ahead::Ahead;
use super::{COLUMN_ROWS, DEPTH, parts};
use crate::Element;
use crate::simd::Simd;

/// Runs an expression with `M` for the rows of a block that is so many vectors wide.
macro_rules! with_height {
    ($S:ident, $vectors:expr, $rows:expr, $M:ident => $work:expr) => {
        $crate::gemm::block::with_height!(
            @ 1 2 3 4 5 6 7 8 9 10 11 12 13 14; $S, $vectors, $rows, $M => $work
        )
    };
    (@ $($m:literal)*; $S:ident, $vectors:expr, $rows:expr, $M:ident => $work:expr) => {
        match $rows {
            $($m if $m <= $crate::gemm::block::block_rows($S::REGISTERS, $vectors) => {
                const $M: usize = $m;
                $work
            })*
            height => unreachable!("no block of {height} rows"),
        }
    };
}
pub(super) use with_height;

/// A slice of a left factor, at most [`DEPTH`] deep.
pub(super) trait Factor: Copy {
    /// The block of `rows` rows from row `at` on.
    fn block(self, at: usize, rows: usize) -> Self;

    /// The coefficient of row `m` at depth `k`. They are read one by one: from an array of a block's
    /// coefficients the compiler would make a gather, which takes longer than the multiply-adds.
    fn coefficient(self, m: usize, k: usize) -> f32;
}

/// Rows one after the other. At places known from each other, those of a block need one register.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a>(pub(super) &'a [[f32; DEPTH]]);

impl Factor for Rows<'_> {
    #[inline(always)]
    fn block(self, at: usize, rows: usize) -> Self {
        Rows(&self.0[at..at + rows])
    }

    #[inline(always)]
    fn coefficient(self, m: usize, k: usize) -> f32 {
        self.0[m][k]
    }
}

/// Rows side by side, `[k][m]`.
#[derive(Clone, Copy)]
pub(super) struct Panel<'a> {
    pub(super) data: &'a [[f32; COLUMN_ROWS]; DEPTH],
    pub(super) at: usize,
}

impl Factor for Panel<'_> {
    #[inline(always)]
    fn block(self, at: usize, rows: usize) -> Self {
        assert!(at <= COLUMN_ROWS - rows);
        Panel { at, ..self }
    }

    #[inline(always)]
    fn coefficient(self, m: usize, k: usize) -> f32 {
        self.data[k][self.at + m]
    }
}

/// A slice of `V` vectors of columns of a right factor, read row by row.
pub(super) trait Columns<S: Simd, const V: usize> {
    /// The next row.
    fn next(&mut self, simd: S) -> [S::F32; V];
}

/// Columns, and what to fetch meanwhile.
pub(super) struct Fetching<C, A> {
    pub(super) columns: C,
    pub(super) ahead: A,
}

impl<S: Simd, C: Columns<S, V>, A: Ahead, const V: usize> Columns<S, V> for Fetching<C, A> {
    #[inline(always)]
    fn next(&mut self, simd: S) -> [S::F32; V] {
        self.ahead.fetch(simd);
        self.columns.next(simd)
    }
}

/// A packed slice: `V` vectors a row, one row after the other. From the next row on.
pub(super) struct Packed<'a>(pub(super) &'a [f32]);

impl<S: Simd, const V: usize> Columns<S, V> for Packed<'_> {
    #[inline(always)]
    fn next(&mut self, simd: S) -> [S::F32; V] {
        let (row, rest) = self.0.split_at(V * S::LANES);
        self.0 = rest;
        let mut vectors = [simd.splat(0.0); V];
        for (vector, from) in vectors.iter_mut().zip(row.chunks_exact(S::LANES)) {
            *vector = simd.load(from);
        }
        vectors
    }
}

/// Columns from `at` on of row-major data whose rows are `pitch` long: `V` whole vectors, or `width` of
/// them, at most one vector.
///
/// With `FETCH` the rows ahead are fetched: the processor does not foresee them while blocks of many
/// rows are multiplied.
#[derive(Clone, Copy)]
pub(super) struct Lying<'a, E, const FETCH: bool> {
    /// From the next row on.
    pub(super) data: &'a [E],
    pub(super) pitch: usize,
    pub(super) at: usize,
    pub(super) width: usize,
}

/// How many rows ahead to fetch: what a block does meanwhile takes about as long as to read from
/// memory.
const AHEAD: usize = 12;

impl<'a, E> Lying<'a, E, true> {
    /// The same, when it has been fetched.
    pub(super) fn again(self) -> Lying<'a, E, false> {
        let Lying { data, pitch, at, width } = self;
        Lying { data, pitch, at, width }
    }
}

impl<S: Simd, E: Element, const V: usize, const FETCH: bool> Columns<S, V> for Lying<'_, E, FETCH> {
    #[inline(always)]
    fn next(&mut self, simd: S) -> [S::F32; V] {
        let (row, rest) = self.data.split_at(self.pitch);
        self.data = rest;
        let row = &row[self.at..][..if V == 1 { self.width } else { V * S::LANES }];
        // Where rows do not start with a cache line, there is a line more.
        for v in 0..if FETCH { V + 1 } else { 0 } {
            let ahead = AHEAD * self.pitch + (v * S::LANES).min(V * S::LANES - 1);
            simd.prefetch(row.as_ptr().wrapping_add(ahead).cast());
        }
        let mut vectors = [E::load(simd, row); V];
        for (v, vector) in vectors.iter_mut().enumerate().skip(1) {
            *vector = E::load(simd, &row[v * S::LANES..]);
        }
        vectors
    }
}

/// Columns as they lie, which are packed on the way: reading them from far away and multiplying
/// overlap.
pub(super) struct Packing<'a, 't, E> {
    pub(super) from: Lying<'a, E, true>,
    /// From the next row on.
    pub(super) to: &'t mut [f32],
}

impl<S: Simd, E: Element, const V: usize> Columns<S, V> for Packing<'_, '_, E> {
    #[inline(always)]
    fn next(&mut self, simd: S) -> [S::F32; V] {
        let vectors: [S::F32; V] = self.from.next(simd);
        let (to, rest) = std::mem::take(&mut self.to).split_at_mut(V * S::LANES);
        self.to = rest;
        for (&vector, to) in vectors.iter().zip(to.chunks_exact_mut(S::LANES)) {
            simd.store(vector, to);
        }
        vectors
    }
}

/// Sums of a strip, from the first column that is worked on.
pub(super) struct Sums<'s> {
    pub(super) data: &'s mut [f32],
    /// From a row to the next.
    pub(super) pitch: usize,
}

impl Sums<'_> {
    /// From column `at` on.
    #[inline(always)]
    pub(super) fn from(&mut self, at: usize) -> Sums<'_> {
        Sums { data: &mut self.data[at..], pitch: self.pitch }
    }
}

/// Rows of a block that is `vectors` wide: as many as keep its sums in registers.
pub(super) const fn block_rows(registers: usize, vectors: usize) -> usize {
    match (registers, vectors) {
        (32.., 8) => 3,
        (_, 8) => 1,
        (32.., 4) => 6,
        (16.., 4) => 2,
        (32.., _) => 14,
        (16.., _) => 6,
        _ => 2,
    }
}

/// The groups of so many columns. Those of a group, two vectors, are multiplied together and packed side
/// by side; the last group is filled up with zeros to a multiple of [`UNIT`](super::UNIT).
pub(super) fn groups<S: Simd>(columns: usize) -> impl Iterator<Item = Range<usize>> {
    parts(columns, 2 * S::LANES)
}

/// How many blocks of about equal height `rows` are: 7 rows are 4 + 3, not 6 + 1.
pub(super) fn block_count<S: Simd, const V: usize>(rows: usize) -> usize {
    rows.div_ceil(block_rows(S::REGISTERS, V))
}

/// Adds the product of block `block` of `count` of the rows and `V` vectors of columns,
/// `depth` deep.
#[inline(always)]
pub(super) fn add_block<S: Simd, const V: usize>(
    simd: S,
    left: impl Factor,
    right: impl Columns<S, V>,
    depth: usize,
    (block, count, rows): (usize, usize, usize),
    sums: &mut Sums<'_>,
) {
    let rows = block * rows / count..(block + 1) * rows / count;
    with_height!(S, V, rows.len(), M => {
        let product = multiply::<S, M, V>(simd, left, rows.start, right, depth);
        add(simd, product, &mut sums.data[rows.start * sums.pitch..], sums.pitch);
    });
}

/// The sum over `k` of the outer products of the coefficients of rows `at .. at + M` and row `k` of
/// `right`.
#[inline(always)]
fn multiply<S: Simd, const M: usize, const V: usize>(
    simd: S,
    left: impl Factor,
    at: usize,
    mut right: impl Columns<S, V>,
    depth: usize,
) -> [[S::F32; V]; M] {
    assert!(depth <= DEPTH);
    let left = left.block(at, M);
    let mut sums = [[simd.splat(0.0); V]; M];
    for k in 0..depth {
        let columns = right.next(simd);
        for (m, sums) in sums.iter_mut().enumerate() {
            let coefficient = simd.splat(left.coefficient(m, k));
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum = simd.mul_add(coefficient, column, *sum);
            }
        }
    }
    sums
}

/// Adds a block to the sums from its first one on.
#[inline(always)]
pub(super) fn add<S: Simd, const M: usize, const V: usize>(
    simd: S,
    block: [[S::F32; V]; M],
    sums: &mut [f32],
    pitch: usize,
) {
    for (row, sums) in block.iter().zip(sums.chunks_mut(pitch)) {
        for (&sum, sums) in row.iter().zip(sums.chunks_exact_mut(S::LANES)) {
            simd.store(simd.load(sums) + sum, sums);
        }
    }
}
