//! Copies between tensors and the rows that sequence kernels work on: time-major, in `f32`, each row of the batch in
//! the order of its direction, and zero where it has ended.

use std::ops::Range;

use ndarray::{ArrayView3, ArrayViewMut3, Axis, Slice, s};

use crate::Storage;
use crate::recurrence::Lengths;

/// The order of the steps of one direction.
#[derive(Clone, Copy)]
pub(super) struct StepOrder<'a> {
    pub(super) lengths: Lengths<'a>,
    /// Whether each row begins with its last step.
    pub(super) reversed: bool,
}

impl StepOrder<'_> {
    /// Which step of row `b` is number `n` of this direction, if the row has more than `n` steps. This is its own inverse.
    fn step(self, b: usize, n: usize) -> Option<usize> {
        let before_end = self.lengths.of(b).checked_sub(n + 1)?;
        Some(if self.reversed { before_end } else { n })
    }

    /// Sets `to`, `[time, batch, columns]`, to some columns of `from`, `[time, batch, all columns]`.
    pub(super) fn gather<E: Storage>(
        self,
        from: ArrayView3<'_, E>,
        columns: Range<usize>,
        mut to: ArrayViewMut3<'_, f32>,
    ) {
        for (n, mut to) in to.outer_iter_mut().enumerate() {
            for (b, mut to) in to.outer_iter_mut().enumerate() {
                match self.step(b, n) {
                    Some(t) => load(
                        row_of(from, (t, b), columns.clone()),
                        to.into_slice().expect("contiguous rows"),
                    ),
                    None => to.fill(0.0),
                }
            }
        }
    }

    /// The inverse of [`StepOrder::gather`]: sets some columns of `to`.
    pub(super) fn scatter<E: Storage>(
        self,
        from: ArrayView3<'_, f32>,
        mut to: ArrayViewMut3<'_, E>,
        columns: Range<usize>,
    ) {
        for (t, mut to) in to.outer_iter_mut().enumerate() {
            for (b, mut to) in to.outer_iter_mut().enumerate() {
                let mut to = to.slice_axis_mut(Axis(0), Slice::from(columns.clone()));
                match self.step(b, t) {
                    Some(n) => store(
                        row_of(from, (n, b), 0..columns.len()),
                        to.into_slice().expect("contiguous rows"),
                    ),
                    None => to.fill(E::ZERO),
                }
            }
        }
    }

    /// Adds `from` in the order of this direction to `to`, both `[time, batch, columns]`.
    pub(super) fn add(self, from: ArrayView3<'_, f32>, mut to: ArrayViewMut3<'_, f32>) {
        for (t, mut to) in to.outer_iter_mut().enumerate() {
            for (b, mut to) in to.outer_iter_mut().enumerate() {
                if let Some(n) = self.step(b, t) {
                    to += &from.slice(s![n, b, ..]);
                }
            }
        }
    }
}

/// Some columns of a row of the batch in a step.
fn row_of<E>(tensor: ArrayView3<'_, E>, (t, b): (usize, usize), columns: Range<usize>) -> &[E] {
    tensor.slice_move(s![t, b, columns]).to_slice().expect("contiguous rows")
}

/// Converts all of `from`.
pub(super) fn load<E: Storage>(from: &[E], to: &mut [f32]) {
    match E::as_f32(from) {
        Some(from) => to.copy_from_slice(from),
        None => to.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_f32()),
    }
}

/// Rounds all of `from`.
pub(super) fn store<E: Storage>(from: &[f32], to: &mut [E]) {
    if let Some(to) = E::as_f32_mut(to) {
        return to.copy_from_slice(from);
    }
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = E::from_f32(from));
}
