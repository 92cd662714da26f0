//! Packed products: one strip of a tile, and one slice of the factors.

use std::ops::Range;

use ndarray::ArrayView2;

use super::lanes::{Lanes, packed_depth};
use super::micro_kernel::{
    Accumulators, LeftRows, LeftSlice, Packed, Packing, Prefetching, Unpacked, add_block,
    block_count, groups, groups_of,
};
use super::pack::{pack_rows, pack_transposed};
use super::prefetch::{Matrix, NoPrefetch, PackedSteps, Prefetch, PrefetchCursor};
use super::tiling::padded;
use crate::Storage;
use crate::simd::{LINE, Simd, WithSimd};
use crate::tiles::row;
use crate::tuning::{NR, UNIT};

/// All blocks of rows.
const ALL: Range<usize> = 0..usize::MAX;

/// What the operations of this module add to: the sums of `rows` by `columns`.
pub(super) struct Strip<'s, L> {
    pub(super) left: L,
    /// Terms in this slice.
    pub(super) depth: usize,
    pub(super) rows: usize,
    pub(super) columns: Range<usize>,
    pub(super) sums: Accumulators<'s>,
}

/// The product of one block of rows and one packed group of columns. It is a function of its own, so that all
/// that multiplies packed columns shares it.
struct PackedBlock<'p, 's, L, P, const V: usize> {
    left: L,
    depth: usize,
    /// The block, of how many, of how many rows.
    place: (usize, usize, usize),
    packed: &'p [f32],
    sums: Accumulators<'s>,
    prefetch: P,
}

impl<L: LeftSlice, P: Prefetch, const V: usize> WithSimd for PackedBlock<'_, '_, L, P, V> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let PackedBlock { left, depth, place, packed, mut sums, prefetch } = self;
        let right = Packed { data: packed, prefetch };
        add_block::<S, V, false>(simd, left, right, depth, place, &mut sums);
    }
}

