//! The micro-kernel: a block of rows by a few vectors of columns, all of whose sums are in registers.

use std::iter;
use std::marker::PhantomData;
use std::ops::Range;

use super::lanes::{Floats, Lanes};
use super::prefetch::{NoPrefetch, Prefetch};
use crate::simd::Simd;
use crate::tuning::{KC, LEFT_PITCH_FLOATS, PANEL_ROWS, PREFETCH_ROWS, UNROLL_ROWS};

/// Runs an expression with the constant `M` for the number of rows of a block. It is compiled for those `M` for
/// which the condition, a constant expression, holds; other numbers of rows cannot occur.
macro_rules! with_height {
    ($rows:expr, $M:ident if $possible:expr => $work:expr) => {
        $crate::gemm::micro_kernel::with_height!(
            @ 1 2 3 4 5 6 7 8 9 10 11 12 13 14; $rows, $M if $possible => $work
        )
    };
    (@ $($m:literal)*; $rows:expr, $M:ident if $possible:expr => $work:expr) => {
        match $rows {
            $($m => {
                const $M: usize = $m;
                if const { $possible } {
                    $work
                } else {
                    $crate::gemm::micro_kernel::no_block($m)
                }
            })*
            rows => $crate::gemm::micro_kernel::no_block(rows),
        }
    };
}
pub(super) use with_height;

#[cold]
pub(super) fn no_block(rows: usize) -> ! {
    unreachable!("no block of {rows} rows")
}

/// A slice of a left factor, at most [`KC`] deep.
pub(super) trait LeftSlice: Copy {
    /// What its lanes hold, and those of what it is multiplied by.
    type Lanes: Lanes;

    /// Whether two blocks of rows both read an unpacked right factor, instead of packing it.
    const REREADS: bool;

    /// The block of `rows` rows from row `at` on.
    fn block(self, at: usize, rows: usize) -> Self;

    /// The coefficient of row `m` at depth `k`, as the bits of a lane. They are read one by one: from an array of a block's
    /// coefficients the compiler would make a gather, which takes longer than the multiply-adds.
    fn coefficient(self, m: usize, k: usize) -> f32;

    /// The scale of row `m`, where rows have scales.
    #[inline(always)]
    fn scale(self, _: usize) -> f32 {
        1.0
    }
}

/// A left factor, row-major. The fixed pitch lets one base register address all rows of a block. Where rows have scales,
/// they follow the slice, with what the row was multiplied by.
#[derive(Clone, Copy)]
pub(super) struct LeftRows<'a, L = Floats> {
    rows: &'a [[f32; LEFT_PITCH_FLOATS]],
    lanes: PhantomData<L>,
}

impl<'a, L: Lanes> LeftRows<'a, L> {
    #[inline(always)]
    pub(super) fn new(rows: &'a [[f32; LEFT_PITCH_FLOATS]]) -> Self {
        LeftRows { rows, lanes: PhantomData }
    }

    /// How many rows there are.
    #[inline(always)]
    pub(super) fn len(self) -> usize {
        self.rows.len()
    }

    /// From lane `k` of row `m` on.
    #[inline(always)]
    pub(super) fn from(self, m: usize, k: usize) -> &'a [f32] {
        &self.rows[m..].as_flattened()[k..]
    }
}

impl<L: Lanes> LeftSlice for LeftRows<'_, L> {
    type Lanes = L;

    const REREADS: bool = true;

    #[inline(always)]
    fn block(self, at: usize, rows: usize) -> Self {
        LeftRows::new(&self.rows[at..at + rows])
    }

    #[inline(always)]
    fn coefficient(self, m: usize, k: usize) -> f32 {
        self.rows[m][k]
    }

    #[inline(always)]
    fn scale(self, m: usize) -> f32 {
        self.rows[m][KC]
    }
}

/// A left factor, column-major: `[k][m]`.
#[derive(Clone, Copy)]
pub(super) struct LeftPanel<'a, L = Floats> {
    data: &'a [[f32; PANEL_ROWS]; KC],
    /// The first row of this block.
    at: usize,
    lanes: PhantomData<L>,
}

impl<'a, L: Lanes> LeftPanel<'a, L> {
    pub(super) fn new(data: &'a [[f32; PANEL_ROWS]; KC]) -> Self {
        LeftPanel { data, at: 0, lanes: PhantomData }
    }
}

