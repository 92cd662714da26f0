//! Products by tiles, as AMX has them: blocks of 32 rows by 32 columns, whose sums are four tiles.
//!
//! A slice of a left factor is read where [`CopyRows`](super::pack::CopyRows) puts it, and packed columns as they are for
//! vectors: a tile has 16 rows of their lanes. The last lanes of a slice are filled up with zeros. Each sum is that of a
//! slice, from zero on, whatever the block, so it depends on its row and its column alone. With numbers in bfloat16 it is
//! not the sum that [`Simd::add_pairs`] makes, which adds products in another order.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayView3};

use super::lanes::{Lanes, Pairs, SignedQuads, lanes};
use super::micro_kernel::{Accumulators, LeftRows, LeftSlice, groups_of};
use super::pack::{CopyTransposed, Panel, pack_columns};
use super::right::Right;
use super::strip::Strip;
use super::tile::Tile;
use super::tiling::{padded, slices};
use super::units::QuadWeights;
use crate::Storage;
use crate::simd::{
    Heights, LINE, Simd, TILE_LANES, TILE_ROWS, TileUnit, Tiles, WithSimd, WithTiles,
};
use crate::tiles::rows as rows_of;
use crate::tuning::{LEFT_PITCH_FLOATS, NR, UNIT};

/// Most rows of a block.
const BLOCK_ROWS: usize = 2 * TILE_ROWS;

/// Most columns of a block.
const BLOCK_COLUMNS: usize = 2 * TILE_LANES;

// Packed columns are those of whole tiles, and those of a block fit in the memory for columns that are packed on the way.
const _: () = assert!(UNIT == TILE_LANES && NR == BLOCK_COLUMNS);

/// Lanes of which tiles have products.
pub(super) trait TileLanes: Lanes {
    /// Adds the products of two tiles to a third.
    fn add_tiles<T: Tiles, const SUMS: usize, const A: usize, const B: usize>(tiles: &mut T);
}

impl TileLanes for Pairs {
    #[inline(always)]
    fn add_tiles<T: Tiles, const SUMS: usize, const A: usize, const B: usize>(tiles: &mut T) {
        tiles.add_pairs::<SUMS, A, B>();
    }
}

impl TileLanes for SignedQuads {
    #[inline(always)]
    fn add_tiles<T: Tiles, const SUMS: usize, const A: usize, const B: usize>(tiles: &mut T) {
        tiles.add_quads::<SUMS, A, B>();
    }
}

impl Tile<'_> {
    /// Adds the product of one slice of the factors, as pairs. `left` is that slice; `right` is all of it.
    pub(super) fn add_tiled<E: Storage>(
        &mut self,
        unit: TileUnit,
        left: LeftRows<'_, Pairs>,
        right: Right<'_, E>,
        slice: Range<usize>,
    ) {
        let isa = self.isa;
        if let Right::Packed { data, vectors, .. } = right {
            let (strip, packed) = self.packed_slice(left, data, slice);
            return isa.run_pairs(AddPacked { unit, strip, packed, vectors });
        }
        self.for_each_run(0..self.rows, left, lanes::<Pairs>(slice.len()), |strip, packed| {
            isa.run_pairs(AddUnpacked { unit, strip, right, slice: slice.clone(), packed });
        });
    }

    /// Adds `left^T @ right`, as pairs: see [`Tile::add_tn`].
    pub(super) fn add_tiled_tn<A: Storage, B: Storage>(
        &mut self,
        unit: TileUnit,
        left: ArrayView2<'_, A>,
        valid: Option<&[bool]>,
        right: ArrayView2<'_, B>,
    ) {
        self.clear_blank();
        let memory = std::mem::take(&mut self.left);
        for slice in slices::<Pairs>(left.nrows()) {
            let valid = valid.map(|valid| &valid[slice.clone()]);
            let panel = Panel { from: rows_of(left, slice.clone()), valid };
            let (to, pitch) = (&mut *memory, LEFT_PITCH_FLOATS);
            self.isa.run_pairs(CopyTransposed { panel, to, pitch });
            let rows = LeftRows::new(&memory.as_chunks().0[..self.rows]);
            self.add_tiled(unit, rows, Right::RowMajor(right), slice);
        }
        self.left = memory;
    }

    /// Adds the product with weights in int8.
    pub(super) fn add_tiled_quads<E: Storage>(
        &mut self,
        unit: TileUnit,
        left: ArrayView3<'_, E>,
        weights: QuadWeights<'_>,
    ) {
        let isa = self.isa;
        self.for_each_slice::<E, SignedQuads>(left, |tile, left, slice| {
            let depth = lanes::<SignedQuads>(slice.len());
            let mut of_runs = weights.gates();
            tile.for_each_run(0..tile.rows, left, depth, |strip, _| {
                let weights = of_runs.next().expect("a gate for each run");
                isa.run(AddUnits { unit, strip, weights, slice: slice.clone() });
            });
        });
    }
}

