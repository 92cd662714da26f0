//! Constant weights in int8: packed once for all calls, whatever their rows and tiles.
//!
//! Every column has a scale, and so has every row of the left factor, which is rounded in the call. Sums are int32, and
//! become numbers where a slice ends.

use std::ops::Range;

use ndarray::ArrayView3;

use super::columns::{Strips, runs};
use super::few_rows::widest;
use super::lanes::{Lanes, Quads, lanes};
use super::micro_kernel::{Accumulators, LeftRows, add_block, block_count, groups_of};
use super::prefetch::PackedSteps;
use super::right::Right;
use super::strip::Strip;
use super::tiling::{padded, slices};
use super::units::{QuadWeights, Units, unit_len};
use crate::executor::for_each;
use crate::simd::{LINE, Simd, WithSimd};
use crate::tiles::row;
use crate::tuning::{KC, QUAD_TERMS, UNIT};
use crate::{Context, Storage};

/// The largest term.
const MOST: f32 = 127.0;

/// Smaller numbers count as zeros where no other of their row or column is larger: one over their scale may be infinite.
const TINY: f32 = 1e-30;

/// The scale of numbers with this largest magnitude, and what they are multiplied by to become terms. `not_finite` is
/// NaN, where one of them is not finite, otherwise zero.
#[inline(always)]
fn scale(largest: f32, not_finite: f32) -> [f32; 2] {
    if largest < TINY { [not_finite, 0.0] } else { [largest / MOST + not_finite, MOST / largest] }
}

/// [`scale`] of a row.
#[inline(always)]
pub(super) fn row_scale<S: Simd, E: Storage>(simd: S, row: &[E]) -> [f32; 2] {
    let zero = simd.splat(0.0);
    let (mut largest, mut not_finite) = (zero, zero);
    for from in row.chunks(S::LANES) {
        let terms = E::load(simd, from);
        largest = simd.max(largest, simd.abs(terms));
        not_finite = simd.mul_add(terms, zero, not_finite);
    }
    let mut lanes = 1;
    while lanes < S::LANES {
        let [first, rest] = simd.interleave(largest, largest);
        largest = simd.max(first, rest);
        lanes *= 2;
    }
    let mut one = [0.0];
    simd.store(largest, &mut one);
    scale(one[0], simd.sum(not_finite))
}

/// Notes the scales of rows, one matrix below the other, after the slices of their left factor: see
/// [`LeftRows`].
pub(super) struct ScaleRows<'f, 't, E> {
    pub(super) from: ArrayView3<'f, E>,
    pub(super) to: &'t mut [f32],
    /// From a row to the next.
    pub(super) pitch: usize,
}

impl<E: Storage> WithSimd for ScaleRows<'_, '_, E> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut rows = self.to.chunks_exact_mut(self.pitch);
        for matrix in self.from.outer_iter() {
            for (at, to) in (0..matrix.nrows()).zip(&mut rows) {
                to[KC..KC + 2].copy_from_slice(&row_scale(simd, row(matrix.view(), at)));
            }
        }
    }
}

/// [`Simd::quad_excess`]
struct Excess;

impl WithSimd<fn(i32) -> i32> for Excess {
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> fn(i32) -> i32 {
        S::quad_excess
    }
}

/// `right`, of `depth`, for these strips of equal width: packed once and for all, if it is a constant of the call that
/// is to be packed so. `apart` tells that tiles have a part of each strip.
pub(super) fn pack_quads<'a, E: Storage>(
    context: &Context<'a>,
    right: Right<'_, E>,
    depth: usize,
    strips: Strips<'_>,
    apart: bool,
) -> Option<QuadWeights<'a>> {
    if !context.wants_quads::<E>() || depth < QUAD_TERMS {
        return None;
    }
    let width = strips[0].len();
    // Units of strips without gaps are those of their runs.
    let strips =
        if apart && !width.is_multiple_of(UNIT) { strips.to_vec() } else { runs(strips).collect() };
    let (size, excess) = (unit_len(depth), context.isa.run_quads(Excess));
    let len = size * strips.iter().map(|strip| padded(strip.len()) / UNIT).sum::<usize>();
    let units = context.constants.quads(context.isa, right.source()?, &strips, len, |to| {
        let columns = strips.iter().flat_map(|strip| {
            let end = strip.end;
            strip.clone().step_by(UNIT).map(move |start| start..end.min(start + UNIT))
        });
        // An element is read twice, and takes some cycles.
        let cost = (8 * UNIT * depth) as u64;
        let units = columns.zip(to.chunks_exact_mut(size.max(1))).collect();
        for_each(context.executor, cost, units, |(columns, to)| {
            pack_unit(right, depth, columns, excess, to.as_chunks_mut().0);
        });
    })?;
    context.note_int8();
    Some(QuadWeights { units, depth, pitch: padded(width) / UNIT })
}

