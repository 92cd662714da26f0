//! Sums of matrix products, tile by tile, for right factors that several rows share.
//!
//! A tile is some rows of the result and one or more strips of its columns, which need not be neighbours. A step of an
//! LSTM has a strip for each gate, of the same cells: so the elementwise part of the step finds all that it needs while
//! the sums are in cache. Products are added to the tile in slices of up to [`KC`](crate::tuning::KC) terms, each from
//! a packed copy of the right factor's slice, in the order in which the micro-kernel reads it. Few rows read an
//! unpacked right factor instead. A transposed right factor that is used once, by few rows, is multiplied by dot
//! products of unpacked rows.
//!
//! Every element is summed in the same order whatever the tile. So a result depends bit for bit on its row of the
//! left factor and its column of the right one alone: not on the batch, the tiling or the number of threads. Only
//! the order of [`Tile::add_nt`] depends on the number of rows.

mod caches;
mod columns;
mod dispatch;
mod dots;
mod few_rows;
mod interleaved;
mod lanes;
mod micro_kernel;
mod pack;
mod prefetch;
mod products;
mod quads;
mod right;
mod stacked;
mod strip;
mod sweep;
mod tile;
mod tiled;
mod tiling;
mod units;
mod weights;

pub(crate) use columns::pitch;
pub(crate) use interleaved::{GroupSums, Interleaved, RowLanes, block_width, gates, groups};
pub(crate) use products::{Target, products};
pub(crate) use right::Right;
pub(crate) use tile::{Tile, tile, tile_at, tile_in};
pub(crate) use tiling::{
    LeftLayout, StepShape, cell_tiling, constant_tiling, cost, group_tiling, most_rows, padded,
    pairs_pay, product_tiling, sequence_tiling, step_rows, step_tiling, transposed_tiling,
};
#[cfg(feature = "bench_internals")]
pub(crate) use weights::pack_whole;
pub(crate) use weights::{PackedWeights, packed_strips, weights_fit, weights_len};

#[cfg(test)]
mod quad_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tiled_tests;
