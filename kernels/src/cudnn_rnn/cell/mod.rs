//! One direction of a layer: calls of the sequence kernels.

mod backward;
mod forward;

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis};

use super::layout::Places;
use super::memory::total;
use super::{Layout, Mode, Network};
use crate::gemm::{self, StepShape, weights_len};
use crate::ops::Sizes;
use crate::recurrence::{self, Lengths, Product, products_len};
use crate::rnn::Activation;
use crate::{block_gru, block_lstm};

/// One direction of a layer, with its inputs in the order of the direction.
#[derive(Clone, Copy)]
pub(super) struct LayerCell<'a> {
    pub(super) network: Network,
    pub(super) lengths: Lengths<'a>,
    pub(super) x: ArrayView3<'a, f32>,
    pub(super) h_prev: ArrayView2<'a, f32>,
    /// Read in an LSTM only.
    pub(super) c_prev: ArrayView2<'a, f32>,
    pub(super) parameters: Parameters<'a>,
}

/// The parameters of a pseudo-layer: transposes of the buffer's matrices.
#[derive(Clone, Copy)]
pub(super) struct Parameters<'a> {
    /// `[inputs, gates * num_units]`, none where x is taken as it is.
    w_x: Option<ArrayView2<'a, f32>>,
    /// `[output_size, gates * num_units]`
    w_h: ArrayView2<'a, f32>,
    /// `[num_units, num_proj]`, if there is a projection.
    projection: Option<ArrayView2<'a, f32>>,
    /// `[2, gates * num_units]`
    biases: ArrayView2<'a, f32>,
}

/// The gradients with respect to the parameters and the inputs of a pseudo-layer.
pub(super) struct Gradients<'a> {
    pub(super) parameters: ParametersMut<'a>,
    pub(super) x: ArrayViewMut3<'a, f32>,
    pub(super) h_prev: ArrayViewMut2<'a, f32>,
    /// Set in an LSTM only.
    pub(super) c_prev: ArrayViewMut2<'a, f32>,
}

/// Memory of the shapes of [`Parameters`].
pub(super) struct ParametersMut<'a> {
    w_x: Option<ArrayViewMut2<'a, f32>>,
    w_h: ArrayViewMut2<'a, f32>,
    projection: Option<ArrayViewMut2<'a, f32>>,
    biases: ArrayViewMut2<'a, f32>,
}

impl<'a> Parameters<'a> {
    /// Those of one direction of a layer.
    pub(super) fn of(
        layout: &Layout,
        (layer, direction): (usize, usize),
        params: &'a [f32],
    ) -> Self {
        let Places { w, r, p, biases } = layout.places(layer, direction);
        let [w_shape, r_shape, p_shape, biases_shape] = layout.shapes(layer);
        let view =
            |shape, range| ArrayView2::from_shape(shape, &params[range]).expect("of this size");
        Parameters {
            w_x: layout.has_w(layer).then(|| view(w_shape, w).reversed_axes()),
            w_h: view(r_shape, r).reversed_axes(),
            projection: (layout.num_proj > 0).then(|| view(p_shape, p).reversed_axes()),
            biases: view(biases_shape, biases),
        }
    }
}

impl<'a> ParametersMut<'a> {
    /// Those of one direction of a layer.
    pub(super) fn of(
        layout: &Layout,
        (layer, direction): (usize, usize),
        params: &'a mut [f32],
    ) -> Self {
        let Places { w, r, p, biases } = layout.places(layer, direction);
        let parts = params.get_disjoint_mut([w, r, p, biases]).expect("places of their own");
        let mut views = parts
            .into_iter()
            .zip(layout.shapes(layer))
            .map(|(part, shape)| ArrayViewMut2::from_shape(shape, part).expect("of this size"));
        let mut next = || views.next().expect("one for each");
        let [w_x, w_h, projection] = [(); 3].map(|()| next().reversed_axes());
        let (w_x, biases) = (layout.has_w(layer).then_some(w_x), next());
        let projection = (layout.num_proj > 0).then_some(projection);
        ParametersMut { w_x, w_h, projection, biases }
    }
}

