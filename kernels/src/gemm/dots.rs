//! Products of few rows with a transpose that is used only once: each sum is a dot product of two unpacked rows.
//! Packing the transpose would cost as much as the product.
//!
//! Each dot product of a block has a vector as its accumulator. At the end as many accumulators as a vector has
//! lanes are reduced together, which leaves one vector with a finished sum in each lane.

use std::ops::Range;

use ndarray::ArrayView2;

use super::strip::Strip;
use crate::simd::{Simd, WithSimd};
use crate::tiles::row;
use crate::tuning::{DOT_ROW_LANES, UNIT};
use crate::{Isa, Storage};

/// A slice of a left factor, in blocks of rows: the first vector of each row, then the second vector of each,
/// and so on.
#[derive(Clone, Copy)]
pub(super) struct Blocks<'a> {
    pub(super) data: &'a [f32],
    /// The size of a block.
    pub(super) size: usize,
}

/// Whether dot products take less time than packing the transpose, for `rows` rows and `depth` terms. Each dot product
/// ends with a reduction of its lanes, which is a larger share of its time the fewer terms there are. The cost of
/// packing is shared by the rows.
pub(super) fn pay(isa: Isa, rows: usize, depth: usize) -> bool {
    let lanes = isa.lanes();
    rows * lanes < DOT_ROW_LANES && 5 * depth >= 3 * lanes * rows.saturating_sub(1)
}

/// Rows of a block where there are `rows` rows.
const fn height(registers: usize, rows: usize) -> usize {
    match (registers, rows) {
        (16.., 4..) => 4,
        (_, 2..) => 2,
        _ => 1,
    }
}

/// The first row of a block. The last block has rows of the one before it, too.
fn first_row(block: usize, height: usize, rows: usize) -> usize {
    (block * height).min(rows - height)
}

/// Copies a slice of a left factor; returns the size of a block.
pub(super) struct CopyBlocks<'f, 't, E> {
    pub(super) from: ArrayView2<'f, E>,
    pub(super) to: &'t mut [f32],
}

impl<E: Storage> WithSimd<usize> for CopyBlocks<'_, '_, E> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> usize {
        let (rows, depth) = self.from.dim();
        let height = height(S::REGISTERS, rows);
        let size = height * depth.next_multiple_of(S::LANES);
        let blocks = self.to.chunks_exact_mut(size).take(rows.div_ceil(height));
        for (block, to) in blocks.enumerate() {
            let first = first_row(block, height, rows);
            for m in 0..height {
                let to = to[m * S::LANES..].chunks_mut(height * S::LANES);
                for (from, to) in row(self.from, first + m).chunks(S::LANES).zip(to) {
                    simd.store(E::load(simd, from), &mut to[..S::LANES]);
                }
            }
        }
        size
    }
}

/// `sums += left @ right^T`
pub(super) struct AddDots<'r, 's, 'l, E> {
    pub(super) strip: Strip<'s, Blocks<'l>>,
    /// The right factor's transpose, of which this slice of the columns belongs to the left factor.
    pub(super) right: ArrayView2<'r, E>,
    pub(super) slice: Range<usize>,
}

impl<E: Storage> WithSimd for AddDots<'_, '_, '_, E> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let height = height(S::REGISTERS, self.strip.rows);
        if const { S::REGISTERS >= 32 } {
            match height {
                4 => self.blocks::<S, 4, 4>(simd),
                2 => self.blocks::<S, 2, 8>(simd),
                _ => self.blocks::<S, 1, 16>(simd),
            }
        } else if const { S::REGISTERS >= 16 } {
            match height {
                4 => self.blocks::<S, 4, 3>(simd),
                2 => self.blocks::<S, 2, 4>(simd),
                _ => self.blocks::<S, 1, 8>(simd),
            }
        } else if height == 2 {
            self.blocks::<S, 2, 2>(simd);
        } else {
            self.blocks::<S, 1, 4>(simd);
        }
    }
}

impl<E: Storage> AddDots<'_, '_, '_, E> {
    /// All sums, in blocks of `M` rows by `N` columns, at most two vectors of dot products.
    #[inline(always)]
    fn blocks<S: Simd, const M: usize, const N: usize>(self, simd: S) {
        let AddDots { mut strip, right, slice } = self;
        let (rows, columns, left) = (strip.rows, strip.columns.clone(), strip.left);
        let mut next = slices_of::<E, N>(right, &columns, columns.start, &slice);
        for at in columns.clone().step_by(N) {
            let b = next;
            next = slices_of(right, &columns, at + N, &slice);
            let blocks = left.data.chunks_exact(left.size).take(rows.div_ceil(M));
            for (block, a) in blocks.enumerate() {
                let dots = dots::<S, E, M, N>(simd, a, b, next[block % N].as_ptr());
                let first = first_row(block, M, rows);
                strip.add_dots::<S, M, N>(simd, dots, (first, block * M - first), at);
            }
        }
    }
}