/// `sums += left @ packed`
struct AddPacked<'p, 's, 'l> {
    unit: TileUnit,
    strip: Strip<'s, LeftRows<'l, Pairs>>,
    /// A slice of the right factor, packed in groups of `vectors` vectors.
    packed: &'p [f32],
    vectors: usize,
}

impl WithSimd for AddPacked<'_, '_, '_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let AddPacked { unit, strip, packed, vectors } = self;
        let depth = strip.depth;
        let groups = groups_of::<S>(strip.columns.len(), vectors);
        let columns = groups.flat_map(|group| {
            let width = padded(group.len());
            of_group(&packed[depth * group.start..][..depth * width], width)
        });
        add(simd, unit, strip, columns);
    }
}

/// The columns of a packed group, whose rows are `width` long.
#[inline(always)]
fn of_group(packed: &[f32], width: usize) -> impl Iterator<Item = TileColumns<'_>> + Clone {
    let columns = (0..width).step_by(TILE_LANES);
    // There are none where rows have no terms.
    columns.map(move |at| TileColumns {
        lanes: packed.get(at..).unwrap_or_default(),
        pitch: width,
        scales: &[],
    })
}

/// `sums += left @ right`, where `right` is packed on the way.
struct AddUnpacked<'r, 't, 's, 'l, E> {
    unit: TileUnit,
    strip: Strip<'s, LeftRows<'l, Pairs>>,
    right: Right<'r, E>,
    slice: Range<usize>,
    /// Memory for the columns of a block.
    packed: &'t mut [f32],
}

impl<E: Storage> WithSimd for AddUnpacked<'_, '_, '_, '_, E> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let AddUnpacked { unit, mut strip, right, slice, packed } = self;
        let (first, all) = (strip.columns.start, strip.columns.len());
        for start in (0..all).step_by(BLOCK_COLUMNS) {
            let columns = start..all.min(start + BLOCK_COLUMNS);
            let width = padded(columns.len());
            let packed = &mut packed[..strip.depth * width];
            let of_right = first + columns.start..first + columns.end;
            pack_columns::<S, E, Pairs>(simd, right, slice.clone(), of_right, packed, width);
            add(simd, unit, strip.part(columns), of_group(packed, width));
        }
    }
}

/// `sums += left @ weights`, for a run of strips.
struct AddUnits<'w, 's, 'l> {
    unit: TileUnit,
    strip: Strip<'s, LeftRows<'l, SignedQuads>>,
    /// From the first unit of the run on.
    weights: QuadWeights<'w>,
    slice: Range<usize>,
}

impl WithSimd for AddUnits<'_, '_, '_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let AddUnits { unit, strip, weights, slice } = self;
        let columns = (0..strip.columns.len().div_ceil(UNIT)).map(|n| {
            let rows = weights.rows(n, &slice);
            let [_, lanes @ .., scales] = rows else { unreachable!("rows around those of lanes") };
            TileColumns { lanes: lanes.as_flattened(), pitch: UNIT, scales }
        });
        add(simd, unit, strip, columns);
    }
}

