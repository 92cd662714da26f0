//! What is checked of the array views of a call of the Rust API.

use ndarray::{ArrayBase, Data, Dimension};

use super::lists::{Inferred, Lists};
use super::{Keeps, Op, PartialShape, Sizes, Tensor};
use crate::Error;
use crate::error::{self, known_shape};

/// What is checked of an array view.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    shape: &'a [usize],
    standard: bool,
}

/// What is checked of a field: a view, or a list of them.
pub(crate) enum Views<'a> {
    One(View<'a>),
    Many(Vec<View<'a>>),
}

/// A struct of views, or several that together have the inputs of an operation in its order.
pub(crate) trait Tensors {
    /// Calls `read` with what is checked of each field.
    fn with_views<R>(&self, read: impl FnOnce(&[Views<'_>]) -> R) -> R;
}

impl<'a> Views<'a> {
    fn as_slice(&self) -> &[View<'a>] {
        match self {
            Views::One(view) => std::slice::from_ref(view),
            Views::Many(views) => views,
        }
    }
}

const SCALAR: View<'_> = View { shape: &[], standard: true };

/// A number, which is a scalar in TensorFlow.
impl From<&usize> for Views<'_> {
    fn from(_: &usize) -> Self {
        Views::One(SCALAR)
    }
}

impl From<&i32> for Views<'_> {
    fn from(_: &i32) -> Self {
        Views::One(SCALAR)
    }
}

impl From<&Vec<i32>> for Views<'_> {
    fn from(list: &Vec<i32>) -> Self {
        Views::Many(vec![SCALAR; list.len()])
    }
}

impl<'a, S: Data, D: Dimension> From<&'a ArrayBase<S, D>> for View<'a> {
    fn from(array: &'a ArrayBase<S, D>) -> Self {
        View { shape: array.shape(), standard: array.is_standard_layout() }
    }
}

impl<'a, S: Data, D: Dimension> From<&'a ArrayBase<S, D>> for Views<'a> {
    fn from(array: &'a ArrayBase<S, D>) -> Self {
        Views::One(array.into())
    }
}

impl<'a, S: Data, D: Dimension> From<&'a Vec<ArrayBase<S, D>>> for Views<'a> {
    fn from(list: &'a Vec<ArrayBase<S, D>>) -> Self {
        Views::Many(list.iter().map(View::from).collect())
    }
}

/// A list of one tensor or none.
impl<'a, S: Data, D: Dimension> From<&'a Option<ArrayBase<S, D>>> for Views<'a> {
    fn from(list: &'a Option<ArrayBase<S, D>>) -> Self {
        Views::Many(list.iter().map(View::from).collect())
    }
}

impl Op {
    /// [`Op::check`], [`Op::check_outputs`] and the layouts of a call of the Rust API.
    pub(crate) fn check_call(
        &'static self,
        use_optional: bool,
        inputs: &impl Tensors,
        outputs: &impl Tensors,
        keeps: Keeps,
    ) -> Result<Sizes, Error> {
        inputs.with_views(|inputs| {
            let sizes = self.check_shapes(use_optional, inputs.len(), |n| inputs[n].shape())?;
            outputs.with_views(|outputs| {
                self.check_kept(&sizes, outputs.len(), |n| outputs[n].shape(), keeps)?;
                self.check_layouts(inputs, outputs)?;
                Ok(sizes)
            })
        })
    }

    /// The same of an operation that has lists of tensors. `infer` is its shape function, such as
    /// [`Op::infer`].
    pub(crate) fn check_lists(
        &'static self,
        inputs: &impl Tensors,
        outputs: &impl Tensors,
        infer: impl FnOnce(&Lists<'_, PartialShape>) -> Result<Inferred, Error>,
    ) -> Result<Sizes, Error> {
        inputs.with_views(|inputs| {
            outputs.with_views(|outputs| {
                let of_list = |views: &Views<'_>| views.as_slice().len();
                let [lengths, outputs_lengths] =
                    [inputs, outputs].map(|all| all.iter().map(of_list).collect::<Vec<_>>());
                let views = inputs.iter().flat_map(Views::as_slice);
                let known = |view: &View<'_>| Some(known_shape(view.shape));
                let shapes: Vec<PartialShape> = views.map(known).collect();
                let lists = Lists::new(self, &lengths, &outputs_lengths, &shapes);
                let inferred = infer(&lists)?;
                self.check_lists_of_outputs(outputs, &inferred.outputs)?;
                self.check_layouts(inputs, outputs)?;
                Ok(inferred.sizes.in_numbers())
            })
        })
    }

    fn check_lists_of_outputs(
        &self,
        outputs: &[Views<'_>],
        expected: &[Vec<Option<usize>>],
    ) -> Result<(), Error> {
        let views = self.outputs.iter().zip(outputs).flat_map(|(tensor, views)| {
            let views = views.as_slice();
            let place = move |n: usize| (views.len() > 1).then_some(n);
            views.iter().enumerate().map(move |(n, view)| (tensor, place(n), view))
        });
        for ((tensor, n, view), expected) in views.zip(expected) {
            if !expected.iter().copied().eq(view.shape.iter().copied().map(Some)) {
                let (expected, got) = (error::shape(expected), known_shape(view.shape));
                return Err(tensor.shape_error(self, n, expected, got));
            }
        }
        Ok(())
    }

    fn check_layouts(&self, inputs: &[Views<'_>], outputs: &[Views<'_>]) -> Result<(), Error> {
        let is_standard = |views: &Views<'_>| views.as_slice().iter().all(|view| view.standard);
        let mut tensors = self.inputs.iter().chain(self.outputs).zip(inputs.iter().chain(outputs));
        match tensors.find(|(_, views)| !is_standard(views)) {
            Some((tensor, _)) => Err(Error::Layout { op: self.name, tensor: tensor.name }),
            None => Ok(()),
        }
    }
}

impl Tensor {
    /// The error for the tensor, or for number `index` of a list of several.
    pub(crate) fn shape_error(
        &self,
        op: &Op,
        index: Option<usize>,
        expected: String,
        got: Vec<Option<usize>>,
    ) -> Error {
        Error::Shape { op: op.name, tensor: self.name, index, expected, got }
    }
}

impl<'a> Views<'a> {
    fn shape(&self) -> &'a [usize] {
        match self {
            Views::One(view) => view.shape,
            Views::Many(_) => unreachable!("operations with lists are checked by check_lists"),
        }
    }
}
