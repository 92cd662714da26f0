//! `GRUBlockCell`, the forward step.

use ndarray::{ArrayView2, ArrayViewMut2, Axis};

use super::step::{self, GruStep};
use crate::executor::for_each;
use crate::gemm::{self, Right};
use crate::ops::{GRU_BLOCK_CELL, Keeps, Sizes};
use crate::{Context, Error};

pub use crate::ops::gru::{BlockCellInputs, BlockCellOutputs};

/// `GRUBlockCell`: the forward step.
///
/// ```text
/// [r_bar | u_bar] = [x | h_prev] @ w_ru + b_ru        r = S(r_bar)   u = S(u_bar)
/// c = tanh([x | r * h_prev] @ w_c + b_c)
/// h = u * h_prev + (1 - u) * c
/// ```
///
/// `scratch` is memory for intermediate values. It has at least [`block_cell_scratch`] elements, of
/// which neither the values before the call nor those after it matter.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, too short a `scratch`; nothing is written then.
pub fn block_cell(
    context: &Context<'_>,
    inputs: BlockCellInputs<'_>,
    outputs: BlockCellOutputs<'_>,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let sizes = BlockCellInputs::check(&GRU_BLOCK_CELL, false, &inputs, &outputs, Keeps::All)?;
    let scratch = GRU_BLOCK_CELL.check_scratch(block_cell_scratch(&sizes), scratch)?;
    compute(context, sizes, inputs, outputs, scratch);
    Ok(())
}

/// How many elements of scratch memory [`block_cell`] needs; `usize::MAX` if more than can be
/// counted.
#[must_use]
pub fn block_cell_scratch(sizes: &Sizes) -> usize {
    sizes.batch.saturating_mul(sizes.cell_size)
}

fn compute(
    context: &Context<'_>,
    sizes: Sizes,
    inputs: BlockCellInputs<'_>,
    outputs: BlockCellOutputs<'_>,
    scratch: &mut [f32],
) {
    let shape = (sizes.batch, sizes.cell_size);
    let BlockCellOutputs { r, mut u, c, h } = outputs;
    let mut hr = ArrayViewMut2::from_shape(shape, scratch).expect("of this size");
    let BlockCellInputs { b_ru, b_c, .. } = inputs;
    let step = GruStep { isa: context.isa, cell_size: sizes.cell_size, b_ru, b_c };
    gates(context, step, &inputs, [r, u.view_mut(), hr.view_mut()]);
    candidate(context, step, &inputs, hr.view(), u.view(), [c, h]);
}

/// r, u and `r * h_prev`.
fn gates(
    context: &Context<'_>,
    step: GruStep<'_, f32>,
    inputs: &BlockCellInputs<'_>,
    outputs: [ArrayViewMut2<'_, f32>; 3],
) {
    let BlockCellInputs { x, h_prev, w_ru, .. } = *inputs;
    let (batch, cell_size) = h_prev.dim();
    let (w_x, w_h) = w_ru.split_at(Axis(0), x.ncols());
    let tiling = gemm::cell_tiling(context, (batch, cell_size), 2);
    let cost = gemm::cost(tiling, 2, w_ru.nrows());
    for_each(context.executor, cost, tiling.tiles_of(outputs), |(place, outputs)| {
        let strips = step::gates(cell_size, &place.columns);
        gemm::tile(step.isa, place.rows.len(), &strips, |tile| {
            tile.add(place.rows_of(x), Right::RowMajor(w_x));
            tile.add(place.rows_of(h_prev), Right::RowMajor(w_h));
            step.finish_gates(tile, &place, h_prev, outputs);
        });
    });
}

/// c and h.
fn candidate(
    context: &Context<'_>,
    step: GruStep<'_, f32>,
    inputs: &BlockCellInputs<'_>,
    hr: ArrayView2<'_, f32>,
    u: ArrayView2<'_, f32>,
    outputs: [ArrayViewMut2<'_, f32>; 2],
) {
    let BlockCellInputs { x, h_prev, w_c, .. } = *inputs;
    let (batch, cell_size) = h_prev.dim();
    let (w_x, w_h) = w_c.split_at(Axis(0), x.ncols());
    let tiling = gemm::cell_tiling(context, (batch, cell_size), 1);
    let cost = gemm::cost(tiling, 1, w_c.nrows());
    for_each(context.executor, cost, tiling.tiles_of(outputs), |(place, outputs)| {
        gemm::tile_at(step.isa, &place, |tile| {
            tile.add(place.rows_of(x), Right::RowMajor(w_x));
            tile.add(place.rows_of(hr), Right::RowMajor(w_h));
            step.finish_candidate(tile, &place, h_prev, u, outputs);
        });
    });
}
