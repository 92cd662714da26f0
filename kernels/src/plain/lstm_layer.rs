//! `BlockcellLSTMLayer`: a loop over a sequence whose rounds are steps of a plain LSTM cell.

use ndarray::{ArrayView1, ArrayView2, ArrayView3, ArrayViewD, ArrayViewMut2, ArrayViewMut3, Axis};

use super::lstm::{LstmCellShapes, broadcast};
use super::steps::{self, ElementShapes, Steps};
use crate::block_lstm::forward::{LstmSequence, forward_scratch};
use crate::lstm::Attributes;
use crate::lstm::step::{ICFO, LstmStep};
use crate::ops::{PartialShape, Sizes};
use crate::recurrence::{Lengths, last_states};
use crate::shapes::{Dim, bind, check_layout, check_output, check_size, shape_of};
use crate::{Context, Element, Error, Storage};

/// The operation's name in TensorFlow.
pub const LSTM_LAYER: &str = "BlockcellLSTMLayer";

/// Inputs of [`lstm_layer`].
#[derive(Clone, Debug)]
pub struct LstmLayerInputs<'a, E> {
    /// `[time, batch, input]`
    pub x: ArrayView3<'a, E>,
    /// Output before the first step, `[batch, cell]`.
    pub h_prev: ArrayView2<'a, E>,
    /// Cell state before the first step, `[batch, cell]`, or of a shape that broadcasts to that.
    pub cs_prev: ArrayViewD<'a, E>,
    /// Weights, `[input + cell, 4 * cell]`.
    pub w: ArrayView2<'a, E>,
    /// Biases, `[4 * cell]`.
    pub b: ArrayView1<'a, E>,
    /// Peephole weights of the input, forget and output gate, `[cell]` each.
    pub peepholes: Option<[ArrayView1<'a, E>; 3]>,
}

/// Outputs of [`lstm_layer`]. Previous contents do not matter.
#[derive(Debug)]
pub struct LstmLayerOutputs<'a, E> {
    /// Outputs of the steps, `[time, batch, cell]`: zero in steps that a row does not take part in.
    pub h: ArrayViewMut3<'a, E>,
    /// Output of each row's last step, `[batch, cell]`.
    pub h_last: ArrayViewMut2<'a, E>,
    /// Cell state after each row's last step, `[batch, cell]`.
    pub cs_last: ArrayViewMut2<'a, E>,
}

/// What is known of the shapes of the inputs.
#[derive(Clone, Debug)]
pub struct LstmLayerShapes<'s> {
    /// Those of time, and of each number of rounds.
    pub scalars: &'s [PartialShape],
    /// That of `sequence_length`, if there is one.
    pub sequence_length: &'s [PartialShape],
    /// Those of x, `h_prev`, `cs_prev`, w and b.
    pub fixed: &'s [PartialShape; 5],
    /// Those of the peephole weights, if there are any.
    pub peepholes: &'s [PartialShape],
    /// What is known of the elements of the loop's arrays.
    pub elements: &'s ElementShapes,
}

/// The shapes of [`lstm_layer`]'s outputs, in their order, as far as they follow from what is known of the
/// inputs' shapes.
///
/// # Errors
///
/// [`Error::ListShape`] for the first tensor at odds with those before it, [`Error::Overflow`] for an output that
/// cannot be addressed.
pub fn lstm_layer_shapes(shapes: &LstmLayerShapes<'_>) -> Result<[Vec<Option<usize>>; 3], Error> {
    let op = LSTM_LAYER;
    let [x, h_prev, cs_prev, w, b] = shapes.fixed;
    let [time, mut batch, input] =
        steps::check_sequence(op, x, shapes.scalars, shapes.sequence_length)?;
    let step = [Some(vec![batch, input]), h_prev.clone(), w.clone(), b.clone()];
    let step = LstmCellShapes { fixed: &step, cs_prev: None, peepholes: shapes.peepholes };
    let known = step.check(op)?;
    let mut cell = known.cell;
    batch = batch.or(known.batch);
    bind(
        op,
        ("h_prev", 0),
        h_prev,
        &mut [Dim::new("batch", &mut batch), Dim::new("cell", &mut cell)],
    )?;
    let state = vec![batch, cell];
    let differ = !shapes.sequence_length.is_empty() || !shapes.peepholes.is_empty();
    check_state(cs_prev, &state, differ)?;
    steps::check_element(op, "x", &shapes.elements.x, [batch, input])?;
    steps::check_element(op, "h", &shapes.elements.h, [batch, cell])?;
    let h = vec![time, batch, cell];
    check_size(op, "h", "[time, batch, cell]", &h)?;
    Ok([h, state.clone(), state])
}

/// A state broadcasts as in the first round of a loop. Rows that end, and peepholes, need one of full size.
fn check_state(
    cs_prev: &PartialShape,
    state: &[Option<usize>],
    is_whole: bool,
) -> Result<(), Error> {
    let Some(got) = cs_prev else { return Ok(()) };
    let fits = |got: Option<usize>, size: Option<usize>| {
        got.zip(size).is_none_or(|(got, size)| got == size)
    };
    let is_state = got.len() == 2 && got.iter().zip(state).all(|(&got, &size)| fits(got, size));
    let broadcasts = || {
        let both = broadcast(state, got).filter(|both| both.len() == 2);
        both.is_some_and(|both| both.iter().zip(state).all(|(&both, &size)| fits(both, size)))
    };
    if is_state || (!is_whole && broadcasts()) {
        return Ok(());
    }
    let expected = "[batch, cell], or a shape that broadcasts to it".to_owned();
    Err(Error::ListShape {
        op: LSTM_LAYER,
        tensor: "cs_prev",
        index: 0,
        expected,
        got: got.clone(),
    })
}

