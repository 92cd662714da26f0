//! `BlockcellLayerNormLSTMLayer`: a loop over a sequence whose iterations are steps of an LSTM cell with layer
//! normalization.

use std::slice;

use ndarray::{ArrayView1, Axis};

use super::gru_layer::{layer_shapes, steps};
use super::loops::{self, Loop, Numbers, check_state};
use super::memory::{self, Pieces};
use super::normalized::{NormalizedAttributes, check_norms};
use super::one_round::{self, other_width_scratch};
use crate::gemm::{self, StepShape, weights_len};
use crate::lstm::normalized::NormalizedLstm;
use crate::ops::{Inferred, Lists, NORMALIZED_LSTM_LAYER, PartialShape, Sizes};
use crate::recurrence::{self, Lengths, Product, last_states, products_len};
use crate::{Context, Element, Error, Storage};

pub use crate::ops::normalized::{NormalizedLstmLayerInputs, NormalizedLstmLayerOutputs};

/// The shapes of [`normalized_lstm_layer`]'s outputs, in their order, as far as they follow from the known parts of
/// the inputs' shapes, and from the numbers.
///
/// # Errors
///
/// [`Error::Shape`] for the first tensor that does not match the others, [`Error::Overflow`] for an output that cannot
/// be addressed, [`Error::Value`] for an invalid number of steps or iterations.
pub fn normalized_lstm_layer_shapes(
    kind: &Loop,
    numbers: Option<Numbers>,
    inputs: &Lists<'_, PartialShape>,
) -> Result<Inferred, Error> {
    let op = &NORMALIZED_LSTM_LAYER;
    check_norms(op.name, [inputs.of("gamma").len(), inputs.of("beta").len()])?;
    let is_one_round = one_round::is_such(numbers, inputs);
    let relaxed = is_one_round.then(|| one_round::of_any_width(inputs, false)).flatten();
    let relaxed = relaxed.as_ref().map(|shapes| inputs.with(shapes));
    let inputs = relaxed.as_ref().unwrap_or(inputs);
    let inferred = layer_shapes(op, kind, numbers, inputs)?;
    let is_whole = !inputs.of("sequence_length").is_empty();
    let state = [inferred.sizes.batch, inferred.sizes.cell_size];
    check_state(op.name, inputs, "cs_prev", &state, is_whole)?;
    Ok(inferred)
}

/// The scratch memory that [`normalized_lstm_layer`] needs: the number of `f32`, and the number of elements `E`.
/// [`other_width_scratch`] is added to both.
#[must_use]
pub fn normalized_lstm_layer_scratch(
    [time, batch, input_size, cell_size]: [usize; 4],
) -> [usize; 2] {
    let sizes = Sizes { time, batch, input_size, cell_size, optional: [0; 3] };
    let states = batch.saturating_mul(cell_size);
    let numbers = weights_len(cell_size, 4, cell_size).saturating_add(products_len(&sizes, 4));
    [numbers, states.saturating_mul(time.saturating_add(5))]
}

/// `BlockcellLayerNormLSTMLayer`: the steps of [`normalized_lstm_cell`](super::normalized_lstm_cell) in a loop, where
/// the state of each is that of the previous step, as defined by [`NORMALIZED_LSTM_LAYER`].
///
/// # Errors
///
/// If a tensor has the wrong shape or layout; for more iterations than x or h have steps, or zero iterations with
/// outputs of unknown shape; or if the scratch memory is too short. Nothing is written then.
pub fn normalized_lstm_layer<E: Element>(
    context: &Context<'_>,
    attributes: &NormalizedAttributes,
    kind: &Loop,
    inputs: NormalizedLstmLayerInputs<'_, E>,
    outputs: NormalizedLstmLayerOutputs<'_, E>,
    (scratch, elements): (&mut [f32], &mut [E]),
) -> Result<(), Error> {
    let op = &NORMALIZED_LSTM_LAYER;
    let numbers = Numbers::new(inputs.time, &inputs.rounds);
    let infer = |shapes: &Lists<'_, _>| normalized_lstm_layer_shapes(kind, Some(numbers), shapes);
    let Sizes { time, batch, input_size, cell_size, .. } =
        op.check_lists(&inputs, &outputs, infer)?;
    kind.without_rounds(op, numbers, inputs.x.shape())?;
    let mut needed = normalized_lstm_layer_scratch([time, batch, input_size, cell_size]);
    let widths = [inputs.h_prev.ncols(), cell_size];
    let other = other_width_scratch([batch, input_size, cell_size], widths);
    needed = [0, 1].map(|kind| needed[kind].saturating_add(other[kind]));
    memory::check(op.name, needed, [scratch.len(), elements.len()])?;
    if batch > 0 && cell_size > 0 {
        let call = (kind, numbers);
        E::unfused_normalized_lstm_layer(
            context, attributes, call, inputs, outputs, scratch, elements,
        );
    }
    Ok(())
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    attributes: &NormalizedAttributes,
    (kind, numbers): (&Loop, Numbers),
    inputs: NormalizedLstmLayerInputs<'_, E>,
    outputs: NormalizedLstmLayerOutputs<'_, E>,
    scratch: &mut [f32],
    memory: &mut [E],
) {
    let NormalizedLstmLayerInputs { sequence_length, x, h_prev, cs_prev, w, gamma, beta, .. } =
        inputs;
    let NormalizedLstmLayerOutputs { h, h_last, cs_last } = outputs;
    let (x, h) = steps(kind, numbers, x, h);
    let (w_x, w_h) = w.split_at(Axis(0), x.dim().2);
    let mut pieces = Pieces::new(memory);
    let (factors, mut h) = one_round::with_width((x, h_prev, [w_x, w_h]), h, &mut pieces);
    let (x, h_prev, [w_x, w_h]) = factors;
    let (time, batch, cell) = h.dim();
    let mut first = pieces.take([1, batch, cell]).index_axis_move(Axis(0), 0);
    first.assign(&cs_prev.broadcast((batch, cell)).expect("it was checked"));
    let z = [(); 4].map(|()| pieces.take([1, batch, cell]));
    let mut cs = pieces.take([time, batch, cell]);
    let lengths = loops::lengths(numbers.rounds(), sequence_length.as_ref(), batch);
    let lengths = Lengths::new(ArrayView1::from(&lengths));
    let rounds = lengths.longest();
    let (weights, products) = scratch.split_at_mut(weights_len(cell, 4, cell));
    let tiling = gemm::sequence_tiling::<E>(context, StepShape::new((batch, cell), 4), rounds);
    let product = Product::plain(tiling, w_h).packed_for(context, rounds, weights);
    let step = attributes.step(&gamma, &beta);
    let w_x = Some(slice::from_ref(&w_x));
    let sequence = recurrence::Sequence { lengths, x, w_x, first: [first.view(), h_prev] };
    let outputs = recurrence::Outputs { kept: z, states: [cs.view_mut(), h.view_mut()] };
    let cell = NormalizedLstm { step, product };
    recurrence::forward(context, &cell, &sequence, outputs, products);
    last_states(lengths, h_prev, h.view(), h_last);
    last_states(lengths, first.view(), cs.view(), cs_last);
}
