//! `GRUBlockCell`, the forward step.

use ndarray::{ArrayViewMut2, Axis};

use super::step::{GruOrder, GruStep};
use crate::gemm::{self, StepShape};
use crate::ops::{GRU_BLOCK_CELL, Keeps, Sizes};
use crate::recurrence::{At, Input, Product};
use crate::{Activations, Context, Error};

pub use crate::ops::gru::{BlockCellInputs, BlockCellOutputs};

/// `GRUBlockCell`: the forward step, as defined by [`GRU_BLOCK_CELL`].
///
/// `scratch` is memory for intermediate values, with at least [`block_cell_scratch`] elements. Its contents are
/// unspecified before and after the call.
///
/// # Errors
///
/// If a tensor has the wrong shape or layout, or if `scratch` is too short. Nothing is written then.
pub fn block_cell(
    context: &Context<'_>,
    inputs: BlockCellInputs<'_, f32>,
    outputs: BlockCellOutputs<'_, f32>,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let sizes = GRU_BLOCK_CELL.check_call(false, &inputs, &outputs, Keeps::All)?;
    let scratch = GRU_BLOCK_CELL.check_scratch(block_cell_scratch(&sizes), scratch)?;
    compute(context, sizes, inputs, outputs, scratch);
    Ok(())
}

/// The number of elements of scratch memory that [`block_cell`] needs; `usize::MAX` on overflow.
#[must_use]
pub fn block_cell_scratch(sizes: &Sizes) -> usize {
    sizes.batch.saturating_mul(sizes.cell_size)
}

fn compute(
    context: &Context<'_>,
    sizes: Sizes,
    inputs: BlockCellInputs<'_, f32>,
    outputs: BlockCellOutputs<'_, f32>,
    scratch: &mut [f32],
) {
    let BlockCellInputs { x, h_prev, w_ru, w_c, b_ru, b_c } = inputs;
    let BlockCellOutputs { r, u, c, h } = outputs;
    let shape = (sizes.batch, sizes.cell_size);
    let hr = ArrayViewMut2::from_shape(shape, scratch).expect("of this size");
    let [(ru_x, ru_h), (c_x, c_h)] = [w_ru, w_c].map(|w| w.split_at(Axis(0), sizes.input_size));
    let tiling = |gates| gemm::cell_tiling(context, StepShape::new(shape, gates));
    let (gates, candidate) = (Product::plain(tiling(2), ru_h), Product::plain(tiling(1), c_h));
    let at = At::only_step(context);
    let [ru_x, c_x] = [ru_x, c_x].map(|w_x| Input::Product(x, w_x));
    let gates = gates.after(ru_x, at.rows, Some(h_prev));
    let step = GruStep {
        activations: Activations::default(),
        order: GruOrder::ResetFirst,
        b_ru,
        b_c,
        b_hc: None,
        u_weighs_c: false,
    };
    step.reset_before(at, gates, (c_x, &candidate), h_prev, [r, u, c, hr, h]);
}
