//! Copies between tensors and the rows that sequence kernels work on: time-major, in `f32`, each row of the batch in
//! the order of its direction, and zero where it has ended.

use std::ops::Range;

use ndarray::{ArrayView3, ArrayViewMut3, s};

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
    /// Which step of row `b` is number `n` of this direction, if there are so many. This is its own inverse.
    fn step(self, b: usize, n: usize) -> Option<usize> {
        let before_end = self.lengths.of(b).checked_sub(n + 1)?;
        Some(if self.reversed { before_end } else { n })
    }

    /// Sets `to`, `[time, batch, columns]`, to some columns of `from`, `[time, batch, all columns]`.
    pub(super) fn gather<E: Storage>(
        self,
        from: ArrayView3<'_, E>,
        columns: Range<usize>,
        to: &mut [f32],
    ) {
        let (time, batch, _) = from.dim();
        let mut to =
            ArrayViewMut3::from_shape((time, batch, columns.len()), to).expect("of the same size");
        for n in 0..time {
            for b in 0..batch {
                let to = to.slice_mut(s![n, b, ..]).into_slice().expect("contiguous rows");
                match self.step(b, n) {
                    Some(t) => {
                        let from = from.slice_move(s![t, b, columns.clone()]);
                        load(from.to_slice().expect("contiguous rows"), to);
                    }
                    None => to.fill(0.0),
                }
            }
        }
    }

    /// The inverse of [`StepOrder::gather`]: sets some columns of `to`.
    pub(super) fn scatter<E: Storage>(
        self,
        from: &[f32],
        mut to: ArrayViewMut3<'_, E>,
        columns: Range<usize>,
    ) {
        let (time, batch, _) = to.dim();
        let from = ArrayView3::from_shape((time, batch, columns.len()), from);
        let from = from.expect("of the same size");
        for t in 0..time {
            for b in 0..batch {
                let to = to.slice_mut(s![t, b, columns.clone()]);
                let to = to.into_slice().expect("contiguous rows");
                match self.step(b, t) {
                    Some(n) => {
                        let from = from.slice_move(s![n, b, ..]);
                        store(from.to_slice().expect("contiguous rows"), to);
                    }
                    None => to.fill(E::ZERO),
                }
            }
        }
    }

    /// Adds `from` in the order of this direction to `to`, both `[time, batch, columns]`.
    pub(super) fn add(self, from: ArrayView3<'_, f32>, to: &mut [f32]) {
        let mut to = ArrayViewMut3::from_shape(from.raw_dim(), to).expect("of the same size");
        let (time, batch, _) = from.dim();
        for t in 0..time {
            for b in 0..batch {
                let Some(n) = self.step(b, t) else { continue };
                let mut to = to.slice_mut(s![t, b, ..]);
                to += &from.slice(s![n, b, ..]);
            }
        }
    }
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
