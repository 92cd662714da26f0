//! A loop of one iteration. Its first output may have another width than the next one, which no iteration reads.

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut3, Axis, s};

use super::loops::Numbers;
use super::memory::Pieces;
use crate::Storage;
use crate::block_lstm::forward::forward_scratch;
use crate::ops::{Lists, PartialShape, Sizes};

/// Whether that is known of a loop: it has one round, in which all rows take part.
pub(super) fn is_such(numbers: Option<Numbers>, inputs: &Lists<'_, PartialShape>) -> bool {
    numbers.is_some_and(|numbers| numbers.rounds == 1) && inputs.of("sequence_length").is_empty()
}

/// The shapes of the inputs of such a loop, without those of `h_prev` and of its rows of the weights, if these go together.
/// The weights are a part of `w`, or the whole of `w_h`.
pub(super) fn of_any_width(
    inputs: &Lists<'_, PartialShape>,
    has_w_h: bool,
) -> Option<Vec<PartialShape>> {
    let size = |name: &str, axis: usize| inputs.one(name).as_ref()?.get(axis).copied()?;
    let (name, before) = if has_w_h { ("w_h", 0) } else { ("w", size("x", 2)?) };
    if size(name, 0)? != before.checked_add(size("h_prev", 1)?)? {
        return None;
    }
    let shapes = inputs.iter().map(|(tensor, _, shape)| {
        let mut shape = shape.clone();
        let open = [(name, 0), ("h_prev", 1)].into_iter().find(|one| one.0 == tensor.name);
        if let (Some((_, axis)), Some(shape)) = (open, &mut shape) {
            shape[axis] = None;
        }
        shape
    });
    Some(shapes.collect())
}

/// The additional scratch memory of a loop whose first output has `own` columns and the others `width`: the number of
/// `f32`, and the number of elements `E`.
#[must_use]
pub fn other_width_scratch(
    [batch, input, cell]: [usize; 3],
    [own, width]: [usize; 2],
) -> [usize; 2] {
    if own == width {
        return [0; 2];
    }
    let all = input.saturating_add(own);
    let sizes = Sizes { time: 1, batch, input_size: all, cell_size: cell, optional: [cell; 3] };
    let rows = batch.saturating_add(cell.saturating_mul(4));
    [forward_scratch(&sizes), rows.saturating_mul(all.saturating_add(width))]
}

/// What a step is computed from: x, `h_prev`, and the weights of both.
pub(super) type Factors<'a, E> = (ArrayView3<'a, E>, ArrayView2<'a, E>, [ArrayView2<'a, E>; 2]);

/// The factors of the only step with an output before it of another width than `h`: that becomes a part of x, and zeros take
/// its place. Then this also returns the only step of `h`. All others are left as they are.
pub(super) fn with_width<'m, 'h, E: Storage>(
    (x, h_prev, [w_x, w_h]): Factors<'m, E>,
    h: ArrayViewMut3<'h, E>,
    pieces: &mut Pieces<'m, E>,
) -> (Factors<'m, E>, ArrayViewMut3<'h, E>) {
    let width = h.dim().2;
    if h_prev.ncols() == width {
        return ((x, h_prev, [w_x, w_h]), h);
    }
    let (h, mut rest) = h.split_at(Axis(0), 1);
    rest.fill(E::ZERO);
    let (columns, (batch, own)) = (x.dim().2, h_prev.dim());
    let (all, gates) = (columns + own, w_x.ncols());
    let mut both = pieces.take([1, batch, all]);
    both.slice_mut(s![0, .., ..columns]).assign(&x.index_axis(Axis(0), 0));
    both.slice_mut(s![0, .., columns..]).assign(&h_prev);
    let mut w = pieces.take([1, all, gates]);
    w.slice_mut(s![0, ..columns, ..]).assign(&w_x);
    w.slice_mut(s![0, columns.., ..]).assign(&w_h);
    let [h_prev, w_h] = [[1, batch, width], [1, width, gates]].map(|shape| {
        let mut zeros = pieces.take(shape);
        zeros.fill(E::ZERO);
        whole(zeros).index_axis_move(Axis(0), 0)
    });
    ((whole(both), h_prev, [whole(w).index_axis_move(Axis(0), 0), w_h]), h)
}

fn whole<'m, E>(piece: ArrayViewMut3<'m, E>) -> ArrayView3<'m, E> {
    let dim = piece.dim();
    let elements = piece.into_slice().expect("a tensor without gaps");
    ArrayView3::from_shape(dim, elements).expect("of this size")
}
