//! The operations of one step.

use bytemuck::Pod;

use super::ops::Call;
use super::tensors::{exactly, exactly_mut, views, views_mut};
use blockcell_kernels::{Element, Error, gru, lstm};

pub(super) fn gru_block_cell(call: Call<'_, '_, '_>) -> Result<(), Error> {
    let [x, h_prev, w_ru, w_c, b_ru, b_c] = exactly(call.inputs);
    let [r, u, c, h] = exactly_mut(call.outputs);
    gru::block_cell(
        call.context,
        views!(gru::BlockCellInputs { x, h_prev, w_ru, w_c, b_ru, b_c }),
        views_mut!(gru::BlockCellOutputs { r, u, c, h }),
        call.scratch,
    )
}

pub(super) fn gru_block_cell_grad(call: Call<'_, '_, '_>) -> Result<(), Error> {
    let [x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, d_h] = exactly(call.inputs);
    let [d_x, d_h_prev, d_c_bar, d_r_bar_u_bar] = exactly_mut(call.outputs);
    gru::block_cell_grad(
        call.context,
        views!(gru::BlockCellGradInputs { x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, d_h }),
        views_mut!(gru::BlockCellGradOutputs { d_x, d_h_prev, d_c_bar, d_r_bar_u_bar }),
    )
}

pub(super) fn lstm_block_cell<E: Element + Pod>(call: Call<'_, '_, '_>) -> Result<(), Error> {
    let [x, cs_prev, h_prev, w, wci, wcf, wco, b] = exactly(call.inputs);
    let [i, cs, f, o, ci, co, h] = exactly_mut(call.outputs);
    lstm::block_cell::<E>(
        call.context,
        &call.attributes.into(),
        views!(lstm::BlockCellInputs { x, cs_prev, h_prev, w, wci, wcf, wco, b }),
        views_mut!(lstm::BlockCellOutputs { i, cs, f, o, ci, co, h }),
    )
}

pub(super) fn lstm_block_cell_grad<E: Element + Pod>(call: Call<'_, '_, '_>) -> Result<(), Error> {
    let [x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, cs_grad, h_grad] =
        exactly(call.inputs);
    let [cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad] = exactly_mut(call.outputs);
    lstm::block_cell_grad::<E>(
        call.context,
        call.attributes.use_peephole,
        views!(lstm::BlockCellGradInputs {
            x,
            cs_prev,
            h_prev,
            w,
            wci,
            wcf,
            wco,
            b,
            i,
            cs,
            f,
            o,
            ci,
            co,
            cs_grad,
            h_grad,
        }),
        views_mut!(lstm::BlockCellGradOutputs {
            cs_prev_grad,
            dicfo,
            wci_grad,
            wcf_grad,
            wco_grad,
        }),
    )
}
