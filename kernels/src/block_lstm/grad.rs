//! `BlockLSTMGrad` and `BlockLSTMGradV2`.

use ndarray::{ArrayView1, ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis};

use super::Variant;
use crate::gemm::{self, StepShape, weights_fit, weights_len};
use crate::lstm::step::GateOrder;
use crate::lstm::step_grad::{LstmGrad, ProjectedGrad, SAVED, gates_of};
use crate::ops::{Keeps, Sizes};
use crate::recurrence::{
    self, Backward, ColumnSums, D_STEPS, Left, Lengths, Product, WeightGradient, all_rows,
    backward_scratch, split_rows,
};
use crate::tiles;
use crate::tuning::SIDE_BY_SIDE_CELLS;
use crate::{Activations, Context, Element, Error, Storage};

pub(crate) use crate::lstm::step_grad::BIAS_SUMS;
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
/// TensorFlow does: the operation has no `cell_clip`. Data of 16 bits is converted to `f32`,
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
    let sizes = op.check_call(use_peephole, &(&inputs, &in_place), &outputs, Keeps::WhatIsRead)?;
    op.check_steps(&sizes, [inputs.seq_len_max as i128])?;
    let needed = grad_scratch(&sizes, E::IS_16_BIT || outputs.w_grad.is_empty());
    let scratch = op.check_scratch(needed, scratch)?;
    let sequence = LstmGradSequence::of(variant, use_peephole, sizes.input_size, &inputs);
    E::block_lstm_grad(context, sizes, sequence, in_place, outputs, scratch);
    Ok(())
}

/// How many elements of scratch memory [`grad`] needs; `usize::MAX` if more than can be counted. `apart` tells whether
/// packed weights need memory of their own: with elements of 16 bits, and without `w_grad`.
#[must_use]
pub fn grad_scratch(sizes: &Sizes, apart: bool) -> usize {
    let Sizes { input_size, cell_size, .. } = *sizes;
    // w_grad is computed after the steps. Until then its memory holds the packed weights.
    let in_w_grad = !apart && weights_fit(input_size.saturating_add(cell_size), cell_size);
    let weights = if in_w_grad { 0 } else { weights_len(cell_size, 4, cell_size) };
    weights.saturating_add(steps_scratch(sizes)).saturating_add(sums_len(sizes))
}

/// How many elements of memory the sums over the batch need.
pub(crate) fn sums_len(&Sizes { batch, cell_size, .. }: &Sizes) -> usize {
    let shape = (batch, cell_size);
    recurrence::sums_len(BIAS_SUMS, shape, gemm::step_rows(StepShape::new(shape, 4)))
}

/// How many elements of scratch memory [`LstmGradSequence::all_steps`] needs.
pub(crate) fn steps_scratch(&Sizes { time, batch, cell_size, .. }: &Sizes) -> usize {
    backward_scratch(dz_steps(time, cell_size), (batch, cell_size), 4)
}

/// For how many steps there is memory for dz with its gates side by side.
fn dz_steps(time: usize, cell_size: usize) -> usize {
    if cell_size <= SIDE_BY_SIDE_CELLS { time.max(D_STEPS) } else { D_STEPS }
}

/// What the gradients of a sequence are computed from, beside the gates. Weights may lie in memory as their transposes.
#[derive(Clone, Copy)]
pub struct LstmGradSequence<'a, E> {
    /// At least one row has a step.
    pub(crate) inputs: recurrence::Inputs<'a, E>,
    pub(crate) order: GateOrder,
    /// The usual ones where there are peepholes.
    pub(crate) activations: Activations,
    pub(crate) cs_prev: ArrayView2<'a, E>,
    /// `[input_size, 4 * cell_size]`, if there are any.
    pub(crate) w_x: Option<ArrayView2<'a, E>>,
    /// `[cell_size, 4 * cell_size]`; with a projection `[num_proj, 4 * cell_size]`.
    pub(crate) w_h: ArrayView2<'a, E>,
    /// wci, wcf, wco.
    pub(crate) peepholes: Option<[ArrayView1<'a, E>; 3]>,
    pub(crate) cs: ArrayView3<'a, E>,
    pub(crate) co: ArrayView3<'a, E>,
    pub(crate) cs_grad: ArrayView3<'a, E>,
    /// With respect to the outputs of the cells, other than through a projection.
    pub(crate) h_grad: ArrayView3<'a, E>,
    /// The gradient with respect to the cell state after each row's last step, if there is one beside `cs_grad`.
    pub(crate) cs_last_grad: Option<ArrayView2<'a, E>>,
}

