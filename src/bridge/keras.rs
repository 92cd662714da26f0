//! The operations on loops of Keras's layers.

use std::marker::PhantomData;

use blockcell_kernels::ops::PartialShape as Known;
use blockcell_kernels::plain::{
    self, ElementShapes, KerasGruInputs, KerasGruOutputs, KerasLstmInputs, KerasLstmOutputs,
    KerasMask, KerasShapes, KerasSteps,
};
use blockcell_kernels::{Element, Error};
use bytemuck::Pod;

use super::attributes::Attributes;
use super::ffi::Input;
use super::kernels::{Call, Operation};
use super::lists::{Lists, ListsOp, are_scalars, known, parts};
use super::loops::{copy_first_states, element_shapes};
use super::own_ops::Shapes;
use super::tensors::{small_numbers, view, view_mut};

/// All of them.
pub(super) const ALL: [&dyn Operation; 2] =
    [&ListsOp::<KerasLstm>(PhantomData), &ListsOp::<KerasGru>(PhantomData)];

/// What both have in common: the tensors `size`, `rounds`, `mask` and `before`, and what is known of the elements of
/// the loop's lists.
struct Loop {
    rounds: usize,
    mask: usize,
    last_only: bool,
    repeats: bool,
    elements: ElementShapes,
}

impl Loop {
    fn read(op: &'static str, attributes: Attributes<'_>) -> Result<Self, Error> {
        let (rounds, mask) = (attributes.count("R")?, attributes.count("M")?);
        if rounds == 0 || mask > 1 {
            let expected = "R must be at least 1, and M 0 or 1".to_owned();
            let got = format!("{rounds} and {mask}");
            return Err(Error::Attribute { op, expected, got });
        }
        Ok(Loop {
            rounds,
            mask,
            last_only: attributes.flag("last_only")?,
            repeats: attributes.flag("repeats")?,
            elements: element_shapes(op, attributes)?,
        })
    }

