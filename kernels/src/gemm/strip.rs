//! One strip of a tile, and one slice of the factors.

use std::ops::Range;

use ndarray::ArrayView2;

use super::ahead::{Ahead, Matrix, Steps};
use super::block::{
    Columns, Factor, Fetching, Lying, Packed, Packing, Rows, Sums, add_block, block_count,
    block_rows, groups,
};
use super::pack::{pack_columns, pack_rows};
use super::{UNIT, padded};
use crate::simd::{Kernel, LINE, Simd};
use crate::tiles::row;
use crate::{Element, Isa};

/// Runs an expression with `V` for the number of vectors that a group of so many columns needs, with
/// those that fill it up.
macro_rules! with_vectors {
    ($simd:ident, $columns:expr, $V:ident => $work:expr) => {
        if $columns > $simd::LANES || UNIT > $simd::LANES {
            const $V: usize = 2;
            $work
        } else {
            const $V: usize = 1;
            $work
        }
    };
}

/// What the kernels of this module add to: the sums of `rows` by `columns`.
pub(super) struct Strip<'s, L> {
    pub(super) left: L,
    /// Terms in this slice.
    pub(super) depth: usize,
    pub(super) rows: usize,
    pub(super) columns: Range<usize>,
    pub(super) sums: Sums<'s>,
}

impl<L: Factor> Strip<'_, L> {
    /// Some of its columns.
    pub(super) fn part(&mut self, columns: Range<usize>) -> Strip<'_, L> {
        let Strip { left, depth, rows, .. } = *self;
        let start = self.columns.start;
        let sums = self.sums.from(columns.start);
        Strip { left, depth, rows, columns: start + columns.start..start + columns.end, sums }
    }

    /// Adds the product of block `block` of the rows and the group of columns `at`.
    #[inline(always)]
    fn add_block<S: Simd, A: Ahead, const V: usize>(
        &mut self,
        simd: S,
        at: usize,
        block: usize,
        columns: impl Columns<S, V>,
        ahead: A,
    ) {
        let place = (block, block_count::<S, V>(self.rows), self.rows);
        let right = Fetching { columns, ahead };
        add_block::<S, V>(simd, self.left, right, self.depth, place, &mut self.sums.from(at));
    }

    /// Adds the product of a packed group of columns, at `at`, from block `first` of the rows on.
    #[inline(always)]
    fn add_packed<S: Simd, A: Ahead, const V: usize>(
        &mut self,
        simd: S,
        at: usize,
        first: usize,
        data: &[f32],
        ahead: impl Fn((usize, usize)) -> A,
    ) {
        let count = block_count::<S, V>(self.rows);
        for block in first..count {
            self.add_block::<S, A, V>(simd, at, block, Packed(data), ahead((block, count)));
        }
    }

    /// Adds the product of a group of two vectors of columns as they lie, fetching `first` with the
    /// first block of rows. For one block more they are read again, for others packed on the way.
    #[inline(always)]
    fn add_and_fetch<S: Simd, E: Element, A: Ahead, B: Ahead>(
        &mut self,
        simd: S,
        from: Lying<'_, E, true>,
        packed: &mut [f32],
        first: A,
        ahead: impl Fn((usize, usize)) -> B,
    ) {
        let at = from.at - self.columns.start;
        let count = block_count::<S, 2>(self.rows);
        if count == 2 {
            self.add_block::<S, A, 2>(simd, at, 0, from, first);
            self.add_block::<S, B, 2>(simd, at, 1, from.again(), ahead((1, count)));
        } else {
            let packing = Packing { from, to: &mut *packed };
            self.add_block::<S, A, 2>(simd, at, 0, packing, first);
            self.add_packed::<S, B, 2>(simd, at, 1, packed, ahead);
        }
    }

    /// [`Strip::add_and_fetch`], fetching the group after this one.
    #[inline(always)]
    fn add_lying_group<S: Simd, E: Element>(
        &mut self,
        simd: S,
        from: Lying<'_, E, true>,
        packed: &mut [f32],
    ) {
        let (depth, count) = (self.depth, block_count::<S, 2>(self.rows));
        // Rows need not start with a line.
        let start = from.data.as_ptr().wrapping_add(from.at + from.width).cast::<u8>();
        let len = from.width * size_of::<E>() + LINE;
        let pitch = from.pitch * size_of::<E>();
        if const { 2 * S::LANES * size_of::<E>() <= LINE } {
            // Rows of at most a line: the processor sees them coming, and blocks take so few
            // instructions that counting runs would show.
            let nothing = Steps::nothing(packed);
            self.add_and_fetch(simd, from, packed, nothing, |(block, _)| match block {
                1 | 2 => Steps { line: start.wrapping_add((block - 1) * LINE), step: pitch },
                _ => nothing,
            });
        } else if count * LINE < len {
            let first = Steps::<1> { line: start, step: pitch };
            let others = Steps::<2> { line: start.wrapping_add(LINE), step: pitch };
            self.add_and_fetch(simd, from, packed, first, |_| others);
        } else {
            let next = Matrix { start, len, pitch, count: depth };
            let ahead = |part| next.part(part, depth);
            self.add_and_fetch(simd, from, packed, ahead((0, count)), ahead);
        }
    }
}

