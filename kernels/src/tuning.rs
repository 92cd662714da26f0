//! The constants that decide how fast the kernels are, each with its unit and the measurement behind it.
//!
//! The unit is a part of a name: `FLOATS` are elements of four bytes, whatever a tensor's element type; `BYTES`,
//! `CYCLES` and so on are what they say. [`NR`], [`KC`] and [`MC`] are BLIS's names, in columns, terms and rows. *Not
//! measured apart* marks a number that was chosen with those around it, and for which no measurement of its own is
//! known. `docs/notes/performance.md` lists the alternatives that were rejected.
//!
//! On aarch64 nothing was measured. Vectors are as long there as with AVX2, and as many, so the same constants hold. Its
//! caches are no smaller: Neoverse N1, V1 and V2 have 64 KiB in the first level and 1 or 2 MiB in the second (N1 may have
//! less; Arm's technical reference manuals of these cores).
//!
//! Which rows a sum over the batch adds up first, and in which slices the terms of a product are added, depends on some
//! of these numbers: [`KC`], [`DOT_SLICE_TERMS`], [`DOT_ROW_LANES`], [`SUM_ROWS`] and the rows of tiles. Changing them
//! changes the last bits of results.

use crate::simd::LINE;

// Packed columns and the micro-kernel.

/// Packed columns are filled up with zeros to a multiple of this: a vector of AVX-512, and a cache line.
pub(crate) const UNIT: usize = 16;

/// Most columns that are packed side by side on the way (NR): two vectors of the widest instruction set. Four vectors
/// with 6 rows were no faster than two with 14 (Zen 4, 8 to 64 rows).
pub(crate) const NR: usize = 2 * UNIT;

/// Most terms of each sum that are added up before they are added to the tile (KC). A slice of a group of columns stays
/// in the first level cache. The rounding error grows with this and the number of slices. 256 were hardly faster (Zen
/// 5), 64 and 96 slower (Emerald Rapids).
pub(crate) const KC: usize = 128;

/// From a row of a copied slice of a left factor to the next: longer by a cache line, so that the first lines of all
/// rows lie in different sets of the first level cache. Without that, rows of few terms share an eighth of it.
pub(crate) const LEFT_PITCH_FLOATS: usize = KC + UNIT;

/// Most rows of a tile whose left factor is row-major (MC), however narrow the tile is. 256 made no difference (Zen 5).
pub(crate) const MC: usize = 192;

/// Most rows of a tile whose left factor is given by its transpose. Not measured apart.
pub(crate) const PANEL_ROWS: usize = 96;

/// Rows of packed columns at a time in the micro-kernel's loop, with AVX2 and NEON. With AVX-512 the loop is not unrolled: the
/// compiler would keep accumulators in memory, which was much slower (Emerald Rapids).
pub(crate) const UNROLL_ROWS: usize = 4;

/// How far ahead unpacked rows are prefetched: a block takes about as long to multiply them as memory takes to answer.
/// Not measured apart.
pub(crate) const PREFETCH_ROWS: usize = 12;

// Sweeps over large weights.

/// Rows of the right factor that are read side by side. With more of them, sums are loaded and stored less often, but
/// there is less time to prefetch the next ones. Hardware prefetchers follow 32 pages at a time. Not measured apart.
pub(crate) const SWEEP_TERMS: usize = 16;

/// A right factor that caches do not hold. Not measured apart.
pub(crate) const SWEEP_LEAST_BYTES: usize = 16 << 20;

/// With more rows packing is better than a sweep: one block of rows is the most that does not pack.
pub(crate) const SWEEP_MOST_ROWS: usize = 14;

/// Columns read together that trigger the hardware prefetcher, which makes a sweep needless. Not measured apart.
pub(crate) const SWEEP_MOST_RUN_BYTES: usize = 4 * LINE;

// Dot products.

/// Most rows of the left factor at a time, a multiple of the height of any block. So many rows of [`DOT_SLICE_TERMS`]
/// stay in the first level cache. Not measured apart.
pub(crate) const DOT_ROWS: usize = 20;

/// Most terms of each dot product that are added up before they are added to the tile. Not measured apart.
pub(crate) const DOT_SLICE_TERMS: usize = 512;

/// Rows of the left factor, times the lanes of a vector, from which on dot products do not pay. Not measured apart.
pub(crate) const DOT_ROW_LANES: usize = 640;

// Few rows, group by group of cells.

/// Most rows for which computing group by group of cells pays, with 32 registers. With 8 rows blocks are too narrow:
/// slower for a GRU (Zen 4).
pub(crate) const GROUPED_ROWS: usize = 6;

