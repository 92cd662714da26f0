//! Calls of the steps of LSTM cells with layer normalization, whose states broadcast, of loops of them, and of normalizations.

use arbitrary::Result;
use blockcell_kernels::ops::{LAYER_NORM, LAYER_NORM_GRAD, Lists, NORMALIZED_LSTM_CELL};
use blockcell_kernels::unfused::{
    self, Loop, NormalizedAttributes, NormalizedLstmCellInputs, NormalizedLstmCellOutputs,
    NormalizedLstmLayerInputs, NormalizedLstmLayerOutputs,
};
use blockcell_kernels::unfused::{LayerNormAttributes, LayerNormInputs, LayerNormOutputs};
use blockcell_kernels::unfused::{
    LayerNormGradAttributes, LayerNormGradInputs, LayerNormGradOutputs,
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

/// `BlockcellLayerNorm`.
pub(crate) fn norm(choices: &mut Choices<'_>) -> Result<()> {
    let [rows, cell] = [(); 2].map(|()| choices.size());
    let x = broadcasting(choices, [rows, cell]);
    let mut shapes = vec![x, vec![cell], vec![cell]];
    choices.disturb(4, &mut shapes);
    let (epsilon, bias, over_last_axis) = (choices.float(), choices.float(), choices.flag());
    let attributes = LayerNormAttributes { epsilon, over_last_axis, bias };
    let lists: Vec<_> = shapes.chunks(1).collect();
    let infer = |shapes: &Lists<'_, _>| unfused::layer_norm_shapes(&attributes, shapes);
    let found = known_outputs(with_lists(&LAYER_NORM, &lists, &[1], infer));
    let mut wanted = found.clone().unwrap_or_else(|_| vec![vec![rows, cell]]);
    choices.disturb(16, &mut wanted);
    let inputs = Tensor::all::<f32>(choices, &shapes)?;
    twice(choices, outputs::<f32>(&wanted)?, |context, written| {
        let [y] = written else { unreachable!("as many") };
        let [x, gamma, beta] = &inputs[..] else { unreachable!("as many") };
        let inputs = LayerNormInputs::<f32> { x: x.view(), gamma: gamma.view(), beta: beta.view() };
        let outputs = LayerNormOutputs { y: y.view_mut() };
        let ended = unfused::layer_norm(context, &attributes, inputs, outputs);
        assert!(found.is_ok() || ended.is_err(), "{found:?}");
        ended
    })
}

/// `BlockcellLayerNormGrad`.
pub(crate) fn norm_grad(choices: &mut Choices<'_>) -> Result<()> {
    let [rows, cell] = [(); 2].map(|()| choices.size());
    let columns = if choices.once_in(4) { 1 } else { cell };
    let rows_of_dy = if choices.once_in(4) { 1 } else { rows };
    let mut shapes = vec![vec![rows, columns], vec![cell], vec![rows_of_dy, cell]];
    choices.disturb(4, &mut shapes);
    let known = choices.flag().then_some(rows);
    let attributes = LayerNormGradAttributes { epsilon: choices.float(), rows: known };
    let lists: Vec<_> = shapes.chunks(1).collect();
    let infer = |shapes: &Lists<'_, _>| unfused::layer_norm_grad_shapes(&attributes, shapes);
    let found = known_outputs(with_lists(&LAYER_NORM_GRAD, &lists, &[1; 3], infer));
    let mut wanted =
        found.clone().unwrap_or_else(|_| vec![vec![rows, cell], vec![cell], vec![cell]]);
    choices.disturb(16, &mut wanted);
    let inputs = Tensor::all::<f32>(choices, &shapes)?;
    let mut written = outputs::<f32>(&wanted)?;
    let needed = match &found {
        Ok(_) => unfused::layer_norm_grad_scratch(shapes[0][0], shapes[1][0]),
        Err(_) => 0,
    };
    written.push(scratch::<f32>(choices, needed)?);
    twice(choices, written, |context, written| {
        let [dx, dgamma, dbeta, scratch] = written else { unreachable!("as many") };
        let [x, gamma, dy] = &inputs[..] else { unreachable!("as many") };
        let inputs = LayerNormGradInputs::<f32> { x: x.view(), gamma: gamma.view(), dy: dy.view() };
        let outputs = LayerNormGradOutputs {
            dx: dx.view_mut(),
            dgamma: dgamma.view_mut(),
            dbeta: dbeta.view_mut(),
        };
        let memory = scratch.elements_mut();
        let ended = unfused::layer_norm_grad(context, &attributes, inputs, outputs, memory);
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
