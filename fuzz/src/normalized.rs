//! Calls of the steps of LSTM cells with layer normalization, whose states broadcast, and of loops of them.

use arbitrary::Result;
use blockcell_kernels::ops::{Lists, NORMALIZED_LSTM_CELL};
use blockcell_kernels::unfused::{
    self, Loop, NormalizedAttributes, NormalizedLstmCellInputs, NormalizedLstmCellOutputs,
    NormalizedLstmLayerInputs, NormalizedLstmLayerOutputs,
};

use crate::choices::Choices;
use crate::tensor::{Tensor, views};
use crate::twice::{Role, twice};
use crate::unfused::{broadcasting, outputs, scratch};
use crate::unfused_layers::{Steps, any_loop};
use crate::{known_outputs, with_lists};

fn attributes(choices: &mut Choices<'_>) -> NormalizedAttributes {
    NormalizedAttributes {
        forget_bias: choices.float(),
        epsilon: choices.float(),
        columns: choices.gate_columns(),
        activations: choices.activations(),
        over_last_axis: choices.flag(),
    }
}

/// The shapes of so many gamma or beta, mostly five.
fn norms(choices: &mut Choices<'_>, cell: usize) -> Vec<Vec<usize>> {
    let count = if choices.once_in(16) { choices.below(7) } else { 5 };
    vec![vec![cell]; count]
}

/// `BlockcellLayerNormLSTMCell`.
pub(crate) fn cell(choices: &mut Choices<'_>) -> Result<()> {
    let [batch, input, output, cell] = [(); 4].map(|()| choices.size());
    let rows = input.wrapping_add(output);
    let mut shapes =
        vec![vec![batch, input], vec![batch, output], vec![rows, cell.wrapping_mul(4)]];
    let [mut gamma, mut beta] = [(); 2].map(|()| norms(choices, cell));
    let has_state = choices.flag();
    let mut state = vec![broadcasting(choices, [batch, cell]); usize::from(has_state)];
    choices.disturb(4, shapes.iter_mut().chain(&mut gamma).chain(&mut beta).chain(&mut state));
    let attributes = attributes(choices);
    let lists: Vec<_> = shapes.chunks(1).chain([&gamma[..], &beta, &state]).collect();
    let infer = |shapes: &Lists<'_, _>| unfused::normalized_lstm_cell_shapes(shapes);
    let found = known_outputs(with_lists(&NORMALIZED_LSTM_CELL, &lists, &[1; 2], infer));
    let mut wanted = found.clone().unwrap_or_else(|_| vec![vec![batch, cell]; 2]);
    choices.disturb(16, &mut wanted);
    let inputs = Tensor::all::<f32>(choices, &shapes)?;
    let [gamma, beta, state] = [gamma, beta, state].map(|all| Tensor::all::<f32>(choices, &all));
    let (gamma, beta, state) = (gamma?, beta?, state?);
    let mut written = outputs::<f32>(&wanted)?;
    let needed = unfused::normalized_lstm_cell_scratch(shapes[0][0], shapes[2][1] / 4);
    written.push(scratch::<f32>(choices, if found.is_ok() { needed } else { 0 })?);
    twice(choices, written, |context, written| {
        let [cs, h, scratch] = written else { unreachable!("as many") };
        let inputs = NormalizedLstmCellInputs::<f32> {
            x: inputs[0].view(),
            h_prev: inputs[1].view(),
            w: inputs[2].view(),
            gamma: views(&gamma),
            beta: views(&beta),
            cs_prev: state.first().map(Tensor::view),
        };
        let outputs = NormalizedLstmCellOutputs { cs: cs.view_mut(), h: h.view_mut() };
        let memory = scratch.elements_mut();
        let ended = unfused::normalized_lstm_cell(context, &attributes, inputs, outputs, memory);
        assert!(found.is_ok() || ended.is_err(), "{found:?}");
        ended
    })
}

/// `BlockcellLayerNormLSTMLayer`.
pub(crate) fn layer(choices: &mut Choices<'_>) -> Result<()> {
    let [time, batch, input, cell] = [(); 4].map(|()| choices.size());
    let rows = input.wrapping_add(cell);
    let state = broadcasting(choices, [batch, cell]);
    let mut shapes =
        vec![vec![time, batch, input], vec![batch, cell], state, vec![rows, cell.wrapping_mul(4)]];
    let mut wanted = vec![vec![time, batch, cell], vec![batch, cell], vec![batch, cell]];
    let [mut gamma, mut beta] = [(); 2].map(|()| norms(choices, cell));
    choices.disturb(4, shapes.iter_mut().chain(&mut gamma).chain(&mut beta));
    let steps = Steps::new(choices, time, batch);
    let kind = any_loop(choices, [batch, input], [batch, cell]);
    let kind = Loop { lists: choices.flag(), ..kind };
    if kind.lists {
        wanted[0][0] = usize::try_from(steps.time).unwrap_or(0);
    }
    choices.disturb(16, &mut wanted);
    let needed = unfused::normalized_lstm_layer_scratch([time, batch, input, cell]);
    let widths = [shapes[1].last().copied().unwrap_or(0), cell];
    let other = unfused::other_width_scratch([batch, input, cell], widths);
    let needed = [0, 1].map(|kind| needed[kind].saturating_add(other[kind]));
    let inputs = Tensor::all::<f32>(choices, &shapes)?;
    let [gamma, beta] = [gamma, beta].map(|all| Tensor::all::<f32>(choices, &all));
    let (gamma, beta) = (gamma?, beta?);
    let mut written: Vec<(Role, Tensor)> = outputs::<f32>(&wanted)?;
    for needed in needed {
        written.push(scratch::<f32>(choices, needed)?);
    }
    let attributes = attributes(choices);
    twice(choices, written, |context, written| {
        let [h, h_last, cs_last, numbers, elements] = written else { unreachable!("as many") };
        let inputs = NormalizedLstmLayerInputs::<f32> {
            time: steps.time,
            rounds: steps.rounds.clone(),
            sequence_length: steps.sequence_length.as_ref().map(Tensor::view),
            x: inputs[0].view(),
            h_prev: inputs[1].view(),
            cs_prev: inputs[2].view(),
            w: inputs[3].view(),
            gamma: views(&gamma),
            beta: views(&beta),
        };
        let outputs = NormalizedLstmLayerOutputs {
            h: h.view_mut(),
            h_last: h_last.view_mut(),
            cs_last: cs_last.view_mut(),
        };
        let memory = (numbers.elements_mut(), elements.elements_mut());
        unfused::normalized_lstm_layer(context, &attributes, &kind, inputs, outputs, memory)
    })
}
