//! Calls of the operations in the table of the kernels: steps and sequences.

use arbitrary::Result;
use blockcell_kernels::block_lstm::Variant::{BlockLstm, BlockLstmV2};
use blockcell_kernels::ops::{self, Dim, Keeps, Op, Sizes};
use blockcell_kernels::{
    Activation, Activations, Context, Element, Error, block_gru, block_lstm, gru, lstm,
};

use crate::choices::{Choices, elements};
use crate::tensor::{Held, Inputs, Outputs, Tensor};
use crate::twice::{Role, scratch_len, twice};

/// The attributes of all operations, of which each has some.
struct Attributes {
    /// Whether the optional vectors are used: `use_peephole` or `reset_after`.
    use_optional: bool,
    lstm: lstm::Attributes,
    activations: Activations,
    keeps: Keeps,
}

fn sizes(choices: &mut Choices<'_>, use_optional: bool) -> Sizes {
    let [time, batch, input_size, cell_size] = [(); 4].map(|()| choices.size());
    let optional = if use_optional { [cell_size; 3] } else { [(); 3].map(|()| choices.small()) };
    Sizes { time, batch, input_size, cell_size, optional }
}

fn input<E: Element + Held>(
    choices: &mut Choices<'_>,
    tensor: &ops::Tensor,
    shape: &[usize],
    time: usize,
) -> Result<Tensor> {
    if !tensor.is_steps() {
        return Tensor::of::<E>(choices, shape);
    }
    let steps = (0..elements(shape)?).map(|_| choices.steps(time)).collect();
    Ok(Tensor::new::<i64>(shape, steps))
}

/// How much scratch memory a call needs, with packed weights apart from their gradients or in the memory of these.
fn scratch(op: &Op, sizes: &Sizes, is_apart: bool) -> usize {
    match op.name {
        "GRUBlockCell" => gru::block_cell_scratch(sizes),
        "BlockLSTM" | "BlockLSTMV2" | "BlockcellLSTM" => block_lstm::forward_scratch(sizes),
        "BlockLSTMGrad" | "BlockLSTMGradV2" | "BlockcellLSTMGrad" => {
            block_lstm::grad_scratch(sizes, is_apart)
        }
        "BlockGRU" => block_gru::forward_scratch(sizes),
        "BlockGRUGrad" => block_gru::grad_scratch(sizes, is_apart),
        _ => 0,
    }
}

pub(crate) fn call<E: Element + Held>(choices: &mut Choices<'_>) -> Result<()> {
    let op = ops::BLOCK[choices.below(ops::BLOCK.len())];
    // Rust takes all types where there is a choice, and TensorFlow fewer.
    let has_types = op.types.len() > 1;
    let use_optional = choices.flag();
    let keeps = if choices.flag() { Keeps::All } else { Keeps::WhatIsRead };
    let lstm = choices.lstm_attributes(use_optional);
    let [state, gates] = [(); 2].map(|()| Activation::ALL[choices.below(Activation::ALL.len())]);
    let activations = Activations { state, gates };
    let attributes = Attributes { use_optional, lstm, activations, keeps };
    if has_types {
        of_type::<E>(choices, op, &attributes)
    } else {
        of_type::<f32>(choices, op, &attributes)
    }
}

fn of_type<E: Element + Held>(
    choices: &mut Choices<'_>,
    op: &'static Op,
    attributes: &Attributes,
) -> Result<()> {
    let sizes = sizes(choices, attributes.use_optional);
    let shape = |tensor: &ops::Tensor| tensor.dims.iter().map(|&dim| sizes.of(dim)).collect();
    let mut shapes: Vec<Vec<usize>> = op.inputs.iter().map(shape).collect();
    choices.disturb(4, &mut shapes);
    let inputs = op.inputs.iter().zip(&shapes);
    let inputs: Vec<_> = inputs
        .map(|(tensor, shape)| input::<E>(choices, tensor, shape, sizes.time))
        .collect::<Result<_>>()?;

    let mut shapes: Vec<Vec<usize>> = op.outputs.iter().map(shape).collect();
    choices.disturb(8, &mut shapes);
    let mut written = Vec::new();
    let mut is_apart = size_of::<E>() == 2;
    for (tensor, shape) in op.outputs.iter().zip(&mut shapes) {
        let may_shrink = match tensor.dims.first() {
            Some(Dim::TimeOrOne) => attributes.keeps == Keeps::WhatIsRead,
            Some(Dim::TimeOrNone | Dim::InputCellOrNone) => true,
            _ => false,
        };
        let is_unread = may_shrink && choices.flag();
        if is_unread && !shape.is_empty() {
            shape[0] = shape[0].min(sizes.of_unread(tensor.dims[0]));
            is_apart |= tensor.dims[0] == Dim::InputCellOrNone;
        }
        let role = if is_unread { Role::Scratch } else { Role::Output };
        written.push((role, Tensor::zeros::<E>(shape)?));
    }
    let is_in_place = |tensor: &ops::Tensor| op.in_place.contains(&tensor.name);
    let (in_place, read): (Vec<_>, Vec<_>) =
        inputs.iter().zip(op.inputs).partition(|(_, tensor)| is_in_place(tensor));
    written.extend(in_place.iter().map(|(input, _)| (Role::InPlace, (*input).clone())));

    let shapes: Vec<_> = inputs.iter().map(|input| &input.shape[..]).collect();
    let checked = op.check(attributes.use_optional, &shapes);
    let needed = checked.as_ref().map_or(0, |sizes| scratch(op, sizes, is_apart));
    let len = scratch_len(choices, needed);
    written.push((Role::Scratch, Tensor::zeros::<f32>(&[len])?));
    twice(choices, written, |context, written| {
        let inputs = Inputs(read.iter().map(|(input, _)| *input).collect());
        let ended = run::<E>(context, op, attributes, inputs, written);
        assert!(checked.is_ok() || ended.is_err(), "{checked:?}");
        ended
    })
}

