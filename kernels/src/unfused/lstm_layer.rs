//! `BlockcellLSTMLayer`: a loop over a sequence whose iterations are steps of a plain LSTM cell.

use ndarray::{ArrayView1, ArrayView2, Axis};

use super::GateColumns;
use super::gru_layer::{layer_shapes, steps};
use super::loops::{self, Loop, Numbers, check_state};
use super::lstm::apart;
use super::memory::{self, Pieces};
use super::one_round::{self, other_width_scratch};
use super::rows::with_all_rows;
use crate::block_lstm::forward::{LstmSequence, Projection, forward_scratch};
use crate::lstm::Attributes;
use crate::lstm::step::LstmStep;
use crate::ops::{Inferred, LSTM_LAYER, Lists, PartialShape, Sizes};
use crate::recurrence::{Lengths, Product, last_states};
use crate::{Context, Element, Error, Storage};

pub use crate::ops::loops::{LstmLayerInputs, LstmLayerOutputs};

/// The shapes of [`lstm_layer`]'s outputs, in their order, as far as they follow from the known parts of the inputs'
/// shapes, and from the numbers.
///
/// # Errors
///
/// [`Error::Shape`] for the first tensor that does not match the others, [`Error::Overflow`] for an output that cannot
/// be addressed, [`Error::Value`] for an invalid number of steps or iterations.
pub fn lstm_layer_shapes(
    kind: &Loop,
    numbers: Option<Numbers>,
    inputs: &Lists<'_, PartialShape>,
) -> Result<Inferred, Error> {
    let has_w_h = !inputs.of("w_h").is_empty();
    let is_one_round = one_round::is_such(numbers, inputs);
    let relaxed = is_one_round.then(|| one_round::of_any_width(inputs, has_w_h)).flatten();
    let relaxed = relaxed.as_ref().map(|shapes| inputs.with(shapes));
    let inputs = relaxed.as_ref().unwrap_or(inputs);
    // One row of x and h_prev meets many of states then, as in a single step.
    let is_row = |name: &str, axis: usize| {
        let shape = inputs.one(name).as_ref();
        shape.is_some_and(|shape| shape.get(axis) == Some(&Some(1)))
    };
    let has_one_row = is_one_round && kind.broadcasts && is_row("x", 1) && is_row("h_prev", 0);
    let broadcasts_rows = (kind.broadcasts_rows && has_w_h) || has_one_row;
    let whole = broadcasts_rows.then(|| with_all_rows(inputs, &["x", "h_prev", "cs_prev"]));
    let whole = whole.as_ref().map(|shapes| inputs.with(shapes));
    let mut inferred = layer_shapes(&LSTM_LAYER, kind, numbers, whole.as_ref().unwrap_or(inputs))?;
    let [output, state] = ["h_last", "cs_last"].map(|name| {
        let found = &inferred.outputs[LSTM_LAYER.output(name)];
        [found[0], found[1]]
    });
    check_projection(inputs, state[1])?;
    // Rows that end need first states of full size, and block cells do.
    let has_lengths = !inputs.of("sequence_length").is_empty();
    check_state(LSTM_LAYER.name, inputs, "h_prev", &output, !broadcasts_rows || has_lengths)?;
    check_state(LSTM_LAYER.name, inputs, "cs_prev", &state, !kind.broadcasts || has_lengths)?;
    if broadcasts_rows && numbers.is_none() {
        // Without a round, the last states are as small as the first ones.
        for (last, first, whole) in [("h_last", "h_prev", output), ("cs_last", "cs_prev", state)] {
            let is_whole = inputs.one(first).as_deref() == Some(&whole);
            let rows = state[0].filter(|_| is_whole);
            inferred.outputs[LSTM_LAYER.output(last)][0] = rows;
        }
    }
    Ok(inferred)
}

/// A projection makes outputs no wider than the state.
fn check_projection(
    inputs: &Lists<'_, PartialShape>,
    cell_size: Option<usize>,
) -> Result<(), Error> {
    let [Some(got)] = inputs.of("projection") else { return Ok(()) };
    let Some((_, cells)) = got[1].zip(cell_size).filter(|(columns, cells)| columns > cells) else {
        return Ok(());
    };
    let expected = format!("[cell_size, output_size] with an output_size of at most {cells}");
    let (op, tensor, got) = (LSTM_LAYER.name, "projection", got.clone());
    Err(Error::Shape { op, tensor, index: None, expected, got })
}

/// The scratch memory that [`lstm_layer`] needs: the number of `f32`, and the number of elements `E`.
/// [`copied_x`](super::copied_x) is added to the latter, and [`projection_scratch`] and [`other_width_scratch`] to
/// both.
#[must_use]
pub fn lstm_layer_scratch([time, batch, input, cell]: [usize; 4]) -> [usize; 2] {
    let states = batch.saturating_mul(cell);
    let elements = states.saturating_mul(time.saturating_add(7));
    [forward_scratch(&sizes([time, batch, input, cell])), elements]
}

/// The additional amounts that [`lstm_layer`] needs for a projection to outputs of this size.
#[must_use]
pub fn projection_scratch([batch, cell]: [usize; 2], output: Option<usize>) -> [usize; 2] {
    let needed = |output| [Product::<f32, 1>::memory(cell, output), batch.saturating_mul(cell)];
    output.map_or([0; 2], needed)
}

fn sizes([time, batch, input_size, cell_size]: [usize; 4]) -> Sizes {
    Sizes { time, batch, input_size, cell_size, optional: [cell_size; 3] }
}

