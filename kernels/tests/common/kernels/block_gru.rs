//! `BlockGRU` and `BlockGRUGrad`.

use std::marker::PhantomData;

use blockcell_kernels::block_gru::{self, Attributes};
use blockcell_kernels::ops::{BLOCK_GRU, BLOCK_GRU_GRAD, DataType, Keeps, Op, Sizes};
use blockcell_kernels::{Context, Element, Error};
use ndarray::{Array, ArrayD};

use super::shapes::{GRU_STEPS, GRU_WEIGHT_GRADS, GRU_WEIGHTS, Table};
use super::tensors::{Inputs, restored, steps, stored, take, typed, view, views, views_mut};
use super::{Attribute, Kernel, of_node};
use crate::common::Tensors;
use crate::common::oracle::{Gru, GruActivations, GruSequence};

pub(crate) struct BlockGru<E> {
    attributes: Attributes,
    element: PhantomData<fn(E)>,
}

impl<E> BlockGru<E> {
    pub(crate) fn new(reset_after: bool) -> Self {
        Self::with(Attributes { reset_after, ..Attributes::default() })
    }

    pub(crate) fn with(attributes: Attributes) -> Self {
        BlockGru { attributes, element: PhantomData }
    }
}

impl<E: Element> Kernel for BlockGru<E> {
    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        of_gru(self.attributes)
    }

    fn op(&self) -> &'static Op {
        &BLOCK_GRU
    }

    fn element(&self) -> DataType {
        E::TYPE
    }

    fn uses_optional(&self) -> bool {
        self.attributes.reset_after
    }

    fn inputs_table(&self) -> Table {
        &["sequence_length:B x:T,B,D h_prev:B,C", GRU_WEIGHTS, "b_hc:H"]
    }

    fn outputs_table(&self) -> Table {
        &[GRU_STEPS, "h_last:B,C"]
    }

    fn unread(&self) -> &'static [&'static str] {
        if self.attributes.reset_after { &[] } else { &["b_hc"] }
    }

    fn scratch(&self, sizes: &Sizes, _: bool) -> usize {
        block_gru::forward_scratch(sizes)
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
            block_gru::Inputs,
            inputs,
            [x, h_prev, w_ru, w_c, b_ru, b_c, b_hc],
            sequence_length: sequence_length.view()
        );
        let views = views_mut!(block_gru::Outputs, &mut results, [r, u, c, hc, h, h_last]);
        let ran = block_gru::forward(context, self.attributes, inputs, views, Keeps::All, scratch);
        *outputs = restored(&results);
        ran
    }

    fn want(&self, inputs: &Tensors) -> Tensors {
        let (states, h_last) = sequence(self.attributes, take(inputs)).forward();
        let mut all = states.in_order().map(Array::into_dyn).to_vec();
        all.push(h_last.into_dyn());
        all
    }
}

pub(crate) struct BlockGruGrad<E> {
    attributes: Attributes,
    element: PhantomData<fn(E)>,
}

impl<E> BlockGruGrad<E> {
    pub(crate) fn new(reset_after: bool) -> Self {
        Self::with(Attributes { reset_after, ..Attributes::default() })
    }

    pub(crate) fn with(attributes: Attributes) -> Self {
        BlockGruGrad { attributes, element: PhantomData }
    }
}

impl<E: Element> Kernel for BlockGruGrad<E> {
    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        of_gru(self.attributes)
    }

    fn op(&self) -> &'static Op {
        &BLOCK_GRU_GRAD
    }

    fn element(&self) -> DataType {
        E::TYPE
    }

    fn uses_optional(&self) -> bool {
        self.attributes.reset_after
    }

    fn inputs_table(&self) -> Table {
        &[
            "sequence_length:B x:T,B,D h_prev:B,C",
            GRU_WEIGHTS,
            "b_hc:H",
            GRU_STEPS,
            "h_grad:T,B,C h_last_grad:B,C",
        ]
    }

    fn outputs_table(&self) -> Table {
        &["x_grad:T,B,D h_prev_grad:B,C", GRU_WEIGHT_GRADS, "b_hc_grad:H"]
    }

    fn activations(&self, inputs: &Tensors) -> Tensors {
        let mut all = BlockGru::<E>::with(self.attributes).want(&inputs[..8].to_vec());
        all.truncate(5);
        all
    }

    fn unread(&self) -> &'static [&'static str] {
        &["b_ru", "b_c", "b_hc"]
    }

    fn gradients(&self) -> &'static [&'static str] {
        &["h_grad", "h_last_grad"]
    }

    fn scratch(&self, sizes: &Sizes, is_apart: bool) -> usize {
        block_gru::grad_scratch(sizes, is_apart)
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
            block_gru::GradInputs,
            inputs,
            [x, h_prev, w_ru, w_c, b_ru, b_c, b_hc, h, h_grad, h_last_grad],
            sequence_length: sequence_length.view()
        );
        let worked_in = views_mut!(block_gru::GradInPlace, &mut in_place, [r, u, c, hc]);
        let views = views_mut!(
            block_gru::GradOutputs,
            &mut results,
            [x_grad, h_prev_grad, w_ru_grad, w_c_grad, b_ru_grad, b_c_grad, b_hc_grad]
        );
        let ran = block_gru::grad(context, self.attributes, read, worked_in, views, scratch);
        if ran.is_err() {
            inputs.expect_kept(&in_place);
        }
        *outputs = restored(&results);
        ran
    }

    fn want(&self, inputs: &Tensors) -> Tensors {
        let (first, steps) = inputs.split_at(8);
        let [r, u, c, hc, h, h_grad, h_last_grad] = take(steps);
        let [r, u, c, hc, h] = [r, u, c, hc, h].map(typed);
        let states = GruActivations { r, u, c, hc, h };
        let first = take(first);
        let grad =
            sequence(self.attributes, first).grad(&states, &typed(h_grad), &typed(h_last_grad));
        let mut all = vec![grad.x_grad.into_dyn()];
        all.extend([grad.h_prev_grad, grad.w_ru_grad, grad.w_c_grad].map(Array::into_dyn));
        all.extend([grad.b_ru_grad, grad.b_c_grad].map(Array::into_dyn));
        // Of the shape of b_hc, which may have any length where it is not used.
        let zeros = || ArrayD::zeros(first[7].shape());
        all.push(if self.attributes.reset_after { grad.b_hc_grad.into_dyn() } else { zeros() });
        all
    }
}

/// The attributes of a node.
fn of_gru(Attributes { reset_after, activations }: Attributes) -> Vec<(&'static str, Attribute)> {
    let mut all = vec![("reset_after", Attribute::Bool(reset_after))];
    all.extend(of_node(activations));
    all
}

/// The sequence in the oracle.
fn sequence(
    Attributes { reset_after, activations }: Attributes,
    [sequence_length, x, h_prev, w_ru, w_c, b_ru, b_c, b_hc]: [&ArrayD<f64>; 8],
) -> GruSequence {
    let b_hc = reset_after.then(|| typed(b_hc));
    let [w_ru, w_c] = [w_ru, w_c].map(typed);
    let gru = Gru { w_ru, w_c, b_ru: typed(b_ru), b_c: typed(b_c), b_hc, activations };
    let sequence_length =
        view::<_, ndarray::Ix1>(sequence_length).iter().map(|&steps| steps as usize).collect();
    GruSequence { gru, sequence_length, x: typed(x), h_prev: typed(h_prev) }
}
