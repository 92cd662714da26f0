//! `BlockcellLayerNorm` and `BlockcellLayerNormGrad`: layer normalization of a tensor, and its gradient.
//!
//! The gradient takes the input of the normalization, and recomputes means and deviations. This is faster than storing
//! them, because each tensor that a loop stores for its gradient needs a stack.

use ndarray::{ArrayView2, ArrayViewMut2, ArrayViewMutD, Axis, IxDyn, Zip};

use super::lstm::broadcast;
use crate::executor::for_each;
use crate::lstm::normalized::Moments;
use crate::ops::{Inferred, LAYER_NORM, LAYER_NORM_GRAD, Lists, Op, PartialShape};
use crate::simd::{Simd, WithSimd};
use crate::tiles::{row, row_mut};
use crate::tuning::{PASS_CYCLES_PER_ELEMENT, PASS_ELEMENTS};
use crate::{Context, Element, Error, Storage};

pub use crate::ops::normalized::{LayerNormGradInputs, LayerNormGradOutputs};
pub use crate::ops::normalized::{LayerNormInputs, LayerNormOutputs};

/// Processor cycles for each element of a row.
const CYCLES_PER_ELEMENT: usize = 4 * PASS_CYCLES_PER_ELEMENT;

/// The attributes of `BlockcellLayerNorm`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNormAttributes {
    /// Added to variances.
    pub epsilon: f32,
    /// Whether means are taken over the last axis, and not over axis 1.
    pub over_last_axis: bool,
    /// Added to beta.
    pub bias: f32,
}

/// The attributes of `BlockcellLayerNormGrad`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNormGradAttributes {
    /// Added to variances.
    pub epsilon: f32,
    /// The number of rows that x must have, if known. dx then has the shape that x and gamma broadcast to.
    pub rows: Option<usize>,
}

/// The shape of [`layer_norm`]'s output, as far as it follows from the known parts of the inputs' shapes. An unknown x
/// is taken to be a matrix.
///
/// # Errors
///
/// [`Error::Shape`] for the first tensor that does not match the others, [`Error::Overflow`] for an output that cannot
/// be addressed.
pub fn layer_norm_shapes(
    attributes: &LayerNormAttributes,
    inputs: &Lists<'_, PartialShape>,
) -> Result<Inferred, Error> {
    let op = &LAYER_NORM;
    let mut inferred = op.infer(false, inputs)?;
    let vector = [inferred.sizes.cell_size];
    let y = match &inputs.of("x")[0] {
        None => vec![None, vector[0].filter(|&cell| cell != 1)],
        Some(x) => {
            let has_axis = x.len() > usize::from(!attributes.over_last_axis);
            broadcast(x, &vector).filter(|_| has_axis).ok_or_else(|| {
                let expected = "a shape with the axis, that broadcasts with [cell_size]".to_owned();
                shape_error(op, "x", expected, x)
            })?
        }
    };
    op.check_size("y", "the shape that x and [cell_size] broadcast to", &y)?;
    inferred.outputs[op.output("y")] = y;
    Ok(inferred)
}

/// The shapes of [`layer_norm_grad`]'s outputs, in their order, as far as they follow from the known parts of the
/// inputs' shapes.
///
/// # Errors
///
/// [`Error::Shape`] for the first tensor that does not match the others, [`Error::Overflow`] for an output that cannot
/// be addressed.
pub fn layer_norm_grad_shapes(
    attributes: &LayerNormGradAttributes,
    inputs: &Lists<'_, PartialShape>,
) -> Result<Inferred, Error> {
    let op = &LAYER_NORM_GRAD;
    let mut inferred = op.infer(false, inputs)?;
    let cell = inferred.sizes.cell_size;
    let x = inputs.of("x")[0].clone().unwrap_or_else(|| vec![attributes.rows, None]);
    let as_said = |size: Option<usize>, said: Option<usize>| match (size, said) {
        (Some(size), Some(said)) => size == said,
        _ => true,
    };
    let y = broadcast(&x, &[cell])
        .filter(|_| as_said(x[0], attributes.rows))
        .filter(|y| attributes.rows.is_none() || as_said(y[1], cell));
    let Some(y) = y else {
        let expected = match attributes.rows {
            Some(rows) => format!("[rows, cell_size], or one column of it, with rows = {rows}"),
            None => "a shape that broadcasts with [cell_size]".to_owned(),
        };
        return Err(shape_error(op, "x", expected, &x));
    };
    let dy = inputs.of("dy")[0].clone().unwrap_or_else(|| vec![None; 2]);
    let is_one_row = attributes.rows.is_some() && dy[0] == Some(1);
    if !(is_one_row || as_said(dy[0], y[0])) || !as_said(dy[1], y[1]) {
        let or = if attributes.rows.is_some() { ", or one row of it" } else { "" };
        let expected = format!("{}{or}", crate::error::shape(&y));
        return Err(shape_error(op, "dy", expected, &dy));
    }
    let dx = if attributes.rows.is_some() { y } else { x };
    op.check_size("dx", "[batch, columns]", &dx)?;
    inferred.outputs[op.output("dx")] = dx;
    Ok(inferred)
}