/// Packs some columns, at most [`UNIT`].
fn pack_unit<E: Storage>(
    right: Right<'_, E>,
    depth: usize,
    columns: Range<usize>,
    excess: fn(i32) -> i32,
    to: &mut [[f32; UNIT]],
) {
    let of_row = |k: usize| {
        let mut weights = [0.0; UNIT];
        for (to, column) in weights.iter_mut().zip(columns.clone()) {
            *to = match right {
                Right::RowMajor(matrix) => matrix[[k, column]].to_f32(),
                Right::Transposed(matrix) => matrix[[column, k]].to_f32(),
                _ => unreachable!("packed already"),
            };
        }
        weights
    };
    let (mut largest, mut not_finite) = ([0.0f32; UNIT], [0.0; UNIT]);
    for k in 0..depth {
        for (n, weight) in of_row(k).into_iter().enumerate() {
            largest[n] = largest[n].max(weight.abs());
            not_finite[n] += 0.0 * weight;
        }
    }
    let scales: [_; UNIT] = std::array::from_fn(|n| scale(largest[n], not_finite[n]));
    let mut rest = to;
    for slice in slices::<Quads>(depth) {
        let rows = rest.split_off_mut(..lanes::<Quads>(slice.len()) + Quads::AROUND);
        let rows = rows.expect("memory for each slice");
        let [first, rows @ .., last] = rows else { unreachable!("rows around those of lanes") };
        let mut sums = [0; UNIT];
        for (to, k) in rows.iter_mut().zip(slice.clone().step_by(Quads::TERMS)) {
            let mut terms = [[0; Quads::TERMS]; UNIT];
            for (n, k) in (k..slice.end.min(k + Quads::TERMS)).enumerate() {
                for (column, weight) in of_row(k).into_iter().enumerate() {
                    let term = (weight * scales[column][1]).round_ties_even() as i8;
                    terms[column][n] = term.cast_unsigned();
                    sums[column] += excess(i32::from(term));
                }
            }
            *to = terms.map(|terms| f32::from_bits(u32::from_le_bytes(terms)));
        }
        *first = sums.map(|sum| f32::from_bits((-sum).cast_unsigned()));
        *last = scales.map(|[scale, _]| scale);
    }
}

/// `sums += left @ weights`, for a run of strips.
pub(super) struct AddQuads<'w, 's, 'l> {
    pub(super) strip: Strip<'s, LeftRows<'l, Quads>>,
    /// From the first unit of the run on.
    pub(super) weights: QuadWeights<'w>,
    pub(super) slice: Range<usize>,
}

impl WithSimd for AddQuads<'_, '_, '_> {
    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let columns = self.strip.columns.len();
        for columns in groups_of::<S>(columns, widest(S::REGISTERS, self.strip.rows)) {
            match columns.len().div_ceil(S::LANES) {
                8 if const { S::REGISTERS >= 16 } => self.add_group::<S, 8>(simd, columns.start),
                4 if const { S::REGISTERS >= 16 } => self.add_group::<S, 4>(simd, columns.start),
                1 if const { S::LANES >= UNIT } => self.add_group::<S, 1>(simd, columns.start),
                _ => self.add_group::<S, 2>(simd, columns.start),
            }
        }
    }
}

impl AddQuads<'_, '_, '_> {
    /// `V` vectors of columns, from `at` on. Each block prefetches its part of the next group, up to a line with each row.
    #[inline(always)]
    fn add_group<S: Simd, const V: usize>(&mut self, simd: S, at: usize) {
        let weights = self.weights.from(at);
        let right = weights.block::<S, V>(&self.slice, V);
        let (rows, count) = (right.rows(), block_count::<S, V>(self.strip.rows));
        let size = V * S::LANES * size_of::<f32>() * rows;
        let step = (size / (count * rows)).min(LINE);
        for block in 0..count {
            let next = right.next_unit().wrapping_add(block * rows * step);
            simd.enter(QuadBlock {
                left: self.strip.left,
                depth: self.strip.depth,
                place: (block, count, self.strip.rows),
                right: right.with(PackedSteps::new(next, step)),
                sums: self.strip.sums.from(at),
            });
        }
    }
}

/// The product of one block of rows and a group of columns.
struct QuadBlock<'w, 's, 'l, const V: usize> {
    left: LeftRows<'l, Quads>,
    depth: usize,
    /// The block, of how many, of how many rows.
    place: (usize, usize, usize),
    right: Units<'w, PackedSteps, V>,
    sums: Accumulators<'s>,
}

impl<const V: usize> WithSimd for QuadBlock<'_, '_, '_, V> {
    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let QuadBlock { left, depth, place, right, .. } = self;
        add_block::<S, V, false>(simd, left, right, depth, place, &mut self.sums);
    }
}
