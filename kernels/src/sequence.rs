//! What the sequences of both cells share: steps of time-major tensors, and sums over rows of tiles.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut1, ArrayViewMut2, ArrayViewMut3, Axis, Slice};

use crate::element::Storage;

/// Rows of a sequence's input whose products are computed at once: enough for packing the weights to
/// cost little, and few enough for the products to stay in cache.
const ROWS_AT_ONCE: usize = 256;

/// Steps of a sequence whose inputs' products are computed at once.
pub(crate) fn steps_at_once(time: usize, batch: usize) -> usize {
    (ROWS_AT_ONCE / batch.max(1)).clamp(1, time.max(1))
}

/// Steps `steps` of a time-major tensor, one row for each row of the batch in each.
pub(crate) fn all_rows<T>(mut tensor: ArrayView3<'_, T>, steps: Range<usize>) -> ArrayView2<'_, T> {
    tensor.slice_axis_inplace(Axis(0), Slice::from(steps));
    let (steps, batch, columns) = tensor.dim();
    tensor.into_shape_with_order((steps * batch, columns)).expect("a tensor without gaps")
}

/// [`all_rows`] of a tensor to be written.
pub(crate) fn all_rows_mut<T>(
    mut tensor: ArrayViewMut3<'_, T>,
    steps: Range<usize>,
) -> ArrayViewMut2<'_, T> {
    tensor.slice_axis_inplace(Axis(0), Slice::from(steps));
    let (steps, batch, columns) = tensor.dim();
    tensor.into_shape_with_order((steps * batch, columns)).expect("a tensor without gaps")
}

/// Sets `vector` to the sum of `parts`, vectors of its length one after the other.
pub(crate) fn add_parts<E: Storage>(vector: ArrayViewMut1<'_, E>, parts: &[f32]) {
    let length = vector.len();
    for (at, to) in vector.into_iter().enumerate() {
        *to = E::from_f32(parts.chunks_exact(length).map(|part| part[at]).sum());
    }
}

/// What step `t` reads and writes of tensors over all steps: the steps before it, and itself.
pub(crate) fn at_step<'a, E, const N: usize>(
    tensors: &'a mut [ArrayViewMut3<'_, E>; N],
    t: usize,
) -> ([ArrayViewMut3<'a, E>; N], [ArrayViewMut2<'a, E>; N]) {
    let mut parts = tensors.each_mut().map(|tensor| {
        let (done, rest) = tensor.view_mut().split_at(Axis(0), t);
        (done, Some(rest.index_axis_move(Axis(0), 0)))
    });
    let step = parts.each_mut().map(|(_, step)| step.take().expect("taken once"));
    (parts.map(|(done, _)| done), step)
}

/// The state that enters step `t` of a sequence, where `first` enters the first step, and `states`
/// are those that the steps leave.
pub(crate) fn state_before<'a, E>(
    t: usize,
    first: ArrayView2<'a, E>,
    states: ArrayView3<'a, E>,
) -> ArrayView2<'a, E> {
    t.checked_sub(1).map_or(first, |before| states.index_axis_move(Axis(0), before))
}

/// Length of the memory for `sums` sums over the rows of a matrix that is cut every `tile_rows`: each
/// row of tiles keeps its own.
pub(crate) fn sums_len(sums: usize, (rows, columns): (usize, usize), tile_rows: usize) -> usize {
    rows.div_ceil(tile_rows).saturating_mul(sums).saturating_mul(columns)
}
