//! `BlockcellKerasLSTM`: a loop over a sequence whose iterations are steps of Keras's LSTM cell.

use ndarray::ArrayView1;

use super::keras::{self, Taken};
use super::loops::{Loop, Numbers};
use super::memory::{self, Pieces};
use crate::block_lstm::forward::{LstmSequence, forward_scratch};
use crate::lstm::Attributes;
use crate::lstm::step::{IFCO, LstmStep};
use crate::ops::{Inferred, KERAS_LSTM, Lists, PartialShape, Sizes};
use crate::recurrence::{Lengths, last_states};
use crate::{Context, Element, Error, Storage};

pub use crate::ops::loops::{KerasLstmInputs, KerasLstmOutputs};

/// The shapes of [`keras_lstm`]'s outputs, in their order, as far as they follow from the known parts of the inputs'
/// shapes, and from the numbers.
///
/// # Errors
///
/// [`Error::Shape`] for the first tensor that does not match the others, [`Error::Overflow`] for an output that cannot
/// be addressed, [`Error::Value`] for an invalid number of steps or iterations.
pub fn keras_lstm_shapes(
    kind: &Loop,
    numbers: Option<Numbers>,
    inputs: &Lists<'_, PartialShape>,
) -> Result<Inferred, Error> {
    keras::infer(&KERAS_LSTM, kind, numbers, inputs, &["h_prev", "cs_prev"])
}

/// The scratch memory that [`keras_lstm`] needs: the number of `f32`, and the number of elements `E`.
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

/// `BlockcellKerasLSTM`: the steps of [`crate::lstm`] in a loop, where the state of each is that of the previous step,
/// with the gates in the order of `BlockLSTMV2`, and without peepholes, clipping and forget bias.
///
/// A row keeps its state in masked steps.
///
/// # Errors
///
/// If a tensor has the wrong shape or layout; for more iterations than x or h have steps; or if the scratch memory is
/// too short. Nothing is written then.
pub fn keras_lstm<E: Element>(
    context: &Context<'_>,
    kind: &Loop,
    inputs: KerasLstmInputs<'_, E>,
    outputs: KerasLstmOutputs<'_, E>,
    (scratch, elements): (&mut [f32], &mut [E]),
) -> Result<(), Error> {
    let op = &KERAS_LSTM;
    let numbers = Numbers::new(inputs.size, &inputs.rounds);
    let infer = |shapes: &Lists<'_, _>| keras_lstm_shapes(kind, Some(numbers), shapes);
    let Sizes { time, batch, input_size, cell_size, .. } =
        op.check_lists(&inputs, &outputs, infer)?;
    let needed = keras_lstm_scratch([time, batch, input_size, cell_size]);
    memory::check(op.name, needed, [scratch.len(), elements.len()])?;
    if batch > 0 && cell_size > 0 {
        E::unfused_keras_lstm(context, (kind, numbers), inputs, outputs, scratch, elements);
    }
    Ok(())
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    (kind, numbers): (&Loop, Numbers),
    inputs: KerasLstmInputs<'_, E>,
    outputs: KerasLstmOutputs<'_, E>,
    scratch: &mut [f32],
    memory: &mut [E],
) {
    let KerasLstmInputs { x, h_prev, cs_prev, w_x, w_h, b, mask, before, .. } = inputs;
    let KerasLstmOutputs { mut h, h_last, cs_last } = outputs;
    let (_, batch, cell) = h.dim();
    let rounds = numbers.rounds();
    let taken = Taken::of(mask.as_ref(), rounds, batch);
    let mut pieces = Pieces::new(memory);
    let h_prev = pieces.whole(h_prev, batch);
    let cs_prev = pieces.whole(cs_prev, batch);
    let before = before.map(|before| pieces.whole(before, batch));
    let x = taken.x(x, rounds, &mut pieces);
    let [i, f, o, ci, co] = [(); 5].map(|()| pieces.take([1, batch, cell]));
    let mut cs = pieces.take([rounds, batch, cell]);
    let mut own = (!taken.in_place(kind)).then(|| pieces.take([rounds, batch, cell]));
    let attributes = Attributes { use_peephole: false, forget_bias: 0.0, cell_clip: -1.0 };
    // Without peepholes nobody reads these.
    let (activations, peepholes) = (kind.activations, [b; 3]);
    let step = LstmStep { attributes, activations, order: IFCO, b, peepholes };
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
    taken.spread((kind, numbers), before, own.as_ref().map(|own| own.view()), h);
}
