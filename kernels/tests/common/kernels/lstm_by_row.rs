//! `BlockcellLSTM` and `BlockcellLSTMGrad`.

use std::marker::PhantomData;

use blockcell_kernels::block_lstm;
use blockcell_kernels::ops::{DataType, Keeps, LSTM, LSTM_GRAD, Op, Sizes};
use blockcell_kernels::{Activations, Context, Element, Error};
use ndarray::{Array, ArrayD};

use super::shapes::{LSTM_STEPS, Table};
use super::tensors::{Inputs, restored, steps, stored, take, typed, view, views, views_mut};
use super::{Attribute, Kernel, of_node};
use crate::common::Tensors;
use crate::common::oracle::{IFCO, Lstm, LstmActivations, LstmSequence};

pub(crate) struct LstmByRow<E> {
    activations: Activations,
    element: PhantomData<fn(E)>,
}

impl<E> LstmByRow<E> {
    pub(crate) fn new(activations: Activations) -> Self {
        LstmByRow { activations, element: PhantomData }
    }
}

impl<E: Element> Kernel for LstmByRow<E> {
    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        of_node(self.activations).to_vec()
    }

    fn op(&self) -> &'static Op {
        &LSTM
    }

    fn element(&self) -> DataType {
        E::TYPE
    }

    fn inputs_table(&self) -> Table {
        &["sequence_length:B x:T,B,D cs_prev:B,C h_prev:B,C w:D+C,4C b:4C"]
    }

    fn outputs_table(&self) -> Table {
        &[LSTM_STEPS]
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
        let sequence_length = steps::<ndarray::Ix1>(&inputs[0]);
        let inputs = Inputs::<E>::new(self.op(), inputs);
        let mut results = stored::<E>(outputs);
        let inputs = views!(
            block_lstm::ByRowInputs,
            inputs,
            [x, cs_prev, h_prev, w, b],
            sequence_length: sequence_length.view()
        );
        let views = views_mut!(block_lstm::ByRowOutputs, &mut results, [i, cs, f, o, ci, co, h]);
        let (activations, keeps) = (self.activations, Keeps::All);
        let ran = block_lstm::forward_by_row(context, activations, inputs, views, keeps, scratch);
        *outputs = restored(&results);
        ran
    }

    fn want(&self, inputs: &Tensors) -> Tensors {
        let states = sequence(self.activations, take(inputs)).forward();
        states.in_order().map(Array::into_dyn).to_vec()
    }
}

pub(crate) struct LstmByRowGrad<E> {
    activations: Activations,
    element: PhantomData<fn(E)>,
}

impl<E> LstmByRowGrad<E> {
    pub(crate) fn new(activations: Activations) -> Self {
        LstmByRowGrad { activations, element: PhantomData }
    }
}

impl<E: Element> Kernel for LstmByRowGrad<E> {
    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        of_node(self.activations).to_vec()
    }

    fn op(&self) -> &'static Op {
        &LSTM_GRAD
    }

    fn element(&self) -> DataType {
        E::TYPE
    }

    fn inputs_table(&self) -> Table {
        &[
            "sequence_length:B x:T,B,D cs_prev:B,C h_prev:B,C w:D+C,4C b:4C",
            LSTM_STEPS,
            "cs_grad:T,B,C h_grad:T,B,C",
        ]
    }

    fn outputs_table(&self) -> Table {
        &["x_grad:T,B,D cs_prev_grad:B,C h_prev_grad:B,C w_grad:D+C,4C b_grad:4C"]
    }

    fn activations(&self, inputs: &Tensors) -> Tensors {
        LstmByRow::<E>::new(self.activations).want(&inputs[..6].to_vec())
    }

    fn unread(&self) -> &'static [&'static str] {
        &["b"]
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
        let sequence_length = steps::<ndarray::Ix1>(&inputs[0]);
        let inputs = Inputs::<E>::new(self.op(), inputs);
        let mut in_place = inputs.in_place();
        let mut results = stored::<E>(outputs);
        let read = views!(
            block_lstm::ByRowGradInputs,
            inputs,
            [x, cs_prev, h_prev, w, b, cs, co, h, cs_grad, h_grad],
            sequence_length: sequence_length.view()
        );
        let worked_in = views_mut!(block_lstm::ByRowGradInPlace, &mut in_place, [i, f, o, ci]);
        let views = views_mut!(
            block_lstm::ByRowGradOutputs,
            &mut results,
            [x_grad, cs_prev_grad, h_prev_grad, w_grad, b_grad]
        );
        let functions = self.activations;
        let ran = block_lstm::grad_by_row(context, functions, read, worked_in, views, scratch);
        if ran.is_err() {
            inputs.expect_kept(&in_place);
        }
        *outputs = restored(&results);
        ran
    }

    fn want(&self, inputs: &Tensors) -> Tensors {
        let (first, steps) = inputs.split_at(6);
        let [i, cs, f, o, ci, co, h, cs_grad, h_grad] = take::<_, 9>(steps).map(typed);
        let states = LstmActivations { i, cs, f, o, ci, co, h };
        let grad = sequence(self.activations, take(first)).grad(&states, &cs_grad, &h_grad);
        let mut all = vec![grad.x_grad.into_dyn()];
        all.extend([grad.cs_prev_grad, grad.h_prev_grad, grad.w_grad].map(Array::into_dyn));
        all.push(grad.b_grad.into_dyn());
        all
    }
}

/// The sequence in the oracle.
fn sequence(
    activations: Activations,
    [sequence_length, x, cs_prev, h_prev, w, b]: [&ArrayD<f64>; 6],
) -> LstmSequence {
    let lstm = Lstm {
        w: typed(w),
        peepholes: None,
        b: typed(b),
        forget_bias: 0.0,
        clip: None,
        layout: IFCO,
        activations,
    };
    let sequence_length =
        view::<_, ndarray::Ix1>(sequence_length).iter().map(|&steps| steps as usize).collect();
    let (cs_prev, h_prev) = (typed(cs_prev), typed(h_prev));
    LstmSequence { lstm, sequence_length, x: typed(x), cs_prev, h_prev }
}
