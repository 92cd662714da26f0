//! `BlockLSTM` and `BlockLSTMV2`.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2, Axis, Slice};

use super::Variant;
use crate::executor::for_each;
use crate::gemm::{self, Given, Left, Product, Right, Weights, weights_len};
use crate::lstm::Attributes;
use crate::lstm::step::{self, Step};
use crate::ops::Sizes;
use crate::tiles::{Tiling, all_rows, at_step, state_before};
use crate::{Context, Element, Error};

pub use crate::ops::block_lstm::{Inputs, Outputs};

/// `BlockLSTM` and `BlockLSTMV2`: the forward steps.
///
/// For `t` from 0 to `seq_len_max - 1`, where `cs[-1]` and `h[-1]` are `cs_prev` and `h_prev`:
///
/// ```text
/// [i_bar | ci_bar | f_bar | o_bar] = [x[t] | h[t-1]] @ w + b
///                                       (V2: [i_bar | f_bar | ci_bar | o_bar] = ...)
/// i[t]  = S(i_bar [+ wci * cs[t-1]])     f[t]  = S(f_bar + forget_bias [+ wcf * cs[t-1]])
/// ci[t] = tanh(ci_bar)                   cs[t] = clip(i[t] * ci[t] + f[t] * cs[t-1])
/// o[t]  = S(o_bar [+ wco * cs[t]])       co[t] = tanh(cs[t])        h[t] = o[t] * co[t]
/// ```
///
/// The terms in brackets exist only with `use_peephole`. Half-precision data is converted to `f32`,
/// and every result is rounded once. The state that enters a step is the stored, rounded state of
/// the step before. `forget_bias` (0 in V2, whatever the attribute says) and `cell_clip` are rounded
/// to the element type first.
///
/// `scratch` is memory for intermediate values. It has at least [`forward_scratch`] elements, of
/// which neither the values before the call nor those after it matter.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, `seq_len_max` above `time`, too short a `scratch`; nothing
/// is written then.
pub fn forward<E: Element>(
    context: &Context<'_>,
    variant: Variant,
    attributes: &Attributes,
    inputs: Inputs<'_, E>,
    outputs: Outputs<'_, E>,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let op = variant.op();
    let sizes = Inputs::check(op, attributes.use_peephole, &inputs, &outputs)?;
    op.check_steps(&sizes, [inputs.seq_len_max as i128])?;
    let scratch = op.check_scratch(forward_scratch(&sizes), scratch)?;
    let forget_bias = match variant {
        Variant::BlockLstm => attributes.forget_bias,
        Variant::BlockLstmV2 => 0.0,
    };
    let attributes = Attributes { forget_bias, ..*attributes };
    E::block_lstm(context, sizes, variant, &attributes, inputs, outputs, scratch);
    Ok(())
}

/// How many elements of scratch memory [`forward`] needs; `usize::MAX` if more than can be counted.
#[must_use]
pub fn forward_scratch(sizes: &Sizes) -> usize {
    let Sizes { time, batch, cell_size, .. } = *sizes;
    let weights = weights_len(cell_size, 4, cell_size);
    let rows = gemm::steps_at_once(time, batch).saturating_mul(batch);
    weights.saturating_add(rows.saturating_mul(cell_size).saturating_mul(4))
}

