//! Sums of matrix products, tile by tile, for right factors that several rows share.
//!
//! A tile is some rows of the result and one or more strips of its columns, which need not be
//! neighbours: a strip of each gate, of the same cells, makes all that the elementwise part of a
//! step needs at hand while the sums are in cache. Products are added to the tile in slices of up to
//! [`DEPTH`] terms, each from a copy of the right factor's slice in the order in which the innermost
//! loop reads it; where a few rows are all there is, from the factor as it lies. Where the right factor
//! is a transpose that is met but once, and by few rows, there are dot products of rows as they lie.
//!
//! Every element is summed in the same order whatever the tile, so a result depends on its row of
//! the left factor and its column of the right one alone, bit for bit: not on the batch, the tiling
//! or the number of threads. Only the order of [`Tile::add_transpose`] depends on the number of rows.

mod ahead;
mod block;
mod dots;
mod pack;
mod products;
mod stacked;
mod strip;
mod sweep;
mod weights;
mod workspace;

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2, Axis};

use crate::tiles::{Place, Tiling, columns as columns_of, row, rows as rows_of};
use crate::{Context, Element, Isa};
use block::{Panel, Rows, Sums};
use dots::{AddDots, Blocks, CopyBlocks};
use pack::{CopyColumns, CopyRows, pack, packed_len};
use products::Store;
pub(crate) use products::{Given, Product, products, products_tiling, steps_at_once};
use strip::{AddColumns, AddDirect, AddPacked, AddRows, Strip, few_rows};
use sweep::AddSwept;
#[cfg(feature = "layers")]
pub(crate) use weights::pack_whole;
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

/// Most rows of any other tile, however narrow.
const MOST_ROWS: usize = 192;

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

