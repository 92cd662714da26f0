//! The backward steps.

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut3, Axis, ShapeBuilder, s};

use super::{
    Gradients, LayerCell, Parameters, ParametersMut, gru_weights, projection_len, rnn_sums_len,
    sizes,
};
use crate::block_lstm::grad::GradProjection;
use crate::cudnn_rnn::memory::Arena;
use crate::cudnn_rnn::{Mode, Network};
use crate::gemm::weights_len;
use crate::lstm::step::IFCO;
use crate::recurrence::{
    self, Backward, ColumnSums, D_STEPS, Left, Product, WeightGradient, all_rows,
};
use crate::rnn::RnnGrad;
use crate::{Activations, Context, block_gru, block_lstm};

impl LayerCell<'_> {
    /// All steps, from the last to the first. At least one row has a step. `d_h` is the gradient with respect to the
    /// outputs, zero where a row has ended, and `c_last_grad` that with respect to the last state of the cells of
    /// an LSTM. Neither `saved` nor `d_h` is left as it was.
    pub(in crate::cudnn_rnn) fn backward(
        &self,
        context: &Context<'_>,
        saved: &mut [f32],
        d_h: ArrayViewMut3<'_, f32>,
        c_last_grad: ArrayView2<'_, f32>,
        gradients: Gradients<'_>,
        scratch: &mut [f32],
    ) {
        let layout = self.network.layout;
        let mut scratch = Arena::new(scratch);
        let zeros = scratch.take(layout.num_units);
        zeros.fill(0.0);
        let weights = scratch.take(weights_len(layout.rows(), 1, layout.num_units));
        let projection = scratch.take(projection_len(&self.network));
        let memory = Memory { zeros, weights, projection, rest: scratch.rest() };
        match layout.mode {
            Mode::RnnRelu | Mode::RnnTanh => {
                self.rnn_backward(context, saved, d_h, gradients, memory)
            }
            Mode::Lstm => self.lstm_backward(context, saved, d_h, c_last_grad, gradients, memory),
            Mode::Gru => self.gru_backward(context, saved, d_h.view(), gradients, memory),
        }
    }

    fn rnn_backward(
        &self,
        context: &Context<'_>,
        saved: &mut [f32],
        mut d: ArrayViewMut3<'_, f32>,
        gradients: Gradients<'_>,
        memory: Memory<'_>,
    ) {
        let LayerCell { network, lengths, x, h_prev, parameters, .. } = self.reborrow();
        let Parameters { w_x, w_h, .. } = parameters;
        let [h] = self.parts_mut(saved);
        let activation = network.layout.mode.activation();
        let product = Product::of_rows(context, network.batch, w_h.reversed_axes());
        let product = product.packed(context, memory.weights);
        let Gradients { parameters, x: x_grad, h_prev: h_prev_grad, .. } = gradients;
        let steps = Backward {
            lengths,
            first: h_prev,
            states: h.view(),
            saved: [h.view()],
            in_place: [d.view_mut()],
            last_grad: None,
            first_grads: [h_prev_grad],
        };
        let (sums, scratch) = memory.rest.split_at_mut(rnn_sums_len(&network));
        let cell = RnnGrad { activation, product };
        recurrence::backward(context, &cell, steps, D_STEPS, sums, scratch);
        let sums = ColumnSums::new(sums, 1);
        let ParametersMut { w_x: w_x_grad, w_h: w_h_grad, mut biases, .. } = parameters;
        biases.rows_mut().into_iter().for_each(|bias| sums.store(0, bias));
        let d = all_rows(d.view(), 0..lengths.longest());
        recurrence::input_gradient(context, lengths, [d], w_x.map(|w_x| [w_x]), x_grad);
        let of_x = w_x_grad.map(|out| (Left::Input, out));
        let gradients = of_x.into_iter().chain([(Left::State, w_h_grad)]);
        let gradients = gradients.map(|(left, out)| WeightGradient { left, d, out });
        let inputs = recurrence::Inputs { lengths, x, h_prev, h: h.view() };
        recurrence::weight_gradients(context, inputs, gradients);
    }

    fn lstm_backward(
        &self,
        context: &Context<'_>,
        saved: &mut [f32],
        mut d_h: ArrayViewMut3<'_, f32>,
        c_last_grad: ArrayView2<'_, f32>,
        gradients: Gradients<'_>,
        memory: Memory<'_>,
    ) {
        let LayerCell { network, lengths, x, h_prev, c_prev, parameters } = self.reborrow();
        let Parameters { w_x, w_h, projection: of_projection, .. } = parameters;
        let Network { layout, time, batch } = network;
        let zeros = memory.zeros((time, batch));
        let Memory { weights, projection, rest, .. } = memory;
        let (cells, projected) = saved.split_at_mut(layout.mode.saved() * network.cells());
        let [i, cs, f, o, ci, co, output] = self.parts_mut(cells);
        let h = match of_projection {
            None => output.view(),
            Some(_) => network.steps(layout.num_proj, projected),
        };
        let (h_grad, projection) = match of_projection {
            None => (d_h.view(), None),
            Some(weights) => {
                let (h_grad, memory) = (d_h.view_mut(), projection);
                (zeros, Some(GradProjection { weights, h_grad, memory }))
            }
        };
        let sequence = block_lstm::grad::LstmGradSequence {
            inputs: recurrence::Inputs { lengths, x, h_prev, h },
            order: IFCO,
            activations: Activations::default(),
            cs_prev: c_prev,
            w_x,
            w_h,
            peepholes: None,
            cs: cs.view(),
            co: co.view(),
            cs_grad: zeros,
            h_grad,
            cs_last_grad: Some(c_last_grad),
        };
        let Gradients { parameters, x, h_prev, c_prev } = gradients;
        let ParametersMut { w_x, w_h, projection: projection_grad, mut biases } = parameters;
        let (sums, scratch) = rest.split_at_mut(block_lstm::grad::sums_len(&sizes(&network)));
        let mut in_place = block_lstm::GradInPlace { i, f, o, ci };
        let (states, memory) = ([c_prev, h_prev], [weights, &mut *sums]);
        let dz = sequence.all_steps(context, &mut in_place, projection, states, memory, scratch);
        let sums = ColumnSums::new(sums, block_lstm::grad::BIAS_SUMS);
        for (n, gate) in IFCO.into_iter().enumerate() {
            let units = gate * layout.num_units..(gate + 1) * layout.num_units;
            for bias in biases.rows_mut() {
                sums.store(n, bias.slice_move(s![units.clone()]));
            }
        }
        sequence.products(context, in_place, dz, x, [w_x, Some(w_h)]);
        if let Some(out) = projection_grad {
            let rows = |tensor| all_rows(tensor, 0..lengths.longest());
            let (left, d) = (Left::Rows(rows(output.view())), rows(d_h.view()));
            let gradient = WeightGradient { left, d, out };
            recurrence::weight_gradients(context, sequence.inputs, [gradient]);
        }
    }

    fn gru_backward(
        &self,
        context: &Context<'_>,
        saved: &mut [f32],
        h_grad: ArrayView3<'_, f32>,
        gradients: Gradients<'_>,
        memory: Memory<'_>,
    ) {
        let LayerCell { network, lengths, x, h_prev, parameters, .. } = self.reborrow();
        let Parameters { w_x, w_h, .. } = parameters;
        let units = network.layout.num_units;
        let [r_gate, u, c, hc, h] = self.parts_mut(saved);
        let sequence = block_gru::grad::GruGradSequence {
            inputs: recurrence::Inputs { lengths, x, h_prev, h: h.view() },
            w_x: w_x.map(|w_x| gru_weights(w_x, units)),
            w_h: gru_weights(w_h, units),
            h_grad,
            h_last_grad: memory.zeros((1, network.batch)).index_axis_move(Axis(0), 0),
            reset_after: true,
            activations: Activations::default(),
        };
        let Gradients { parameters, x, h_prev, .. } = gradients;
        let ParametersMut { w_x, w_h, mut biases, .. } = parameters;
        let (sums, scratch) = memory.rest.split_at_mut(block_gru::grad::sums_len(&sizes(&network)));
        let mut in_place = block_gru::GradInPlace { r: r_gate, u, c, hc };
        let weights = memory.weights.split_at_mut(weights_len(2 * units, 1, units));
        let [gates, candidate] = weights.into();
        let memory = [&mut *sums, scratch];
        sequence.all_steps(context, &mut in_place, h_prev, [gates, candidate], memory);
        let sums = ColumnSums::new(sums, block_gru::grad::BIAS_SUMS);
        // The sums are those of r, u, c and hc.
        for (mut bias, of_candidate) in biases.rows_mut().into_iter().zip([2, 3]) {
            let gates = bias.axis_chunks_iter_mut(Axis(0), units);
            gates.zip([0, 1, of_candidate]).for_each(|(gate, n)| sums.store(n, gate));
        }
        let w_grads = [w_x, Some(w_h)].map(|w| w.map(|w| w.split_at(Axis(1), 2 * units).into()));
        sequence.products(context, in_place, x, w_grads);
    }
}

/// Scratch memory of a backward pass.
struct Memory<'m> {
    /// `[num_units]`
    zeros: &'m [f32],
    weights: &'m mut [f32],
    /// For the packed weights of a projection.
    projection: &'m mut [f32],
    rest: &'m mut [f32],
}

impl<'m> Memory<'m> {
    /// Zeros for each step and row.
    fn zeros(&self, (steps, batch): (usize, usize)) -> ArrayView3<'m, f32> {
        let shape = (steps, batch, self.zeros.len()).strides((0, 0, 1));
        ArrayView3::from_shape(shape, self.zeros).expect("one row again and again")
    }
}