fn run<E: Element + Held>(
    context: &Context<'_>,
    op: &Op,
    &Attributes { use_optional, ref lstm, activations, keeps }: &Attributes,
    mut inputs: Inputs<'_>,
    written: &mut [Tensor],
) -> std::result::Result<(), Error> {
    let (outputs, rest) = written.split_at_mut(op.outputs.len());
    let (in_place, scratch) = rest.split_at_mut(op.in_place.len());
    let (mut outputs, mut in_place) = (Outputs(outputs.iter_mut()), Outputs(in_place.iter_mut()));
    let scratch = scratch[0].elements_mut::<f32>();
    let (i, p, o) = (&mut inputs, &mut in_place, &mut outputs);
    let gru = block_gru::Attributes { reset_after: use_optional, activations };
    match op.name {
        // These are of float alone.
        "GRUBlockCell" => {
            let inputs = gru::BlockCellInputs::from_source(i);
            gru::block_cell(context, inputs, gru::BlockCellOutputs::from_source(o), scratch)
        }
        "GRUBlockCellGrad" => {
            let inputs = gru::BlockCellGradInputs::from_source(i);
            gru::block_cell_grad(context, inputs, gru::BlockCellGradOutputs::from_source(o))
        }
        "LSTMBlockCell" => {
            let inputs = lstm::BlockCellInputs::<E>::from_source(i);
            lstm::block_cell(context, lstm, inputs, lstm::BlockCellOutputs::from_source(o))
        }
        "LSTMBlockCellGrad" => {
            let inputs = lstm::BlockCellGradInputs::<E>::from_source(i);
            let outputs = lstm::BlockCellGradOutputs::from_source(o);
            lstm::block_cell_grad(context, use_optional, inputs, outputs)
        }
        "BlockLSTM" | "BlockLSTMV2" => {
            let variant = if op.name == "BlockLSTM" { BlockLstm } else { BlockLstmV2 };
            let inputs = block_lstm::Inputs::<E>::from_source(i);
            let outputs = block_lstm::Outputs::from_source(o);
            block_lstm::forward(context, variant, lstm, inputs, outputs, keeps, scratch)
        }
        "BlockLSTMGrad" | "BlockLSTMGradV2" => {
            let variant = if op.name == "BlockLSTMGrad" { BlockLstm } else { BlockLstmV2 };
            let inputs = block_lstm::GradInputs::<E>::from_source(i);
            let in_place = block_lstm::GradInPlace::from_source(p);
            let outputs = block_lstm::GradOutputs::from_source(o);
            block_lstm::grad(context, variant, use_optional, inputs, in_place, outputs, scratch)
        }
        "BlockGRU" => {
            let inputs = block_gru::Inputs::<E>::from_source(i);
            let outputs = block_gru::Outputs::from_source(o);
            block_gru::forward(context, gru, inputs, outputs, keeps, scratch)
        }
        "BlockGRUGrad" => {
            let inputs = block_gru::GradInputs::<E>::from_source(i);
            let in_place = block_gru::GradInPlace::from_source(p);
            let outputs = block_gru::GradOutputs::from_source(o);
            block_gru::grad(context, gru, inputs, in_place, outputs, scratch)
        }
        "BlockcellLSTM" => {
            let inputs = block_lstm::ByRowInputs::<E>::from_source(i);
            let outputs = block_lstm::ByRowOutputs::from_source(o);
            block_lstm::forward_by_row(context, activations, inputs, outputs, keeps, scratch)
        }
        "BlockcellLSTMGrad" => {
            let inputs = block_lstm::ByRowGradInputs::<E>::from_source(i);
            let in_place = block_lstm::ByRowGradInPlace::from_source(p);
            let outputs = block_lstm::ByRowGradOutputs::from_source(o);
            block_lstm::grad_by_row(context, activations, inputs, in_place, outputs, scratch)
        }
        _ => unreachable!("all operations of the table"),
    }
}
