//! Weights of which all gates of some cells are side by side, for products of few rows. The sums of such a block of
//! cells are in registers, and the equation of a step can follow while they are in the first level cache.

use std::iter;
use std::marker::PhantomData;
use std::ops::Range;

use super::lanes::{Floats, Lanes, Pairs, Quads, Rounded, lanes, packed_depth};
use super::micro_kernel::{LeftSlice, Packed, multiply, with_height};
use super::pack::pack_columns;
use super::prefetch::NoPrefetch;
use super::quads::{pack_quads, row_scale};
use super::right::Right;
use super::tiling::{lane_slices, padded, slices};
use super::units::QuadWeights;
use super::weights::{packed, weights_len};
use crate::constants::{Form, Packing};
use crate::executor::for_each;
use crate::simd::{LINE, Simd, WithSimd};
use crate::tiles::parts;
use crate::tuning::{GROUP_CELLS, GROUPED_ROWS, GROUPED_ROWS_16_REGISTERS, UNIT};
use crate::{Context, Isa, Storage};

/// Most vectors of a row's sums in a block.
const MOST_VECTORS: usize = 8;

/// Most sums of a group: four gates of a few rows.
const MOST_SUMS: usize = GROUPED_ROWS * 4 * GROUP_CELLS;

/// A right factor, packed block after block of cells, and in each `[k][gate][cell]`.
#[derive(Clone, Copy)]
pub(crate) struct Interleaved<'a, const G: usize> {
    packed: BlocksOf<'a>,
    row_lanes: RowLanes,
    /// Cells of a block.
    pub(crate) width: usize,
}

/// The weights of all blocks.
#[derive(Clone, Copy)]
enum BlocksOf<'a> {
    Lanes(&'a [f32], Packing),
    Quads(QuadWeights<'a>),
}

/// How many cells a block has if all sums of `gates` gates of `rows` rows are to stay in registers; none if they would
/// not.
pub(crate) fn block_width(isa: Isa, rows: usize, gates: usize) -> Option<usize> {
    let (rows, registers) = (rows.max(1), isa.registers());
    if rows > few_rows(registers) {
        return None;
    }
    let vectors = (sums_in_registers(registers) / rows).min(MOST_VECTORS);
    let widths = [4, 2, 1].map(|units| units * UNIT);
    widths.into_iter().find(|width| gates * width <= vectors * isa.lanes())
}

/// Most rows for which it pays.
const fn few_rows(registers: usize) -> usize {
    if registers >= 32 { GROUPED_ROWS } else { GROUPED_ROWS_16_REGISTERS }
}

/// How many vectors of sums stay in registers, beside those that are multiplied.
const fn sums_in_registers(registers: usize) -> usize {
    match registers {
        32.. => 24,
        16.. => 12,
        _ => 0,
    }
}

/// Blocks of `width` cells, and at the end those of a [`UNIT`].
fn blocks(cells: Range<usize>, width: usize) -> impl Iterator<Item = Range<usize>> {
    let end = cells.start + padded(cells.len());
    let mut start = cells.start;
    iter::from_fn(move || {
        let size = if start + width <= end { width } else { UNIT };
        let block = start..cells.end.min(start + size);
        start += size;
        (!block.is_empty()).then_some(block)
    })
}

/// Groups of `width` cells, a multiple of the widths of blocks: the equation of a step follows the products of each.
/// Their order is reversed in every second step: what the last step has read last is still in the nearest cache.
pub(crate) fn groups(
    cells: Range<usize>,
    width: usize,
    reversed: bool,
) -> impl Iterator<Item = Range<usize>> {
    let count = cells.len().div_ceil(width);
    (0..count).map(move |n| {
        let start = cells.start + if reversed { count - 1 - n } else { n } * width;
        start..cells.end.min(start + width)
    })
}

/// The sums of each gate of a row and a group of `cells` cells.
#[inline(always)]
pub(crate) fn gates<const G: usize>(sums: &mut [f32], cells: usize) -> [&mut [f32]; G] {
    let mut gates = std::array::from_fn(|_| Default::default());
    for (to, sums) in gates.iter_mut().zip(sums.chunks_exact_mut(padded(cells))) {
        *to = &mut sums[..cells];
    }
    gates
}

/// Memory for the sums of a group, `[rows, gates, cells]`.
#[repr(align(64))]
pub(crate) struct GroupSums(pub(crate) [f32; MOST_SUMS]);

impl GroupSums {
    #[inline(always)]
    pub(crate) fn zeros() -> Self {
        GroupSums([0.0; MOST_SUMS])
    }
}

const _: () = assert!(align_of::<GroupSums>() == LINE);

/// How rows are multiplied by [`Interleaved`] factors.
#[derive(Clone, Copy)]
pub(crate) struct RowLanes {
    kind: Kind,
    /// Terms of a row.
    depth: usize,
}

/// What their lanes hold: terms, or what these are on an instruction set.
#[derive(Clone, Copy)]
enum Kind {
    Floats,
    Pairs(Isa),
    /// After the scale of the row, in a cache line of its own.
    Quads(Isa),
}

impl RowLanes {
    /// Elements of memory for a row.
    pub(crate) fn memory(self) -> usize {
        match self.kind {
            Kind::Floats => 0,
            Kind::Pairs(_) => padded(lanes::<Pairs>(self.depth)),
            Kind::Quads(_) => UNIT + padded(lanes::<Quads>(self.depth)),
        }
    }

    /// The lanes of a row, for which there may be memory needed.
    #[inline(always)]
    pub(crate) fn of<'m>(self, row: &'m [f32], memory: &'m mut [f32]) -> &'m [f32] {
        match self.kind {
            Kind::Floats => row,
            Kind::Pairs(isa) => {
                isa.run_pairs(CopyRow { row, memory, lanes: PhantomData::<Pairs> });
                &memory[..lanes::<Pairs>(self.depth)]
            }
            Kind::Quads(isa) => {
                isa.run_quads(CopyRow { row, memory, lanes: PhantomData::<Quads> });
                &memory[..UNIT + lanes::<Quads>(self.depth)]
            }
        }
    }
}

/// Copies a row with such lanes.
struct CopyRow<'r, 'm, L> {
    row: &'r [f32],
    memory: &'m mut [f32],
    lanes: PhantomData<L>,
}

impl<L: Lanes> WithSimd for CopyRow<'_, '_, L> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (mut to, mut factor) = (self.memory, 1.0);
        if const { L::AROUND > 0 } {
            let (first, rest) = to.split_at_mut(UNIT);
            (first[0], factor) = row_scale(simd, self.row).into();
            to = rest;
        }
        let terms = self.row.chunks(L::TERMS * S::LANES);
        for (terms, to) in terms.zip(to.chunks_exact_mut(S::LANES)) {
            simd.store(L::along(simd, terms, factor), to);
        }
    }
}

