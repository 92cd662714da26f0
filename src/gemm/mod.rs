//! Sums of matrix products, tile by tile, for right factors that several rows share.
//!
//! A tile is some rows of the result and up to [`MOST_STRIPS`] strips of its columns, which need not
//! be neighbours: a strip of each gate, of the same cells, makes all that the elementwise part of a
//! step needs at hand while the sums are in cache. Products are added to the tile in slices of
//! [`DEPTH`] terms, each from a copy of the right factor's slice in the order in which the innermost
//! loop reads it ([`pack`]); where a few rows are all there is, from the factor as it lies.
//!
//! Every element is summed in the same order whatever the tile, so a result depends on its row of
//! the left factor and its column of the right one alone, bit for bit: not on the batch, the tiling
//! or the number of threads.

mod block;
mod pack;
mod products;
mod weights;

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2, Axis, Slice};

use crate::tiles::{Tiling, columns as columns_of, row, rows as rows_of};
use crate::{Element, Isa};
use block::{Direct, Factor, Panel, Rows, Strip};
use pack::{CopyColumns, Pack, pack, packed_len};
use products::Store;
pub(crate) use products::{Product, Shape, products, steps_at_once};
pub(crate) use weights::{Weights, weights_fit, weights_len};

/// Columns that are packed side by side; the last unit of a strip is filled up with zeros.
const UNIT: usize = 16;

/// Most columns of a strip.
const STRIP: usize = 4 * UNIT;

/// Most strips of a tile.
const MOST_STRIPS: usize = 4;

/// Terms of each sum that are added up before they are added to the tile: a slice of a strip stays
/// in the first level cache, and the rounding error grows with this and the number of slices.
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

/// Ranges of columns, each at most [`STRIP`] wide.
pub(crate) type Strips<'s> = &'s [Range<usize>];

/// Sums of products.
pub(crate) struct Tile<'t> {
    isa: Isa,
    rows: usize,
    strips: Strips<'t>,
    /// One strip after the other, each `[rows, STRIP]`.
    sums: &'t mut [f32],
}

/// Sums of a tile: they stay in the second level cache.
const SUMS: usize = COLUMN_ROWS * MOST_STRIPS * STRIP;

/// Sums of smaller tiles.
const FEW_SUMS: usize = SUMS / 4;
const FEWEST_SUMS: usize = SUMS / 24;

/// Most rows of a tile with so many strips.
const fn most_rows(strips: usize) -> usize {
    SUMS / (strips * STRIP)
}

