//! Calls of the steps of plain cells, whose tensors broadcast.

use arbitrary::Result;
use blockcell_kernels::ops::{
    Lists, Op, UNFUSED_GRU_CELL, UNFUSED_GRU_CELL_GRAD_C, UNFUSED_GRU_CELL_GRAD_RU,
    UNFUSED_LSTM_CELL, UNFUSED_LSTM_CELL_GRAD,
};
use blockcell_kernels::unfused::{
    self, GruAttributes, GruCellGradCInputs, GruCellGradCOutputs, GruCellGradRuInputs,
    GruCellGradRuOutputs, GruCellInputs, GruCellOutputs, LstmCellGradAttributes,
    LstmCellGradInputs, LstmCellGradOutputs, LstmCellInputs, LstmCellOutputs,
};
use blockcell_kernels::{Element, Error};

use crate::choices::{Choices, elements};
use crate::tensor::{Held, Tensor, views};
use crate::twice::{Role, scratch_len, twice};
use crate::{known_outputs, with_lists};

/// A shape that is, or broadcasts to, or is broadcast with `[batch, cell]`.
pub(crate) fn broadcasting(choices: &mut Choices<'_>, [batch, cell]: [usize; 2]) -> Vec<usize> {
    match choices.below(10) {
        0..=4 => vec![batch, cell],
        5 => vec![1, cell],
        6 => vec![cell],
        7 => vec![batch, 1],
        8 => vec![],
        _ => vec![choices.small(), batch, cell],
    }
}

pub(crate) fn outputs<E: Element + Held>(shapes: &[Vec<usize>]) -> Result<Vec<(Role, Tensor)>> {
    shapes.iter().map(|shape| Ok((Role::Output, Tensor::zeros::<E>(shape)?))).collect()
}

/// Memory of the element type for a call that is known to need so much.
pub(crate) fn scratch<E: Element + Held>(
    choices: &mut Choices<'_>,
    needed: usize,
) -> Result<(Role, Tensor)> {
    let len = scratch_len(choices, needed);
    Ok((Role::Scratch, Tensor::zeros::<E>(&[len])?))
}

/// `BlockcellLSTMCell`.
pub(crate) fn lstm_cell<E: Element + Held>(choices: &mut Choices<'_>) -> Result<()> {
    let [batch, input, output, cell] = [(); 4].map(|()| choices.size());
    let gates = cell.wrapping_mul(4);
    let mut shapes = vec![
        vec![batch, input],
        vec![batch, output],
        vec![input.wrapping_add(output), gates],
        vec![gates],
    ];
    let [has_state, has_peepholes, is_apart, broadcasts_rows] = [(); 4].map(|()| choices.flag());
    let mut state = vec![broadcasting(choices, [batch, cell]); usize::from(has_state)];
    let mut peepholes = vec![vec![cell]; count_of_peepholes(choices, has_peepholes, has_state)];
    let mut w_h = vec![vec![output, gates]; usize::from(is_apart)];
    if is_apart {
        shapes[2][0] = input;
        if choices.once_in(4) {
            shapes[choices.below(2)][0] = 1;
        }
    }
    choices.disturb(4, shapes.iter_mut().chain(&mut state).chain(&mut peepholes).chain(&mut w_h));
    let (attributes, columns) = (choices.lstm_attributes(has_peepholes), choices.gate_columns());
    let lists: Vec<_> = shapes.chunks(1).chain([&state[..], &peepholes, &w_h]).collect();
    let activations = choices.activations();
    let infer = |shapes: &Lists<'_, _>| unfused::lstm_cell_shapes(broadcasts_rows, shapes);
    let found = known_outputs(with_lists(&UNFUSED_LSTM_CELL, &lists, &[1; 7], infer));
    let mut wanted = found.clone().unwrap_or_else(|_| vec![vec![batch, cell]; 7]);
    choices.disturb(16, &mut wanted);
    let inputs = Tensor::all::<E>(choices, &shapes)?;
    let cs_prev = Tensor::all::<E>(choices, &state)?;
    let peepholes = Tensor::all::<E>(choices, &peepholes)?;
    let w_h = Tensor::all::<E>(choices, &w_h)?;
    let mut written = outputs::<E>(&wanted)?;
    let needed = || {
        let size = |at: usize| (shapes[at][0], shapes[at][1]);
        let state = state.first().map(Vec::as_slice);
        unfused::lstm_cell_scratch([size(0), size(1)], shapes[3][0] / 4, state)
    };
    written.push(scratch::<E>(choices, if found.is_ok() { needed() } else { 0 })?);
    twice(choices, written, |context, written| {
        let [i, cs, f, o, ci, co, h, scratch] = written else { unreachable!("as many") };
        let inputs = LstmCellInputs::<E> {
            x: inputs[0].view(),
            h_prev: inputs[1].view(),
            w: inputs[2].view(),
            b: inputs[3].view(),
            cs_prev: cs_prev.first().map(Tensor::view),
            peepholes: views(&peepholes),
            w_h: w_h.first().map(Tensor::view),
        };
        let outputs = LstmCellOutputs {
            i: i.view_mut(),
            cs: cs.view_mut(),
            f: f.view_mut(),
            o: o.view_mut(),
            ci: two(ci),
            co: co.view_mut(),
            h: h.view_mut(),
        };
        let (attributes, memory) = ((&attributes, columns, activations), scratch.elements_mut());
        let ended =
            unfused::lstm_cell(context, attributes, broadcasts_rows, inputs, outputs, memory);
        assert!(found.is_ok() || ended.is_err(), "{found:?}");
        ended
    })
}