/// How much scratch memory [`lstm_layer`] needs: so many numbers, and so many elements.
#[must_use]
pub fn lstm_layer_scratch([time, batch, input, cell]: [usize; 4]) -> [usize; 2] {
    let states = batch.saturating_mul(cell);
    let elements = states.saturating_mul(time.saturating_add(6));
    [forward_scratch(&sizes([time, batch, input, cell])), elements]
}

fn sizes([time, batch, input_size, cell_size]: [usize; 4]) -> Sizes {
    Sizes { time, batch, input_size, cell_size, optional: [cell_size; 3] }
}

/// `BlockcellLSTMLayer`: the steps of [`lstm_cell`](super::lstm_cell) in a loop, the state of each being that of the
/// step before.
///
/// A row that has ended keeps its state, and its outputs are zero, as are those of steps that the loop does
/// not reach.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, more rounds than x has steps, a loop without a round whose outputs have no
/// known shape, or too short a scratch memory; nothing is written then.
pub fn lstm_layer<E: Element>(
    context: &Context<'_>,
    attributes: &Attributes,
    (steps, elements): (&Steps, &ElementShapes),
    inputs: LstmLayerInputs<'_, E>,
    outputs: LstmLayerOutputs<'_, E>,
    (scratch, memory): (&mut [f32], &mut [E]),
) -> Result<(), Error> {
    let op = LSTM_LAYER;
    let LstmLayerInputs { x, h_prev, cs_prev, w, b, peepholes } = &inputs;
    let fixed = [shape_of(x), shape_of(h_prev), shape_of(cs_prev), shape_of(w), shape_of(b)];
    let shapes = LstmLayerShapes {
        scalars: &[],
        sequence_length: &steps.shape_of_lengths(),
        fixed: &fixed,
        peepholes: &peepholes.iter().flatten().map(shape_of).collect::<Vec<_>>(),
        elements,
    };
    let [h, h_last, cs_last] = lstm_layer_shapes(&shapes)?;
    check_output(op, ("h", 0), &outputs.h, &h)?;
    check_output(op, ("h_last", 0), &outputs.h_last, &h_last)?;
    check_output(op, ("cs_last", 0), &outputs.cs_last, &cs_last)?;
    check_layout(op, "h", &outputs.h)?;
    check_layout(op, "h_last", &outputs.h_last)?;
    check_layout(op, "cs_last", &outputs.cs_last)?;
    for (view, name) in [(h_prev, "h_prev"), (w, "w")] {
        check_layout(op, name, view)?;
    }
    check_layout(op, "x", x)?;
    check_layout(op, "b", b)?;
    check_layout(op, "cs_prev", cs_prev)?;
    peepholes.iter().flatten().try_for_each(|view| check_layout(op, "peepholes", view))?;
    let (time, batch, cell) = outputs.h.dim();
    let lengths = steps.check(op, (time, batch, cell), elements)?;
    let needed = lstm_layer_scratch([time, batch, x.dim().2, cell]);
    steps::check_scratch(op, needed, [scratch.len(), memory.len()])?;
    if lengths.of_rows.is_empty() {
        return Ok(());
    }
    let attributes = Attributes { use_peephole: peepholes.is_some(), ..*attributes };
    let call = (attributes, &lengths.of_rows[..]);
    E::plain_lstm_layer(context, call, inputs, outputs, scratch, memory);
    Ok(())
}

/// The steps of rows that take part in `lengths` of them.
pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    (attributes, lengths): (Attributes, &[i64]),
    inputs: LstmLayerInputs<'_, E>,
    outputs: LstmLayerOutputs<'_, E>,
    scratch: &mut [f32],
    memory: &mut [E],
) {
    let LstmLayerInputs { x, h_prev, cs_prev, w, b, peepholes } = inputs;
    let LstmLayerOutputs { mut h, h_last, cs_last } = outputs;
    let (time, batch, cell) = h.dim();
    let (w_x, w_h) = w.split_at(Axis(0), x.dim().2);
    let mut memory = Some(memory);
    let mut take = |steps: usize| {
        let (taken, rest) = memory.take()?.split_at_mut(steps * batch * cell);
        memory = Some(rest);
        ArrayViewMut3::from_shape((steps, batch, cell), taken).ok()
    };
    let mut take = |steps| take(steps).expect("as much memory as was asked for");
    let mut first = take(1).index_axis_move(Axis(0), 0);
    first.assign(&cs_prev.broadcast((batch, cell)).expect("it was checked"));
    let [i, f, o, ci, co] = [(); 5].map(|()| take(1));
    let mut cs = take(time);
    // Without peepholes nobody reads these.
    let peepholes = peepholes.unwrap_or([b; 3]);
    let step = LstmStep { attributes, order: ICFO, b, peepholes };
    let lengths = Lengths::new(ArrayView1::from(lengths));
    let sequence =
        LstmSequence { lengths, x, cs_prev: first.view(), h_prev, w_x: Some(w_x), w_h, step };
    let outputs = [i, cs.view_mut(), f, o, ci, co, h.view_mut()];
    sequence.compute(context, outputs, None, scratch);
    last_states(lengths, h_prev, h.view(), h_last);
    last_states(lengths, first.view(), cs.view(), cs_last);
}
