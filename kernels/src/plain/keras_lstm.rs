//! `BlockcellKerasLSTM`: a loop over a sequence whose rounds are steps of Keras's LSTM cell.

use ndarray::{ArrayView1, ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis};

use super::keras::{self, KerasMask, KerasShapes, KerasSteps, Pieces, Taken};
use super::steps::{self, ElementShapes};
use crate::block_lstm::forward::{LstmSequence, forward_scratch};
use crate::lstm::Attributes;
use crate::lstm::step::{IFCO, LstmStep};
use crate::ops::{PartialShape, Sizes};
use crate::recurrence::{Lengths, last_states};
use crate::shapes::{Dim, bind, check_layout, check_output, shape_of};
use crate::{Context, Element, Error, Storage};

/// The operation's name in TensorFlow.
pub const KERAS_LSTM: &str = "BlockcellKerasLSTM";

/// Inputs of [`keras_lstm`]. Where the batch is larger, one row of a tensor stands for all.
#[derive(Clone, Debug)]
pub struct KerasLstmInputs<'a, E> {
    /// None if all rows take part in all steps.
    pub mask: Option<KerasMask<'a, E>>,
    /// `[time, batch, input]`
    pub x: ArrayView3<'a, E>,
    /// Output before the first step, `[batch, cell]`.
    pub h_prev: ArrayView2<'a, E>,
    /// Cell state before the first step, `[batch, cell]`.
    pub cs_prev: ArrayView2<'a, E>,
    /// Weights of x, `[input, 4 * cell]`: of the input gate, forget gate, cell input and output gate.
    pub w_x: ArrayView2<'a, E>,
    /// Weights of the state, `[cell, 4 * cell]`.
    pub w_h: ArrayView2<'a, E>,
    /// Biases, `[4 * cell]`.
    pub b: ArrayView1<'a, E>,
}

/// Outputs of [`keras_lstm`]. Previous contents do not matter.
#[derive(Debug)]
pub struct KerasLstmOutputs<'a, E> {
    /// Outputs of the steps, `[size, batch, cell]`: zero from the last round on.
    pub h: ArrayViewMut3<'a, E>,
    /// Output of each row's last step, `[batch, cell]`.
    pub h_last: ArrayViewMut2<'a, E>,
    /// Cell state after each row's last step, `[batch, cell]`.
    pub cs_last: ArrayViewMut2<'a, E>,
}

/// The shapes of [`keras_lstm`]'s outputs, in their order, as far as they follow from what is known of the inputs'
/// shapes: those of `shapes`, and of `w_x`, `w_h` and b.
///
/// # Errors
///
/// [`Error::ListShape`] for the first tensor at odds with those before it, [`Error::Overflow`] for an output that
/// cannot be addressed.
pub fn keras_lstm_shapes(
    shapes: &KerasShapes<'_>,
    weights: &[PartialShape; 3],
    size: Option<usize>,
) -> Result<Vec<Vec<Option<usize>>>, Error> {
    let op = KERAS_LSTM;
    let [batch, mut input, mut cell] = keras::sizes(op, shapes)?;
    let mut gates = cell.map(|cell| cell.saturating_mul(4));
    let [w_x, w_h, b] = weights;
    let dims = &mut [Dim::new("input", &mut input), Dim::new("4 * cell", &mut gates)];
    bind(op, ("w_x", 0), w_x, dims)?;
    let dims = &mut [Dim::new("cell", &mut cell), Dim::new("4 * cell", &mut gates)];
    bind(op, ("w_h", 0), w_h, dims)?;
    bind(op, ("b", 0), b, &mut [Dim::new("4 * cell", &mut gates)])?;
    keras::outputs(op, size, [batch, cell], shapes.states)
}

/// How much scratch memory [`keras_lstm`] needs: so many numbers, and so many elements.
#[must_use]
pub fn keras_lstm_scratch([time, batch, input, cell]: [usize; 4]) -> [usize; 2] {
    let states = batch.saturating_mul(cell);
    // First states, gates, and the states and outputs of all steps.
    let elements = states.saturating_mul(time.saturating_mul(2).saturating_add(8));
    let x = time.saturating_mul(batch).saturating_mul(input);
    [forward_scratch(&sizes([time, batch, input, cell])), elements.saturating_add(x)]
}

fn sizes([time, batch, input_size, cell_size]: [usize; 4]) -> Sizes {
    Sizes { time, batch, input_size, cell_size, optional: [cell_size; 3] }
}

