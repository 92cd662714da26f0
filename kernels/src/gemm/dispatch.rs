//! Adding products to a tile: which of the ways to compute them to take.

use std::marker::PhantomData;
use std::ops::Range;

use ndarray::{ArrayView2, ArrayView3, Axis, Slice};

use super::columns::runs;
use super::dots::{self, AddDots, Blocks, CopyBlocks};
use super::few_rows::{AddFewRows, few_rows};
use super::lanes::{Floats, Lanes, Pairs, Quads, Rounded, lanes, packed_depth};
use super::micro_kernel::{Accumulators, LeftPanel, LeftRows, LeftSlice};
use super::pack::{CopyPanel, CopyRows};
use super::quads::{AddQuads, ScaleRows};
use super::right::Right;
use super::strip::{AddPacked, AddRows, AddTransposed, Strip};
use super::sweep::{self, AddSwept};
use super::tile::Tile;
use super::tiling::{even, padded, slices};
use super::units::QuadWeights;
use crate::Storage;
use crate::constants::Packing;
use crate::tiles::{columns as columns_of, parts, rows as rows_of};
use crate::tuning::{DOT_ROWS, DOT_SLICE_TERMS, LEFT_PITCH_FLOATS, UNIT};

impl Tile<'_> {
    /// Adds `left @ right`.
    pub(crate) fn add<A: Storage, B: Storage>(
        &mut self,
        left: ArrayView2<'_, A>,
        right: Right<'_, B>,
    ) {
        self.add_all(left.insert_axis(Axis(0)), right);
    }

    /// Adds `left @ right`, where the rows of the left factor are those of some matrices, one below the other.
    pub(crate) fn add_all<A: Storage, B: Storage>(
        &mut self,
        left: ArrayView3<'_, A>,
        right: Right<'_, B>,
    ) {
        self.clear_blank();
        let unpacked = if self.pairs { Packing::Pairs } else { Packing::Floats };
        let (unpacked, packing) = match right {
            Right::Quads(weights) => return self.add_quads(left, weights),
            Right::RowMajor(matrix) => (as_f32(matrix), unpacked),
            Right::Transposed(_) => (None, unpacked),
            Right::Packed { packing, .. } => (None, packing),
        };
        match unpacked {
            _ if const { !B::IS_16_BIT } && packing == Packing::Pairs => {
                self.for_each_slice::<A, Pairs>(left, |tile, left, slice| {
                    tile.add_slice(left, right, slice);
                });
            }
            _ if const { !B::IS_16_BIT } && packing == Packing::Rounded => {
                self.for_each_slice::<A, Rounded>(left, |tile, left, slice| {
                    tile.add_slice(left, right, slice);
                });
            }
            Some(b) if sweep::pays(self.isa, self.rows, b) => {
                self.for_each_slice::<A, Floats>(left, |tile, left, slice| {
                    tile.add_swept(left, b, slice);
                });
            }
            Some(b) if self.rows <= few_rows(self.isa) => {
                self.for_each_slice::<A, Floats>(left, |tile, left, slice| {
                    tile.add_few_rows(left, b, slice);
                });
            }
            _ => self.for_each_slice::<A, Floats>(left, |tile, left, slice| {
                tile.add_slice(left, right, slice);
            }),
        }
    }

    /// Adds `left^T @ right`, where `right` is row-major and has no gaps. Rows of `left` that are false in `valid`
    /// count as zeros, whatever they hold.
    pub(crate) fn add_tn<A: Storage, B: Storage>(
        &mut self,
        left: ArrayView2<'_, A>,
        valid: Option<&[bool]>,
        right: ArrayView2<'_, B>,
    ) {
        if const { !B::IS_16_BIT } && self.pairs {
            self.add_panels::<A, B, Pairs>(left, valid, right);
        } else {
            self.add_panels::<A, B, Floats>(left, valid, right);
        }
    }

    /// [`Tile::add_tn`] of factors with such lanes.
    fn add_panels<A: Storage, B: Storage, L: Lanes>(
        &mut self,
        left: ArrayView2<'_, A>,
        valid: Option<&[bool]>,
        right: ArrayView2<'_, B>,
    ) {
        self.clear_blank();
        let memory = std::mem::take(&mut self.left);
        let panel = memory.as_chunks_mut().0.first_chunk_mut().expect("memory for a panel");
        for slice in slices::<L>(left.nrows()) {
            let from = rows_of(left, slice.clone());
            let valid = valid.map(|valid| &valid[slice.clone()]);
            L::run(self.isa, CopyPanel::<A, L>::new(from, valid, panel));
            self.add_row_major(LeftPanel::<L>::new(panel), right, slice);
        }
        self.left = memory;
    }

    /// Adds `a @ b^T` where `b` is used only once: by dot products of unpacked rows, or packed on the way. Which
    /// one depends on the shapes alone, and so does the order in which terms are added.
    pub(crate) fn add_nt<E: Storage>(&mut self, a: ArrayView2<'_, E>, b: ArrayView2<'_, E>) {
        if dots::pay(self.isa, self.rows, a.ncols()) {
            self.add_dots(a, b);
        } else {
            self.add(a, Right::Transposed(b));
        }
    }

    /// Adds `a @ b^T` by dot products, whose terms are added in an order of their own.
    pub(crate) fn add_dots<E: Storage>(&mut self, a: ArrayView2<'_, E>, b: ArrayView2<'_, E>) {
        self.clear_blank();
        let isa = self.isa;
        let memory = std::mem::take(&mut self.left);
        for slice in parts(0..a.ncols(), even(a.ncols(), DOT_SLICE_TERMS, UNIT)) {
            for rows in parts(0..self.rows, even(self.rows, DOT_ROWS, 4)) {
                let from = columns_of(rows_of(a, rows.clone()), slice.clone());
                let size = isa.run(CopyBlocks { from, to: memory });
                let left = Blocks { data: memory, size };
                self.for_each_run(rows, left, slice.len(), |strip, _| {
                    isa.run(AddDots { strip, right: b, slice: slice.clone() });
                });
            }
        }
        self.left = memory;
    }

    /// Calls `add` with a copy of each slice of `a`, matrices one below the other.
    pub(super) fn for_each_slice<A: Storage, L: Lanes>(
        &mut self,
        a: ArrayView3<'_, A>,
        mut add: impl FnMut(&mut Self, LeftRows<'_, L>, Range<usize>),
    ) {
        let memory = std::mem::take(&mut self.left);
        if const { L::AROUND > 0 } {
            self.isa.run(ScaleRows { from: a.view(), to: memory, pitch: LEFT_PITCH_FLOATS });
        }
        for slice in slices::<L>(a.len_of(Axis(2))) {
            let mut from = a.view();
            from.slice_axis_inplace(Axis(2), Slice::from(slice.clone()));
            let (pitch, lanes) = (LEFT_PITCH_FLOATS, PhantomData::<L>);
            L::run(self.isa, CopyRows { from, to: memory, pitch, lanes });
            add(self, LeftRows::new(&memory.as_chunks().0[..self.rows]), slice);
        }
        self.left = memory;
    }

    /// Adds the product of one slice of the factors. `left` is that slice; `right` is all of it.
    fn add_slice<B: Storage, L: Lanes>(
        &mut self,
        left: LeftRows<'_, L>,
        right: Right<'_, B>,
        slice: Range<usize>,
    ) {
        let (isa, depth) = (self.isa, lanes::<L>(slice.len()));
        match right {
            Right::RowMajor(b) => self.add_row_major(left, b, slice),
            Right::Transposed(b) => {
                self.for_each_run(0..self.rows, left, depth, |strip, packed| {
                    L::run(isa, AddTransposed { strip, right: b, slice: slice.clone(), packed });
                });
            }
            Right::Packed { data, vectors, .. } => {
                let Tile { rows, pitch, ref mut sums, .. } = *self;
                let [start, len] = [lanes::<L>(slice.start), depth].map(packed_depth::<L>);
                let packed = &data[start * pitch..][..len * pitch];
                let sums = Accumulators { data: sums, pitch };
                let strip = Strip { left, depth, rows, columns: 0..pitch, sums };
                L::run(isa, AddPacked { strip, packed, vectors });
            }
            Right::Quads(_) => unreachable!("another kind of lanes"),
        }
    }

    /// [`Tile::add_all`] of weights in int8.
    fn add_quads<A: Storage>(&mut self, left: ArrayView3<'_, A>, weights: QuadWeights<'_>) {
        let isa = self.isa;
        self.for_each_slice::<A, Quads>(left, |tile, left, slice| {
            let mut of_runs = weights.gates();
            tile.for_each_run(0..tile.rows, left, lanes::<Quads>(slice.len()), |strip, _| {
                let weights = of_runs.next().expect("a gate for each run");
                isa.run_quads(AddQuads { strip, weights, slice: slice.clone() });
            });
        });
    }

    /// [`Tile::add_slice`] for a row-major factor that is packed on the way.
    fn add_row_major<B: Storage, L: LeftSlice>(
        &mut self,
        left: L,
        b: ArrayView2<'_, B>,
        slice: Range<usize>,
    ) {
        let isa = self.isa;
        let right = rows_of(b, slice.clone());
        let depth = lanes::<L::Lanes>(slice.len());
        self.for_each_run(0..self.rows, left, depth, |strip, packed| {
            L::Lanes::run(isa, AddRows { strip, right, packed });
        });
    }

    /// [`Tile::add_slice`] for a few rows, and a right factor that is not packed.
    fn add_few_rows(&mut self, left: LeftRows<'_>, b: ArrayView2<'_, f32>, slice: Range<usize>) {
        let isa = self.isa;
        let right = rows_of(b, slice.clone());
        self.for_each_run(0..self.rows, left, slice.len(), |strip, _| {
            isa.run(AddFewRows { strip, right });
        });
    }

    /// [`Tile::add_slice`] for a right factor of which several rows are read side by side.
    pub(super) fn add_swept(
        &mut self,
        left: LeftRows<'_>,
        b: ArrayView2<'_, f32>,
        slice: Range<usize>,
    ) {
        let isa = self.isa;
        let right = rows_of(b, slice.clone());
        self.for_each_run(0..self.rows, left, slice.len(), |mut strip, memory| {
            let columns = strip.columns.len();
            let whole = sweep::whole(isa, columns);
            isa.run(AddSwept { strip: strip.part(0..whole), right, memory });
            isa.run(AddRows { strip: strip.part(whole..columns), right, packed: memory });
        });
    }

    /// Calls `add` with some rows of each run of strips that are neighbours, as one strip, and with
    /// memory for packed columns.
    pub(super) fn for_each_run<L: Copy>(
        &mut self,
        rows: Range<usize>,
        left: L,
        depth: usize,
        mut add: impl FnMut(Strip<'_, L>, &mut [f32]),
    ) {
        let Tile { strips, pitch, first, .. } = *self;
        let mut before = rows.start * pitch;
        for columns in runs(strips) {
            let (width, columns) = (columns.len(), first + columns.start..first + columns.end);
            let sums = Accumulators { data: &mut self.sums[before..], pitch };
            add(Strip { left, depth, rows: rows.len(), columns, sums }, self.packed);
            before += padded(width);
        }
    }
}

/// A matrix without gaps, if its elements are of type `f32`.
fn as_f32<E: Storage>(matrix: ArrayView2<'_, E>) -> Option<ArrayView2<'_, f32>> {
    let data = E::as_f32(matrix.to_slice().expect("a right factor without gaps"))?;
    Some(ArrayView2::from_shape(matrix.raw_dim(), data).expect("of the same size"))
}
