//! `LSTMBlockCell` and `LSTMBlockCellGrad`.

use std::marker::PhantomData;

use blockcell_kernels::ops::{DataType, LSTM_BLOCK_CELL, LSTM_BLOCK_CELL_GRAD, Op};
use blockcell_kernels::{Activations, Context, Element, Error, lstm};
use ndarray::{Array, Array1, ArrayD};

use super::shapes::{LSTM_WEIGHTS, Table};
use super::tensors::{Inputs, restored, round, stored, take, typed, views, views_mut};
use super::{Attribute, Kernel};
use crate::common::Tensors;
use crate::common::oracle::{ICFO, Lstm, LstmActivations};

/// The attributes of the forward operations. `BlockLSTMV2` has no `forget_bias`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes {
    pub(crate) use_peephole: bool,
    pub(crate) forget_bias: f32,
    pub(crate) cell_clip: f32,
}

impl Attributes {
    const PLAIN: Self = Attributes { use_peephole: false, forget_bias: 1.0, cell_clip: 0.0 };
    const CLIPPED: Self = Attributes { use_peephole: false, forget_bias: -0.5, cell_clip: 0.4 };
    const PEEPHOLE: Self = Attributes { use_peephole: true, forget_bias: 0.25, cell_clip: -1.0 };
    const ALL: Self = Attributes { use_peephole: true, forget_bias: 1.0, cell_clip: 0.4 };

    /// Attributes to test with float.
    pub(crate) fn of_floats() -> [Self; 4] {
        [Self::PLAIN, Self::CLIPPED, Self::PEEPHOLE, Self::ALL]
    }

    /// Attributes to test with half.
    pub(crate) fn of_halves() -> [Self; 2] {
        [Self::PLAIN, Self::ALL]
    }

    /// As a node has them.
    pub(crate) fn of_node(self) -> Vec<(&'static str, Attribute)> {
        let Attributes { use_peephole, forget_bias, cell_clip } = self;
        vec![
            ("use_peephole", Attribute::Bool(use_peephole)),
            ("forget_bias", Attribute::Float(forget_bias)),
            ("cell_clip", Attribute::Float(cell_clip)),
        ]
    }

    /// As the library has them.
    pub(crate) fn of_call(self) -> lstm::Attributes {
        let Attributes { use_peephole, forget_bias, cell_clip } = self;
        lstm::Attributes { use_peephole, forget_bias, cell_clip }
    }

    /// The cell in the oracle, with the attributes rounded to `E`. Its layout is ICFO.
    pub(crate) fn cell<E: Element>(self, weights: [&ArrayD<f64>; 5]) -> Lstm {
        let clips = self.cell_clip > 0.0;
        Lstm {
            forget_bias: round::<E>(self.forget_bias.into()),
            clip: clips.then(|| round::<E>(self.cell_clip.into())),
            ..cell(self.use_peephole, weights)
        }
    }
}

/// The cell that the gradients go through, which know neither forget bias nor clip.
pub(crate) fn cell(use_peephole: bool, [w, wci, wcf, wco, b]: [&ArrayD<f64>; 5]) -> Lstm {
    let peepholes = use_peephole.then(|| [wci, wcf, wco].map(typed));
    Lstm {
        w: typed(w),
        peepholes,
        b: typed(b),
        forget_bias: 0.0,
        clip: None,
        layout: ICFO,
        activations: Activations::default(),
    }
}

/// The gradients with respect to wci, wcf and wco, zeros without peepholes.
pub(crate) fn peephole_grads(
    grads: Option<[Array1<f64>; 3]>,
    weights: [&ArrayD<f64>; 3],
) -> [ArrayD<f64>; 3] {
    grads
        .unwrap_or_else(|| weights.map(|weights| Array1::zeros(weights.len())))
        .map(Array::into_dyn)
}

pub(crate) struct LstmBlockCell<E> {
    attributes: Attributes,
    element: PhantomData<fn(E)>,
}

impl<E> LstmBlockCell<E> {
    pub(crate) fn new(attributes: Attributes) -> Self {
        LstmBlockCell { attributes, element: PhantomData }
    }
}

