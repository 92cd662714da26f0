//! `BlockcellKerasGRU`: a loop over a sequence whose iterations are steps of Keras's GRU cell, with the reset gate
//! before or after the matrix product.

use ndarray::{ArrayView1, ArrayViewMut1, Axis, Zip, s};

use super::keras::{self, Taken};
use super::loops::{Loop, Numbers};
use super::memory::{self, Pieces};
use crate::block_gru::forward::{GruSequence, GruWeights, forward_scratch};
use crate::gru::step::{GruOrder, GruStep};
use crate::ops::{Inferred, KERAS_GRU, Lists, PartialShape, Sizes};
use crate::recurrence::{Lengths, last_states};
use crate::{Context, Element, Error, Storage};

pub use crate::ops::loops::{KerasGruInputs, KerasGruOutputs};

/// The shapes of [`keras_gru`]'s outputs, in their order, as far as they follow from the known parts of the inputs'
/// shapes, and from the numbers.
///
/// # Errors
///
/// [`Error::Shape`] for the first tensor that does not match the others, [`Error::Overflow`] for an output that cannot
/// be addressed, [`Error::Value`] for an invalid number of steps or iterations.
pub fn keras_gru_shapes(
    kind: &Loop,
    numbers: Option<Numbers>,
    inputs: &Lists<'_, PartialShape>,
) -> Result<Inferred, Error> {
    keras::infer(&KERAS_GRU, kind, numbers, inputs, &["h_prev"])
}

/// The scratch memory that [`keras_gru`] needs: the number of `f32`, and the number of elements `E`.
#[must_use]
pub fn keras_gru_scratch([time, batch, input_size, cell_size]: [usize; 4]) -> [usize; 2] {
    let sizes = Sizes { time, batch, input_size, cell_size, optional: [0; 3] };
    let states = batch.saturating_mul(cell_size);
    // First states, gates, and the outputs of all steps.
    let elements = states.saturating_mul(time.saturating_add(6));
    let x = time.saturating_mul(batch).saturating_mul(input_size);
    let biases = cell_size.saturating_mul(3);
    let elements = elements.saturating_add(x).saturating_add(biases);
    [forward_scratch(&sizes), elements]
}

/// `BlockcellKerasGRU`: the steps of `BlockGRU` in a loop.
///
/// A row keeps its state in masked steps.
///
/// # Errors
///
/// If a tensor has the wrong shape or layout; for more iterations than x or h have steps; or if the scratch memory is
/// too short. Nothing is written then.
pub fn keras_gru<E: Element>(
    context: &Context<'_>,
    kind: &Loop,
    inputs: KerasGruInputs<'_, E>,
    outputs: KerasGruOutputs<'_, E>,
    (scratch, elements): (&mut [f32], &mut [E]),
) -> Result<(), Error> {
    let op = &KERAS_GRU;
    let numbers = Numbers::new(inputs.size, &inputs.rounds);
    let infer = |shapes: &Lists<'_, _>| keras_gru_shapes(kind, Some(numbers), shapes);
    let Sizes { time, batch, input_size, cell_size, .. } =
        op.check_lists(&inputs, &outputs, infer)?;
    let needed = keras_gru_scratch([time, batch, input_size, cell_size]);
    memory::check(op.name, needed, [scratch.len(), elements.len()])?;
    if batch > 0 && cell_size > 0 {
        E::unfused_keras_gru(context, (kind, numbers), inputs, outputs, scratch, elements);
    }
    Ok(())
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    (kind, numbers): (&Loop, Numbers),
    inputs: KerasGruInputs<'_, E>,
    outputs: KerasGruOutputs<'_, E>,
    scratch: &mut [f32],
    memory: &mut [E],
) {
    let KerasGruInputs { x, h_prev, w_x, w_h, b_x, b_h, mask, before, .. } = inputs;
    let KerasGruOutputs { mut h, h_last } = outputs;
    let (_, batch, cell) = h.dim();
    let rounds = numbers.rounds();
    let taken = Taken::of(mask.as_ref(), rounds, batch);
    let mut pieces = Pieces::new(memory);
    let h_prev = pieces.whole(h_prev, batch);
    let before = before.map(|before| pieces.whole(before, batch));
    let x = taken.x(x, rounds, &mut pieces);
    let [r, u, c, hc] = [(); 4].map(|()| pieces.take([1, batch, cell]));
    let mut own = (!taken.in_place(kind)).then(|| pieces.take([rounds, batch, cell]));
    let mut both = pieces.take([1, 1, 3 * cell]);
    add_biases(b_x, b_h, both.slice_mut(s![0, 0, ..]));
    let (b_ru, b_c) = both.slice(s![0, 0, ..]).split_at(Axis(0), 2 * cell);
    let [b_xc, b_hc] = [b_x, b_h].map(|b| b.split_at(Axis(0), 2 * cell).1);
    let (b_c, b_hc) = if kind.reset_after { (b_xc, Some(b_hc)) } else { (b_c, None) };
    let lengths = Lengths::new(ArrayView1::from(&taken.lengths));
    let sequence = GruSequence {
        lengths,
        x,
        h_prev,
        w_x: Some(GruWeights::Together(w_x)),
        w_h: GruWeights::Together(w_h),
        step: GruStep {
            activations: kind.activations,
            order: GruOrder::UpdateFirst,
            b_ru,
            b_c,
            b_hc,
            u_weighs_c: false,
        },
    };
    let outputs_of_steps = own.as_mut().map_or_else(|| h.view_mut(), |own| own.view_mut());
    sequence.compute(context, [r, u, c, hc, outputs_of_steps], scratch);
    let outputs_of_steps = own.as_ref().map_or_else(|| h.view(), |own| own.view());
    last_states(lengths, h_prev, outputs_of_steps, h_last);
    if own.is_some() {
        h.fill(E::ZERO);
    }
    taken.spread((kind, numbers), before, own.as_ref().map(|own| own.view()), h);
}

/// The biases of both products. A gate takes nothing else, and the candidate does not where the state is reset before the
/// product.
fn add_biases<E: Storage>(
    b_x: ArrayView1<'_, E>,
    b_h: ArrayView1<'_, E>,
    both: ArrayViewMut1<'_, E>,
) {
    let sum = |to: &mut E, x: &E, h: &E| *to = E::from_f32(x.to_f32() + h.to_f32());
    Zip::from(both).and(b_x).and(b_h).for_each(sum);
}