impl<L: LeftSlice> Strip<'_, L> {
    /// Some of its columns.
    pub(super) fn part(&mut self, columns: Range<usize>) -> Strip<'_, L> {
        let Strip { left, depth, rows, .. } = *self;
        let start = self.columns.start;
        let sums = self.sums.from(columns.start);
        Strip { left, depth, rows, columns: start + columns.start..start + columns.end, sums }
    }

    /// Adds the product of some blocks of the rows and a packed group of columns, at `at`.
    #[inline(always)]
    fn add_packed<S: Simd, P: Prefetch, const V: usize>(
        &mut self,
        simd: S,
        at: usize,
        blocks: Range<usize>,
        packed: &[f32],
        prefetch: impl Fn((usize, usize)) -> P,
    ) {
        let count = block_count::<S, V>(self.rows);
        for block in blocks.start..blocks.end.min(count) {
            simd.enter(PackedBlock::<_, _, V> {
                left: self.left,
                depth: self.depth,
                place: (block, count, self.rows),
                packed,
                sums: self.sums.from(at),
                prefetch: prefetch((block, count)),
            });
        }
    }

    /// [`Strip::add_packed`] with one or two vectors, as many as these columns need with those that fill them up.
    #[inline(always)]
    fn add_packed_group<S: Simd>(
        &mut self,
        simd: S,
        columns: &Range<usize>,
        packed: &[f32],
        prefetch: impl Fn((usize, usize)) -> PackedSteps,
    ) {
        if const { S::LANES >= UNIT } && columns.len() <= S::LANES {
            self.add_packed::<S, _, 1>(simd, columns.start, ALL, packed, prefetch);
        } else {
            self.add_packed::<S, _, 2>(simd, columns.start, ALL, packed, prefetch);
        }
    }

    /// [`Strip::add_packed_group`] of a group that may be wider.
    #[inline(always)]
    fn add_wide_group<S: Simd>(
        &mut self,
        simd: S,
        columns: &Range<usize>,
        packed: &[f32],
        prefetch: impl Fn((usize, usize)) -> PackedSteps,
    ) {
        if const { S::REGISTERS >= 16 } {
            match columns.len().div_ceil(S::LANES) {
                8 => return self.add_packed::<S, _, 8>(simd, columns.start, ALL, packed, prefetch),
                4 => return self.add_packed::<S, _, 4>(simd, columns.start, ALL, packed, prefetch),
                _ => {}
            }
        }
        self.add_packed_group(simd, columns, packed, prefetch);
    }

    /// Adds the product of a group of two vectors of unpacked columns, and prefetches the next group.
    #[inline(always)]
    fn add_unpacked_group<S: Simd>(
        &mut self,
        simd: S,
        from: Unpacked<'_, f32, true>,
        packed: &mut [f32],
    ) {
        let (depth, count) = (self.depth, block_count::<S, 2>(self.rows));
        let at = from.at - self.columns.start;
        // Rows need not start with a line.
        let start = from.data.as_ptr().wrapping_add(from.at + from.width).cast::<u8>();
        let len = from.width * size_of::<f32>() + LINE;
        let pitch = from.pitch * size_of::<f32>();
        let nothing = PackedSteps::nothing(packed);
        let line = |n: usize| start.wrapping_add(n * LINE);
        let first = PrefetchCursor::<1>::new(start, pitch);
        // Where rows of a group are at most a line long, blocks take so few instructions that counting steps would
        // show.
        let short = const { 2 * S::LANES * size_of::<f32>() <= LINE };
        if L::REREADS && count == 2 {
            if short {
                self.add_twice(simd, from, nothing, first);
            } else {
                let others = PrefetchCursor::<2>::new(line(1), pitch);
                self.add_twice(simd, from, first, others);
            }
        } else if short {
            self.add_packing(simd, at, from, packed, nothing);
            self.add_prefetching_lines(simd, at, packed, (line, pitch));
        } else {
            let next = Matrix { start, len, pitch, count: depth };
            let prefetch = |part| next.part(part, depth);
            self.add_packing(simd, at, from, packed, prefetch((0, count)));
            self.add_packed::<S, _, 2>(simd, at, 1..usize::MAX, packed, prefetch);
        }
    }

    /// Adds the product of all blocks of rows but the first one and a packed group of columns. They prefetch the next
    /// group, whose rows have one line each, or two: `line(0)` and `line(1)`, and those of the next row `step` bytes
    /// further.
    #[inline(always)]
    fn add_prefetching_lines<S: Simd>(
        &mut self,
        simd: S,
        at: usize,
        packed: &[f32],
        (line, step): (impl Fn(usize) -> *const u8, usize),
    ) {
        let count = block_count::<S, 2>(self.rows);
        self.add_packed::<S, _, 2>(simd, at, 1..3, packed, |(block, _)| {
            PrefetchCursor::<1, 2>::new(line(block - 1), step)
        });
        // In the first level cache the left factor's rows take the place of what was requested before the last blocks.
        let last = count.saturating_sub(2).max(3);
        self.add_packed::<S, _, 2>(simd, at, 3..last, packed, |_| NoPrefetch);
        self.add_packed::<S, _, 2>(simd, at, last..count, packed, |(block, _)| {
            PrefetchCursor::<1, 1>::new(line(count - 1 - block), step)
        });
    }

    /// The two blocks of rows both read the unpacked columns.
    #[inline(always)]
    fn add_twice<S: Simd, P: Prefetch, Q: Prefetch>(
        &mut self,
        simd: S,
        from: Unpacked<'_, f32, true>,
        first: P,
        second: Q,
    ) {
        let &mut Strip { left, depth, rows, .. } = self;
        let sums = &mut self.sums.from(from.at - self.columns.start);
        let right = Prefetching { columns: from, prefetch: first };
        add_block::<S, 2, true>(simd, left, right, depth, (0, 2, rows), sums);
        let right = Prefetching { columns: from.again(), prefetch: second };
        add_block::<S, 2, true>(simd, left, right, depth, (1, 2, rows), sums);
    }

    /// Adds the product of the first block of rows, which packs the columns, at `at`, for the others.
    #[inline(always)]
    fn add_packing<S: Simd, P: Prefetch>(
        &mut self,
        simd: S,
        at: usize,
        from: Unpacked<'_, f32, true>,
        packed: &mut [f32],
        prefetch: P,
    ) {
        let &mut Strip { left, depth, rows, .. } = self;
        let place = (0, block_count::<S, 2>(rows), rows);
        let columns = Packing { from, to: packed };
        let (right, sums) = (Prefetching { columns, prefetch }, &mut self.sums.from(at));
        if const { L::REREADS } {
            add_block::<S, 2, true>(simd, left, right, depth, place, sums);
        } else {
            add_block::<S, 2, false>(simd, left, right, depth, place, sums);
        }
    }
}

