//! How results are cut into tiles, and how products are cut into slices.

use std::ops::Range;

use super::caches::small_weights;
use super::lanes::{Lanes, lanes};
use crate::tiles::Tiling;
use crate::tuning::{
    CONSTANT_COLUMNS, HELD_WEIGHTS_FLOATS, KC, LEAST_ROWS, LEAST_ROWS_OF_SMALL_WEIGHTS, MC,
    MULTIPLY_ADDS_PER_CYCLE, NR, PAIR_ROWS, PAIR_TERMS, PANEL_ROWS, PRODUCT_COLUMNS,
    PRODUCT_TILES_PER_THREAD, READING_ROWS, REREADING, ROW_TILES, SINGLE_STEP_SUMS_FLOATS,
    STEP_SUMS_FLOATS, SUM_COLUMNS, TASK_MULTIPLY_ADDS, TRANSPOSED_COLUMNS, UNIT,
};
use crate::{Context, Storage};

/// The products of a step with the state: `products` sums for each cell of each row, with as many terms as there are
/// cells.
#[derive(Clone, Copy)]
pub(crate) struct StepShape {
    pub(crate) rows: usize,
    pub(crate) cells: usize,
    pub(crate) products: usize,
}

impl StepShape {
    /// Those of states `[rows, cells]`.
    pub(crate) fn new((rows, cells): (usize, usize), products: usize) -> Self {
        StepShape { rows, cells, products }
    }

    /// How many weights there are.
    fn weights(self) -> usize {
        self.cells.saturating_mul(self.cells).saturating_mul(self.products)
    }

    /// Tiles of `tile_rows` rows and of the columns that threads need: whole units, and at most `most_columns`.
    fn tiling(
        self,
        context: &Context<'_>,
        tile_rows: usize,
        most_columns: usize,
        unit: usize,
    ) -> Tiling {
        let StepShape { rows, cells: columns, products } = self;
        let depth = products * columns;
        Cut { rows, columns, depth, tile_rows, most_columns, unit }.tiling(context)
    }
}

/// Tiles of a step whose weights are packed: rows of the batch by cells. No tile has more columns than an elementwise
/// pass with sums over the batch can have.
pub(crate) fn step_tiling(context: &Context<'_>, shape: StepShape) -> Tiling {
    let rows = step_rows(shape);
    let rereads = shape.rows <= REREADING.rows
        && shape.weights() > REREADING.least_weights_floats
        && context.executor.threads() <= 1;
    let most = STEP_SUMS_FLOATS / (rows * shape.products);
    let most = most.min(if rereads { REREADING.columns } else { SUM_COLUMNS });
    shape.tiling(context, rows, most, UNIT)
}

/// [`step_tiling`] for steps whose rows need nothing of each other, and have no sums over the batch: where the weights,
/// as they are packed, are small, each thread has rows of its own, and all cells.
pub(crate) fn sequence_tiling<E: Storage>(
    context: &Context<'_>,
    shape: StepShape,
    steps: usize,
) -> Tiling {
    let (batch, weights) = (shape.rows, shape.weights());
    let threads = context.executor.threads().max(1);
    let worth = TASK_MULTIPLY_ADDS / weights.saturating_mul(steps).max(1);
    let rows = batch.div_ceil(threads).max(worth).min(rows_of_batch(batch));
    // A single row can still be cut into columns.
    let bytes = weights.saturating_mul(context.weight_bytes::<E>(shape.cells));
    if bytes > small_weights() || (rows >= batch && threads > 1) {
        return step_tiling(context, shape);
    }
    Tiling { rows: even(batch, rows, 1), columns: padded(shape.cells).max(UNIT) }
}

/// Tiles of a step of a few rows that is computed group by group of cells: a tile for each thread if that is enough
/// work. Tiles have whole blocks of `block` cells, or of fewer where that makes them more even.
pub(crate) fn group_tiling(context: &Context<'_>, shape: StepShape, block: usize) -> Tiling {
    let tiling = |block| shape.tiling(context, shape.rows, shape.cells, block);
    let [whole, narrower] = [block, block.min(NR)].map(tiling);
    if narrower.columns < whole.columns { narrower } else { whole }
}

/// Tiles of a single step, whose weights are not packed before. The wider the tiles, the longer the runs in which
/// memory is read.
pub(crate) fn cell_tiling(context: &Context<'_>, shape: StepShape) -> Tiling {
    let rows = most_rows(shape.rows);
    shape.tiling(context, rows, SINGLE_STEP_SUMS_FLOATS / (rows * shape.products), UNIT)
}

/// Tiles of a product, of sums of `depth` terms, with the transpose of unpacked weights.
pub(crate) fn transposed_tiling(
    context: &Context<'_>,
    (rows, columns): (usize, usize),
    depth: usize,
) -> Tiling {
    let (tile_rows, most_columns, unit) = (most_rows(rows), TRANSPOSED_COLUMNS, UNIT);
    Cut { rows, columns, depth, tile_rows, most_columns, unit }.tiling(context)
}

/// Rows of the tiles of [`step_tiling`]. They do not depend on the threads, because each row of tiles adds up its
/// own part of the gradients' sums over the batch.
pub(crate) fn step_rows(shape: StepShape) -> usize {
    let (batch, weights) = (shape.rows, shape.weights());
    if weights > HELD_WEIGHTS_FLOATS {
        return most_rows(batch);
    }
    let most = if size_of::<f32>() * weights <= small_weights() {
        batch.div_ceil(2).max(LEAST_ROWS_OF_SMALL_WEIGHTS)
    } else {
        MC
    };
    even(batch, rows_of_batch(batch).min(most), 1)
}

