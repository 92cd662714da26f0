//! The memory for intermediate tensors of a call.

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut3, Axis};

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

    /// What is left.
    pub(super) fn rest(self) -> &'m mut [E] {
        self.0.expect("it is given back")
    }

    /// As many elements as a tensor of this shape has.
    pub(super) fn take(&mut self, shape: [usize; 3]) -> ArrayViewMut3<'m, E> {
        let all = self.0.take().expect("it is given back");
        let (taken, rest) = all.split_at_mut(shape.iter().product());
        self.0 = Some(rest);
        ArrayViewMut3::from_shape(shape, taken).expect("of this size")
    }

    /// A matrix of `batch` rows, of which the tensor may have one that stands for all.
    pub(super) fn whole(&mut self, matrix: ArrayView2<'m, E>, batch: usize) -> ArrayView2<'m, E> {
        self.whole_steps(matrix.insert_axis(Axis(0)), batch).index_axis_move(Axis(0), 0)
    }

    /// The same of the matrices of several steps.
    pub(super) fn whole_steps(
        &mut self,
        steps: ArrayView3<'m, E>,
        batch: usize,
    ) -> ArrayView3<'m, E> {
        let (time, rows, columns) = steps.dim();
        if rows == batch {
            return steps;
        }
        let dim = (time, batch, columns);
        let mut all = self.take([time, batch, columns]);
        all.assign(&steps.broadcast(dim).expect("one row stands for all"));
        let elements = all.into_slice().expect("a tensor without gaps");
        ArrayView3::from_shape(dim, elements).expect("of this size")
    }
}

/// How many elements [`Pieces::whole_steps`] takes for a tensor of `time`, `rows` and `columns`.
pub(super) fn whole_len([time, rows, columns]: [usize; 3], batch: usize) -> usize {
    let all = time.saturating_mul(batch).saturating_mul(columns);
    if rows == batch { 0 } else { all }
}
