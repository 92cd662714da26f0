//! The operations on loops over a sequence that graphs write around plain cells.

use std::marker::PhantomData;

use blockcell_kernels::lstm;
use blockcell_kernels::ops::PartialShape as Known;
use blockcell_kernels::plain::{
    self, ElementShapes, GruLayerInputs, GruLayerOutputs, GruLayerShapes, KerasSteps,
    LstmLayerInputs, LstmLayerOutputs, LstmLayerShapes, Steps,
};
use blockcell_kernels::{Element, Error};
use bytemuck::Pod;
use ndarray::{ArrayView3, ArrayViewMut3, Axis};

use super::attributes::Attributes;
use super::ffi::Input;
use super::kernels::{Call, Operation};
use super::lists::{ListsOp, lists, parts, views};
use super::loops::{Cell, Loop, LoopOf, counts, element_shapes};
use super::own_ops::Shapes;
use super::tensors::{small_numbers, view, view_mut};

/// All of them.
pub(super) const ALL: [&dyn Operation; 2] =
    [&ListsOp::<LoopOf<LstmLayer>>(PhantomData), &ListsOp::<LoopOf<GruLayer>>(PhantomData)];

/// The tensors `time`, `rounds` and `sequence_length`, and what is known of the elements of the loop's arrays.
pub(super) struct ArrayLoop {
    rounds: usize,
    sequence_length: usize,
    lists: bool,
    elements: ElementShapes,
}

impl Loop for ArrayLoop {
    fn read(op: &'static str, attributes: Attributes<'_>) -> Result<Self, Error> {
        let [rounds, sequence_length] = counts(op, attributes, "L")?;
        let (lists, elements) = (attributes.flag("lists")?, element_shapes(op, attributes)?);
        Ok(ArrayLoop { rounds, sequence_length, lists, elements })
    }

    fn scalars<'i, T>(&self, inputs: &'i [T]) -> &'i [T] {
        self.cut_inputs(inputs).0[0]
    }

    fn tensors<'i, T>(&self, inputs: &'i [T]) -> &'i [T] {
        self.cut_inputs(inputs).1
    }

    fn sizes(&self, inputs: &[&[usize]], _states: usize) -> [usize; 4] {
        let tensors = self.tensors(inputs);
        let ([time, batch, input], [_, cell]) = (tensors[0], tensors[1]) else {
            unreachable!("the ranks were checked")
        };
        [*time, *batch, *input, *cell]
    }

    fn h_without_rounds(
        &self,
        op: &'static str,
        inputs: &[Input<'_>],
        x: &[usize],
    ) -> Result<Option<Vec<usize>>, Error> {
        let steps = self.steps(inputs);
        if self.lists {
            of_lists(&steps).without_rounds(op, &self.elements, x)
        } else {
            steps.without_rounds(op, &self.elements, x)
        }
    }

    fn size(&self, op: &'static str, inputs: &[Input<'_>]) -> Result<Option<usize>, Error> {
        self.lists.then(|| of_lists(&self.steps(inputs)).outputs(op)).transpose()
    }

    /// Of lists, there must be a step of x for each round. Arrays have as many steps as x, which shapes tell.
    fn check_numbers(&self, op: &'static str, inputs: &[Input<'_>]) -> Result<(), Error> {
        let (rounds, time) = (self.steps(inputs).rounds, self.tensors(inputs)[0].dims[0]);
        if self.lists && usize::try_from(rounds).is_ok_and(|rounds| rounds > time) {
            let got = rounds.into();
            return Err(Error::Value { op, tensor: "rounds", index: None, time, got });
        }
        Ok(())
    }
}

impl ArrayLoop {
    /// Cuts a call's inputs into the scalars, the lengths, and the rest.
    fn cut_inputs<'i, T>(&self, inputs: &'i [T]) -> ([&'i [T]; 2], &'i [T]) {
        lists(inputs, [1 + self.rounds, self.sequence_length])
    }

    /// The shapes of the outputs of a cell: of lists, h has its own number of steps.
    fn shapes(&self, shapes: impl Into<Shapes>, size: Option<usize>) -> Shapes {
        let mut shapes = shapes.into();
        if self.lists {
            shapes[0][0] = size;
        }
        shapes
    }

    /// The steps of a call with a round, and x and h of these. Of lists, what h has beyond the last round is zero, and
    /// nobody looks at the rest of x.
    fn cut<'a, E: Element + Pod>(
        &self,
        inputs: &[Input<'a>],
        h: ArrayViewMut3<'a, E>,
    ) -> (Steps, ArrayView3<'a, E>, ArrayViewMut3<'a, E>) {
        let (mut steps, tensors) = (self.steps(inputs), self.tensors(inputs));
        let x: ArrayView3<'a, E> = view(&tensors[0]);
        if !self.lists {
            return (steps, x, h);
        }
        let rounds = usize::try_from(steps.rounds).expect("there is a round");
        let (h, mut rest) = h.split_at(Axis(0), rounds);
        rest.fill(E::zeroed());
        steps.time = steps.rounds;
        (steps, x.split_at(Axis(0), rounds).0, h)
    }

    fn steps(&self, inputs: &[Input<'_>]) -> Steps {
        let ([scalars, lengths], tensors) = self.cut_inputs(inputs);
        let batch = tensors[0].dims.get(1).copied().unwrap_or(0);
        let of_rows = |lengths: &Input<'_>| {
            // A scalar serves all rows.
            let count = if lengths.dims.is_empty() { batch } else { 1 };
            small_numbers(lengths).repeat(count)
        };
        let mut scalars = scalars.iter().flat_map(small_numbers).map(i64::from);
        Steps {
            time: scalars.next().expect("it was checked"),
            rounds: scalars.min().expect("it was checked"),
            sequence_length: lengths.first().map(of_rows),
        }
    }
}

