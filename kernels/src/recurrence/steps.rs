//! Steps of time-major tensors.

use std::ops::Range;

use ndarray::{
    ArrayBase, ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis, Ix2, Ix3, RawData, Slice,
};

use super::lengths::Lengths;
use crate::Storage;
use crate::tuning::INPUT_ROWS;

/// Steps of a sequence that are computed at once, and before them the products of their inputs. Between such blocks
/// threads can turn to other work.
pub(super) fn steps_at_once(time: usize, batch: usize) -> usize {
    (INPUT_ROWS / batch.max(1)).clamp(1, time.max(1))
}

/// Steps `steps` of a time-major tensor, one row for each row of the batch in each.
pub(crate) fn all_rows<S: RawData>(
    mut tensor: ArrayBase<S, Ix3>,
    steps: Range<usize>,
) -> ArrayBase<S, Ix2> {
    tensor.slice_axis_inplace(Axis(0), Slice::from(steps));
    let (steps, batch, columns) = tensor.dim();
    tensor.into_shape_with_order((steps * batch, columns)).expect("a tensor without gaps")
}

/// What step `t` reads and writes of tensors over all steps: the steps before it, and itself. A tensor of one
/// step serves every step, and keeps the latest.
pub(super) fn at_step<'a, E, const N: usize>(
    tensors: &'a mut [ArrayViewMut3<'_, E>; N],
    t: usize,
) -> ([ArrayViewMut3<'a, E>; N], [ArrayViewMut2<'a, E>; N]) {
    let mut parts = tensors.each_mut().map(|tensor| {
        let t = if tensor.len_of(Axis(0)) == 1 { 0 } else { t };
        let (done, rest) = tensor.view_mut().split_at(Axis(0), t);
        (done, Some(rest.index_axis_move(Axis(0), 0)))
    });
    let step = parts.each_mut().map(|(_, step)| step.take().expect("taken once"));
    (parts.map(|(done, _)| done), step)
}

/// Sets tensors over all steps to zero from a step on.
pub(crate) fn clear_from<E: Storage>(tensors: &mut [ArrayViewMut3<'_, E>], step: usize) {
    for tensor in tensors {
        let step = step.min(tensor.len_of(Axis(0)));
        tensor.slice_axis_mut(Axis(0), Slice::from(step..)).fill(E::ZERO);
    }
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

/// Sets `last` to the state after each row's last step: `first` where the row has none.
pub(crate) fn last_states<E: Storage>(
    lengths: Lengths<'_>,
    first: ArrayView2<'_, E>,
    states: ArrayView3<'_, E>,
    mut last: ArrayViewMut2<'_, E>,
) {
    for (b, mut last) in last.outer_iter_mut().enumerate() {
        last.assign(&state_before(lengths.of(b), first, states).row(b));
    }
}