    /// Cuts a call's inputs into the scalars, mask and output before, and the rest, which is between them.
    fn lists<'i, T>(&self, inputs: &'i [T]) -> ([&'i [T]; 2], &'i [T]) {
        let (inputs, mask) = inputs.split_at(inputs.len() - 2 * self.mask);
        let (scalars, tensors) = inputs.split_at(1 + self.rounds);
        ([scalars, mask], tensors)
    }

    fn shapes<'s>(&'s self, inputs: &'s [Known], states: usize) -> (KerasShapes<'s>, &'s [Known]) {
        let ([scalars, mask], tensors) = self.lists(inputs);
        let (x, tensors) = tensors.split_first().expect("the operation has x");
        let (states, weights) = tensors.split_at(states);
        (KerasShapes { scalars, mask, x, states, elements: &self.elements }, weights)
    }

    /// The time, batch, input and cell of inputs whose shapes are checked. The batch is that of the tensor that has
    /// the largest.
    fn sizes(&self, inputs: &[&[usize]], states: usize) -> [usize; 4] {
        let ([_, mask], tensors) = self.lists(inputs);
        let ([time, rows, input], [_, cell]) = (tensors[0], tensors[1]) else {
            unreachable!("the ranks were checked")
        };
        let of_mask = mask.iter().zip([1, 0]).map(|(tensor, axis)| tensor[axis]);
        let of_states = tensors[1..=states].iter().map(|state| state[0]);
        let mut batches = of_mask.chain(of_states).filter(|&batch| batch != 1);
        let batch = if *rows == 1 { batches.next().unwrap_or(1) } else { *rows };
        [*time, batch, *input, *cell]
    }

    fn steps(&self, inputs: &[Input<'_>]) -> KerasSteps {
        let ([scalars, _], _) = self.lists(inputs);
        let mut scalars = scalars.iter().flat_map(small_numbers).map(i64::from);
        KerasSteps {
            size: scalars.next().expect("it was checked"),
            rounds: scalars.min().expect("it was checked"),
            last_only: self.last_only,
            repeats: self.repeats,
        }
    }

    /// How many steps h has. None for a call that the check of all shapes refuses.
    fn size(&self, op: &'static str, inputs: &[Input<'_>]) -> Result<Option<usize>, Error> {
        let ([scalars, _], _) = self.lists(inputs);
        are_scalars(scalars).then(|| self.steps(inputs).outputs(op)).transpose()
    }

    fn mask<'a, E: Pod>(&self, inputs: &[Input<'a>]) -> Option<KerasMask<'a, E>> {
        let ([_, mask], _) = self.lists(inputs);
        let [valid, before] = mask else { return None };
        Some(KerasMask { valid: view(valid), before: view(before) })
    }

    /// The shapes of the outputs if the loop has no round: the last states are the first ones, which come after x.
    fn shapes_without_rounds(
        &self,
        op: &'static str,
        inputs: &[Input<'_>],
        states: usize,
    ) -> Result<Option<Vec<Vec<usize>>>, Error> {
        let ([scalars, _], tensors) = self.lists(inputs);
        if !are_scalars(scalars) {
            return Ok(None); // The check of all shapes refuses it.
        }
        let h = self.steps(inputs).without_rounds(op, &self.elements, tensors[0].dims)?;
        Ok(h.map(|h| {
            let states = tensors[1..].iter().take(states).map(|state| state.dims.to_vec());
            [h].into_iter().chain(states).collect()
        }))
    }

    /// Computes a call if the loop has no round.
    fn run_without_rounds(
        &self,
        op: &'static str,
        call: &mut Call<'_, '_, '_>,
    ) -> Result<bool, Error> {
        let states = call.outputs.len() - 1;
        let has_none = self.shapes_without_rounds(op, call.inputs, states)?.is_some();
        if has_none {
            let (_, tensors) = self.lists(call.inputs);
            copy_first_states(call.outputs, &tensors[1..]);
        }
        Ok(has_none)
    }
}

/// `BlockcellKerasLSTM`: x, two states, and three tensors of weights, in a loop.
pub(super) struct KerasLstm(Loop);

impl KerasLstm {
    fn shapes_with(&self, inputs: &[Known], size: Option<usize>) -> Result<Shapes, Error> {
        let (shapes, weights) = self.0.shapes(inputs, 2);
        let weights = weights.try_into().expect("the operation has so many inputs");
        plain::keras_lstm_shapes(&shapes, weights, size)
    }

    /// Scratch memory by the shapes of the inputs, which are checked.
    fn memory(&self, inputs: &[&[usize]]) -> [usize; 2] {
        plain::keras_lstm_scratch(self.0.sizes(inputs, 2))
    }
}

