//! `BlockLSTM` and `BlockLSTMV2`.

use ndarray::{ArrayView1, ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis, Slice};

use super::Variant;
use super::forward_steps::ForwardSteps;
use crate::gemm::{self, Given, Right, Target, weights_len};
use crate::lstm::Attributes;
use crate::lstm::step::LstmStep;
use crate::ops::{Sizes, View, views};
use crate::sequence::{all_rows, at_step, state_before, steps_at_once};
use crate::{Context, Element, Error, Storage};

/// Inputs of [`forward`], named and ordered as in `tf.raw_ops.BlockLSTM` and `BlockLSTMV2`.
///
/// `x` is not read in steps from `seq_len_max` on. Without peepholes `wci`, `wcf` and `wco` are not
/// read and may be of any length.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a, E> {
    /// How many steps there are to do, at most `time`.
    pub seq_len_max: usize,
    /// Inputs of the steps, `[time, batch, input_size]`.
    pub x: ArrayView3<'a, E>,
    /// Cell state before the first step, `[batch, cell_size]`.
    pub cs_prev: ArrayView2<'a, E>,
    /// Output before the first step, `[batch, cell_size]`.
    pub h_prev: ArrayView2<'a, E>,
    /// Weights, `[input_size + cell_size, 4 * cell_size]`, columns in the order of the variant.
    pub w: ArrayView2<'a, E>,
    /// Peephole weights of the input gate, `[cell_size]`.
    pub wci: ArrayView1<'a, E>,
    /// Peephole weights of the forget gate, `[cell_size]`.
    pub wcf: ArrayView1<'a, E>,
    /// Peephole weights of the output gate, `[cell_size]`.
    pub wco: ArrayView1<'a, E>,
    /// Biases, `[4 * cell_size]`, in the order of the variant.
    pub b: ArrayView1<'a, E>,
}

/// Outputs of [`forward`], zero in steps from `seq_len_max` on. Previous contents do not matter.
#[derive(Debug)]
pub struct Outputs<'a, E> {
    /// Input gate, `[time, batch, cell_size]`.
    pub i: ArrayViewMut3<'a, E>,
    /// Cell state, `[time, batch, cell_size]`.
    pub cs: ArrayViewMut3<'a, E>,
    /// Forget gate, `[time, batch, cell_size]`.
    pub f: ArrayViewMut3<'a, E>,
    /// Output gate, `[time, batch, cell_size]`.
    pub o: ArrayViewMut3<'a, E>,
    /// Cell input, `[time, batch, cell_size]`.
    pub ci: ArrayViewMut3<'a, E>,
    /// `tanh(cs)`, `[time, batch, cell_size]`.
    pub co: ArrayViewMut3<'a, E>,
    /// Output, `[time, batch, cell_size]`.
    pub h: ArrayViewMut3<'a, E>,
}

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
/// and every result rounded once: the state that enters a step is that of the step before as it is
/// stored. `forget_bias` (0 in V2, whatever the attribute says) and `cell_clip` are rounded to the
/// element type first.
///
/// `scratch` is memory for intermediate values, at least [`forward_scratch`] elements; neither what
/// it holds before nor after matters.
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
    let sizes = check(variant, attributes.use_peephole, &inputs, &outputs)?;
    let scratch = variant.op().check_scratch(forward_scratch(&sizes), scratch)?;
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

fn check<E: Element>(
    variant: Variant,
    use_peephole: bool,
    inputs: &Inputs<'_, E>,
    outputs: &Outputs<'_, E>,
) -> Result<Sizes, Error> {
    let op = variant.op();
    let Inputs { seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b } = inputs;
    let Outputs { i, cs, f, o, ci, co, h } = outputs;
    let sizes = op.check_views(
        use_peephole,
        views![View::SCALAR, x, cs_prev, h_prev, w, wci, wcf, wco, b],
        views![i, cs, f, o, ci, co, h],
    )?;
    op.check_steps(&sizes, [*seq_len_max as i128])?;
    Ok(sizes)
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
