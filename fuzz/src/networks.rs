//! Calls of cuDNN's networks.

use arbitrary::Result;
use blockcell_kernels::cudnn_rnn::{
    self, Attributes, BackpropInputs, BackpropOutputs, InputMode, Inputs, Layout, Mode, Network,
    Outputs, Shapes,
};
use blockcell_kernels::{Context, Element, Error};

use crate::choices::Choices;
use crate::tensor::{Held, Tensor};
use crate::twice::{Role, scratch_len, twice};

const OP: &str = "CudnnRNNV3";

fn attributes(choices: &mut Choices<'_>) -> Attributes {
    let modes = [Mode::RnnRelu, Mode::RnnTanh, Mode::Lstm, Mode::Gru];
    let inputs = [InputMode::LinearInput, InputMode::AutoSelect, InputMode::SkipInput];
    Attributes {
        rnn_mode: modes[choices.below(modes.len())],
        input_mode: inputs[choices.below(inputs.len())],
        bidirectional: choices.flag(),
        dropout: if choices.flag() { 0.0 } else { choices.float() },
        seed: choices.number(),
        seed2: choices.number(),
        call: choices.number() as u64,
        is_training: choices.flag(),
        time_major: choices.flag(),
        num_proj: if choices.flag() { 0 } else { choices.number() },
    }
}

/// The tensors of a forward call, and what is known of it.
struct Given {
    attributes: Attributes,
    /// input, input_h, input_c and params.
    tensors: Vec<Tensor>,
    lengths: Option<Tensor>,
    network: std::result::Result<Network, Error>,
    /// The shapes of output, output_h and output_c, right or not.
    outputs: [Vec<usize>; 3],
}

impl Given {
    fn new<E: Element + Held>(choices: &mut Choices<'_>) -> Result<Self> {
        let attributes = attributes(choices);
        let [time, batch, input_size, units] = [(); 4].map(|()| choices.size());
        let input_size = if choices.flag() { units } else { input_size };
        let layers = choices.small();
        let directions = attributes.directions();
        let layout = Layout::new(OP, &attributes, [layers, units, input_size]);
        let params = layout.as_ref().map_or(0, Layout::len);
        let width = match usize::try_from(attributes.num_proj) {
            Ok(size) if size > 0 => size,
            _ => units,
        };
        let order = |[first, batch, last]: [usize; 3]| {
            if attributes.time_major { vec![first, batch, last] } else { vec![batch, first, last] }
        };
        let states = [width, units].map(|columns| order([layers * directions, batch, columns]));
        let [h, c] = states.clone();
        let mut shapes = vec![order([time, batch, input_size]), h, c, vec![params]];
        choices.disturb(4, &mut shapes);
        let mut lengths =
            choices.flag().then(|| vec![if choices.once_in(16) { choices.small() } else { batch }]);
        let network = Network::new(
            OP,
            &attributes,
            &Shapes {
                input: &shapes[0],
                input_h: &shapes[1],
                input_c: &shapes[2],
                params: &shapes[3],
                sequence_lengths: lengths.as_deref(),
            },
        );
        let tensors = Tensor::all::<E>(choices, &shapes)?;
        let lengths = lengths.take().map(|shape| {
            let rows = crate::choices::elements(&shape)?;
            let lengths = (0..rows).map(|_| choices.short_steps(time)).collect();
            Ok(Tensor::new::<i32>(&shape, lengths))
        });
        let output = match &network {
            Ok(network) => network.output_shape(&attributes).to_vec(),
            Err(_) => order([time, batch, width.wrapping_mul(directions)]),
        };
        let mut outputs = [output, states[0].clone(), states[1].clone()];
        choices.disturb(16, &mut outputs);
        Ok(Given { attributes, tensors, lengths: lengths.transpose()?, network, outputs })
    }

    fn is_lstm(&self) -> bool {
        self.attributes.rnn_mode == Mode::Lstm
    }

    fn inputs<E: Element + Held>(&self) -> Inputs<'_, E> {
        Inputs {
            input: self.tensors[0].view(),
            input_h: self.tensors[1].view(),
            input_c: self.is_lstm().then(|| self.tensors[2].view()),
            params: self.tensors[3].view(),
            sequence_lengths: self.lengths.as_ref().map(Tensor::view),
        }
    }

    /// What a number of elements is where there is a network.
    fn len(&self, of: impl Fn(&Network) -> usize) -> usize {
        self.network.as_ref().map_or(0, of)
    }
}

/// A forward pass.
pub(crate) fn forward<E: Element + Held>(choices: &mut Choices<'_>) -> Result<()> {
    let given = Given::new::<E>(choices)?;
    let attributes = &given.attributes;
    let half = size_of::<E>() == 2;
    let reserved = given.len(|network| network.reserve_space(attributes));
    let reserved = if attributes.is_training { reserved } else { 0 };
    let scratch = given.len(|network| cudnn_rnn::forward_scratch(network, attributes, half));
    let [reserved, scratch] = [reserved, scratch].map(|needed| scratch_len(choices, needed));
    let mut written = Vec::new();
    for (n, shape) in given.outputs.iter().enumerate() {
        let role = if n < 2 || given.is_lstm() { Role::Output } else { Role::Scratch };
        written.push((role, Tensor::zeros::<E>(shape)?));
    }
    // Parts of it are written only if the backward pass reads them.
    written.push((Role::Scratch, Tensor::zeros::<f32>(&[reserved])?));
    written.push((Role::Scratch, Tensor::zeros::<f32>(&[scratch])?));
    twice(choices, written, |context, written| run_forward::<E>(context, &given, written))
}

