//! How results are cut into tiles, and how products are cut into slices.

use std::ops::Range;

use super::caches::second_level;
use super::micro_kernel::PANEL_ROWS;
use super::{KC, MC, NR, UNIT};
use crate::Context;
use crate::elementwise::SUM_COLUMNS;
use crate::tiles::Tiling;

/// Multiply-adds of a tile that are worth a task.
const WORTH: usize = 1 << 20;

/// Tiles of a step whose weights are packed: rows of the batch by cells. Each cell has so many products. No tile
/// has more columns than an elementwise pass with sums over the batch can have.
pub(crate) fn step_tiling(
    context: &Context<'_>,
    (batch, cell_size): (usize, usize),
    products: usize,
) -> Tiling {
    /// Most sums of a tile: they stay in the second level cache, beside the packed weights.
    const L2_BUDGET: usize = 48 << 10;
    let rows = step_rows((batch, cell_size), products);
    /// Rows whose steps take as long as large weights are read.
    const FEW: usize = 4;
    /// The most weights that are not large, and the columns of tiles that are a part of a cache. The next step begins with
    /// the tiles that this one has read last.
    const WEIGHTS: usize = 512 << 10;
    const COLUMNS: usize = 128;
    let weights = state_weights(cell_size, products);
    let reads = batch <= FEW && weights > WEIGHTS && context.executor.threads() <= 1;
    let most = (L2_BUDGET / (rows * products)).min(if reads { COLUMNS } else { SUM_COLUMNS });
    tiling_by_threads(context, (batch, cell_size), rows, products * cell_size, (most, UNIT))
}

/// [`step_tiling`] for so many steps whose rows need nothing of each other, and have no sums over the batch: where the
/// weights are small, each thread has rows of its own, and all cells.
pub(crate) fn sequence_tiling(
    context: &Context<'_>,
    (batch, cell_size): (usize, usize),
    products: usize,
    steps: usize,
) -> Tiling {
    let weights = state_weights(cell_size, products);
    let threads = context.executor.threads().max(1);
    let worth = WORTH / weights.saturating_mul(steps).max(1);
    let rows = batch.div_ceil(threads).max(worth).min(quarter(batch));
    // A single row can still be cut into columns.
    if weights > small_weights() || (rows >= batch && threads > 1) {
        return step_tiling(context, (batch, cell_size), products);
    }
    Tiling { rows: even(batch, rows, 1), columns: padded(cell_size).max(UNIT) }
}

/// Tiles of a step of a few rows that is computed group by group of cells: a tile for each thread if that is enough work.
/// Tiles have whole blocks of so many cells, or of fewer where that makes them more even.
pub(crate) fn group_tiling(
    context: &Context<'_>,
    (rows, cell_size): (usize, usize),
    products: usize,
    block: usize,
) -> Tiling {
    let (shape, depth) = ((rows, cell_size), products * cell_size);
    let tiling = |block| tiling_by_threads(context, shape, rows, depth, (cell_size, block));
    let [whole, narrower] = [block, block.min(NR)].map(tiling);
    if narrower.columns < whole.columns { narrower } else { whole }
}

/// Tiles of a single step, whose weights are not packed before. The wider the tiles, the longer the runs in which
/// memory is read.
pub(crate) fn cell_tiling(
    context: &Context<'_>,
    (batch, cell_size): (usize, usize),
    products: usize,
) -> Tiling {
    /// Most sums of a tile: they stay in the second level cache.
    const L2_BUDGET: usize = 144 << 10;
    let rows = most_rows(batch);
    let most = L2_BUDGET / (rows * products);
    tiling_by_threads(context, (batch, cell_size), rows, products * cell_size, (most, UNIT))
}

/// Tiles of a product, of sums of so many terms, with the transpose of unpacked weights. They are narrow, so that
/// the pages of their rows of the weights stay in the TLB from slice to slice.
pub(crate) fn transposed_tiling(
    context: &Context<'_>,
    (batch, columns): (usize, usize),
    depth: usize,
) -> Tiling {
    const COLUMNS: usize = 128;
    tiling_by_threads(context, (batch, columns), most_rows(batch), depth, (COLUMNS, UNIT))
}