/// A projection of the outputs: see [`super::forward::Projection`].
pub(crate) struct GradProjection<'a, E> {
    /// `[cell_size, num_proj]`, or in memory its transpose.
    pub(crate) weights: ArrayView2<'a, E>,
    /// The gradient with respect to the products, `[time, batch, num_proj]`: zero in steps that a row does not have.
    /// The part that goes through later steps is added to it.
    pub(crate) h_grad: ArrayViewMut3<'a, E>,
    /// Of [`Product::memory`], for the transpose.
    pub(crate) memory: &'a mut [f32],
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    sizes: Sizes,
    sequence: LstmGradSequence<'_, E>,
    mut in_place: GradInPlace<'_, E>,
    mut outputs: GradOutputs<'_, E>,
    scratch: &mut [f32],
) {
    let Sizes { batch, input_size, cell_size, .. } = sizes;
    if batch == 0 || cell_size == 0 || sequence.inputs.lengths.longest() == 0 {
        return outputs.fill_zeros();
    }
    let (sums, scratch) = scratch.split_at_mut(sums_len(&sizes));
    let packed = weights_len(4 * cell_size, 1, cell_size);
    let fits = weights_fit(outputs.w_grad.nrows(), cell_size);
    let (weights, scratch) = match outputs.w_grad.as_slice_mut().and_then(E::as_f32_mut) {
        Some(w_grad) if fits => (&mut w_grad[..packed], scratch),
        _ => scratch.split_at_mut(packed),
    };
    let states = [outputs.cs_prev_grad.view_mut(), outputs.h_prev_grad.view_mut()];
    let memory = [weights, &mut *sums];
    let dz = sequence.all_steps(context, &mut in_place, None, states, memory, scratch);
    let has_peepholes = sequence.peepholes.is_some();
    outputs.set_vectors(sequence.order, has_peepholes, &ColumnSums::new(sums, BIAS_SUMS));
    let w_grads = split_rows(outputs.w_grad, input_size);
    sequence.products(context, in_place, dz, outputs.x_grad, w_grads.map(Some));
}

impl<'a, E: Storage> LstmGradSequence<'a, E> {
    fn of(
        variant: Variant,
        use_peephole: bool,
        input_size: usize,
        inputs: &GradInputs<'a, E>,
    ) -> Self {
        let GradInputs { seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, .. } = *inputs;
        let GradInputs { cs, co, h, cs_grad, h_grad, .. } = *inputs;
        let (w_x, w_h) = w.split_at(Axis(0), input_size);
        LstmGradSequence {
            inputs: recurrence::Inputs { lengths: Lengths::Same(seq_len_max), x, h_prev, h },
            order: variant.order(),
            activations: Activations::default(),
            cs_prev,
            w_x: Some(w_x),
            w_h,
            peepholes: use_peephole.then_some([wci, wcf, wco]),
            cs,
            co,
            cs_grad,
            h_grad,
            cs_last_grad: None,
        }
    }