impl<L: Lanes> LeftSlice for LeftPanel<'_, L> {
    type Lanes = L;

    const REREADS: bool = false;

    #[inline(always)]
    fn block(self, at: usize, rows: usize) -> Self {
        assert!(at <= PANEL_ROWS - rows);
        LeftPanel { at, ..self }
    }

    #[inline(always)]
    fn coefficient(self, m: usize, k: usize) -> f32 {
        self.data[k][self.at + m]
    }
}

/// A slice of `V` vectors of columns of a right factor, read row by row.
pub(super) trait Columns<S: Simd, const V: usize>: Sized {
    /// The next row.
    fn next(&mut self, simd: S) -> [S::F32; V];

    /// Adds the first of `depth` terms, where the loop over rows takes [`UNROLL_ROWS`] of them at a time; returns how
    /// many.
    #[inline(always)]
    fn add_unrolled<L: LeftSlice, const M: usize>(
        &mut self,
        _: S,
        _: L,
        _: usize,
        _: &mut [[S::F32; V]; M],
    ) -> usize {
        0
    }
}

/// Unpacked columns, and what to prefetch with each of their rows.
pub(super) struct Prefetching<C, P> {
    pub(super) columns: C,
    pub(super) prefetch: P,
}

impl<S: Simd, C: Columns<S, V>, P: Prefetch, const V: usize> Columns<S, V> for Prefetching<C, P> {
    #[inline(always)]
    fn next(&mut self, simd: S) -> [S::F32; V] {
        self.prefetch.fetch(simd);
        self.columns.next(simd)
    }
}

/// A packed slice, and what to prefetch with each of its rows.
pub(super) struct Packed<'a, P> {
    /// From the next row on: `V` vectors for each row, without gaps.
    pub(super) data: &'a [f32],
    pub(super) prefetch: P,
}

impl<S: Simd, P: Prefetch, const V: usize> Columns<S, V> for Packed<'_, P> {
    #[inline(always)]
    fn next(&mut self, simd: S) -> [S::F32; V] {
        self.prefetch.fetch(simd);
        let (row, rest) = self.data.split_at(V * S::LANES);
        self.data = rest;
        let mut vectors = [simd.splat(0.0); V];
        for (vector, from) in vectors.iter_mut().zip(row.chunks_exact(S::LANES)) {
            *vector = simd.load(from);
        }
        vectors
    }

    #[inline(always)]
    fn add_unrolled<L: LeftSlice, const M: usize>(
        &mut self,
        simd: S,
        left: L,
        depth: usize,
        sums: &mut [[S::F32; V]; M],
    ) -> usize {
        if const { <L::Lanes as Lanes>::Right::TERMS > L::Lanes::TERMS } {
            return self.add_pairs(simd, left, depth, sums);
        }
        // With AVX2 a row has so few instructions that those which count and check lengths show. With AVX-512 they do
        // not, and nearly all registers hold sums.
        if const { S::REGISTERS != 16 } {
            return 0;
        }
        let size = UNROLL_ROWS * V * S::LANES;
        let (whole, rest) = self.data.split_at(depth / UNROLL_ROWS * size);
        self.data = rest;
        for (n, rows) in (0..depth / UNROLL_ROWS).zip(whole.chunks_exact(size)) {
            self.prefetch.fetch_unrolled(simd);
            let (k, mut rows) = (UNROLL_ROWS * n, Packed { data: rows, prefetch: NoPrefetch });
            // One by one: the compiler would keep the sums of a loop over these in memory.
            add_term(simd, left, k, rows.next(simd), sums);
            add_term(simd, left, k + 1, rows.next(simd), sums);
            add_term(simd, left, k + 2, rows.next(simd), sums);
            add_term(simd, left, k + 3, rows.next(simd), sums);
        }
        depth - depth % UNROLL_ROWS
    }
}

