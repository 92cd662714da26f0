//! Weights that every step of a sequence is multiplied by.

use std::ops::Range;

use super::columns::packed_len;
use super::few_rows::packed_vectors;
use super::lanes::{Floats, Lanes, Pairs, lanes};
use super::pack::{pack_slice, packed_slices};
use super::quads::pack_quads;
use super::right::Right;
use super::tiling::padded;
use super::units::QuadWeights;
use crate::constants::Form;
use crate::executor::for_each;
use crate::tiles::{Place, Tiling, parts};
use crate::tuning::KC;
use crate::{Context, Storage};

/// A right factor, packed.
#[derive(Clone, Copy)]
pub(crate) enum PackedWeights<'a> {
    /// For each column of tiles.
    Tiles {
        packed: &'a [f32],
        /// The size for each cell: the lanes of a column times the strips of a tile.
        floats_per_cell: usize,
        /// As in [`Right::Packed`].
        vectors: usize,
        pairs: bool,
    },
    Quads(QuadWeights<'a>),
}

/// Length of the memory for weights of `depth` terms for `gates` gates of all cells.
pub(crate) fn weights_len(depth: usize, gates: usize, cell_size: usize) -> usize {
    depth.saturating_mul(gates).saturating_mul(padded(cell_size))
}

/// Whether the packed weights of the state fit in the memory of the gradient with respect to all weights, which
/// has `rows` rows and a column for each gate of each cell.
pub(crate) fn weights_fit(rows: usize, cell_size: usize) -> bool {
    padded(cell_size) <= rows
}

/// A right factor, of `depth`, of tiles of `rows` rows with these strips: packed where it is a constant of the call, or
/// where there is memory for that.
pub(crate) fn packed_strips<'a, E: Storage>(
    context: &Context<'a>,
    (rows, depth): (usize, usize),
    right: Right<'a, E>,
    strips: &[Range<usize>],
    memory: Option<&'a mut [f32]>,
) -> Right<'a, E> {
    if let Some(weights) = pack_quads(context, right, depth, strips, false) {
        return Right::Quads(weights);
    }
    let (vectors, pairs) = (packed_vectors(context.isa, rows), context.wants_pairs::<E>());
    let form = Form::Tiles { cells: usize::MAX, vectors, pairs };
    let len = packed_len(lane_depth(depth, pairs), strips);
    let fill = |to: &mut [f32]| {
        let columns = packed_len(1, strips);
        pack_tiles(context, (depth, columns), right, (vectors, pairs), [(strips, to)]);
    };
    let packed = packed(context, right, strips, (form, len), memory, fill);
    packed.map_or(right, |data| Right::Packed { data, vectors, pairs })
}

/// How many lanes hold `depth` terms.
pub(super) fn lane_depth(depth: usize, pairs: bool) -> usize {
    if pairs { lanes::<Pairs>(depth) } else { depth }
}

/// What `fill` packs of a right factor, of this length: kept where that is a constant of the call, otherwise in
/// `memory` if there is any.
pub(super) fn packed<'a, E: Storage>(
    context: &Context<'a>,
    right: Right<'_, E>,
    strips: &[Range<usize>],
    (form, len): (Form, usize),
    memory: Option<&'a mut [f32]>,
    fill: impl Fn(&mut [f32]),
) -> Option<&'a [f32]> {
    let source = right.source()?;
    let kept = context.constants.packed(context.isa, source, strips, (form, len), &fill);
    kept.or_else(|| {
        let memory = &mut memory?[..len];
        fill(memory);
        Some(memory)
    })
}

/// Packs a right factor for some tiles, which have at most `columns` columns: for the strips of each, and into its
/// memory. A slice of a tile is a task.
fn pack_tiles<'t, E: Storage, S: AsRef<[Range<usize>]> + Clone + Send>(
    context: &Context<'_>,
    (depth, columns): (usize, usize),
    right: Right<'_, E>,
    (vectors, pairs): (usize, bool),
    tiles: impl IntoIterator<Item = (S, &'t mut [f32])>,
) {
    if const { !E::IS_HALF } && pairs {
        pack_lanes::<E, S, Pairs>(context, (depth, columns), right, vectors, tiles);
    } else {
        pack_lanes::<E, S, Floats>(context, (depth, columns), right, vectors, tiles);
    }
}