impl<'a, const G: usize> Interleaved<'a, G> {
    /// How rows are multiplied by it.
    pub(crate) fn row_lanes(&self) -> RowLanes {
        self.row_lanes
    }

    /// Packs `right`, of `depth`: as a constant of the call once and for all, otherwise into `memory`, of
    /// [`weights_len`], for products of `rows` rows. `strips` are those of all cells; `at_once` cells, whole blocks, are a
    /// task.
    pub(crate) fn pack<E: Storage>(
        context: &Context<'a>,
        [rows, depth, width, at_once]: [usize; 4],
        right: Right<'_, E>,
        strips: &[Range<usize>; G],
        memory: &'a mut [f32],
    ) -> Self {
        let (isa, all) = (context.isa, strips[0].len());
        if let Some(weights) = pack_quads(context, right, depth, strips, true) {
            let row_lanes = RowLanes { kind: Kind::Quads(isa), depth };
            return Interleaved { packed: BlocksOf::Quads(weights), row_lanes, width };
        }
        let packing = Packing::new::<E>(context, rows, weights_len(depth, G, all));
        let lanes = packing.rows(depth);
        let size = lanes * G * at_once;
        let key = (Form::Blocks { cells: width, packing }, weights_len(lanes, G, all));
        let packed = packed(context, right, strips, key, Some(memory), |to| {
            let tasks = parts(0..all, at_once).zip(to.chunks_mut(size.max(1)));
            // An element takes about a cycle on its way from the third level cache, and back.
            for_each(context.executor, size as u64, tasks.collect(), |(cells, to)| {
                let pack = Pack { right, depth, width, strips, cells, to };
                if const { !E::IS_16_BIT } && packing != Packing::Floats {
                    isa.run_pairs(PackLanes::<_, Pairs, G>(pack, PhantomData));
                } else {
                    isa.run(PackLanes::<_, Floats, G>(pack, PhantomData));
                }
            });
        });
        let packed = packed.expect("memory for unpacked weights");
        let kind = if packing == Packing::Pairs { Kind::Pairs(isa) } else { Kind::Floats };
        Interleaved {
            packed: BlocksOf::Lanes(packed, packing),
            row_lanes: RowLanes { kind, depth },
            width,
        }
    }

