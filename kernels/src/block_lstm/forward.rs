//! `BlockLSTM` and `BlockLSTMV2`.

use ndarray::{ArrayView2, ArrayViewMut2, Axis, Slice};

use super::Variant;
use super::forward_steps::ForwardSteps;
use crate::gemm::{self, Given, Right, Target, weights_len};
use crate::lstm::Attributes;
use crate::lstm::step::LstmStep;
use crate::ops::Sizes;
use crate::sequence::{all_rows, at_step, state_before, steps_at_once};
use crate::{Context, Element, Error, Storage};

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
    let rows = steps_at_once(time, batch).saturating_mul(batch);
    weights.saturating_add(rows.saturating_mul(cell_size).saturating_mul(4))
}

pub(crate) fn compute<E: Storage>(
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
    let step = LstmStep {
        isa: context.isa,
        attributes: *attributes,
        order,
        b,
        peepholes: [wci, wcf, wco],
    };
    let forward_steps = ForwardSteps::new(context, step, &sizes, seq_len_max, w_h, weights);
    let at_once = steps_at_once(sizes.time, sizes.batch);
    for first in (0..seq_len_max).step_by(at_once) {
        let steps = first..seq_len_max.min(first + at_once);
        let rows = steps.len() * sizes.batch;
        let products = &mut products[..rows * 4 * sizes.cell_size];
        let mut products =
            ArrayViewMut2::from_shape((rows, 4 * sizes.cell_size), products).expect("of this size");
        input_products(context, all_rows(x, steps.clone()), w_x, products.view_mut());
        for (t, products) in steps.zip(products.axis_chunks_iter(Axis(0), sizes.batch)) {
            let ([_, cs, .., h], step) = at_step(&mut outputs, t);
            let cs_prev = state_before(t, cs_prev, cs.view());
            let h_prev = state_before(t, h_prev, h.view());
            forward_steps.step(context, products, cs_prev, h_prev, step);
        }
    }
}

/// `x @ w_x` of several steps.
fn input_products<E: Storage>(
    context: &Context<'_>,
    x: ArrayView2<'_, E>,
    w_x: ArrayView2<'_, E>,
    out: ArrayViewMut2<'_, f32>,
) {
    let results = [Target { out, terms: () }];
    gemm::products(context, Given::RowMajor, x.ncols(), results, |tile, (), place| {
        tile.add(place.rows_of(x), Right::RowMajor(w_x));
    });
}