pub(crate) fn compute<E: Element>(
    context: &Context<'_>,
    sizes: Sizes,
    variant: Variant,
    attributes: &Attributes,
    inputs: Inputs<'_, E>,
    outputs: Outputs<'_, E>,
    scratch: &mut [f32],
) {
    let Inputs { seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b } = inputs;
    let Outputs { i, cs, f, o, ci, co, h } = outputs;
    let mut outputs = [i, cs, f, o, ci, co, h];
    for output in &mut outputs {
        output.slice_axis_mut(Axis(0), Slice::from(seq_len_max..)).fill(E::ZERO);
    }
    if sizes.batch == 0 || sizes.cell_size == 0 {
        return;
    }
    let order = variant.order();
    let (w_x, w_h) = w.split_at(Axis(0), sizes.input_size);
    let (weights, products) =
        scratch.split_at_mut(weights_len(sizes.cell_size, 4, sizes.cell_size));
    let step =
        Step { isa: context.isa, attributes: *attributes, order, b, peepholes: [wci, wcf, wco] };
    let recurrence = Recurrence::new(context, step, &sizes, seq_len_max, w_h, weights);
    let at_once = gemm::steps_at_once(sizes.time, sizes.batch);
    for first in (0..seq_len_max).step_by(at_once) {
        let steps = first..seq_len_max.min(first + at_once);
        let rows = steps.len() * sizes.batch;
        let products = &mut products[..rows * 4 * sizes.cell_size];
        let mut products =
            ArrayViewMut2::from_shape((rows, 4 * sizes.cell_size), products).expect("of this size");
        input_products(context, all_rows(x, steps.clone()), w_x, products.view_mut());
        for (t, products) in steps.zip(products.axis_chunks_iter(Axis(0), sizes.batch)) {
            let ([_, cs, .., h], now) = at_step(&mut outputs, t);
            let cs_prev = state_before(t, cs_prev, cs.view());
            let h_prev = state_before(t, h_prev, h.view());
            recurrence.step(context, products, cs_prev, h_prev, now);
        }
    }
}

/// `x @ w_x` of several steps.
fn input_products<E: Element>(
    context: &Context<'_>,
    x: ArrayView2<'_, E>,
    w_x: ArrayView2<'_, E>,
    out: ArrayViewMut2<'_, f32>,
) {
    let results = [Product { out, terms: () }];
    gemm::products(context, Given::ByRows, x.ncols(), results, |tile, (), place| {
        tile.add(Left::rows(x, place), Right::Rows(w_x));
    });
}

/// What is the same in every step.
struct Recurrence<'a, E> {
    step: Step<'a, E>,
    tiling: Tiling,
    cell_size: usize,
    /// The state's rows of w, and a packed copy if the steps are enough for that to pay.
    w_h: ArrayView2<'a, E>,
    weights: Option<Weights<'a>>,
}

/// Steps from which on it pays to pack the weights.
const WORTH_PACKING: usize = 9;

impl<'a, E: Element> Recurrence<'a, E> {
    fn new(
        context: &Context<'_>,
        step: Step<'a, E>,
        &Sizes { batch, cell_size, .. }: &Sizes,
        steps: usize,
        w_h: ArrayView2<'a, E>,
        weights: &'a mut [f32],
    ) -> Self {
        let tiling = gemm::step_tiling(context, (batch, cell_size), 4);
        let strips = |cells: &Range<usize>| step::strips(step.order, cell_size, cells);
        let weights = (steps >= WORTH_PACKING).then(|| {
            let right = Right::Rows(w_h);
            Weights::pack(context, tiling, cell_size, cell_size, right, strips, weights)
        });
        Recurrence { step, tiling, cell_size, w_h, weights }
    }

    /// One step. `products` are those of its x.
    fn step(
        &self,
        context: &Context<'_>,
        products: ArrayView2<'_, f32>,
        cs_prev: ArrayView2<'_, E>,
        h_prev: ArrayView2<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 7],
    ) {
        let Recurrence { step, tiling, cell_size, w_h, weights } = *self;
        let cost = gemm::cost(4 * tiling.rows * tiling.columns, cell_size);
        for_each(context.executor, cost, tiling.tiles_of(outputs), |(place, outputs)| {
            let strips = step::strips(step.order, cell_size, &place.columns);
            gemm::tile(step.isa, place.rows.len(), &strips, |tile| {
                tile.set(place.rows_of(products));
                let h_prev = Left::rows(h_prev, &place);
                match weights {
                    Some(weights) => tile.add(h_prev, weights.at(&place)),
                    None => tile.add(h_prev, Right::Rows(w_h)),
                }
                step.finish(tile, &place, cell_size, place.of(cs_prev), outputs);
            });
        });
    }
}