impl<P: Prefetch> Packed<'_, P> {
    /// Adds both terms of the lanes of each row but the last one of an odd depth; returns how many terms.
    #[inline(always)]
    fn add_pairs<S: Simd, const M: usize, const V: usize>(
        &mut self,
        simd: S,
        left: impl LeftSlice,
        depth: usize,
        sums: &mut [[S::F32; V]; M],
    ) -> usize {
        let size = V * S::LANES;
        let (whole, rest) = self.data.split_at(depth / 2 * size);
        self.data = rest;
        for (n, row) in (0..depth / 2).zip(whole.chunks_exact(size)) {
            self.prefetch.fetch(simd);
            // Vector by vector: with all numbers of a row, sums would not stay in registers.
            for (v, pairs) in row.chunks_exact(S::LANES).enumerate() {
                let terms = simd.unpair(simd.load(pairs));
                for (k, term) in (2 * n..).zip(terms) {
                    for (m, sums) in sums.iter_mut().enumerate() {
                        let coefficient = simd.splat(left.coefficient(m, k));
                        sums[v] = simd.mul_add(coefficient, term, sums[v]);
                    }
                }
            }
        }
        depth - depth % 2
    }
}

/// Unpacked columns, from `at` on, of row-major data whose rows are `pitch` long: `V` whole vectors; or `width`
/// columns, at most a vector.
///
/// With `PREFETCH` the rows ahead are requested: the hardware prefetcher does not see them coming while blocks
/// of many rows are multiplied.
#[derive(Clone, Copy)]
pub(super) struct Unpacked<'a, E, const PREFETCH: bool> {
    /// From the next row on.
    pub(super) data: &'a [E],
    pub(super) pitch: usize,
    pub(super) at: usize,
    pub(super) width: usize,
}

impl<'a, E> Unpacked<'a, E, true> {
    /// The same columns for a second pass, which finds them in the cache.
    pub(super) fn again(self) -> Unpacked<'a, E, false> {
        let Unpacked { data, pitch, at, width } = self;
        Unpacked { data, pitch, at, width }
    }
}

impl<S: Simd, const V: usize, const PREFETCH: bool> Columns<S, V> for Unpacked<'_, f32, PREFETCH> {
    #[inline(always)]
    fn next(&mut self, simd: S) -> [S::F32; V] {
        let (row, rest) = self.data.split_at(self.pitch);
        self.data = rest;
        let row = &row[self.at..][..if V == 1 { self.width } else { V * S::LANES }];
        // Where rows do not start with a cache line, they take up one line more.
        for v in 0..if PREFETCH { V + 1 } else { 0 } {
            let ahead = PREFETCH_ROWS * self.pitch + (v * S::LANES).min(V * S::LANES - 1);
            simd.prefetch(row.as_ptr().wrapping_add(ahead).cast());
        }
        let mut vectors = [simd.load(row); V];
        for (v, vector) in vectors.iter_mut().enumerate().skip(1) {
            *vector = simd.load(&row[v * S::LANES..]);
        }
        vectors
    }
}

/// Unpacked columns, of which a packed copy is made while they are multiplied: so reading from memory and
/// arithmetic overlap.
pub(super) struct Packing<'a, 't> {
    pub(super) from: Unpacked<'a, f32, true>,
    /// From the next row on.
    pub(super) to: &'t mut [f32],
}

impl<S: Simd, const V: usize> Columns<S, V> for Packing<'_, '_> {
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

/// Accumulators of a strip, from the first column that is worked on.
pub(super) struct Accumulators<'s> {
    pub(super) data: &'s mut [f32],
    /// From a row to the next.
    pub(super) pitch: usize,
}

impl Accumulators<'_> {
    /// From column `at` on.
    #[inline(always)]
    pub(super) fn from(&mut self, at: usize) -> Accumulators<'_> {
        Accumulators { data: &mut self.data[at..], pitch: self.pitch }
    }
}

/// Most rows of a block that is `vectors` wide (MR): as many as keep its sums in registers.
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

/// The groups of `columns` columns. Those of a group, two vectors, are multiplied together and packed side
/// by side; the last group is filled up with zeros to a multiple of [`UNIT`](crate::tuning::UNIT).
pub(super) fn groups<S: Simd>(columns: usize) -> impl Iterator<Item = Range<usize>> {
    groups_of::<S>(columns, 2)
}

/// [`groups`] of `vectors` vectors, a power of 2. What is left at the end has half of them, a quarter, and so on.
pub(super) fn groups_of<S: Simd>(
    columns: usize,
    mut vectors: usize,
) -> impl Iterator<Item = Range<usize>> + Clone {
    let mut start = 0;
    iter::from_fn(move || {
        let left = (columns - start).div_ceil(S::LANES);
        while vectors > left.max(1) {
            vectors /= 2;
        }
        let group = start..columns.min(start + vectors * S::LANES);
        start = group.end;
        (!group.is_empty()).then_some(group)
    })
}

