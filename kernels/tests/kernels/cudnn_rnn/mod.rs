//! The networks of cuDNN's operations against an oracle in float64.

pub(crate) mod canonical;
mod dropout;
mod errors;
mod gradients;
mod int8;
mod oracle;
pub(crate) mod values;

use blockcell_kernels::cudnn_rnn::{
    self, Attributes, BackpropInputs, BackpropOutputs, InputMode, Inputs, Mode, Network, Outputs,
    Shapes,
};
use blockcell_kernels::{Constant, Constants, Context, Copies, Element, Error};
use bytemuck::Pod;
use half::f16;
use ndarray::{Array1, Array3, Ix1, Ix3};

use crate::common::data::Data;

pub(crate) const OP: &str = "CudnnRNNV3";

pub(crate) const MODES: [Mode; 4] = [Mode::RnnRelu, Mode::RnnTanh, Mode::Lstm, Mode::Gru];

/// A call without data.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) attributes: Attributes,
    pub(crate) num_layers: usize,
    pub(crate) time: usize,
    pub(crate) batch: usize,
    pub(crate) input_size: usize,
    pub(crate) num_units: usize,
    pub(crate) lengths: Option<Vec<i32>>,
}

impl Case {
    /// A network of one layer in one direction.
    pub(crate) fn new(mode: Mode, [time, batch, input_size, num_units]: [usize; 4]) -> Self {
        let attributes = Attributes {
            rnn_mode: mode,
            input_mode: InputMode::LinearInput,
            bidirectional: false,
            dropout: 0.0,
            seed: 0,
            seed2: 0,
            call: 0,
            is_training: true,
            time_major: true,
            num_proj: 0,
        };
        Case { attributes, num_layers: 1, time, batch, input_size, num_units, lengths: None }
    }

    pub(crate) fn directions(&self) -> usize {
        self.attributes.directions()
    }

    /// The number of steps of each row.
    pub(crate) fn all_lengths(&self) -> Vec<usize> {
        match &self.lengths {
            Some(lengths) => lengths.iter().map(|&length| length as usize).collect(),
            None => vec![self.time; self.batch],
        }
    }

    /// Sizes in the order of the tensors.
    fn in_order(&self, [first, batch, last]: [usize; 3]) -> [usize; 3] {
        if self.attributes.time_major { [first, batch, last] } else { [batch, first, last] }
    }

    pub(crate) fn network(&self) -> Result<Network, Error> {
        let [h, c] = self.states().map(|state| self.in_order(state));
        let params = self.params_size();
        let input = self.in_order([self.time, self.batch, self.input_size]);
        let shapes = Shapes {
            input: &input,
            input_h: &h,
            input_c: &c,
            params: &[params],
            sequence_lengths: self.lengths.as_ref().map(|_| std::slice::from_ref(&self.batch)),
        };
        Network::new(OP, &self.attributes, &shapes)
    }

    /// The number of columns of the state h.
    pub(crate) fn output_size(&self) -> usize {
        if self.attributes.num_proj == 0 {
            self.num_units
        } else {
            self.attributes.num_proj as usize
        }
    }

    /// The shapes of h and c.
    fn states(&self) -> [[usize; 3]; 2] {
        let pseudo_layers = self.num_layers * self.directions();
        [self.output_size(), self.num_units].map(|columns| [pseudo_layers, self.batch, columns])
    }

    /// The number of parameters, by the definition of the buffer.
    pub(crate) fn params_size(&self) -> usize {
        let (units, directions) = (self.num_units, self.directions());
        let skip = match self.attributes.input_mode {
            InputMode::LinearInput => false,
            InputMode::SkipInput => true,
            InputMode::AutoSelect => self.input_size == units,
        };
        let first = if skip { 0 } else { self.input_size };
        let state = self.output_size();
        let columns = (0..self.num_layers).map(|n| if n == 0 { first } else { directions * state });
        let rows = self.attributes.rnn_mode.gates() * units;
        let projection = self.attributes.num_proj as usize * units;
        let weights = columns.map(|columns| rows * (columns + state + 2) + projection);
        weights.map(|weights| directions * weights).sum()
    }

