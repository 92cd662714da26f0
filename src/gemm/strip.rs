//! One strip of a tile, and one slice of the factors.

use std::ops::Range;

use ndarray::ArrayView2;

use super::block::{
    Ahead, Factor, Lying, Packed, Packing, Rows, Sums, add_block, block_count, block_rows, groups,
};
use super::pack::{pack_columns, pack_rows};
use super::{UNIT, padded};
use crate::simd::{Kernel, LINE, Simd};
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
    /// Adds the product of a packed group of columns, at `at`, from block `first` of the rows on.
    #[inline(always)]
    fn add_packed<S: Simd, const V: usize, const LINES: usize>(
        &mut self,
        simd: S,
        at: usize,
        first: usize,
        data: &[f32],
        ahead: impl Fn(usize) -> Ahead,
    ) {
        let count = block_count::<S, V>(self.rows);
        for block in first..count {
            let right: Packed<'_, LINES> = Packed { rest: data, ahead: ahead(block - first) };
            let place = (block, count, self.rows);
            let sums = &mut self.sums.from(at);
            add_block::<S, V>(simd, self.left, right, self.depth, place, sums);
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
            // The first blocks fetch the next group.
            let (lines, next) = (size_of_val(packed) / LINE, after.as_ptr().cast::<u8>());
            let ahead = |block| {
                if block * depth < lines {
                    Ahead { line: next.wrapping_add(block * depth * LINE), step: LINE }
                } else {
                    Ahead::nothing(packed)
                }
            };
            with_vectors!(S, columns.len(), V => {
                self.strip.add_packed::<S, V, 1>(simd, columns.start, 0, packed, ahead);
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
            let nothing = Ahead::nothing(packed);
            // The lines of the next group: the first ones of its rows, the second ones, and so on. Where
            // rows of a group are longer than a line, the first ones are fetched while this group is
            // packed, the others two at a time; elsewhere the processor sees them coming.
            let lines = (2 * S::LANES * size_of::<E>()).div_ceil(LINE) + 1;
            let next = data.as_ptr().wrapping_add(from.at + width).cast::<u8>();
            let step = pitch * size_of::<E>();
            let long = lines > 2;
            let ahead = |block| {
                let first = if long { 2 * block + 1 } else { block };
                if first < lines {
                    Ahead { line: next.wrapping_add(first * LINE), step }
                } else {
                    nothing
                }
            };
            with_vectors!(S, columns.len(), V => {
                let first = if width == V * S::LANES {
                    let ahead = if long { Ahead { line: next, step } } else { nothing };
                    let right = Packing { from, to: &mut *packed, ahead };
                    let place = (0, block_count::<S, V>(strip.rows), strip.rows);
                    let sums = &mut strip.sums.from(columns.start);
                    add_block::<S, V>(simd, strip.left, right, depth, place, sums);
                    1
                } else {
                    pack_rows(simd, from, packed);
                    0
                };
                if long {
                    strip.add_packed::<S, V, 2>(simd, columns.start, first, packed, ahead);
                } else {
                    strip.add_packed::<S, V, 1>(simd, columns.start, first, packed, ahead);
                }
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
            pack_columns(simd, right, slice.clone(), rows, packed);
            let nothing = Ahead::nothing(packed);
            with_vectors!(S, columns.len(), V => {
                strip.add_packed::<S, V, 1>(simd, columns.start, 0, packed, |_| nothing);
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
        let wide = block_rows(S::REGISTERS, 4);
        match strip.rows {
            rows if rows <= wide.min(3) => strip.add_lying::<S, E, 4, false>(simd, data, pitch),
            rows if rows <= wide => strip.add_lying::<S, E, 4, true>(simd, data, pitch),
            _ => strip.add_lying::<S, E, 2, true>(simd, data, pitch),
        }
    }
}

impl Strip<'_, Rows<'_>> {
    /// Adds the product of a few rows, `V` vectors of columns at a time and then single ones.
    #[inline(always)]
    fn add_lying<S: Simd, E: Element, const V: usize, const FETCH: bool>(
        &mut self,
        simd: S,
        data: &[E],
        pitch: usize,
    ) {
        let Range { start, end } = self.columns;
        let full = end - (end - start) % (V * S::LANES);
        for at in (start..full).step_by(V * S::LANES) {
            let right: Lying<'_, E, FETCH> = Lying { data, pitch, at, width: V * S::LANES };
            self.add_group::<S, E, V, FETCH>(simd, right);
        }
        for at in (full..end).step_by(S::LANES) {
            let right = Lying { data, pitch, at, width: S::LANES.min(end - at) };
            self.add_group::<S, E, 1, FETCH>(simd, right);
        }
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