/// Rows of the tiles of [`step_tiling`]. They do not depend on the threads, because each row of tiles adds up its
/// own part of the gradients' sums over the batch.
pub(crate) fn step_rows((batch, cell_size): (usize, usize), products: usize) -> usize {
    /// The most weights that stay in the second level cache of every thread.
    const WEIGHTS: usize = 256 << 10;
    /// The least rows that are worth a tile where the weights are small.
    const WORTH: usize = 4;
    let weights = state_weights(cell_size, products);
    if weights > WEIGHTS {
        return most_rows(batch);
    }
    let most = if weights <= small_weights() { batch.div_ceil(2).max(WORTH) } else { MC };
    even(batch, quarter(batch).min(most), 1)
}

/// The weights of a step's products with the state.
fn state_weights(cell_size: usize, products: usize) -> usize {
    cell_size.saturating_mul(cell_size).saturating_mul(products)
}

/// The most weights that stay in the second level cache of every thread, beside all else.
fn small_weights() -> usize {
    second_level() / size_of::<f32>() * 4 / 5
}

/// A quarter of the rows of a batch, if these are enough for a tile.
fn quarter(batch: usize) -> usize {
    /// The least rows that are worth a tile.
    const WORTH: usize = 16;
    batch.div_ceil(4).clamp(WORTH, MC)
}

/// Rows of tiles that are as high as possible.
pub(crate) fn most_rows(batch: usize) -> usize {
    even(batch, MC, 1)
}

/// As many tiles as threads, or a multiple of that, if tiles have at most so many columns and enough work. The columns are
/// a multiple of a unit. An element of a product does not depend on how wide its tile is.
fn tiling_by_threads(
    context: &Context<'_>,
    (batch, columns): (usize, usize),
    rows: usize,
    depth: usize,
    (most, unit): (usize, usize),
) -> Tiling {
    let most = most.max(2 * NR);
    let threads = context.executor.threads().div_ceil(batch.div_ceil(rows).max(1));
    let parts = columns.div_ceil(most).max(1).next_multiple_of(threads.max(1));
    let worth = WORTH / busy_rows(rows).saturating_mul(depth.max(1));
    let size = columns.div_ceil(parts).max(worth).min(most);
    Tiling { rows, columns: even(columns, padded(size), unit) }
}

/// The processor cycles that the products of a tile may take, for an executor: in each row so many columns for each of
/// the tile's, which are sums of `depth` terms.
pub(crate) fn cost(tiling: Tiling, gates: usize, depth: usize) -> u64 {
    let weights = gates.saturating_mul(tiling.columns).saturating_mul(depth.max(1));
    (weights.saturating_mul(busy_rows(tiling.rows)) / 24) as u64
}

/// The rows whose arithmetic takes as long as these rows do: to read the weights takes as long as that of a few rows.
fn busy_rows(rows: usize) -> usize {
    rows.max(8)
}

/// The size of about equal parts of `n`: at most `most` (or one), rounded up to a multiple of `unit`.
pub(super) fn even(n: usize, most: usize, unit: usize) -> usize {
    n.div_ceil(n.div_ceil(most.max(1)).max(1)).next_multiple_of(unit).max(unit)
}

/// `0 .. depth` in slices of about equal depth, at most [`KC`].
pub(super) fn slices(depth: usize) -> impl Iterator<Item = Range<usize>> {
    parts(depth, even(depth, KC, 1))
}

/// `0 .. n` in parts of some size; the last one may be smaller.
pub(super) fn parts(n: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(size).map(move |start| start..n.min(start + size))
}

/// So many columns, filled up to a multiple of [`UNIT`].
pub(crate) fn padded(columns: usize) -> usize {
    columns.checked_next_multiple_of(UNIT).unwrap_or(usize::MAX)
}

/// Tiles of a product with packed constants. Their width does not depend on the rows, so that one copy serves all calls.
pub(crate) fn constant_tiling((rows, columns): (usize, usize)) -> Tiling {
    const COLUMNS: usize = 256;
    Tiling { rows: even(rows, MC, 1), columns: even(columns, COLUMNS, UNIT) }
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
    /// The wider a tile, the fewer copies of the left factor.
    const MOST_COLUMNS: usize = 512;
    /// Tiles for each thread, so that a thread can take over some of another's.
    const EACH: usize = 4;
    let rows_at_once = match left {
        LeftLayout::Transposed => PANEL_ROWS,
        LeftLayout::RowMajor => MC,
    };
    let wanted = (EACH * threads).div_ceil(rows.div_ceil(rows_at_once).max(1));
    let columns_at_once = columns.div_ceil(wanted).next_multiple_of(2 * NR).min(MOST_COLUMNS);
    Tiling { rows: even(rows, rows_at_once, 1), columns: even(columns, columns_at_once, UNIT) }
}