/// The same with 16 registers, or 16 pairs: from 3 rows on it was slower (AVX2).
pub(crate) const GROUPED_ROWS_16_REGISTERS: usize = 2;

/// Cells of a group: the equation of one runs while the next group's weights are read. 16 were slower at four rows (Zen
/// 4).
pub(crate) const GROUP_CELLS: usize = 64;

/// The same for a row by itself, which takes as long as its weights are read, so the equation of few cells runs beside
/// that.
pub(crate) const GROUP_CELLS_OF_ONE_ROW: usize = 32;

// Pairs of terms in bfloat16.

/// Rows that share a right factor from which on it pays to round it and to pack it.
pub(crate) const PAIR_ROWS: usize = 32;

/// Terms of each sum from which on it pays.
pub(crate) const PAIR_TERMS: usize = 32;

// Weights in bfloat16, where there are no instructions for them.

/// Most rows for which it pays, with weights that the second level cache does not hold beside all else. With AVX2 a
/// sequence of one or two rows was 1.03 to 1.4 times as fast so, one of four rows 0.7 to 1.7 times; with smaller weights
/// 0.9 to 1.1 times (Zen 5).
pub(crate) const ROUNDED_ROWS: usize = 2;

// Terms in int8.

/// Terms of each sum from which on it pays. With 32 a GRU was 0.93 to 1.07 times as fast as in float32 where the reset
/// comes before the product, with 40 or 48 it was 1.06 to 1.18 times, and an LSTM of 32 to 128 cells 1.07 to 2.6 times
/// (Zen 5).
pub(crate) const QUAD_TERMS: usize = 40;

/// Rows of a tile of sums from which on it takes tiles of AMX: with fewer rows, products with AVX512-VNNI take about as long
/// as reading their weights. Not measured.
pub(crate) const TILED_QUAD_ROWS: usize = 4;

// Caches.

/// The least and the most that are taken for a second level cache: with others nothing was measured, and some virtual
/// machines tell sizes that no processor has.
pub(crate) const SECOND_LEVEL_BYTES: [usize; 2] = [1 << 20, 2 << 20];

/// The share of the second level cache that the weights of a step may have, where a thread computes all cells of its
/// rows, as a quotient. A forward LSTM of 50x8x256 on two threads gained by it where the cache has 2 MiB (Emerald
/// Rapids). Tiles of columns in place of rows were slower at all shapes of up to 200 cells, on two threads.
pub(crate) const WEIGHTS_SHARE: (usize, usize) = (4, 5);

/// The largest buffer that a thread keeps for tiles. The tiles of every op need less, whatever the shapes.
pub(crate) const KEPT_BYTES: usize = 1 << 20;

// Tiles.

/// Multiply-adds of a tile that are worth a task: some 40,000 cycles. Not measured apart.
pub(crate) const TASK_MULTIPLY_ADDS: usize = 1 << 20;

/// What executors are told of the speed of products: between the 32 multiply-adds in a cycle of AVX-512 and the 16 of
/// AVX2. With NEON, between the 16 of Neoverse V1 and V2, whose vector pipelines are four, and the 8 of N1 and N2, which
/// have two (Arm's software optimization guides of these cores). Not measured apart.
pub(crate) const MULTIPLY_ADDS_PER_CYCLE: usize =
    if cfg!(target_arch = "aarch64") { 12 } else { 24 };

/// The rows whose arithmetic takes as long as reading their weights. With the cost of arithmetic alone, 50x1x512 ran on
/// one thread.
pub(crate) const READING_ROWS: usize = 8;

/// Most sums of a tile of a step whose weights are packed: they stay in the second level cache beside these. Not
/// measured apart.
pub(crate) const STEP_SUMS_FLOATS: usize = 48 << 10;

/// Most sums of a tile of a single step, whose weights are not packed. Narrower tiles, for caches of 512 KiB, were
/// slower at 294x294x757 (Zen 3).
pub(crate) const SINGLE_STEP_SUMS_FLOATS: usize = 144 << 10;

/// The most weights of a step that stay in the second level cache of every thread: with more, tiles are as high as
/// possible. Bands of all rows in place of half of them made no difference with larger weights (Zen 3).
pub(crate) const HELD_WEIGHTS_FLOATS: usize = 256 << 10;

/// The least rows of a tile where the weights are that small. Not measured apart.
pub(crate) const LEAST_ROWS: usize = 16;

/// The same where they leave room for all else. Not measured apart.
pub(crate) const LEAST_ROWS_OF_SMALL_WEIGHTS: usize = 4;

