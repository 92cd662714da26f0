//! `BlockLSTM`, `BlockLSTMV2` and their gradients.

use std::marker::PhantomData;

use blockcell_kernels::block_lstm::{self, Variant};
use blockcell_kernels::ops::{DataType, Keeps, Op, Sizes};
use blockcell_kernels::{Context, Element, Error};
use ndarray::{Array, ArrayD};

use super::lstm::{Attributes, cell, peephole_grads};
use super::shapes::{LSTM_STEPS, LSTM_WEIGHT_GRADS, LSTM_WEIGHTS, Table};
use super::tensors::{Inputs, restored, stored, take, typed, views, views_mut};
use super::{Attribute, Kernel, tensors};
use crate::common::Tensors;
use crate::common::oracle::{ICFO, IFCO, Lstm, LstmActivations, LstmSequence};

/// `BlockLSTM` and `BlockLSTMV2`.
pub(crate) struct BlockLstm<E> {
    variant: Variant,
    attributes: Attributes,
    element: PhantomData<fn(E)>,
}

impl<E> BlockLstm<E> {
    pub(crate) fn v1(attributes: Attributes) -> Self {
        BlockLstm { variant: Variant::BlockLstm, attributes, element: PhantomData }
    }

    pub(crate) fn v2(attributes: Attributes) -> Self {
        BlockLstm { variant: Variant::BlockLstmV2, attributes, element: PhantomData }
    }
}

impl<E: Element> Kernel for BlockLstm<E> {
    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        let mut all = self.attributes.of_node();
        all.retain(|&(name, _)| self.variant == Variant::BlockLstm || name != "forget_bias");
        all
    }

    fn op(&self) -> &'static Op {
        self.variant.op()
    }

    fn element(&self) -> DataType {
        E::TYPE
    }

    fn uses_optional(&self) -> bool {
        self.attributes.use_peephole
    }

    fn inputs_table(&self) -> Table {
        &["seq_len_max: x:T,B,D cs_prev:B,C h_prev:B,C", LSTM_WEIGHTS]
    }

    fn outputs_table(&self) -> Table {
        &[LSTM_STEPS]
    }

    fn unread(&self) -> &'static [&'static str] {
        if self.uses_optional() { &[] } else { &["wci", "wcf", "wco"] }
    }

    fn scratch(&self, sizes: &Sizes, _: bool) -> usize {
        block_lstm::forward_scratch(sizes)
    }

    fn run(
        &self,
        context: &Context<'_>,
        inputs: &Tensors,
        outputs: &mut Tensors,
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        let seq_len_max = steps(inputs);
        let inputs = Inputs::<E>::new(self.op(), inputs);
        let mut results = stored::<E>(outputs);
        let inputs = views!(
            block_lstm::Inputs,
            inputs,
            [x, cs_prev, h_prev, w, wci, wcf, wco, b],
            seq_len_max: seq_len_max
        );
        let views = views_mut!(block_lstm::Outputs, &mut results, [i, cs, f, o, ci, co, h]);
        let attributes = self.attributes.of_call();
        let ran = block_lstm::forward(
            context,
            self.variant,
            &attributes,
            inputs,
            views,
            Keeps::All,
            scratch,
        );
        *outputs = restored(&results);
        ran
    }

    fn want(&self, inputs: &Tensors) -> Tensors {
        let [_, _, _, _, weights @ ..] = take::<_, 9>(inputs);
        let mut cell = self.attributes.cell::<E>(weights);
        if self.variant == Variant::BlockLstmV2 {
            cell.forget_bias = 0.0;
        }
        let states = sequence(self.variant, cell, &inputs[..4]).forward();
        states.in_order().map(Array::into_dyn).to_vec()
    }
}

/// `BlockLSTMGrad` and `BlockLSTMGradV2`.
pub(crate) struct BlockLstmGrad<E> {
    variant: Variant,
    use_peephole: bool,
    element: PhantomData<fn(E)>,
}

impl<E> BlockLstmGrad<E> {
    pub(crate) fn v1(use_peephole: bool) -> Self {
        BlockLstmGrad { variant: Variant::BlockLstm, use_peephole, element: PhantomData }
    }

    pub(crate) fn v2(use_peephole: bool) -> Self {
        BlockLstmGrad { variant: Variant::BlockLstmV2, use_peephole, element: PhantomData }
    }
}