/// The number of blocks of about equal height in `rows`: 7 rows are 4 + 3, not 6 + 1.
pub(super) fn block_count<S: Simd, const V: usize>(rows: usize) -> usize {
    rows.div_ceil(block_rows(S::REGISTERS, V))
}

/// The rows of block `block` of `count`.
pub(super) fn rows_of_block((block, count, rows): (usize, usize, usize)) -> Range<usize> {
    block * rows / count..(block + 1) * rows / count
}

/// Adds the product of block `block` of `count` of the rows and `V` vectors of columns, `depth` deep. With
/// `HIGH`, which holds wherever there is more than one block, a block has at least half of the rows that it may
/// have.
#[inline(always)]
pub(super) fn add_block<S: Simd, const V: usize, const HIGH: bool>(
    simd: S,
    left: impl LeftSlice,
    right: impl Columns<S, V>,
    depth: usize,
    place: (usize, usize, usize),
    sums: &mut Accumulators<'_>,
) {
    let rows = rows_of_block(place);
    with_height!(rows.len(), M if is_height(S::REGISTERS, V, HIGH, M) => {
        let product = multiply::<S, M, V>(simd, left, rows.start, right, depth);
        add(simd, product, &mut sums.data[rows.start * sums.pitch..], sums.pitch);
    });
}

/// Whether blocks `vectors` wide can have `rows` rows.
const fn is_height(registers: usize, vectors: usize, high: bool, rows: usize) -> bool {
    let most = block_rows(registers, vectors);
    rows <= most && (!high || 2 * rows >= most)
}

/// The sum over `k` of the outer products of the coefficients of rows `at .. at + M` and row `k` of
/// `right`.
#[inline(always)]
pub(super) fn multiply<S: Simd, const M: usize, const V: usize>(
    simd: S,
    left: impl LeftSlice,
    at: usize,
    mut right: impl Columns<S, V>,
    depth: usize,
) -> [[S::F32; V]; M] {
    assert!(depth <= KC);
    let left = left.block(at, M);
    let mut sums = first::<S, _, M, V>(simd, left, &mut right);
    let done = right.add_unrolled(simd, left, depth, &mut sums);
    for k in done..depth {
        add_term(simd, left, k, right.next(simd), &mut sums);
    }
    last(simd, left, sums, &mut right)
}

/// What sums begin with.
#[inline(always)]
fn first<S: Simd, L: LeftSlice, const M: usize, const V: usize>(
    simd: S,
    _: L,
    right: &mut impl Columns<S, V>,
) -> [[S::F32; V]; M] {
    [L::Lanes::first(simd, || right.next(simd)); M]
}

/// The sums as numbers.
#[inline(always)]
fn last<S: Simd, L: LeftSlice, const M: usize, const V: usize>(
    simd: S,
    left: L,
    sums: [[S::F32; V]; M],
    right: &mut impl Columns<S, V>,
) -> [[S::F32; V]; M] {
    L::Lanes::last(simd, sums, || right.next(simd), |m| left.scale(m))
}

/// Adds the outer product of the coefficients at depth `k` and a row of the right factor.
#[inline(always)]
fn add_term<S: Simd, L: LeftSlice, const M: usize, const V: usize>(
    simd: S,
    left: L,
    k: usize,
    columns: [S::F32; V],
    sums: &mut [[S::F32; V]; M],
) {
    for (m, sums) in sums.iter_mut().enumerate() {
        let coefficient = simd.splat(left.coefficient(m, k));
        for (sum, column) in sums.iter_mut().zip(columns) {
            *sum = L::Lanes::multiply_add(simd, coefficient, column, *sum);
        }
    }
}

/// Adds a block to the sums from its first one on.
#[inline(always)]
pub(super) fn add<S: Simd, const M: usize, const V: usize>(
    simd: S,
    block: [[S::F32; V]; M],
    sums: &mut [f32],
    pitch: usize,
) {
    // An iterator over the rows of sums would have a length of its own: the loop would stay one, and the block in
    // memory.
    for (m, row) in block.iter().enumerate() {
        let sums = &mut sums[m * pitch..][..V * S::LANES];
        for (v, &sum) in row.iter().enumerate() {
            let sums = &mut sums[v * S::LANES..][..S::LANES];
            simd.store(simd.load(sums) + sum, sums);
        }
    }
}
