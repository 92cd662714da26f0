//! `BlockGRU`.

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut2, Axis, Slice};

use super::forward_steps::ForwardSteps;
use super::lengths::Lengths;
use crate::gemm::{self, Given, Right, Target, weights_len};
use crate::ops::{BLOCK_GRU, Sizes};
use crate::sequence::{all_rows, at_step, state_before, steps_at_once};
use crate::tiles;
use crate::{Context, Element, Error, Storage};

pub use crate::ops::block_gru::{Inputs, Outputs};

/// `BlockGRU`: the forward steps.
///
/// For every row `b` of the batch and `t` from 0 to `sequence_length[b] - 1`, where `h[-1]` is
/// `h_prev`, and `w[:D]` and `w[D:]` are the rows of weights for x and for the state:
///
/// ```text
/// [r_bar | u_bar] = [x[t] | h[t-1]] @ w_ru + b_ru        r[t] = S(r_bar)   u[t] = S(u_bar)
///
/// reset_after = false:   hc[t] = r[t] * h[t-1]
///                        c[t]  = tanh(x[t] @ w_c[:D] + hc[t] @ w_c[D:] + b_c)
/// reset_after = true:    hc[t] = h[t-1] @ w_c[D:] + b_hc
///                        c[t]  = tanh(x[t] @ w_c[:D] + b_c + r[t] * hc[t])
///
/// h[t] = u[t] * h[t-1] + (1 - u[t]) * c[t]
/// ```
///
/// Half-precision data is converted to `f32`, and every result is rounded once. The state that
/// enters a step is the stored, rounded state of the step before.
///
/// `scratch` is memory for intermediate values. It has at least [`forward_scratch`] elements, of
/// which neither the values before the call nor those after it matter.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, a number in `sequence_length` that is negative or above
/// `time`, too short a `scratch`; nothing is written then.
pub fn forward<E: Element>(
    context: &Context<'_>,
    reset_after: bool,
    inputs: Inputs<'_, E>,
    outputs: Outputs<'_, E>,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let op = &BLOCK_GRU;
    let sizes = Inputs::check(op, reset_after, &inputs, &outputs)?;
    op.check_steps(&sizes, inputs.sequence_length.iter().map(|&steps| steps.into()))?;
    let scratch = op.check_scratch(forward_scratch(&sizes), scratch)?;
    E::block_gru(context, sizes, reset_after, inputs, outputs, scratch);
    Ok(())
}

/// How many elements of scratch memory [`forward`] needs; `usize::MAX` if more than can be counted.
#[must_use]
pub fn forward_scratch(sizes: &Sizes) -> usize {
    let Sizes { time, batch, cell_size, .. } = *sizes;
    let rows = steps_at_once(time, batch).saturating_mul(batch);
    weights_len(cell_size, 3, cell_size)
        .saturating_add(rows.saturating_mul(cell_size).saturating_mul(3))
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    sizes: Sizes,
    reset_after: bool,
    inputs: Inputs<'_, E>,
    outputs: Outputs<'_, E>,
    scratch: &mut [f32],
) {
    let Sizes { time, batch, input_size, cell_size, .. } = sizes;
    let Outputs { r, u, c, hc, h, h_last } = outputs;
    let mut outputs = [r, u, c, hc, h];
    let lengths = Lengths::new(inputs.sequence_length);
    let steps = lengths.longest();
    for output in &mut outputs {
        output.slice_axis_mut(Axis(0), Slice::from(steps..)).fill(E::ZERO);
    }
    if batch == 0 || cell_size == 0 {
        return;
    }
    let (weights, products) = scratch.split_at_mut(weights_len(cell_size, 3, cell_size));
    let forward_steps = ForwardSteps::new(context, &inputs, reset_after, weights);
    let at_once = steps_at_once(time, batch);
    for first in (0..steps).step_by(at_once) {
        let steps = first..steps.min(first + at_once);
        let shape = (steps.len() * batch, 3 * cell_size);
        let products = &mut products[..shape.0 * shape.1];
        let mut products = ArrayViewMut2::from_shape(shape, products).expect("of this size");
        let x = all_rows(inputs.x, steps.clone());
        let weights = [inputs.w_ru, inputs.w_c].map(|w| tiles::rows(w, 0..input_size));
        input_products(context, x, weights, products.view_mut());
        for (t, products) in steps.zip(products.axis_chunks_iter_mut(Axis(0), batch)) {
            let ([.., h], step) = at_step(&mut outputs, t);
            let h_prev = state_before(t, inputs.h_prev, h.view());
            forward_steps.step(context, t, products, h_prev, step);
        }
    }
    let [.., h] = outputs;
    last_states(lengths, inputs.h_prev, h.view(), h_last);
}

/// `[x @ w_ru | x @ w_c]` of several steps, with the rows of the weights for x.
fn input_products<E: Storage>(
    context: &Context<'_>,
    x: ArrayView2<'_, E>,
    [w_ru, w_c]: [ArrayView2<'_, E>; 2],
    out: ArrayViewMut2<'_, f32>,
) {
    let (of_gates, of_candidate) = out.split_at(Axis(1), w_ru.ncols());
    let results = [Target { out: of_gates, terms: w_ru }, Target { out: of_candidate, terms: w_c }];
    gemm::products(context, Given::RowMajor, x.ncols(), results, |tile, w, place| {
        tile.add(place.rows_of(x), Right::RowMajor(w));
    });
}

fn last_states<E: Storage>(
    lengths: Lengths<'_>,
    h_prev: ArrayView2<'_, E>,
    h: ArrayView3<'_, E>,
    mut h_last: ArrayViewMut2<'_, E>,
) {
    for (b, mut last) in h_last.outer_iter_mut().enumerate() {
        last.assign(&state_before(lengths.of(b), h_prev, h).row(b));
    }
}