impl Lists for KerasLstm {
    const NAME: &'static str = plain::KERAS_LSTM;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        Ok(KerasLstm(Loop::read(Self::NAME, attributes)?))
    }

    fn shapes(&self, inputs: &[Known]) -> Result<Shapes, Error> {
        self.shapes_with(inputs, None)
    }

    fn shapes_of_call(&self, inputs: &[Input<'_>]) -> Result<Shapes, Error> {
        self.shapes_with(&known(inputs), self.0.size(Self::NAME, inputs)?)
    }

    fn shapes_without_work(&self, inputs: &[Input<'_>]) -> Result<Option<Vec<Vec<usize>>>, Error> {
        self.0.shapes_without_rounds(Self::NAME, inputs, 2)
    }

    fn scratch(&self, inputs: &[&[usize]]) -> usize {
        self.memory(inputs)[1]
    }

    fn numbers(&self, inputs: &[&[usize]]) -> usize {
        self.memory(inputs)[0]
    }

    fn run<E: Element + Pod>(&self, mut call: Call<'_, '_, '_>) -> Result<(), Error> {
        if self.0.run_without_rounds(Self::NAME, &mut call)? {
            return Ok(());
        }
        let dims: Vec<_> = call.inputs.iter().map(|input| input.dims).collect();
        let (_, tensors) = self.0.lists(call.inputs);
        let [x, h_prev, cs_prev, w_x, w_h, b] = tensors else { unreachable!("there are six") };
        let inputs = KerasLstmInputs::<E> {
            mask: self.0.mask(call.inputs),
            x: view(x),
            h_prev: view(h_prev),
            cs_prev: view(cs_prev),
            w_x: view(w_x),
            w_h: view(w_h),
            b: view(b),
        };
        let [h, h_last, cs_last] = call.outputs else { unreachable!("it has three outputs") };
        let outputs = KerasLstmOutputs {
            h: view_mut(h),
            h_last: view_mut(h_last),
            cs_last: view_mut(cs_last),
        };
        let steps = (&self.0.steps(call.inputs), &self.0.elements);
        let memory = parts(call.scratch, self.numbers(&dims));
        plain::keras_lstm(call.context, steps, inputs, outputs, memory)
    }
}

/// `BlockcellKerasGRU`: x, a state, and four tensors of weights, in a loop.
pub(super) struct KerasGru(Loop);

impl KerasGru {
    fn shapes_with(&self, inputs: &[Known], size: Option<usize>) -> Result<Shapes, Error> {
        let (shapes, weights) = self.0.shapes(inputs, 1);
        let weights = weights.try_into().expect("the operation has so many inputs");
        plain::keras_gru_shapes(&shapes, weights, size)
    }

    /// Scratch memory by the shapes of the inputs, which are checked.
    fn memory(&self, inputs: &[&[usize]]) -> [usize; 2] {
        plain::keras_gru_scratch(self.0.sizes(inputs, 1))
    }
}

impl Lists for KerasGru {
    const NAME: &'static str = plain::KERAS_GRU;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        Ok(KerasGru(Loop::read(Self::NAME, attributes)?))
    }

    fn shapes(&self, inputs: &[Known]) -> Result<Shapes, Error> {
        self.shapes_with(inputs, None)
    }

    fn shapes_of_call(&self, inputs: &[Input<'_>]) -> Result<Shapes, Error> {
        self.shapes_with(&known(inputs), self.0.size(Self::NAME, inputs)?)
    }

    fn shapes_without_work(&self, inputs: &[Input<'_>]) -> Result<Option<Vec<Vec<usize>>>, Error> {
        self.0.shapes_without_rounds(Self::NAME, inputs, 1)
    }

    fn scratch(&self, inputs: &[&[usize]]) -> usize {
        self.memory(inputs)[1]
    }

    fn numbers(&self, inputs: &[&[usize]]) -> usize {
        self.memory(inputs)[0]
    }

    fn run<E: Element + Pod>(&self, mut call: Call<'_, '_, '_>) -> Result<(), Error> {
        if self.0.run_without_rounds(Self::NAME, &mut call)? {
            return Ok(());
        }
        let dims: Vec<_> = call.inputs.iter().map(|input| input.dims).collect();
        let (_, tensors) = self.0.lists(call.inputs);
        let [x, h_prev, w_x, w_h, b_x, b_h] = tensors else { unreachable!("there are six") };
        let inputs = KerasGruInputs::<E> {
            mask: self.0.mask(call.inputs),
            x: view(x),
            h_prev: view(h_prev),
            w_x: view(w_x),
            w_h: view(w_h),
            b_x: view(b_x),
            b_h: view(b_h),
        };
        let [h, h_last] = call.outputs else { unreachable!("it has two outputs") };
        let outputs = KerasGruOutputs { h: view_mut(h), h_last: view_mut(h_last) };
        let steps = (&self.0.steps(call.inputs), &self.0.elements);
        let memory = parts(call.scratch, self.numbers(&dims));
        plain::keras_gru(call.context, steps, inputs, outputs, memory)
    }
}