    /// Random tensors, rounded to an element type.
    pub(crate) fn tensors(&self, seed: u64, round: fn(f64) -> f64) -> Given {
        let mut data = Data::new(seed, round);
        let mut tensor = |sizes: [usize; 3], limit| {
            let tensor = data.uniform(&self.in_order(sizes), limit);
            tensor.into_dimensionality::<Ix3>().expect("three axes")
        };
        let output = [self.time, self.batch, self.directions() * self.output_size()];
        let mut given = Given {
            input: tensor([self.time, self.batch, self.input_size], 1.0),
            states: self.states().map(|state| tensor(state, 1.0)),
            params: Array1::zeros(0),
            output_backprop: tensor(output, 1.0),
            states_backprop: self.states().map(|state| tensor(state, 1.0)),
        };
        let limit = 1.0 / (self.num_units.max(1) as f64).sqrt();
        let params = data.uniform(&[self.params_size()], limit);
        given.params = params.into_dimensionality::<Ix1>().expect("one axis");
        given
    }
}

/// The inputs of the forward and the backward pass. The first of two states is h, the second c.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) input: Array3<f64>,
    pub(crate) states: [Array3<f64>; 2],
    pub(crate) params: Array1<f64>,
    pub(crate) output_backprop: Array3<f64>,
    pub(crate) states_backprop: [Array3<f64>; 2],
}

/// The outputs of a forward pass.
pub(crate) struct Forward {
    pub(crate) output: Array3<f64>,
    pub(crate) states: [Array3<f64>; 2],
    pub(crate) reserve_space: Vec<f32>,
}

/// The outputs of a backward pass.
pub(crate) struct Backward {
    pub(crate) input: Array3<f64>,
    pub(crate) states: [Array3<f64>; 2],
    pub(crate) params: Array1<f64>,
}

/// Rounds to half.
pub(crate) fn to_half(value: f64) -> f64 {
    f16::from_f64(value).to_f64()
}

/// Rounds to float.
pub(crate) fn to_float(value: f64) -> f64 {
    f64::from(value as f32)
}

fn to_elements<E: Element, D: ndarray::Dimension>(
    from: &ndarray::Array<f64, D>,
) -> ndarray::Array<E, D> {
    from.mapv(|value| E::from_f32(value as f32))
}

fn from_elements<E: Element, D: ndarray::Dimension>(
    from: &ndarray::Array<E, D>,
) -> ndarray::Array<f64, D> {
    from.mapv(|value| f64::from(value.to_f32()))
}

/// Memory as a caller may hand it over.
fn filled<E: Element>(shape: [usize; 3]) -> Array3<E> {
    Array3::from_elem(shape, E::from_f32(f32::NAN))
}

/// A forward pass.
pub(crate) fn forward<E: Element + Pod>(
    context: &Context<'_>,
    case: &Case,
    given: &Given,
) -> Result<Forward, Error> {
    forward_of::<E>(context, case, given, None)
}

