//! Operations whose inputs are lists of tensors.

use std::marker::PhantomData;

use blockcell_kernels::ops::{
    DataType, Inferred, Lengths, Lists, Op, PartialShape as Known, Sizes,
};
use blockcell_kernels::{Context, Element, Error};
use bytemuck::Pod;
use half::{bf16, f16};

use super::attributes::Attributes;
use super::ffi::{Input, Output, Plan, Shape};
use super::kernels::{self, Node, Operation, describe};
use super::tensors::{Inputs, Outputs};

/// Such an operation, as the attributes of a node say.
pub(super) trait ListsOp: Send + Sync + Sized + 'static {
    const OP: &'static Op;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error>;

    /// Checks what is known of the inputs' shapes, and tells what follows. `call` has the inputs of a call; there are
    /// none while a graph is built.
    fn infer(
        &self,
        shapes: &Lists<'_, Known>,
        call: Option<&Lists<'_, Input<'_>>>,
    ) -> Result<Inferred, Error>;

    /// The shapes of the outputs of a call that computes nothing, whatever shapes its inputs have. None for others.
    fn without_work(&self, _: &Lists<'_, Input<'_>>) -> Result<Option<Vec<Vec<usize>>>, Error> {
        Ok(None)
    }

    /// Computes the outputs of a call if it computes nothing.
    ///
    /// Returns whether it did.
    fn fill(&self, _: &Lists<'_, Input<'_>>, _: &mut [Output<'_>]) -> Result<bool, Error> {
        Ok(false)
    }

    /// The input whose memory may become that of the output.
    fn forward_input(&self, _: &Lengths) -> Option<usize> {
        None
    }

    /// How much scratch memory a call needs, by the sizes that were inferred: so many numbers, and so many elements.
    fn scratch(&self, _: &Sizes, _: &Lists<'_, Input<'_>>) -> [usize; 2] {
        [0; 2]
    }

    /// The numbers of these, by the shapes of a call's tensors.
    fn numbers(&self, _: &Lists<'_, Input<'_>>, _: &[Output<'_>]) -> usize {
        0
    }

    fn run<E: Element + Pod>(&self, call: Call<'_, '_>) -> Result<(), Error>;
}

/// A call whose tensors become the structs of views of its operation.
pub(super) struct Call<'c, 'o> {
    pub(super) context: &'c Context<'c>,
    pub(super) inputs: Inputs<'c>,
    pub(super) outputs: Outputs<'c, 'o>,
    /// Whether the first output has the memory of [`ListsOp::forward_input`], which is left out of `inputs` then.
    pub(super) forwarded: bool,
    scratch: &'c mut [f32],
    numbers: usize,
}

impl<'c> Call<'c, '_> {
    /// The scratch memory, as numbers and as elements.
    pub(super) fn memory<E: Pod>(self) -> (&'c mut [f32], &'c mut [E]) {
        let (numbers, elements) = self.scratch.split_at_mut(self.numbers);
        (numbers, bytemuck::cast_slice_mut(elements))
    }
}

pub(super) struct OperationOf<P>(pub(super) PhantomData<P>);

impl<P: ListsOp> Operation for OperationOf<P> {
    fn op(&self) -> &'static Op {
        P::OP
    }

    fn node(&'static self, attributes: Attributes<'_>) -> Result<Box<dyn Node>, Error> {
        let (op, element) = (P::read(attributes)?, attributes.element_type()?);
        let lengths = P::OP.lengths(|list| attributes.count(list))?;
        Ok(Box::new(ListsNode { op, lengths, element }))
    }

    fn infer(&self, attributes: Attributes<'_>, inputs: &[Known]) -> Result<Inferred, Error> {
        let Lengths { inputs: lengths, outputs } = P::OP.lengths(|list| attributes.count(list))?;
        P::read(attributes)?.infer(&Lists::new(P::OP, &lengths, &outputs, inputs), None)
    }
}

struct ListsNode<P> {
    op: P,
    lengths: Lengths,
    element: DataType,
}

/// The shapes of a call's outputs, and the numbers and elements of its scratch memory.
type Needs = (Vec<Vec<Option<usize>>>, [usize; 2]);

impl<P: ListsOp> ListsNode<P> {
    fn lists<'a, T>(&'a self, all: &'a [T]) -> Lists<'a, T> {
        Lists::new(P::OP, &self.lengths.inputs, &self.lengths.outputs, all)
    }

    /// The shapes of the outputs, and how much scratch memory a call needs.
    fn needs(&self, inputs: &[Input<'_>]) -> Result<Needs, Error> {
        let call = self.lists(inputs);
        if let Some(shapes) = self.op.without_work(&call)? {
            let known = |shape: Vec<usize>| shape.into_iter().map(Some).collect();
            return Ok((shapes.into_iter().map(known).collect(), [0; 2]));
        }
        let shapes = known(inputs);
        let inferred = self.op.infer(&self.lists(&shapes), Some(&call))?;
        let scratch = self.op.scratch(&inferred.sizes.in_numbers(), &call);
        Ok((inferred.outputs, scratch))
    }
}

impl<P: ListsOp> Node for ListsNode<P> {
    fn plan(
        &self,
        inputs: &[Input<'_>],
        _is_read: &[bool],
        outputs: &mut [Shape],
    ) -> Result<Plan, Error> {
        let (shapes, [numbers, elements]) = self.needs(inputs)?;
        for (output, dims) in outputs.iter_mut().zip(shapes) {
            describe(P::OP.name, output, dims.into_iter())?;
        }
        let forward_input = self.op.forward_input(&self.lengths);
        let forward_input = forward_input.and_then(|n| i32::try_from(n).ok()).unwrap_or(-1);
        let scratch = elements.div_ceil(size_of::<f32>() / self.element.size());
        let scratch = scratch.saturating_add(numbers);
        Ok(Plan { forward_input, ..Plan::with_scratch(P::OP.name, scratch)? })
    }

    fn compute(&self, call: kernels::Call<'_, '_, '_>) -> Result<(), Error> {
        let lists = self.lists(call.inputs);
        if self.op.fill(&lists, call.outputs)? {
            return Ok(());
        }
        let numbers = self.op.numbers(&lists, call.outputs);
        let forwarded = call.forwarded.then(|| self.op.forward_input(&self.lengths)).flatten();
        let call = Call {
            context: call.context,
            inputs: Inputs::new(P::OP, &self.lengths.inputs, call.inputs).without(forwarded),
            outputs: Outputs::new(call.outputs, &self.lengths.outputs),
            forwarded: call.forwarded,
            scratch: call.scratch,
            numbers,
        };
        match self.element {
            DataType::BFloat16 => self.op.run::<bf16>(call),
            DataType::Half => self.op.run::<f16>(call),
            DataType::Float => self.op.run::<f32>(call),
            DataType::Double => Err(Error::Type { op: P::OP.name }),
        }
    }
}

/// The shapes of a call's inputs.
fn known(inputs: &[Input<'_>]) -> Vec<Known> {
    inputs.iter().map(|input| Some(input.dims.iter().copied().map(Some).collect())).collect()
}
