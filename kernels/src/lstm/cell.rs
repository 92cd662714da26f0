//! `LSTMBlockCell`, the forward step.

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, Axis};

use super::Attributes;
use super::step::{self, ICFO, LstmStep};
use crate::executor::for_each;
use crate::gemm::{self, Right};
use crate::ops::{LSTM_BLOCK_CELL, Sizes, views};
use crate::{Context, Element, Error, Storage};

/// Inputs of [`block_cell`], named and ordered as in `tf.raw_ops.LSTMBlockCell`.
///
/// Without peepholes `wci`, `wcf` and `wco` are not read and may be of any length.
#[derive(Clone, Copy, Debug)]
pub struct BlockCellInputs<'a, E> {
    /// Input of the step, `[batch, input_size]`.
    pub x: ArrayView2<'a, E>,
    /// Cell state before the step, `[batch, cell_size]`.
    pub cs_prev: ArrayView2<'a, E>,
    /// Output of the step before, `[batch, cell_size]`.
    pub h_prev: ArrayView2<'a, E>,
    /// Weights, `[input_size + cell_size, 4 * cell_size]`.
    pub w: ArrayView2<'a, E>,
    /// Peephole weights of the input gate, `[cell_size]`.
    pub wci: ArrayView1<'a, E>,
    /// Peephole weights of the forget gate, `[cell_size]`.
    pub wcf: ArrayView1<'a, E>,
    /// Peephole weights of the output gate, `[cell_size]`.
    pub wco: ArrayView1<'a, E>,
    /// Biases, `[4 * cell_size]`.
    pub b: ArrayView1<'a, E>,
}

/// Outputs of [`block_cell`]. Previous contents do not matter.
#[derive(Debug)]
pub struct BlockCellOutputs<'a, E> {
    /// Input gate, `[batch, cell_size]`.
    pub i: ArrayViewMut2<'a, E>,
    /// Cell state, `[batch, cell_size]`.
    pub cs: ArrayViewMut2<'a, E>,
    /// Forget gate, `[batch, cell_size]`.
    pub f: ArrayViewMut2<'a, E>,
    /// Output gate, `[batch, cell_size]`.
    pub o: ArrayViewMut2<'a, E>,
    /// Cell input, `[batch, cell_size]`.
    pub ci: ArrayViewMut2<'a, E>,
    /// `tanh(cs)`, `[batch, cell_size]`.
    pub co: ArrayViewMut2<'a, E>,
    /// Output, `[batch, cell_size]`.
    pub h: ArrayViewMut2<'a, E>,
}

/// `LSTMBlockCell`: the forward step.
///
/// ```text
/// [i_bar | ci_bar | f_bar | o_bar] = [x | h_prev] @ w + b
/// i  = S(i_bar [+ wci * cs_prev])     f  = S(f_bar + forget_bias [+ wcf * cs_prev])
/// ci = tanh(ci_bar)                   cs = clip(i * ci + f * cs_prev)
/// o  = S(o_bar [+ wco * cs])          co = tanh(cs)          h = o * co
/// ```
///
/// The terms in brackets exist only with `use_peephole`. Half-precision data is converted to `f32`,
/// and every result rounded once; `forget_bias` and `cell_clip` are rounded to the element type
/// first. NaN survives the clip.
///
/// # Errors
///
/// A tensor of the wrong shape or layout; nothing is written then.
pub fn block_cell<E: Element>(
    context: &Context<'_>,
    attributes: &Attributes,
    inputs: BlockCellInputs<'_, E>,
    outputs: BlockCellOutputs<'_, E>,
) -> Result<(), Error> {
    let sizes = check(attributes.use_peephole, &inputs, &outputs)?;
    E::lstm_block_cell(context, sizes, attributes, inputs, outputs);
    Ok(())
}

fn check<E: Element>(
    use_peephole: bool,
    inputs: &BlockCellInputs<'_, E>,
    outputs: &BlockCellOutputs<'_, E>,
) -> Result<Sizes, Error> {
    let BlockCellInputs { x, cs_prev, h_prev, w, wci, wcf, wco, b } = inputs;
    let BlockCellOutputs { i, cs, f, o, ci, co, h } = outputs;
    LSTM_BLOCK_CELL.check_views(
        use_peephole,
        views![x, cs_prev, h_prev, w, wci, wcf, wco, b],
        views![i, cs, f, o, ci, co, h],
    )
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    sizes: Sizes,
    attributes: &Attributes,
    inputs: BlockCellInputs<'_, E>,
    outputs: BlockCellOutputs<'_, E>,
) {
    let BlockCellInputs { x, cs_prev, h_prev, w, wci, wcf, wco, b } = inputs;
    let BlockCellOutputs { i, cs, f, o, ci, co, h } = outputs;
    let Sizes { batch, input_size, cell_size, .. } = sizes;
    let Context { isa, executor } = *context;
    let step =
        LstmStep { isa, attributes: *attributes, order: ICFO, b, peepholes: [wci, wcf, wco] };
    let (w_x, w_h) = w.split_at(Axis(0), input_size);
    let tiling = gemm::cell_tiling(context, (batch, cell_size), 4);
    let tiles = tiling.tiles_of([i, cs, f, o, ci, co, h]);
    let cost = gemm::cost(4 * tiling.rows * tiling.columns, input_size + cell_size);
    for_each(executor, cost, tiles, |(place, outputs)| {
        let strips = step::strips(ICFO, cell_size, &place.columns);
        gemm::tile(isa, place.rows.len(), &strips, |tile| {
            tile.add(place.rows_of(x), Right::RowMajor(w_x));
            tile.add(place.rows_of(h_prev), Right::RowMajor(w_h));
            step.finish(tile, &place, cell_size, place.of(cs_prev), outputs);
        });
    });
}