/// Packed columns of a tile.
#[derive(Clone, Copy)]
struct TileColumns<'p> {
    /// Rows of their lanes, the first of each `pitch` after that of the one before.
    lanes: &'p [f32],
    pitch: usize,
    /// Their scales, where columns have them.
    scales: &'p [f32],
}

/// Adds the product with all columns of a strip. Tiles of the last rows are lower, so these rows are worked on at the end.
#[inline(always)]
fn add<'p, S: Simd, L: TileLanes>(
    simd: S,
    unit: TileUnit,
    strip: Strip<'_, LeftRows<'_, L>>,
    columns: impl Iterator<Item = TileColumns<'p>> + Clone,
) {
    let Strip { left, depth, rows: all, sums, .. } = strip;
    let whole = all - all % BLOCK_ROWS;
    for rows in [0..whole, whole..all] {
        if rows.is_empty() {
            continue;
        }
        let first = rows.len().min(TILE_ROWS);
        let second = rows.len().min(BLOCK_ROWS) - first;
        let heights = [first, first, second, second, first, second, TILE_ROWS, TILE_ROWS];
        let sums =
            Accumulators { data: &mut sums.data[rows.start * sums.pitch..], pitch: sums.pitch };
        let (rows, columns) = (left.block(rows.start, rows.len()), columns.clone());
        unit.run(heights, AddBlocks { simd, heights, rows, depth, sums, columns });
    }
}

/// The products of some rows, whole blocks or one that is lower.
struct AddBlocks<'s, 'l, S, L, C> {
    simd: S,
    heights: Heights,
    rows: LeftRows<'l, L>,
    depth: usize,
    sums: Accumulators<'s>,
    columns: C,
}

/// Memory that starts with a cache line.
#[repr(align(64))]
struct Lines<const N: usize>([f32; N]);

const _: () = assert!(align_of::<Lines<1>>() == LINE);

/// The lanes of a tile.
type TileMemory = Lines<{ TILE_ROWS * TILE_LANES }>;

impl<'p, S: Simd, L: TileLanes, C: Iterator<Item = TileColumns<'p>>> WithTiles
    for AddBlocks<'_, '_, S, L, C>
{
    #[inline(always)]
    fn run<T: Tiles>(self, tiles: &mut T) {
        let AddBlocks { simd, heights, rows, depth, mut sums, mut columns } = self;
        let mut product = Lines([0.0; _]);
        let mut last_lanes = [const { Lines([0.0; _]) }; 2];
        let mut at = 0;
        while let Some(first) = columns.next() {
            let both = [Some(first), columns.next()];
            let right = RightBlock::new(depth, both, &mut last_lanes);
            for start in (0..rows.len()).step_by(BLOCK_ROWS) {
                let height = (rows.len() - start).min(BLOCK_ROWS);
                let block = rows.block(start, height);
                right.multiply::<T, L>(tiles, heights[2] > 0, block, &mut product.0);
                let mut sums = sums.from(start * sums.pitch + at);
                add_product(simd, block, both, &product.0, &mut sums);
            }
            at += BLOCK_COLUMNS;
        }
    }
}

/// A slice of the columns of a block.
struct RightBlock<'p> {
    depth: usize,
    /// Of one tile, or of two.
    columns: [Option<TileColumns<'p>>; 2],
    /// The last lanes of each, where they do not fill a tile.
    last_lanes: &'p [TileMemory; 2],
}

