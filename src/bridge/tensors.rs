//! TensorFlow's tensors as array views.
//!
//! `plan` has checked the shapes, so a failure here is a defect of this library: it panics, and the
//! call ends with an Internal error.

use std::slice;

use bytemuck::Pod;
use ndarray::{ArrayView, ArrayViewMut, Dimension};

use super::ffi::{Input, Output};
use blockcell_kernels::OutOfMemory;
use blockcell_kernels::ops::{Op, Source};

/// The inputs of a call that are only read, in the operation's order.
pub(super) struct Inputs<'a> {
    op: &'static Op,
    /// How many inputs there are of each tensor; 1 of those without a number.
    lengths: &'a [usize],
    inputs: &'a [Input<'a>],
    /// The tensor and the input that come next, those that are worked on in place among them.
    next: [usize; 2],
    /// An input that its list lacks.
    without: Option<usize>,
}

impl<'a> Inputs<'a> {
    pub(super) fn new(op: &'static Op, lengths: &'a [usize], inputs: &'a [Input<'a>]) -> Self {
        Inputs { op, lengths, inputs, next: [0; 2], without: None }
    }

    /// The same without one input of a list.
    pub(super) fn without(self, input: Option<usize>) -> Self {
        Inputs { without: input, ..self }
    }

    /// The inputs of the next tensor.
    fn take(&mut self) -> impl Iterator<Item = &'a Input<'a>> + use<'a> {
        loop {
            let [tensor, begin] = self.next;
            let end = begin + self.lengths.get(tensor).copied().unwrap_or(1);
            self.next = [tensor + 1, end];
            if !self.op.in_place.contains(&self.op.inputs[tensor].name) {
                let without = self.without;
                let inputs = self.inputs[begin..end].iter().zip(begin..);
                return inputs.filter(move |&(_, n)| Some(n) != without).map(|(input, _)| input);
            }
        }
    }

    fn take_one(&mut self) -> &'a Input<'a> {
        self.take().next().expect("as many inputs as the operation has")
    }
}

impl<'a, E: Pod, D: Dimension> Source<ArrayView<'a, E, D>> for Inputs<'a> {
    fn next(&mut self) -> ArrayView<'a, E, D> {
        view(self.take_one())
    }
}

impl<'a, E: Pod, D: Dimension> Source<Vec<ArrayView<'a, E, D>>> for Inputs<'a> {
    fn next(&mut self) -> Vec<ArrayView<'a, E, D>> {
        self.take().map(view).collect()
    }
}

/// A list of one tensor or none.
impl<'a, E: Pod, D: Dimension> Source<Option<ArrayView<'a, E, D>>> for Inputs<'a> {
    fn next(&mut self) -> Option<ArrayView<'a, E, D>> {
        self.take().next().map(view)
    }
}

/// The number in an int64 scalar that is known not to be negative.
impl Source<usize> for Inputs<'_> {
    fn next(&mut self) -> usize {
        let number =
            steps(self.take_one()).first().and_then(|&number| usize::try_from(number).ok());
        number.expect("a number of steps")
    }
}

/// The number in an int32 scalar.
impl Source<i32> for Inputs<'_> {
    fn next(&mut self) -> i32 {
        number(self.take_one())
    }
}

impl Source<Vec<i32>> for Inputs<'_> {
    fn next(&mut self) -> Vec<i32> {
        self.take().map(number).collect()
    }
}

/// The outputs of a call, or the inputs that are worked on in place, in the operation's order.
pub(super) struct Outputs<'a, 'o> {
    left: slice::IterMut<'a, Output<'o>>,
    /// How many there are of each tensor that is left; 1 of those without a number.
    lengths: slice::Iter<'a, usize>,
}

impl<'a, 'o> Outputs<'a, 'o> {
    pub(super) fn new(outputs: &'a mut [Output<'o>], lengths: &'a [usize]) -> Self {
        Outputs { left: outputs.iter_mut(), lengths: lengths.iter() }
    }

    fn take_one(&mut self) -> &'a mut Output<'o> {
        self.left.next().expect("as many tensors to write as the operation has")
    }
}

impl<'a, E: Pod, D: Dimension> Source<ArrayViewMut<'a, E, D>> for Outputs<'a, '_> {
    fn next(&mut self) -> ArrayViewMut<'a, E, D> {
        self.lengths.next();
        view_mut(self.take_one())
    }
}

impl<'a, E: Pod, D: Dimension> Source<Vec<ArrayViewMut<'a, E, D>>> for Outputs<'a, '_> {
    fn next(&mut self) -> Vec<ArrayViewMut<'a, E, D>> {
        let length = self.lengths.next().copied().unwrap_or(1);
        (0..length).map(|_| view_mut(self.take_one())).collect()
    }
}

pub(super) fn view<'a, E: Pod, D: Dimension>(input: &Input<'a>) -> ArrayView<'a, E, D> {
    let view = ArrayView::from_shape(shape::<D>(input.dims), elements(input.data));
    view.expect("as large as its shape")
}

pub(super) fn view_mut<'a, E: Pod, D: Dimension>(
    output: &'a mut Output<'_>,
) -> ArrayViewMut<'a, E, D> {
    let view = ArrayViewMut::from_shape(shape::<D>(output.dims), elements_mut(output.data));
    view.expect("as large as its shape")
}

/// The elements behind `bytes`. An empty tensor may have an address that is not aligned.
pub(super) fn elements<E: Pod>(bytes: &[u8]) -> &[E] {
    if bytes.is_empty() { &[] } else { bytemuck::cast_slice(bytes) }
}

pub(super) fn elements_mut<E: Pod>(bytes: &mut [u8]) -> &mut [E] {
    if bytes.is_empty() { &mut [] } else { bytemuck::cast_slice_mut(bytes) }
}

/// The shape of a tensor that has the rank of `D`.
fn shape<D: Dimension>(dims: &[usize]) -> D {
    let mut shape = D::zeros(dims.len());
    shape.slice_mut().copy_from_slice(dims);
    shape
}

/// The number in an int32 scalar.
pub(super) fn number(input: &Input<'_>) -> i32 {
    let bytes = input.data.first_chunk().expect("a scalar");
    i32::from_ne_bytes(*bytes)
}

/// The numbers in an int64 tensor.
pub(super) fn steps(input: &Input<'_>) -> Vec<i64> {
    let (numbers, _) = input.data.as_chunks();
    let mut all = OutOfMemory::vec(numbers.len());
    all.extend(numbers.iter().map(|&bytes| i64::from_ne_bytes(bytes)));
    all
}
