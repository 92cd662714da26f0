//! Products of few rows with a row-major right factor: a single block of rows reads each of its elements once,
//! so packing it would not pay.

use ndarray::ArrayView2;

use super::micro_kernel::{LeftRows, Unpacked, add, block_rows, multiply, with_height};
use super::strip::Strip;
use crate::Isa;
use crate::simd::{Simd, WithSimd};

/// `sums += left @ right` from unpacked rows, for at most [`few_rows`].
pub(super) struct AddFewRows<'r, 's, 'l> {
    pub(super) strip: Strip<'s, LeftRows<'l>>,
    /// A slice of the right factor.
    pub(super) right: ArrayView2<'r, f32>,
}

impl WithSimd for AddFewRows<'_, '_, '_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let AddFewRows { mut strip, right } = self;
        let data = right.to_slice().expect("a right factor without gaps");
        let pitch = right.ncols();
        match widest(S::REGISTERS, strip.rows) {
            8 => strip.add_wide::<S, 8, false>(simd, data, pitch),
            // The hardware prefetcher keeps up with up to 3 rows.
            4 if const { block_rows(S::REGISTERS, 4) <= 3 } => {
                strip.add_wide::<S, 4, false>(simd, data, pitch);
            }
            4 => strip.add_wide::<S, 4, true>(simd, data, pitch),
            _ => strip.add_wide::<S, 2, true>(simd, data, pitch),
        }
    }
}

/// How many vectors wide a block of `rows` rows is.
pub(super) const fn widest(registers: usize, rows: usize) -> usize {
    match () {
        () if registers < 16 => 2,
        () if rows <= block_rows(registers, 8) => 8,
        () if rows <= block_rows(registers, 4) => 4,
        () => 2,
    }
}

/// Whether blocks of `rows` rows are `vectors` wide.
const fn is_widest(registers: usize, rows: usize, vectors: usize) -> bool {
    rows <= block_rows(registers, 2) && widest(registers, rows) == vectors
}

impl Strip<'_, LeftRows<'_>> {
    /// Adds the product of a number of rows whose blocks are `W` vectors wide: `W` vectors of columns at a time,
    /// then four of what is left if those are fewer, and then single ones.
    #[inline(always)]
    fn add_wide<S: Simd, const W: usize, const PREFETCH: bool>(
        &mut self,
        simd: S,
        data: &[f32],
        pitch: usize,
    ) {
        let mut rest = self.columns.start;
        rest = self.add_groups::<S, W, W, PREFETCH>(simd, data, pitch, rest);
        if const { W > 4 } {
            rest = self.add_groups::<S, W, 4, PREFETCH>(simd, data, pitch, rest);
        }
        for at in (rest..self.columns.end).step_by(S::LANES) {
            let width = S::LANES.min(self.columns.end - at);
            self.add_group::<S, W, 1, PREFETCH>(simd, Unpacked { data, pitch, at, width });
        }
    }

    /// Adds the product of as many whole groups of `V` vectors of columns as there are from `start` on; returns
    /// where they end.
    #[inline(always)]
    fn add_groups<S: Simd, const W: usize, const V: usize, const PREFETCH: bool>(
        &mut self,
        simd: S,
        data: &[f32],
        pitch: usize,
        start: usize,
    ) -> usize {
        let width = V * S::LANES;
        let end = self.columns.end - (self.columns.end - start) % width;
        for at in (start..end).step_by(width) {
            self.add_group::<S, W, V, PREFETCH>(simd, Unpacked { data, pitch, at, width });
        }
        end
    }

    #[inline(always)]
    fn add_group<S: Simd, const W: usize, const V: usize, const PREFETCH: bool>(
        &mut self,
        simd: S,
        right: Unpacked<'_, f32, PREFETCH>,
    ) {
        let &mut Strip { left, depth, rows, .. } = self;
        let sums = self.sums.from(right.at - self.columns.start);
        with_height!(rows, M if is_widest(S::REGISTERS, M, W) => {
            add(simd, multiply::<S, M, V>(simd, left, 0, right, depth), sums.data, sums.pitch);
        });
    }
}

/// How many vectors wide the groups of packed columns are that blocks of `rows` rows are multiplied by.
pub(super) fn packed_vectors(isa: Isa, rows: usize) -> usize {
    widest(isa.registers(), rows)
}

/// The number of rows up to which packing the right factor does not pay.
pub(super) fn few_rows(isa: Isa) -> usize {
    block_rows(isa.registers(), 2)
}