/// `sums += left @ packed`
pub(super) struct AddPacked<'p, 's, L> {
    pub(super) strip: Strip<'s, L>,
    /// A slice of the right factor, packed.
    pub(super) packed: &'p [f32],
}

impl<L: Factor> Kernel for AddPacked<'_, '_, L> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let mut rest = self.packed;
        let depth = self.strip.depth;
        for columns in groups::<S>(self.strip.columns.len()) {
            let (packed, after) = rest.split_at(depth * padded(columns.len()));
            rest = after;
            // Each block fetches its part of the next group, as far as a line a row goes.
            let (size, next) = (size_of_val(packed), after.as_ptr().cast::<u8>());
            let ahead = |(block, count): (usize, usize)| {
                let step = (size / (count * depth)).min(LINE);
                Steps::<1> { line: next.wrapping_add(block * depth * step), step }
            };
            with_vectors!(S, columns.len(), V => {
                self.strip.add_packed::<S, _, V>(simd, columns.start, 0, packed, ahead);
            });
        }
    }
}

/// `sums += left @ right` from rows as they lie, which are packed on the way.
pub(super) struct AddRows<'r, 't, 's, L, E> {
    pub(super) strip: Strip<'s, L>,
    /// A slice of the right factor.
    pub(super) right: ArrayView2<'r, E>,
    /// A group of columns, packed.
    pub(super) packed: &'t mut [f32],
}

impl<L: Factor, E: Element> Kernel for AddRows<'_, '_, '_, L, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let AddRows { mut strip, right, packed } = self;
        let depth = strip.depth;
        let pitch = right.ncols();
        let data = right.to_slice().expect("a right factor without gaps");
        for columns in groups::<S>(strip.columns.len()) {
            let width = columns.len();
            let packed = &mut packed[..depth * padded(width)];
            let from = Lying { data, pitch, at: strip.columns.start + columns.start, width };
            if width == 2 * S::LANES {
                strip.add_lying_group(simd, from, packed);
                continue;
            }
            pack_rows(simd, from, packed);
            let nothing = Steps::nothing(packed);
            with_vectors!(S, columns.len(), V => {
                strip.add_packed::<S, _, V>(simd, columns.start, 0, packed, |_| nothing);
            });
        }
    }
}

/// `sums += left @ right^T`
pub(super) struct AddColumns<'r, 't, 's, L, E> {
    pub(super) strip: Strip<'s, L>,
    /// The right factor's transpose, of which this slice of the columns belongs to the left factor.
    pub(super) right: ArrayView2<'r, E>,
    pub(super) slice: Range<usize>,
    /// A group of columns, packed.
    pub(super) packed: &'t mut [f32],
}