/// How many elements of scratch memory [`LayerCell::forward`] needs.
pub(super) fn forward_scratch(network: &Network) -> usize {
    // All layers have this memory in turn.
    let sizes = Sizes { input_size: network.layout.most_columns(), ..sizes(network) };
    let steps = match network.layout.mode {
        Mode::RnnRelu | Mode::RnnTanh => {
            rnn_weights_len(network).saturating_add(products_len(&sizes, 1))
        }
        Mode::Lstm => block_lstm::forward_scratch(&sizes),
        Mode::Gru => block_gru::forward_scratch(&sizes),
    };
    total([network.layout.rows(), projection_len(network), steps])
}

/// How many elements of scratch memory [`LayerCell::backward`] needs.
pub(super) fn backward_scratch(network: &Network) -> usize {
    let (sizes, units) = (sizes(network), network.layout.num_units);
    let weights = weights_len(network.layout.rows(), 1, units);
    let (sums, steps) = match network.layout.mode {
        Mode::RnnRelu | Mode::RnnTanh => {
            let shape = (sizes.batch, units);
            (rnn_sums_len(network), recurrence::backward_scratch(recurrence::D_STEPS, shape, 1))
        }
        Mode::Lstm => (block_lstm::grad::sums_len(&sizes), block_lstm::grad::steps_scratch(&sizes)),
        Mode::Gru => {
            (block_gru::grad::sums_len(&sizes), block_gru::grad::steps_scratch(sizes.batch, units))
        }
    };
    total([units, weights, projection_len(network), sums, steps])
}

/// How many elements the packed weights of a projection have, or those of its transpose.
fn projection_len(network: &Network) -> usize {
    let Layout { num_proj, num_units, .. } = network.layout;
    let len = Product::<f32, 1>::memory;
    if num_proj == 0 { 0 } else { len(num_units, num_proj).max(len(num_proj, num_units)) }
}

/// How many elements the packed weights of the state of a simple network have.
fn rnn_weights_len(network: &Network) -> usize {
    Product::<f32, 1>::memory(network.layout.num_units, network.layout.num_units)
}

/// How many elements of memory the sums over the batch of a simple network need.
fn rnn_sums_len(network: &Network) -> usize {
    let shape = (network.batch, network.layout.num_units);
    recurrence::sums_len(1, shape, gemm::step_rows(StepShape::new(shape, 1)))
}

fn sizes(network: &Network) -> Sizes {
    let Network { layout, time, batch } = *network;
    Sizes {
        time,
        batch,
        input_size: layout.input_size,
        cell_size: layout.num_units,
        ..Sizes::default()
    }
}

impl Mode {
    fn activation(self) -> Activation {
        if self == Mode::RnnRelu { Activation::Relu } else { Activation::Tanh }
    }
}

impl<'a> LayerCell<'a> {
    /// The same for a shorter time.
    fn reborrow<'b>(&self) -> LayerCell<'b>
    where
        'a: 'b,
    {
        let Parameters { w_x, w_h, projection, biases } = self.parameters;
        let (w_h, biases) = (w_h.reborrow(), biases.reborrow());
        let [w_x, projection] = [w_x, projection].map(|w| w.map(|w| w.reborrow()));
        LayerCell {
            network: self.network,
            lengths: self.lengths,
            x: self.x.reborrow(),
            h_prev: self.h_prev.reborrow(),
            c_prev: self.c_prev.reborrow(),
            parameters: Parameters { w_x, w_h, projection, biases },
        }
    }

    /// The vectors `[time, batch, num_units]` that are saved.
    pub(super) fn parts_mut<'s, const N: usize>(
        &self,
        saved: &'s mut [f32],
    ) -> [ArrayViewMut3<'s, f32>; N] {
        let mut parts = saved.chunks_exact_mut(self.network.cells());
        std::array::from_fn(|_| {
            let part = parts.next().expect("memory for all");
            self.network.steps_mut(self.network.layout.num_units, part)
        })
    }
}

/// The weights of the gates and those of the candidate.
fn gru_weights(w: ArrayView2<'_, f32>, units: usize) -> [ArrayView2<'_, f32>; 2] {
    w.split_at(Axis(1), 2 * units).into()
}
