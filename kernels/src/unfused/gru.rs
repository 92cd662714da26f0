//! `BlockcellGRUCell`: the forward step of a plain GRU cell, for types and functions that `GRUBlockCell` does not
//! support.

use ndarray::{ArrayView1, ArrayViewMut3, Axis};

use super::memory;
use crate::block_gru::forward::{GruSequence, GruWeights, forward_scratch};
use crate::gru::step::{GruOrder, GruStep};
use crate::ops::{Keeps, Sizes, UNFUSED_GRU_CELL};
use crate::recurrence::Lengths;
use crate::{Activations, Context, Element, Error, Storage};

pub use crate::ops::gru::{BlockCellInputs as GruCellInputs, BlockCellOutputs as GruCellOutputs};

/// The scratch memory that [`gru_cell`] needs: the number of `f32`, and the number of elements `E`.
#[must_use]
pub fn gru_cell_scratch([batch, input_size, cell_size]: [usize; 3]) -> [usize; 2] {
    let sizes = Sizes { time: 1, batch, input_size, cell_size, optional: [0; 3] };
    [forward_scratch(&sizes), batch.saturating_mul(cell_size)]
}

/// `BlockcellGRUCell`: the forward step of [`crate::gru`], with these functions.
///
/// # Errors
///
/// If a tensor has the wrong shape or layout, or if the scratch memory is too short. Nothing is written then.
pub fn gru_cell<E: Element>(
    context: &Context<'_>,
    activations: Activations,
    inputs: GruCellInputs<'_, E>,
    outputs: GruCellOutputs<'_, E>,
    (scratch, elements): (&mut [f32], &mut [E]),
) -> Result<(), Error> {
    let op = &UNFUSED_GRU_CELL;
    let sizes = op.check_call(false, &inputs, &outputs, Keeps::All)?;
    let needed = gru_cell_scratch([sizes.batch, sizes.input_size, sizes.cell_size]);
    memory::check(op.name, needed, [scratch.len(), elements.len()])?;
    E::unfused_gru_cell(context, activations, inputs, outputs, scratch, elements);
    Ok(())
}

/// A sequence of one step.
pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    activations: Activations,
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
        w_x: Some(GruWeights::Apart([ru_x, c_x])),
        w_h: GruWeights::Apart([ru_h, c_h]),
        step: GruStep { activations, order: GruOrder::ResetFirst, b_ru, b_c, b_hc: None },
    };
    let hc = ArrayViewMut3::from_shape((1, batch, cell), &mut memory[..batch * cell]);
    let GruCellOutputs { r, u, c, h } = outputs;
    let [r, u, c, h] = [r, u, c, h].map(|one| one.insert_axis(Axis(0)));
    sequence.compute(context, [r, u, c, hc.expect("it was measured"), h], scratch);
}
