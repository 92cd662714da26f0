//! Calls of the loops over steps of plain cells.

use arbitrary::Result;
use blockcell_kernels::Element;
use blockcell_kernels::plain::{
    self, ElementShapes, GruLayerInputs, GruLayerOutputs, LstmLayerInputs, LstmLayerOutputs, Steps,
};

use crate::choices::Choices;
use crate::tensor::{Held, Tensor, views};
use crate::twice::{Role, scratch_len, twice};

/// What a loop is known to do.
fn steps(choices: &mut Choices<'_>, time: usize, batch: usize) -> Steps {
    let exact = !choices.once_in(8);
    let rows = if exact { batch.min(1 << 13) } else { choices.small() };
    Steps {
        time: if exact { time as i64 } else { choices.steps(time) },
        rounds: choices.steps(time),
        sequence_length: choices
            .flag()
            .then(|| (0..rows).map(|_| choices.short_steps(time)).collect()),
    }
}

/// The shapes of the elements of the arrays of a loop: mostly right, if they are known at all.
pub(crate) fn element_shapes(
    choices: &mut Choices<'_>,
    x: [usize; 2],
    h: [usize; 2],
) -> ElementShapes {
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
    ElementShapes { x, h, needs_h: choices.flag() }
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
    choices.disturb(4, &mut shapes);
    choices.disturb(16, &mut outputs);
    let steps = steps(choices, time, batch);
    let elements = element_shapes(choices, [batch, input], [batch, cell]);
    let sizes = [time, batch, input, cell];
    let needed =
        if is_lstm { plain::lstm_layer_scratch(sizes) } else { plain::gru_layer_scratch(sizes) };
    let [numbers, memory] = needed.map(|needed| scratch_len(choices, needed));
    let inputs = Tensor::all::<E>(choices, &shapes)?;
    let mut written = Vec::new();
    for shape in &outputs {
        written.push((Role::Output, Tensor::zeros::<E>(shape)?));
    }
    written.push((Role::Scratch, Tensor::zeros::<f32>(&[numbers])?));
    written.push((Role::Scratch, Tensor::zeros::<E>(&[memory])?));
    let attributes = choices.lstm_attributes(has_peepholes);
    twice(choices, written, |context, written| {
        let (outputs, memory) = written.split_at_mut(outputs.len());
        let [numbers, elements_memory] = memory else { unreachable!("two kinds") };
        let memory = (numbers.elements_mut(), elements_memory.elements_mut());
        let loops = (&steps, &elements);
        if is_lstm {
            let [h, h_last, cs_last] = outputs else { unreachable!("three outputs") };
            let inputs = LstmLayerInputs::<E> {
                x: inputs[0].view(),
                h_prev: inputs[1].view(),
                cs_prev: inputs[2].view(),
                w: inputs[3].view(),
                b: inputs[4].view(),
                peepholes: views(&inputs[5..]).try_into().ok(),
            };
            let outputs = LstmLayerOutputs {
                h: h.view_mut(),
                h_last: h_last.view_mut(),
                cs_last: cs_last.view_mut(),
            };
            plain::lstm_layer(context, &attributes, loops, inputs, outputs, memory)
        } else {
            let [h, h_last] = outputs else { unreachable!("two outputs") };
            let inputs = GruLayerInputs::<E> {
                x: inputs[0].view(),
                h_prev: inputs[1].view(),
                w_ru: inputs[2].view(),
                w_c: inputs[3].view(),
                b_ru: inputs[4].view(),
                b_c: inputs[5].view(),
            };
            let outputs = GruLayerOutputs { h: h.view_mut(), h_last: h_last.view_mut() };
            plain::gru_layer(context, loops, inputs, outputs, memory)
        }
    })
}
