//! Products of steps of few rows, group by group of cells.

use std::array;
use std::ops::Range;

use ndarray::ArrayView2;

use crate::gemm::{self, Interleaved, Right, RowLanes, StepShape};
use crate::simd::Simd;
use crate::tiles::Tiling;
use crate::tuning::{GROUP_CELLS, GROUP_CELLS_OF_ONE_ROW, PACKED_STEPS, PAIR_TERMS};
use crate::{Context, Storage};

/// How steps of a few rows are cut into groups of cells.
#[derive(Clone, Copy)]
pub(crate) struct Grouping {
    pub(crate) tiling: Tiling,
    /// The cells of a group.
    pub(crate) width: usize,
    /// The most cells of a block.
    most: usize,
}

impl Grouping {
    /// For steps with products of `gates` gates each, one after the other, that would have tiles of `tiling`; none if
    /// groups do not pay.
    pub(crate) fn new<E: Storage>(
        context: &Context<'_>,
        tiling: Tiling,
        (cells, steps): (usize, usize),
        gates: &[usize],
    ) -> Option<Self> {
        if E::IS_16_BIT || steps < PACKED_STEPS {
            return None;
        }
        let widths = gates.iter().map(|&gates| gemm::block_width(context.isa, tiling.rows, gates));
        let widest = widths.collect::<Option<Vec<_>>>()?.into_iter().max()?;
        let tiling = if cells <= tiling.columns {
            tiling
        } else {
            let shape = StepShape::new((tiling.rows, cells), gates.iter().sum());
            gemm::group_tiling(context, shape, widest)
        };
        // Tiles have whole blocks, whose widths are powers of 2.
        let most =
            if cells <= tiling.columns { widest } else { 1 << tiling.columns.trailing_zeros() };
        let least = if tiling.rows == 1 { GROUP_CELLS_OF_ONE_ROW } else { GROUP_CELLS };
        Some(Grouping { tiling, width: widest.min(most).max(least), most })
    }
}

/// Weights that a factor of every step is multiplied by, for `G` gates of each cell, in groups of cells.
#[derive(Clone, Copy)]
pub(crate) struct GroupedProduct<'w, const G: usize> {
    weights: Interleaved<'w, G>,
    tiling: Tiling,
    depth: usize,
    cells: usize,
}

impl<'w, const G: usize> GroupedProduct<'w, G> {
    /// Weights, gate by gate in these columns of a matrix, which may lie in memory as its transpose. They are packed:
    /// constants of the call once and for all, others into `memory`, of [`Product::memory`](super::Product::memory).
    pub(crate) fn new<'f: 'w, E: Storage>(
        context: &Context<'w>,
        grouping: Grouping,
        (weights, columns): (ArrayView2<'f, E>, Range<usize>),
        memory: &'w mut [f32],
    ) -> Self {
        let Grouping { tiling, most, .. } = grouping;
        let (depth, right) = (weights.nrows(), Right::of(weights));
        let context = &context.where_it_pays(depth >= PAIR_TERMS);
        let cells = columns.len() / G;
        let width = gemm::block_width(context.isa, tiling.rows, G).expect("one of the widths");
        let width = width.min(most);
        let size = [tiling.rows, depth, width, tiling.columns.next_multiple_of(width)];
        let strips = strips(columns.start, cells, &(0..cells));
        let weights = Interleaved::pack(context, size, right, &strips, memory);
        GroupedProduct { weights, tiling, depth, cells }
    }

    /// The processor cycles that a tile may take.
    pub(crate) fn cost(&self) -> u64 {
        gemm::cost(self.tiling, G, self.depth)
    }

    /// How rows are multiplied by the weights.
    pub(crate) fn row_lanes(&self) -> RowLanes {
        self.weights.row_lanes()
    }

    /// Sets `sums`, `[rows, gates, cells]`, to those of a group: what is known of each row, or zeros, and its products,
    /// of lanes of [`GroupedProduct::row_lanes`]. Sums of a row are `pitch` apart from those of the next.
    #[inline(always)]
    pub(crate) fn sum<'l, S: Simd>(
        &self,
        simd: S,
        cells: &Range<usize>,
        rows: impl Iterator<Item = (Option<&'l [f32]>, &'l [f32])> + Clone,
        (sums, pitch): (&mut [f32], usize),
    ) {
        let size = gemm::padded(cells.len());
        for ((known, _), sums) in rows.clone().zip(sums.chunks_mut(pitch)) {
            let gates = sums.chunks_exact_mut(size).take(G);
            let Some(known) = known else {
                gates.for_each(|sums| sums.fill(0.0));
                continue;
            };
            for (columns, to) in strips::<G>(0, self.cells, cells).into_iter().zip(gates) {
                copy_padded(simd, &known[columns], to);
            }
        }
        self.weights.add(simd, cells, rows.map(|(_, left)| left), (sums, pitch));
    }
}

/// The columns of `G` gates of `all` cells, from column `first` on, that belong to some of these.
#[inline(always)]
pub(super) fn strips<const G: usize>(
    first: usize,
    all: usize,
    cells: &Range<usize>,
) -> [Range<usize>; G] {
    array::from_fn(|gate| first + gate * all).map(|gate| gate + cells.start..gate + cells.end)
}

/// Copies some sums, filled up to whole vectors with zeros.
#[inline(always)]
pub(crate) fn copy_padded<S: Simd>(simd: S, from: &[f32], to: &mut [f32]) {
    for (to, from) in to.chunks_exact_mut(S::LANES).zip(from.chunks(S::LANES)) {
        simd.store(simd.load(from), to);
    }
}
