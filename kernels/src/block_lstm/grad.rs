//! `BlockLSTMGrad` and `BlockLSTMGradV2`.

use ndarray::{ArrayView2, ArrayViewMut2, Axis, Slice, Zip};

use super::Variant;
use super::grad_steps::{self, Carried, GradSteps, StepInputs, gates_of};
use crate::gemm::{self, Given, Right, Target, weights_fit, weights_len};
use crate::ops::Sizes;
use crate::sequence::{self, add_parts, all_rows, all_rows_mut, state_before};
use crate::tiles;
use crate::{Context, Element, Error, Storage};

pub use crate::ops::block_lstm::{GradInPlace, GradInputs, GradOutputs};

/// `BlockLSTMGrad` and `BlockLSTMGradV2`: the backward steps.
///
/// From `t = seq_len_max - 1` down to 0, where `cs[-1]` and `h[-1]` are `cs_prev` and `h_prev`, and
/// `dcs_next` and `dh_next`, zero at first, come from the step done before (`t + 1`):
///
/// ```text
/// dh  = h_grad[t] + dh_next
/// do  = dh * co * o * (1 - o)
/// dcs = cs_grad[t] + dcs_next + dh * o * (1 - co * co) [+ do * wco]
/// di  = dcs * ci * i * (1 - i)      dci = dcs * i * (1 - ci * ci)
/// df  = dcs * cs[t-1] * f * (1 - f)
/// dz  = [di | dci | df | do]        ([di | df | dci | do] in V2)
/// dcs_next = dcs * f [+ di * wci + df * wcf]
/// [x_grad[t] | dh_next] = dz @ w^T
/// w_grad   += [x[t] | h[t-1]]^T @ dz                b_grad   += sum_B dz
/// wci_grad += [sum_B di * cs[t-1]]                  wcf_grad += [sum_B df * cs[t-1]]
/// wco_grad += [sum_B do * cs[t]]
/// ```
///
/// At the end `cs_prev_grad = dcs_next` and `h_prev_grad = dh_next`. The terms in brackets exist
/// only with `use_peephole`. The gradient of the forward steps' clip is passed on unchanged, as
/// TensorFlow does: the operation has no `cell_clip`. Half-precision data is converted to `f32`,
/// sums are in `f32`, and every result is rounded once.
///
/// `scratch` is memory for intermediate values. It has at least [`grad_scratch`] elements, of
/// which neither the values before the call nor those after it matter.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, `seq_len_max` above `time`, too short a `scratch`; nothing
/// is written then.
pub fn grad<E: Element>(
    context: &Context<'_>,
    variant: Variant,
    use_peephole: bool,
    inputs: GradInputs<'_, E>,
    in_place: GradInPlace<'_, E>,
    outputs: GradOutputs<'_, E>,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let op = variant.grad_op();
    let sizes = GradInputs::check(op, use_peephole, &inputs, &in_place, &outputs)?;
    op.check_steps(&sizes, [inputs.seq_len_max as i128])?;
    let needed = grad_scratch(&sizes, E::IS_HALF);
    let scratch = op.check_scratch(needed, scratch)?;
    let call = GradCall { sizes, variant, use_peephole };
    E::block_lstm_grad(context, call, inputs, in_place, outputs, scratch);
    Ok(())
}

/// How many elements of scratch memory [`grad`] needs, in half precision or not; `usize::MAX` if
/// more than can be counted.
#[must_use]
pub fn grad_scratch(sizes: &Sizes, half: bool) -> usize {
    let Sizes { batch, input_size, cell_size, .. } = *sizes;
    // w_grad is computed after the steps. Until then its memory holds the packed weights.
    let in_w_grad = !half && weights_fit(input_size.saturating_add(cell_size), cell_size);
    let weights = if in_w_grad { 0 } else { weights_len(cell_size, 4, cell_size) };
    // dz of two steps, and dcs.
    let steps = batch.saturating_mul(cell_size).saturating_mul(2 * 4 + 1);
    weights.saturating_add(steps).saturating_add(sums_len(sizes))
}

fn sums_len(&Sizes { batch, cell_size, .. }: &Sizes) -> usize {
    sequence::sums_len(grad_steps::SUMS, (batch, cell_size), gemm::step_rows((batch, cell_size), 4))
}

