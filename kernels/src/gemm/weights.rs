//! Weights that every step of a sequence is multiplied by.

use std::ops::Range;

use super::few_rows::packed_vectors;
use super::pack::{pack_slice, packed_len, packed_slices};
use super::tiling::padded;
use super::{KC, Right};
use crate::constants::Form;
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

/// A right factor, of `depth`, of tiles of so many rows with these strips: packed where it is a constant of the call, or
/// where there is memory for that.
pub(crate) fn packed_strips<'a, E: Storage>(
    context: &Context<'a>,
    (rows, depth): (usize, usize),
    right: Right<'a, E>,
    strips: &[Range<usize>],
    memory: Option<&'a mut [f32]>,
) -> Right<'a, E> {
    let (isa, vectors) = (context.isa, packed_vectors(context.isa, rows));
    let form = Form::Tiles { cells: usize::MAX, vectors };
    let len = packed_len(depth, strips);
    let fill = |to: &mut [f32]| {
        let columns = packed_len(1, strips);
        pack_tiles(context, (depth, columns), right, vectors, [(strips, to)]);
    };
    let kept = context.constants.packed(isa, &right, strips, (form, len), fill);
    let packed = kept.or_else(|| {
        let memory = &mut memory?[..len];
        fill(memory);
        Some(&*memory)
    });
    packed.map_or(right, |data| Right::Packed { data, vectors })
}

/// Packs a right factor for some tiles, which have at most so many columns: for the strips of each, and into its memory. A
/// slice of a tile is a task.
fn pack_tiles<'t, E: Storage, S: AsRef<[Range<usize>]> + Clone + Send>(
    context: &Context<'_>,
    (depth, columns): (usize, usize),
    right: Right<'_, E>,
    vectors: usize,
    tiles: impl IntoIterator<Item = (S, &'t mut [f32])>,
) {
    let isa = context.isa;
    let mut parts = Vec::new();
    for (strips, to) in tiles {
        let slices = packed_slices(depth, strips.as_ref(), to);
        parts.extend(slices.map(|(slice, packed)| (strips.clone(), slice, packed)));
    }
    // An element takes about a cycle on its way from the third level cache, and back.
    let cost = KC.min(depth).saturating_mul(columns) as u64;
    for_each(context.executor, cost, parts, |(strips, slice, packed)| {
        pack_slice(isa, right, slice, strips.as_ref(), vectors, packed);
    });
}

/// Packs all of a right factor as the only strip of a tile.
#[cfg(feature = "layers")]
pub(crate) fn pack_whole(isa: crate::Isa, right: ndarray::ArrayView2<'_, f32>, to: &mut [f32]) {
    let columns = 0..right.ncols();
    let strips = std::slice::from_ref(&columns);
    super::pack::pack(isa, Right::RowMajor(right), right.nrows(), strips, 2, to);
}

impl<'a> PackedWeights<'a> {
    /// Packs `right`, of `depth`, into `to`, of [`weights_len`]. `strips` are those of the tiles
    /// that have these cells.
    pub(crate) fn pack<E: Storage, const GATES: usize>(
        context: &Context<'_>,
        tiling: Tiling,
        (depth, cell_size): (usize, usize),
        right: Right<'_, E>,
        strips: impl Fn(&Range<usize>) -> [Range<usize>; GATES],
        to: &'a mut [f32],
    ) -> Self {
        let vectors = packed_vectors(context.isa, tiling.rows);
        Self::fill(context, (tiling, vectors), (depth, cell_size), right, strips, &mut *to);
        PackedWeights { packed: to, floats_per_cell: depth * GATES, vectors }
    }

    /// The same where `right` is a constant of the call: packed in the first one, and kept.
    pub(crate) fn kept<E: Storage, const GATES: usize>(
        context: &Context<'a>,
        tiling: Tiling,
        (depth, cell_size): (usize, usize),
        right: Right<'_, E>,
        strips: impl Fn(&Range<usize>) -> [Range<usize>; GATES],
    ) -> Option<Self> {
        let vectors = packed_vectors(context.isa, tiling.rows);
        let form = Form::Tiles { cells: tiling.columns, vectors };
        let len = weights_len(depth, GATES, cell_size);
        let all = strips(&(0..cell_size));
        let packed = context.constants.packed(context.isa, &right, &all, (form, len), |to| {
            Self::fill(context, (tiling, vectors), (depth, cell_size), right, strips, to);
        })?;
        Some(PackedWeights { packed, floats_per_cell: depth * GATES, vectors })
    }

    fn fill<E: Storage, const GATES: usize>(
        context: &Context<'_>,
        (tiling, vectors): (Tiling, usize),
        (depth, cell_size): (usize, usize),
        right: Right<'_, E>,
        strips: impl Fn(&Range<usize>) -> [Range<usize>; GATES],
        to: &mut [f32],
    ) {
        let starts = (0..cell_size).step_by(tiling.columns);
        let tiles = starts.zip(to.chunks_mut((depth * GATES * tiling.columns).max(1)));
        let tiles =
            tiles.map(|(start, to)| (strips(&(start..cell_size.min(start + tiling.columns))), to));
        let columns = GATES.saturating_mul(tiling.columns);
        pack_tiles(context, (depth, columns), right, vectors, tiles);
    }

    /// The factor for the tile at `place`.
    pub(crate) fn at(&self, place: &Place) -> Right<'a, f32> {
        let data = &self.packed[self.floats_per_cell * place.columns.start..];
        Right::Packed { data, vectors: self.vectors }
    }
}
