//! What is fetched into the second level cache while something else is multiplied: the next group of
//! columns, which comes from further away.
//!
//! Blocks fetch a part each. That matters: with many lines on their way, what the second level cache has
//! waits, too.

use crate::simd::{LINE, Simd};

/// What to fetch into the second level cache meanwhile, with each row that is multiplied.
pub(super) trait Ahead: Copy {
    /// Fetches what belongs to the next row.
    fn fetch<S: Simd>(&mut self, simd: S);
}

/// So many lines with each row, `step` bytes on with the next one.
#[derive(Clone, Copy)]
pub(super) struct Steps<const LINES: usize> {
    pub(super) line: *const u8,
    pub(super) step: usize,
}

impl Steps<1> {
    /// Nothing but what is at hand.
    #[inline(always)]
    pub(super) fn nothing(data: &[f32]) -> Self {
        Steps { line: data.as_ptr().cast(), step: 0 }
    }
}

impl<const LINES: usize> Ahead for Steps<LINES> {
    #[inline(always)]
    fn fetch<S: Simd>(&mut self, simd: S) {
        for line in 0..LINES {
            simd.prefetch_second_level(self.line.wrapping_add(line * LINE));
        }
        self.line = self.line.wrapping_add(self.step);
    }
}

/// Steps that go on at another place after some of them.
#[derive(Clone, Copy)]
pub(super) struct Runs {
    steps: Steps<1>,
    /// How many bytes more where a run ends, which has `each` steps, `left` of them to go.
    jump: usize,
    each: usize,
    left: usize,
}

/// `count` runs of `len` bytes, `pitch` bytes from each other.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub(super) start: *const u8,
    pub(super) len: usize,
    pub(super) pitch: usize,
    pub(super) count: usize,
}

impl Matrix {
    /// The part that falls to block `block` of so many, in each of which `depth` rows are multiplied.
    pub(super) fn part(self, (block, blocks): (usize, usize), depth: usize) -> Runs {
        let each = (blocks * depth / self.count).max(1);
        let step = self.len / each;
        let (run, before) = (block * depth / each, block * depth % each);
        let line = self.start.wrapping_add(run * self.pitch + before * step);
        let jump = self.pitch.wrapping_sub(each * step);
        Runs { steps: Steps { line, step }, jump, each, left: each - before }
    }
}

impl Ahead for Runs {
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