    /// Adds the products of the lanes of some rows with the weights of a group of cells to `sums`, `[rows, gates, cells]`.
    /// Those of a row are `pitch` apart from those of the next.
    #[inline(always)]
    pub(crate) fn add<'l, S: Simd>(
        &self,
        simd: S,
        group: &Range<usize>,
        left: impl Iterator<Item = &'l [f32]>,
        (sums, pitch): (&mut [f32], usize),
    ) {
        let mut rows = [&[] as &[f32]; GROUPED_ROWS];
        let mut count = 0;
        for (to, row) in rows.iter_mut().zip(left) {
            *to = row;
            count += 1;
        }
        let RowLanes { kind, depth } = self.row_lanes;
        for cells in blocks(group.clone(), self.width) {
            let vectors = padded(cells.len()) / S::LANES;
            let sums = Sums {
                sums: &mut sums[cells.start - group.start..],
                pitch,
                vectors,
                gate: padded(group.len()),
            };
            let rows = &rows[..count];
            match (self.packed, kind) {
                (BlocksOf::Quads(weights), Kind::Quads(isa)) => {
                    let weights = weights.from(cells.start);
                    match G * vectors {
                        1 => isa.run_quads(WideQuads::<1> { weights, rows, sums }),
                        2 => isa.run_quads(WideQuads::<2> { weights, rows, sums }),
                        4 => isa.run_quads(WideQuads::<4> { weights, rows, sums }),
                        8 => isa.run_quads(WideQuads::<8> { weights, rows, sums }),
                        vectors => unreachable!("no block of {vectors} vectors"),
                    }
                }
                (BlocksOf::Lanes(packed, packing), _) => {
                    let size = packing.rows(depth) * G;
                    let at = size * cells.start;
                    let packed = &packed[at..at + size * padded(cells.len())];
                    let depth = if packing == Packing::Pairs { packing.rows(depth) } else { depth };
                    let block = Block { packed, depth, rows, sums };
                    let vectors = G * vectors;
                    match kind {
                        Kind::Pairs(isa) => isa.run_pairs(block.wide::<Pairs>(vectors)),
                        _ if packing == Packing::Rounded => {
                            block.wide::<Rounded>(vectors).run(simd);
                        }
                        _ => block.wide::<Floats>(vectors).run(simd),
                    }
                }
                (BlocksOf::Quads(_), _) => unreachable!("rows for other weights"),
            }
        }
    }
}

/// The product of some rows and a block of cells.
struct Block<'b> {
    packed: &'b [f32],
    /// Lanes.
    depth: usize,
    rows: &'b [&'b [f32]],
    sums: Sums<'b>,
}

/// Where the sums of a block are.
struct Sums<'b> {
    /// From a row to the next, and from a gate to the next.
    sums: &'b mut [f32],
    pitch: usize,
    gate: usize,
    /// Vectors of each gate.
    vectors: usize,
}

impl Sums<'_> {
    /// Adds a product.
    #[inline(always)]
    fn add<S: Simd, const M: usize, const N: usize>(&mut self, simd: S, product: [[S::F32; N]; M]) {
        let size = self.vectors * S::LANES;
        for (row, sums) in product.iter().zip(self.sums.chunks_mut(self.pitch)) {
            let (mut at, mut end) = (0, size);
            for &vector in row {
                let sums = &mut sums[at..at + S::LANES];
                simd.store(simd.load(sums) + vector, sums);
                at += S::LANES;
                if at == end {
                    (at, end) = (at + self.gate - size, end + self.gate);
                }
            }
        }
    }
}

impl<'b> Block<'b> {
    /// The same, with such lanes, which is so many vectors wide.
    fn wide<L: Lanes>(self, vectors: usize) -> AsWide<'b, L> {
        AsWide { block: self, vectors, lanes: PhantomData }
    }
}

/// A block, and how wide it is.
struct AsWide<'b, L> {
    block: Block<'b>,
    vectors: usize,
    lanes: PhantomData<L>,
}

impl<L: Lanes> WithSimd for AsWide<'_, L> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let AsWide { block, vectors, lanes } = self;
        match vectors {
            1 => simd.enter(Wide::<L, 1>(block, lanes)),
            2 => simd.enter(Wide::<L, 2>(block, lanes)),
            4 => simd.enter(Wide::<L, 4>(block, lanes)),
            8 => simd.enter(Wide::<L, 8>(block, lanes)),
            vectors => unreachable!("no block of {vectors} vectors"),
        }
    }
}

/// A block that is `N` vectors wide.
struct Wide<'b, L, const N: usize>(Block<'b>, PhantomData<L>);

