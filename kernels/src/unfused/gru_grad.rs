//! `BlockcellGRUCellGradC` and `BlockcellGRUCellGradRU`: the backward step of a plain GRU cell, before and
//! after the product with the candidate's weights.

use ndarray::{ArrayView2, ArrayViewD, Axis, IxDyn};

use super::gru::GruAttributes;
use crate::activation::{Functions, Usual};
use crate::elementwise::{self, Computed, Elements, Equation};
use crate::gru::step::{through_reset, through_state};
use crate::ops::{UNFUSED_GRU_CELL_GRAD_C, UNFUSED_GRU_CELL_GRAD_RU};
use crate::simd::Simd;
use crate::{Context, Element, Error, Storage};

pub use crate::ops::unfused::{
    GruCellGradCInputs, GruCellGradCOutputs, GruCellGradRuInputs, GruCellGradRuOutputs,
};

/// The number of elements of scratch memory that both need, from the size of a gate and the shape of the gradient.
#[must_use]
pub fn gru_cell_grad_scratch(size: (usize, usize), gradient: &[usize]) -> usize {
    if *gradient == [size.0, size.1] { 0 } else { size.0 * size.1 }
}

/// `BlockcellGRUCellGradC`: from the gradient of the new state to those of candidate and update gate ([`crate::gru`]),
/// as defined by [`UNFUSED_GRU_CELL_GRAD_C`].
///
/// # Errors
///
/// If a tensor has the wrong shape or layout, or if the scratch memory is too short. Nothing is written then.
pub fn gru_cell_grad_c<E: Element>(
    context: &Context<'_>,
    attributes: &GruAttributes,
    inputs: GruCellGradCInputs<'_, E>,
    outputs: GruCellGradCOutputs<'_, E>,
    scratch: &mut [E],
) -> Result<(), Error> {
    let op = &UNFUSED_GRU_CELL_GRAD_C;
    op.check_lists(&inputs, &outputs, |shapes| op.infer(false, shapes))?;
    op.check_scratch(gru_cell_grad_scratch(inputs.h_prev.dim(), inputs.d_h.shape()), scratch)?;
    E::unfused_gru_cell_grad_c(context, attributes, inputs, outputs, scratch);
    Ok(())
}

/// `BlockcellGRUCellGradRU`: from the gradient of `r * h_prev` to those of the gates ([`crate::gru`]), as defined by
/// [`UNFUSED_GRU_CELL_GRAD_RU`].
///
/// # Errors
///
/// If a tensor has the wrong shape or layout, or if the scratch memory is too short. Nothing is written then.
pub fn gru_cell_grad_ru<E: Element>(
    context: &Context<'_>,
    attributes: &GruAttributes,
    inputs: GruCellGradRuInputs<'_, E>,
    outputs: GruCellGradRuOutputs<'_, E>,
    scratch: &mut [E],
) -> Result<(), Error> {
    let op = &UNFUSED_GRU_CELL_GRAD_RU;
    op.check_lists(&inputs, &outputs, |shapes| op.infer(false, shapes))?;
    op.check_scratch(gru_cell_grad_scratch(inputs.h_prev.dim(), inputs.d_hr.shape()), scratch)?;
    E::unfused_gru_cell_grad_ru(context, attributes, inputs, outputs, scratch);
    Ok(())
}

pub(crate) fn compute_c<E: Storage>(
    context: &Context<'_>,
    attributes: &GruAttributes,
    inputs: GruCellGradCInputs<'_, E>,
    outputs: GruCellGradCOutputs<'_, E>,
    scratch: &mut [E],
) {
    let GruCellGradCInputs { u, h_prev, c, d_h } = inputs;
    let GruCellGradCOutputs { d_c_bar, d_u_bar, d_h_u } = outputs;
    let d_h = whole(&d_h, u.dim(), scratch);
    let (inputs, outputs) = ([u, h_prev, c, d_h], [d_c_bar, d_u_bar, d_h_u]);
    let any = attributes.activations;
    match attributes.u_weighs_c {
        true => elementwise::map(context, ThroughState::<_, true>(any), inputs, outputs, []),
        false if any.are_usual() => {
            elementwise::map(context, ThroughState::<_, false>(Usual), inputs, outputs, []);
        }
        false => elementwise::map(context, ThroughState::<_, false>(any), inputs, outputs, []),
    }
}

pub(crate) fn compute_ru<E: Storage>(
    context: &Context<'_>,
    attributes: &GruAttributes,
    inputs: GruCellGradRuInputs<'_, E>,
    outputs: GruCellGradRuOutputs<'_, E>,
    scratch: &mut [E],
) {
    let GruCellGradRuInputs { r, h_prev, d_u_bar, d_hr } = inputs;
    let GruCellGradRuOutputs { d_r_bar_u_bar, d_hr_r } = outputs;
    let d_hr = whole(&d_hr, r.dim(), scratch);
    let [d_r_bar, d_u_bar_out] =
        attributes.order().sort(d_r_bar_u_bar.split_at(Axis(1), r.ncols()).into());
    let outputs = [d_r_bar, d_u_bar_out, d_hr_r];
    elementwise::map(context, ThroughReset, [r, h_prev, d_u_bar, d_hr], outputs, []);
}

/// A gradient as a matrix of this size.
fn whole<'a, E: Storage>(
    gradient: &ArrayViewD<'a, E>,
    size: (usize, usize),
    memory: &'a mut [E],
) -> ArrayView2<'a, E> {
    if *gradient.shape() == [size.0, size.1] {
        return gradient.clone().into_dimensionality().expect("a matrix");
    }
    let memory = &mut memory[..size.0 * size.1];
    let all = gradient.broadcast(IxDyn(&[size.0, size.1])).expect("it was checked");
    memory.iter_mut().zip(all).for_each(|(element, value)| *element = *value);
    ArrayView2::from_shape(size, memory).expect("as many as were taken")
}

#[derive(Clone, Copy)]
struct ThroughState<F, const U_WEIGHS_C: bool>(F);

impl<F: Functions, const U_WEIGHS_C: bool> Equation<4, 3> for ThroughState<F, U_WEIGHS_C> {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 4, 3>) -> Computed<S::F32, 3> {
        let Elements { inputs: [u, h_prev, c, d_h], .. } = at;
        if !U_WEIGHS_C {
            let [d_c_bar, d_u_bar] = through_state(simd, self.0, d_h, h_prev, u, c);
            return ([d_c_bar, d_u_bar, d_h * u], [], []);
        }
        let d_c_bar = self.0.state_grad(simd, d_h * u, c);
        let d_u_bar = self.0.gate_grad(simd, d_h * (c - h_prev), u);
        ([d_c_bar, d_u_bar, d_h * (simd.splat(1.0) - u)], [], [])
    }
}

#[derive(Clone, Copy)]
struct ThroughReset;

impl Equation<4, 3> for ThroughReset {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 4, 3>) -> Computed<S::F32, 3> {
        let Elements { inputs: [r, h_prev, d_u_bar, d_hr], .. } = at;
        ([through_reset(simd, Usual, d_hr, h_prev, r), d_u_bar, d_hr * r], [], [])
    }
}
