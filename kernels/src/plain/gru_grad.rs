//! `BlockcellGRUCellGradC` and `BlockcellGRUCellGradRU`: the backward step of a plain GRU cell, before and
//! after the product with the candidate's weights.

use ndarray::{ArrayView2, ArrayViewD, ArrayViewMut2, Axis, IxDyn};

use crate::elementwise::{self, Computed, Elements, Equation};
use crate::error::known;
use crate::gru::step::{through_reset, through_state};
use crate::ops::PartialShape;
use crate::shapes::{Dim, bind, check_layout, check_output, check_size, shape_of};
use crate::simd::Simd;
use crate::{Context, Element, Error, Storage};

/// The operation's name in TensorFlow.
pub const GRU_CELL_GRAD_C: &str = "BlockcellGRUCellGradC";
/// The operation's name in TensorFlow.
pub const GRU_CELL_GRAD_RU: &str = "BlockcellGRUCellGradRU";

/// Names of the inputs of [`gru_cell_grad_c`].
const INPUTS_C: [&str; 4] = ["u", "h_prev", "c", "d_h"];
/// Names of the inputs of [`gru_cell_grad_ru`].
const INPUTS_RU: [&str; 4] = ["r", "h_prev", "d_u_bar", "d_hr"];

/// Inputs of [`gru_cell_grad_c`].
#[derive(Clone, Debug)]
pub struct GruCellGradCInputs<'a, E> {
    /// Update gate, state before the step, and candidate, `[batch, cell]` each.
    pub saved: [ArrayView2<'a, E>; 3],
    /// With respect to the new state, of a shape that broadcasts to `[batch, cell]`.
    pub d_h: ArrayViewD<'a, E>,
}

/// Outputs of [`gru_cell_grad_c`], `[batch, cell]` each. Previous contents do not matter.
#[derive(Debug)]
pub struct GruCellGradCOutputs<'a, E> {
    /// With respect to the candidate's pre-activation.
    pub d_c_bar: ArrayViewMut2<'a, E>,
    /// With respect to the update gate's pre-activation.
    pub d_u_bar: ArrayViewMut2<'a, E>,
    /// With respect to the state before the step, as far as it comes through the update gate.
    pub d_h_u: ArrayViewMut2<'a, E>,
}

/// Inputs of [`gru_cell_grad_ru`].
#[derive(Clone, Debug)]
pub struct GruCellGradRuInputs<'a, E> {
    /// Reset gate, state before the step, and the update gate's gradient, `[batch, cell]` each.
    pub saved: [ArrayView2<'a, E>; 3],
    /// With respect to `r * h_prev`, of a shape that broadcasts to `[batch, cell]`.
    pub d_hr: ArrayViewD<'a, E>,
}

/// Outputs of [`gru_cell_grad_ru`]. Previous contents do not matter.
#[derive(Debug)]
pub struct GruCellGradRuOutputs<'a, E> {
    /// With respect to the gates' pre-activations, `[batch, 2 * cell]`.
    pub d_r_bar_u_bar: ArrayViewMut2<'a, E>,
    /// With respect to the state before the step, as far as it comes through the reset gate,
    /// `[batch, cell]`.
    pub d_hr_r: ArrayViewMut2<'a, E>,
}

/// The shape of the outputs of [`gru_cell_grad_c`].
///
/// # Errors
///
/// [`Error::ListShape`] for the first tensor at odds with those before it, [`Error::Overflow`] for
/// tensors that cannot be addressed.
pub fn gru_cell_grad_c_shapes(inputs: &[PartialShape]) -> Result<[Option<usize>; 2], Error> {
    shapes(GRU_CELL_GRAD_C, INPUTS_C, inputs)
}