impl<'p> RightBlock<'p> {
    /// `last_lanes` has zeros after as many lanes as there are in each slice.
    #[inline(always)]
    fn new(
        depth: usize,
        columns: [Option<TileColumns<'p>>; 2],
        last_lanes: &'p mut [TileMemory; 2],
    ) -> Self {
        for (columns, to) in columns.into_iter().flatten().zip(&mut *last_lanes) {
            let TileColumns { lanes, pitch, .. } = columns;
            let rows = depth - depth % TILE_ROWS..depth;
            for (k, to) in rows.zip(to.0.as_chunks_mut::<TILE_LANES>().0) {
                to.copy_from_slice(&lanes[k * pitch..][..TILE_LANES]);
            }
        }
        RightBlock { depth, columns, last_lanes }
    }

    /// The columns of a tile from lane `k` on: their rows, and from one to the next.
    #[inline(always)]
    fn tile(&self, n: usize, k: usize) -> (&[f32], usize) {
        match self.columns[n] {
            Some(TileColumns { lanes, pitch, .. }) if k + TILE_ROWS <= self.depth => {
                (&lanes[k * pitch..], pitch)
            }
            _ => (&self.last_lanes[n].0, TILE_LANES),
        }
    }

    /// Writes the product of a block of rows to `product`. Tiles 0 to 3 are its sums, 4 and 5 the rows, and 6 and 7 the
    /// columns. Without `both` there are no rows for tiles 2, 3 and 5.
    #[inline(always)]
    fn multiply<T: Tiles, L: TileLanes>(
        &self,
        tiles: &mut T,
        both: bool,
        rows: LeftRows<'_, L>,
        product: &mut [f32; BLOCK_ROWS * BLOCK_COLUMNS],
    ) {
        let wide = self.columns[1].is_some();
        tiles.zero::<0>();
        if wide {
            tiles.zero::<1>();
        }
        if both {
            tiles.zero::<2>();
        }
        if both && wide {
            tiles.zero::<3>();
        }
        for k in (0..self.depth).step_by(TILE_LANES) {
            tiles.load::<4>(rows.from(0, k), LEFT_PITCH_FLOATS);
            let (columns, pitch) = self.tile(0, k);
            tiles.load::<6>(columns, pitch);
            L::add_tiles::<T, 0, 4, 6>(tiles);
            if both {
                tiles.load::<5>(rows.from(TILE_ROWS, k), LEFT_PITCH_FLOATS);
                L::add_tiles::<T, 2, 5, 6>(tiles);
            }
            if wide {
                let (columns, pitch) = self.tile(1, k);
                tiles.load::<7>(columns, pitch);
                L::add_tiles::<T, 1, 4, 7>(tiles);
            }
            if both && wide {
                L::add_tiles::<T, 3, 5, 7>(tiles);
            }
        }
        let second = TILE_ROWS * BLOCK_COLUMNS;
        tiles.store::<0>(product, BLOCK_COLUMNS);
        if wide {
            tiles.store::<1>(&mut product[TILE_LANES..], BLOCK_COLUMNS);
        }
        if both {
            tiles.store::<2>(&mut product[second..], BLOCK_COLUMNS);
        }
        if both && wide {
            tiles.store::<3>(&mut product[second + TILE_LANES..], BLOCK_COLUMNS);
        }
    }
}

/// Adds the product of a block to sums.
#[inline(always)]
fn add_product<S: Simd, L: Lanes>(
    simd: S,
    rows: LeftRows<'_, L>,
    columns: [Option<TileColumns<'_>>; 2],
    product: &[f32; BLOCK_ROWS * BLOCK_COLUMNS],
    sums: &mut Accumulators<'_>,
) {
    for (m, product) in product.chunks_exact(BLOCK_COLUMNS).enumerate().take(rows.len()) {
        let sums = &mut sums.data[m * sums.pitch..];
        for (n, columns) in columns.into_iter().flatten().enumerate() {
            for at in (0..TILE_LANES).step_by(S::LANES) {
                let here = n * TILE_LANES + at..n * TILE_LANES + at + S::LANES;
                let product = [[simd.load(&product[here.clone()])]];
                let scales = || [simd.load(&columns.scales[at..at + S::LANES])];
                let [[product]] = L::last(simd, product, scales, |_| rows.scale(m));
                let sums = &mut sums[here];
                simd.store(simd.load(sums) + product, sums);
            }
        }
    }
}
