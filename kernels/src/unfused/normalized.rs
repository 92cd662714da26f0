//! `BlockcellLayerNormLSTMCell`: the forward step of an LSTM cell with layer normalization.

use ndarray::{ArrayView1, ArrayView2, ArrayViewD, ArrayViewMut2, ArrayViewMutD, Axis, IxDyn, Zip};

use super::GateColumns;
use super::lstm::broadcast;
use super::memory::Pieces;
use crate::gemm::{self, StepShape};
use crate::lstm::normalized::{Moments, NormalizedStep};
use crate::ops::{Inferred, Lists, NORMALIZED_LSTM_CELL, PartialShape, Sizes};
use crate::recurrence::{At, Input, Product};
use crate::{Activations, Context, Element, Error, Storage};

pub use crate::ops::normalized::{NormalizedLstmCellInputs, NormalizedLstmCellOutputs};

/// The attributes of an operation on cells with layer normalization.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormalizedAttributes {
    /// Added to the forget gate's pre-activation.
    pub forget_bias: f32,
    /// Added to variances.
    pub epsilon: f32,
    /// The columns of each gate.
    pub columns: GateColumns,
    /// The functions of the cell.
    pub activations: Activations,
    /// Whether means of the state are taken over its last axis, and not over axis 1.
    pub over_last_axis: bool,
}

/// How many of gamma and beta there are.
const NORMS: usize = 5;

/// Checks how many of gamma and of beta there are.
pub(super) fn check_norms(op: &'static str, counts: [usize; 2]) -> Result<(), Error> {
    for (what, got) in ["gamma", "beta"].into_iter().zip(counts) {
        if got != NORMS {
            return Err(Error::Count { op, what, expected: NORMS, got });
        }
    }
    Ok(())
}

/// The shapes of [`normalized_lstm_cell`]'s outputs, in their order, as far as they follow from the known parts of the
/// inputs' shapes. An unknown cs_prev is taken to be a matrix.
///
/// # Errors
///
/// [`Error::Shape`] for the first tensor that does not match the others, [`Error::Overflow`] for an output that cannot
/// be addressed.
pub fn normalized_lstm_cell_shapes(inputs: &Lists<'_, PartialShape>) -> Result<Inferred, Error> {
    let op = &NORMALIZED_LSTM_CELL;
    check_norms(op.name, [inputs.of("gamma").len(), inputs.of("beta").len()])?;
    let mut inferred = op.infer(false, inputs)?;
    let (batch, cell) = (inferred.sizes.batch, inferred.sizes.cell_size);
    let gate = vec![batch, cell];
    let state = match inputs.of("cs_prev") {
        [Some(cs_prev)] => {
            // The scale of the state has as many numbers as a gate.
            let fits = |state: &Vec<Option<usize>>| {
                let last = state.last().copied().flatten();
                last.is_none() || cell.is_none_or(|cell| cell == 1 || last == Some(cell))
            };
            broadcast(&gate, cs_prev).filter(fits).ok_or_else(|| {
                let expected = "a shape that broadcasts with [batch, cell_size]".to_owned();
                let (op, tensor, got) = (op.name, "cs_prev", cs_prev.clone());
                Error::Shape { op, tensor, index: None, expected, got }
            })?
        }
        [None] => vec![None, cell.filter(|&cell| cell != 1)],
        _ => gate,
    };
    op.check_size("cs", "[batch, cell_size]", &state)?;
    inferred.outputs.fill(state);
    Ok(inferred)
}

/// The number of elements of scratch memory that [`normalized_lstm_cell`] needs.
#[must_use]
pub fn normalized_lstm_cell_scratch(batch: usize, cell: usize) -> usize {
    batch.saturating_mul(cell).saturating_mul(7)
}

/// `BlockcellLayerNormLSTMCell`, as defined by [`NORMALIZED_LSTM_CELL`].
///
/// # Errors
///
/// If a tensor has the wrong shape or layout; for another number of gamma or beta; or if the scratch memory is too
/// short. Nothing is written then.
pub fn normalized_lstm_cell<E: Element>(
    context: &Context<'_>,
    attributes: &NormalizedAttributes,
    inputs: NormalizedLstmCellInputs<'_, E>,
    outputs: NormalizedLstmCellOutputs<'_, E>,
    scratch: &mut [E],
) -> Result<(), Error> {
    let op = &NORMALIZED_LSTM_CELL;
    let Sizes { batch, cell_size, .. } =
        op.check_lists(&inputs, &outputs, normalized_lstm_cell_shapes)?;
    op.check_scratch(normalized_lstm_cell_scratch(batch, cell_size), scratch)?;
    E::unfused_normalized_lstm_cell(context, attributes, inputs, outputs, scratch);
    Ok(())
}

