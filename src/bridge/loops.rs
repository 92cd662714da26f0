//! The operations on loops over a sequence.

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
use super::ffi::{Input, Output};
use super::kernels::{Call, Operation};
use super::lists::{Lists, ListsOp, are_scalars, known, lists, parts, views};
use super::own_ops::Shapes;
use super::tensors::{small_numbers, view, view_mut};

/// All of them.
pub(super) const ALL: [&dyn Operation; 2] =
    [&ListsOp::<LstmLayer>(PhantomData), &ListsOp::<GruLayer>(PhantomData)];

/// What both have in common: the tensors `time`, `rounds` and `sequence_length`, and what is known of the elements of
/// the loop's arrays.
struct Loop {
    rounds: usize,
    sequence_length: usize,
    lists: bool,
    elements: ElementShapes,
}

impl Loop {
    fn read(op: &'static str, attributes: Attributes<'_>) -> Result<Self, Error> {
        let (rounds, sequence_length) = (attributes.count("R")?, attributes.count("L")?);
        if rounds == 0 || sequence_length > 1 {
            let expected = "R must be at least 1, and L 0 or 1".to_owned();
            let got = format!("{rounds} and {sequence_length}");
            return Err(Error::Attribute { op, expected, got });
        }
        let (lists, elements) = (attributes.flag("lists")?, element_shapes(op, attributes)?);
        Ok(Loop { rounds, sequence_length, lists, elements })
    }

