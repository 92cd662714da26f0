//! `BlockcellGRUCell`: the forward step of a plain GRU cell, for types, functions and weights that `GRUBlockCell` does not
//! support.

use ndarray::{ArrayView1, ArrayViewMut3, Axis};

use super::lstm::{apart, batch_of};
use super::memory::{self, Pieces, whole_len};
use super::rows::with_all_rows;
use crate::block_gru::forward::{GruSequence, GruWeights, forward_scratch};
use crate::gru::step::{GruOrder, GruStep};
use crate::ops::{Inferred, Lists, PartialShape, Sizes, UNFUSED_GRU_CELL};
use crate::recurrence::Lengths;
use crate::{Activations, Context, Element, Error, Storage};

pub use crate::ops::unfused::{GruCellInputs, GruCellOutputs};

/// How a cell differs from that of `GRUBlockCell`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GruAttributes {
    /// The functions of the cell.
    pub activations: Activations,
    /// Whether the columns of the update gate come before those of the reset gate.
    pub update_first: bool,
    /// Whether the update gate is the share of the candidate in the new state, and not that of the old state.
    pub u_weighs_c: bool,
    /// Whether one row of x or `h_prev` stands for all, where they have weights of their own.
    pub broadcasts_rows: bool,
}

impl GruAttributes {
    /// The order of the gates.
    pub(super) fn order(&self) -> GruOrder {
        if self.update_first { GruOrder::UpdateFirst } else { GruOrder::ResetFirst }
    }
}

/// The shapes of [`gru_cell`]'s outputs, in their order, as far as they follow from what is known of the inputs' shapes.
///
/// # Errors
///
/// [`Error::Shape`] for the first tensor at odds with the others, [`Error::Overflow`] for an output that cannot be
/// addressed.
pub fn gru_cell_shapes(
    broadcasts_rows: bool,
    inputs: &Lists<'_, PartialShape>,
) -> Result<Inferred, Error> {
    let is_such = broadcasts_rows && !inputs.of("w_ru_h").is_empty();
    let whole = is_such.then(|| with_all_rows(inputs, &["x", "h_prev"]));
    let whole = whole.as_ref().map(|shapes| inputs.with(shapes));
    UNFUSED_GRU_CELL.infer(false, whole.as_ref().unwrap_or(inputs))
}

/// How much scratch memory [`gru_cell`] needs for an x and an `h_prev` of these sizes: the length in numbers (`f32`), and
/// the length in elements (`E`).
#[must_use]
pub fn gru_cell_scratch([x, h_prev]: [(usize, usize); 2]) -> [usize; 2] {
    let (batch, cell_size) = (batch_of(x.0, h_prev.0), h_prev.1);
    let sizes = Sizes { time: 1, batch, input_size: x.1, cell_size, optional: [0; 3] };
    let [of_x, of_h] = [x, h_prev].map(|(rows, columns)| whole_len([1, rows, columns], batch));
    let elements = batch.saturating_mul(cell_size).saturating_add(of_x).saturating_add(of_h);
    [forward_scratch(&sizes), elements]
}

/// `BlockcellGRUCell`: the forward step of [`crate::gru`], as [`UNFUSED_GRU_CELL`] says.
///
/// # Errors
///
/// If a tensor has the wrong shape or layout, or if the scratch memory is too short. Nothing is written then.
pub fn gru_cell<E: Element>(
    context: &Context<'_>,
    attributes: &GruAttributes,
    inputs: GruCellInputs<'_, E>,
    outputs: GruCellOutputs<'_, E>,
    (scratch, elements): (&mut [f32], &mut [E]),
) -> Result<(), Error> {
    let op = &UNFUSED_GRU_CELL;
    let infer = |shapes: &Lists<'_, _>| gru_cell_shapes(attributes.broadcasts_rows, shapes);
    op.check_lists(&inputs, &outputs, infer)?;
    let needed = gru_cell_scratch([inputs.x.dim(), inputs.h_prev.dim()]);
    memory::check(op.name, needed, [scratch.len(), elements.len()])?;
    E::unfused_gru_cell(context, attributes, inputs, outputs, scratch, elements);
    Ok(())
}

/// A sequence of one step.
pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    attributes: &GruAttributes,
    inputs: GruCellInputs<'_, E>,
    outputs: GruCellOutputs<'_, E>,
    scratch: &mut [f32],
    memory: &mut [E],
) {
    let GruCellInputs { x, h_prev, w_ru, w_c, b_ru, b_c, w_ru_h, w_c_h } = inputs;
    let GruCellOutputs { r, u, c, h } = outputs;
    let (batch, cell) = h.dim();
    let [(ru_x, ru_h), (c_x, c_h)] =
        [(w_ru, w_ru_h), (w_c, w_c_h)].map(|(w, w_h)| apart(w, w_h, x.ncols()));
    let mut pieces = Pieces::new(memory);
    let [x, h_prev] = [x, h_prev].map(|matrix| pieces.whole(matrix, batch));
    let lengths = vec![1; batch];
    let &GruAttributes { activations, u_weighs_c, .. } = attributes;
    let order = attributes.order();
    let sequence = GruSequence {
        lengths: Lengths::new(ArrayView1::from(&lengths)),
        x: x.insert_axis(Axis(0)),
        h_prev,
        w_x: Some(GruWeights::Apart([ru_x, c_x])),
        w_h: GruWeights::Apart([ru_h, c_h]),
        step: GruStep { activations, order, b_ru, b_c, b_hc: None, u_weighs_c },
    };
    let hc: ArrayViewMut3<'_, E> = pieces.take([1, batch, cell]);
    let [r, u, c, h] = [r, u, c, h].map(|one| one.insert_axis(Axis(0)));
    sequence.compute(context, [r, u, c, hc, h], scratch);
}