impl<L: Factor, E: Element> Kernel for AddColumns<'_, '_, '_, L, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let AddColumns { mut strip, right, slice, packed } = self;
        let first = strip.columns.start;
        for columns in groups::<S>(strip.columns.len()) {
            let packed = &mut packed[..strip.depth * padded(columns.len())];
            let rows = first + columns.start..first + columns.end;
            pack_columns(simd, right, slice.clone(), rows.clone(), packed);
            let after = &row(right, rows.end.min(right.nrows() - 1))[slice.clone()];
            let next = Matrix {
                start: after.as_ptr().cast(),
                len: size_of_val(after) + LINE,
                pitch: right.strides()[0].unsigned_abs() * size_of::<E>(),
                count: columns.len(),
            };
            let depth = strip.depth;
            with_vectors!(S, columns.len(), V => {
                strip.add_packed::<S, _, V>(simd, columns.start, 0, packed, |part| next.part(part, depth));
            });
        }
    }
}

/// `sums += left @ right` from rows as they lie, where packing them does not pay.
pub(super) struct AddDirect<'r, 's, 'l, E> {
    pub(super) strip: Strip<'s, Rows<'l>>,
    /// A slice of the right factor.
    pub(super) right: ArrayView2<'r, E>,
}

impl<E: Element> Kernel for AddDirect<'_, '_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let AddDirect { mut strip, right } = self;
        let data = right.to_slice().expect("a right factor without gaps");
        let pitch = right.ncols();
        let most = |vectors| block_rows(S::REGISTERS, vectors);
        match strip.rows {
            rows if rows <= most(8) => strip.add_lying::<S, E, 8, false>(simd, data, pitch),
            rows if rows <= most(4).min(3) => strip.add_lying::<S, E, 4, false>(simd, data, pitch),
            rows if rows <= most(4) => strip.add_lying::<S, E, 4, true>(simd, data, pitch),
            _ => strip.add_lying::<S, E, 2, true>(simd, data, pitch),
        }
    }
}

impl Strip<'_, Rows<'_>> {
    /// Adds the product of a few rows: `V` vectors of columns at a time, then four of what is left if
    /// those are fewer, and then single ones.
    #[inline(always)]
    fn add_lying<S: Simd, E: Element, const V: usize, const FETCH: bool>(
        &mut self,
        simd: S,
        data: &[E],
        pitch: usize,
    ) {
        let Range { start, end } = self.columns;
        let mut rest = self.add_groups::<S, E, V, FETCH>(simd, data, pitch, start);
        if V > 4 {
            rest = self.add_groups::<S, E, 4, FETCH>(simd, data, pitch, rest);
        }
        for at in (rest..end).step_by(S::LANES) {
            let right = Lying { data, pitch, at, width: S::LANES.min(end - at) };
            self.add_group::<S, E, 1, FETCH>(simd, right);
        }
    }

    /// Adds the product of as many whole groups of columns as there are from `start` on; returns where
    /// they end.
    #[inline(always)]
    fn add_groups<S: Simd, E: Element, const V: usize, const FETCH: bool>(
        &mut self,
        simd: S,
        data: &[E],
        pitch: usize,
        start: usize,
    ) -> usize {
        let width = V * S::LANES;
        let end = self.columns.end - (self.columns.end - start) % width;
        for at in (start..end).step_by(width) {
            self.add_group::<S, E, V, FETCH>(simd, Lying { data, pitch, at, width });
        }
        end
    }

    #[inline(always)]
    fn add_group<S: Simd, E: Element, const V: usize, const FETCH: bool>(
        &mut self,
        simd: S,
        right: Lying<'_, E, FETCH>,
    ) {
        let sums = &mut self.sums.from(right.at - self.columns.start);
        add_block::<S, V>(simd, self.left, right, self.depth, (0, 1, self.rows), sums);
    }
}

/// Rows of the left factor up to which packing the right one does not pay: one block of the widest
/// kind, which reads each element of the right factor once.
pub(super) fn few_rows(isa: Isa) -> usize {
    struct FewRows;

    impl Kernel for FewRows {
        type Output = usize;

        #[inline(always)]
        fn run<S: Simd>(self, _: S) -> usize {
            block_rows(S::REGISTERS, 2)
        }
    }

    isa.run(FewRows)
}
