//! Weights that every step of a sequence is multiplied by.

use std::ops::Range;

use super::few_rows::packed_vectors;
#[cfg(feature = "layers")]
use super::pack::pack;
use super::pack::{pack_slice, packed_slices};
use super::tiling::padded;
use super::{KC, Right};
use crate::executor::for_each;
use crate::tiles::{Place, Tiling};
use crate::{Context, Storage};

/// A right factor, packed for each column of tiles.
#[derive(Clone, Copy)]
pub(crate) struct PackedWeights<'a> {
    packed: &'a [f32],
    /// The size for each cell: `depth` times the strips of a tile.
    floats_per_cell: usize,
    /// How many vectors wide groups of columns are.
    vectors: usize,
}

/// Length of the memory for weights of so many terms for so many gates of all cells.
pub(crate) fn weights_len(depth: usize, gates: usize, cell_size: usize) -> usize {
    depth.saturating_mul(gates).saturating_mul(padded(cell_size))
}

/// Whether the packed weights of the state fit in the memory of the gradient with respect to all weights, which
/// has `rows` rows and a column for each gate of each cell.
pub(crate) fn weights_fit(rows: usize, cell_size: usize) -> bool {
    padded(cell_size) <= rows
}

/// Packs all of a right factor as the only strip of a tile.
#[cfg(feature = "layers")]
pub(crate) fn pack_whole(isa: crate::Isa, right: ndarray::ArrayView2<'_, f32>, to: &mut [f32]) {
    let columns = 0..right.ncols();
    pack(isa, Right::RowMajor(right), right.nrows(), std::slice::from_ref(&columns), 2, to);
}

impl<'a> PackedWeights<'a> {
    /// Packs `right`, of `depth`, into `to`, of [`weights_len`]. `strips` are those of the tiles
    /// that have these cells.
    pub(crate) fn pack<E: Storage, const GATES: usize>(
        context: &Context<'_>,
        tiling: Tiling,
        cell_size: usize,
        depth: usize,
        right: Right<'_, E>,
        strips: impl Fn(&Range<usize>) -> [Range<usize>; GATES],
        to: &'a mut [f32],
    ) -> Self {
        let isa = context.isa;
        let vectors = packed_vectors(isa, tiling.rows);
        let mut parts = Vec::new();
        let starts = (0..cell_size).step_by(tiling.columns);
        for (start, packed) in starts.zip(to.chunks_mut((depth * GATES * tiling.columns).max(1))) {
            let strips = strips(&(start..cell_size.min(start + tiling.columns)));
            let slices = packed_slices(depth, &strips, packed);
            parts.extend(slices.map(|(slice, packed)| (strips.clone(), slice, packed)));
        }
        // An element takes about a cycle on its way from the third level cache, and back.
        let cost = (KC.min(depth) * GATES).saturating_mul(tiling.columns) as u64;
        for_each(context.executor, cost, parts, |(strips, slice, packed)| {
            pack_slice(isa, right, slice, &strips, vectors, packed);
        });
        PackedWeights { packed: to, floats_per_cell: depth * GATES, vectors }
    }

    /// The factor for the tile at `place`.
    pub(crate) fn at(&self, place: &Place) -> Right<'a, f32> {
        let data = &self.packed[self.floats_per_cell * place.columns.start..];
        Right::Packed { data, vectors: self.vectors }
    }
}
