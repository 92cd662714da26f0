//! Prefetching, mostly into the second level cache: while one group of columns is multiplied, the next group, which
//! comes from further away, is requested.
//!
//! Each block of rows requests a part of the next group. With too many requests outstanding, reads that hit the
//! second level cache wait, too.

use crate::simd::{LINE, Simd};
use crate::tuning::UNROLL_ROWS;

/// What to prefetch with each row of a right factor that is multiplied.
pub(super) trait Prefetch: Copy {
    /// Requests what belongs to the next row.
    fn fetch<S: Simd>(&mut self, simd: S);

    /// Requests what belongs to the next [`UNROLL_ROWS`] rows.
    #[inline(always)]
    fn fetch_unrolled<S: Simd>(&mut self, simd: S) {
        for _ in 0..UNROLL_ROWS {
            self.fetch(simd);
        }
    }
}

/// `LINES` lines with each row, into the cache of level `LEVEL`, 1 or 2; those of the next row are `step` bytes on.
#[derive(Clone, Copy)]
pub(super) struct PrefetchCursor<const LINES: usize, const LEVEL: usize = 2> {
    line: *const u8,
    step: usize,
}

impl<const LINES: usize, const LEVEL: usize> PrefetchCursor<LINES, LEVEL> {
    /// From `line` on, `step` bytes with each row.
    #[inline(always)]
    pub(super) fn new(line: *const u8, step: usize) -> Self {
        PrefetchCursor { line, step }
    }
}

impl<const LINES: usize, const LEVEL: usize> Prefetch for PrefetchCursor<LINES, LEVEL> {
    #[inline(always)]
    fn fetch<S: Simd>(&mut self, simd: S) {
        for line in 0..LINES {
            let line = self.line.wrapping_add(line * LINE);
            if const { LEVEL == 1 } {
                simd.prefetch(line);
            } else {
                simd.prefetch_second_level(line);
            }
        }
        self.line = self.line.wrapping_add(self.step);
    }
}

/// Packed data, which has no gaps: up to a line with each row, and one with each [`UNROLL_ROWS`]. Where there are four
/// blocks of rows or more, these are all its lines. Where there are fewer, products were no slower without requests for
/// the others.
#[derive(Clone, Copy)]
pub(super) struct PackedSteps(PrefetchCursor<1>);

impl PackedSteps {
    /// From `line` on, `step` bytes with each row.
    #[inline(always)]
    pub(super) fn new(line: *const u8, step: usize) -> Self {
        PackedSteps(PrefetchCursor::new(line, step))
    }

    /// Requests nothing but a line that is in the cache.
    #[inline(always)]
    pub(super) fn nothing(data: &[f32]) -> Self {
        PackedSteps::new(data.as_ptr().cast(), 0)
    }
}

impl Prefetch for PackedSteps {
    #[inline(always)]
    fn fetch<S: Simd>(&mut self, simd: S) {
        self.0.fetch(simd);
    }

    #[inline(always)]
    fn fetch_unrolled<S: Simd>(&mut self, simd: S) {
        simd.prefetch_second_level(self.0.line);
        self.0.line = self.0.line.wrapping_add(UNROLL_ROWS * self.0.step);
    }
}

/// Prefetches nothing.
#[derive(Clone, Copy)]
pub(super) struct NoPrefetch;

impl Prefetch for NoPrefetch {
    #[inline(always)]
    fn fetch<S: Simd>(&mut self, _: S) {}
}

/// Steps along the rows of a [`Matrix`].
#[derive(Clone, Copy)]
pub(super) struct MatrixSteps {
    steps: PrefetchCursor<1>,
    /// How many bytes further the next row starts than the steps of a row reach.
    jump: usize,
    /// The steps of a row, and how many of them are left in this one.
    each: usize,
    left: usize,
}

/// `count` rows of `len` bytes, at a distance of `pitch` bytes.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub(super) start: *const u8,
    pub(super) len: usize,
    pub(super) pitch: usize,
    pub(super) count: usize,
}

impl Matrix {
    /// The part that block `block` of `blocks` requests while it multiplies `depth` rows.
    pub(super) fn part(self, (block, blocks): (usize, usize), depth: usize) -> MatrixSteps {
        let each = (blocks * depth / self.count).max(1);
        let step = self.len / each;
        let (row, before) = (block * depth / each, block * depth % each);
        let line = self.start.wrapping_add(row * self.pitch + before * step);
        let jump = self.pitch.wrapping_sub(each * step);
        MatrixSteps { steps: PrefetchCursor::new(line, step), jump, each, left: each - before }
    }
}

impl Prefetch for MatrixSteps {
    #[inline(always)]
    fn fetch<S: Simd>(&mut self, simd: S) {
        self.steps.fetch(simd);
        self.left -= 1;
        if self.left == 0 {
            self.steps.line = self.steps.line.wrapping_add(self.jump);
            self.left = self.each;
        }
    }
}
