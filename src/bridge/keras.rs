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
use super::lists::{ListsOp, parts};
use super::loops::{Cell, Loop, LoopOf, counts, element_shapes};
use super::own_ops::Shapes;
use super::tensors::{small_numbers, view, view_mut};

/// All of them.
pub(super) const ALL: [&dyn Operation; 2] =
    [&ListsOp::<LoopOf<KerasLstm>>(PhantomData), &ListsOp::<LoopOf<KerasGru>>(PhantomData)];

/// The tensors `size`, `rounds`, `mask` and `before`, and what is known of the elements of the loop's lists.
pub(super) struct KerasLoop {
    rounds: usize,
    mask: usize,
    last_only: bool,
    repeats: bool,
    elements: ElementShapes,
}

impl Loop for KerasLoop {
    fn read(op: &'static str, attributes: Attributes<'_>) -> Result<Self, Error> {
        let [rounds, mask] = counts(op, attributes, "M")?;
        Ok(KerasLoop {
            rounds,
            mask,
            last_only: attributes.flag("last_only")?,
            repeats: attributes.flag("repeats")?,
            elements: element_shapes(op, attributes)?,
        })
    }

    fn scalars<'i, T>(&self, inputs: &'i [T]) -> &'i [T] {
        self.cut_inputs(inputs).0[0]
    }

    fn tensors<'i, T>(&self, inputs: &'i [T]) -> &'i [T] {
        self.cut_inputs(inputs).1
    }

    /// The batch is that of the tensor that has the largest.
    fn sizes(&self, inputs: &[&[usize]], states: usize) -> [usize; 4] {
        let ([_, mask], tensors) = self.cut_inputs(inputs);
        let ([time, rows, input], [_, cell]) = (tensors[0], tensors[1]) else {
            unreachable!("the ranks were checked")
        };
        let of_mask = mask.iter().zip([1, 0]).map(|(tensor, axis)| tensor[axis]);
        let of_states = tensors[1..=states].iter().map(|state| state[0]);
        let mut batches = of_mask.chain(of_states).filter(|&batch| batch != 1);
        let batch = if *rows == 1 { batches.next().unwrap_or(1) } else { *rows };
        [*time, batch, *input, *cell]
    }

    fn h_without_rounds(
        &self,
        op: &'static str,
        inputs: &[Input<'_>],
        x: &[usize],
    ) -> Result<Option<Vec<usize>>, Error> {
        self.steps(inputs).without_rounds(op, &self.elements, x)
    }

    fn size(&self, op: &'static str, inputs: &[Input<'_>]) -> Result<Option<usize>, Error> {
        self.steps(inputs).outputs(op).map(Some)
    }
}

impl KerasLoop {
    /// Cuts a call's inputs into the scalars, mask and output before, and the rest, which is between them.
    fn cut_inputs<'i, T>(&self, inputs: &'i [T]) -> ([&'i [T]; 2], &'i [T]) {
        let (inputs, mask) = inputs.split_at(inputs.len() - 2 * self.mask);
        let (scalars, tensors) = inputs.split_at(1 + self.rounds);
        ([scalars, mask], tensors)
    }

    fn shapes<'s>(&'s self, inputs: &'s [Known], states: usize) -> (KerasShapes<'s>, &'s [Known]) {
        let ([scalars, mask], tensors) = self.cut_inputs(inputs);
        let (x, tensors) = tensors.split_first().expect("the operation has x");
        let (states, weights) = tensors.split_at(states);
        (KerasShapes { scalars, mask, x, states, elements: &self.elements }, weights)
    }

    fn steps(&self, inputs: &[Input<'_>]) -> KerasSteps {
        let mut scalars = self.scalars(inputs).iter().flat_map(small_numbers).map(i64::from);
        KerasSteps {
            size: scalars.next().expect("it was checked"),
            rounds: scalars.min().expect("it was checked"),
            last_only: self.last_only,
            repeats: self.repeats,
        }
    }

    fn mask<'a, E: Pod>(&self, inputs: &[Input<'a>]) -> Option<KerasMask<'a, E>> {
        let ([_, mask], _) = self.cut_inputs(inputs);
        let [valid, before] = mask else { return None };
        Some(KerasMask { valid: view(valid), before: view(before) })
    }
}

