//! Weights that every step of a sequence is multiplied by.

use std::ops::Range;

use super::caches::small_weights;
use super::columns::packed_len;
use super::few_rows::packed_vectors;
use super::lanes::{Floats, Lanes, Pairs, Rounded, lanes};
use super::pack::{pack_slice, packed_slices};
use super::quads::pack_quads;
use super::right::Right;
use super::tiling::padded;
use super::units::QuadWeights;
use crate::constants::{Form, Packing};
use crate::executor::for_each;
use crate::tiles::{Place, Tiling, parts};
use crate::tuning::{KC, ROUNDED_ROWS};
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
        packing: Packing,
    },
    Quads(QuadWeights<'a>),
}

impl Packing {
    /// For products of `rows` rows with this many weights, which are read again and again.
    pub(super) fn new<E: Storage>(context: &Context<'_>, rows: usize, weights: usize) -> Self {
        // The rows of tiles of such weights are those of the batch, whatever the number of threads.
        let reading_is_slow = rows <= ROUNDED_ROWS && size_of::<f32>() * weights > small_weights();
        if context.takes_pairs::<E>() {
            Packing::Pairs
        } else if context.takes_rounded_weights::<E>(reading_is_slow) {
            Packing::Rounded
        } else {
            Packing::Floats
        }
    }

    /// Rows of packed weights of `depth` terms.
    pub(super) fn rows(self, depth: usize) -> usize {
        if self == Packing::Floats { depth } else { lanes::<Pairs>(depth) }
    }
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
    let weights = depth.saturating_mul(packed_len(1, strips));
    let packing = Packing::new::<E>(context, rows, weights);
    let vectors = packed_vectors(context.isa, rows);
    let form = Form::Tiles { cells: usize::MAX, vectors, packing };
    let len = packed_len(packing.rows(depth), strips);
    let fill = |to: &mut [f32]| {
        let columns = packed_len(1, strips);
        pack_tiles(context, (depth, columns), right, (vectors, packing), [(strips, to)]);
    };
    let packed = packed(context, right, strips, (form, len), memory, fill);
    packed.map_or(right, |data| Right::Packed { data, vectors, packing })
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
    (vectors, packing): (usize, Packing),
    tiles: impl IntoIterator<Item = (S, &'t mut [f32])>,
) {
    let size = (depth, columns);
    match packing {
        Packing::Pairs if const { !E::IS_16_BIT } => {
            pack_lanes::<E, S, Pairs>(context, size, right, vectors, tiles);
        }
        Packing::Rounded if const { !E::IS_16_BIT } => {
            pack_lanes::<E, S, Rounded>(context, size, right, vectors, tiles);
        }
        _ => pack_lanes::<E, S, Floats>(context, size, right, vectors, tiles),
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
        pack_slice::<E, L::Right>(isa, right, slice, strips.as_ref(), vectors, packed);
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
        let weights = weights_len(depth, GATES, cell_size);
        let packing = Packing::new::<E>(context, tiling.rows, weights);
        let vectors = packed_vectors(context.isa, tiling.rows);
        let form = Form::Tiles { cells: tiling.columns, vectors, packing };
        let floats_per_cell = packing.rows(depth) * GATES;
        let key = (form, weights_len(packing.rows(depth), GATES, cell_size));
        let packed = packed(context, right, &all, key, memory, |to| {
            let memory = to.chunks_mut((floats_per_cell * tiling.columns).max(1));
            let tiles = parts(0..cell_size, tiling.columns).map(|cells| strips(&cells)).zip(memory);
            let columns = GATES.saturating_mul(tiling.columns);
            pack_tiles(context, (depth, columns), right, (vectors, packing), tiles);
        })?;
        Some(PackedWeights::Tiles { packed, floats_per_cell, vectors, packing })
    }

    /// The factor for the tile at `place`.
    pub(crate) fn at(&self, place: &Place) -> Right<'a, f32> {
        match *self {
            PackedWeights::Tiles { packed, floats_per_cell, vectors, packing } => {
                let data = &packed[floats_per_cell * place.columns.start..];
                Right::Packed { data, vectors, packing }
            }
            PackedWeights::Quads(weights) => Right::Quads(weights.from(place.columns.start)),
        }
    }
}