/// The rows of a part of a batch, if these are enough for a tile.
fn rows_of_batch(batch: usize) -> usize {
    batch.div_ceil(ROW_TILES).clamp(LEAST_ROWS, MC)
}

/// Rows of tiles that are as high as possible.
pub(crate) fn most_rows(batch: usize) -> usize {
    even(batch, MC, 1)
}

/// A matrix of products, `[rows, columns]`, whose sums have `depth` terms, and what its tiles may be.
struct Cut {
    rows: usize,
    columns: usize,
    depth: usize,
    tile_rows: usize,
    most_columns: usize,
    /// What the columns of a tile are a multiple of.
    unit: usize,
}

impl Cut {
    /// As many tiles as threads, or a multiple of that, if they have enough work. An element of a product does not
    /// depend on how wide its tile is.
    fn tiling(self, context: &Context<'_>) -> Tiling {
        let Cut { rows, columns, depth, tile_rows, most_columns, unit } = self;
        let most = most_columns.max(2 * NR);
        let threads = context.executor.threads().div_ceil(rows.div_ceil(tile_rows).max(1));
        let parts = columns.div_ceil(most).max(1).next_multiple_of(threads.max(1));
        let worth = TASK_MULTIPLY_ADDS / busy_rows(tile_rows).saturating_mul(depth.max(1));
        let size = columns.div_ceil(parts).max(worth).min(most);
        Tiling { rows: tile_rows, columns: even(columns, padded(size), unit) }
    }
}

/// The processor cycles that the products of a tile may take, for an executor: in each row `gates` columns for each of
/// the tile's, which are sums of `depth` terms.
pub(crate) fn cost(tiling: Tiling, gates: usize, depth: usize) -> u64 {
    let weights = gates.saturating_mul(tiling.columns).saturating_mul(depth.max(1));
    (weights.saturating_mul(busy_rows(tiling.rows)) / MULTIPLY_ADDS_PER_CYCLE) as u64
}

/// The rows whose arithmetic takes as long as these rows do.
fn busy_rows(rows: usize) -> usize {
    rows.max(READING_ROWS)
}

/// The size of about equal parts of `n`: at most `most` (or one), rounded up to a multiple of `unit`.
pub(super) fn even(n: usize, most: usize, unit: usize) -> usize {
    n.div_ceil(n.div_ceil(most.max(1)).max(1)).next_multiple_of(unit).max(unit)
}

/// `0 .. depth` in slices of about equal depth, at most [`KC`] lanes.
pub(super) fn slices<L: Lanes>(depth: usize) -> impl Iterator<Item = Range<usize>> {
    // Not `parts`, which sees no bound of the sum: few rows are multiplied in some hundred instructions.
    steps(depth, L::TERMS * lanes_of_slice::<L>(lanes::<L>(depth)))
}

/// The same of as many lanes.
pub(super) fn lane_slices<L: Lanes>(lanes: usize) -> impl Iterator<Item = Range<usize>> {
    steps(lanes, lanes_of_slice::<L>(lanes))
}

/// How many of these lanes a slice has: as many as whole rows of a packed right factor have.
fn lanes_of_slice<L: Lanes>(lanes: usize) -> usize {
    even(lanes, KC, const { L::Right::TERMS / L::TERMS })
}

fn steps(all: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..all).step_by(size).map(move |start| start..all.min(start + size))
}

/// Whether products with pairs of terms are faster, for `rows` rows that share a right factor of `depth` terms.
pub(crate) fn pairs_pay(rows: usize, depth: usize) -> bool {
    rows >= PAIR_ROWS && depth >= PAIR_TERMS
}

/// `columns`, filled up to a multiple of [`UNIT`].
pub(crate) fn padded(columns: usize) -> usize {
    columns.checked_next_multiple_of(UNIT).unwrap_or(usize::MAX)
}

/// Tiles of a product with packed constants. Their width does not depend on the rows, so that one copy serves all
/// calls.
pub(crate) fn constant_tiling((rows, columns): (usize, usize)) -> Tiling {
    Tiling { rows: most_rows(rows), columns: even(columns, CONSTANT_COLUMNS, UNIT) }
}

/// How the left factors of [`super::products()`] are given, which decides how high their tiles are.
#[derive(Clone, Copy)]
pub(crate) enum LeftLayout {
    /// Row-major.
    RowMajor,
    /// By its transpose.
    Transposed,
}

/// Tiles of [`super::products()`].
pub(crate) fn product_tiling(
    left: LeftLayout,
    (rows, columns): (usize, usize),
    threads: usize,
) -> Tiling {
    let rows_at_once = match left {
        LeftLayout::Transposed => PANEL_ROWS,
        LeftLayout::RowMajor => MC,
    };
    let tiles_of_rows = rows.div_ceil(rows_at_once).max(1);
    let wanted = (PRODUCT_TILES_PER_THREAD * threads).div_ceil(tiles_of_rows);
    let columns_at_once = columns.div_ceil(wanted).next_multiple_of(2 * NR).min(PRODUCT_COLUMNS);
    Tiling { rows: even(rows, rows_at_once, 1), columns: even(columns, columns_at_once, UNIT) }
}
