//! `BlockGRUGrad`.

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis};

use super::Attributes;
use crate::gemm::{self, StepShape, weights_fit, weights_len};
use crate::gru::step_grad::GruGrad;
use crate::ops::{BLOCK_GRU_GRAD, Keeps, Sizes};
use crate::recurrence::{
    self, Backward, ColumnSums, D_STEPS, Left, Lengths, Product, WeightGradient, all_rows,
    backward_scratch, split_rows,
};
use crate::{Activations, Context, Element, Error, Storage};

pub(crate) use crate::gru::step_grad::BIAS_SUMS;
pub use crate::ops::block_gru::{GradInPlace, GradInputs, GradOutputs};

/// `BlockGRUGrad`: the backward steps, as [`BLOCK_GRU_GRAD`] says.
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
    attributes: Attributes,
    inputs: GradInputs<'_, E>,
    in_place: GradInPlace<'_, E>,
    outputs: GradOutputs<'_, E>,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let op = &BLOCK_GRU_GRAD;
    let tensors = (&inputs, &in_place);
    let sizes = op.check_call(attributes.reset_after, &tensors, &outputs, Keeps::WhatIsRead)?;
    op.check_steps(&sizes, inputs.sequence_length.iter().map(|&steps| steps.into()))?;
    let is_unread = outputs.w_ru_grad.is_empty() || outputs.w_c_grad.is_empty();
    let needed = grad_scratch(&sizes, E::IS_16_BIT || is_unread);
    let scratch = op.check_scratch(needed, scratch)?;
    E::block_gru_grad(context, sizes, attributes, inputs, in_place, outputs, scratch);
    Ok(())
}

/// How many elements of scratch memory [`grad`] needs; `usize::MAX` if more than can be counted. `apart` tells whether
/// packed weights need memory of their own: with elements of 16 bits, and without one of `w_ru_grad` and `w_c_grad`.
#[must_use]
pub fn grad_scratch(sizes: &Sizes, apart: bool) -> usize {
    let Sizes { batch, input_size, cell_size, .. } = *sizes;
    // w_ru_grad and w_c_grad are computed after the steps. Until then their memory holds the packed weights.
    let in_grads = !apart && weights_fit(input_size.saturating_add(cell_size), cell_size);
    let weights = if in_grads { 0 } else { weights_len(cell_size, 3, cell_size) };
    let steps = steps_scratch(batch, cell_size);
    weights.saturating_add(steps).saturating_add(sums_len(sizes))
}

/// How many elements of memory the sums over the batch need.
pub(crate) fn sums_len(&Sizes { batch, cell_size, .. }: &Sizes) -> usize {
    let shape = (batch, cell_size);
    recurrence::sums_len(BIAS_SUMS, shape, gemm::step_rows(StepShape::new(shape, 2)))
}

