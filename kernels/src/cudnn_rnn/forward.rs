//! The forward pass.

use ndarray::{ArrayView1, ArrayViewMut3, Axis};

use super::cell::{self, LayerCell};
use super::check::{Shapes, check_view};
use super::memory::{Activations, Arena, total};
use super::prepared_inputs::{DirectionBuffers, Inputs, PreparedInputs, in_order};
use super::{Attributes, Mode, Network, dropout, rows};
use crate::recurrence::{Lengths, state_before};
use crate::{Context, Element, Error, Storage, Weights};

/// Outputs of [`forward`]. Previous contents do not matter.
#[derive(Debug)]
pub struct Outputs<'a, E> {
    /// `[time, batch, directions * output_size]`, or `[batch, time, ...]`: zero in steps that a row does not have.
    pub output: ArrayViewMut3<'a, E>,
    /// The state after each row's last step, of the shape of `input_h`: with two directions, that of the second one is
    /// the state after the row's first step.
    pub output_h: ArrayViewMut3<'a, E>,
    /// That of the cells of an LSTM, of the shape of `input_c`.
    pub output_c: Option<ArrayViewMut3<'a, E>>,
    /// What the backward pass needs: [`Network::reserve_space`] elements in training, none otherwise.
    pub reserve_space: &'a mut [f32],
}

/// `CudnnRNN`, `CudnnRNNV2` and `CudnnRNNV3`: the equations of [`crate::cudnn_rnn`].
///
/// `op` is the operation's name for messages. Data of 16 bits is converted to `f32`, everything is computed in
/// `f32`, and results are rounded once. `scratch` is memory for intermediate values, of at least [`forward_scratch`]
/// elements.
///
/// # Errors
///
/// Those of [`Network::new`] and [`Network::check_lengths`], and an output of the wrong shape, a view with
/// gaps, too short a `scratch`; nothing is written then.
pub fn forward<E: Element>(
    context: &Context<'_>,
    op: &'static str,
    attributes: &Attributes,
    inputs: Inputs<'_, E>,
    outputs: Outputs<'_, E>,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let network = inputs.check(op, attributes)?;
    check_view(op, "output", &outputs.output, &network.output_shape(attributes))?;
    check_view(op, "output_h", &outputs.output_h, inputs.input_h.shape())?;
    if let Some(output_c) = &outputs.output_c {
        let input_c = inputs.input_c.as_ref().map_or(&[][..], |input_c| input_c.shape());
        check_view(op, "output_c", output_c, input_c)?;
    }
    let reserved = if attributes.is_training { network.reserve_space(attributes) } else { 0 };
    check_view(op, "reserve_space", &ArrayView1::from(&*outputs.reserve_space), &[reserved])?;
    let needed = forward_scratch(&network, attributes, E::IS_16_BIT);
    if scratch.len() < needed {
        return Err(Error::Scratch { op, needed, got: scratch.len() });
    }
    E::cudnn_rnn(context, attributes, network, inputs, outputs, scratch);
    Ok(())
}

/// How many elements of scratch memory [`forward`] needs, with tensors of 16 bits or not; `usize::MAX` if more than can
/// be counted.
#[must_use]
pub fn forward_scratch(network: &Network, attributes: &Attributes, is_16_bit: bool) -> usize {
    let activations = Activations::new(*network, attributes.dropout > 0.0, attributes.is_training);
    let activations = if attributes.is_training { 0 } else { activations.len() };
    total([
        PreparedInputs::len(network, is_16_bit),
        DirectionBuffers::len(network),
        activations,
        cell::forward_scratch(network),
    ])
}

impl<E: Storage> Inputs<'_, E> {
    /// The same for a shorter time.
    pub(super) fn reborrow<'b>(&'b self) -> Inputs<'b, E> {
        Inputs {
            input: self.input.reborrow(),
            input_h: self.input_h.reborrow(),
            input_c: self.input_c.map(|input_c| input_c.reborrow()),
            params: self.params.reborrow(),
            sequence_lengths: self.sequence_lengths.map(|lengths| lengths.reborrow()),
        }
    }

    /// Checks shapes, layouts and lengths.
    pub(super) fn check(
        &self,
        op: &'static str,
        attributes: &Attributes,
    ) -> Result<Network, Error> {
        let input_c = self.input_c.as_ref();
        let network = Network::new(
            op,
            attributes,
            &Shapes {
                input: self.input.shape(),
                input_h: self.input_h.shape(),
                input_c: input_c.map_or(&[], |input_c| input_c.shape()),
                params: self.params.shape(),
                sequence_lengths: self.sequence_lengths.as_ref().map(|lengths| lengths.shape()),
            },
        )?;
        let layouts = [
            ("input", self.input.is_standard_layout()),
            ("input_h", self.input_h.is_standard_layout()),
            ("input_c", input_c.is_none_or(|input_c| input_c.is_standard_layout())),
            ("params", self.params.is_standard_layout()),
        ];
        if let Some((tensor, _)) = layouts.into_iter().find(|(_, standard)| !standard) {
            return Err(Error::Layout { op, tensor });
        }
        if let Some(lengths) = self.sequence_lengths {
            network.check_lengths(op, &lengths.to_vec())?;
        }
        Ok(network)
    }

    /// The number of steps of each row.
    pub(super) fn lengths(&self, network: &Network) -> Vec<i64> {
        match self.sequence_lengths {
            Some(lengths) => lengths.iter().map(|&length| length.into()).collect(),
            None => vec![network.time as i64; network.batch],
        }
    }
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    attributes: &Attributes,
    network: Network,
    inputs: Inputs<'_, E>,
    outputs: Outputs<'_, E>,
    scratch: &mut [f32],
) {
    let Outputs { output, output_h, output_c, reserve_space } = outputs;
    let layout = network.layout;
    // A backward pass multiplies by weights in float32.
    let weights = if attributes.is_training { Weights::Float32 } else { context.weights };
    let context = &Context { weights, ..*context };
    if network.batch == 0 || layout.num_units == 0 {
        return;
    }
    let order = |tensor| in_order(attributes.time_major, tensor);
    let states = [Some(output_h), output_c].map(|states| states.map(order));
    let lengths = inputs.lengths(&network);
    let lengths = Lengths::new(ArrayView1::from(&lengths));
    let inputs = inputs.reborrow();
    let mut arena = Arena::new(scratch);
    let given = PreparedInputs::new(network, attributes, &inputs, lengths, &mut arena);
    let buffers = DirectionBuffers::new(&network, &mut arena);
    let activations = Activations::new(network, attributes.dropout > 0.0, attributes.is_training);
    let memory = if attributes.is_training { reserve_space } else { arena.take(activations.len()) };
    let scratch = arena.rest();
    let mut output = order(output);
    let mut pass =
        Pass { attributes, network, inputs, states, given, buffers, activations, memory, scratch };
    for layer in 0..layout.num_layers {
        for direction in 0..layout.directions {
            pass.direction(context, layer, direction, output.view_mut());
        }
        pass.drop_out(layer);
    }
}

