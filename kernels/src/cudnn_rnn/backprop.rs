//! The backward pass.

use std::slice;

use ndarray::{ArrayView1, ArrayView3, ArrayViewMut1, ArrayViewMut2, ArrayViewMut3, Axis};

use super::cell::{self, Gradients, ParametersMut};
use super::check::check_view;
use super::memory::{Activations, Arena, total};
use super::prepared_inputs::{
    DirectionBuffers, Inputs, PreparedInputs, in_order, load_state, states_len,
};
use super::rows;
use super::{Attributes, Network};
use crate::recurrence::{Lengths, clear_from};
use crate::{Context, Element, Error, Storage};

/// Inputs of [`backprop`]: those of the forward pass, what it left, and gradients of the loss.
///
/// The values of its outputs are not read.
#[derive(Debug)]
pub struct BackpropInputs<'a, E> {
    /// Those of the forward pass.
    pub forward: Inputs<'a, E>,
    /// The gradient with respect to `output`, not read in steps that a row does not have.
    pub output_backprop: ArrayView3<'a, E>,
    /// The gradient with respect to `output_h`.
    pub output_h_backprop: ArrayView3<'a, E>,
    /// The gradient with respect to `output_c` of an LSTM.
    pub output_c_backprop: Option<ArrayView3<'a, E>>,
    /// What the forward pass left in training. It is not left as it was.
    pub reserve_space: &'a mut [f32],
}

/// Outputs of [`backprop`]: gradients of the loss. Previous contents do not matter.
#[derive(Debug)]
pub struct BackpropOutputs<'a, E> {
    /// With respect to `input`: zero in steps that a row does not have.
    pub input_backprop: ArrayViewMut3<'a, E>,
    /// With respect to `input_h`.
    pub input_h_backprop: ArrayViewMut3<'a, E>,
    /// With respect to `input_c` of an LSTM.
    pub input_c_backprop: Option<ArrayViewMut3<'a, E>>,
    /// With respect to `params`.
    pub params_backprop: ArrayViewMut1<'a, E>,
}

/// `CudnnRNNBackprop`, `CudnnRNNBackpropV2` and `CudnnRNNBackpropV3`: the gradients of [`forward`](super::forward()),
/// by the chain rule.
///
/// `op` is the operation's name for messages. Everything is computed in `f32`, and results are rounded once. `scratch`
/// is memory for intermediate values, of at least [`backprop_scratch`] elements. The derivative of the rectifier at 0
/// is 0.
///
/// # Errors
///
/// As [`forward`](super::forward()); [`Error::Shape`] for a `reserve_space` that is not of
/// [`Network::reserve_space`] elements.
pub fn backprop<E: Element>(
    context: &Context<'_>,
    op: &'static str,
    attributes: &Attributes,
    inputs: BackpropInputs<'_, E>,
    outputs: BackpropOutputs<'_, E>,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let network = inputs.check(op, attributes, &outputs)?;
    let needed = backprop_scratch(&network, E::IS_16_BIT);
    if scratch.len() < needed {
        return Err(Error::Scratch { op, needed, got: scratch.len() });
    }
    E::cudnn_rnn_backprop(context, attributes, network, inputs, outputs, scratch);
    Ok(())
}

impl<E: Storage> BackpropInputs<'_, E> {
    /// Checks shapes, layouts and lengths of all tensors of a call.
    fn check(
        &self,
        op: &'static str,
        attributes: &Attributes,
        outputs: &BackpropOutputs<'_, E>,
    ) -> Result<Network, Error> {
        let network = self.forward.check(op, attributes)?;
        let Inputs { input, input_h, input_c, params, .. } = &self.forward;
        let cells = input_c.as_ref().map_or(&[][..], |input_c| input_c.shape());
        let reserved = network.reserve_space(attributes);
        check_view(
            op,
            "output_backprop",
            &self.output_backprop,
            &network.output_shape(attributes),
        )?;
        check_view(op, "output_h_backprop", &self.output_h_backprop, input_h.shape())?;
        if let Some(output_c_backprop) = &self.output_c_backprop {
            check_view(op, "output_c_backprop", output_c_backprop, cells)?;
        }
        check_view(op, "reserve_space", &ArrayView1::from(&*self.reserve_space), &[reserved])?;
        check_view(op, "input_backprop", &outputs.input_backprop, input.shape())?;
        check_view(op, "input_h_backprop", &outputs.input_h_backprop, input_h.shape())?;
        if let Some(input_c_backprop) = &outputs.input_c_backprop {
            check_view(op, "input_c_backprop", input_c_backprop, cells)?;
        }
        check_view(op, "params_backprop", &outputs.params_backprop, params.shape())?;
        Ok(network)
    }
}

/// How many elements of scratch memory [`backprop`] needs, with tensors of 16 bits or not; `usize::MAX` if more than can
/// be counted.
#[must_use]
pub fn backprop_scratch(network: &Network, is_16_bit: bool) -> usize {
    let params = if is_16_bit { network.layout.len() } else { 0 };
    let sizes = Memory::sizes(network);
    let gradients = total(sizes).saturating_add(params);
    let cell = cell::backward_scratch(network);
    total([
        PreparedInputs::len(network, is_16_bit),
        DirectionBuffers::len(network),
        gradients,
        cell,
    ])
}

