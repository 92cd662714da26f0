//! TensorFlow's tensors as array views.
//!
//! `plan` has checked the shapes, so a failure here is a defect of this library: it panics, and the
//! call ends with an Internal error.

use bytemuck::Pod;
use ndarray::{ArrayView, ArrayViewMut, Dimension};

use super::ffi::{Input, Output};

pub(super) fn exactly<'s, 'a, const N: usize>(inputs: &'s [Input<'a>]) -> &'s [Input<'a>; N] {
    inputs.try_into().expect("as many inputs as the operation has")
}

pub(super) fn exactly_mut<'s, 'a, const N: usize>(
    outputs: &'s mut [Output<'a>],
) -> &'s mut [Output<'a>; N] {
    outputs.try_into().expect("as many outputs as the operation has")
}

/// The elements behind `bytes`. An empty tensor may have an address that is not aligned.
fn elements<E: Pod>(bytes: &[u8]) -> &[E] {
    if bytes.is_empty() { &[] } else { bytemuck::cast_slice(bytes) }
}

fn elements_mut<E: Pod>(bytes: &mut [u8]) -> &mut [E] {
    if bytes.is_empty() { &mut [] } else { bytemuck::cast_slice_mut(bytes) }
}

/// The shape of a tensor that has the rank of `D`.
fn shape<D: Dimension>(dims: &[usize]) -> D {
    let mut shape = D::zeros(dims.len());
    shape.slice_mut().copy_from_slice(dims);
    shape
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

/// The numbers in an int64 tensor. There are few, so that their alignment is no matter.
pub(super) fn steps(input: &Input<'_>) -> Vec<i64> {
    let (numbers, _) = input.data.as_chunks();
    numbers.iter().map(|&bytes| i64::from_ne_bytes(bytes)).collect()
}

/// The number in an int64 scalar that is known not to be negative.
pub(super) fn step(input: &Input<'_>) -> usize {
    let number = steps(input).first().and_then(|&number| usize::try_from(number).ok());
    number.expect("a number of steps")
}

/// A struct of views of the input tensors that have the names of its fields; fields may have other
/// values.
macro_rules! views {
    (@ $tensor:ident) => { $crate::bridge::tensors::view($tensor) };
    (@ $tensor:ident $value:expr) => { $value };
    ($($struct:ident)::+ { $($field:ident $(: $value:expr)?),+ $(,)? }) => {
        $($struct)::+ { $($field: views!(@ $field $($value)?)),+ }
    };
}

/// A struct of views of the output tensors that have the names of its fields.
macro_rules! views_mut {
    ($($struct:ident)::+ { $($field:ident),+ $(,)? }) => {
        $($struct)::+ { $($field: $crate::bridge::tensors::view_mut($field)),+ }
    };
}

pub(super) use {views, views_mut};