    /// All steps, from the last to the first: dz in place of the gates, the gradients with respect to the states before
    /// the first step, `[cs_prev_grad, h_prev_grad]`, and the sums over the batch. The last arguments are memory: for
    /// packed weights, for the sums, and of [`steps_scratch`]. What comes back is dz of all steps, with the gates side
    /// by side, if that has memory for it.
    pub(crate) fn all_steps<'m>(
        &self,
        context: &Context<'_>,
        GradInPlace { i, f, o, ci }: &mut GradInPlace<'_, E>,
        projection: Option<GradProjection<'_, E>>,
        states: [ArrayViewMut2<'_, E>; 2],
        [weights, sums]: [&mut [f32]; 2],
        scratch: &'m mut [f32],
    ) -> Option<ArrayView2<'m, f32>> {
        let [i, ci, f, o] = [i, ci, f, o].map(|gate| gate.view_mut());
        let Some(GradProjection { weights: projection, h_grad, memory }) = projection else {
            let cell = self.cell(context, self.w_h, weights);
            let steps = self.steps([i, ci, f, o], states);
            return recurrence::backward(context, &cell, steps, self.dz_steps(), sums, scratch);
        };
        let lstm = self.cell(context, projection, memory);
        let product = Product::of_rows(context, self.cs_prev.nrows(), self.w_h.reversed_axes());
        let cell = ProjectedGrad { lstm, product: product.packed(context, weights) };
        let steps = self.steps([i, ci, f, o, h_grad], states);
        recurrence::backward(context, &cell, steps, self.dz_steps(), sums, scratch)
    }

    fn dz_steps(&self) -> usize {
        dz_steps(self.cs.len_of(Axis(0)), self.cs_prev.ncols())
    }

    /// A cell whose gradient with respect to h comes through products with `weights`.
    fn cell<'w, 'f: 'w>(
        &self,
        context: &Context<'w>,
        weights: ArrayView2<'f, E>,
        memory: &'w mut [f32],
    ) -> LstmGrad<'a, 'w, E> {
        let tiling = gemm::step_tiling(context, StepShape::new(self.cs_prev.dim(), 4));
        let product = Product::plain(tiling, weights.reversed_axes());
        let LstmGradSequence { order, activations, peepholes, .. } = *self;
        LstmGrad { order, activations, peepholes, product: product.packed(context, memory) }
    }

    /// What the steps work on.
    fn steps<'o, const K: usize>(
        &self,
        in_place: [ArrayViewMut3<'o, E>; K],
        states: [ArrayViewMut2<'o, E>; 2],
    ) -> Backward<'a, 'o, E, SAVED, K, 2> {
        Backward {
            lengths: self.inputs.lengths,
            first: self.cs_prev,
            states: self.cs,
            saved: [self.cs, self.co, self.cs_grad, self.h_grad],
            in_place,
            last_grad: self.cs_last_grad,
            first_grads: states,
        }
    }

    /// The gradients with respect to x and to the weights of x and of the state, from dz: what the steps have left in
    /// place of the gates, or the same side by side. Where the memory of the weights holds their transposes, that of
    /// the gradients does, too; then x must be finite in steps that a row does not have.
    pub(crate) fn products(
        &self,
        context: &Context<'_>,
        GradInPlace { i, f, o, ci }: GradInPlace<'_, E>,
        side_by_side: Option<ArrayView2<'_, f32>>,
        x_grad: ArrayViewMut3<'_, E>,
        w_grads: [Option<ArrayViewMut2<'_, E>>; 2],
    ) {
        let LstmGradSequence { inputs, order, .. } = *self;
        let (lengths, cells) = (inputs.lengths, self.cs_prev.ncols());
        let gradients = [Left::Input, Left::State].into_iter().zip(w_grads);
        let gradients = gradients.filter_map(|(left, out)| Some((left, out?)));
        // Without weights x_grad is a sum over the gates.
        if let (Some(d), Some(w_x)) = (side_by_side, self.w_x) {
            recurrence::input_gradient(context, lengths, [d], Some([w_x]), x_grad);
            let gradients = gradients.map(|(left, out)| WeightGradient { left, d, out });
            return recurrence::weight_gradients(context, inputs, gradients);
        }
        let dz = [i, ci, f, o].map(|gate| all_rows(gate, 0..lengths.longest()));
        let dz = dz.each_ref().map(|gate| gate.view());
        let w_x = self
            .w_x
            .map(|w_x| order.map(|gate| tiles::columns(w_x, gate * cells..(gate + 1) * cells)));
        recurrence::input_gradient(context, lengths, dz, w_x, x_grad);
        let gradients = gradients.flat_map(|(left, out)| {
            let gates = gates_of(out, order).into_iter().zip(dz);
            gates.map(move |(out, d)| WeightGradient { left, d, out })
        });
        recurrence::weight_gradients(context, inputs, gradients);
    }
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

    /// Sets the gradients with respect to vectors from the sums.
    fn set_vectors(&mut self, order: GateOrder, has_peepholes: bool, sums: &ColumnSums<'_>) {
        let GradOutputs { wci_grad, wcf_grad, wco_grad, b_grad, .. } = self;
        let biases = b_grad.view_mut().insert_axis(Axis(0));
        let biases = gates_of(biases, order);
        let biases = biases.map(|gate| gate.index_axis_move(Axis(0), 0));
        let mut peepholes = [wci_grad, wcf_grad, wco_grad].map(|vector| vector.view_mut());
        if !has_peepholes {
            // Of any length.
            peepholes.iter_mut().for_each(|vector| vector.fill(E::ZERO));
        }
        let peepholes = has_peepholes.then_some(peepholes).into_iter().flatten();
        for (n, vector) in biases.into_iter().chain(peepholes).enumerate() {
            sums.store(n, vector);
        }
    }
}
