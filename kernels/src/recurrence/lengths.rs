//! Which rows of the batch have a step.

use std::iter;
use std::ops::Range;

use ndarray::{ArrayView1, ArrayViewMut2};

use crate::{Context, OutOfMemory, Storage};

/// How many steps each row of the batch has.
#[derive(Clone, Copy)]
pub(crate) enum Lengths<'a> {
    /// All rows have as many.
    Same(usize),
    /// Each row has a number of its own.
    Each(&'a [i64]),
}

/// Neighbouring rows that all have a step, or all do not.
pub(super) struct Span {
    pub(super) rows: Range<usize>,
    pub(super) have_step: bool,
}

impl<'a> Lengths<'a> {
    /// `sequence_length` was checked to have no negative numbers.
    pub(crate) fn new(sequence_length: ArrayView1<'a, i64>) -> Self {
        let lengths = sequence_length.to_slice().expect("a vector without gaps");
        match lengths {
            [] => Lengths::Same(0),
            [first, others @ ..] if others.iter().all(|length| length == first) => {
                Lengths::Same((*first).max(0) as usize)
            }
            _ => Lengths::Each(lengths),
        }
    }

    /// Those of some rows.
    pub(crate) fn rows(self, rows: Range<usize>) -> Self {
        match self {
            Lengths::Same(_) => self,
            Lengths::Each(lengths) => Lengths::new(ArrayView1::from(&lengths[rows])),
        }
    }

    /// The steps of row `b`.
    pub(crate) fn of(self, b: usize) -> usize {
        match self {
            Lengths::Same(steps) => steps,
            Lengths::Each(lengths) => lengths[b].max(0) as usize,
        }
    }

    /// The steps of the longest row.
    pub(crate) fn longest(self) -> usize {
        match self {
            Lengths::Same(steps) => steps,
            Lengths::Each(lengths) => lengths.iter().map(|&n| n.max(0) as usize).max().unwrap_or(0),
        }
    }

    /// Whether row `b` has step `t`.
    fn has_step(self, b: usize, t: usize) -> bool {
        t < self.of(b)
    }

    /// For each of the first steps and each row in it, whether the row has the step, unless all rows have all.
    pub(crate) fn valid(self, steps: usize) -> Option<Vec<bool>> {
        let Lengths::Each(lengths) = self else { return None };
        let rows = |t| (0..lengths.len()).map(move |b| self.has_step(b, t));
        let mut valid = OutOfMemory::vec(steps.saturating_mul(lengths.len()));
        valid.extend((0..steps).flat_map(rows));
        Some(valid)
    }
}

/// The rows of the batch in one step.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) lengths: Lengths<'a>,
    pub(crate) t: usize,
}

impl Rows<'_> {
    /// Those in the next step.
    pub(crate) fn next(self) -> Self {
        Rows { t: self.t + 1, ..self }
    }

    /// Whether row `b` has the step.
    pub(crate) fn has(self, b: usize) -> bool {
        self.lengths.has_step(b, self.t)
    }

    /// Cuts `rows` of the batch where one that has the step is beside one that has not.
    pub(super) fn spans(self, rows: Range<usize>) -> impl Iterator<Item = Span> {
        let Rows { lengths, t } = self;
        let mut rest = rows;
        iter::from_fn(move || {
            let have_step = lengths.has_step(rest.clone().next()?, t);
            let end = match lengths {
                Lengths::Same(_) => None,
                Lengths::Each(_) => rest.clone().find(|&b| lengths.has_step(b, t) != have_step),
            };
            let rows = rest.start..end.unwrap_or(rest.end);
            rest.start = rows.end;
            Some(Span { rows, have_step })
        })
    }

    /// Sets to zero those rows of `matrix` that do not have the step: they are `rows` of the batch.
    pub(super) fn clear_ended<E: Storage>(
        self,
        rows: Range<usize>,
        mut matrix: ArrayViewMut2<'_, E>,
    ) {
        let Lengths::Each(_) = self.lengths else { return };
        for (mut row, b) in matrix.outer_iter_mut().zip(rows) {
            if !self.lengths.has_step(b, self.t) {
                row.fill(E::ZERO);
            }
        }
    }
}

/// A step, and what it runs on.
#[derive(Clone, Copy)]
pub(crate) struct At<'s> {
    pub(crate) context: &'s Context<'s>,
    pub(crate) rows: Rows<'s>,
}

impl<'s> At<'s> {
    /// The only step of an operation that has one.
    pub(crate) fn only_step(context: &'s Context<'s>) -> Self {
        At { context, rows: Rows { lengths: Lengths::Same(1), t: 0 } }
    }
}