fn shape_error(op: &Op, tensor: &'static str, expected: String, got: &[Option<usize>]) -> Error {
    Error::Shape { op: op.name, tensor, index: None, expected, got: got.to_vec() }
}

/// `BlockcellLayerNorm`, as defined by [`LAYER_NORM`].
///
/// # Errors
///
/// If a tensor has the wrong shape or layout. Nothing is written then.
pub fn layer_norm<E: Element>(
    context: &Context<'_>,
    attributes: &LayerNormAttributes,
    inputs: LayerNormInputs<'_, E>,
    outputs: LayerNormOutputs<'_, E>,
) -> Result<(), Error> {
    let infer = |shapes: &Lists<'_, PartialShape>| layer_norm_shapes(attributes, shapes);
    LAYER_NORM.check_lists(&inputs, &outputs, infer)?;
    E::unfused_layer_norm(context, attributes, inputs, outputs);
    Ok(())
}

/// How many numbers of scratch memory [`layer_norm_grad`] needs.
#[must_use]
pub fn layer_norm_grad_scratch(rows: usize, cell: usize) -> usize {
    rows.div_ceil(rows_at_once(cell)).saturating_mul(2).saturating_mul(cell)
}

/// How many rows are one task. Nothing else than the size may decide that: each task has sums of its own.
fn rows_at_once(cell: usize) -> usize {
    (PASS_ELEMENTS / (4 * cell.max(1))).max(1)
}

/// `BlockcellLayerNormGrad`, as defined by [`LAYER_NORM_GRAD`].
///
/// # Errors
///
/// If a tensor has the wrong shape or layout, or if the scratch memory is too short. Nothing is written then.
pub fn layer_norm_grad<E: Element>(
    context: &Context<'_>,
    attributes: &LayerNormGradAttributes,
    inputs: LayerNormGradInputs<'_, E>,
    outputs: LayerNormGradOutputs<'_, E>,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let op = &LAYER_NORM_GRAD;
    let infer = |shapes: &Lists<'_, PartialShape>| layer_norm_grad_shapes(attributes, shapes);
    op.check_lists(&inputs, &outputs, infer)?;
    let needed = layer_norm_grad_scratch(inputs.x.nrows(), inputs.gamma.len());
    let scratch = op.check_scratch(needed, scratch)?;
    E::unfused_layer_norm_grad(context, attributes, inputs, outputs, scratch);
    Ok(())
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    attributes: &LayerNormAttributes,
    inputs: LayerNormInputs<'_, E>,
    outputs: LayerNormOutputs<'_, E>,
) {
    let LayerNormInputs { x, gamma, beta } = &inputs;
    let mut y = outputs.y;
    // Without columns there may be more rows than anybody could count.
    if y.is_empty() {
        return;
    }
    let (&[rows, columns], true) = (x.shape(), x.shape() == y.shape()) else {
        return broadcast_norm(attributes, &inputs, y);
    };
    if columns != gamma.len() {
        return broadcast_norm(attributes, &inputs, y);
    }
    let x: ArrayView2<'_, E> = x.clone().into_dimensionality().expect("a matrix");
    let mut y: ArrayViewMut2<'_, E> = y.view_mut().into_dimensionality().expect("a matrix");
    let at_once = rows_at_once(columns);
    let [gamma, beta] = [gamma, beta].map(|one| one.to_slice().expect("a vector without gaps"));
    let cost = (CYCLES_PER_ELEMENT * at_once.min(rows) * columns) as u64;
    let parts = y.axis_chunks_iter_mut(Axis(0), at_once).enumerate().collect();
    let isa = context.isa;
    for_each(context.executor, cost, parts, |(part, mut y)| {
        for at in 0..y.nrows() {
            let (x, y) = (row(x, part * at_once + at), row_mut(&mut y, at));
            isa.run(Row { attributes, x, gamma, beta, y });
        }
    });
}

