//! Sums of matrix products, tile by tile, for right factors that several rows share.
//!
//! A tile is some rows of the result and one or more strips of its columns, which need not be
//! neighbours: a strip of each gate, of the same cells, makes all that the elementwise part of a
//! step needs at hand while the sums are in cache. Products are added to the tile in slices of up to
//! [`DEPTH`] terms, each from a copy of the right factor's slice in the order in which the innermost
//! loop reads it; where a few rows are all there is, from the factor as it lies.
//!
//! Every element is summed in the same order whatever the tile, so a result depends on its row of
//! the left factor and its column of the right one alone, bit for bit: not on the batch, the tiling
//! or the number of threads.

mod block;
mod pack;
mod products;
mod strip;
mod weights;
mod workspace;

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2, Axis};

use crate::tiles::{Tiling, columns as columns_of, row, rows as rows_of};
use crate::{Context, Element, Isa};
use block::{Factor, Panel, Rows, Sums};
use pack::{CopyColumns, CopyRows, pack, packed_len};
use products::Store;
pub(crate) use products::{Product, Shape, products, steps_at_once};
use strip::{AddColumns, AddDirect, AddPacked, AddRows, Strip, few_rows};
pub(crate) use weights::{Weights, weights_fit, weights_len};

/// Packed columns are filled up with zeros to a multiple of this.
const UNIT: usize = 16;

/// Most columns that are packed side by side.
const GROUP: usize = 2 * UNIT;

/// Most terms of each sum that are added up before they are added to the tile: a slice of a group of
/// columns stays in the first level cache, and the rounding error grows with this and the number of
/// slices.
const DEPTH: usize = 128;

/// Most rows of a tile whose left factor is given by columns.
const COLUMN_ROWS: usize = 96;

/// The left factor of a product, `[m, k]`.
#[derive(Clone, Copy)]
pub(crate) enum Left<'a, E> {
    /// Row-major.
    Rows(ArrayView2<'a, E>),
    /// The transpose of a matrix `[k, m]` whose rows are contiguous.
    Columns {
        /// The matrix.
        matrix: ArrayView2<'a, E>,
        /// Rows of the matrix to take for zeros, whatever they hold: those that are false here.
        valid: Option<&'a [bool]>,
    },
}