impl Strip<'_, Blocks<'_>> {
    /// Adds a block's dot products to the sums of `M` rows from `first` on, without the `done` first
    /// ones, and of columns from `at` on.
    #[inline(always)]
    fn add_dots<S: Simd, const M: usize, const N: usize>(
        &mut self,
        simd: S,
        dots: [S::F32; 2],
        (first, done): (usize, usize),
        at: usize,
    ) {
        let Strip { columns, sums, .. } = self;
        let mut values = [0.0; UNIT];
        simd.store(dots[0], &mut values[..S::LANES]);
        if M * N > S::LANES {
            simd.store(dots[1], &mut values[S::LANES..]);
        }
        for (m, values) in values.as_chunks::<N>().0.iter().enumerate().take(M).skip(done) {
            let sums = &mut sums.data[(first + m) * sums.pitch + at - columns.start..];
            match sums.first_chunk_mut::<N>() {
                Some(sums) if at + N <= columns.end => {
                    (0..N).for_each(|n| sums[n] += values[n]);
                }
                _ => sums[..columns.end - at].iter_mut().zip(values).for_each(|(s, v)| *s += v),
            }
        }
    }
}

/// A slice of `N` of these rows of a matrix, from `at` on. Where the rows end, the last one is repeated.
#[inline(always)]
fn slices_of<'m, E, const N: usize>(
    matrix: ArrayView2<'m, E>,
    rows: &Range<usize>,
    at: usize,
    slice: &Range<usize>,
) -> [&'m [E]; N] {
    let mut slices = [&[] as &[E]; N];
    for (n, to) in slices.iter_mut().enumerate() {
        *to = &row(matrix, (at + n).min(rows.end - 1))[slice.clone()];
    }
    slices
}

/// The dot products of each of `M` rows with each of `N` columns, row by row in the lanes. With each vector the
/// line at `next` is prefetched, and then `next` moves on.
#[inline(always)]
fn dots<S: Simd, E: Storage, const M: usize, const N: usize>(
    simd: S,
    a: &[f32],
    mut b: [&[E]; N],
    mut next: *const E,
) -> [S::F32; 2] {
    let mut sums = [[simd.splat(0.0); N]; M];
    let depth = b[0].len();
    let full = depth - depth % S::LANES;
    let (whole, rest) = a.split_at(full * M);
    if full < depth {
        accumulate(simd, &mut sums, rest, b, full..depth);
    }
    // The compiler sees that all have the same length, and checks it once.
    b.iter_mut().for_each(|column| *column = &column[..full]);
    for (a, k) in whole.chunks_exact(M * S::LANES).zip((0..full).step_by(S::LANES)) {
        simd.prefetch(next.cast());
        next = next.wrapping_add(S::LANES);
        accumulate(simd, &mut sums, a, b, k..k + S::LANES);
    }
    // The two branches do the same. The compiler keeps the vectors of each in registers only where each is used.
    if M * N <= S::LANES {
        let mut vectors = [simd.splat(0.0); UNIT];
        for (vectors, sums) in vectors.as_chunks_mut::<N>().0.iter_mut().zip(sums) {
            *vectors = sums;
        }
        return [sum_each(simd, vectors), simd.splat(0.0)];
    }
    let mut vectors = [[simd.splat(0.0); UNIT]; 2];
    for (m, sums) in sums.into_iter().enumerate() {
        for (n, sum) in sums.into_iter().enumerate() {
            vectors[(m * N + n) / S::LANES][(m * N + n) % S::LANES] = sum;
        }
    }
    let [first, rest] = vectors;
    [sum_each(simd, first), sum_each(simd, rest)]
}

/// Adds the products of a vector of each row and of elements `k`, at most a vector, of each column.
#[inline(always)]
fn accumulate<S: Simd, E: Storage, const M: usize, const N: usize>(
    simd: S,
    sums: &mut [[S::F32; N]; M],
    a: &[f32],
    b: [&[E]; N],
    k: Range<usize>,
) {
    let mut columns = [simd.splat(0.0); N];
    for (column, b) in columns.iter_mut().zip(b) {
        *column = E::load(simd, &b[k.clone()]);
    }
    for (sums, a) in sums.iter_mut().zip(a.chunks_exact(S::LANES)) {
        let row = simd.load(a);
        for (sum, column) in sums.iter_mut().zip(columns) {
            *sum = simd.mul_add(row, column, *sum);
        }
    }
}

/// The sums of the lanes of each of the first `LANES` vectors, each in the same order.
#[inline(always)]
fn sum_each<S: Simd>(simd: S, mut vectors: [S::F32; UNIT]) -> S::F32 {
    let mut count = S::LANES;
    while count > 1 {
        count /= 2;
        for n in 0..count {
            // The sums of pairs of lanes, those of one vector and of the other in turn.
            let [first, rest] = simd.interleave(vectors[n], vectors[n + count]);
            vectors[n] = first + rest;
        }
    }
    vectors[0]
}