/// One row of [`compute`].
struct Row<'r, E> {
    attributes: &'r LayerNormAttributes,
    x: &'r [E],
    gamma: &'r [E],
    beta: &'r [E],
    y: &'r mut [E],
}

impl<E: Storage> WithSimd for Row<'_, E> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Row { attributes, x, gamma, beta, y } = self;
        let moments = Moments::of(simd, x, attributes.epsilon);
        for from in (0..y.len()).step_by(S::LANES) {
            let at = from..y.len().min(from + S::LANES);
            let normalized = moments.normalized(simd, &x[at.clone()], [gamma, beta], from);
            E::store(simd, normalized + simd.splat(attributes.bias), &mut y[at]);
        }
    }
}

/// The equations for a tensor of another shape than a row for each of a batch. Nobody needs it to be fast.
fn broadcast_norm<E: Storage>(
    attributes: &LayerNormAttributes,
    inputs: &LayerNormInputs<'_, E>,
    mut y: ArrayViewMutD<'_, E>,
) {
    let LayerNormInputs { x, gamma, beta } = inputs;
    let axis = Axis(if attributes.over_last_axis { x.ndim() - 1 } else { 1 });
    let mut normalized = x.mapv(|value| value.to_f32());
    for mut lane in normalized.lanes_mut(axis) {
        let moments = Moments::of_numbers(lane.iter().copied(), attributes.epsilon);
        lane.mapv_inplace(|value| moments.centered(value));
    }
    let shape = IxDyn(y.shape());
    let whole = normalized.broadcast(shape.clone()).expect("it was checked");
    let [gamma, beta] =
        [gamma, beta].map(|one| one.broadcast(shape.clone()).expect("it was checked"));
    Zip::from(&mut y).and(whole).and(gamma).and(beta).for_each(|y, n, gamma, beta| {
        *y = E::from_f32(n * gamma.to_f32() + beta.to_f32() + attributes.bias);
    });
}

pub(crate) fn compute_grad<E: Storage>(
    context: &Context<'_>,
    attributes: &LayerNormGradAttributes,
    inputs: LayerNormGradInputs<'_, E>,
    outputs: LayerNormGradOutputs<'_, E>,
    scratch: &mut [f32],
) {
    let LayerNormGradInputs { x, gamma, dy } = &inputs;
    let LayerNormGradOutputs { mut dx, dgamma, dbeta } = outputs;
    let mut sums = [dgamma, dbeta];
    for sum in &mut sums {
        sum.fill(E::ZERO);
    }
    let (cell, rows) = (gamma.len(), x.nrows());
    if x.is_empty() || cell == 0 {
        dx.fill(E::ZERO);
        return;
    }
    let is_usual = x.dim() == dy.dim() && x.ncols() == cell;
    let gamma = gamma.to_slice().expect("a vector without gaps");
    let at_once = rows_at_once(cell);
    let cost = (CYCLES_PER_ELEMENT * at_once.min(rows) * cell) as u64;
    scratch.fill(0.0);
    let parts = dx.axis_chunks_iter_mut(Axis(0), at_once).zip(scratch.chunks_exact_mut(2 * cell));
    let isa = context.isa;
    for_each(context.executor, cost, parts.enumerate().collect(), |(part, (mut dx, own))| {
        let (dgamma, dbeta) = own.split_at_mut(cell);
        for at in 0..dx.nrows() {
            let b = part * at_once + at;
            let (x, dx) = (row(*x, b), row_mut(&mut dx, at));
            let sums = [&mut *dgamma, &mut *dbeta];
            let epsilon = attributes.epsilon;
            if is_usual {
                isa.run(RowGrad { epsilon, x, gamma, dy: row(*dy, b), dx, sums });
            } else {
                broadcast_grad(epsilon, (x, gamma), (b.min(dy.nrows() - 1), b, *dy), dx, sums);
            }
        }
    });
    for own in scratch.chunks_exact(2 * cell) {
        for (sum, own) in sums.iter_mut().zip(own.chunks_exact(cell)) {
            for (sum, &own) in sum.iter_mut().zip(own) {
                *sum = E::from_f32(sum.to_f32() + own);
            }
        }
    }
}

