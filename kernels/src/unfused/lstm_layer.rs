//! `BlockcellLSTMLayer`: a loop over a sequence whose rounds are steps of a plain LSTM cell.

use ndarray::{ArrayView1, Axis};

use super::GateColumns;
use super::gru_layer::{layer_shapes, steps};
use super::loops::{self, Loop, Numbers};
use super::lstm::broadcast;
use super::memory::{self, Pieces};
use crate::block_lstm::forward::{LstmSequence, forward_scratch};
use crate::lstm::Attributes;
use crate::lstm::step::LstmStep;
use crate::ops::partial::may_be_same;
use crate::ops::{Inferred, LSTM_LAYER, Lists, PartialShape, Sizes};
use crate::recurrence::{Lengths, last_states};
use crate::{Context, Element, Error, Storage, error};

pub use crate::ops::loops::{LstmLayerInputs, LstmLayerOutputs};

/// The shapes of [`lstm_layer`]'s outputs, in their order, as far as they follow from what is known of the
/// inputs' shapes, and of the numbers.
///
/// # Errors
///
/// [`Error::Shape`] for the first tensor at odds with the others, [`Error::Overflow`] for an output that
/// cannot be addressed, [`Error::Value`] for a number that the loop cannot have.
pub fn lstm_layer_shapes(
    kind: &Loop,
    numbers: Option<Numbers>,
    inputs: &Lists<'_, PartialShape>,
) -> Result<Inferred, Error> {
    let inferred = layer_shapes(&LSTM_LAYER, kind, numbers, inputs)?;
    let is_whole = !kind.broadcasts || !inputs.of("sequence_length").is_empty();
    let state = [inferred.sizes.batch, inferred.sizes.cell_size];
    check_state(LSTM_LAYER.name, inputs.one("cs_prev"), &state, is_whole)?;
    Ok(inferred)
}

/// A state broadcasts as in the first round of a loop. Rows that end need one of full size, and so do block cells.
pub(super) fn check_state(
    op: &'static str,
    cs_prev: &PartialShape,
    state: &[Option<usize>],
    is_whole: bool,
) -> Result<(), Error> {
    let Some(got) = cs_prev else { return Ok(()) };
    let broadcasts = || broadcast(state, got).is_some_and(|both| may_be_same(&both, state));
    if may_be_same(got, state) || (!is_whole && broadcasts()) {
        return Ok(());
    }
    let more = if is_whole { "" } else { ", or a shape that broadcasts to it" };
    let expected = format!("[batch, cell_size] = {}{more}", error::shape(state));
    let (tensor, got) = ("cs_prev", got.clone());
    Err(Error::Shape { op, tensor, index: None, expected, got })
}

/// How much scratch memory [`lstm_layer`] needs: the length in numbers (`f32`), and the length in elements (`E`).
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
/// step before, as [`LSTM_LAYER`] says.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, more rounds than x or h have steps, a loop without a round whose outputs have no
/// known shape, or too short a scratch memory; nothing is written then.
pub fn lstm_layer<E: Element>(
    context: &Context<'_>,
    (attributes, columns): (&Attributes, GateColumns),
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
    let needed = lstm_layer_scratch([time, batch, input_size, cell_size]);
    memory::check(op.name, needed, [scratch.len(), elements.len()])?;
    if batch > 0 && cell_size > 0 {
        let use_peephole = !inputs.peepholes.is_empty();
        let attributes = (Attributes { use_peephole, ..*attributes }, columns);
        let call = (kind, numbers);
        E::unfused_lstm_layer(context, attributes, call, inputs, outputs, scratch, elements);
    }
    Ok(())
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    (attributes, columns): (Attributes, GateColumns),
    (kind, numbers): (&Loop, Numbers),
    inputs: LstmLayerInputs<'_, E>,
    outputs: LstmLayerOutputs<'_, E>,
    scratch: &mut [f32],
    memory: &mut [E],
) {
    let LstmLayerInputs { sequence_length, x, h_prev, cs_prev, w, b, peepholes, .. } = inputs;
    let LstmLayerOutputs { h, h_last, cs_last } = outputs;
    let (x, mut h) = steps(kind, numbers, x, h);
    let (time, batch, cell) = h.dim();
    let (w_x, w_h) = w.split_at(Axis(0), x.dim().2);
    let mut pieces = Pieces::new(memory);
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
    let outputs = [i, cs.view_mut(), f, o, ci, co, h.view_mut()];
    sequence.compute(context, outputs, None, scratch);
    last_states(lengths, h_prev, h.view(), h_last);
    last_states(lengths, first.view(), cs.view(), cs_last);
}
