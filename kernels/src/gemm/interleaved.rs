//! Weights of which all gates of some cells are side by side, for products of few rows. The sums of such a block of
//! cells are in registers, and the equation of a step can follow while they are in the first level cache.

use std::iter;
use std::ops::Range;

use super::micro_kernel::{LeftSlice, Packed, multiply, with_height};
use super::pack::pack_columns;
use super::prefetch::NoPrefetch;
use super::right::Right;
use super::tiling::{padded, slices};
use super::weights::{packed, weights_len};
use crate::constants::Form;
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
    packed: &'a [f32],
    depth: usize,
    /// Cells of a block.
    pub(crate) width: usize,
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

impl<'a, const G: usize> Interleaved<'a, G> {
    /// Packs `right`, of `depth`: as a constant of the call once and for all, otherwise into `memory`, of
    /// [`weights_len`]. `strips` are those of all cells; `at_once` cells, whole blocks, are a task.
    pub(crate) fn pack<E: Storage>(
        context: &Context<'a>,
        (depth, width, at_once): (usize, usize, usize),
        right: Right<'_, E>,
        strips: &[Range<usize>; G],
        memory: &'a mut [f32],
    ) -> Self {
        let (isa, all, size) = (context.isa, strips[0].len(), depth * G * at_once);
        let key = (Form::Blocks { cells: width }, weights_len(depth, G, all));
        let packed = packed(context, right, strips, key, Some(memory), |to| {
            let tasks = parts(0..all, at_once).zip(to.chunks_mut(size.max(1)));
            // An element takes about a cycle on its way from the third level cache, and back.
            for_each(context.executor, size as u64, tasks.collect(), |(cells, to)| {
                isa.run(Pack { right, depth, width, strips, cells, to });
            });
        });
        Interleaved { packed: packed.expect("memory for unpacked weights"), depth, width }
    }

    /// Adds the products of some rows with the weights of a group of cells to `sums`, `[rows, gates, cells]`. Those of
    /// a row are `pitch` apart from those of the next.
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
        for cells in blocks(group.clone(), self.width) {
            let at = self.depth * G * cells.start;
            let block = Block {
                packed: &self.packed[at..at + self.depth * G * padded(cells.len())],
                depth: self.depth,
                rows: &rows[..count],
                vectors: padded(cells.len()) / S::LANES,
                sums: &mut sums[cells.start - group.start..],
                pitch,
                gate: padded(group.len()),
            };
            match G * block.vectors {
                1 => simd.enter(Wide::<1>(block)),
                2 => simd.enter(Wide::<2>(block)),
                4 => simd.enter(Wide::<4>(block)),
                8 => simd.enter(Wide::<8>(block)),
                vectors => unreachable!("no block of {vectors} vectors"),
            }
        }
    }
}

/// The product of some rows and a block of cells.
struct Block<'b> {
    packed: &'b [f32],
    depth: usize,
    rows: &'b [&'b [f32]],
    /// Vectors of each gate.
    vectors: usize,
    /// From a row to the next, and from a gate to the next.
    sums: &'b mut [f32],
    pitch: usize,
    gate: usize,
}

/// A block that is `N` vectors wide.
struct Wide<'b, const N: usize>(Block<'b>);

impl<const N: usize> WithSimd for Wide<'_, N> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        with_height!(self.0.rows.len(), M if is_block(S::REGISTERS, M, N) => self.add::<S, M>(simd));
    }
}

/// Whether the sums of `rows` rows, `vectors` wide, stay in registers.
const fn is_block(registers: usize, rows: usize, vectors: usize) -> bool {
    rows <= few_rows(registers) && rows * vectors <= sums_in_registers(registers)
}

impl<const N: usize> Wide<'_, N> {
    #[inline(always)]
    fn add<S: Simd, const M: usize>(self, simd: S) {
        let Block { packed, depth, rows, vectors, sums, pitch, gate } = self.0;
        let mut rest = packed;
        for slice in slices(depth) {
            let (packed, after) = rest.split_at(slice.len() * N * S::LANES);
            rest = after;
            let mut left = [&[] as &[f32]; M];
            for (to, row) in left.iter_mut().zip(rows) {
                *to = &row[slice.clone()];
            }
            let left = RowsInPlace(left);
            let right = Packed { data: packed, prefetch: NoPrefetch };
            let product = multiply::<S, M, N>(simd, left, 0, right, slice.len());
            for (row, sums) in product.iter().zip(sums.chunks_mut(pitch)) {
                let (mut at, mut end) = (0, vectors * S::LANES);
                for &vector in row {
                    let sums = &mut sums[at..at + S::LANES];
                    simd.store(simd.load(sums) + vector, sums);
                    at += S::LANES;
                    if at == end {
                        (at, end) = (at + gate - vectors * S::LANES, end + gate);
                    }
                }
            }
        }
    }
}

/// A slice of a few rows of a left factor, where they are.
#[derive(Clone, Copy)]
struct RowsInPlace<'a, const M: usize>([&'a [f32]; M]);

impl<const M: usize> LeftSlice for RowsInPlace<'_, M> {
    const REREADS: bool = true;

    #[inline(always)]
    fn block(self, _: usize, _: usize) -> Self {
        self
    }

    #[inline(always)]
    fn coefficient(self, m: usize, k: usize) -> f32 {
        self.0[m][k]
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

impl<E: Storage, const G: usize> WithSimd for Pack<'_, '_, E, G> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Pack { right, depth, width, strips, cells: all, to } = self;
        for cells in blocks(all.clone(), width) {
            let size = padded(cells.len());
            for (gate, strip) in strips.iter().enumerate() {
                let columns = strip.start + cells.start..strip.start + cells.end;
                let to = &mut to[depth * G * (cells.start - all.start) + gate * size..];
                pack_columns(simd, right, 0..depth, columns, to, G * size);
            }
        }
    }
}