/// The shapes of the outputs of [`gru_cell_grad_ru`].
///
/// # Errors
///
/// [`Error::ListShape`] for the first tensor at odds with those before it, [`Error::Overflow`] for
/// an output that cannot be addressed.
pub fn gru_cell_grad_ru_shapes(inputs: &[PartialShape]) -> Result<[[Option<usize>; 2]; 2], Error> {
    let op = GRU_CELL_GRAD_RU;
    let [batch, cell] = shapes(op, INPUTS_RU, inputs)?;
    let columns = cell.map(|cell| cell.saturating_mul(2));
    check_size(op, "d_r_bar_u_bar", "[batch, 2 * cell]", &[batch, columns])?;
    Ok([[batch, columns], [batch, cell]])
}

/// `[batch, cell]`, from three tensors of this shape and one that broadcasts to it.
fn shapes(
    op: &'static str,
    names: [&'static str; 4],
    inputs: &[PartialShape],
) -> Result<[Option<usize>; 2], Error> {
    let (mut batch, mut cell) = (None, None);
    let (saved, gradient) = inputs.split_at(3);
    for (shape, name) in saved.iter().zip(names) {
        let dims = &mut [Dim::new("batch", &mut batch), Dim::new("cell", &mut cell)];
        bind(op, (name, 0), shape, dims)?;
    }
    let size = [batch, cell];
    let fits = |(got, to): (&Option<usize>, &Option<usize>)| {
        got.zip(*to).is_none_or(|(got, to)| got == 1 || got == to)
    };
    match &gradient[0] {
        Some(got) if got.len() > 2 || !got.iter().rev().zip(size.iter().rev()).all(fits) => {
            let expected =
                format!("[batch, cell] = [{}], or one that broadcasts to it", known(&size));
            let got = got.clone();
            Err(Error::ListShape { op, tensor: names[3], index: 0, expected, got })
        }
        _ => {
            check_size(op, names[0], "[batch, cell]", &size)?;
            Ok(size)
        }
    }
}

/// How many elements of scratch memory the two need, by the size of a gate and the shape of the gradient.
#[must_use]
pub fn gru_cell_grad_scratch(size: (usize, usize), gradient: &[usize]) -> usize {
    if *gradient == [size.0, size.1] { 0 } else { size.0 * size.1 }
}

/// `BlockcellGRUCellGradC`: from the gradient of the new state to those of candidate and update gate
/// ([`crate::gru`]).
///
/// ```text
/// d_c_bar = d_h * (1 - u) * (1 - c * c)
/// d_u_bar = d_h * (h_prev - c) * u * (1 - u)        d_h_u = d_h * u
/// ```
///
/// # Errors
///
/// A tensor of the wrong shape or layout, or too short a scratch memory; nothing is written then.
pub fn gru_cell_grad_c<E: Element>(
    context: &Context<'_>,
    inputs: GruCellGradCInputs<'_, E>,
    outputs: GruCellGradCOutputs<'_, E>,
    scratch: &mut [E],
) -> Result<(), Error> {
    let op = GRU_CELL_GRAD_C;
    let GruCellGradCInputs { saved, d_h } = &inputs;
    let size = gru_cell_grad_c_shapes(&all_shapes(saved, d_h))?;
    let GruCellGradCOutputs { d_c_bar, d_u_bar, d_h_u } = &outputs;
    for (view, name) in [(d_c_bar, "d_c_bar"), (d_u_bar, "d_u_bar"), (d_h_u, "d_h_u")] {
        check_output(op, (name, 0), view, &size)?;
        check_layout(op, name, view)?;
    }
    check_inputs(op, INPUTS_C, saved, d_h, scratch.len())?;
    E::plain_gru_cell_grad_c(context, inputs, outputs, scratch);
    Ok(())
}

/// `BlockcellGRUCellGradRU`: from the gradient of `r * h_prev` to those of the gates ([`crate::gru`]).
///
/// ```text
/// d_r_bar = d_hr * h_prev * r * (1 - r)        d_hr_r = d_hr * r
/// d_r_bar_u_bar = [d_r_bar | d_u_bar]
/// ```
///
/// # Errors
///
/// A tensor of the wrong shape or layout, or too short a scratch memory; nothing is written then.
pub fn gru_cell_grad_ru<E: Element>(
    context: &Context<'_>,
    inputs: GruCellGradRuInputs<'_, E>,
    outputs: GruCellGradRuOutputs<'_, E>,
    scratch: &mut [E],
) -> Result<(), Error> {
    let op = GRU_CELL_GRAD_RU;
    let GruCellGradRuInputs { saved, d_hr } = &inputs;
    let [both, size] = gru_cell_grad_ru_shapes(&all_shapes(saved, d_hr))?;
    let GruCellGradRuOutputs { d_r_bar_u_bar, d_hr_r } = &outputs;
    for (view, name, shape) in [(d_r_bar_u_bar, "d_r_bar_u_bar", both), (d_hr_r, "d_hr_r", size)] {
        check_output(op, (name, 0), view, &shape)?;
        check_layout(op, name, view)?;
    }
    check_inputs(op, INPUTS_RU, saved, d_hr, scratch.len())?;
    E::plain_gru_cell_grad_ru(context, inputs, outputs, scratch);
    Ok(())
}

fn all_shapes<E>(
    saved: &[ArrayView2<'_, E>; 3],
    gradient: &ArrayViewD<'_, E>,
) -> [PartialShape; 4] {
    let [first, second, third] = saved.each_ref().map(shape_of);
    [first, second, third, shape_of(gradient)]
}

fn check_inputs<E>(
    op: &'static str,
    names: [&'static str; 4],
    saved: &[ArrayView2<'_, E>; 3],
    gradient: &ArrayViewD<'_, E>,
    scratch: usize,
) -> Result<(), Error> {
    for (view, name) in saved.iter().zip(names) {
        check_layout(op, name, view)?;
    }
    check_layout(op, names[3], gradient)?;
    let needed = gru_cell_grad_scratch(saved[0].dim(), gradient.shape());
    if scratch < needed { Err(Error::Scratch { op, needed, got: scratch }) } else { Ok(()) }
}

pub(crate) fn compute_c<E: Storage>(
    context: &Context<'_>,
    inputs: GruCellGradCInputs<'_, E>,
    outputs: GruCellGradCOutputs<'_, E>,
    scratch: &mut [E],
) {
    let GruCellGradCInputs { saved: [u, h_prev, c], d_h } = inputs;
    let GruCellGradCOutputs { d_c_bar, d_u_bar, d_h_u } = outputs;
    let d_h = whole(&d_h, u.dim(), scratch);
    elementwise::map(context, ThroughState, [u, h_prev, c, d_h], [d_c_bar, d_u_bar, d_h_u], []);
}

pub(crate) fn compute_ru<E: Storage>(
    context: &Context<'_>,
    inputs: GruCellGradRuInputs<'_, E>,
    outputs: GruCellGradRuOutputs<'_, E>,
    scratch: &mut [E],
) {
    let GruCellGradRuInputs { saved: [r, h_prev, d_u_bar], d_hr } = inputs;
    let GruCellGradRuOutputs { d_r_bar_u_bar, d_hr_r } = outputs;
    let d_hr = whole(&d_hr, r.dim(), scratch);
    let (d_r_bar, d_u_bar_out) = d_r_bar_u_bar.split_at(Axis(1), r.ncols());
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
struct ThroughState;

impl Equation<4, 3> for ThroughState {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 4, 3>) -> Computed<S::F32, 3> {
        let Elements { inputs: [u, h_prev, c, d_h], .. } = at;
        let [d_c_bar, d_u_bar] = through_state(simd, d_h, h_prev, u, c);
        ([d_c_bar, d_u_bar, d_h * u], [], [])
    }
}

#[derive(Clone, Copy)]
struct ThroughReset;

impl Equation<4, 3> for ThroughReset {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 4, 3>) -> Computed<S::F32, 3> {
        let Elements { inputs: [r, h_prev, d_u_bar, d_hr], .. } = at;
        ([through_reset(simd, d_hr, h_prev, r), d_u_bar, d_hr * r], [], [])
    }
}
