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
    /// The inputs left, those that are worked on in place among them.
    left: slice::Iter<'a, Input<'a>>,
}

impl<'a> Inputs<'a> {
    pub(super) fn new(op: &'static Op, inputs: &'a [Input<'a>]) -> Self {
        assert_eq!(inputs.len(), op.inputs.len(), "as many inputs as the operation has");
        Inputs { op, left: inputs.iter() }
    }

    fn take(&mut self) -> &'a Input<'a> {
        loop {
            let tensor = self.op.inputs.len() - self.left.len();
            let input = self.left.next().expect("as many inputs as the operation has");
            if !self.op.in_place.contains(&self.op.inputs[tensor].name) {
                return input;
            }
        }
    }
}

impl<'a, E: Pod, D: Dimension> Source<ArrayView<'a, E, D>> for Inputs<'a> {
    fn next(&mut self) -> ArrayView<'a, E, D> {
        view(self.take())
    }
}

/// The number in an int64 scalar that is known not to be negative.
impl Source<usize> for Inputs<'_> {
    fn next(&mut self) -> usize {
        let number = steps(self.take()).first().and_then(|&number| usize::try_from(number).ok());
        number.expect("a number of steps")
    }
}

/// The outputs of a call, or the inputs that are worked on in place, in the operation's order.
pub(super) struct Outputs<'a, 'o>(slice::IterMut<'a, Output<'o>>);

impl<'a, 'o> Outputs<'a, 'o> {
    /// There must be `count` of them.
    pub(super) fn new(outputs: &'a mut [Output<'o>], count: usize) -> Self {
        assert_eq!(outputs.len(), count, "as many tensors to write as the operation has");
        Outputs(outputs.iter_mut())
    }
}

impl<'a, E: Pod, D: Dimension> Source<ArrayViewMut<'a, E, D>> for Outputs<'a, '_> {
    fn next(&mut self) -> ArrayViewMut<'a, E, D> {
        view_mut(self.0.next().expect("as many tensors to write as the operation has"))
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

/// The numbers in an int32 tensor.
pub(super) fn small_numbers(input: &Input<'_>) -> Vec<i32> {
    let (numbers, _) = input.data.as_chunks();
    let mut all = OutOfMemory::vec(numbers.len());
    all.extend(numbers.iter().map(|&bytes| i32::from_ne_bytes(bytes)));
    all
}

/// The numbers in an int64 tensor.
pub(super) fn steps(input: &Input<'_>) -> Vec<i64> {
    let (numbers, _) = input.data.as_chunks();
    let mut all = OutOfMemory::vec(numbers.len());
    all.extend(numbers.iter().map(|&bytes| i64::from_ne_bytes(bytes)));
    all
}