/// A forward pass whose parameters are a constant, if there are copies of it.
pub(crate) fn forward_of<E: Element + Pod>(
    context: &Context<'_>,
    case: &Case,
    given: &Given,
    copies: Option<&Copies>,
) -> Result<Forward, Error> {
    let network = case.network()?;
    let attributes = &case.attributes;
    let is_lstm = attributes.rnn_mode == Mode::Lstm;
    let [input, h, c] = [&given.input, &given.states[0], &given.states[1]].map(to_elements::<E, _>);
    let params = to_elements::<E, _>(&given.params);
    let bytes = bytemuck::cast_slice(params.as_slice().expect("a vector without gaps"));
    let constants: Vec<_> = copies.map(|copies| Constant { bytes, copies }).into_iter().collect();
    let context = &Context { constants: Constants(&constants), ..*context };
    let lengths = case.lengths.clone().map(Array1::from);
    let mut output = filled::<E>(network.output_shape(attributes));
    let mut states = [&h, &c].map(|state| filled::<E>(state.dim().into()));
    let reserved = if attributes.is_training { network.reserve_space(attributes) } else { 0 };
    let mut reserve_space = vec![f32::NAN; reserved];
    let half = size_of::<E>() == 2;
    let mut scratch = vec![f32::NAN; cudnn_rnn::forward_scratch(&network, attributes, half)];
    let [output_h, output_c] = &mut states;
    cudnn_rnn::forward(
        context,
        OP,
        attributes,
        Inputs {
            input: input.view(),
            input_h: h.view(),
            input_c: is_lstm.then(|| c.view()),
            params: params.view(),
            sequence_lengths: lengths.as_ref().map(|lengths| lengths.view()),
        },
        Outputs {
            output: output.view_mut(),
            output_h: output_h.view_mut(),
            output_c: is_lstm.then(|| output_c.view_mut()),
            reserve_space: &mut reserve_space,
        },
        &mut scratch,
    )?;
    let states = states.each_ref().map(from_elements);
    Ok(Forward { output: from_elements(&output), states, reserve_space })
}

/// A backward pass.
pub(crate) fn backward<E: Element>(
    context: &Context<'_>,
    case: &Case,
    given: &Given,
    mut reserve_space: Vec<f32>,
) -> Result<Backward, Error> {
    let network = case.network()?;
    let is_lstm = case.attributes.rnn_mode == Mode::Lstm;
    let [input, h, c] = [&given.input, &given.states[0], &given.states[1]].map(to_elements::<E, _>);
    let params = to_elements::<E, _>(&given.params);
    let output_backprop = to_elements::<E, _>(&given.output_backprop);
    let [d_h, d_c] = given.states_backprop.each_ref().map(to_elements::<E, _>);
    let lengths = case.lengths.clone().map(Array1::from);
    let mut input_backprop = filled::<E>(input.dim().into());
    let [mut h_backprop, mut c_backprop] = [&h, &c].map(|state| filled::<E>(state.dim().into()));
    let mut params_backprop = Array1::from_elem(params.len(), E::from_f32(f32::NAN));
    let half = size_of::<E>() == 2;
    let mut scratch = vec![f32::NAN; cudnn_rnn::backprop_scratch(&network, half)];
    let forward = Inputs {
        input: input.view(),
        input_h: h.view(),
        input_c: is_lstm.then(|| c.view()),
        params: params.view(),
        sequence_lengths: lengths.as_ref().map(|lengths| lengths.view()),
    };
    cudnn_rnn::backprop(
        context,
        OP,
        &case.attributes,
        BackpropInputs {
            forward,
            output_backprop: output_backprop.view(),
            output_h_backprop: d_h.view(),
            output_c_backprop: is_lstm.then(|| d_c.view()),
            reserve_space: &mut reserve_space,
        },
        BackpropOutputs {
            input_backprop: input_backprop.view_mut(),
            input_h_backprop: h_backprop.view_mut(),
            input_c_backprop: is_lstm.then(|| c_backprop.view_mut()),
            params_backprop: params_backprop.view_mut(),
        },
        &mut scratch,
    )?;
    Ok(Backward {
        input: from_elements(&input_backprop),
        states: [from_elements(&h_backprop), from_elements(&c_backprop)],
        params: from_elements(&params_backprop),
    })
}

/// A forward and then a backward pass.
pub(crate) fn both<E: Element + Pod>(
    context: &Context<'_>,
    case: &Case,
    given: &Given,
) -> Result<(Forward, Backward), Error> {
    let forward = forward::<E>(context, case, given)?;
    let backward = backward::<E>(context, case, given, forward.reserve_space.clone())?;
    Ok((forward, backward))
}
