//! `GRUBlockCell` and `GRUBlockCellGrad`.

use blockcell_kernels::ops::{GRU_BLOCK_CELL, GRU_BLOCK_CELL_GRAD, Op, Sizes};
use blockcell_kernels::{Activations, Context, Error, gru};
use ndarray::{Array, ArrayD};

use super::Kernel;
use super::shapes::{GRU_WEIGHTS, Table};
use super::tensors::{Inputs, restored, stored, take, typed, views, views_mut};
use crate::common::Tensors;
use crate::common::oracle::{Gru, GruActivations};

pub(crate) struct GruBlockCell;

impl Kernel for GruBlockCell {
    fn op(&self) -> &'static Op {
        &GRU_BLOCK_CELL
    }

    fn inputs_table(&self) -> Table {
        &["x:B,D h_prev:B,C", GRU_WEIGHTS]
    }

    fn outputs_table(&self) -> Table {
        &["r:B,C u:B,C c:B,C h:B,C"]
    }

    fn scratch(&self, sizes: &Sizes, _: bool) -> usize {
        gru::block_cell_scratch(sizes)
    }

    fn run(
        &self,
        context: &Context<'_>,
        inputs: &Tensors,
        outputs: &mut Tensors,
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        let inputs = Inputs::new(self.op(), inputs);
        let mut results = stored(outputs);
        let ran = gru::block_cell(
            context,
            views!(gru::BlockCellInputs, inputs, [x, h_prev, w_ru, w_c, b_ru, b_c]),
            views_mut!(gru::BlockCellOutputs, &mut results, [r, u, c, h]),
            scratch,
        );
        *outputs = restored(&results);
        ran
    }

    fn want(&self, inputs: &Tensors) -> Tensors {
        let [x, h_prev, weights @ ..] = take::<_, 6>(inputs);
        let GruActivations { r, u, c, hc: _, h } = cell(weights).forward(&typed(x), &typed(h_prev));
        [r, u, c, h].map(Array::into_dyn).to_vec()
    }
}

pub(crate) struct GruBlockCellGrad;

impl Kernel for GruBlockCellGrad {
    fn op(&self) -> &'static Op {
        &GRU_BLOCK_CELL_GRAD
    }

    fn inputs_table(&self) -> Table {
        &["x:B,D h_prev:B,C", GRU_WEIGHTS, "r:B,C u:B,C c:B,C d_h:B,C"]
    }

    fn outputs_table(&self) -> Table {
        &["d_x:B,D d_h_prev:B,C d_c_bar:B,C d_r_bar_u_bar:B,2C"]
    }

    fn activations(&self, inputs: &Tensors) -> Tensors {
        GruBlockCell.want(&inputs[..6].to_vec())[..3].to_vec()
    }

    fn unread(&self) -> &'static [&'static str] {
        &["x", "b_ru", "b_c"]
    }

    fn gradients(&self) -> &'static [&'static str] {
        &["d_h"]
    }

    fn run(
        &self,
        context: &Context<'_>,
        inputs: &Tensors,
        outputs: &mut Tensors,
        _: &mut [f32],
    ) -> Result<(), Error> {
        let inputs = Inputs::new(self.op(), inputs);
        let mut results = stored(outputs);
        let ran = gru::block_cell_grad(
            context,
            views!(
                gru::BlockCellGradInputs,
                inputs,
                [x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, d_h]
            ),
            views_mut!(
                gru::BlockCellGradOutputs,
                &mut results,
                [d_x, d_h_prev, d_c_bar, d_r_bar_u_bar]
            ),
        );
        *outputs = restored(&results);
        ran
    }

    fn want(&self, inputs: &Tensors) -> Tensors {
        let [_, h_prev, w_ru, w_c, b_ru, b_c, gates @ ..] = take::<_, 10>(inputs);
        let [r, u, c, d_h] = gates.map(typed);
        let h_prev = typed(h_prev);
        let state = GruActivations { r, u, c, hc: h_prev.clone(), h: h_prev.clone() };
        let grad = cell([w_ru, w_c, b_ru, b_c]).grad(&h_prev, &state, &d_h);
        [grad.d_x, grad.d_h_prev, grad.d_c_bar, grad.d_r_bar_u_bar].map(Array::into_dyn).to_vec()
    }
}

/// The cell without a recurrent bias.
fn cell([w_ru, w_c, b_ru, b_c]: [&ArrayD<f64>; 4]) -> Gru {
    let [w_ru, w_c] = [w_ru, w_c].map(typed);
    Gru {
        w_ru,
        w_c,
        b_ru: typed(b_ru),
        b_c: typed(b_c),
        b_hc: None,
        activations: Activations::default(),
    }
}
