//! `BlockcellGRULayer`: a loop over a sequence whose iterations are steps of a GRU cell.

use ndarray::{ArrayView1, ArrayView3, ArrayViewMut3, Axis};

use super::gru::GruAttributes;
use super::loops::{self, Loop, Numbers, check_state};
use super::lstm::apart;
use super::memory::{self, Pieces};
use super::rows::with_all_rows;
use crate::block_gru::forward::{GruSequence, GruWeights, forward_scratch};
use crate::gru::step::GruStep;
use crate::ops::{GRU_LAYER, Inferred, KnownSizes, Lists, Op, PartialShape, Sizes};
use crate::recurrence::{Lengths, last_states};
use crate::{Context, Element, Error, Storage};

pub use crate::ops::loops::{GruLayerInputs, GruLayerOutputs};

/// The shapes of [`gru_layer`]'s outputs, in their order, as far as they follow from the known parts of the inputs'
/// shapes, and from the numbers.
///
/// # Errors
///
/// [`Error::Shape`] for the first tensor that does not match the others, [`Error::Overflow`] for an output that cannot
/// be addressed, [`Error::Value`] for an invalid number of steps or iterations.
pub fn gru_layer_shapes(
    kind: &Loop,
    numbers: Option<Numbers>,
    inputs: &Lists<'_, PartialShape>,
) -> Result<Inferred, Error> {
    let op = &GRU_LAYER;
    if !kind.broadcasts_rows || inputs.of("w_ru_h").is_empty() {
        return layer_shapes(op, kind, numbers, inputs);
    }
    let whole = with_all_rows(inputs, &["x", "h_prev"]);
    let mut inferred = layer_shapes(op, kind, numbers, &inputs.with(&whole))?;
    let state = inferred.outputs[op.output("h_last")].clone();
    // Rows that end need first states of full size.
    check_state(op.name, inputs, "h_prev", &state, !inputs.of("sequence_length").is_empty())?;
    if numbers.is_none() && inputs.one("h_prev").as_deref() != Some(&state) {
        // Without a round, the last state is as small as the first one.
        inferred.outputs[op.output("h_last")][0] = None;
    }
    Ok(inferred)
}

/// The shapes of a layer whose states all have rows of the batch.
pub(super) fn layer_shapes(
    op: &'static Op,
    kind: &Loop,
    numbers: Option<Numbers>,
    inputs: &Lists<'_, PartialShape>,
) -> Result<Inferred, Error> {
    let mut inferred = op.infer(false, inputs)?;
    loops::infer_lengths(op, inputs, &mut inferred)?;
    let KnownSizes { batch, input_size, .. } = inferred.sizes;
    // Lengths may have told the batch.
    inferred.outputs[1..].iter_mut().for_each(|state| state[0] = batch);
    let width = inferred.outputs[op.output("h_last")][1];
    // Other tensors may tell more of an x whose own shape is not known.
    kind.check_x(op, &[None, batch, input_size])?;
    kind.infer(op, numbers, inputs, width, &mut inferred)?;
    Ok(inferred)
}

/// The scratch memory that [`gru_layer`] needs: the number of `f32`, and the number of elements `E`, beside
/// [`copied_x`](super::copied_x).
#[must_use]
pub fn gru_layer_scratch([time, batch, input_size, cell_size]: [usize; 4]) -> [usize; 2] {
    let sizes = Sizes { time, batch, input_size, cell_size, optional: [0; 3] };
    [forward_scratch(&sizes), batch.saturating_mul(cell_size).saturating_mul(5)]
}

/// `BlockcellGRULayer`: the steps of [`crate::gru`] in a loop, where the state of each is that of the previous step,
/// as defined by [`GRU_LAYER`].
///
/// # Errors
///
/// If a tensor has the wrong shape or layout; for more iterations than x or h have steps, or zero iterations with
/// outputs of unknown shape; or if the scratch memory is too short. Nothing is written then.
pub fn gru_layer<E: Element>(
    context: &Context<'_>,
    kind: &Loop,
    inputs: GruLayerInputs<'_, E>,
    outputs: GruLayerOutputs<'_, E>,
    (scratch, elements): (&mut [f32], &mut [E]),
) -> Result<(), Error> {
    let numbers = Numbers::new(inputs.time, &inputs.rounds);
    let infer = |shapes: &Lists<'_, _>| gru_layer_shapes(kind, Some(numbers), shapes);
    let Sizes { time, batch, input_size, cell_size, .. } =
        GRU_LAYER.check_lists(&inputs, &outputs, infer)?;
    kind.without_rounds(&GRU_LAYER, numbers, inputs.x.shape())?;
    let mut needed = gru_layer_scratch([time, batch, input_size, cell_size]);
    needed[1] = needed[1].saturating_add(loops::copied_x(inputs.x.shape(), batch));
    memory::check(GRU_LAYER.name, needed, [scratch.len(), elements.len()])?;
    if batch > 0 && cell_size > 0 {
        E::unfused_gru_layer(context, (kind, numbers), inputs, outputs, scratch, elements);
    }
    Ok(())
}

/// The steps of a loop. Of lists, what h has beyond the last round is zero, and nobody looks at the rest of x.
pub(super) fn steps<'a, E: Storage>(
    kind: &Loop,
    numbers: Numbers,
    x: ArrayView3<'a, E>,
    h: ArrayViewMut3<'a, E>,
) -> (ArrayView3<'a, E>, ArrayViewMut3<'a, E>) {
    if !kind.lists {
        return (x, h);
    }
    let rounds = numbers.rounds();
    let (h, mut rest) = h.split_at(Axis(0), rounds);
    rest.fill(E::ZERO);
    (x.split_at(Axis(0), rounds).0, h)
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    (kind, numbers): (&Loop, Numbers),
    inputs: GruLayerInputs<'_, E>,
    outputs: GruLayerOutputs<'_, E>,
    scratch: &mut [f32],
    memory: &mut [E],
) {
    let GruLayerInputs { sequence_length, x, h_prev, w_ru, w_c, b_ru, b_c, .. } = inputs;
    let GruLayerOutputs { h, h_last } = outputs;
    let [(ru_x, ru_h), (c_x, c_h)] =
        [(w_ru, inputs.w_ru_h), (w_c, inputs.w_c_h)].map(|(w, w_h)| apart(w, w_h, x.dim().2));
    let (x, mut h) = steps(kind, numbers, x, h);
    let (_, batch, cell) = h.dim();
    let lengths = loops::lengths(numbers.rounds(), sequence_length.as_ref(), batch);
    let lengths = Lengths::new(ArrayView1::from(&lengths));
    let mut pieces = Pieces::new(memory);
    let (x, h_prev) = (pieces.whole_steps(x, batch), pieces.whole(h_prev, batch));
    let &Loop { activations, update_first, u_weighs_c, .. } = kind;
    let order = GruAttributes { update_first, ..GruAttributes::default() }.order();
    let sequence = GruSequence {
        lengths,
        x,
        h_prev,
        w_x: Some(GruWeights::Apart([ru_x, c_x])),
        w_h: GruWeights::Apart([ru_h, c_h]),
        step: GruStep { activations, order, b_ru, b_c, b_hc: None, u_weighs_c },
    };
    let [r, u, c, hc] = [(); 4].map(|()| pieces.take([1, batch, cell]));
    sequence.compute(context, [r, u, c, hc, h.view_mut()], scratch);
    last_states(lengths, h_prev, h.view(), h_last);
    if kind.adds_x {
        loops::add_x(lengths, x, h);
    }
}
