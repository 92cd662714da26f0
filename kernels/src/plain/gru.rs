//! `BlockcellGRUCell`: the forward step of a plain GRU cell, for types that `GRUBlockCell` does not have.

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, ArrayViewMut3, Axis};

use super::gru_layer::check_cell;
use super::steps;
use crate::block_gru::forward::{GruSequence, forward_scratch};
use crate::gru::step::GruStep;
use crate::ops::{PartialShape, Sizes};
use crate::recurrence::Lengths;
use crate::shapes::{Dim, bind, check_layout, check_output, check_size, shape_of};
use crate::{Context, Element, Error, Storage};

/// The operation's name in TensorFlow.
pub const GRU_CELL: &str = "BlockcellGRUCell";

/// Inputs of [`gru_cell`].
#[derive(Clone, Debug)]
pub struct GruCellInputs<'a, E> {
    /// `[batch, input]`
    pub x: ArrayView2<'a, E>,
    /// State before the step, `[batch, cell]`.
    pub h_prev: ArrayView2<'a, E>,
    /// Weights of the reset and update gates, `[input + cell, 2 * cell]`.
    pub w_ru: ArrayView2<'a, E>,
    /// Weights of the candidate, `[input + cell, cell]`.
    pub w_c: ArrayView2<'a, E>,
    /// Biases of the gates, `[2 * cell]`.
    pub b_ru: ArrayView1<'a, E>,
    /// Bias of the candidate, `[cell]`.
    pub b_c: ArrayView1<'a, E>,
}

/// Outputs of [`gru_cell`], `[batch, cell]` each. Previous contents do not matter.
#[derive(Debug)]
pub struct GruCellOutputs<'a, E> {
    /// Reset gate.
    pub r: ArrayViewMut2<'a, E>,
    /// Update gate.
    pub u: ArrayViewMut2<'a, E>,
    /// Candidate state.
    pub c: ArrayViewMut2<'a, E>,
    /// State after the step.
    pub h: ArrayViewMut2<'a, E>,
}

/// The shape of [`gru_cell`]'s outputs, as far as it follows from what is known of the shapes of the inputs, in their
/// order.
///
/// # Errors
///
/// [`Error::ListShape`] for the first tensor at odds with those before it, [`Error::Overflow`] for an output that
/// cannot be addressed.
pub fn gru_cell_shapes(inputs: &[PartialShape; 6]) -> Result<[Option<usize>; 2], Error> {
    let (op, [x, cell @ ..]) = (GRU_CELL, inputs);
    let (mut batch, mut input) = (None, None);
    bind(op, ("x", 0), x, &mut [Dim::new("batch", &mut batch), Dim::new("input", &mut input)])?;
    let cell = check_cell(op, cell, &mut batch, input)?;
    check_size(op, "h", "[batch, cell]", &[batch, cell])?;
    Ok([batch, cell])
}

/// How much scratch memory [`gru_cell`] needs: so many numbers, and so many elements.
#[must_use]
pub fn gru_cell_scratch([batch, input_size, cell_size]: [usize; 3]) -> [usize; 2] {
    let sizes = Sizes { time: 1, batch, input_size, cell_size, optional: [0; 3] };
    [forward_scratch(&sizes), batch.saturating_mul(cell_size)]
}

/// `BlockcellGRUCell`: the forward step of [`crate::gru`].
///
/// # Errors
///
/// A tensor of the wrong shape or layout, or too short a scratch memory; nothing is written then.
pub fn gru_cell<E: Element>(
    context: &Context<'_>,
    inputs: GruCellInputs<'_, E>,
    outputs: GruCellOutputs<'_, E>,
    (scratch, memory): (&mut [f32], &mut [E]),
) -> Result<(), Error> {
    let op = GRU_CELL;
    let GruCellInputs { x, h_prev, w_ru, w_c, b_ru, b_c } = &inputs;
    let [gates, candidate] = [b_ru, b_c].map(shape_of);
    let matrices = [x, h_prev, w_ru, w_c].map(shape_of);
    let [first, second, third, fourth] = matrices;
    let size = gru_cell_shapes(&[first, second, third, fourth, gates, candidate])?;
    let GruCellOutputs { r, u, c, h } = &outputs;
    for (view, name) in [(r, "r"), (u, "u"), (c, "c"), (h, "h")] {
        check_output(op, (name, 0), view, &size)?;
        check_layout(op, name, view)?;
    }
    for (view, name) in [(x, "x"), (h_prev, "h_prev"), (w_ru, "w_ru"), (w_c, "w_c")] {
        check_layout(op, name, view)?;
    }
    check_layout(op, "b_ru", b_ru)?;
    check_layout(op, "b_c", b_c)?;
    let needed = gru_cell_scratch([x.nrows(), x.ncols(), h.ncols()]);
    steps::check_scratch(op, needed, [scratch.len(), memory.len()])?;
    E::plain_gru_cell(context, inputs, outputs, scratch, memory);
    Ok(())
}

/// A sequence of one step.
pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    inputs: GruCellInputs<'_, E>,
    outputs: GruCellOutputs<'_, E>,
    scratch: &mut [f32],
    memory: &mut [E],
) {
    let GruCellInputs { x, h_prev, w_ru, w_c, b_ru, b_c } = inputs;
    let (batch, cell) = h_prev.dim();
    let [(ru_x, ru_h), (c_x, c_h)] = [w_ru, w_c].map(|w| w.split_at(Axis(0), x.ncols()));
    let lengths = vec![1; batch];
    let sequence = GruSequence {
        lengths: Lengths::new(ArrayView1::from(&lengths)),
        x: x.insert_axis(Axis(0)),
        h_prev,
        w_x: Some([ru_x, c_x]),
        w_h: [ru_h, c_h],
        step: GruStep { b_ru, b_c, b_hc: None },
    };
    let hc = ArrayViewMut3::from_shape((1, batch, cell), &mut memory[..batch * cell]);
    let GruCellOutputs { r, u, c, h } = outputs;
    let [r, u, c, h] = [r, u, c, h].map(|one| one.insert_axis(Axis(0)));
    sequence.compute(context, [r, u, c, hc.expect("it was measured"), h], scratch);
}
