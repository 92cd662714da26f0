//! The operations over a sequence.

use bytemuck::Pod;
use ndarray::ArrayView1;

use super::ops::Call;
use super::tensors::{exactly, exactly_mut, step, steps, view, view_mut};
use crate::block_lstm::Variant;
use crate::{Element, Error, block_gru, block_lstm};

pub(super) fn block_lstm<E: Element + Pod>(
    variant: Variant,
    call: Call<'_, '_, '_>,
) -> Result<(), Error> {
    let [seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b] = exactly(call.inputs);
    let [i, cs, f, o, ci, co, h] = exactly_mut(call.outputs);
    block_lstm::forward::<E>(
        call.context,
        variant,
        &call.attributes.into(),
        block_lstm::Inputs {
            seq_len_max: step(seq_len_max),
            x: view(x),
            cs_prev: view(cs_prev),
            h_prev: view(h_prev),
            w: view(w),
            wci: view(wci),
            wcf: view(wcf),
            wco: view(wco),
            b: view(b),
        },
        block_lstm::Outputs {
            i: view_mut(i),
            cs: view_mut(cs),
            f: view_mut(f),
            o: view_mut(o),
            ci: view_mut(ci),
            co: view_mut(co),
            h: view_mut(h),
        },
        call.scratch,
    )
}

pub(super) fn block_lstm_grad<E: Element + Pod>(
    variant: Variant,
    call: Call<'_, '_, '_>,
) -> Result<(), Error> {
    let [seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b, gates @ ..] =
        exactly::<18>(call.inputs);
    let [_, cs, _, _, _, co, h, cs_grad, h_grad] = gates;
    let [i, f, o, ci] = exactly_mut(call.in_place);
    let [x_grad, cs_prev_grad, h_prev_grad, w_grad, wci_grad, wcf_grad, wco_grad, b_grad] =
        exactly_mut(call.outputs);
    block_lstm::grad::<E>(
        call.context,
        variant,
        call.attributes.use_peephole,
        block_lstm::GradInputs {
            seq_len_max: step(seq_len_max),
            x: view(x),
            cs_prev: view(cs_prev),
            h_prev: view(h_prev),
            w: view(w),
            wci: view(wci),
            wcf: view(wcf),
            wco: view(wco),
            b: view(b),
            cs: view(cs),
            co: view(co),
            h: view(h),
            cs_grad: view(cs_grad),
            h_grad: view(h_grad),
        },
        block_lstm::GradInPlace {
            i: view_mut(i),
            f: view_mut(f),
            o: view_mut(o),
            ci: view_mut(ci),
        },
        block_lstm::GradOutputs {
            x_grad: view_mut(x_grad),
            cs_prev_grad: view_mut(cs_prev_grad),
            h_prev_grad: view_mut(h_prev_grad),
            w_grad: view_mut(w_grad),
            wci_grad: view_mut(wci_grad),
            wcf_grad: view_mut(wcf_grad),
            wco_grad: view_mut(wco_grad),
            b_grad: view_mut(b_grad),
        },
        call.scratch,
    )
}

pub(super) fn block_gru<E: Element + Pod>(call: Call<'_, '_, '_>) -> Result<(), Error> {
    let [sequence_length, x, h_prev, w_ru, w_c, b_ru, b_c, b_hc] = exactly(call.inputs);
    let [r, u, c, hc, h, h_last] = exactly_mut(call.outputs);
    block_gru::forward::<E>(
        call.context,
        call.attributes.reset_after,
        block_gru::Inputs {
            sequence_length: ArrayView1::from(&steps(sequence_length)),
            x: view(x),
            h_prev: view(h_prev),
            w_ru: view(w_ru),
            w_c: view(w_c),
            b_ru: view(b_ru),
            b_c: view(b_c),
            b_hc: view(b_hc),
        },
        block_gru::Outputs {
            r: view_mut(r),
            u: view_mut(u),
            c: view_mut(c),
            hc: view_mut(hc),
            h: view_mut(h),
            h_last: view_mut(h_last),
        },
        call.scratch,
    )
}

pub(super) fn block_gru_grad<E: Element + Pod>(call: Call<'_, '_, '_>) -> Result<(), Error> {
    let [
        sequence_length,
        x,
        h_prev,
        w_ru,
        w_c,
        b_ru,
        b_c,
        b_hc,
        _,
        _,
        _,
        _,
        h,
        h_grad,
        h_last_grad,
    ] = exactly(call.inputs);
    let [r, u, c, hc] = exactly_mut(call.in_place);
    let [x_grad, h_prev_grad, w_ru_grad, w_c_grad, b_ru_grad, b_c_grad, b_hc_grad] =
        exactly_mut(call.outputs);
    block_gru::grad::<E>(
        call.context,
        call.attributes.reset_after,
        block_gru::GradInputs {
            sequence_length: ArrayView1::from(&steps(sequence_length)),
            x: view(x),
            h_prev: view(h_prev),
            w_ru: view(w_ru),
            w_c: view(w_c),
            b_ru: view(b_ru),
            b_c: view(b_c),
            b_hc: view(b_hc),
            h: view(h),
            h_grad: view(h_grad),
            h_last_grad: view(h_last_grad),
        },
        block_gru::GradInPlace { r: view_mut(r), u: view_mut(u), c: view_mut(c), hc: view_mut(hc) },
        block_gru::GradOutputs {
            x_grad: view_mut(x_grad),
            h_prev_grad: view_mut(h_prev_grad),
            w_ru_grad: view_mut(w_ru_grad),
            w_c_grad: view_mut(w_c_grad),
            b_ru_grad: view_mut(b_ru_grad),
            b_c_grad: view_mut(b_c_grad),
            b_hc_grad: view_mut(b_hc_grad),
        },
        call.scratch,
    )
}