/// Memory for gradients.
struct Memory<'m> {
    /// With respect to the outputs of a layer, `[time, batch, directions * output_size]`, and to its inputs.
    outputs: &'m mut [f32],
    inputs: &'m mut [f32],
    /// With respect to the inputs of the second direction, in its order.
    reversed: &'m mut [f32],
    /// With respect to the outputs of one direction, in its order, `[time, batch, output_size]`.
    h: &'m mut [f32],
    /// With respect to h and c before the first step, `[batch, output_size]` and `[batch, num_units]`.
    first: [&'m mut [f32]; 2],
    /// With respect to h and c after the last step.
    last: [&'m mut [f32]; 2],
}

impl<'m> Memory<'m> {
    fn sizes(network: &Network) -> [usize; 8] {
        let Network { layout, time, batch } = *network;
        let rows = time.saturating_mul(batch).saturating_mul(layout.most_columns());
        let [h, c] = states_len(network);
        let reversed = if layout.directions == 1 { 0 } else { rows };
        [rows, rows, reversed, network.outputs(), h, c, h, c]
    }

    fn new(network: &Network, arena: &mut Arena<'m>) -> Self {
        let [outputs, inputs, reversed, h, h_first, c_first, h_last, c_last] =
            Self::sizes(network).map(|size| arena.take(size));
        let (first, last) = ([h_first, c_first], [h_last, c_last]);
        Memory { outputs, inputs, reversed, h, first, last }
    }
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    attributes: &Attributes,
    network: Network,
    inputs: BackpropInputs<'_, E>,
    mut outputs: BackpropOutputs<'_, E>,
    scratch: &mut [f32],
) {
    let layout = network.layout;
    let lengths = inputs.forward.lengths(&network);
    let lengths = Lengths::new(ArrayView1::from(&lengths));
    if network.batch == 0 || layout.num_units == 0 || lengths.longest() == 0 {
        return outputs.without_steps(&inputs);
    }
    let forward = inputs.forward.reborrow();
    let (own, scratch) = scratch.split_at_mut(if E::IS_16_BIT { layout.len() } else { 0 });
    let mut arena = Arena::new(&mut *scratch);
    let given = PreparedInputs::new(network, attributes, &forward, lengths, &mut arena);
    let buffers = DirectionBuffers::new(&network, &mut arena);
    let memory = Memory::new(&network, &mut arena);
    let mut pass = Pass {
        attributes,
        network,
        lengths,
        inputs: forward,
        last_gradients: [Some(inputs.output_h_backprop), inputs.output_c_backprop]
            .map(|state| state.map(|state| state.reborrow())),
        first_gradients: [Some(&mut outputs.input_h_backprop), outputs.input_c_backprop.as_mut()]
            .map(|state| state.map(|state| in_order(attributes.time_major, state.view_mut()))),
        given,
        activations: Activations::new(network, attributes.dropout > 0.0, true),
        saved: inputs.reserve_space,
        params_gradient: match outputs.params_backprop.as_slice_mut().and_then(E::as_f32_mut) {
            Some(params) => params,
            None => &mut *own,
        },
        buffers,
        memory,
        scratch: arena.rest(),
    };
    let output_backprop = in_order(attributes.time_major, inputs.output_backprop);
    pass.start(output_backprop);
    (0..layout.num_layers).rev().for_each(|layer| pass.layer(context, layer));
    pass.finish(in_order(attributes.time_major, outputs.input_backprop));
    if E::IS_16_BIT {
        rows::store(own, outputs.params_backprop.as_slice_mut().expect("a vector without gaps"));
    }
}

/// A backward pass.
struct Pass<'a, E> {
    attributes: &'a Attributes,
    network: Network,
    lengths: Lengths<'a>,
    inputs: Inputs<'a, E>,
    /// With respect to h and c after the last step.
    last_gradients: [Option<ArrayView3<'a, E>>; 2],
    /// With respect to h and c before the first step, in the order of time-major tensors.
    first_gradients: [Option<ArrayViewMut3<'a, E>>; 2],
    given: PreparedInputs<'a>,
    activations: Activations,
    saved: &'a mut [f32],
    params_gradient: &'a mut [f32],
    buffers: DirectionBuffers<'a>,
    memory: Memory<'a>,
    scratch: &'a mut [f32],
}

impl<E: Storage> Pass<'_, E> {
    /// Sets the gradient with respect to the outputs of the last layer.
    fn start(&mut self, output_backprop: ArrayView3<'_, E>) {
        let columns = output_backprop.len_of(Axis(2));
        let to = self.network.steps_mut(columns, self.memory.outputs);
        self.given.steps(0).gather(output_backprop, 0..columns, to);
    }

    /// From the gradient with respect to the outputs of a layer to that with respect to the outputs of the layer
    /// before it.
    fn layer(&mut self, context: &Context<'_>, layer: usize) {
        for direction in 0..self.network.layout.directions {
            self.enter(layer, direction);
            self.direction(context, layer, direction);
            self.leave(layer, direction);
        }
        let x_gradient = &mut self.memory.inputs[..];
        let mask = &self.saved[self.activations.mask_of(layer)];
        x_gradient.iter_mut().zip(mask).for_each(|(d, factor)| *d *= factor);
        std::mem::swap(&mut self.memory.inputs, &mut self.memory.outputs);
    }

    /// Rounds the gradient with respect to the inputs of the first layer.
    fn finish(&mut self, input_backprop: ArrayViewMut3<'_, E>) {
        let columns = input_backprop.len_of(Axis(2));
        let from = self.network.steps(columns, self.memory.outputs);
        self.given.steps(0).scatter(from, input_backprop, 0..columns);
    }

    /// Collects the gradients with respect to what one direction of a layer has computed.
    fn enter(&mut self, layer: usize, direction: usize) {
        let Network { layout, batch, .. } = self.network;
        let pseudo_layer = layer * layout.directions + direction;
        let Memory { outputs, h, last, .. } = &mut self.memory;
        let units = layout.output_size();
        let outputs = self.network.steps(layout.output_columns(), outputs);
        let columns = direction * units..(direction + 1) * units;
        self.given.steps(direction).gather(outputs, columns, self.network.steps_mut(units, h));
        for (to, from) in last.iter_mut().zip(self.last_gradients) {
            match from {
                Some(from) => load_state(self.attributes.time_major, from, pseudo_layer, to),
                None => to.fill(0.0),
            }
        }
        for (b, last) in last[0].chunks_exact(units).enumerate() {
            let Some(t) = self.lengths.of(b).checked_sub(1) else { continue };
            let h = &mut h[(t * batch + b) * units..][..units];
            h.iter_mut().zip(last).for_each(|(h, last)| *h += last);
        }
        self.buffers.set_states(self.attributes, &self.inputs, pseudo_layer);
    }

    /// One direction of a layer.
    fn direction(&mut self, context: &Context<'_>, layer: usize, direction: usize) {
        let (network, layout) = (self.network, self.network.layout);
        let ranges =
            [self.activations.inputs_of(layer), self.activations.of_cells(layer, direction)];
        let [x, saved] = self.saved.get_disjoint_mut(ranges).expect("places of their own");
        let x = self.given.inputs_of(layer, x);
        let cell = self.given.cell((layer, direction), x, &mut self.buffers);
        let Memory { inputs, reversed, h, first, last, .. } = &mut self.memory;
        let columns = layout.columns(layer);
        let x_gradient = if direction == 0 { inputs } else { reversed };
        let mut x_gradient = network.steps_mut(columns, x_gradient);
        // Nothing else is written from the last step of the longest row on.
        clear_from(slice::from_mut(&mut x_gradient), self.lengths.longest());
        let [h_prev, c_prev] = first;
        let state = |columns, memory| {
            ArrayViewMut2::from_shape((network.batch, columns), memory).expect("of this size")
        };
        let gradients = Gradients {
            parameters: ParametersMut::of(&layout, (layer, direction), self.params_gradient),
            x: x_gradient,
            h_prev: state(layout.output_size(), h_prev),
            c_prev: state(layout.num_units, c_prev),
        };
        let h = network.steps_mut(layout.output_size(), h);
        let c_last = network.matrix(layout.num_units, last[1]);
        cell.backward(context, saved, h, c_last, gradients, self.scratch);
    }

    /// Hands on what one direction of a layer has computed.
    fn leave(&mut self, layer: usize, direction: usize) {
        let layout = self.network.layout;
        let Memory { inputs, reversed, first, last, .. } = &mut self.memory;
        if direction == 1 {
            let columns = layout.columns(layer);
            let reversed = self.network.steps(columns, reversed);
            self.given.steps(direction).add(reversed, self.network.steps_mut(columns, inputs));
        }
        let pseudo_layer = layer * layout.directions + direction;
        let columns = [layout.output_size(), layout.num_units];
        let states = first.iter().zip(last.iter()).zip(&mut self.first_gradients);
        for (((first, last), to), columns) in states.zip(columns) {
            let Some(to) = to else { continue };
            for (b, to) in to.index_axis_mut(Axis(0), pseudo_layer).outer_iter_mut().enumerate() {
                // Without steps the first state is the last one.
                let from = if self.lengths.of(b) == 0 { last } else { first };
                let from = &from[b * columns..][..columns];
                rows::store(from, to.into_slice().expect("contiguous rows"));
            }
        }
    }
}

impl<E: Storage> BackpropOutputs<'_, E> {
    /// There are no steps: the first state is the last one, and so is the gradient with respect to it.
    fn without_steps(&mut self, inputs: &BackpropInputs<'_, E>) {
        self.input_backprop.fill(E::ZERO);
        self.params_backprop.fill(E::ZERO);
        self.input_h_backprop.assign(&inputs.output_h_backprop);
        if let (Some(to), Some(from)) = (&mut self.input_c_backprop, inputs.output_c_backprop) {
            to.assign(&from);
        }
    }
}
