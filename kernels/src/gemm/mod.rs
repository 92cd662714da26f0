//! Sums of matrix products, tile by tile, for right factors that several rows share.
//!
//! A tile is some rows of the result and one or more strips of its columns, which need not be neighbours. A step of
//! an LSTM has a strip for each gate, of the same cells: so the elementwise part of the step finds all that it
//! needs while the sums are in cache. Products are added to the tile in slices of up to [`KC`] terms, each from a
//! packed copy of the right factor's slice, in the order in which the micro-kernel reads it. Few rows read an
//! unpacked right factor instead. A transposed right factor that is used once, by few rows, is multiplied by dot
//! products of unpacked rows.
//!
//! Every element is summed in the same order whatever the tile. So a result depends bit for bit on its row of the
//! left factor and its column of the right one alone: not on the batch, the tiling or the number of threads. Only
//! the order of [`Tile::add_transpose`] depends on the number of rows.

mod caches;
mod dispatch;
mod dots;
mod few_rows;
mod interleaved;
mod micro_kernel;
mod pack;
mod prefetch;
mod products;
mod stacked;
mod strip;
mod sweep;
mod tile;
mod tiling;
mod weights;
pub(crate) mod workspace;

use ndarray::ArrayView2;

pub(crate) use interleaved::{FEW_ROWS, GroupSums, Interleaved, block_width, gates, groups};
pub(crate) use products::{Target, products};
pub(crate) use tile::{Tile, pitch, tile, tile_at, tile_in};
pub(crate) use tiling::{
    LeftLayout, cell_tiling, constant_tiling, cost, group_tiling, most_rows, padded,
    product_tiling, sequence_tiling, step_rows, step_tiling, transposed_tiling,
};
#[cfg(feature = "layers")]
pub(crate) use weights::pack_whole;
pub(crate) use weights::{PackedWeights, packed_strips, weights_fit, weights_len};

/// Packed columns are filled up with zeros to a multiple of this.
const UNIT: usize = 16;

/// Most columns that are packed side by side on the way (NR): two vectors of the widest instruction set.
const NR: usize = 2 * UNIT;

/// Most terms of each sum that are added up before they are added to the tile. A slice of a group of columns stays
/// in the first level cache. The rounding error grows with this and the number of slices.
const KC: usize = 128;

/// From a row of a copied slice of a left factor to the next: longer by a cache line, so that the first lines of all rows
/// lie in different sets of the first level cache.
const LEFT_PITCH: usize = KC + UNIT;

/// Most rows of a tile whose left factor is row-major, however narrow the tile is.
const MC: usize = 192;

/// The right factor of a product, `[k, n]`.
#[derive(Clone, Copy)]
pub(crate) enum Right<'a, E> {
    /// Row-major, without gaps.
    RowMajor(ArrayView2<'a, E>),
    /// The transpose of a matrix `[n, k]` whose rows are contiguous.
    Transposed(ArrayView2<'a, E>),
    /// What [`pack::pack`] made of one of the others, for the strips of this tile, in groups so many vectors wide.
    Packed { data: &'a [f32], vectors: usize },
}

impl<'a, E> Right<'a, E> {
    /// A matrix that is row-major without gaps, or the transpose of one whose rows are contiguous.
    pub(crate) fn of(matrix: ArrayView2<'a, E>) -> Self {
        if matrix.is_standard_layout() {
            Right::RowMajor(matrix)
        } else {
            Right::Transposed(matrix.reversed_axes())
        }
    }
}

#[cfg(test)]
mod tests;