/// [`pack_tiles`] with such lanes.
fn pack_lanes<'t, E: Storage, S: AsRef<[Range<usize>]> + Clone + Send, L: Lanes>(
    context: &Context<'_>,
    (depth, columns): (usize, usize),
    right: Right<'_, E>,
    vectors: usize,
    tiles: impl IntoIterator<Item = (S, &'t mut [f32])>,
) {
    let isa = context.isa;
    let mut parts = Vec::new();
    for (strips, to) in tiles {
        let slices = packed_slices::<L>(depth, strips.as_ref(), to);
        parts.extend(slices.map(|(slice, packed)| (strips.clone(), slice, packed)));
    }
    // An element takes about a cycle on its way from the third level cache, and back.
    let cost = KC.min(depth).saturating_mul(columns) as u64;
    for_each(context.executor, cost, parts, |(strips, slice, packed)| {
        pack_slice::<E, L>(isa, right, slice, strips.as_ref(), vectors, packed);
    });
}

/// Packs all of a right factor as the only strip of a tile.
#[cfg(feature = "bench_internals")]
pub(crate) fn pack_whole(isa: crate::Isa, right: ndarray::ArrayView2<'_, f32>, to: &mut [f32]) {
    let columns = 0..right.ncols();
    let strips = std::slice::from_ref(&columns);
    super::pack::pack::<_, Floats>(isa, Right::RowMajor(right), right.nrows(), strips, 2, to);
}

impl<'a> PackedWeights<'a> {
    /// Packs `right`, of `depth`: as a constant of the call once and for all, otherwise into `memory`, of
    /// [`weights_len`], if there is any. `strips` are those of the tiles that have these cells.
    pub(crate) fn pack<E: Storage, const GATES: usize>(
        context: &Context<'a>,
        tiling: Tiling,
        (depth, cell_size): (usize, usize),
        right: Right<'_, E>,
        strips: impl Fn(&Range<usize>) -> [Range<usize>; GATES],
        memory: Option<&'a mut [f32]>,
    ) -> Option<Self> {
        let (all, apart) = (strips(&(0..cell_size)), tiling.columns < cell_size);
        if let Some(weights) = pack_quads(context, right, depth, &all, apart) {
            return Some(PackedWeights::Quads(weights));
        }
        let (vectors, pairs) =
            (packed_vectors(context.isa, tiling.rows), context.wants_pairs::<E>());
        let form = Form::Tiles { cells: tiling.columns, vectors, pairs };
        let floats_per_cell = lane_depth(depth, pairs) * GATES;
        let key = (form, weights_len(lane_depth(depth, pairs), GATES, cell_size));
        let packed = packed(context, right, &all, key, memory, |to| {
            let memory = to.chunks_mut((floats_per_cell * tiling.columns).max(1));
            let tiles = parts(0..cell_size, tiling.columns).map(|cells| strips(&cells)).zip(memory);
            let columns = GATES.saturating_mul(tiling.columns);
            pack_tiles(context, (depth, columns), right, (vectors, pairs), tiles);
        })?;
        Some(PackedWeights::Tiles { packed, floats_per_cell, vectors, pairs })
    }

    /// The factor for the tile at `place`.
    pub(crate) fn at(&self, place: &Place) -> Right<'a, f32> {
        match *self {
            PackedWeights::Tiles { packed, floats_per_cell, vectors, pairs } => {
                let data = &packed[floats_per_cell * place.columns.start..];
                Right::Packed { data, vectors, pairs }
            }
            PackedWeights::Quads(weights) => Right::Quads(weights.from(place.columns.start)),
        }
    }
}