/// `BlockcellLSTMLayer`: the steps of [`lstm_cell`](super::lstm_cell) in a loop, where the state of each is that of
/// the previous step, as defined by [`LSTM_LAYER`].
///
/// # Errors
///
/// If a tensor has the wrong shape or layout; for more iterations than x or h have steps, or zero iterations with
/// outputs of unknown shape; or if the scratch memory is too short. Nothing is written then.
pub fn lstm_layer<E: Element>(
    context: &Context<'_>,
    (attributes, columns, proj_clip): (&Attributes, GateColumns, f32),
    kind: &Loop,
    inputs: LstmLayerInputs<'_, E>,
    outputs: LstmLayerOutputs<'_, E>,
    (scratch, elements): (&mut [f32], &mut [E]),
) -> Result<(), Error> {
    let op = &LSTM_LAYER;
    if !matches!(inputs.peepholes.len(), 0 | 3) {
        let (what, expected, got) = ("peepholes", 3, inputs.peepholes.len());
        return Err(Error::Count { op: op.name, what, expected, got });
    }
    let numbers = Numbers::new(inputs.time, &inputs.rounds);
    let infer = |shapes: &Lists<'_, _>| lstm_layer_shapes(kind, Some(numbers), shapes);
    let Sizes { time, batch, input_size, cell_size, .. } =
        op.check_lists(&inputs, &outputs, infer)?;
    kind.without_rounds(op, numbers, inputs.x.shape())?;
    let mut needed = lstm_layer_scratch([time, batch, input_size, cell_size]);
    let output = inputs.projection.as_ref().map(ArrayView2::ncols);
    let more = projection_scratch([batch, cell_size], output);
    let widths = [inputs.h_prev.ncols(), output.unwrap_or(cell_size)];
    let other = other_width_scratch([batch, input_size, cell_size], widths);
    needed[0] = needed[0].saturating_add(more[0]).saturating_add(other[0]);
    let x = loops::copied_x(inputs.x.shape(), batch);
    needed[1] = needed[1].saturating_add(more[1]).saturating_add(x).saturating_add(other[1]);
    memory::check(op.name, needed, [scratch.len(), elements.len()])?;
    if batch > 0 && cell_size > 0 {
        let use_peephole = !inputs.peepholes.is_empty();
        let attributes = (Attributes { use_peephole, ..*attributes }, columns, proj_clip);
        let call = (kind, numbers);
        E::unfused_lstm_layer(context, attributes, call, inputs, outputs, scratch, elements);
    }
    Ok(())
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    (attributes, columns, proj_clip): (Attributes, GateColumns, f32),
    (kind, numbers): (&Loop, Numbers),
    inputs: LstmLayerInputs<'_, E>,
    outputs: LstmLayerOutputs<'_, E>,
    scratch: &mut [f32],
    memory: &mut [E],
) {
    let LstmLayerInputs { sequence_length, x, h_prev, cs_prev, w, b, peepholes, .. } = inputs;
    let LstmLayerOutputs { h, h_last, cs_last } = outputs;
    let (x, h) = steps(kind, numbers, x, h);
    let (batch, cell) = cs_last.dim();
    let (w_x, w_h) = apart(w, inputs.w_h, x.dim().2);
    let mut pieces = Pieces::new(memory);
    let (whole_x, h_prev) = (pieces.whole_steps(x, batch), pieces.whole(h_prev, batch));
    let (factors, mut h) = one_round::with_width((whole_x, h_prev, [w_x, w_h]), h, &mut pieces);
    let (x, h_prev, [w_x, w_h]) = factors;
    let time = h.dim().0;
    let mut first = pieces.take([1, batch, cell]).index_axis_move(Axis(0), 0);
    first.assign(&cs_prev.broadcast((batch, cell)).expect("it was checked"));
    let [i, f, o, ci, co] = [(); 5].map(|()| pieces.take([1, batch, cell]));
    let mut cs = pieces.take([time, batch, cell]);
    // Without peepholes nobody reads these.
    let peepholes = peepholes.try_into().unwrap_or([b; 3]);
    let (activations, order) = (kind.activations, columns.order());
    let step = LstmStep { attributes, activations, order, b, peepholes };
    let lengths = loops::lengths(numbers.rounds(), sequence_length.as_ref(), batch);
    let lengths = Lengths::new(ArrayView1::from(&lengths));
    let sequence =
        LstmSequence { lengths, x, cs_prev: first.view(), h_prev, w_x: Some(w_x), w_h, step };
    match inputs.projection {
        Some(weights) => {
            let output = pieces.take([1, batch, cell]);
            let [needed, _] = projection_scratch([batch, cell], Some(weights.ncols()));
            let (memory, scratch) = scratch.split_at_mut(needed);
            let clip = (proj_clip > 0.0).then(|| E::from_f32(proj_clip).to_f32());
            let projection = Projection { weights, h: h.view_mut(), memory, clip };
            let outputs = [i, cs.view_mut(), f, o, ci, co, output];
            sequence.compute(context, outputs, Some(projection), scratch);
        }
        None => {
            let outputs = [i, cs.view_mut(), f, o, ci, co, h.view_mut()];
            sequence.compute(context, outputs, None, scratch);
        }
    }
    last_states(lengths, h_prev, h.view(), h_last);
    last_states(lengths, first.view(), cs.view(), cs_last);
    if kind.adds_x {
        loops::add_x(lengths, whole_x, h);
    }
}