/// What the gradients of a sequence are computed from, beside the activations. Weights are those of the gates and those
/// of the candidate, and may lie in memory as their transposes.
#[derive(Clone, Copy)]
pub(crate) struct GruGradSequence<'a, E> {
    /// At least one row has a step.
    pub(crate) inputs: recurrence::Inputs<'a, E>,
    /// `[input_size, 2 * cell_size]` and `[input_size, cell_size]`, if there are any.
    pub(crate) w_x: Option<[ArrayView2<'a, E>; 2]>,
    /// `[cell_size, 2 * cell_size]` and `[cell_size, cell_size]`.
    pub(crate) w_h: [ArrayView2<'a, E>; 2],
    pub(crate) h_grad: ArrayView3<'a, E>,
    pub(crate) h_last_grad: ArrayView2<'a, E>,
    pub(crate) reset_after: bool,
    pub(crate) activations: Activations,
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    sizes: Sizes,
    attributes: Attributes,
    inputs: GradInputs<'_, E>,
    mut in_place: GradInPlace<'_, E>,
    mut outputs: GradOutputs<'_, E>,
    scratch: &mut [f32],
) {
    let GradInputs { sequence_length, x, h_prev, w_ru, w_c, h, h_grad, h_last_grad, .. } = inputs;
    let Attributes { reset_after, activations } = attributes;
    let lengths = Lengths::new(sequence_length);
    if sizes.batch == 0 || sizes.cell_size == 0 || lengths.longest() == 0 {
        return outputs.without_steps(h_last_grad);
    }
    let (sums, scratch) = scratch.split_at_mut(sums_len(&sizes));
    let [(ru_x, ru_h), (c_x, c_h)] = [w_ru, w_c].map(|w| w.split_at(Axis(0), sizes.input_size));
    let (w_x, w_h) = (Some([ru_x, c_x]), [ru_h, c_h]);
    let inputs = recurrence::Inputs { lengths, x, h_prev, h };
    let sequence =
        GruGradSequence { inputs, w_x, w_h, h_grad, h_last_grad, reset_after, activations };
    let GradOutputs { w_ru_grad, w_c_grad, h_prev_grad, .. } = &mut outputs;
    let (weights, scratch) = place_weights(sizes.cell_size, [w_ru_grad, w_c_grad], scratch);
    sequence.all_steps(context, &mut in_place, h_prev_grad.view_mut(), weights, [sums, scratch]);
    outputs.set_vectors(reset_after, sizes.cell_size, &ColumnSums::new(sums, BIAS_SUMS));
    let w_grads = [outputs.w_ru_grad, outputs.w_c_grad];
    let [[ru_x, ru_h], [c_x, c_h]] = w_grads.map(|w| split_rows(w, sizes.input_size));
    sequence.products(context, in_place, outputs.x_grad, [Some([ru_x, c_x]), Some([ru_h, c_h])]);
}

/// How many elements of scratch memory [`GruGradSequence::all_steps`] needs.
pub(crate) fn steps_scratch(batch: usize, cell_size: usize) -> usize {
    backward_scratch(D_STEPS, (batch, cell_size), 3)
}

impl<E: Storage> GruGradSequence<'_, E> {
    /// All steps, from the last to the first: what replaces the activations, h_prev_grad and the sums over the
    /// batch. `weights` is memory for the packed weights of the state.
    pub(crate) fn all_steps(
        &self,
        context: &Context<'_>,
        in_place: &mut GradInPlace<'_, E>,
        h_prev_grad: ArrayViewMut2<'_, E>,
        [gates, candidate]: [&mut [f32]; 2],
        [sums, scratch]: [&mut [f32]; 2],
    ) {
        let [w_ru, w_c] = self.w_h.map(|w| w.reversed_axes());
        let recurrence::Inputs { lengths, h_prev, h, .. } = self.inputs;
        let tiling = gemm::step_tiling(context, StepShape::new(h_prev.dim(), 2));
        let cell = GruGrad {
            reset_after: self.reset_after,
            activations: self.activations,
            gates: Product::plain(tiling, w_ru).packed(context, gates),
            candidate: Product::plain(tiling, w_c).packed(context, candidate),
        };
        let GradInPlace { r, u, c, hc } = in_place;
        let steps = Backward {
            lengths,
            first: h_prev,
            states: h,
            saved: [self.h_grad],
            in_place: [r, u, c, hc].map(|gate| gate.view_mut()),
            last_grad: Some(self.h_last_grad),
            first_grads: [h_prev_grad],
        };
        recurrence::backward(context, &cell, steps, D_STEPS, sums, scratch);
    }

    /// The gradients with respect to x and to the weights of x and of the state, from what the steps have left in
    /// place of the activations. Where the memory of the weights holds their transposes, that of the gradients does,
    /// too; then x must be finite in steps that a row does not have.
    pub(crate) fn products(
        &self,
        context: &Context<'_>,
        GradInPlace { r, u, c, hc }: GradInPlace<'_, E>,
        x_grad: ArrayViewMut3<'_, E>,
        [of_x, of_state]: [Option<[ArrayViewMut2<'_, E>; 2]>; 2],
    ) {
        let (lengths, cells) = (self.inputs.lengths, self.inputs.h_prev.ncols());
        let gates = [r, u, c, hc].map(|gate| all_rows(gate, 0..lengths.longest()));
        let [d_r, d_u, d_c, hc] = gates.each_ref().map(|gate| gate.view());
        let w_x = self.w_x.map(|[w_ru, w_c]| {
            let (w_r, w_u) = w_ru.split_at(Axis(1), cells);
            [w_c, w_r, w_u]
        });
        recurrence::input_gradient(context, lengths, [d_c, d_r, d_u], w_x, x_grad);
        // Where the reset comes after the product, the steps left d_hc in hc.
        let of_candidate = if self.reset_after { (Left::State, hc) } else { (Left::Rows(hc), d_c) };
        let of_x = of_x.map(|out| (out, Left::Input, (Left::Input, d_c)));
        let of_state = of_state.map(|out| (out, Left::State, of_candidate));
        let gradients = [of_x, of_state].into_iter().flatten();
        let gradients = gradients.flat_map(|([w_ru, w_c], left, of_candidate)| {
            let (w_r, w_u) = w_ru.split_at(Axis(1), cells);
            let terms = [(left, d_r, w_r), (left, d_u, w_u), (of_candidate.0, of_candidate.1, w_c)];
            terms.map(|(left, d, out)| WeightGradient { left, d, out })
        });
        recurrence::weight_gradients(context, self.inputs, gradients);
    }
}

/// Memory for the packed weights: that of w_ru_grad and w_c_grad where they fit in it, otherwise the
/// first of `scratch`. The rest of `scratch` remains.
fn place_weights<'m, E: Storage>(
    cell_size: usize,
    w_grads: [&'m mut ArrayViewMut2<'_, E>; 2],
    scratch: &'m mut [f32],
) -> ([&'m mut [f32]; 2], &'m mut [f32]) {
    let lengths = [2, 1].map(|gates| weights_len(gates * cell_size, 1, cell_size));
    let fits = w_grads.iter().all(|w| weights_fit(w.nrows(), cell_size));
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

impl<E: Storage> GradOutputs<'_, E> {
    /// There are no steps: the last state is the first one, and so is the gradient with respect to it.
    fn without_steps(&mut self, h_last_grad: ArrayView2<'_, E>) {
        self.h_prev_grad.assign(&h_last_grad);
        self.x_grad.fill(E::ZERO);
        let GradOutputs { w_ru_grad, w_c_grad, b_ru_grad, b_c_grad, b_hc_grad, .. } = self;
        for output in [w_ru_grad, w_c_grad] {
            output.fill(E::ZERO);
        }
        for output in [b_ru_grad, b_c_grad, b_hc_grad] {
            output.fill(E::ZERO);
        }
    }

    /// Sets the gradients with respect to vectors from the sums.
    fn set_vectors(&mut self, reset_after: bool, cell_size: usize, sums: &ColumnSums<'_>) {
        let GradOutputs { b_ru_grad, b_c_grad, b_hc_grad, .. } = self;
        let (b_r, b_u) = b_ru_grad.view_mut().split_at(Axis(0), cell_size);
        if !reset_after {
            b_hc_grad.fill(E::ZERO);
        }
        let b_hc = reset_after.then(|| b_hc_grad.view_mut());
        let vectors = [b_r, b_u, b_c_grad.view_mut()].into_iter().chain(b_hc);
        for (n, vector) in vectors.enumerate() {
            sums.store(n, vector);
        }
    }
}
