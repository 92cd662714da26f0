//! Calls of the loops over steps of plain cells.

use arbitrary::Result;
use blockcell_kernels::Element;
use blockcell_kernels::unfused::{
    self, GruLayerInputs, GruLayerOutputs, Loop, LstmLayerInputs, LstmLayerOutputs,
};

use crate::choices::Choices;
use crate::tensor::{Held, Tensor, views};
use crate::twice::{Role, scratch_len, twice};

/// The numbers of a loop.
pub(crate) struct Steps {
    pub(crate) time: i32,
    pub(crate) rounds: Vec<i32>,
    pub(crate) sequence_length: Option<Tensor>,
}

impl Steps {
    pub(crate) fn new(choices: &mut Choices<'_>, time: usize, batch: usize) -> Self {
        let exact = !choices.once_in(8);
        let rows = if exact { batch.min(1 << 13) } else { choices.small() };
        let whole = i32::try_from(time).unwrap_or(i32::MAX);
        let time_of_h = if exact { whole } else { choices.short_steps(time) };
        let mut rounds = vec![choices.short_steps(time)];
        if choices.once_in(4) {
            rounds.push(choices.short_steps(time));
        }
        let sequence_length = choices.flag().then(|| {
            // A scalar serves all rows.
            let shape = if choices.once_in(8) { Vec::new() } else { vec![rows] };
            let lengths = (0..shape.iter().product()).map(|_| choices.short_steps(time));
            let lengths = lengths.collect();
            Tensor::new::<i32>(&shape, lengths)
        });
        Steps { time: time_of_h, rounds, sequence_length }
    }
}

/// What is known of a loop: of the elements of its arrays mostly what is right, if anything at all.
pub(crate) fn any_loop(choices: &mut Choices<'_>, x: [usize; 2], h: [usize; 2]) -> Loop {
    let mut element = |sizes: [usize; 2]| {
        choices.flag().then(|| {
            let mut known = |size| match choices.below(8) {
                0..=4 => Some(size),
                5 => Some(choices.size()),
                _ => None,
            };
            sizes.map(&mut known).to_vec()
        })
    };
    let (x, h) = (element(x), element(h));
    let (needs_h, activations) = (choices.flag(), choices.activations());
    Loop { x, h, needs_h, activations, ..Loop::default() }
}

