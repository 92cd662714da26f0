//! The operations of one step.

use bytemuck::Pod;

use super::ops::Call;
use super::tensors::{exactly, exactly_mut, view, view_mut};
use crate::{Element, Error, gru, lstm};

pub(super) fn gru_block_cell(call: Call<'_, '_, '_>) -> Result<(), Error> {
    let [x, h_prev, w_ru, w_c, b_ru, b_c] = exactly(call.inputs);
    let [r, u, c, h] = exactly_mut(call.outputs);
    gru::block_cell(
        call.context,
        gru::BlockCellInputs {
            x: view(x),
            h_prev: view(h_prev),
            w_ru: view(w_ru),
            w_c: view(w_c),
            b_ru: view(b_ru),
            b_c: view(b_c),
        },
        gru::BlockCellOutputs { r: view_mut(r), u: view_mut(u), c: view_mut(c), h: view_mut(h) },
        call.scratch,
    )
}

pub(super) fn gru_block_cell_grad(call: Call<'_, '_, '_>) -> Result<(), Error> {
    let [x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, d_h] = exactly(call.inputs);
    let [d_x, d_h_prev, d_c_bar, d_r_bar_u_bar] = exactly_mut(call.outputs);
    gru::block_cell_grad(
        call.context,
        gru::BlockCellGradInputs {
            x: view(x),
            h_prev: view(h_prev),
            w_ru: view(w_ru),
            w_c: view(w_c),
            b_ru: view(b_ru),
            b_c: view(b_c),
            r: view(r),
            u: view(u),
            c: view(c),
            d_h: view(d_h),
        },
        gru::BlockCellGradOutputs {
            d_x: view_mut(d_x),
            d_h_prev: view_mut(d_h_prev),
            d_c_bar: view_mut(d_c_bar),
            d_r_bar_u_bar: view_mut(d_r_bar_u_bar),
        },
    )
}

pub(super) fn lstm_block_cell<E: Element + Pod>(call: Call<'_, '_, '_>) -> Result<(), Error> {
    let [x, cs_prev, h_prev, w, wci, wcf, wco, b] = exactly(call.inputs);
    let [i, cs, f, o, ci, co, h] = exactly_mut(call.outputs);
    lstm::block_cell::<E>(
        call.context,
        &call.attributes.into(),
        lstm::BlockCellInputs {
            x: view(x),
            cs_prev: view(cs_prev),
            h_prev: view(h_prev),
            w: view(w),
            wci: view(wci),
            wcf: view(wcf),
            wco: view(wco),
            b: view(b),
        },
        lstm::BlockCellOutputs {
            i: view_mut(i),
            cs: view_mut(cs),
            f: view_mut(f),
            o: view_mut(o),
            ci: view_mut(ci),
            co: view_mut(co),
            h: view_mut(h),
        },
    )
}

pub(super) fn lstm_block_cell_grad<E: Element + Pod>(call: Call<'_, '_, '_>) -> Result<(), Error> {
    let [x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, cs_grad, h_grad] =
        exactly(call.inputs);
    let [cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad] = exactly_mut(call.outputs);
    lstm::block_cell_grad::<E>(
        call.context,
        call.attributes.use_peephole,
        lstm::BlockCellGradInputs {
            x: view(x),
            cs_prev: view(cs_prev),
            h_prev: view(h_prev),
            w: view(w),
            wci: view(wci),
            wcf: view(wcf),
            wco: view(wco),
            b: view(b),
            i: view(i),
            cs: view(cs),
            f: view(f),
            o: view(o),
            ci: view(ci),
            co: view(co),
            cs_grad: view(cs_grad),
            h_grad: view(h_grad),
        },
        lstm::BlockCellGradOutputs {
            cs_prev_grad: view_mut(cs_prev_grad),
            dicfo: view_mut(dicfo),
            wci_grad: view_mut(wci_grad),
            wcf_grad: view_mut(wcf_grad),
            wco_grad: view_mut(wco_grad),
        },
    )
}
