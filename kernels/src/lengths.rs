//! Which rows of the batch have a step: each row has a length of its own.

use std::iter;
use std::ops::Range;

use ndarray::{ArrayView1, ArrayViewMut2};

use crate::{OutOfMemory, Storage};

/// How many steps each row of the batch has.
#[derive(Clone, Copy)]
pub(crate) struct Lengths<'a>(&'a [i64]);

/// Neighbouring rows that all have a step, or all do not.
pub(crate) struct Span {
    pub(crate) rows: Range<usize>,
    pub(crate) have_step: bool,
}

impl<'a> Lengths<'a> {
    /// `sequence_length` was checked to have no negative numbers.
    pub(crate) fn new(sequence_length: ArrayView1<'a, i64>) -> Self {
        Lengths(sequence_length.to_slice().expect("a vector without gaps"))
    }

    /// The steps of row `b`.
    pub(crate) fn of(self, b: usize) -> usize {
        self.0[b].max(0) as usize
    }

    /// The steps of the longest row.
    pub(crate) fn longest(self) -> usize {
        (0..self.0.len()).map(|b| self.of(b)).max().unwrap_or(0)
    }

    /// Whether row `b` has step `t`.
    fn has_step(self, b: usize, t: usize) -> bool {
        t < self.of(b)
    }

    /// For each of the first steps and each row in it, whether the row has the step.
    pub(crate) fn valid(self, steps: usize) -> Vec<bool> {
        let rows = |t| (0..self.0.len()).map(move |b| self.has_step(b, t));
        let mut valid = OutOfMemory::vec(steps.saturating_mul(self.0.len()));
        valid.extend((0..steps).flat_map(rows));
        valid
    }

    /// Cuts `rows` of the batch where one that has step `t` is beside one that has not.
    pub(crate) fn spans(self, rows: Range<usize>, t: usize) -> impl Iterator<Item = Span> {
        let mut rest = rows;
        iter::from_fn(move || {
            let have_step = self.has_step(rest.clone().next()?, t);
            let end = rest.clone().find(|&b| self.has_step(b, t) != have_step);
            let rows = rest.start..end.unwrap_or(rest.end);
            rest.start = rows.end;
            Some(Span { rows, have_step })
        })
    }

    /// Sets to zero those rows of `matrix` that do not have step `t`: they are `rows` of the batch.
    pub(crate) fn clear_ended<E: Storage>(
        self,
        rows: Range<usize>,
        t: usize,
        mut matrix: ArrayViewMut2<'_, E>,
    ) {
        for (mut row, b) in matrix.outer_iter_mut().zip(rows) {
            if !self.has_step(b, t) {
                row.fill(E::ZERO);
            }
        }
    }
}
