//! `BlockGRUGrad`.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2, Axis, Zip};

use super::grad_steps::{self, Carried, GradSteps, StepGradients, StepInputs};
use super::lengths::Lengths;
use crate::gemm::{self, Given, Right, Target, weights_fit, weights_len};
use crate::ops::{BLOCK_GRU_GRAD, Sizes};
use crate::sequence::{self, add_parts, all_rows, all_rows_mut, state_before};
use crate::tiles;
use crate::{Context, Element, Error, Storage};

pub use crate::ops::block_gru::{GradInPlace, GradInputs, GradOutputs};

/// `BlockGRUGrad`: the backward steps.
///
/// For `t` from `time - 1` down to 0 and the rows `b` with `t < sequence_length[b]`, where `h[-1]` is
/// `h_prev`, `w[:D]` and `w[D:]` are the rows of weights for x and for the state, and `carry`, at
/// first `h_last_grad`, is the gradient with respect to the state after the step:
///
/// ```text
/// d_h     = h_grad[t] + carry
/// d_c_bar = d_h * (1 - u) * (1 - c * c)
/// d_u_bar = d_h * (h[t-1] - c) * u * (1 - u)
///
/// reset_after = false:   d_hc    = d_c_bar @ w_c[D:]^T
///                        d_r_bar = d_hc * h[t-1] * r * (1 - r)
///                        carry   = d_h * u + d_hc * r + [d_r_bar | d_u_bar] @ w_ru[D:]^T
/// reset_after = true:    d_hc    = d_c_bar * r
///                        d_r_bar = d_c_bar * hc * r * (1 - r)
///                        carry   = d_h * u + d_hc @ w_c[D:]^T + [d_r_bar | d_u_bar] @ w_ru[D:]^T
///
/// x_grad[t] = d_c_bar @ w_c[:D]^T + [d_r_bar | d_u_bar] @ w_ru[:D]^T
/// w_ru_grad += [x[t] | h[t-1]]^T @ [d_r_bar | d_u_bar]      b_ru_grad += sum_B [d_r_bar | d_u_bar]
/// w_c_grad[:D] += x[t]^T @ d_c_bar                          b_c_grad  += sum_B d_c_bar
///
/// reset_after = false:   w_c_grad[D:] += hc^T @ d_c_bar     b_hc_grad  = 0
/// reset_after = true:    w_c_grad[D:] += h[t-1]^T @ d_hc    b_hc_grad += sum_B d_hc
/// ```
///
/// In the other rows the carry stays as it is. At the end it is `h_prev_grad`. The equations follow
/// from those of [`super::forward`] by the chain rule. Half-precision data is converted to `f32`,
/// sums are in `f32`, and every result is rounded once.
///
/// `scratch` is memory for intermediate values. It has at least [`grad_scratch`] elements, of
/// which neither the values before the call nor those after it matter.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, a number in `sequence_length` that is negative or above
/// `time`, too short a `scratch`; nothing is written then.
pub fn grad<E: Element>(
    context: &Context<'_>,
    reset_after: bool,
    inputs: GradInputs<'_, E>,
    in_place: GradInPlace<'_, E>,
    outputs: GradOutputs<'_, E>,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let op = &BLOCK_GRU_GRAD;
    let sizes = GradInputs::check(op, reset_after, &inputs, &in_place, &outputs)?;
    op.check_steps(&sizes, inputs.sequence_length.iter().map(|&steps| steps.into()))?;
    let needed = grad_scratch(&sizes, E::IS_HALF);
    let scratch = op.check_scratch(needed, scratch)?;
    E::block_gru_grad(context, sizes, reset_after, inputs, in_place, outputs, scratch);
    Ok(())
}

/// How many elements of scratch memory [`grad`] needs, in half precision or not; `usize::MAX` if
/// more than can be counted.
#[must_use]
pub fn grad_scratch(sizes: &Sizes, half: bool) -> usize {
    let Sizes { batch, input_size, cell_size, .. } = *sizes;
    // w_ru_grad and w_c_grad are computed after the steps. Until then their memory holds the packed weights.
    let in_grads = !half && weights_fit(input_size.saturating_add(cell_size), cell_size);
    let weights = if in_grads { 0 } else { weights_len(cell_size, 3, cell_size) };
    // What two steps multiply by the weights, and the carried state.
    let steps = batch.saturating_mul(cell_size).saturating_mul(2 * 3 + 1);
    weights.saturating_add(steps).saturating_add(sums_len(sizes))
}