/// `BlockcellKerasLSTM`: the steps of [`crate::lstm`] in a loop, the state of each being that of the step before, with
/// the gates in the order of `BlockLSTMV2`, and without peepholes, clipping and forget bias.
///
/// A row keeps its state in steps that are masked.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, more rounds than x or h have steps, or too short a scratch memory; nothing
/// is written then.
pub fn keras_lstm<E: Element>(
    context: &Context<'_>,
    (steps, elements): (&KerasSteps, &ElementShapes),
    inputs: KerasLstmInputs<'_, E>,
    outputs: KerasLstmOutputs<'_, E>,
    (scratch, memory): (&mut [f32], &mut [E]),
) -> Result<(), Error> {
    let op = KERAS_LSTM;
    let KerasLstmInputs { mask, x, h_prev, cs_prev, w_x, w_h, b } = &inputs;
    let (size, rounds) = (steps.outputs(op)?, steps.rounds(op, x.len_of(Axis(0)))?);
    let mask = keras::check_mask(op, mask.as_ref(), rounds)?;
    let states = [shape_of(h_prev), shape_of(cs_prev)];
    let x_shape = shape_of(x);
    let shapes = KerasShapes { scalars: &[], mask: &mask, x: &x_shape, states: &states, elements };
    let weights = [shape_of(w_x), shape_of(w_h), shape_of(b)];
    let known = keras_lstm_shapes(&shapes, &weights, Some(size))?;
    check_output(op, ("h", 0), &outputs.h, &known[0])?;
    check_output(op, ("h_last", 0), &outputs.h_last, &known[1])?;
    check_output(op, ("cs_last", 0), &outputs.cs_last, &known[2])?;
    check_layout(op, "h", &outputs.h)?;
    check_layout(op, "h_last", &outputs.h_last)?;
    check_layout(op, "cs_last", &outputs.cs_last)?;
    for (view, name) in [(h_prev, "h_prev"), (cs_prev, "cs_prev"), (w_x, "w_x"), (w_h, "w_h")] {
        check_layout(op, name, view)?;
    }
    check_layout(op, "x", x)?;
    check_layout(op, "b", b)?;
    let (_, batch, cell) = outputs.h.dim();
    let needed = keras_lstm_scratch([x.dim().0, batch, x.dim().2, cell]);
    steps::check_scratch(op, needed, [scratch.len(), memory.len()])?;
    if batch > 0 && cell > 0 {
        E::plain_keras_lstm(context, steps, inputs, outputs, scratch, memory);
    }
    Ok(())
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    steps: &KerasSteps,
    inputs: KerasLstmInputs<'_, E>,
    outputs: KerasLstmOutputs<'_, E>,
    scratch: &mut [f32],
    memory: &mut [E],
) {
    let KerasLstmInputs { mask, x, h_prev, cs_prev, w_x, w_h, b } = inputs;
    let KerasLstmOutputs { mut h, h_last, cs_last } = outputs;
    let (_, batch, cell) = h.dim();
    let rounds = usize::try_from(steps.rounds).unwrap_or(0);
    let taken = Taken::of(mask.as_ref(), rounds, batch);
    let mut pieces = Pieces::new(memory);
    let h_prev = pieces.whole(h_prev, batch);
    let cs_prev = pieces.whole(cs_prev, batch);
    let before = mask.map(|mask| pieces.whole(mask.before, batch));
    let x = taken.x(x, rounds, &mut pieces);
    let [i, f, o, ci, co] = [(); 5].map(|()| pieces.take([1, batch, cell]));
    let mut cs = pieces.take([rounds, batch, cell]);
    let mut own = (!taken.in_place(steps)).then(|| pieces.take([rounds, batch, cell]));
    let attributes = Attributes { use_peephole: false, forget_bias: 0.0, cell_clip: -1.0 };
    // Without peepholes nobody reads these.
    let step = LstmStep { attributes, order: IFCO, b, peepholes: [b; 3] };
    let lengths = Lengths::new(ArrayView1::from(&taken.lengths));
    let sequence = LstmSequence { lengths, x, cs_prev, h_prev, w_x: Some(w_x), w_h, step };
    let outputs_of_steps = own.as_mut().map_or_else(|| h.view_mut(), |own| own.view_mut());
    let all = [i, cs.view_mut(), f, o, ci, co, outputs_of_steps];
    sequence.compute(context, all, None, scratch);
    let outputs_of_steps = own.as_ref().map_or_else(|| h.view(), |own| own.view());
    last_states(lengths, h_prev, outputs_of_steps, h_last);
    last_states(lengths, cs_prev, cs.view(), cs_last);
    if own.is_some() {
        h.fill(E::ZERO);
    }
    taken.spread(steps, before, own.as_ref().map(|own| own.view()), h);
}