/// A forward pass.
struct Pass<'a, 'o, E> {
    attributes: &'a Attributes,
    network: Network,
    inputs: Inputs<'a, E>,
    /// h and c after the last step, in the order of time-major tensors.
    states: [Option<ArrayViewMut3<'o, E>>; 2],
    given: PreparedInputs<'a>,
    buffers: DirectionBuffers<'a>,
    activations: Activations,
    memory: &'a mut [f32],
    scratch: &'a mut [f32],
}

impl<E: Storage> Pass<'_, '_, E> {
    /// One direction of a layer. The last layer writes to `output`.
    fn direction(
        &mut self,
        context: &Context<'_>,
        layer: usize,
        direction: usize,
        output: ArrayViewMut3<'_, E>,
    ) {
        let Network { layout, time, .. } = self.network;
        let activations = self.activations;
        let is_last = layer + 1 == layout.num_layers;
        let to = if is_last { 0..0 } else { activations.inputs_of(layer + 1) };
        let ranges = [activations.inputs_of(layer), activations.of_cells(layer, direction), to];
        let [x, saved, to] = self.memory.get_disjoint_mut(ranges).expect("places of their own");
        let pseudo_layer = layer * layout.directions + direction;
        self.buffers.set_states(self.attributes, &self.inputs, pseudo_layer);
        let x = self.given.inputs_of(layer, x);
        let cell = self.given.cell((layer, direction), x, &mut self.buffers);
        if time > 0 {
            cell.forward(context, saved, self.scratch);
        }
        let size = layout.output_size();
        let columns = direction * size..(direction + 1) * size;
        let h = &saved[saved.len() - self.network.outputs()..];
        let h = self.network.steps(size, h);
        let steps = self.given.steps(direction);
        if is_last {
            steps.scatter(h, output, columns);
        } else {
            steps.scatter(h, self.network.steps_mut(layout.output_columns(), to), columns);
        }
        store_last_states(&cell, saved, pseudo_layer, &mut self.states);
    }

    /// Dropout of the outputs of a layer, in training and if there is a next one.
    fn drop_out(&mut self, layer: usize) {
        if layer + 1 == self.network.layout.num_layers {
            return;
        }
        let ranges = [self.activations.inputs_of(layer + 1), self.activations.mask_of(layer + 1)];
        let [y, mask] = self.memory.get_disjoint_mut(ranges).expect("places of their own");
        if !mask.is_empty() {
            dropout::apply(self.attributes, layer, y, mask);
        }
    }
}

/// Sets the states after each row's last step: h, and the cells' in an LSTM.
fn store_last_states<E: Storage>(
    cell: &LayerCell<'_>,
    saved: &[f32],
    pseudo_layer: usize,
    states: &mut [Option<ArrayViewMut3<'_, E>>; 2],
) {
    let (network, layout) = (cell.network, cell.network.layout);
    let h = network.steps(layout.output_size(), &saved[saved.len() - network.outputs()..]);
    let h = (cell.h_prev, h);
    // The second of what an LSTM saves is cs.
    let cells = network.cells();
    let c = (layout.mode == Mode::Lstm)
        .then(|| (cell.c_prev, network.steps(layout.num_units, &saved[cells..2 * cells])));
    for (to, from) in states.iter_mut().zip([Some(h), c]) {
        let (Some(to), Some((first, all))) = (to, from) else { continue };
        for (b, to) in to.index_axis_mut(Axis(0), pseudo_layer).outer_iter_mut().enumerate() {
            let last = state_before(cell.lengths.of(b), first, all);
            let last = last.index_axis_move(Axis(0), b);
            let to = to.into_slice().expect("contiguous rows");
            rows::store(last.to_slice().expect("contiguous rows"), to);
        }
    }
}