impl<L: Lanes, const N: usize> WithSimd for Wide<'_, L, N> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        with_height!(self.0.rows.len(), M if is_block(S::REGISTERS, M, N) => self.add::<S, M>(simd));
    }
}

/// The same of weights in int8.
struct WideQuads<'b, const N: usize> {
    weights: QuadWeights<'b>,
    rows: &'b [&'b [f32]],
    sums: Sums<'b>,
}

impl<const N: usize> WithSimd for WideQuads<'_, N> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        with_height!(self.rows.len(), M if is_block(S::REGISTERS, M, N) => self.add::<S, M>(simd));
    }
}

/// Whether the sums of `rows` rows, `vectors` wide, stay in registers.
const fn is_block(registers: usize, rows: usize, vectors: usize) -> bool {
    rows <= few_rows(registers) && rows * vectors <= sums_in_registers(registers)
}

impl<L: Lanes, const N: usize> Wide<'_, L, N> {
    #[inline(always)]
    fn add<S: Simd, const M: usize>(self, simd: S) {
        let Block { packed, depth, rows, mut sums } = self.0;
        let mut rest = packed;
        for slice in lane_slices::<L>(depth) {
            let len = packed_depth::<L>(slice.len()) * N * S::LANES;
            let (packed, after) = rest.split_at(len);
            rest = after;
            let left = RowsInPlace::<L, M>::new(rows, slice.clone(), [1.0; M]);
            let right = Packed { data: packed, prefetch: NoPrefetch };
            sums.add(simd, multiply::<S, M, N>(simd, left, 0, right, slice.len()));
        }
    }
}

impl<const N: usize> WideQuads<'_, N> {
    #[inline(always)]
    fn add<S: Simd, const M: usize>(self, simd: S) {
        let WideQuads { weights, rows, mut sums } = self;
        let scales = std::array::from_fn(|m| rows[m][0]);
        for slice in slices::<Quads>(weights.depth) {
            let right = weights.block::<S, N>(&slice, sums.vectors);
            let first = UNIT + lanes::<Quads>(slice.start);
            let depth = lanes::<Quads>(slice.len());
            let left = RowsInPlace::<Quads, M>::new(rows, first..first + depth, scales);
            sums.add(simd, multiply::<S, M, N>(simd, left, 0, right, depth));
        }
    }
}

/// A slice of a few rows of a left factor, where they are, and their scales.
#[derive(Clone, Copy)]
struct RowsInPlace<'a, L, const M: usize> {
    rows: [&'a [f32]; M],
    scales: [f32; M],
    lanes: PhantomData<L>,
}

impl<'a, L, const M: usize> RowsInPlace<'a, L, M> {
    #[inline(always)]
    fn new(from: &[&'a [f32]], slice: Range<usize>, scales: [f32; M]) -> Self {
        let mut rows = [&[] as &[f32]; M];
        for (to, row) in rows.iter_mut().zip(from) {
            *to = &row[slice.clone()];
        }
        RowsInPlace { rows, scales, lanes: PhantomData }
    }
}

impl<L: Lanes, const M: usize> LeftSlice for RowsInPlace<'_, L, M> {
    type Lanes = L;

    const REREADS: bool = true;

    #[inline(always)]
    fn block(self, _: usize, _: usize) -> Self {
        self
    }

    #[inline(always)]
    fn coefficient(self, m: usize, k: usize) -> f32 {
        self.rows[m][k]
    }

    #[inline(always)]
    fn scale(self, m: usize) -> f32 {
        self.scales[m]
    }
}

/// Packs some cells, whole blocks, of strips of all cells.
struct Pack<'r, 't, E, const G: usize> {
    right: Right<'r, E>,
    depth: usize,
    width: usize,
    strips: &'t [Range<usize>; G],
    cells: Range<usize>,
    to: &'t mut [f32],
}

/// The same with such lanes.
struct PackLanes<'r, 't, E, L, const G: usize>(Pack<'r, 't, E, G>, PhantomData<L>);

impl<E: Storage, L: Lanes, const G: usize> WithSimd for PackLanes<'_, '_, E, L, G> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Pack { right, depth, width, strips, cells: all, to } = self.0;
        for cells in blocks(all.clone(), width) {
            let size = padded(cells.len());
            for (gate, strip) in strips.iter().enumerate() {
                let columns = strip.start + cells.start..strip.start + cells.end;
                let to = &mut to[lanes::<L>(depth) * G * (cells.start - all.start) + gate * size..];
                pack_columns::<S, E, L>(simd, right, 0..depth, columns, to, G * size);
            }
        }
    }
}