impl<E: Element> Kernel for LstmBlockCell<E> {
    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        self.attributes.of_node()
    }

    fn op(&self) -> &'static Op {
        &LSTM_BLOCK_CELL
    }

    fn element(&self) -> DataType {
        E::TYPE
    }

    fn uses_optional(&self) -> bool {
        self.attributes.use_peephole
    }

    fn inputs_table(&self) -> Table {
        &["x:B,D cs_prev:B,C h_prev:B,C", LSTM_WEIGHTS]
    }

    fn outputs_table(&self) -> Table {
        &["i:B,C cs:B,C f:B,C o:B,C ci:B,C co:B,C h:B,C"]
    }

    fn unread(&self) -> &'static [&'static str] {
        if self.uses_optional() { &[] } else { &["wci", "wcf", "wco"] }
    }

    fn run(
        &self,
        context: &Context<'_>,
        inputs: &Tensors,
        outputs: &mut Tensors,
        _: &mut [f32],
    ) -> Result<(), Error> {
        let inputs = Inputs::<E>::new(self.op(), inputs);
        let mut results = stored::<E>(outputs);
        let ran = lstm::block_cell(
            context,
            &self.attributes.of_call(),
            views!(lstm::BlockCellInputs, inputs, [x, cs_prev, h_prev, w, wci, wcf, wco, b]),
            views_mut!(lstm::BlockCellOutputs, &mut results, [i, cs, f, o, ci, co, h]),
        );
        *outputs = restored(&results);
        ran
    }

    fn want(&self, inputs: &Tensors) -> Tensors {
        let [x, cs_prev, h_prev, weights @ ..] = take::<_, 8>(inputs);
        let cell = self.attributes.cell::<E>(weights);
        let state = cell.forward(&typed(x), &typed(cs_prev), &typed(h_prev));
        state.in_order().map(Array::into_dyn).to_vec()
    }
}

pub(crate) struct LstmBlockCellGrad<E> {
    use_peephole: bool,
    element: PhantomData<fn(E)>,
}

impl<E> LstmBlockCellGrad<E> {
    pub(crate) fn new(use_peephole: bool) -> Self {
        LstmBlockCellGrad { use_peephole, element: PhantomData }
    }
}

impl<E: Element> Kernel for LstmBlockCellGrad<E> {
    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        vec![("use_peephole", Attribute::Bool(self.use_peephole))]
    }

    fn op(&self) -> &'static Op {
        &LSTM_BLOCK_CELL_GRAD
    }

    fn element(&self) -> DataType {
        E::TYPE
    }

    fn uses_optional(&self) -> bool {
        self.use_peephole
    }

    fn inputs_table(&self) -> Table {
        &[
            "x:B,D cs_prev:B,C h_prev:B,C",
            LSTM_WEIGHTS,
            "i:B,C cs:B,C f:B,C o:B,C ci:B,C co:B,C cs_grad:B,C h_grad:B,C",
        ]
    }

    fn outputs_table(&self) -> Table {
        &["cs_prev_grad:B,C dicfo:B,4C wci_grad:I wcf_grad:F wco_grad:O"]
    }

    fn activations(&self, inputs: &Tensors) -> Tensors {
        let attributes = Attributes { use_peephole: self.use_peephole, ..Attributes::PLAIN };
        LstmBlockCell::<E>::new(attributes).want(&inputs[..8].to_vec())[..6].to_vec()
    }

    fn unread(&self) -> &'static [&'static str] {
        if self.use_peephole {
            &["x", "h_prev", "w", "b"]
        } else {
            &["x", "h_prev", "w", "b", "wci", "wcf", "wco", "cs"]
        }
    }

    fn gradients(&self) -> &'static [&'static str] {
        &["cs_grad", "h_grad"]
    }

    fn run(
        &self,
        context: &Context<'_>,
        inputs: &Tensors,
        outputs: &mut Tensors,
        _: &mut [f32],
    ) -> Result<(), Error> {
        let inputs = Inputs::<E>::new(self.op(), inputs);
        let mut results = stored::<E>(outputs);
        #[rustfmt::skip]
        let inputs = views!(
            lstm::BlockCellGradInputs,
            inputs,
            [x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, cs_grad, h_grad]
        );
        let views = views_mut!(
            lstm::BlockCellGradOutputs,
            &mut results,
            [cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad]
        );
        let ran = lstm::block_cell_grad(context, self.use_peephole, inputs, views);
        *outputs = restored(&results);
        ran
    }

    fn want(&self, inputs: &Tensors) -> Tensors {
        let [_, cs_prev, _, w, wci, wcf, wco, b, gates @ ..] = take::<_, 16>(inputs);
        let [i, cs, f, o, ci, co, cs_grad, h_grad] = gates.map(typed);
        let h = &o * &co;
        let state = LstmActivations { i, cs, f, o, ci, co, h };
        let cell = cell(self.use_peephole, [w, wci, wcf, wco, b]);
        let grad = cell.grad(&typed(cs_prev), &state, &cs_grad, &h_grad);
        let mut all = vec![grad.cs_prev_grad.into_dyn(), grad.gates_grad.into_dyn()];
        all.extend(peephole_grads(grad.peephole_grads, [wci, wcf, wco]));
        all
    }
}