/// How many peepholes a step has. Without a state that of the output gate may be alone.
fn count_of_peepholes(choices: &mut Choices<'_>, has_any: bool, has_state: bool) -> usize {
    match (has_any, has_state) {
        (false, _) => 0,
        (true, true) => 3,
        (true, false) => [1, 3][choices.below(2)],
    }
}

/// A matrix, whatever rank its shape was given.
fn two<E: Held>(tensor: &mut Tensor) -> ndarray::ArrayViewMut2<'_, E> {
    tensor.view_mut()
}

/// `BlockcellLSTMCellGrad`.
pub(crate) fn lstm_cell_grad<E: Element + Held>(choices: &mut Choices<'_>) -> Result<()> {
    let [batch, cell] = [(); 2].map(|()| choices.size());
    let mut gates = vec![vec![batch, cell]; 4];
    let has_peepholes = choices.flag();
    let sums @ [sums_to_gates, sums_to_cs_prev, sums_to_product] = [(); 3].map(|()| choices.flag());
    let mut co =
        vec![if choices.flag() { vec![batch, cell] } else { broadcasting(choices, [batch, cell]) }];
    let state = [co[0].first().copied().unwrap_or(1), co[0].last().copied().unwrap_or(1)];
    let counts = [choices.below(2), choices.below(3), choices.below(3)];
    let mut lists =
        counts.map(|count| (0..count).map(|_| broadcasting(choices, state)).collect::<Vec<_>>());
    let count = count_of_peepholes(choices, has_peepholes, counts[0] > 0);
    if count == 3 {
        gates[..3].fill(co[0].clone());
    }
    let mut peepholes = vec![vec![cell]; count];
    let mut cs = vec![gates[0].clone(); usize::from(has_peepholes && choices.flag())];
    let summands = lists.iter_mut().flatten();
    let more = summands.chain(&mut peepholes).chain(&mut cs);
    choices.disturb(4, gates.iter_mut().chain(&mut co).chain(more));
    let summands = lists.iter().map(Vec::as_slice);
    let all: Vec<_> =
        gates.chunks(1).chain([&co[..]]).chain(summands).chain([&peepholes[..], &cs]).collect();
    let infer = |shapes: &Lists<'_, _>| unfused::lstm_cell_grad_shapes(sums, shapes);
    let counts = [1, 1, through(count), count];
    let found = known_outputs(with_lists(&UNFUSED_LSTM_CELL_GRAD, &all, &counts, infer));
    let mut wanted = found.clone().unwrap_or_else(|_| any_lstm_grads([batch, cell], &co[0], count));
    choices.disturb(16, &mut wanted);
    let needed = lists.each_ref().map(|list| list.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let needed = needed.each_ref().map(Vec::as_slice);
    let needed = found.as_ref().map_or(0, |_| {
        unfused::lstm_cell_grad_scratch((gates[3][0], gates[3][1]), &co[0], needed, count)
    });
    let mut written = outputs::<E>(&wanted)?;
    written.push(scratch::<E>(choices, needed)?);
    let gates = Tensor::all::<E>(choices, &gates)?;
    let co = Tensor::of::<E>(choices, &co[0])?;
    let [cs_prev, cs_grad, h_grad] = lists.map(|list| Tensor::all::<E>(choices, &list));
    let (cs_prev, cs_grad, h_grad) = (cs_prev?, cs_grad?, h_grad?);
    let (peepholes, cs) = (Tensor::all::<E>(choices, &peepholes)?, Tensor::all::<E>(choices, &cs)?);
    let (cell_clip, columns) = (choices.float(), choices.gate_columns());
    let activations = choices.activations();
    let attributes = LstmCellGradAttributes {
        sums_to_gates,
        sums_to_cs_prev,
        sums_to_product,
        cell_clip,
        columns,
        activations,
    };
    twice(choices, written, |context, written| {
        let [cs_prev_grad, dicfo, rest @ .., scratch] = written else { unreachable!("as many") };
        let inputs = LstmCellGradInputs::<E> {
            i: gates[0].view(),
            f: gates[1].view(),
            o: gates[2].view(),
            ci: gates[3].view(),
            co: co.view(),
            cs_prev: cs_prev.first().map(Tensor::view),
            cs_grad: views(&cs_grad),
            h_grad: views(&h_grad),
            peepholes: views(&peepholes),
            cs: cs.first().map(Tensor::view),
        };
        let (of_states, of_weights) = rest.split_at_mut(through(count));
        let outputs = LstmCellGradOutputs {
            cs_prev_grad: cs_prev_grad.view_mut(),
            dicfo: two(dicfo),
            through_peepholes: of_states.iter_mut().map(Tensor::view_mut).collect(),
            peephole_grads: of_weights.iter_mut().map(Tensor::view_mut).collect(),
        };
        let scratch = scratch.elements_mut();
        let ended = unfused::lstm_cell_grad(context, &attributes, inputs, outputs, scratch);
        assert!(found.is_ok() || ended.is_err(), "{found:?}");
        ended
    })
}

/// Shapes of the gradients of a call whose own shapes are wrong.
fn any_lstm_grads(size: [usize; 2], co: &[usize], peepholes: usize) -> Vec<Vec<usize>> {
    let [batch, cell] = size;
    let mut shapes = vec![co.to_vec(), vec![batch, cell.wrapping_mul(4)]];
    shapes.extend(vec![vec![batch, cell]; through(peepholes)]);
    shapes.extend(vec![vec![cell]; peepholes]);
    shapes
}

/// How many of so many peepholes look at the state before.
fn through(peepholes: usize) -> usize {
    if peepholes == 3 { 2 } else { 0 }
}

/// The shapes of the outputs of an operation without lists.
fn infer(op: &'static Op, shapes: &[Vec<usize>]) -> std::result::Result<Vec<Vec<usize>>, Error> {
    let (inputs, outputs) = (shapes.chunks(1).collect::<Vec<_>>(), vec![1; op.outputs.len()]);
    known_outputs(with_lists(op, &inputs, &outputs, |shapes| op.infer(false, shapes)))
}

/// `BlockcellGRUCell`.
pub(crate) fn gru_cell<E: Element + Held>(choices: &mut Choices<'_>) -> Result<()> {
    let [batch, input, cell] = [(); 3].map(|()| choices.size());
    let (rows, gates) = (input.wrapping_add(cell), cell.wrapping_mul(2));
    let mut shapes = vec![vec![batch, input], vec![batch, cell]];
    shapes.extend([vec![rows, gates], vec![rows, cell], vec![gates], vec![cell]]);
    if choices.flag() {
        (shapes[2][0], shapes[3][0]) = (input, input);
        shapes.extend([vec![cell, gates], vec![cell, cell]]);
        if choices.once_in(4) {
            shapes[choices.below(2)][0] = 1;
        }
    }
    let has_own = usize::from(shapes.len() > 6);
    choices.disturb(4, &mut shapes);
    let attributes = gru_attributes(choices);
    let lists: Vec<_> =
        shapes[..6].chunks(1).chain([&shapes[6..6 + has_own], &shapes[6 + has_own..]]).collect();
    let rows = attributes.broadcasts_rows;
    let found = known_outputs(with_lists(&UNFUSED_GRU_CELL, &lists, &[1; 4], |shapes| {
        unfused::gru_cell_shapes(rows, shapes)
    }));
    let mut wanted = found.clone().unwrap_or_else(|_| vec![vec![batch, cell]; 4]);
    choices.disturb(16, &mut wanted);
    let size = |shape: &[usize]| (shape[0], shape[1]);
    let needed = found
        .as_ref()
        .map_or([0; 2], |_| unfused::gru_cell_scratch([size(&shapes[0]), size(&shapes[1])]));
    let mut written = outputs::<E>(&wanted)?;
    written.push(scratch::<f32>(choices, needed[0])?);
    written.push(scratch::<E>(choices, needed[1])?);
    let inputs = Tensor::all::<E>(choices, &shapes)?;
    twice(choices, written, |context, written| {
        let [r, u, c, h, numbers, memory] = written else { unreachable!("as many") };
        let inputs = GruCellInputs::<E> {
            x: inputs[0].view(),
            h_prev: inputs[1].view(),
            w_ru: inputs[2].view(),
            w_c: inputs[3].view(),
            b_ru: inputs[4].view(),
            b_c: inputs[5].view(),
            w_ru_h: inputs.get(6).map(Tensor::view),
            w_c_h: inputs.get(7).map(Tensor::view),
        };
        let outputs = GruCellOutputs { r: two(r), u: two(u), c: two(c), h: two(h) };
        let memory = (numbers.elements_mut(), memory.elements_mut());
        let ended = unfused::gru_cell(context, &attributes, inputs, outputs, memory);
        assert!(found.is_ok() || ended.is_err(), "{found:?}");
        ended
    })
}

fn gru_attributes(choices: &mut Choices<'_>) -> GruAttributes {
    let activations = choices.activations();
    let [update_first, u_weighs_c, broadcasts_rows] = [(); 3].map(|()| choices.flag());
    GruAttributes { activations, update_first, u_weighs_c, broadcasts_rows }
}

/// `BlockcellGRUCellGradC` and `BlockcellGRUCellGradRU`.
pub(crate) fn gru_cell_grad<E: Element + Held>(choices: &mut Choices<'_>) -> Result<()> {
    let size = [(); 2].map(|()| choices.size());
    let is_ru = choices.flag();
    let mut shapes = vec![size.to_vec(); 3];
    shapes.push(broadcasting(choices, size));
    choices.disturb(4, &mut shapes);
    let op = if is_ru { &UNFUSED_GRU_CELL_GRAD_RU } else { &UNFUSED_GRU_CELL_GRAD_C };
    let found = infer(op, &shapes);
    let any = || vec![size.to_vec(); if is_ru { 2 } else { 3 }];
    let mut wanted = found.clone().unwrap_or_else(|_| any());
    choices.disturb(16, &mut wanted);
    let needed = found
        .as_ref()
        .map_or(0, |_| unfused::gru_cell_grad_scratch((shapes[0][0], shapes[0][1]), &shapes[3]));
    elements(&shapes[3])?;
    let mut written = outputs::<E>(&wanted)?;
    written.push(scratch::<E>(choices, needed)?);
    let inputs = Tensor::all::<E>(choices, &shapes)?;
    let attributes = gru_attributes(choices);
    twice(choices, written, |context, written| {
        let ended = if is_ru {
            let [d_r_bar_u_bar, d_hr_r, scratch] = written else { unreachable!("as many") };
            let outputs =
                GruCellGradRuOutputs { d_r_bar_u_bar: two(d_r_bar_u_bar), d_hr_r: two(d_hr_r) };
            let inputs = GruCellGradRuInputs::<E> {
                r: inputs[0].view(),
                h_prev: inputs[1].view(),
                d_u_bar: inputs[2].view(),
                d_hr: inputs[3].view(),
            };
            unfused::gru_cell_grad_ru(context, &attributes, inputs, outputs, scratch.elements_mut())
        } else {
            let [d_c_bar, d_u_bar, d_h_u, scratch] = written else { unreachable!("as many") };
            let outputs = GruCellGradCOutputs {
                d_c_bar: two(d_c_bar),
                d_u_bar: two(d_u_bar),
                d_h_u: two(d_h_u),
            };
            let inputs = GruCellGradCInputs::<E> {
                u: inputs[0].view(),
                h_prev: inputs[1].view(),
                c: inputs[2].view(),
                d_h: inputs[3].view(),
            };
            let memory = scratch.elements_mut();
            unfused::gru_cell_grad_c(context, &attributes, inputs, outputs, memory)
        };
        assert!(found.is_ok() || ended.is_err(), "{found:?}");
        ended
    })
}