    /// Cuts a call's inputs into the scalars, the lengths, and the rest.
    fn lists<'i, T>(&self, inputs: &'i [T]) -> ([&'i [T]; 2], &'i [T]) {
        lists(inputs, [1 + self.rounds, self.sequence_length])
    }

    /// The time, batch, input and cell of inputs whose shapes are checked: x and a state follow the numbers.
    fn sizes(&self, inputs: &[&[usize]]) -> [usize; 4] {
        let (_, tensors) = self.lists(inputs);
        let ([time, batch, input], [_, cell]) = (tensors[0], tensors[1]) else {
            unreachable!("the ranks were checked")
        };
        [*time, *batch, *input, *cell]
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
        let (steps, x) = (self.steps(inputs), tensors[0].dims);
        let h = match self.lists {
            true => of_lists(&steps).without_rounds(op, &self.elements, x)?,
            false => steps.without_rounds(op, &self.elements, x)?,
        };
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

    /// The shapes of a call's outputs, given what follows from those of its inputs. Of lists, h has its own number
    /// of steps.
    fn shapes_of_call(
        &self,
        op: &'static str,
        inputs: &[Input<'_>],
        mut shapes: Shapes,
    ) -> Result<Shapes, Error> {
        if self.lists {
            let (steps, (_, tensors)) = (self.steps(inputs), self.lists(inputs));
            let size = of_lists(&steps).outputs(op)?;
            shapes[0][0] = Some(size);
            let time = tensors[0].dims[0];
            let (tensor, got) = ("rounds", steps.rounds.into());
            if usize::try_from(steps.rounds).is_ok_and(|rounds| rounds > time) {
                return Err(Error::Value { op, tensor, index: None, time, got });
            }
        }
        Ok(shapes)
    }

    /// The steps of a call with a round, and x and h of these. Of lists, what h has beyond the last round is zero, and
    /// nobody looks at the rest of x.
    fn cut<'a, E: Element + Pod>(
        &self,
        inputs: &[Input<'a>],
        h: ArrayViewMut3<'a, E>,
    ) -> (Steps, ArrayView3<'a, E>, ArrayViewMut3<'a, E>) {
        let (mut steps, (_, tensors)) = (self.steps(inputs), self.lists(inputs));
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
        let ([scalars, lengths], tensors) = self.lists(inputs);
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
pub(super) fn copy_first_states(outputs: &mut [Output<'_>], states: &[Input<'_>]) {
    let (h, last) = outputs.split_first_mut().expect("h is the first output");
    h.data.fill(0);
    for (output, first) in last.iter_mut().zip(states) {
        output.data.copy_from_slice(first.data);
    }
}

/// `BlockcellLSTMLayer`: the loop, five tensors, and three peepholes or nothing.
pub(super) struct LstmLayer {
    steps: Loop,
    peepholes: usize,
    attributes: lstm::Attributes,
}

impl LstmLayer {
    /// Scratch memory by the shapes of the inputs, which are checked.
    fn memory(&self, inputs: &[&[usize]]) -> [usize; 2] {
        plain::lstm_layer_scratch(self.steps.sizes(inputs))
    }
}

impl Lists for LstmLayer {
    const NAME: &'static str = plain::LSTM_LAYER;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        let steps = Loop::read(Self::NAME, attributes)?;
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
        Ok(LstmLayer { steps, peepholes, attributes })
    }

    fn shapes(&self, inputs: &[Known]) -> Result<Shapes, Error> {
        let ([scalars, sequence_length], tensors) = self.steps.lists(inputs);
        let ([fixed], peepholes) = lists(tensors, [5]);
        let fixed = fixed.try_into().expect("as many as were cut off");
        let elements = &self.steps.elements;
        let shapes = LstmLayerShapes { scalars, sequence_length, fixed, peepholes, elements };
        let mut shapes: Shapes = plain::lstm_layer_shapes(&shapes)?.into();
        if self.steps.lists {
            shapes[0][0] = None;
        }
        Ok(shapes)
    }

    fn shapes_of_call(&self, inputs: &[Input<'_>]) -> Result<Shapes, Error> {
        self.steps.shapes_of_call(Self::NAME, inputs, self.shapes(&known(inputs))?)
    }

    fn shapes_without_work(&self, inputs: &[Input<'_>]) -> Result<Option<Vec<Vec<usize>>>, Error> {
        self.steps.shapes_without_rounds(Self::NAME, inputs, 2)
    }

    fn scratch(&self, inputs: &[&[usize]]) -> usize {
        self.memory(inputs)[1]
    }

    fn numbers(&self, inputs: &[&[usize]]) -> usize {
        self.memory(inputs)[0]
    }

    fn run<E: Element + Pod>(&self, mut call: Call<'_, '_, '_>) -> Result<(), Error> {
        if self.steps.run_without_rounds(Self::NAME, &mut call)? {
            return Ok(());
        }
        let dims: Vec<_> = call.inputs.iter().map(|input| input.dims).collect();
        let (_, tensors) = self.steps.lists(call.inputs);
        let ([fixed], peepholes) = lists(tensors, [5]);
        let [h, h_last, cs_last] = call.outputs else { unreachable!("it has three outputs") };
        let (steps, x, h) = self.steps.cut(call.inputs, view_mut(h));
        let inputs = LstmLayerInputs::<E> {
            x,
            h_prev: view(&fixed[1]),
            cs_prev: view(&fixed[2]),
            w: view(&fixed[3]),
            b: view(&fixed[4]),
            peepholes: views(peepholes).try_into().ok().filter(|_| self.peepholes > 0),
        };
        let outputs = LstmLayerOutputs { h, h_last: view_mut(h_last), cs_last: view_mut(cs_last) };
        let steps = (&steps, &self.steps.elements);
        let memory = parts(call.scratch, self.numbers(&dims));
        plain::lstm_layer(call.context, &self.attributes, steps, inputs, outputs, memory)
    }
}

/// `BlockcellGRULayer`: the loop and six tensors.
pub(super) struct GruLayer {
    steps: Loop,
}

impl GruLayer {
    /// Scratch memory by the shapes of the inputs, which are checked.
    fn memory(&self, inputs: &[&[usize]]) -> [usize; 2] {
        plain::gru_layer_scratch(self.steps.sizes(inputs))
    }
}

impl Lists for GruLayer {
    const NAME: &'static str = plain::GRU_LAYER;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        Ok(GruLayer { steps: Loop::read(Self::NAME, attributes)? })
    }

    fn shapes(&self, inputs: &[Known]) -> Result<Shapes, Error> {
        let ([scalars, sequence_length], fixed) = self.steps.lists(inputs);
        let fixed = fixed.try_into().expect("the operation has so many inputs");
        let elements = &self.steps.elements;
        let shapes = GruLayerShapes { scalars, sequence_length, fixed, elements };
        let mut shapes: Shapes = plain::gru_layer_shapes(&shapes)?.into();
        if self.steps.lists {
            shapes[0][0] = None;
        }
        Ok(shapes)
    }

    fn shapes_of_call(&self, inputs: &[Input<'_>]) -> Result<Shapes, Error> {
        self.steps.shapes_of_call(Self::NAME, inputs, self.shapes(&known(inputs))?)
    }

    fn shapes_without_work(&self, inputs: &[Input<'_>]) -> Result<Option<Vec<Vec<usize>>>, Error> {
        self.steps.shapes_without_rounds(Self::NAME, inputs, 1)
    }

    fn scratch(&self, inputs: &[&[usize]]) -> usize {
        self.memory(inputs)[1]
    }

    fn numbers(&self, inputs: &[&[usize]]) -> usize {
        self.memory(inputs)[0]
    }

    fn run<E: Element + Pod>(&self, mut call: Call<'_, '_, '_>) -> Result<(), Error> {
        if self.steps.run_without_rounds(Self::NAME, &mut call)? {
            return Ok(());
        }
        let dims: Vec<_> = call.inputs.iter().map(|input| input.dims).collect();
        let (_, tensors) = self.steps.lists(call.inputs);
        let [_, h_prev, w_ru, w_c, b_ru, b_c] = tensors else { unreachable!("there are six") };
        let [h, h_last] = call.outputs else { unreachable!("it has two outputs") };
        let (steps, x, h) = self.steps.cut(call.inputs, view_mut(h));
        let inputs = GruLayerInputs::<E> {
            x,
            h_prev: view(h_prev),
            w_ru: view(w_ru),
            w_c: view(w_c),
            b_ru: view(b_ru),
            b_c: view(b_c),
        };
        let outputs = GruLayerOutputs { h, h_last: view_mut(h_last) };
        let steps = (&steps, &self.steps.elements);
        let memory = parts(call.scratch, self.numbers(&dims));
        plain::gru_layer(call.context, steps, inputs, outputs, memory)
    }
}