impl NormalizedAttributes {
    /// A step with these vectors.
    pub(super) fn step<'a, E: Storage>(
        &self,
        gamma: &[ArrayView1<'a, E>],
        beta: &[ArrayView1<'a, E>],
    ) -> NormalizedStep<'a, E> {
        NormalizedStep {
            forget_bias: self.forget_bias,
            epsilon: self.epsilon,
            activations: self.activations,
            order: self.columns.order(),
            norms: [0, 1, 2, 3, 4].map(|n| [gamma[n], beta[n]]),
        }
    }
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    attributes: &NormalizedAttributes,
    inputs: NormalizedLstmCellInputs<'_, E>,
    outputs: NormalizedLstmCellOutputs<'_, E>,
    scratch: &mut [E],
) {
    let NormalizedLstmCellInputs { x, h_prev, w, gamma, beta, cs_prev } = inputs;
    let size = (x.nrows(), w.ncols() / 4);
    let mut pieces = Pieces::new(scratch);
    let mut matrix = || pieces.take([1, size.0, size.1]).index_axis_move(Axis(0), 0);
    let mut z = [(); 4].map(|()| matrix());
    let mut zeros = matrix();
    zeros.fill(E::ZERO);
    let step = attributes.step(&gamma, &beta);
    let (w_x, w_h) = w.split_at(Axis(0), x.ncols());
    let product = Product::plain(gemm::cell_tiling(context, StepShape::new(size, 4)), w_h);
    let at = At::only_step(context);
    let products = product.after(Input::Product(x, w_x), at.rows, Some(h_prev));
    match cs_prev {
        None => step.run(at, products, zeros.view(), z, matrices(outputs)),
        Some(cs_prev) if cs_prev.shape() == [size.0, size.1] => {
            let cs_prev: ArrayView2<'_, E> = cs_prev.into_dimensionality().expect("a matrix");
            step.run(at, products, cs_prev, z, matrices(outputs));
        }
        Some(cs_prev) => {
            let own: [ArrayViewMut2<'_, E>; 2] = [matrix(), matrix()];
            step.run(at, products, zeros.view(), z.each_mut().map(|gate| gate.view_mut()), own);
            broadcast_state(attributes, &step, z, &cs_prev, outputs);
        }
    }
}

/// The outputs of a step whose states are matrices.
fn matrices<E>(outputs: NormalizedLstmCellOutputs<'_, E>) -> [ArrayViewMut2<'_, E>; 2] {
    let NormalizedLstmCellOutputs { cs, h } = outputs;
    [cs, h].map(|view| view.into_dimensionality().expect("a matrix"))
}

/// The equations for a state of another shape than the gates', whose products are in `z`. Nobody needs it to be fast.
fn broadcast_state<E: Storage>(
    attributes: &NormalizedAttributes,
    step: &NormalizedStep<'_, E>,
    mut z: [ArrayViewMut2<'_, E>; 4],
    cs_prev: &ArrayViewD<'_, E>,
    outputs: NormalizedLstmCellOutputs<'_, E>,
) {
    let NormalizedLstmCellOutputs { mut cs, mut h } = outputs;
    // Without columns there may be more rows than anybody could count.
    if cs.is_empty() {
        return;
    }
    let Activations { state, gates } = attributes.activations;
    let functions = [(gates, 0.0), (state, 0.0), (gates, step.forget_bias), (gates, 0.0)];
    for (n, (function, bias)) in functions.into_iter().enumerate() {
        let gate = &mut z[step.order[n]];
        normalize(step, n, gate.view_mut().into_dyn(), Axis(1));
        gate.mapv_inplace(|value| E::from_f32(function.of_number(value.to_f32() + bias)));
    }
    let shape = IxDyn(cs.shape());
    let whole = "it was checked";
    let [i, ci, f, o] = step.order.map(|place| z[place].broadcast(shape.clone()).expect(whole));
    let cs_prev = cs_prev.broadcast(shape.clone()).expect(whole);
    Zip::from(&mut cs).and(i).and(ci).and(f).and(cs_prev).for_each(|cs, i, ci, f, before| {
        *cs = E::from_f32(i.to_f32() * ci.to_f32() + f.to_f32() * before.to_f32());
    });
    let axis = if attributes.over_last_axis { cs.ndim() - 1 } else { 1 };
    normalize(step, 4, cs.view_mut(), Axis(axis));
    Zip::from(&mut h).and(&cs).and(o).for_each(|h, cs, o| {
        *h = E::from_f32(o.to_f32() * state.of_number(cs.to_f32()));
    });
}

/// Lets numbers have a mean of 0 and a variance of 1 along an axis, and scales and moves them column by column.
fn normalize<E: Storage>(
    step: &NormalizedStep<'_, E>,
    n: usize,
    mut values: ArrayViewMutD<'_, E>,
    axis: Axis,
) {
    for mut lane in values.lanes_mut(axis) {
        let moments = Moments::of_numbers(lane.iter().map(|value| value.to_f32()), step.epsilon);
        lane.mapv_inplace(|value| E::from_f32(moments.centered(value.to_f32())));
    }
    let [gamma, beta] = &step.norms[n];
    values.zip_mut_with(gamma, |value, by| *value = E::from_f32(value.to_f32() * by.to_f32()));
    values.zip_mut_with(beta, |value, by| *value = E::from_f32(value.to_f32() + by.to_f32()));
}