/// What a call is told beside its tensors.
#[derive(Clone, Copy)]
pub struct GradCall {
    sizes: Sizes,
    variant: Variant,
    use_peephole: bool,
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    call: GradCall,
    inputs: GradInputs<'_, E>,
    mut in_place: GradInPlace<'_, E>,
    mut outputs: GradOutputs<'_, E>,
    scratch: &mut [f32],
) {
    let Sizes { batch, cell_size, .. } = call.sizes;
    let steps = inputs.seq_len_max;
    if batch == 0 || cell_size == 0 || steps == 0 {
        return outputs.fill_zeros();
    }
    outputs.x_grad.slice_axis_mut(Axis(0), Slice::from(steps..)).fill(E::ZERO);
    let (sums, scratch) = scratch.split_at_mut(sums_len(&call.sizes));
    sums.fill(0.0);
    all_steps(context, call, &inputs, &mut in_place, &mut outputs, sums, scratch);
    outputs.set_vectors(call, sums);

    let GradInPlace { i, f, o, ci } = in_place;
    let dz = [i, ci, f, o].map(|gate| all_rows_mut(gate, 0..steps));
    let dz = dz.each_ref().map(|gate| gate.view());
    input_gradient(context, call, &inputs, dz, all_rows_mut(outputs.x_grad, 0..steps));
    weight_gradient(context, call, &inputs, dz, outputs.w_grad);
}

/// All steps, from the last to the first: dz in place of the gates, h_prev_grad, cs_prev_grad and the sums over
/// the batch.
fn all_steps<E: Storage>(
    context: &Context<'_>,
    call: GradCall,
    inputs: &GradInputs<'_, E>,
    in_place: &mut GradInPlace<'_, E>,
    outputs: &mut GradOutputs<'_, E>,
    sums: &mut [f32],
    scratch: &mut [f32],
) {
    let GradInputs { seq_len_max, cs_prev, w, wci, wcf, wco, cs, co, cs_grad, h_grad, .. } =
        *inputs;
    let Sizes { batch, input_size, cell_size, .. } = call.sizes;
    let tiling = gemm::step_tiling(context, (batch, cell_size), 4);
    let (_, w_h) = w.split_at(Axis(0), input_size);
    let peepholes = call.use_peephole.then_some([wci, wcf, wco]);
    let packed = weights_len(4 * cell_size, 1, cell_size);
    let fits = weights_fit(outputs.w_grad.nrows(), cell_size);
    let (weights, scratch) = match outputs.w_grad.as_slice_mut().and_then(E::as_f32_mut) {
        Some(w_grad) if fits => (&mut w_grad[..packed], scratch),
        _ => scratch.split_at_mut(packed),
    };
    let order = call.variant.order();
    let grad_steps = GradSteps::new(context, order, tiling, w_h, peepholes, weights);

    let (dcs, dz) = scratch.split_at_mut(batch * cell_size);
    dcs.fill(0.0);
    let mut dcs = ArrayViewMut2::from_shape((batch, cell_size), dcs).expect("of this size");
    let (dz, dz_next) = dz.split_at_mut(4 * batch * cell_size);
    let mut dz = [dz, dz_next]
        .map(|dz| ArrayViewMut2::from_shape((batch, 4 * cell_size), dz).expect("of this size"));
    for t in (0..seq_len_max).rev() {
        let GradInPlace { i, f, o, ci } = in_place;
        let gates = [i, ci, f, o].map(|gate| gate.index_axis_mut(Axis(0), t));
        let inputs = StepInputs {
            cs_prev: state_before(t, cs_prev, cs),
            cs: cs.index_axis_move(Axis(0), t),
            co: co.index_axis_move(Axis(0), t),
            cs_grad: cs_grad.index_axis_move(Axis(0), t),
            h_grad: h_grad.index_axis_move(Axis(0), t),
        };
        let [dz, dz_next] = &mut dz;
        let next = (t + 1 < seq_len_max).then(|| dz_next.view());
        let carried = Carried { dcs: dcs.view_mut(), dz: dz.view_mut(), sums };
        grad_steps.step(context, inputs, gates, next, carried);
        std::mem::swap(dz, dz_next);
    }
    let [_, dz] = dz;
    grad_steps.state_gradient(context, dz.view(), outputs.h_prev_grad.view_mut());
    Zip::from(&mut outputs.cs_prev_grad).and(&dcs).for_each(|to, &dcs| *to = E::from_f32(dcs));
}