/// Makes a tile full of zeros for `work`.
pub(crate) fn tile<R>(
    isa: Isa,
    rows: usize,
    strips: Strips<'_>,
    work: impl FnOnce(&mut Tile<'_>) -> R,
) -> R {
    let size = rows * strips.len() * STRIP;
    // Clearing more than is needed would cost small tiles more than their products.
    if size <= FEWEST_SUMS {
        let mut sums = [0.0; FEWEST_SUMS];
        work(&mut Tile { isa, rows, strips, sums: &mut sums[..size] })
    } else if size <= FEW_SUMS {
        let mut sums = [0.0; FEW_SUMS];
        work(&mut Tile { isa, rows, strips, sums: &mut sums[..size] })
    } else {
        let mut sums = [0.0; SUMS];
        work(&mut Tile { isa, rows, strips, sums: &mut sums[..size] })
    }
}

impl Tile<'_> {
    /// The sums of one strip, `[rows, its width]`.
    pub(crate) fn strip(&self, strip: usize) -> ArrayView2<'_, f32> {
        let size = self.rows * STRIP;
        let sums = &self.sums[strip * size..(strip + 1) * size];
        let mut view = ArrayView2::from_shape((self.rows, STRIP), sums).expect("of this size");
        view.slice_axis_inplace(Axis(1), Slice::from(..self.strips[strip].len()));
        view
    }

    /// All strips, as [`Tile::strip`], to be changed.
    pub(crate) fn strips_mut<const N: usize>(&mut self) -> [ArrayViewMut2<'_, f32>; N] {
        let mut strips = self.strips.iter().zip(self.sums.chunks_exact_mut(self.rows * STRIP));
        std::array::from_fn(|_| {
            let (columns, sums) = strips.next().expect("a tile of so many strips");
            let shape = (self.rows, STRIP);
            let mut view = ArrayViewMut2::from_shape(shape, sums).expect("of this size");
            view.slice_axis_inplace(Axis(1), Slice::from(..columns.len()));
            view
        })
    }

    /// Replaces the sums by the columns of the strips of `rows`.
    pub(crate) fn set(&mut self, rows: ArrayView2<'_, f32>) {
        for (columns, sums) in self.strips.iter().zip(self.sums.chunks_exact_mut(self.rows * STRIP))
        {
            for (at, sums) in sums.chunks_exact_mut(STRIP).enumerate() {
                sums[..columns.len()].copy_from_slice(&row(rows, at)[columns.clone()]);
            }
        }
    }

    /// Writes all strips, side by side, to `out`.
    pub(crate) fn store<E: Element>(&self, out: ArrayViewMut2<'_, E>) {
        self.isa.run(Store { tile: self, out });
    }

    /// Adds `left @ right`.
    pub(crate) fn add<A: Element, B: Element>(&mut self, left: Left<'_, A>, right: Right<'_, B>) {
        match (left, right) {
            (Left::Rows(a), Right::Rows(b)) if self.rows <= block::few_rows(self.isa) => {
                self.add_direct(a, b);
            }
            (Left::Rows(a), Right::Packed(_)) => self.add_rows(a, right, &mut []),
            (Left::Rows(a), _) => self.add_rows(a, right, &mut [0.0; DEPTH * STRIP]),
            (Left::Columns { matrix: a, valid }, _) => {
                let mut buffer = [0.0; DEPTH * STRIP];
                let mut panel = [[0.0; COLUMN_ROWS]; DEPTH];
                for slice in slices(a.nrows()) {
                    let from = rows_of(a, slice.clone());
                    let valid = valid.map(|valid| &valid[slice.clone()]);
                    self.isa.run(CopyColumns { from, valid, to: &mut panel });
                    self.add_slice(Panel(&panel), right, slice, &mut buffer);
                }
            }
        }
    }

    fn add_rows<A: Element, B: Element>(
        &mut self,
        a: ArrayView2<'_, A>,
        right: Right<'_, B>,
        buffer: &mut [f32],
    ) {
        for slice in slices(a.ncols()) {
            self.add_slice(Rows(columns_of(a, slice.clone())), right, slice, buffer);
        }
    }

    /// Adds the product of one slice of the factors. `left` is that slice; `right` is all of it, and
    /// `buffer` has room for a slice of a strip of it, unless it is packed already.
    fn add_slice<B: Element>(
        &mut self,
        left: impl Factor,
        right: Right<'_, B>,
        slice: Range<usize>,
        buffer: &mut [f32],
    ) {
        let Tile { isa, rows, strips, .. } = *self;
        let mut packed_before = packed_len(slice.start, strips);
        let sums = self.sums.chunks_exact_mut(rows * STRIP);
        for (columns, sums) in strips.iter().zip(sums) {
            let size = packed_len(slice.len(), std::slice::from_ref(columns));
            let packed = match right {
                Right::Packed(all) => &all[packed_before..packed_before + size],
                _ => {
                    let (slice, columns) = (slice.clone(), columns.clone());
                    isa.run(Pack { right, slice, columns, to: &mut buffer[..size] });
                    &buffer[..size]
                }
            };
            packed_before += size;
            isa.run(Strip { left, packed, depth: slice.len(), rows, sums });
        }
    }

    /// [`Tile::add`] from a right factor that is read as it lies.
    fn add_direct<A: Element, B: Element>(&mut self, a: ArrayView2<'_, A>, b: ArrayView2<'_, B>) {
        let Tile { isa, rows, strips, .. } = *self;
        for slice in slices(a.ncols()) {
            let left = Rows(columns_of(a, slice.clone()));
            let right = rows_of(b, slice);
            for (columns, sums) in strips.iter().zip(self.sums.chunks_exact_mut(rows * STRIP)) {
                isa.run(Direct { left, right, columns: columns.clone(), rows, sums });
            }
        }
    }
}

/// Tiles of a step with so many products at a time: rows of the batch by cells.
pub(crate) fn step_tiling(batch: usize, cell_size: usize, products: usize) -> Tiling {
    // Narrow tiles let small cells use several threads, where there is work for them.
    let narrow = cell_size < 512 && batch > 8;
    let columns = if narrow { STRIP / 2 } else { STRIP };
    Tiling { rows: even(batch, most_rows(products), 1), columns: even(cell_size, columns, UNIT) }
}

/// Processor cycles that so many sums of so many products may take, for an executor.
pub(crate) fn cost(sums: usize, depth: usize) -> u64 {
    (sums.saturating_mul(depth.max(1)) / 24) as u64
}

/// The size of equal parts of `n`, at most `most` each and a multiple of `unit`.
fn even(n: usize, most: usize, unit: usize) -> usize {
    n.div_ceil(n.div_ceil(most).max(1)).next_multiple_of(unit).max(unit)
}

/// `0 .. depth` in slices of [`DEPTH`].
fn slices(depth: usize) -> impl Iterator<Item = Range<usize>> {
    (0..depth).step_by(DEPTH).map(move |start| start..depth.min(start + DEPTH))
}

/// Units in some strips.
fn units(strips: Strips<'_>) -> usize {
    strips.iter().map(|columns| columns.len().div_ceil(UNIT)).sum()
}

#[cfg(test)]
mod tests;