fn sums_len(&Sizes { batch, cell_size, .. }: &Sizes) -> usize {
    sequence::sums_len(grad_steps::SUMS, (batch, cell_size), gemm::step_rows((batch, cell_size), 2))
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    sizes: Sizes,
    reset_after: bool,
    inputs: GradInputs<'_, E>,
    mut in_place: GradInPlace<'_, E>,
    mut outputs: GradOutputs<'_, E>,
    scratch: &mut [f32],
) {
    let lengths = Lengths::new(inputs.sequence_length);
    let steps = lengths.longest();
    if sizes.batch == 0 || sizes.cell_size == 0 || steps == 0 {
        return outputs.without_steps(&inputs);
    }
    let (sums, scratch) = scratch.split_at_mut(sums_len(&sizes));
    sums.fill(0.0);
    all_steps(context, reset_after, &inputs, &mut in_place, &mut outputs, sums, scratch);
    outputs.set_vectors(reset_after, sizes.cell_size, sums);

    let GradInPlace { r, u, c, hc } = in_place;
    let d = [r, u, c, hc].map(|gate| all_rows_mut(gate, 0..steps));
    let d = d.each_ref().map(|gate| gate.view());
    input_gradient(context, &inputs, d, all_rows_mut(outputs.x_grad.view_mut(), 0..steps));
    for (t, x_grad) in outputs.x_grad.outer_iter_mut().enumerate() {
        lengths.clear_ended(0..sizes.batch, t, x_grad);
    }
    let w_grads = [outputs.w_ru_grad, outputs.w_c_grad];
    weight_gradient(context, reset_after, steps, &inputs, d, w_grads);
}

/// All steps, from the last to the first: what replaces the activations, h_prev_grad and the sums over the batch.
fn all_steps<E: Storage>(
    context: &Context<'_>,
    reset_after: bool,
    inputs: &GradInputs<'_, E>,
    in_place: &mut GradInPlace<'_, E>,
    outputs: &mut GradOutputs<'_, E>,
    sums: &mut [f32],
    scratch: &mut [f32],
) {
    let GradInputs { sequence_length, h_prev, h, h_grad, h_last_grad, .. } = *inputs;
    let (batch, cell_size) = h_prev.dim();
    let shape = (batch, cell_size);
    let steps = Lengths::new(sequence_length).longest();
    let GradOutputs { w_ru_grad, w_c_grad, h_prev_grad, .. } = outputs;
    let (weights, scratch) = place_weights(cell_size, [w_ru_grad, w_c_grad], scratch);
    let grad_steps = GradSteps::new(context, inputs, reset_after, weights);

    let (state, scratch) = scratch.split_at_mut(batch * cell_size);
    let mut state = ArrayViewMut2::from_shape(shape, state).expect("of this size");
    Zip::from(&mut state).and(&h_last_grad).for_each(|to, d_h| *to = d_h.to_f32());
    let mut parts = scratch.chunks_exact_mut(3 * batch * cell_size);
    let mut products = [(); 2].map(|()| StepGradients::new(shape, parts.next().expect("two")));
    for t in (0..steps).rev() {
        let GradInPlace { r, u, c, hc } = in_place;
        let gates = [r, u, c, hc].map(|gate| gate.index_axis_mut(Axis(0), t));
        let inputs = StepInputs {
            t,
            h_prev: state_before(t, h_prev, h),
            h_grad: h_grad.index_axis_move(Axis(0), t),
        };
        let [now, next] = &mut products;
        let known = (t + 1 < steps).then_some(&*next);
        let carried = Carried { state: state.view_mut(), sums };
        grad_steps.step(context, inputs, gates, known, now, carried);
        std::mem::swap(now, next);
    }
    let [_, next] = &products;
    grad_steps.state_gradient(context, next, state.view(), h_prev_grad.view_mut());
}