/// `BlockcellKerasLSTM`: x, two states, and three tensors of weights, in a loop.
pub(super) struct KerasLstm;

impl Cell for KerasLstm {
    type Loop = KerasLoop;
    const NAME: &'static str = plain::KERAS_LSTM;
    const STATES: usize = 2;
    const SCRATCH: fn([usize; 4]) -> [usize; 2] = plain::keras_lstm_scratch;

    fn read(_: Attributes<'_>) -> Result<Self, Error> {
        Ok(KerasLstm)
    }

    fn shapes(
        &self,
        steps: &KerasLoop,
        inputs: &[Known],
        size: Option<usize>,
    ) -> Result<Shapes, Error> {
        let (shapes, weights) = steps.shapes(inputs, Self::STATES);
        let weights = weights.try_into().expect("the operation has so many inputs");
        plain::keras_lstm_shapes(&shapes, weights, size)
    }

    fn run<E: Element + Pod>(
        &self,
        steps: &KerasLoop,
        call: Call<'_, '_, '_>,
        numbers: usize,
    ) -> Result<(), Error> {
        let tensors = steps.tensors(call.inputs);
        let [x, h_prev, cs_prev, w_x, w_h, b] = tensors else { unreachable!("there are six") };
        let inputs = KerasLstmInputs::<E> {
            mask: steps.mask(call.inputs),
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
        let rounds = steps.steps(call.inputs);
        let (loops, memory) = ((&rounds, &steps.elements), parts(call.scratch, numbers));
        plain::keras_lstm(call.context, loops, inputs, outputs, memory)
    }
}

/// `BlockcellKerasGRU`: x, a state, and four tensors of weights, in a loop.
pub(super) struct KerasGru;

impl Cell for KerasGru {
    type Loop = KerasLoop;
    const NAME: &'static str = plain::KERAS_GRU;
    const STATES: usize = 1;
    const SCRATCH: fn([usize; 4]) -> [usize; 2] = plain::keras_gru_scratch;

    fn read(_: Attributes<'_>) -> Result<Self, Error> {
        Ok(KerasGru)
    }

    fn shapes(
        &self,
        steps: &KerasLoop,
        inputs: &[Known],
        size: Option<usize>,
    ) -> Result<Shapes, Error> {
        let (shapes, weights) = steps.shapes(inputs, Self::STATES);
        let weights = weights.try_into().expect("the operation has so many inputs");
        plain::keras_gru_shapes(&shapes, weights, size)
    }

    fn run<E: Element + Pod>(
        &self,
        steps: &KerasLoop,
        call: Call<'_, '_, '_>,
        numbers: usize,
    ) -> Result<(), Error> {
        let tensors = steps.tensors(call.inputs);
        let [x, h_prev, w_x, w_h, b_x, b_h] = tensors else { unreachable!("there are six") };
        let inputs = KerasGruInputs::<E> {
            mask: steps.mask(call.inputs),
            x: view(x),
            h_prev: view(h_prev),
            w_x: view(w_x),
            w_h: view(w_h),
            b_x: view(b_x),
            b_h: view(b_h),
        };
        let [h, h_last] = call.outputs else { unreachable!("it has two outputs") };
        let outputs = KerasGruOutputs { h: view_mut(h), h_last: view_mut(h_last) };
        let rounds = steps.steps(call.inputs);
        let (loops, memory) = ((&rounds, &steps.elements), parts(call.scratch, numbers));
        plain::keras_gru(call.context, loops, inputs, outputs, memory)
    }
}