impl<'a, E> Left<'a, E> {
    /// The rows of a matrix that the tile at `place` needs.
    pub(crate) fn rows(matrix: ArrayView2<'a, E>, place: &Place) -> Self {
        Left::Rows(place.rows_of(matrix))
    }
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

/// Makes a tile full of zeros for `work`.
pub(crate) fn tile<R>(
    isa: Isa,
    rows: usize,
    strips: Strips<'_>,
    work: impl FnOnce(&mut Tile<'_>) -> R,
) -> R {
    let pitch = packed_len(1, strips);
    let left = (rows.max(COLUMN_ROWS) * DEPTH).max(dots::ROWS * dots::DEPTH);
    let packed = DEPTH * GROUP;
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
        isa.run(Store { tile: self, out, add: false });
    }

    /// Adds all strips, side by side, to `out`.
    pub(crate) fn add_to<E: Element>(&mut self, out: ArrayViewMut2<'_, E>) {
        let isa = self.isa;
        isa.run(Store { tile: self, out, add: true });
    }

    /// Adds `left @ right`.
    pub(crate) fn add<A: Element, B: Element>(&mut self, left: Left<'_, A>, right: Right<'_, B>) {
        self.clear_blank();
        match left {
            Left::Rows(a) => self.add_rows(a, right),
            Left::Columns { matrix, valid } => self.add_columns(matrix, valid, right),
        }
    }

    /// Adds `a @ b^T` where `b` is met but once: a pass over rows as they lie, or over what is packed on
    /// the way. Which one depends on the shapes alone, and so does the order in which terms are added.
    pub(crate) fn add_transpose<E: Element>(&mut self, a: ArrayView2<'_, E>, b: ArrayView2<'_, E>) {
        if dots::pay(self.isa, self.rows, a.ncols()) {
            self.add_dots(a, b);
        } else {
            self.add(Left::Rows(a), Right::Columns(b));
        }
    }

    /// Adds `a @ b^T` by dot products. They are added up in an order of their own.
    pub(crate) fn add_dots<E: Element>(&mut self, a: ArrayView2<'_, E>, b: ArrayView2<'_, E>) {
        self.clear_blank();
        let isa = self.isa;
        let memory = std::mem::take(&mut self.left);
        for slice in parts(a.ncols(), even(a.ncols(), dots::DEPTH, UNIT)) {
            for rows in parts(self.rows, even(self.rows, dots::ROWS, 4)) {
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

    fn add_rows<A: Element, B: Element>(&mut self, a: ArrayView2<'_, A>, right: Right<'_, B>) {
        match right {
            Right::Rows(b) if sweep::pays(self.isa, self.rows, b) => {
                self.for_each_slice(a, |tile, left, slice| tile.add_swept(left, b, slice));
            }
            Right::Rows(b) if self.rows <= few_rows(self.isa) => {
                self.for_each_slice(a, |tile, left, slice| tile.add_direct(left, b, slice));
            }
            _ => self.for_each_slice(a, |tile, left, slice| tile.add_slice(left, right, slice)),
        }
    }

    /// Calls `add` with a copy of each slice of `a`.
    fn for_each_slice<A: Element>(
        &mut self,
        a: ArrayView2<'_, A>,
        mut add: impl FnMut(&mut Self, Rows<'_>, Range<usize>),
    ) {
        let memory = std::mem::take(&mut self.left);
        for slice in slices(a.ncols()) {
            let from = columns_of(a, slice.clone());
            self.isa.run(CopyRows { from, to: memory, pitch: DEPTH });
            add(self, Rows(&memory.as_chunks().0[..self.rows]), slice);
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
        let panel =
            memory.as_chunks_mut().0.first_chunk_mut::<DEPTH>().expect("memory for a panel");
        for slice in slices(a.nrows()) {
            let from = rows_of(a, slice.clone());
            let valid = valid.map(|valid| &valid[slice.clone()]);
            self.isa.run(CopyColumns { from, valid, to: panel });
            self.add_slice(Panel { data: panel, at: 0 }, right, slice);
        }
        self.left = memory;
    }

    /// Adds the product of one slice of the factors. `left` is that slice; `right` is all of it.
    fn add_slice<B: Element>(
        &mut self,
        left: impl block::Factor,
        right: Right<'_, B>,
        slice: Range<usize>,
    ) {
        let isa = self.isa;
        match right {
            Right::Rows(b) => {
                let right = rows_of(b, slice.clone());
                self.for_each_run(0..self.rows, left, slice.len(), |strip, packed| {
                    isa.run(AddRows { strip, right, packed });
                });
            }
            Right::Columns(b) => {
                self.for_each_run(0..self.rows, left, slice.len(), |strip, packed| {
                    isa.run(AddColumns { strip, right: b, slice: slice.clone(), packed });
                });
            }
            Right::Packed(all) => {
                let mut rest = &all[packed_len(slice.start, self.strips)..];
                self.for_each_run(0..self.rows, left, slice.len(), |strip, _| {
                    let size = strip.depth * padded(strip.columns.len());
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
        self.for_each_run(0..self.rows, left, slice.len(), |strip, _| {
            isa.run(AddDirect { strip, right })
        });
    }

    /// [`Tile::add_slice`] from rows that are read side by side.
    fn add_swept<B: Element>(&mut self, left: Rows<'_>, b: ArrayView2<'_, B>, slice: Range<usize>) {
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
    fn for_each_run<L: Copy>(
        &mut self,
        rows: Range<usize>,
        left: L,
        depth: usize,
        mut add: impl FnMut(Strip<'_, L>, &mut [f32]),
    ) {
        let Tile { strips, pitch, .. } = *self;
        let mut before = rows.start * pitch;
        for columns in runs(strips) {
            let width = columns.len();
            let sums = Sums { data: &mut self.sums[before..], pitch };
            add(Strip { left, depth, rows: rows.len(), columns, sums }, self.packed);
            before += padded(width);
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
            end = padded(end);
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
    /// Most sums of a tile: they stay in the second level cache, beside the packed weights.
    const SUMS: usize = 48 << 10;
    /// More columns than the sums over the batch of an elementwise pass can have.
    const COLUMNS: usize = 256;
    let rows = step_rows((batch, cell_size), products);
    let most = (SUMS / (rows * products)).min(COLUMNS);
    tiling_by_threads(context, (batch, cell_size), rows, products * cell_size, most)
}

/// Tiles of a single step, whose weights are read as they lie: the wider the tiles, the longer the
/// runs in which memory is read.
pub(crate) fn cell_tiling(
    context: &Context<'_>,
    (batch, cell_size): (usize, usize),
    products: usize,
) -> Tiling {
    /// Most sums of a tile: they stay in the second level cache.
    const SUMS: usize = 144 << 10;
    let rows = most_rows(batch);
    let most = SUMS / (rows * products);
    tiling_by_threads(context, (batch, cell_size), rows, products * cell_size, most)
}

/// Tiles of a product, of sums of so many terms, with the transpose of weights that are read as they
/// lie: narrow, so that the pages of their rows of the weights stay at hand from slice to slice.
pub(crate) fn transposed_tiling(
    context: &Context<'_>,
    (batch, columns): (usize, usize),
    depth: usize,
) -> Tiling {
    const COLUMNS: usize = 128;
    tiling_by_threads(context, (batch, columns), most_rows(batch), depth, COLUMNS)
}

/// Rows of the tiles of [`step_tiling`], whatever the threads: the gradients' sums over the batch are
/// those of the rows of tiles.
pub(crate) fn step_rows((batch, cell_size): (usize, usize), products: usize) -> usize {
    /// Weights that stay in the second level cache of every thread.
    const WEIGHTS: usize = 256 << 10;
    /// Rows that are worth a tile.
    const WORTH: usize = 16;
    let weights = cell_size.saturating_mul(cell_size).saturating_mul(products);
    if weights > WEIGHTS {
        return most_rows(batch);
    }
    even(batch, batch.div_ceil(4).clamp(WORTH, MOST_ROWS), 1)
}

/// Rows of tiles that are as high as they may be.
fn most_rows(batch: usize) -> usize {
    even(batch, MOST_ROWS, 1)
}

/// As many tiles as threads, or some times as many, if they have at most so many columns and work
/// enough. An element of a product does not depend on how wide its tile is.
fn tiling_by_threads(
    context: &Context<'_>,
    (batch, columns): (usize, usize),
    rows: usize,
    depth: usize,
    most: usize,
) -> Tiling {
    /// Multiply-adds of a tile that are worth a task.
    const WORTH: usize = 1 << 20;
    let most = most.max(2 * GROUP);
    let threads = context.executor.threads().div_ceil(batch.div_ceil(rows).max(1));
    let parts = columns.div_ceil(most).max(1).next_multiple_of(threads.max(1));
    let worth = WORTH / rows.saturating_mul(depth.max(1));
    let size = columns.div_ceil(parts).max(worth).min(most);
    Tiling { rows, columns: even(columns, padded(size), UNIT) }
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
    parts(depth, even(depth, DEPTH, 1))
}

/// `0 .. n` in parts of some size, of which the last one is what is left.
fn parts(n: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(size).map(move |start| start..n.min(start + size))
}

/// So many columns, filled up.
fn padded(columns: usize) -> usize {
    columns.next_multiple_of(UNIT)
}

#[cfg(test)]
mod tests;
