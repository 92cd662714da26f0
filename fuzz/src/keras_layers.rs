//! Calls of the loops of Keras's layers.

use arbitrary::Result;
use blockcell_kernels::unfused::{
    self, KerasGruInputs, KerasGruOutputs, KerasLstmInputs, KerasLstmOutputs, Loop,
};
use blockcell_kernels::{Context, Element, Error};

use crate::choices::{Choices, elements as number_of};
use crate::tensor::{Held, Tensor};
use crate::twice::{Role, scratch_len, twice};
use crate::unfused_layers::any_loop;

/// The tensors of a call, and what is known of it.
struct Given {
    is_lstm: bool,
    kind: Loop,
    size: i32,
    rounds: i32,
    /// Which rows take part in which steps, and the output before.
    mask: Option<[Tensor; 2]>,
    /// x, the states, and the weights.
    inputs: Vec<Tensor>,
}

/// Mostly as many rows as the batch has; one may stand for all.
fn rows(choices: &mut Choices<'_>, batch: usize) -> usize {
    if choices.once_in(4) { 1 } else { batch }
}

impl Given {
    fn new<E: Element + Held>(
        choices: &mut Choices<'_>,
        [time, batch, input, cell]: [usize; 4],
    ) -> Result<Self> {
        let [is_lstm, has_mask] = [(); 2].map(|()| choices.flag());
        let (states, gates, biases) = if is_lstm { (2, 4, 1) } else { (1, 3, 2) };
        let gates = cell.wrapping_mul(gates);
        let mut shapes = vec![vec![time, rows(choices, batch), input]];
        shapes.extend((0..states).map(|_| vec![rows(choices, batch), cell]));
        shapes.extend([vec![input, gates], vec![cell, gates]]);
        shapes.extend((0..biases).map(|_| vec![gates]));
        let mut mask = [vec![time, rows(choices, batch), 1], vec![rows(choices, batch), cell]];
        choices.disturb(4, shapes.iter_mut().chain(&mut mask));
        let whole = i32::try_from(time).unwrap_or(i32::MAX);
        let size = if choices.once_in(8) { choices.short_steps(time) } else { whole };
        let rounds = choices.short_steps(time);
        let [last_only, repeats, reset_after] = [(); 3].map(|()| choices.flag());
        let kind = any_loop(choices, [batch, input], [batch, cell]);
        let kind = Loop { lists: true, last_only, repeats, reset_after, ..kind };
        let [valid, before] = mask;
        let mask = has_mask.then(|| {
            let flags = (0..number_of(&valid)?).map(|_| choices.flag().into());
            Ok([Tensor::new::<u8>(&valid, flags.collect()), Tensor::of::<E>(choices, &before)?])
        });
        let inputs = Tensor::all::<E>(choices, &shapes)?;
        Ok(Given { is_lstm, kind, size, rounds, mask: mask.transpose()?, inputs })
    }

    fn run<E: Element + Held>(
        &self,
        context: &Context<'_>,
        written: &mut [Tensor],
    ) -> std::result::Result<(), Error> {
        let (outputs, memory) = written.split_at_mut(if self.is_lstm { 3 } else { 2 });
        let [numbers, elements_memory] = memory else { unreachable!("two kinds") };
        let memory = (numbers.elements_mut(), elements_memory.elements_mut());
        let (kind, size, rounds) = (&self.kind, self.size, vec![self.rounds]);
        let mask = self.mask.as_ref();
        let (mask, before) =
            (mask.map(|[mask, _]| mask.view()), mask.map(|[_, before]| before.view()));
        match (outputs, &self.inputs[..]) {
            ([h, h_last, cs_last], [x, h_prev, cs_prev, w_x, w_h, b]) => {
                let inputs = KerasLstmInputs::<E> {
                    size,
                    rounds,
                    x: x.view(),
                    h_prev: h_prev.view(),
                    cs_prev: cs_prev.view(),
                    w_x: w_x.view(),
                    w_h: w_h.view(),
                    b: b.view(),
                    mask,
                    before,
                };
                let outputs = KerasLstmOutputs {
                    h: h.view_mut(),
                    h_last: h_last.view_mut(),
                    cs_last: cs_last.view_mut(),
                };
                unfused::keras_lstm(context, kind, inputs, outputs, memory)
            }
            ([h, h_last], [x, h_prev, w_x, w_h, b_x, b_h]) => {
                let inputs = KerasGruInputs::<E> {
                    size,
                    rounds,
                    x: x.view(),
                    h_prev: h_prev.view(),
                    w_x: w_x.view(),
                    w_h: w_h.view(),
                    b_x: b_x.view(),
                    b_h: b_h.view(),
                    mask,
                    before,
                };
                let outputs = KerasGruOutputs { h: h.view_mut(), h_last: h_last.view_mut() };
                unfused::keras_gru(context, kind, inputs, outputs, memory)
            }
            _ => unreachable!("an LSTM or a GRU"),
        }
    }
}

/// `BlockcellKerasLSTM` or `BlockcellKerasGRU`.
pub(crate) fn call<E: Element + Held>(choices: &mut Choices<'_>) -> Result<()> {
    let sizes @ [time, batch, _, cell] = [(); 4].map(|()| choices.size());
    let given = Given::new::<E>(choices, sizes)?;
    let size = usize::try_from(given.size).unwrap_or(time);
    let mut outputs = vec![vec![size, batch, cell], vec![batch, cell]];
    if given.is_lstm {
        outputs.push(vec![batch, cell]);
    }
    choices.disturb(16, &mut outputs);
    let needed = if given.is_lstm {
        unfused::keras_lstm_scratch(sizes)
    } else {
        unfused::keras_gru_scratch(sizes)
    };
    let [numbers, memory] = needed.map(|needed| scratch_len(choices, needed));
    let mut written = Vec::new();
    for shape in &outputs {
        written.push((Role::Output, Tensor::zeros::<E>(shape)?));
    }
    written.push((Role::Scratch, Tensor::zeros::<f32>(&[numbers])?));
    written.push((Role::Scratch, Tensor::zeros::<E>(&[memory])?));
    twice(choices, written, |context, written| given.run::<E>(context, written))
}