/// `dz @ w_x^T` of all steps.
fn input_gradient<E: Storage>(
    context: &Context<'_>,
    call: GradCall,
    inputs: &GradInputs<'_, E>,
    dz: [ArrayView2<'_, E>; 4],
    x_grad: ArrayViewMut2<'_, E>,
) {
    let Sizes { input_size, cell_size, .. } = call.sizes;
    let w_x = tiles::rows(inputs.w, 0..input_size);
    let results = [Target { out: x_grad, terms: () }];
    gemm::products(context, Given::RowMajor, 4 * cell_size, results, |tile, (), place| {
        for (dz, gate) in dz.iter().zip(call.variant.order()) {
            let w = tiles::columns(w_x, gate * cell_size..(gate + 1) * cell_size);
            tile.add(place.rows_of(*dz), Right::Transposed(w));
        }
    });
}

/// `[x | h_prev]^T @ dz` of all steps.
fn weight_gradient<E: Storage>(
    context: &Context<'_>,
    call: GradCall,
    inputs: &GradInputs<'_, E>,
    dz: [ArrayView2<'_, E>; 4],
    w_grad: ArrayViewMut2<'_, E>,
) {
    let Sizes { batch, input_size, .. } = call.sizes;
    let steps = inputs.seq_len_max;
    let x = all_rows(inputs.x, 0..steps);
    // The first step's h_prev is an input, that of the others the output of the step before.
    let h = all_rows(inputs.h, 0..steps - 1);
    let (of_x, of_h) = w_grad.split_at(Axis(0), input_size);
    let results = [(of_x, true), (of_h, false)].into_iter().flat_map(|(out, of_x)| {
        let gates = gates_of(out, call.variant.order());
        gates.into_iter().zip(dz).map(move |(out, dz)| Target { out, terms: (of_x, dz) })
    });
    let depth = steps * batch;
    gemm::products(context, Given::Transposed, depth, results, |tile, (of_x, dz), place| {
        let left = |matrix| tiles::columns(matrix, place.rows.clone());
        if of_x {
            tile.add_transposed(left(x), None, dz);
        } else {
            let (first, rest) = dz.split_at(Axis(0), batch);
            tile.add_transposed(left(inputs.h_prev), None, first);
            tile.add_transposed(left(h), None, rest);
        }
    });
}

impl<E: Storage> GradOutputs<'_, E> {
    fn fill_zeros(&mut self) {
        let GradOutputs { x_grad, cs_prev_grad, h_prev_grad, w_grad, .. } = self;
        x_grad.fill(E::ZERO);
        for output in [cs_prev_grad, h_prev_grad, w_grad] {
            output.fill(E::ZERO);
        }
        let GradOutputs { wci_grad, wcf_grad, wco_grad, b_grad, .. } = self;
        for output in [wci_grad, wcf_grad, wco_grad, b_grad] {
            output.fill(E::ZERO);
        }
    }

    /// Sets the gradients with respect to vectors from the sums, `[SUMS, rows of tiles, cell_size]`.
    fn set_vectors(&mut self, call: GradCall, sums: &[f32]) {
        let GradOutputs { wci_grad, wcf_grad, wco_grad, b_grad, .. } = self;
        let biases = b_grad.view_mut().insert_axis(Axis(0));
        let biases = gates_of(biases, call.variant.order());
        let biases = biases.map(|gate| gate.index_axis_move(Axis(0), 0));
        let mut peepholes = [wci_grad, wcf_grad, wco_grad].map(|vector| vector.view_mut());
        if !call.use_peephole {
            // Of any length.
            peepholes.iter_mut().for_each(|vector| vector.fill(E::ZERO));
        }
        let peepholes = call.use_peephole.then_some(peepholes).into_iter().flatten();
        let sums = sums.chunks_exact(sums.len() / grad_steps::SUMS);
        for (vector, sums) in biases.into_iter().chain(peepholes).zip(sums) {
            add_parts(vector, sums);
        }
    }
}