/// The tiles of the batch where [`HELD_WEIGHTS_FLOATS`] are not exceeded. Other bands of 8 to 64 rows made no
/// difference on one thread (Emerald Rapids).
pub(crate) const ROW_TILES: usize = 4;

/// Backward steps of at most [`Rereading::rows`] take as long as large weights are read. The next step begins with the
/// tiles that this one has read last, so these are a part of a cache.
pub(crate) const REREADING: Rereading =
    Rereading { rows: 4, least_weights_floats: 512 << 10, columns: 128 };

/// See [`REREADING`]. With one row of 512 cells and 3 to 4 MiB of weights it gained with a slow third level cache
/// (Emerald Rapids).
pub(crate) struct Rereading {
    /// Most rows.
    pub(crate) rows: usize,
    /// Fewer weights are not large.
    pub(crate) least_weights_floats: usize,
    /// Most columns of a tile.
    pub(crate) columns: usize,
}

/// Columns of tiles of products with the transpose of unpacked weights: so few that the pages of their rows of the
/// weights stay in the TLB from slice to slice. Not measured apart.
pub(crate) const TRANSPOSED_COLUMNS: usize = 128;

/// Columns of tiles of products with packed constants. Not measured apart.
pub(crate) const CONSTANT_COLUMNS: usize = 256;

/// Most columns of tiles of whole products: the wider a tile, the fewer copies of the left factor. Not measured apart.
pub(crate) const PRODUCT_COLUMNS: usize = 512;

/// Tiles of whole products for each thread, so that a thread can take over some of another's. Not measured apart.
pub(crate) const PRODUCT_TILES_PER_THREAD: usize = 4;

/// Most multiply-adds of a task that computes all of some rows of a `GRUBlockCellGrad`. More cells in one parallel
/// section were faster on one thread, and slower on two (Emerald Rapids).
pub(crate) const WHOLE_ROWS_MULTIPLY_ADDS: usize = 3 << 19;

// Sequences.

/// Steps from which on packing the weights of the state pays, also where it is done once and for all, as of
/// constants. Not measured apart.
pub(crate) const PACKED_STEPS: usize = 9;

/// Rows of x in all steps from which on its weights are packed once, and not with each product. Not measured apart.
pub(crate) const PACKED_INPUT_ROWS: usize = 1024;

/// Rows of x whose products are computed at once: enough for packing the weights to cost little, and few enough for the
/// products to stay in cache. 128 and 512 made no difference (Zen 5).
pub(crate) const INPUT_ROWS: usize = 256;

/// The same where the steps add to the products where they are. 48, 96 and 192 made hardly a difference (Zen 5); 200
/// was hardly faster with a cache of 2 MiB (Emerald Rapids).
pub(crate) const BAND_INPUT_ROWS: usize = 128;

/// Most sums of these rows: half of a second level cache. Where they fill all of it, a GRU of 35x20x650 was slower (Zen
/// 5).
pub(crate) const BAND_SUMS_FLOATS: usize = 128 << 10;

/// How long a thread computes steps before it can turn to other work: about half a millisecond.
pub(crate) const TIME_SLICE_CYCLES: u64 = 2 << 20;

/// Most cells of an LSTM whose backward steps keep the gradients of all pre-activations side by side. Products of
/// single gates are slow where gates have few cells: much of their last vectors is empty. With more cells it was faster
/// on one thread, and slower on two (Emerald Rapids).
pub(crate) const SIDE_BY_SIDE_CELLS: usize = 120;

// Elementwise passes.

/// Elements of a tile: some 10 microseconds of memory traffic. Not measured apart.
pub(crate) const PASS_ELEMENTS: usize = 1 << 13;

/// What a dozen streams of four bytes from the second level cache take. Not measured apart.
pub(crate) const PASS_CYCLES_PER_ELEMENT: usize = 3;

/// Most columns of a tile that has sums, of which a task keeps one for each column on its stack. Not measured apart.
pub(crate) const SUM_COLUMNS: usize = 256;

/// Rows that are summed by themselves before they are added to the total: the rounding error grows with this and the
/// number of such groups, not with the whole batch. Not measured apart.
pub(crate) const SUM_ROWS: usize = 64;

/// How far ahead of a store its cache line is prefetched. The hardware prefetches lines that are read in order, but
/// stores retire one after the other and wait for each line that is not in the cache. Not measured apart.
pub(crate) const STORE_AHEAD_BYTES: usize = 2 * LINE;

/// Most elements of short rows that are computed as one. With 238 rows of 7 cells a forward LSTM step is 1.25 times as
/// fast as TensorFlow's so, and 0.81 times without (Zen 5).
pub(crate) const JOINED_ELEMENTS: usize = 128;
