//! Weights that every step of a sequence is multiplied by.

use std::ops::Range;

use super::Right;
use super::few_rows::packed_vectors;
use super::pack::pack;
use super::tiling::{cost, padded};
use crate::executor::for_each;
use crate::tiles::{Place, Tiling};
use crate::{Context, Storage};

/// A right factor, packed for each column of tiles.
#[derive(Clone, Copy)]
pub(crate) struct Weights<'a> {
    packed: &'a [f32],
    /// The size for each cell: `depth` times the strips of a tile.
    of_cell: usize,
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

impl<'a> Weights<'a> {
    /// Packs `right`, of `depth`, into `to`, of [`weights_len`]. `strips` are those of the tiles
    /// that have these cells.
    pub(crate) fn pack<E: Storage, const GATES: usize>(
        context: &Context<'_>,
        tiling: Tiling,
        cell_size: usize,
        depth: usize,
        right: Right<'_, E>,
        strips: impl Fn(&Range<usize>) -> [Range<usize>; GATES] + Sync,
        to: &'a mut [f32],
    ) -> Self {
        let Context { isa, executor } = *context;
        let of_cell = depth * GATES;
        let vectors = packed_vectors(isa, tiling.rows);
        let starts = (0..cell_size).step_by(tiling.columns);
        let parts = to.chunks_mut((of_cell * tiling.columns).max(1)).zip(starts).collect();
        // Each element is read once and written once.
        let cost = cost(Tiling { rows: 1, ..tiling }, GATES, depth);
        for_each(executor, cost, parts, |(packed, start)| {
            let cells = start..cell_size.min(start + tiling.columns);
            pack(isa, right, depth, &strips(&cells), vectors, packed);
        });
        Weights { packed: to, of_cell, vectors }
    }

    /// The factor for the tile at `place`.
    pub(crate) fn at(&self, place: &Place) -> Right<'a, f32> {
        let data = &self.packed[self.of_cell * place.columns.start..];
        Right::Packed { data, vectors: self.vectors }
    }
}
