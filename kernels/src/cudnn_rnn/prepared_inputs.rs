//! What a pass is given, in the form that the sequence kernels take.

use ndarray::{ArrayBase, ArrayView1, ArrayView3, Axis, Ix3, RawData};

use super::cell::{LayerCell, Parameters};
use super::memory::{Arena, total};
use super::rows::{self, StepOrder};
use super::{Attributes, Network};
use crate::Storage;
use crate::recurrence::Lengths;

/// Inputs of [`forward`](super::forward()), named and ordered as in `tf.raw_ops.CudnnRNNV3`. Their layout is row-major without gaps.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a, E> {
    /// `[time, batch, input_size]`, or `[batch, time, input_size]` without `time_major`. What is in steps that a row
    /// does not have is not read.
    pub input: ArrayView3<'a, E>,
    /// The state before the first step: `[num_layers * directions, batch, output_size]`, or the batch first without
    /// `time_major`.
    pub input_h: ArrayView3<'a, E>,
    /// That of the cells of an LSTM, `[num_layers * directions, batch, num_units]`; otherwise not read.
    pub input_c: Option<ArrayView3<'a, E>>,
    /// All parameters, in the order of [`Layout`](super::Layout).
    pub params: ArrayView1<'a, E>,
    /// The number of steps of each row, `[batch]`; without it every row has all.
    pub sequence_lengths: Option<ArrayView1<'a, i32>>,
}

/// A tensor with its first two axes in the order of a time-major one.
pub(super) fn in_order<S: RawData>(
    time_major: bool,
    tensor: ArrayBase<S, Ix3>,
) -> ArrayBase<S, Ix3> {
    if time_major { tensor } else { tensor.permuted_axes([1, 0, 2]) }
}

/// The inputs of a call as the sequence kernels take them: in `f32`, time-major, and zero where a row has ended.
pub(super) struct PreparedInputs<'a> {
    network: Network,
    params: &'a [f32],
    /// `[time, batch, input_size]`
    x: ArrayView3<'a, f32>,
    lengths: Lengths<'a>,
}

impl<'a> PreparedInputs<'a> {
    /// How much memory copies need.
    pub(super) fn len(network: &Network, is_16_bit: bool) -> usize {
        let Network { layout, time, batch } = *network;
        let params = if is_16_bit { layout.len() } else { 0 };
        total([params, time.saturating_mul(batch).saturating_mul(layout.input_size)])
    }

    /// `arena` has memory for copies.
    pub(super) fn new<E: Storage>(
        network: Network,
        attributes: &Attributes,
        inputs: &Inputs<'a, E>,
        lengths: Lengths<'a>,
        arena: &mut Arena<'a>,
    ) -> Self {
        let params = inputs.params.to_slice().expect("a vector without gaps");
        let params = E::as_f32(params).unwrap_or_else(|| {
            let copy = arena.take(network.layout.len());
            rows::load(params, copy);
            copy
        });
        let Network { layout, time, batch } = network;
        let columns = layout.input_size;
        let copy = arena.take(time * batch * columns);
        let whole = (0..batch).all(|b| lengths.of(b) == time);
        let input = inputs.input.to_slice().and_then(E::as_f32);
        let x = match input {
            Some(input) if whole && attributes.time_major => input,
            _ => {
                let input = in_order(attributes.time_major, inputs.input);
                let order = StepOrder { lengths, reversed: false };
                order.gather(input, 0..columns, network.steps_mut(columns, copy));
                copy
            }
        };
        let x = network.steps(columns, x);
        PreparedInputs { network, params, x, lengths }
    }

    /// The order of the steps of a direction.
    pub(super) fn steps(&self, direction: usize) -> StepOrder<'a> {
        StepOrder { lengths: self.lengths, reversed: direction == 1 }
    }

    /// The inputs of a layer: `x`, but for the first one.
    pub(super) fn inputs_of<'c>(&'c self, layer: usize, x: &'c [f32]) -> ArrayView3<'c, f32> {
        if layer == 0 {
            return self.x.reborrow();
        }
        self.network.steps(self.network.layout.columns(layer), x)
    }

    /// One direction of a layer whose inputs are `x`.
    pub(super) fn cell<'c>(
        &self,
        (layer, direction): (usize, usize),
        x: ArrayView3<'c, f32>,
        buffers: &'c mut DirectionBuffers<'_>,
    ) -> LayerCell<'c>
    where
        'a: 'c,
    {
        let (network, layout) = (self.network, self.network.layout);
        let columns = layout.columns(layer);
        let x = if direction == 0 {
            x
        } else {
            self.steps(direction).gather(x, 0..columns, network.steps_mut(columns, buffers.x));
            network.steps(columns, buffers.x)
        };
        LayerCell {
            network,
            lengths: self.lengths,
            x,
            h_prev: network.matrix(layout.output_size(), buffers.states[0]),
            c_prev: network.matrix(layout.num_units, buffers.states[1]),
            parameters: Parameters::of(&layout, (layer, direction), self.params),
        }
    }
}

/// Memory for what one direction of a layer reads: its inputs in its own order, and the states before its first step.
pub(super) struct DirectionBuffers<'m> {
    x: &'m mut [f32],
    states: [&'m mut [f32]; 2],
}

impl<'m> DirectionBuffers<'m> {
    /// How much memory they need.
    pub(super) fn len(network: &Network) -> usize {
        let [h, c] = states_len(network);
        total([Self::columns(network), h, c])
    }

    fn columns(network: &Network) -> usize {
        let Network { layout, time, batch } = *network;
        if layout.directions == 1 {
            return 0;
        }
        time.saturating_mul(batch).saturating_mul(layout.most_columns())
    }

    /// In the memory that `arena` has next.
    pub(super) fn new(network: &Network, arena: &mut Arena<'m>) -> Self {
        let x = arena.take(Self::columns(network));
        let states = states_len(network).map(|len| arena.take(len));
        DirectionBuffers { x, states }
    }

    /// Sets the states to those before the first step of a pseudo-layer.
    pub(super) fn set_states<E: Storage>(
        &mut self,
        attributes: &Attributes,
        inputs: &Inputs<'_, E>,
        pseudo_layer: usize,
    ) {
        let given = [Some(inputs.input_h), inputs.input_c];
        for (to, from) in self.states.iter_mut().zip(given) {
            let Some(from) = from else { continue };
            load_state(attributes.time_major, from, pseudo_layer, to);
        }
    }
}

/// The numbers of elements of the states h and c of a pseudo-layer.
pub(super) fn states_len(network: &Network) -> [usize; 2] {
    [network.layout.output_size(), network.layout.num_units]
        .map(|columns| network.batch.saturating_mul(columns))
}

/// Copies the state of one pseudo-layer.
pub(super) fn load_state<E: Storage>(
    time_major: bool,
    from: ArrayView3<'_, E>,
    pseudo_layer: usize,
    to: &mut [f32],
) {
    let from = in_order(time_major, from).index_axis_move(Axis(0), pseudo_layer);
    let units = from.ncols();
    for (from, to) in from.outer_iter().zip(to.chunks_exact_mut(units.max(1))) {
        rows::load(from.to_slice().expect("contiguous rows"), to);
    }
}