/// The steps of a loop whose arrays are lists, as those of Keras are.
fn of_lists(steps: &Steps) -> KerasSteps {
    KerasSteps { size: steps.time, rounds: steps.rounds, last_only: false, repeats: false }
}

/// `BlockcellLSTMLayer`: the loop, five tensors, and three peepholes or nothing.
pub(super) struct LstmLayer {
    peepholes: usize,
    attributes: lstm::Attributes,
}

impl Cell for LstmLayer {
    type Loop = ArrayLoop;
    const NAME: &'static str = plain::LSTM_LAYER;
    const STATES: usize = 2;
    const SCRATCH: fn([usize; 4]) -> [usize; 2] = plain::lstm_layer_scratch;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        let peepholes = attributes.count("P")?;
        if !matches!(peepholes, 0 | 3) {
            let expected = "P must be 0 or 3".to_owned();
            return Err(Error::Attribute { op: Self::NAME, expected, got: peepholes.to_string() });
        }
        let attributes = lstm::Attributes {
            use_peephole: peepholes > 0,
            forget_bias: attributes.float("forget_bias")?,
            cell_clip: attributes.float("cell_clip")?,
        };
        Ok(LstmLayer { peepholes, attributes })
    }

    fn shapes(
        &self,
        steps: &ArrayLoop,
        inputs: &[Known],
        size: Option<usize>,
    ) -> Result<Shapes, Error> {
        let ([scalars, sequence_length], tensors) = steps.cut_inputs(inputs);
        let ([fixed], peepholes) = lists(tensors, [5]);
        let fixed = fixed.try_into().expect("as many as were cut off");
        let elements = &steps.elements;
        let shapes = LstmLayerShapes { scalars, sequence_length, fixed, peepholes, elements };
        Ok(steps.shapes(plain::lstm_layer_shapes(&shapes)?, size))
    }

    fn run<E: Element + Pod>(
        &self,
        steps: &ArrayLoop,
        call: Call<'_, '_, '_>,
        numbers: usize,
    ) -> Result<(), Error> {
        let ([fixed], peepholes) = lists(steps.tensors(call.inputs), [5]);
        let [h, h_last, cs_last] = call.outputs else { unreachable!("it has three outputs") };
        let (rounds, x, h) = steps.cut(call.inputs, view_mut(h));
        let inputs = LstmLayerInputs::<E> {
            x,
            h_prev: view(&fixed[1]),
            cs_prev: view(&fixed[2]),
            w: view(&fixed[3]),
            b: view(&fixed[4]),
            peepholes: views(peepholes).try_into().ok().filter(|_| self.peepholes > 0),
        };
        let outputs = LstmLayerOutputs { h, h_last: view_mut(h_last), cs_last: view_mut(cs_last) };
        let (loops, memory) = ((&rounds, &steps.elements), parts(call.scratch, numbers));
        plain::lstm_layer(call.context, &self.attributes, loops, inputs, outputs, memory)
    }
}

/// `BlockcellGRULayer`: the loop and six tensors.
pub(super) struct GruLayer;

impl Cell for GruLayer {
    type Loop = ArrayLoop;
    const NAME: &'static str = plain::GRU_LAYER;
    const STATES: usize = 1;
    const SCRATCH: fn([usize; 4]) -> [usize; 2] = plain::gru_layer_scratch;

    fn read(_: Attributes<'_>) -> Result<Self, Error> {
        Ok(GruLayer)
    }

    fn shapes(
        &self,
        steps: &ArrayLoop,
        inputs: &[Known],
        size: Option<usize>,
    ) -> Result<Shapes, Error> {
        let ([scalars, sequence_length], fixed) = steps.cut_inputs(inputs);
        let fixed = fixed.try_into().expect("the operation has so many inputs");
        let elements = &steps.elements;
        let shapes = GruLayerShapes { scalars, sequence_length, fixed, elements };
        Ok(steps.shapes(plain::gru_layer_shapes(&shapes)?, size))
    }

    fn run<E: Element + Pod>(
        &self,
        steps: &ArrayLoop,
        call: Call<'_, '_, '_>,
        numbers: usize,
    ) -> Result<(), Error> {
        let tensors = steps.tensors(call.inputs);
        let [_, h_prev, w_ru, w_c, b_ru, b_c] = tensors else { unreachable!("there are six") };
        let [h, h_last] = call.outputs else { unreachable!("it has two outputs") };
        let (rounds, x, h) = steps.cut(call.inputs, view_mut(h));
        let inputs = GruLayerInputs::<E> {
            x,
            h_prev: view(h_prev),
            w_ru: view(w_ru),
            w_c: view(w_c),
            b_ru: view(b_ru),
            b_c: view(b_c),
        };
        let outputs = GruLayerOutputs { h, h_last: view_mut(h_last) };
        let (loops, memory) = ((&rounds, &steps.elements), parts(call.scratch, numbers));
        plain::gru_layer(call.context, loops, inputs, outputs, memory)
    }
}