/// `BlockcellLSTMLayer` or `BlockcellGRULayer`.
pub(crate) fn call<E: Element + Held>(choices: &mut Choices<'_>) -> Result<()> {
    let [time, batch, input, cell] = [(); 4].map(|()| choices.size());
    let [is_lstm, has_peepholes] = [(); 2].map(|()| choices.flag());
    let rows = input.wrapping_add(cell);
    let gates = |count: usize| cell.wrapping_mul(count);
    let mut shapes = vec![vec![time, batch, input], vec![batch, cell]];
    let mut outputs = vec![vec![time, batch, cell], vec![batch, cell]];
    if is_lstm {
        let state = [vec![batch, cell], vec![1, cell], vec![cell], vec![]];
        shapes.extend([
            state[choices.small().min(3)].clone(),
            vec![rows, gates(4)],
            vec![gates(4)],
        ]);
        shapes.extend((0..if has_peepholes { 3 } else { 0 }).map(|_| vec![cell]));
        outputs.push(vec![batch, cell]);
    } else {
        shapes.extend([vec![rows, gates(2)], vec![rows, cell], vec![gates(2)], vec![cell]]);
    }
    let mut w_h = match choices.flag() {
        true if is_lstm => vec![vec![cell, gates(4)]],
        true => vec![vec![cell, gates(2)], vec![cell, cell]],
        false => Vec::new(),
    };
    let mut projection = vec![vec![cell; 2]; usize::from(is_lstm && choices.once_in(3))];
    if !projection.is_empty() {
        // Outputs, and what goes with them, are narrower.
        let output = choices.size().min(cell);
        projection[0][1] = output;
        shapes[1][1] = output;
        shapes[3][0] = input.wrapping_add(output);
        (outputs[0][2], outputs[1][1]) = (output, output);
        w_h.iter_mut().for_each(|w_h| w_h[0] = output);
    }
    if !w_h.is_empty() {
        shapes[3][0] = input;
        if !is_lstm {
            shapes[2][0] = input;
        }
        if choices.once_in(4) {
            let at = choices.below(2);
            shapes[at][1 - at] = 1;
        }
    }
    if is_lstm && choices.once_in(8) {
        // In a loop of one round.
        let own = choices.size();
        shapes[1][1] = own;
        match w_h.first_mut() {
            Some(w_h) => w_h[0] = own,
            None => shapes[3][0] = input.wrapping_add(own),
        }
    }
    choices.disturb(4, shapes.iter_mut().chain(&mut w_h).chain(&mut projection));
    let steps = Steps::new(choices, time, batch);
    let kind = any_loop(choices, [batch, input], [batch, cell]);
    let kind = Loop { lists: choices.flag(), ..kind };
    if kind.lists {
        outputs[0][0] = usize::try_from(steps.time).unwrap_or(0);
    }
    choices.disturb(16, &mut outputs);
    let sizes = [time, batch, input, cell];
    let needed = if is_lstm {
        unfused::lstm_layer_scratch(sizes)
    } else {
        unfused::gru_layer_scratch(sizes)
    };
    let x = unfused::copied_x(&shapes[0], batch);
    let of_projection = projection.first().map(|shape| shape.last().copied().unwrap_or(0));
    let more = unfused::projection_scratch([batch, cell], of_projection);
    let widths = [shapes[1].last().copied().unwrap_or(0), of_projection.unwrap_or(cell)];
    let other = unfused::other_width_scratch([batch, input, cell], widths);
    let sum = |kind: usize| needed[kind].saturating_add(more[kind]).saturating_add(other[kind]);
    let needed = [sum(0), sum(1).saturating_add(x)];
    let [numbers, memory] = needed.map(|needed| scratch_len(choices, needed));
    let inputs = Tensor::all::<E>(choices, &shapes)?;
    let w_h = Tensor::all::<E>(choices, &w_h)?;
    let projection = Tensor::all::<E>(choices, &projection)?;
    let mut written = Vec::new();
    for shape in &outputs {
        written.push((Role::Output, Tensor::zeros::<E>(shape)?));
    }
    written.push((Role::Scratch, Tensor::zeros::<f32>(&[numbers])?));
    written.push((Role::Scratch, Tensor::zeros::<E>(&[memory])?));
    let (attributes, columns) = (choices.lstm_attributes(has_peepholes), choices.gate_columns());
    let [broadcasts, broadcasts_rows, adds_x] = [(); 3].map(|()| choices.flag());
    let [update_first, u_weighs_c] = [(); 2].map(|()| choices.flag());
    let kind = Loop { broadcasts, broadcasts_rows, adds_x, update_first, u_weighs_c, ..kind };
    let proj_clip = [-1.0, 0.3][choices.below(2)];
    twice(choices, written, |context, written| {
        let (outputs, memory) = written.split_at_mut(outputs.len());
        let [numbers, elements_memory] = memory else { unreachable!("two kinds") };
        let memory = (numbers.elements_mut(), elements_memory.elements_mut());
        let (time, rounds) = (steps.time, steps.rounds.clone());
        let sequence_length = steps.sequence_length.as_ref().map(Tensor::view);
        if is_lstm {
            let [h, h_last, cs_last] = outputs else { unreachable!("three outputs") };
            let inputs = LstmLayerInputs::<E> {
                time,
                rounds,
                sequence_length,
                x: inputs[0].view(),
                h_prev: inputs[1].view(),
                cs_prev: inputs[2].view(),
                w: inputs[3].view(),
                b: inputs[4].view(),
                peepholes: views(&inputs[5..]),
                w_h: w_h.first().map(Tensor::view),
                projection: projection.first().map(Tensor::view),
            };
            let outputs = LstmLayerOutputs {
                h: h.view_mut(),
                h_last: h_last.view_mut(),
                cs_last: cs_last.view_mut(),
            };
            let attributes = (&attributes, columns, proj_clip);
            unfused::lstm_layer(context, attributes, &kind, inputs, outputs, memory)
        } else {
            let [h, h_last] = outputs else { unreachable!("two outputs") };
            let inputs = GruLayerInputs::<E> {
                time,
                rounds,
                sequence_length,
                x: inputs[0].view(),
                h_prev: inputs[1].view(),
                w_ru: inputs[2].view(),
                w_c: inputs[3].view(),
                b_ru: inputs[4].view(),
                b_c: inputs[5].view(),
                w_ru_h: w_h.first().map(Tensor::view),
                w_c_h: w_h.get(1).map(Tensor::view),
            };
            let outputs = GruLayerOutputs { h: h.view_mut(), h_last: h_last.view_mut() };
            unfused::gru_layer(context, &kind, inputs, outputs, memory)
        }
    })
}
