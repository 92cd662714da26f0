//! Operations whose inputs are lists of tensors.
//!
//! TensorFlow passes the tensors of all lists one after the other. Attributes of the node tell how many
//! each list has.

use std::marker::PhantomData;

use blockcell_kernels::ops::PartialShape as Known;
use blockcell_kernels::{Element, Error};
use bytemuck::Pod;
use half::f16;
use ndarray::{ArrayView, Dimension};

use super::attributes::Attributes;
use super::ffi::{Input, Plan, Shape};
use super::kernels::{Call, Node, Operation, describe};
use super::own_ops::Shapes;
use super::tensors::view;

/// Such an operation, as the attributes of a node say.
pub(super) trait Lists: Send + Sync + Sized + 'static {
    /// The operation's name in TensorFlow.
    const NAME: &'static str;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error>;

    /// Checks what is known of the inputs' shapes, and tells what follows for those of the outputs.
    fn shapes(&self, inputs: &[Known]) -> Result<Shapes, Error>;

    /// The shapes of the outputs of a call, where they depend on more than the shapes of its inputs.
    fn shapes_of_call(&self, inputs: &[Input<'_>]) -> Result<Shapes, Error> {
        self.shapes(&known(inputs))
    }

    /// The shapes of the outputs of a call that computes nothing, whatever shapes its inputs have. None for others.
    fn shapes_without_work(&self, _: &[Input<'_>]) -> Result<Option<Vec<Vec<usize>>>, Error> {
        Ok(None)
    }

    /// The input whose memory may become that of the output.
    fn forward_input(&self) -> Option<usize> {
        None
    }

    /// How much scratch memory a call needs, by the shapes of its inputs: so many numbers, and so many elements.
    fn scratch(&self, _: &[&[usize]]) -> [usize; 2] {
        [0; 2]
    }

    fn run<E: Element + Pod>(&self, call: Call<'_, '_, '_>) -> Result<(), Error>;
}

pub(super) struct ListsOp<P>(pub(super) PhantomData<P>);

impl<P: Lists> Operation for ListsOp<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn node(&'static self, attributes: Attributes<'_>) -> Result<Box<dyn Node>, Error> {
        let (op, is_half) = (P::read(attributes)?, attributes.is_half()?);
        Ok(Box::new(ListsNode { op, is_half }))
    }
}

struct ListsNode<P> {
    op: P,
    is_half: bool,
}

impl<P: Lists> Node for ListsNode<P> {
    fn plan(
        &self,
        inputs: &[Input<'_>],
        _is_read: &[bool],
        outputs: &mut [Shape],
    ) -> Result<Plan, Error> {
        if let Some(shapes) = self.op.shapes_without_work(inputs)? {
            for (output, dims) in outputs.iter_mut().zip(shapes) {
                describe(P::NAME, output, dims.into_iter().map(Some))?;
            }
            return Plan::with_scratch(P::NAME, 0);
        }
        let shapes = self.op.shapes_of_call(inputs)?;
        for (output, dims) in outputs.iter_mut().zip(shapes) {
            describe(P::NAME, output, dims.into_iter())?;
        }
        let forward_input = self.op.forward_input();
        let forward_input = forward_input.and_then(|n| i32::try_from(n).ok()).unwrap_or(-1);
        let dims: Vec<_> = inputs.iter().map(|input| input.dims).collect();
        let [numbers, elements] = self.op.scratch(&dims);
        let scratch = if self.is_half { elements.div_ceil(2) } else { elements };
        let scratch = scratch.saturating_add(numbers);
        Ok(Plan { forward_input, ..Plan::with_scratch(P::NAME, scratch)? })
    }

    fn compute(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        if self.is_half { self.op.run::<f16>(call) } else { self.op.run::<f32>(call) }
    }
}

/// The shapes of a call's inputs.
pub(super) fn known(inputs: &[Input<'_>]) -> Vec<Known> {
    inputs.iter().map(|input| Some(input.dims.iter().copied().map(Some).collect())).collect()
}

/// Whether tensors are single numbers, so that their values may be read.
pub(super) fn are_scalars(inputs: &[Input<'_>]) -> bool {
    inputs.iter().all(|input| input.dims.is_empty())
}

/// Cuts a call's inputs into its lists: `lengths` of all but the last one.
pub(super) fn lists<T, const N: usize>(mut inputs: &[T], lengths: [usize; N]) -> ([&[T]; N], &[T]) {
    let lists = lengths.map(|length| {
        let (list, rest) = inputs.split_at(length);
        inputs = rest;
        list
    });
    (lists, inputs)
}

pub(super) fn views<'a, E: Pod, D: Dimension>(list: &[Input<'a>]) -> Vec<ArrayView<'a, E, D>> {
    list.iter().map(view).collect()
}

/// Cuts scratch memory into numbers and elements.
pub(super) fn parts<E: Pod>(scratch: &mut [f32], numbers: usize) -> (&mut [f32], &mut [E]) {
    let (numbers, elements) = scratch.split_at_mut(numbers);
    (numbers, bytemuck::cast_slice_mut(elements))
}