/// Memory for the packed weights: that of w_ru_grad and w_c_grad where they fit in it, otherwise the
/// first of `scratch`. The rest of `scratch` remains.
fn place_weights<'m, E: Storage>(
    cell_size: usize,
    w_grads: [&'m mut ArrayViewMut2<'_, E>; 2],
    scratch: &'m mut [f32],
) -> ([&'m mut [f32]; 2], &'m mut [f32]) {
    let lengths = [2, 1].map(|gates| weights_len(gates * cell_size, 1, cell_size));
    let fits = weights_fit(w_grads[0].nrows(), cell_size);
    match w_grads.map(|w| w.as_slice_mut().and_then(E::as_f32_mut)) {
        [Some(gates), Some(candidate)] if fits => {
            ([&mut gates[..lengths[0]], &mut candidate[..lengths[1]]], scratch)
        }
        _ => {
            let (weights, scratch) = scratch.split_at_mut(lengths[0] + lengths[1]);
            (weights.split_at_mut(lengths[0]).into(), scratch)
        }
    }
}

/// `d_c_bar @ w_c[:D]^T + [d_r_bar | d_u_bar] @ w_ru[:D]^T` of all steps.
fn input_gradient<E: Storage>(
    context: &Context<'_>,
    inputs: &GradInputs<'_, E>,
    [d_r, d_u, d_c, _]: [ArrayView2<'_, E>; 4],
    x_grad: ArrayViewMut2<'_, E>,
) {
    let (input_size, cell_size) = (x_grad.ncols(), d_c.ncols());
    let [w_ru, w_c] = [inputs.w_ru, inputs.w_c].map(|w| tiles::rows(w, 0..input_size));
    let (w_r, w_u) = w_ru.split_at(Axis(1), cell_size);
    let results = [Target { out: x_grad, terms: () }];
    gemm::products(context, Given::RowMajor, 3 * cell_size, results, |tile, (), place| {
        for (d, w) in [(d_c, w_c), (d_r, w_r), (d_u, w_u)] {
            tile.add(place.rows_of(d), Right::Transposed(w));
        }
    });
}

/// The left factor of a weight gradient's products.
#[derive(Clone, Copy)]
enum LeftFactor {
    Input,
    /// The state before the step.
    State,
    /// hc, where that is what the weights were multiplied by.
    ResetState,
}

/// The gradients with respect to w_ru and w_c, of all steps.
fn weight_gradient<E: Storage>(
    context: &Context<'_>,
    reset_after: bool,
    steps: usize,
    inputs: &GradInputs<'_, E>,
    [d_r, d_u, d_c, hc]: [ArrayView2<'_, E>; 4],
    w_grads: [ArrayViewMut2<'_, E>; 2],
) {
    let GradInputs { sequence_length, h_prev, .. } = *inputs;
    let (batch, cell_size) = h_prev.dim();
    let input_size = inputs.x.dim().2;
    let [(ru_x, ru_h), (c_x, c_h)] = w_grads.map(|w| w.split_at(Axis(0), input_size));
    let [(r_x, u_x), (r_h, u_h)] = [ru_x, ru_h].map(|w| w.split_at(Axis(1), cell_size));
    // Where the reset comes after the product, the steps left d_hc in hc.
    let of_state =
        if reset_after { (LeftFactor::State, hc) } else { (LeftFactor::ResetState, d_c) };
    let results = [
        Target { out: r_x, terms: (LeftFactor::Input, d_r) },
        Target { out: u_x, terms: (LeftFactor::Input, d_u) },
        Target { out: c_x, terms: (LeftFactor::Input, d_c) },
        Target { out: r_h, terms: (LeftFactor::State, d_r) },
        Target { out: u_h, terms: (LeftFactor::State, d_u) },
        Target { out: c_h, terms: of_state },
    ];
    // The factors of rows that have ended may hold anything, even NaN, though their d are zeros.
    let valid = Lengths::new(sequence_length).valid(steps);
    let x = all_rows(inputs.x, 0..steps);
    let h = all_rows(inputs.h, 0..steps - 1);
    gemm::products(context, Given::Transposed, steps * batch, results, |tile, (left, d), place| {
        let mut add = |matrix, steps: Range<usize>| {
            let matrix = tiles::columns(matrix, place.rows.clone());
            let valid = &valid[steps.start * batch..steps.end * batch];
            let d = tiles::rows(d, steps.start * batch..steps.end * batch);
            tile.add_transposed(matrix, Some(valid), d);
        };
        match left {
            LeftFactor::Input => add(x, 0..steps),
            LeftFactor::ResetState => add(hc, 0..steps),
            LeftFactor::State => {
                add(h_prev, 0..1);
                add(h, 1..steps);
            }
        }
    });
}

impl<E: Storage> GradOutputs<'_, E> {
    /// There are no steps: the last state is the first one, and so is the gradient with respect to it.
    fn without_steps(&mut self, inputs: &GradInputs<'_, E>) {
        self.h_prev_grad.assign(&inputs.h_last_grad);
        self.x_grad.fill(E::ZERO);
        let GradOutputs { w_ru_grad, w_c_grad, b_ru_grad, b_c_grad, b_hc_grad, .. } = self;
        for output in [w_ru_grad, w_c_grad] {
            output.fill(E::ZERO);
        }
        for output in [b_ru_grad, b_c_grad, b_hc_grad] {
            output.fill(E::ZERO);
        }
    }

    /// Sets the gradients with respect to vectors from the sums, `[SUMS, rows of tiles, cell_size]`.
    fn set_vectors(&mut self, reset_after: bool, cell_size: usize, sums: &[f32]) {
        let GradOutputs { b_ru_grad, b_c_grad, b_hc_grad, .. } = self;
        let (b_r, b_u) = b_ru_grad.view_mut().split_at(Axis(0), cell_size);
        if !reset_after {
            b_hc_grad.fill(E::ZERO);
        }
        let b_hc = reset_after.then(|| b_hc_grad.view_mut());
        let vectors = [b_r, b_u, b_c_grad.view_mut()].into_iter().chain(b_hc);
        for (vector, sums) in vectors.zip(sums.chunks_exact(sums.len() / grad_steps::SUMS)) {
            add_parts(vector, sums);
        }
    }
}
