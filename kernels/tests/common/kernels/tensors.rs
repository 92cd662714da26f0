//! Between the tensors of the tests and the typed views of the library.

use blockcell_kernels::Element;
use blockcell_kernels::ops::Op;
use ndarray::{Array, ArrayD, ArrayView, ArrayViewMut, Dimension};

use crate::common::Tensors;
use crate::common::compare::same_bits;

/// To the nearest number of type `E`. Where that is half, numbers go by way of `f32`, which does
/// not matter for random data.
pub(crate) fn round<E: Element>(value: f64) -> f64 {
    E::from_f32(value as f32).to_f32().into()
}

/// The tensors in the kernel's element type.
pub(crate) fn stored<E: Element>(tensors: &[ArrayD<f64>]) -> Vec<ArrayD<E>> {
    tensors.iter().map(|tensor| tensor.mapv(|value| E::from_f32(value as f32))).collect()
}

/// The kernel's results, which are exact in `f64`.
pub(crate) fn restored<E: Element>(tensors: &[ArrayD<E>]) -> Tensors {
    tensors.iter().map(|tensor| tensor.mapv(|value| value.to_f32().into())).collect()
}

/// Numbers of time steps.
pub(crate) fn steps<D: Dimension>(tensor: &ArrayD<f64>) -> Array<i64, D> {
    view(tensor).mapv(|steps| steps as i64)
}

/// The inputs of a call in the kernel's element type, by name.
pub(crate) struct Inputs<E> {
    op: &'static Op,
    tensors: Vec<ArrayD<E>>,
}

impl<E: Element> Inputs<E> {
    pub(crate) fn new(op: &'static Op, tensors: &Tensors) -> Self {
        Inputs { op, tensors: stored(tensors) }
    }

    pub(crate) fn get(&self, name: &str) -> &ArrayD<E> {
        let found = self.op.inputs.iter().position(|tensor| tensor.name == name);
        &self.tensors[found.unwrap_or_else(|| panic!("{} has no input {name}", self.op.name))]
    }

    /// Copies of the inputs in whose place the kernel works.
    pub(crate) fn in_place(&self) -> Vec<ArrayD<E>> {
        self.op.in_place.iter().map(|name| self.get(name).clone()).collect()
    }

    /// Panics if `in_place` is not as before a call that failed.
    pub(crate) fn expect_kept(&self, in_place: &[ArrayD<E>]) {
        let kept = restored(&self.in_place());
        for ((name, now), kept) in self.op.in_place.iter().zip(restored(in_place)).zip(kept) {
            same_bits(name, &now, &kept).expect("inputs are not written in a call that fails");
        }
    }
}

pub(crate) fn take<T, const N: usize>(all: &[T]) -> [&T; N] {
    all.iter().collect::<Vec<_>>().try_into().ok().expect("the number of tensors of the operation")
}

pub(crate) fn take_mut<T, const N: usize>(all: &mut [T]) -> [&mut T; N] {
    let all: Vec<_> = all.iter_mut().collect();
    all.try_into().ok().expect("the number of tensors of the operation")
}

pub(crate) fn view<E, D: Dimension>(tensor: &ArrayD<E>) -> ArrayView<'_, E, D> {
    of_rank::<_, D>(tensor.view().into_dimensionality())
}

pub(crate) fn view_mut<E, D: Dimension>(tensor: &mut ArrayD<E>) -> ArrayViewMut<'_, E, D> {
    of_rank::<_, D>(tensor.view_mut().into_dimensionality())
}

/// A copy whose number of dimensions is known.
pub(crate) fn typed<D: Dimension>(tensor: &ArrayD<f64>) -> Array<f64, D> {
    view(tensor).to_owned()
}

fn of_rank<T, D: Dimension>(result: Result<T, ndarray::ShapeError>) -> T {
    result.unwrap_or_else(|_| panic!("a tensor of rank {:?}", D::NDIM))
}

/// A struct of views of [`Inputs`], by the names of its fields; other fields have values.
macro_rules! views {
    ($($struct:ident)::+, $inputs:expr, [$($name:ident),+ $(,)?] $(, $field:ident: $value:expr)?) => {
        $($struct)::+ {
            $($field: $value,)?
            $($name: $crate::common::kernels::tensors::view($inputs.get(stringify!($name)))),+
        }
    };
}

/// A struct of views of the tensors in a slice to write to, in the order of the names.
macro_rules! views_mut {
    ($($struct:ident)::+, $tensors:expr, [$($name:ident),+ $(,)?]) => {{
        let [$($name),+] = $crate::common::kernels::tensors::take_mut($tensors);
        $($struct)::+ { $($name: $crate::common::kernels::tensors::view_mut($name)),+ }
    }};
}

pub(crate) use {views, views_mut};