fn run_forward<E: Element + Held>(
    context: &Context<'_>,
    given: &Given,
    written: &mut [Tensor],
) -> std::result::Result<(), Error> {
    let [output, output_h, output_c, reserve_space, scratch] = written else {
        unreachable!("as many")
    };
    let outputs = Outputs {
        output: output.view_mut(),
        output_h: output_h.view_mut(),
        output_c: given.is_lstm().then(|| output_c.view_mut()),
        reserve_space: reserve_space.elements_mut(),
    };
    let scratch = scratch.elements_mut();
    let inputs = given.inputs::<E>();
    let ended = cudnn_rnn::forward(context, OP, &given.attributes, inputs, outputs, scratch);
    assert!(given.network.is_ok() || ended.is_err(), "{:?}", given.network);
    ended
}

/// A forward pass in training, and a backward pass on what it has kept, or on anything.
pub(crate) fn backprop<E: Element + Held>(choices: &mut Choices<'_>) -> Result<()> {
    let mut given = Given::new::<E>(choices)?;
    given.attributes.is_training = true;
    let attributes = given.attributes;
    let half = size_of::<E>() == 2;
    let reserved = given.len(|network| network.reserve_space(&attributes));
    let mut memory = Vec::new();
    for shape in &given.outputs {
        memory.push(Tensor::zeros::<E>(shape)?);
    }
    let scratch = given.len(|network| cudnn_rnn::forward_scratch(network, &attributes, half));
    let reserved = scratch_len(choices, reserved);
    memory.push(Tensor::of::<f32>(choices, &[reserved])?);
    memory.push(Tensor::zeros::<f32>(&[scratch])?);
    // A call that fails leaves numbers that no forward pass has made.
    let _ = run_forward::<E>(&Context::default(), &given, &mut memory);
    let reserve_space = memory.swap_remove(3);

    let gradients = Tensor::all::<E>(choices, &given.outputs)?;
    let mut shapes: Vec<_> = given.tensors.iter().map(|tensor| tensor.shape.clone()).collect();
    choices.disturb(16, &mut shapes);
    let mut written = Vec::new();
    for (n, shape) in shapes.iter().enumerate() {
        let role = if n != 2 || given.is_lstm() { Role::Output } else { Role::Scratch };
        written.push((role, Tensor::zeros::<E>(shape)?));
    }
    let scratch = given.len(|network| cudnn_rnn::backprop_scratch(network, half));
    let scratch = scratch_len(choices, scratch);
    written.push((Role::InPlace, reserve_space));
    written.push((Role::Scratch, Tensor::zeros::<f32>(&[scratch])?));
    twice(choices, written, |context, written| {
        let [input, h, c, params, reserve_space, scratch] = written else {
            unreachable!("as many")
        };
        let inputs = BackpropInputs::<E> {
            forward: given.inputs(),
            output_backprop: gradients[0].view(),
            output_h_backprop: gradients[1].view(),
            output_c_backprop: given.is_lstm().then(|| gradients[2].view()),
            reserve_space: reserve_space.elements_mut(),
        };
        let outputs = BackpropOutputs {
            input_backprop: input.view_mut(),
            input_h_backprop: h.view_mut(),
            input_c_backprop: given.is_lstm().then(|| c.view_mut()),
            params_backprop: params.view_mut(),
        };
        let scratch = scratch.elements_mut();
        let ended = cudnn_rnn::backprop(context, OP, &attributes, inputs, outputs, scratch);
        assert!(given.network.is_ok() || ended.is_err(), "{:?}", given.network);
        ended
    })
}

/// Parameters as single matrices and vectors, and back.
pub(crate) fn canonical<E: Element + Held>(choices: &mut Choices<'_>) -> Result<()> {
    let attributes = attributes(choices);
    let [layers, units, input_size] = [choices.small(), choices.size(), choices.size()];
    let Ok(layout) = Layout::new(OP, &attributes, [layers, units, input_size]) else {
        return Ok(());
    };
    let mut params = vec![vec![layout.len()]];
    choices.disturb(16, &mut params);
    let params = Tensor::of::<E>(choices, &params[0])?;
    let shapes = |regions: &mut dyn Iterator<Item = cudnn_rnn::Region>| {
        regions.map(|region| vec![region.range.len()]).collect::<Vec<_>>()
    };
    let (mut weights, mut biases) = (shapes(&mut layout.weights()), shapes(&mut layout.biases()));
    choices.disturb(8, weights.iter_mut().chain(&mut biases));
    let is_short = choices.once_in(16);
    let count = weights.len() - usize::from(is_short);
    let mut written = Vec::new();
    for shape in weights[..count].iter().chain(&biases) {
        written.push((Role::Output, Tensor::zeros::<E>(shape)?));
    }
    let parts = Tensor::all::<E>(choices, &[&weights[..count], &biases].concat())?;
    twice(choices, written, |_, written| {
        let mut parts: Vec<_> = written.iter_mut().map(Tensor::elements_mut).collect();
        let (weights, biases) = parts.split_at_mut(count);
        cudnn_rnn::params_to_canonical::<E>(OP, &layout, params.view(), weights, biases)
    })?;
    let written = vec![(Role::Output, Tensor::zeros::<E>(&params.shape)?)];
    twice(choices, written, |_, written| {
        let parts: Vec<_> = parts.iter().map(Tensor::elements).collect();
        let (weights, biases) = parts.split_at(count);
        cudnn_rnn::canonical_to_params::<E>(OP, &layout, weights, biases, written[0].view_mut())
    })
}
