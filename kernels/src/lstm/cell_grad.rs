//! `LSTMBlockCellGrad`, the backward step.

use ndarray::Axis;

use crate::activation::{Functions, Usual};
use crate::elementwise::{self, Computed, Elements, Equation};
use crate::ops::{Keeps, LSTM_BLOCK_CELL_GRAD, Sizes};
use crate::simd::Simd;
use crate::{Context, Element, Error, Storage};

pub use crate::ops::lstm::{BlockCellGradInputs, BlockCellGradOutputs};

/// `LSTMBlockCellGrad`: the backward step, up to the gates' pre-activations.
///
/// ```text
/// do  = h_grad * co * o * (1 - o)
/// dcs = cs_grad + h_grad * o * (1 - co * co) [+ do * wco]
/// di  = dcs * ci * i * (1 - i)      dci = dcs * i * (1 - ci * ci)
/// df  = dcs * cs_prev * f * (1 - f)
/// dicfo = [di | dci | df | do]
/// cs_prev_grad = dcs * f [+ di * wci + df * wcf]
/// wci_grad = [sum_B di * cs_prev]   wcf_grad = [sum_B df * cs_prev]   wco_grad = [sum_B do * cs]
/// ```
///
/// The terms in brackets exist only with `use_peephole`. The equations follow from the forward
/// step by the chain rule, except for the clip. Its gradient is passed on unchanged, as TensorFlow
/// does: the operation has no `cell_clip`. Data of 16 bits is converted to `f32`, and every
/// result is rounded once.
///
/// # Errors
///
/// A tensor of the wrong shape or layout; nothing is written then.
pub fn block_cell_grad<E: Element>(
    context: &Context<'_>,
    use_peephole: bool,
    inputs: BlockCellGradInputs<'_, E>,
    outputs: BlockCellGradOutputs<'_, E>,
) -> Result<(), Error> {
    let op = &LSTM_BLOCK_CELL_GRAD;
    let sizes = op.check_call(use_peephole, &inputs, &outputs, Keeps::All)?;
    E::lstm_block_cell_grad(context, sizes, use_peephole, inputs, outputs);
    Ok(())
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    Sizes { batch, cell_size, .. }: Sizes,
    use_peephole: bool,
    inputs: BlockCellGradInputs<'_, E>,
    outputs: BlockCellGradOutputs<'_, E>,
) {
    let BlockCellGradOutputs { cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad } = outputs;
    let BlockCellGradInputs { cs_prev, i, f, o, ci, co, cs_grad, h_grad, .. } = inputs;

    let (di, rest) = dicfo.split_at(Axis(1), cell_size);
    let (dci, rest) = rest.split_at(Axis(1), cell_size);
    let (df, d_o) = rest.split_at(Axis(1), cell_size);
    let gradients = [cs_prev_grad, di, dci, df, d_o];
    let mut sums = [wci_grad, wcf_grad, wco_grad];
    if use_peephole {
        // Every row of the batch has the same weights.
        let [wci, wcf, wco] = [&inputs.wci, &inputs.wcf, &inputs.wco]
            .map(|w| w.broadcast((batch, cell_size)).expect("of length cell_size"));
        let inputs = [cs_prev, i, f, o, ci, co, cs_grad, h_grad, inputs.cs, wci, wcf, wco];
        let sums = sums.map(|sum| sum.insert_axis(Axis(0)));
        elementwise::map(context, Gradients, inputs, gradients, sums);
    } else {
        sums.iter_mut().for_each(|sum| sum.fill(E::ZERO));
        let inputs = [cs_prev, i, f, o, ci, co, cs_grad, h_grad];
        elementwise::map(context, Gradients, inputs, gradients, []);
    }
}

#[derive(Clone, Copy)]
struct Gradients;

impl Equation<8, 5> for Gradients {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 8, 5>) -> Computed<S::F32, 5> {
        let Elements { inputs, .. } = at;
        (gradients(simd, Usual, inputs), [], [])
    }
}

/// With peepholes.
impl Equation<12, 5, 3> for Gradients {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 12, 5>) -> Computed<S::F32, 5, 0, 3> {
        let Elements { inputs: [inputs @ .., cs, wci, wcf, wco], .. } = at;
        let (gradients, terms) = peephole_gradients(simd, inputs, cs, [wci, wcf, wco]);
        (gradients, [], terms)
    }
}

/// `[cs_prev_grad, di, dci, df, do]` without peepholes, from
/// `[cs_prev, i, f, o, ci, co, cs_grad, h_grad]`.
#[inline(always)]
pub(crate) fn gradients<S: Simd>(
    simd: S,
    functions: impl Functions,
    inputs: [S::F32; 8],
) -> [S::F32; 5] {
    let [cs_prev, i, f, o, ci, co, cs_grad, h_grad] = inputs;
    let [d_o, dcs] = through_output(simd, functions, o, co, cs_grad, h_grad);
    let [di, dci, df] = through_cell(simd, functions, dcs, [cs_prev, i, f, ci]);
    [dcs * f, di, dci, df, d_o]
}

/// [`gradients`] with peepholes `[wci, wcf, wco]` and the usual functions, and the terms of the sums over the batch that are
/// the gradients with respect to those.
#[inline(always)]
pub(crate) fn peephole_gradients<S: Simd>(
    simd: S,
    inputs: [S::F32; 8],
    cs: S::F32,
    [wci, wcf, wco]: [S::F32; 3],
) -> ([S::F32; 5], [S::F32; 3]) {
    let [cs_prev, i, f, o, ci, co, cs_grad, h_grad] = inputs;
    let [d_o, dcs] = through_output(simd, Usual, o, co, cs_grad, h_grad);
    let dcs = dcs + d_o * wco;
    let [di, dci, df] = through_cell(simd, Usual, dcs, [cs_prev, i, f, ci]);
    let cs_prev_grad = dcs * f + di * wci + df * wcf;
    ([cs_prev_grad, di, dci, df, d_o], [di * cs_prev, df * cs_prev, d_o * cs])
}

/// `[do, dcs]`, without peepholes: the gradients of the output and the cell state, through
/// `h = o * tanh(cs)`.
#[inline(always)]
pub(crate) fn through_output<S: Simd>(
    simd: S,
    functions: impl Functions,
    o: S::F32,
    co: S::F32,
    cs_grad: S::F32,
    h_grad: S::F32,
) -> [S::F32; 2] {
    let d_o = functions.gate_grad(simd, h_grad * co, o);
    [d_o, cs_grad + functions.state_grad(simd, h_grad * o, co)]
}

/// `[di, dci, df]`: the gradient of the cell state, through `cs = i * ci + f * cs_prev`.
#[inline(always)]
pub(crate) fn through_cell<S: Simd>(
    simd: S,
    functions: impl Functions,
    dcs: S::F32,
    [cs_prev, i, f, ci]: [S::F32; 4],
) -> [S::F32; 3] {
    let di = functions.gate_grad(simd, dcs * ci, i);
    let dci = functions.state_grad(simd, dcs * i, ci);
    let df = functions.gate_grad(simd, dcs * cs_prev, f);
    [di, dci, df]
}