/// The right factor of a product, `[k, n]`.
#[derive(Clone, Copy)]
pub(crate) enum Right<'a, E> {
    /// Row-major, without gaps.
    Rows(ArrayView2<'a, E>),
    /// The transpose of a matrix `[n, k]` whose rows are contiguous.
    Columns(ArrayView2<'a, E>),
    /// What [`pack`] made of one of the others, for the strips of this tile.
    Packed(&'a [f32]),
}

/// Ranges of columns.
pub(crate) type Strips<'s> = &'s [Range<usize>];

/// Sums of products.
pub(crate) struct Tile<'t> {
    isa: Isa,
    rows: usize,
    strips: Strips<'t>,
    /// Sums in a row: runs of strips that are neighbours, each filled up to a multiple of [`UNIT`].
    pitch: usize,
    /// `[rows, pitch]`
    sums: &'t mut [f32],
    /// Whether the sums stand for zeros, whatever they are.
    blank: bool,
    /// Memory for a slice of the left factor.
    left: &'t mut [f32],
    /// Memory for a slice of a group of columns of the right factor.
    packed: &'t mut [f32],
}

/// Most sums of a tile: they stay in the second level cache.
const SUMS: usize = COLUMN_ROWS * 256;

/// Most rows of a tile, however narrow.
const MOST_ROWS: usize = SUMS / DEPTH;

/// Makes a tile full of zeros for `work`.
pub(crate) fn tile<R>(
    isa: Isa,
    rows: usize,
    strips: Strips<'_>,
    work: impl FnOnce(&mut Tile<'_>) -> R,
) -> R {
    let pitch = packed_len(1, strips);
    let (left, packed) = (rows.max(COLUMN_ROWS) * DEPTH, DEPTH * GROUP);
    workspace::with(left + packed + rows * pitch, |memory| {
        let (left, memory) = memory.split_at_mut(left);
        let (packed, sums) = memory.split_at_mut(packed);
        work(&mut Tile { isa, rows, strips, pitch, sums, blank: true, left, packed })
    })
}

impl Tile<'_> {
    /// The sums of the strips, `[rows, its width]` each.
    pub(crate) fn strips(&mut self) -> impl Iterator<Item = ArrayView2<'_, f32>> {
        self.clear_blank();
        let sums = ArrayView2::from_shape((self.rows, self.pitch), &*self.sums);
        let sums = sums.expect("of this size");
        places(self.strips).map(move |place| columns_of(sums, place))
    }

    /// All strips, as [`Tile::strips`], to be changed.
    pub(crate) fn strips_mut<const N: usize>(&mut self) -> [ArrayViewMut2<'_, f32>; N] {
        self.clear_blank();
        let sums = ArrayViewMut2::from_shape((self.rows, self.pitch), &mut *self.sums);
        let mut rest = Some((0, sums.expect("of this size")));
        let mut places = places(self.strips);
        std::array::from_fn(|_| {
            let place = places.next().expect("a tile of so many strips");
            let (before, sums) = rest.take().expect("put back each time");
            let (_, sums) = sums.split_at(Axis(1), place.start - before);
            let (strip, after) = sums.split_at(Axis(1), place.len());
            rest = Some((place.end, after));
            strip
        })
    }

    /// Replaces the sums by the columns of the strips of `rows`.
    pub(crate) fn set(&mut self, rows: ArrayView2<'_, f32>) {
        self.blank = false;
        for (at, sums) in self.sums.chunks_exact_mut(self.pitch).enumerate() {
            for (columns, place) in self.strips.iter().zip(places(self.strips)) {
                sums[place].copy_from_slice(&row(rows, at)[columns.clone()]);
            }
        }
    }

    fn clear_blank(&mut self) {
        if std::mem::take(&mut self.blank) {
            self.sums.fill(0.0);
        }
    }

    /// Writes all strips, side by side, to `out`.
    pub(crate) fn store<E: Element>(&mut self, out: ArrayViewMut2<'_, E>) {
        let isa = self.isa;
        isa.run(Store { tile: self, out });
    }

    /// Adds `left @ right`.
    pub(crate) fn add<A: Element, B: Element>(&mut self, left: Left<'_, A>, right: Right<'_, B>) {
        self.clear_blank();
        match left {
            Left::Rows(a) => self.add_rows(a, right),
            Left::Columns { matrix, valid } => self.add_columns(matrix, valid, right),
        }
    }

    fn add_rows<A: Element, B: Element>(&mut self, a: ArrayView2<'_, A>, right: Right<'_, B>) {
        let Tile { isa, rows, .. } = *self;
        let memory = std::mem::take(&mut self.left);
        let left = &mut memory.as_chunks_mut().0[..rows];
        for slice in slices(a.ncols()) {
            isa.run(CopyRows { from: columns_of(a, slice.clone()), to: left });
            match right {
                Right::Rows(b) if rows <= few_rows(isa) => self.add_direct(Rows(left), b, slice),
                _ => self.add_slice(Rows(left), right, slice),
            }
        }
        self.left = memory;
    }

    fn add_columns<A: Element, B: Element>(
        &mut self,
        a: ArrayView2<'_, A>,
        valid: Option<&[bool]>,
        right: Right<'_, B>,
    ) {
        let memory = std::mem::take(&mut self.left);
        let panel = memory.as_chunks_mut().0.first_chunk_mut().expect("memory for a panel");
        for slice in slices(a.nrows()) {
            let from = rows_of(a, slice.clone());
            let valid = valid.map(|valid| &valid[slice.clone()]);
            self.isa.run(CopyColumns { from, valid, to: panel });
            self.add_slice(Panel(panel), right, slice);
        }
        self.left = memory;
    }

    /// Adds the product of one slice of the factors. `left` is that slice; `right` is all of it.
    fn add_slice<B: Element>(
        &mut self,
        left: impl Factor,
        right: Right<'_, B>,
        slice: Range<usize>,
    ) {
        let isa = self.isa;
        match right {
            Right::Rows(b) => {
                let right = rows_of(b, slice.clone());
                self.for_each_run(left, slice.len(), |strip, packed| {
                    isa.run(AddRows { strip, right, packed });
                });
            }
            Right::Columns(b) => {
                self.for_each_run(left, slice.len(), |strip, packed| {
                    isa.run(AddColumns { strip, right: b, slice: slice.clone(), packed });
                });
            }
            Right::Packed(all) => {
                let mut rest = &all[packed_len(slice.start, self.strips)..];
                self.for_each_run(left, slice.len(), |strip, _| {
                    let size = strip.depth * strip.columns.len().next_multiple_of(UNIT);
                    let (packed, after) = rest.split_at(size);
                    isa.run(AddPacked { strip, packed });
                    rest = after;
                });
            }
        }
    }

    /// [`Tile::add_slice`] from rows that are read as they lie.
    fn add_direct<B: Element>(
        &mut self,
        left: Rows<'_>,
        b: ArrayView2<'_, B>,
        slice: Range<usize>,
    ) {
        let isa = self.isa;
        let right = rows_of(b, slice.clone());
        self.for_each_run(left, slice.len(), |strip, _| isa.run(AddDirect { strip, right }));
    }

    /// Calls `add` with each run of strips that are neighbours, as one strip, and with memory for
    /// packed columns.
    fn for_each_run<L: Factor>(
        &mut self,
        left: L,
        depth: usize,
        mut add: impl FnMut(Strip<'_, L>, &mut [f32]),
    ) {
        let Tile { rows, strips, pitch, .. } = *self;
        let mut before = 0;
        for columns in runs(strips) {
            let width = columns.len();
            let sums = Sums { data: &mut self.sums[before..], pitch };
            add(Strip { left, depth, rows, columns, sums }, self.packed);
            before += width.next_multiple_of(UNIT);
        }
    }
}

/// Runs of strips that are neighbours.
fn runs(strips: Strips<'_>) -> impl Iterator<Item = Range<usize>> {
    let runs = strips.chunk_by(|strip, next| strip.end == next.start);
    runs.map(|run| run[0].start..run[run.len() - 1].end)
}

/// Where each strip is in a row of sums.
fn places(strips: Strips<'_>) -> impl Iterator<Item = Range<usize>> {
    let mut end: usize = 0;
    let mut last = None;
    strips.iter().map(move |strip| {
        if last != Some(strip.start) {
            end = end.next_multiple_of(UNIT);
        }
        let start = end;
        (end, last) = (start + strip.len(), Some(strip.end));
        start..end
    })
}

/// Tiles of a step whose weights are packed, with so many products at a time: rows of the batch by
/// cells.
pub(crate) fn step_tiling(
    context: &Context<'_>,
    (batch, cell_size): (usize, usize),
    products: usize,
) -> Tiling {
    /// More columns than the sums over the batch of an elementwise pass can have.
    const MOST: usize = 256;
    let most = (2 * SUMS / (step_rows(batch) * products)).min(MOST);
    tiling_by_threads(context, (batch, cell_size), products, most)
}

/// Tiles of a single step, whose weights are read as they lie: the wider the tiles, the longer the
/// runs in which memory is read.
pub(crate) fn cell_tiling(
    context: &Context<'_>,
    (batch, cell_size): (usize, usize),
    products: usize,
) -> Tiling {
    let most = 6 * SUMS / (step_rows(batch) * products);
    tiling_by_threads(context, (batch, cell_size), products, most)
}

/// Rows of the tiles of a step.
pub(crate) fn step_rows(batch: usize) -> usize {
    even(batch, MOST_ROWS, 1)
}

/// As many tiles as threads, or some times as many, if they have at most so many columns and work
/// enough. An element of a product does not depend on how wide its tile is.
fn tiling_by_threads(
    context: &Context<'_>,
    (batch, cell_size): (usize, usize),
    products: usize,
    most: usize,
) -> Tiling {
    /// Multiply-adds of a tile that are worth a task.
    const WORTH: usize = 1 << 20;
    let rows = step_rows(batch);
    let most = most.max(2 * GROUP);
    let threads = context.executor.threads().max(1);
    let parts = cell_size.div_ceil(most).max(1).next_multiple_of(threads);
    let worth = WORTH / (rows * products * cell_size.max(1));
    let columns = cell_size.div_ceil(parts).max(worth).min(most);
    Tiling { rows, columns: even(cell_size, columns.next_multiple_of(UNIT), UNIT) }
}

/// Processor cycles that so many sums of so many products may take, for an executor.
pub(crate) fn cost(sums: usize, depth: usize) -> u64 {
    (sums.saturating_mul(depth.max(1)) / 24) as u64
}

/// The size of equal parts of `n`, at most `most` each (or one) and a multiple of `unit`.
fn even(n: usize, most: usize, unit: usize) -> usize {
    n.div_ceil(n.div_ceil(most.max(1)).max(1)).next_multiple_of(unit).max(unit)
}

/// `0 .. depth` in slices of about equal depth, at most [`DEPTH`].
fn slices(depth: usize) -> impl Iterator<Item = Range<usize>> {
    let size = even(depth, DEPTH, 1);
    (0..depth).step_by(size).map(move |start| start..depth.min(start + size))
}

#[cfg(test)]
mod tests;
