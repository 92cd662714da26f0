//! The memory for intermediate tensors of a call.

use ndarray::{ArrayView2, ArrayViewMut2, ArrayViewMut3, Axis};

use crate::{Error, Storage};

/// Checks the lengths of the scratch memory, in numbers (`f32`) and in elements (`E`).
pub(super) fn check(op: &'static str, needed: [usize; 2], got: [usize; 2]) -> Result<(), Error> {
    let mut both = needed.into_iter().zip(got);
    match both.find(|(needed, got)| got < needed) {
        Some((needed, got)) => Err(Error::Scratch { op, needed, got }),
        None => Ok(()),
    }
}

/// Memory for tensors of a call, which is given out piece by piece.
pub(super) struct Pieces<'m, E>(Option<&'m mut [E]>);

impl<'m, E: Storage> Pieces<'m, E> {
    pub(super) fn new(memory: &'m mut [E]) -> Self {
        Pieces(Some(memory))
    }

    /// As many elements as a tensor of this shape has.
    pub(super) fn take(&mut self, shape: [usize; 3]) -> ArrayViewMut3<'m, E> {
        let all = self.0.take().expect("it is given back");
        let (taken, rest) = all.split_at_mut(shape.iter().product());
        self.0 = Some(rest);
        ArrayViewMut3::from_shape(shape, taken).expect("of this size")
    }

    /// A state of `batch` rows, of which the tensor may have one that stands for all.
    pub(super) fn whole(&mut self, state: ArrayView2<'m, E>, batch: usize) -> ArrayView2<'m, E> {
        let (rows, columns) = state.dim();
        if rows == batch {
            return state;
        }
        let mut all = self.take([1, batch, columns]).index_axis_move(Axis(0), 0);
        all.assign(&state.broadcast((batch, columns)).expect("one row stands for all"));
        into_view(all)
    }
}

/// What was written.
fn into_view<T>(matrix: ArrayViewMut2<'_, T>) -> ArrayView2<'_, T> {
    let dim = matrix.dim();
    let elements = matrix.into_slice().expect("a matrix without gaps");
    ArrayView2::from_shape(dim, elements).expect("of this size")
}