/// One row of [`compute_grad`].
struct RowGrad<'r, E> {
    epsilon: f32,
    x: &'r [E],
    gamma: &'r [E],
    dy: &'r [E],
    dx: &'r mut [E],
    /// The gradients with respect to gamma and beta so far.
    sums: [&'r mut [f32]; 2],
}

impl<E: Storage> WithSimd for RowGrad<'_, E> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let RowGrad { epsilon, x, gamma, dy, dx, sums: [dgamma, dbeta] } = self;
        let moments = Moments::of(simd, x, epsilon);
        let [mut of_scaled, mut of_both] = [simd.splat(0.0); 2];
        for from in (0..x.len()).step_by(S::LANES) {
            let at = from..x.len().min(from + S::LANES);
            let dy = E::load(simd, &dy[at.clone()]);
            let n = moments.all_centered(simd, E::load(simd, &x[at.clone()]));
            let scaled = dy * E::load(simd, &gamma[at.clone()]);
            of_scaled = of_scaled + scaled;
            of_both = simd.mul_add(scaled, n, of_both);
            for (sum, more) in [(&mut *dgamma, dy * n), (&mut *dbeta, dy)] {
                let sum = &mut sum[at.clone()];
                f32::store(simd, f32::load(simd, sum) + more, sum);
            }
        }
        let count = x.len() as f32;
        let [of_scaled, of_both] =
            [of_scaled, of_both].map(|sum| simd.splat(simd.sum(sum) / count));
        for from in (0..x.len()).step_by(S::LANES) {
            let at = from..x.len().min(from + S::LANES);
            let n = moments.all_centered(simd, E::load(simd, &x[at.clone()]));
            let scaled = E::load(simd, &dy[at.clone()]) * E::load(simd, &gamma[at.clone()]);
            let through = scaled - of_scaled - n * of_both;
            E::store(simd, through * simd.splat(moments.inverse), &mut dx[at]);
        }
    }
}

/// The same of a row in which one number of x or gamma stands for all, or where one row of dy stands for all: then the
/// first row counts it in the gradient of beta. Nobody needs it to be fast.
fn broadcast_grad<E: Storage>(
    epsilon: f32,
    (x, gamma): (&[E], &[E]),
    (row_of_dy, b, dy): (usize, usize, ArrayView2<'_, E>),
    dx: &mut [E],
    [dgamma, dbeta]: [&mut [f32]; 2],
) {
    let place = |len: usize, column: usize| if len == 1 { 0 } else { column };
    let moments = Moments::of_numbers(x.iter().map(|value| value.to_f32()), epsilon);
    let n = |column: usize| moments.centered(x[place(x.len(), column)].to_f32());
    let dy = row(dy, row_of_dy);
    let scaled = |column: usize| dy[column].to_f32() * gamma[place(gamma.len(), column)].to_f32();
    let columns = 0..dy.len();
    let count = dx.len() as f32;
    let of_scaled = columns.clone().map(scaled).sum::<f32>() / count;
    let of_both = columns.clone().map(|column| scaled(column) * n(column)).sum::<f32>() / count;
    for column in columns.clone() {
        let at = place(gamma.len(), column);
        dgamma[at] += dy[column].to_f32() * n(column);
        if row_of_dy == b {
            dbeta[at] += dy[column].to_f32();
        }
    }
    for at in 0..dx.len() {
        let own = columns.clone().filter(|&column| place(dx.len(), column) == at);
        let through = own.map(scaled).sum::<f32>() - of_scaled - n(at) * of_both;
        dx[at] = E::from_f32(through * moments.inverse);
    }
}
