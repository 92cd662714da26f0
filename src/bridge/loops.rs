//! What the operations on loops have in common, whoever wrote the loop.
//!
//! A call has numbers, of steps and of rounds, and then x, the states, and the weights. If there is no round, nothing
//! is computed: the last states are the first ones, whatever shapes the other tensors have.

use std::iter;

use blockcell_kernels::ops::PartialShape as Known;
use blockcell_kernels::plain::ElementShapes;
use blockcell_kernels::{Element, Error};
use bytemuck::Pod;

use super::attributes::Attributes;
use super::ffi::{Input, Output};
use super::kernels::Call;
use super::lists::{Lists, are_scalars, known};
use super::own_ops::Shapes;

/// A kind of loop, as the attributes of a node describe one.
pub(super) trait Loop: Send + Sync + Sized + 'static {
    fn read(op: &'static str, attributes: Attributes<'_>) -> Result<Self, Error>;

    /// The tensors of a call that hold a number of steps or rounds each.
    fn scalars<'i, T>(&self, inputs: &'i [T]) -> &'i [T];

    /// x, the states, and the weights of a call.
    fn tensors<'i, T>(&self, inputs: &'i [T]) -> &'i [T];

    /// The time, batch, input and cell of inputs whose shapes are checked, of which so many are states.
    fn sizes(&self, inputs: &[&[usize]], states: usize) -> [usize; 4];

    /// The shape of h if there is no round, given that of x. The numbers are scalars.
    fn h_without_rounds(
        &self,
        op: &'static str,
        inputs: &[Input<'_>],
        x: &[usize],
    ) -> Result<Option<Vec<usize>>, Error>;

    /// How many steps h has, if a number says so. The numbers are scalars.
    fn size(&self, op: &'static str, inputs: &[Input<'_>]) -> Result<Option<usize>, Error>;

    /// Checks the numbers of a call whose shapes are checked.
    fn check_numbers(&self, _op: &'static str, _inputs: &[Input<'_>]) -> Result<(), Error> {
        Ok(())
    }
}

/// A cell whose steps a loop makes.
pub(super) trait Cell: Send + Sync + Sized + 'static {
    type Loop: Loop;

    /// The name of the operation in TensorFlow.
    const NAME: &'static str;

    /// How many states it has: tensors after x, and outputs after h.
    const STATES: usize;

    /// How much scratch memory a call needs: so many numbers, and so many elements.
    const SCRATCH: fn([usize; 4]) -> [usize; 2];

    fn read(attributes: Attributes<'_>) -> Result<Self, Error>;

    /// Checks what is known of the inputs' shapes, and tells what follows for those of the outputs. `size` is the
    /// number of h's steps, if it is known.
    fn shapes(
        &self,
        steps: &Self::Loop,
        inputs: &[Known],
        size: Option<usize>,
    ) -> Result<Shapes, Error>;

    /// Computes a call that has a round. So much of the scratch memory is numbers.
    fn run<E: Element + Pod>(
        &self,
        steps: &Self::Loop,
        call: Call<'_, '_, '_>,
        numbers: usize,
    ) -> Result<(), Error>;
}

/// The operation on such a loop around such a cell.
pub(super) struct LoopOf<C: Cell> {
    steps: C::Loop,
    cell: C,
}

impl<C: Cell> Lists for LoopOf<C> {
    const NAME: &'static str = C::NAME;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        Ok(LoopOf { steps: C::Loop::read(C::NAME, attributes)?, cell: C::read(attributes)? })
    }

    fn shapes(&self, inputs: &[Known]) -> Result<Shapes, Error> {
        self.cell.shapes(&self.steps, inputs, None)
    }

    fn shapes_of_call(&self, inputs: &[Input<'_>]) -> Result<Shapes, Error> {
        // The check of all shapes refuses numbers that are no scalars.
        let has_numbers = are_scalars(self.steps.scalars(inputs));
        let size = if has_numbers { self.steps.size(C::NAME, inputs)? } else { None };
        let shapes = self.cell.shapes(&self.steps, &known(inputs), size)?;
        self.steps.check_numbers(C::NAME, inputs)?;
        Ok(shapes)
    }

    fn shapes_without_work(&self, inputs: &[Input<'_>]) -> Result<Option<Vec<Vec<usize>>>, Error> {
        if !are_scalars(self.steps.scalars(inputs)) {
            return Ok(None); // The check of all shapes refuses it.
        }
        let (x, rest) = self.steps.tensors(inputs).split_first().expect("the operation has x");
        let h = self.steps.h_without_rounds(C::NAME, inputs, x.dims)?;
        Ok(h.map(|h| {
            let states = rest.iter().take(C::STATES).map(|state| state.dims.to_vec());
            iter::once(h).chain(states).collect()
        }))
    }

    fn scratch(&self, inputs: &[&[usize]]) -> [usize; 2] {
        C::SCRATCH(self.steps.sizes(inputs, C::STATES))
    }

    fn run<E: Element + Pod>(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        if self.shapes_without_work(call.inputs)?.is_some() {
            copy_first_states(call.outputs, &self.steps.tensors(call.inputs)[1..]);
            return Ok(());
        }
        let dims: Vec<_> = call.inputs.iter().map(|input| input.dims).collect();
        let [numbers, _] = self.scratch(&dims);
        self.cell.run::<E>(&self.steps, call, numbers)
    }
}

/// Reads how many numbers of rounds a loop has, and how many tensors in a list that may be left out.
pub(super) fn counts(
    op: &'static str,
    attributes: Attributes<'_>,
    list: &str,
) -> Result<[usize; 2], Error> {
    let (rounds, tensors) = (attributes.count("R")?, attributes.count(list)?);
    if rounds == 0 || tensors > 1 {
        let expected = format!("R must be at least 1, and {list} 0 or 1");
        let got = format!("{rounds} and {tensors}");
        return Err(Error::Attribute { op, expected, got });
    }
    Ok([rounds, tensors])
}

/// What the attributes say of the elements of a loop's arrays or lists.
pub(super) fn element_shapes(
    op: &'static str,
    attributes: Attributes<'_>,
) -> Result<ElementShapes, Error> {
    let element = |name: &str| -> Result<Known, Error> {
        let sizes = attributes.numbers(name)?;
        match sizes.len() {
            0 => Ok(None),
            2 => Ok(Some(sizes.into_iter().map(|size| usize::try_from(size).ok()).collect())),
            _ => Err(Error::Attribute {
                op,
                expected: format!("{name} must have no numbers, or two"),
                got: format!("{sizes:?}"),
            }),
        }
    };
    Ok(ElementShapes {
        x: element("x_sizes")?,
        h: element("h_sizes")?,
        needs_h: attributes.flag("needs_h")?,
    })
}

/// The outputs of a loop without a round: zeros, and the first states.
fn copy_first_states(outputs: &mut [Output<'_>], states: &[Input<'_>]) {
    let (h, last) = outputs.split_first_mut().expect("h is the first output");
    h.data.fill(0);
    for (output, first) in last.iter_mut().zip(states) {
        output.data.copy_from_slice(first.data);
    }
}
