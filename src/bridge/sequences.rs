//! The operations over a sequence.

use bytemuck::Pod;
use ndarray::ArrayView1;

use super::ops::Call;
use super::tensors::{exactly, exactly_mut, step, steps, views, views_mut};
use blockcell_kernels::block_lstm::Variant;
use blockcell_kernels::{Element, Error, block_gru, block_lstm};

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
        views!(block_lstm::Inputs {
            seq_len_max: step(seq_len_max),
            x,
            cs_prev,
            h_prev,
            w,
            wci,
            wcf,
            wco,
            b,
        }),
        views_mut!(block_lstm::Outputs { i, cs, f, o, ci, co, h }),
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
        views!(block_lstm::GradInputs {
            seq_len_max: step(seq_len_max),
            x,
            cs_prev,
            h_prev,
            w,
            wci,
            wcf,
            wco,
            b,
            cs,
            co,
            h,
            cs_grad,
            h_grad,
        }),
        views_mut!(block_lstm::GradInPlace { i, f, o, ci }),
        views_mut!(block_lstm::GradOutputs {
            x_grad,
            cs_prev_grad,
            h_prev_grad,
            w_grad,
            wci_grad,
            wcf_grad,
            wco_grad,
            b_grad,
        }),
        call.scratch,
    )
}

pub(super) fn block_gru<E: Element + Pod>(call: Call<'_, '_, '_>) -> Result<(), Error> {
    let [sequence_length, x, h_prev, w_ru, w_c, b_ru, b_c, b_hc] = exactly(call.inputs);
    let [r, u, c, hc, h, h_last] = exactly_mut(call.outputs);
    block_gru::forward::<E>(
        call.context,
        call.attributes.reset_after,
        views!(block_gru::Inputs {
            sequence_length: ArrayView1::from(&steps(sequence_length)),
            x,
            h_prev,
            w_ru,
            w_c,
            b_ru,
            b_c,
            b_hc,
        }),
        views_mut!(block_gru::Outputs { r, u, c, hc, h, h_last }),
        call.scratch,
    )
}

pub(super) fn block_gru_grad<E: Element + Pod>(call: Call<'_, '_, '_>) -> Result<(), Error> {
    let [sequence_length, x, h_prev, w_ru, w_c, b_ru, b_c, b_hc, states @ ..] =
        exactly::<15>(call.inputs);
    let [_, _, _, _, h, h_grad, h_last_grad] = states;
    let [r, u, c, hc] = exactly_mut(call.in_place);
    let [x_grad, h_prev_grad, w_ru_grad, w_c_grad, b_ru_grad, b_c_grad, b_hc_grad] =
        exactly_mut(call.outputs);
    block_gru::grad::<E>(
        call.context,
        call.attributes.reset_after,
        views!(block_gru::GradInputs {
            sequence_length: ArrayView1::from(&steps(sequence_length)),
            x,
            h_prev,
            w_ru,
            w_c,
            b_ru,
            b_c,
            b_hc,
            h,
            h_grad,
            h_last_grad,
        }),
        views_mut!(block_gru::GradInPlace { r, u, c, hc }),
        views_mut!(block_gru::GradOutputs {
            x_grad,
            h_prev_grad,
            w_ru_grad,
            w_c_grad,
            b_ru_grad,
            b_c_grad,
            b_hc_grad,
        }),
        call.scratch,
    )
}
