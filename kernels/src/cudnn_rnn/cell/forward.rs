//! The forward steps.

use std::slice;

use ndarray::{ArrayView1, s};

use super::{LayerCell, Parameters, gru_weights, projection_len, rnn_weights_len};
use crate::block_gru::forward::GruWeights;
use crate::block_lstm::by_row::PLAIN;
use crate::block_lstm::forward::Projection;
use crate::cudnn_rnn::Mode;
use crate::cudnn_rnn::memory::Arena;
use crate::gemm::{self, StepShape};
use crate::gru::step::{GruOrder, GruStep};
use crate::lstm::step::{IFCO, LstmStep};
use crate::recurrence::{self, Product};
use crate::rnn::Rnn;
use crate::{Activations, Context, block_gru, block_lstm};

impl LayerCell<'_> {
    /// All steps. `saved` gets what [`LayerCell::backward`] needs.
    pub(in crate::cudnn_rnn) fn forward(
        &self,
        context: &Context<'_>,
        saved: &mut [f32],
        scratch: &mut [f32],
    ) {
        let mut scratch = Arena::new(scratch);
        let biases = self.parameters.biases;
        let b = scratch.take(biases.ncols());
        for (b, biases) in b.iter_mut().zip(biases.columns()) {
            *b = biases[0] + biases[1];
        }
        let b = ArrayView1::from(&*b);
        match self.network.layout.mode {
            Mode::RnnRelu | Mode::RnnTanh => self.rnn_forward(context, b, saved, scratch),
            Mode::Lstm => self.lstm_forward(context, b, saved, scratch),
            Mode::Gru => self.gru_forward(context, b, saved, scratch),
        }
    }

    fn rnn_forward(
        &self,
        context: &Context<'_>,
        b: ArrayView1<'_, f32>,
        saved: &mut [f32],
        scratch: Arena<'_>,
    ) {
        let LayerCell { network, lengths, x, h_prev, parameters, .. } = self.reborrow();
        let activation = network.layout.mode.activation();
        let Parameters { w_x, w_h, .. } = parameters;
        let b = b.reborrow();
        let [h] = self.parts_mut(saved);
        let (weights, products) = scratch.rest().split_at_mut(rnn_weights_len(&network));
        let steps = lengths.longest();
        let tiling = gemm::sequence_tiling::<f32>(context, StepShape::new(h_prev.dim(), 1), steps);
        let product = Product::plain(tiling, w_h).packed_for(context, steps, weights);
        let w_x = w_x.as_ref().map(slice::from_ref);
        let sequence = recurrence::Sequence { lengths, x, w_x, first: [h_prev] };
        let outputs = recurrence::Outputs { kept: [], states: [h] };
        recurrence::forward(context, &Rnn { activation, b, product }, &sequence, outputs, products);
    }

    fn lstm_forward(
        &self,
        context: &Context<'_>,
        b: ArrayView1<'_, f32>,
        saved: &mut [f32],
        mut scratch: Arena<'_>,
    ) {
        let LayerCell { network, lengths, x, h_prev, c_prev, parameters } = self.reborrow();
        let layout = network.layout;
        let b = b.reborrow();
        let step = LstmStep {
            attributes: PLAIN,
            activations: Activations::default(),
            order: IFCO,
            b,
            peepholes: [b; 3],
        };
        let Parameters { w_x, w_h, .. } = parameters;
        let cs_prev = c_prev;
        let (cells, h) = saved.split_at_mut(layout.mode.saved() * network.cells());
        let memory = scratch.take(projection_len(&network));
        let projection = parameters.projection.map(|weights| Projection {
            weights,
            h: network.steps_mut(layout.num_proj, h),
            memory,
            clip: None,
        });
        block_lstm::forward::LstmSequence { lengths, x, cs_prev, h_prev, w_x, w_h, step }.compute(
            context,
            self.parts_mut(cells),
            projection,
            scratch.rest(),
        );
    }

    fn gru_forward(
        &self,
        context: &Context<'_>,
        b: ArrayView1<'_, f32>,
        saved: &mut [f32],
        scratch: Arena<'_>,
    ) {
        let LayerCell { network, lengths, x, h_prev, parameters, .. } = self.reborrow();
        let units = network.layout.num_units;
        let w_x = parameters.w_x.map(|w_x| GruWeights::Apart(gru_weights(w_x, units)));
        let w_h = GruWeights::Apart(gru_weights(parameters.w_h, units));
        let b_ru = b.slice_move(s![..2 * units]).reborrow();
        let [b_c, b_hc] = [0, 1].map(|n| parameters.biases.slice_move(s![n, 2 * units..]));
        let step = GruStep {
            activations: Activations::default(),
            order: GruOrder::ResetFirst,
            b_ru,
            b_c,
            b_hc: Some(b_hc),
            u_weighs_c: false,
        };
        block_gru::forward::GruSequence { lengths, x, h_prev, w_x, w_h, step }.compute(
            context,
            self.parts_mut(saved),
            scratch.rest(),
        );
    }
}