/// `sums += left @ packed`
pub(super) struct AddPacked<'p, 's, L> {
    pub(super) strip: Strip<'s, L>,
    /// A slice of the right factor, packed in groups of `vectors` vectors.
    pub(super) packed: &'p [f32],
    pub(super) vectors: usize,
}

impl<L: LeftSlice> WithSimd for AddPacked<'_, '_, L> {
    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let mut rest = self.packed;
        let depth = packed_depth::<L::Lanes>(self.strip.depth);
        for columns in groups_of::<S>(self.strip.columns.len(), self.vectors) {
            let (packed, after) = rest.split_at(depth * padded(columns.len()));
            rest = after;
            // Each block prefetches its part of the next group, up to a line with each row.
            let (size, next) = (size_of_val(packed), after.as_ptr().cast::<u8>());
            self.strip.add_wide_group(simd, &columns, packed, |(block, count)| {
                let step = (size / (count * depth)).min(LINE);
                PackedSteps::new(next.wrapping_add(block * depth * step), step)
            });
        }
    }
}

/// `sums += left @ right`, where `right` is row-major and is packed on the way.
pub(super) struct AddRows<'r, 't, 's, L, E> {
    pub(super) strip: Strip<'s, L>,
    /// A slice of the right factor.
    pub(super) right: ArrayView2<'r, E>,
    /// Memory for a packed group of columns.
    pub(super) packed: &'t mut [f32],
}

impl<L: LeftSlice, E: Storage> WithSimd for AddRows<'_, '_, '_, L, E> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let AddRows { mut strip, right, packed } = self;
        let depth = strip.depth;
        let pitch = right.ncols();
        let data = right.to_slice().expect("a right factor without gaps");
        for columns in groups::<S>(strip.columns.len()) {
            let width = columns.len();
            let packed = &mut packed[..depth * padded(width)];
            let at = strip.columns.start + columns.start;
            if const { L::Lanes::TERMS == 1 && !E::IS_16_BIT } && width == 2 * S::LANES {
                let data = E::as_f32(data).expect("elements of type f32");
                strip.add_unpacked_group(simd, Unpacked { data, pitch, at, width }, packed);
                continue;
            }
            let from = Unpacked::<E, true> { data, pitch, at, width };
            pack_rows::<S, E, L::Lanes>(simd, from, packed, padded(width));
            let nothing = PackedSteps::nothing(packed);
            strip.add_packed_group(simd, &columns, packed, |_| nothing);
        }
    }
}

/// `sums += left @ right^T`
pub(super) struct AddTransposed<'r, 't, 's, 'l, E, L> {
    pub(super) strip: Strip<'s, LeftRows<'l, L>>,
    /// The right factor's transpose, of which this slice of the columns belongs to the left factor.
    pub(super) right: ArrayView2<'r, E>,
    pub(super) slice: Range<usize>,
    /// Memory for a packed group of columns.
    pub(super) packed: &'t mut [f32],
}

impl<E: Storage, L: Lanes> WithSimd for AddTransposed<'_, '_, '_, '_, E, L> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let AddTransposed { mut strip, right, slice, packed } = self;
        let (first, depth) = (strip.columns.start, strip.depth);
        for columns in groups::<S>(strip.columns.len()) {
            let packed = &mut packed[..depth * padded(columns.len())];
            let rows = first + columns.start..first + columns.end;
            let group = padded(columns.len());
            pack_transposed::<S, E, L>(simd, right, slice.clone(), rows.clone(), packed, group);
            if columns.len() < 2 * S::LANES {
                let nothing = PackedSteps::nothing(packed);
                strip.add_packed_group(simd, &columns, packed, |_| nothing);
                continue;
            }
            let after = &row(right, rows.end.min(right.nrows() - 1))[slice.clone()];
            let next = Matrix {
                start: after.as_ptr().cast(),
                len: size_of_val(after) + LINE,
                pitch: right.strides()[0].unsigned_abs() * size_of::<E>(),
                count: columns.len(),
            };
            let prefetch = |part| next.part(part, depth);
            strip.add_packed::<S, _, 2>(simd, columns.start, ALL, packed, prefetch);
        }
    }
}

// A group fits in the memory for packed columns whatever the instruction set.
const _: () = assert!(NR == 2 * UNIT);