impl<E: Element> Kernel for BlockLstmGrad<E> {
    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        vec![("use_peephole", Attribute::Bool(self.use_peephole))]
    }

    fn op(&self) -> &'static Op {
        self.variant.grad_op()
    }

    fn element(&self) -> DataType {
        E::TYPE
    }

    fn uses_optional(&self) -> bool {
        self.use_peephole
    }

    fn inputs_table(&self) -> Table {
        &[
            "seq_len_max: x:T,B,D cs_prev:B,C h_prev:B,C",
            LSTM_WEIGHTS,
            LSTM_STEPS,
            "cs_grad:T,B,C h_grad:T,B,C",
        ]
    }

    fn outputs_table(&self) -> Table {
        &["x_grad:T,B,D cs_prev_grad:B,C h_prev_grad:B,C", LSTM_WEIGHT_GRADS]
    }

    fn activations(&self, inputs: &Tensors) -> Tensors {
        let attributes =
            Attributes { use_peephole: self.use_peephole, ..Attributes::of_floats()[0] };
        let (variant, element) = (self.variant, PhantomData);
        BlockLstm::<E> { variant, attributes, element }.want(&inputs[..9].to_vec())
    }

    fn unread(&self) -> &'static [&'static str] {
        if self.use_peephole { &["b"] } else { &["b", "wci", "wcf", "wco"] }
    }

    fn gradients(&self) -> &'static [&'static str] {
        &["cs_grad", "h_grad"]
    }

    fn scratch(&self, sizes: &Sizes, is_apart: bool) -> usize {
        block_lstm::grad_scratch(sizes, is_apart)
    }

    fn run(
        &self,
        context: &Context<'_>,
        inputs: &Tensors,
        outputs: &mut Tensors,
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        let seq_len_max = steps(inputs);
        let inputs = Inputs::<E>::new(self.op(), inputs);
        let mut in_place = inputs.in_place();
        let mut results = stored::<E>(outputs);
        let read = views!(
            block_lstm::GradInputs,
            inputs,
            [x, cs_prev, h_prev, w, wci, wcf, wco, b, cs, co, h, cs_grad, h_grad],
            seq_len_max: seq_len_max
        );
        let worked_in = views_mut!(block_lstm::GradInPlace, &mut in_place, [i, f, o, ci]);
        #[rustfmt::skip]
        let views = views_mut!(
            block_lstm::GradOutputs,
            &mut results,
            [x_grad, cs_prev_grad, h_prev_grad, w_grad, wci_grad, wcf_grad, wco_grad, b_grad]
        );
        let (variant, flag) = (self.variant, self.use_peephole);
        let ran = block_lstm::grad(context, variant, flag, read, worked_in, views, scratch);
        if ran.is_err() {
            inputs.expect_kept(&in_place);
        }
        *outputs = restored(&results);
        ran
    }

    fn want(&self, inputs: &Tensors) -> Tensors {
        let [_, _, _, _, w, wci, wcf, wco, b, steps @ ..] = take::<_, 18>(inputs);
        let [i, cs, f, o, ci, co, h, cs_grad, h_grad] = steps.map(typed);
        let states = LstmActivations { i, cs, f, o, ci, co, h };
        let cell = cell(self.use_peephole, [w, wci, wcf, wco, b]);
        let grad = sequence(self.variant, cell, &inputs[..4]).grad(&states, &cs_grad, &h_grad);
        let mut all = vec![grad.x_grad.into_dyn()];
        all.extend([grad.cs_prev_grad, grad.h_prev_grad, grad.w_grad].map(Array::into_dyn));
        all.extend(peephole_grads(grad.peephole_grads, [wci, wcf, wco]));
        all.push(grad.b_grad.into_dyn());
        all
    }
}

/// The input seq_len_max, which the library takes as a number.
fn steps(inputs: &Tensors) -> usize {
    let steps = tensors::steps::<ndarray::Ix0>(&inputs[0]).into_scalar();
    usize::try_from(steps).expect("a number of time steps")
}

/// The sequence in the oracle, from seq_len_max, x, cs_prev and h_prev.
fn sequence(variant: Variant, lstm: Lstm, inputs: &[ArrayD<f64>]) -> LstmSequence {
    let layout = match variant {
        Variant::BlockLstm => ICFO,
        Variant::BlockLstmV2 => IFCO,
    };
    let [steps, x, cs_prev, h_prev] = take(inputs);
    let sequence_length = vec![steps.sum() as usize; x.shape()[1]];
    let (cs_prev, h_prev) = (typed(cs_prev), typed(h_prev));
    LstmSequence { lstm: Lstm { layout, ..lstm }, sequence_length, x: typed(x), cs_prev, h_prev }
}
