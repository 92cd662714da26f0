//! `BlockcellLSTMCellGrad`: the backward step of a plain LSTM cell.

use ndarray::{ArrayView1, ArrayView2, ArrayViewD, ArrayViewMut1, ArrayViewMut2, ArrayViewMutD};

use super::lstm::broadcast;
use super::lstm_grad_sums;
use crate::error::known;
use crate::lstm::{BlockCellGradInputs, BlockCellGradOutputs};
use crate::ops::{PartialShape, Sizes};
use crate::shapes::{Dim, bind, check_layout, check_output, check_size, shape_of};
use crate::{Context, Element, Error, Storage};

/// The operation's name in TensorFlow.
pub const LSTM_CELL_GRAD: &str = "BlockcellLSTMCellGrad";

/// Inputs of [`lstm_cell_grad`].
#[derive(Clone, Debug)]
pub struct LstmCellGradInputs<'a, E> {
    /// Input gate, forget gate, output gate and cell input, `[batch, cell]` each.
    pub gates: [ArrayView2<'a, E>; 4],
    /// `tanh(cs)`, of the shape of cs.
    pub co: ArrayViewD<'a, E>,
    /// Cell state of the step before, of a shape that broadcasts to that of cs; None for zeros.
    pub cs_prev: Option<ArrayViewD<'a, E>>,
    /// Summands of the gradient with respect to cs, of shapes that broadcast to that of cs.
    pub cs_grad: Vec<ArrayViewD<'a, E>>,
    /// The same for h.
    pub h_grad: Vec<ArrayViewD<'a, E>>,
}

/// Outputs of [`lstm_cell_grad`]. Previous contents do not matter.
#[derive(Debug)]
pub struct LstmCellGradOutputs<'a, E> {
    /// With respect to cs_prev, of the shape of cs, also where cs_prev has fewer rows.
    pub cs_prev_grad: ArrayViewMutD<'a, E>,
    /// With respect to the gates' pre-activations, `[batch, 4 * cell]`.
    pub dicfo: ArrayViewMut2<'a, E>,
}

/// What is known of the shapes of the inputs.
#[derive(Clone, Debug)]
pub struct LstmCellGradShapes<'s> {
    /// Those of i, f, o, ci and co.
    pub saved: &'s [PartialShape],
    /// That of cs_prev, if there is one.
    pub cs_prev: &'s [PartialShape],
    /// Those of the summands.
    pub cs_grad: &'s [PartialShape],
    /// Those of the summands.
    pub h_grad: &'s [PartialShape],
    /// Whether the cell state may be larger than `[batch, cell]`, because cs_prev is.
    pub sums_to_gates: bool,
}

/// The shapes of [`lstm_cell_grad`]'s outputs, as far as they follow from what is known of the inputs'
/// shapes.
///
/// # Errors
///
/// [`Error::ListShape`] for the first tensor at odds with those before it, [`Error::Overflow`] for
/// an output that cannot be addressed.
pub fn lstm_cell_grad_shapes(
    shapes: &LstmCellGradShapes<'_>,
) -> Result<[Vec<Option<usize>>; 2], Error> {
    let (mut batch, mut cell) = (None, None);
    let op = LSTM_CELL_GRAD;
    let (gates, co) = shapes.saved.split_at(4);
    for (gate, name) in gates.iter().zip(["i", "f", "o", "ci"]) {
        let dims = &mut [Dim::new("batch", &mut batch), Dim::new("cell", &mut cell)];
        bind(op, (name, 0), gate, dims)?;
    }
    let state = state_shape(shapes, [batch, cell], &co[0])?;
    let lists =
        [("cs_prev", shapes.cs_prev), ("cs_grad", shapes.cs_grad), ("h_grad", shapes.h_grad)];
    for (name, list) in lists {
        for (index, shape) in list.iter().enumerate() {
            check_broadcasts((name, index), shape, &state)?;
        }
    }
    let columns = cell.and_then(|cell| cell.checked_mul(4));
    check_size(op, "dicfo", "[batch, 4 * cell]", &[batch, columns.or(cell.map(|_| usize::MAX))])?;
    check_size(op, "cs_prev_grad", "the shape of cs", &state)?;
    Ok([state, vec![batch, columns]])
}

/// The shape of the cell state, as far as it is known. One of unknown rank is taken to be a matrix.
fn state_shape(
    shapes: &LstmCellGradShapes<'_>,
    gate: [Option<usize>; 2],
    co: &PartialShape,
) -> Result<Vec<Option<usize>>, Error> {
    let state = match shapes.cs_prev {
        [Some(cs_prev)] if shapes.sums_to_gates => broadcast(&gate, cs_prev),
        [None] if shapes.sums_to_gates => None,
        _ => Some(gate.to_vec()),
    };
    let (Some(state), Some(co)) = (&state, co) else {
        return Ok(state.or_else(|| co.clone()).unwrap_or_else(|| vec![None; 2]));
    };
    let fits = |(left, right): (&Option<usize>, &Option<usize>)| {
        left.zip(*right).is_none_or(|(left, right)| left == right)
    };
    if state.len() != co.len() || !state.iter().zip(co).all(fits) {
        let expected = format!("[{}], which is that of cs", known(state));
        let (op, got) = (LSTM_CELL_GRAD, co.clone());
        return Err(Error::ListShape { op, tensor: "co", index: 0, expected, got });
    }
    Ok(state.iter().zip(co).map(|(left, right)| left.or(*right)).collect())
}

/// Checks that a tensor can be broadcast to the cell state, as far as its shape is known.
fn check_broadcasts(
    (tensor, index): (&'static str, usize),
    got: &PartialShape,
    to: &[Option<usize>],
) -> Result<(), Error> {
    let Some(got) = got else { return Ok(()) };
    let fits = |(got, to): (&Option<usize>, &Option<usize>)| match (got, to) {
        (Some(1) | None, _) | (_, None) => true,
        (got, to) => got == to,
    };
    if got.len() <= to.len() && got.iter().rev().zip(to.iter().rev()).all(fits) {
        return Ok(());
    }
    let (op, got) = (LSTM_CELL_GRAD, got.clone());
    let expected = format!("the shape of cs, [{}], or one that broadcasts to it", known(to));
    Err(Error::ListShape { op, tensor, index, expected, got })
}

/// How many elements of scratch memory [`lstm_cell_grad`] needs, by the sizes of a gate, the shape of co,
/// and those of cs_prev, if there is one, and of the summands.
#[must_use]
pub fn lstm_cell_grad_scratch(
    gate: (usize, usize),
    co: &[usize],
    lists: [&[&[usize]]; 3],
) -> usize {
    if *co != [gate.0, gate.1] {
        return lstm_grad_sums::scratch(gate, co);
    }
    lists.map(|list| if is_one_of(list, gate) { 0 } else { gate.0 * gate.1 }).iter().sum()
}

/// Whether there is one tensor, of this size.
fn is_one_of(shapes: &[&[usize]], size: (usize, usize)) -> bool {
    matches!(shapes, [shape] if *shape == [size.0, size.1])
}

/// `BlockcellLSTMCellGrad`: the backward step of [`crate::lstm`], without peepholes, on tensors that
/// broadcast.
///
/// ```text
/// do  = h_grad * co * o * (1 - o)
/// dcs = cs_grad + h_grad * o * (1 - co * co)
/// di  = dcs * ci * i * (1 - i)      dci = dcs * i * (1 - ci * ci)
/// df  = dcs * cs_prev * f * (1 - f)
/// dicfo = [di | dci | df | do]      cs_prev_grad = dcs * f
/// ```
///
/// If `sums_to_gates`, and the cell state is larger than the gates, then what has the size of the state is
/// added up to that of a gate before it is multiplied by the gate's slope.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, or too short a scratch memory; nothing is written then.
pub fn lstm_cell_grad<E: Element>(
    context: &Context<'_>,
    sums_to_gates: bool,
    inputs: LstmCellGradInputs<'_, E>,
    outputs: LstmCellGradOutputs<'_, E>,
    scratch: &mut [E],
) -> Result<(), Error> {
    let op = LSTM_CELL_GRAD;
    let LstmCellGradInputs { gates, co, cs_prev, cs_grad, h_grad } = &inputs;
    let all = |list: &[ArrayViewD<'_, E>]| list.iter().map(shape_of).collect::<Vec<_>>();
    let cs_prev = cs_prev.as_slice();
    let [i, f, o, ci] = gates.each_ref().map(shape_of);
    let shapes = LstmCellGradShapes {
        saved: &[i, f, o, ci, shape_of(co)],
        cs_prev: &all(cs_prev),
        cs_grad: &all(cs_grad),
        h_grad: &all(h_grad),
        sums_to_gates,
    };
    let [cs_prev_grad, dicfo] = lstm_cell_grad_shapes(&shapes)?;
    check_output(op, ("cs_prev_grad", 0), &outputs.cs_prev_grad, &cs_prev_grad)?;
    check_layout(op, "cs_prev_grad", &outputs.cs_prev_grad)?;
    check_output(op, ("dicfo", 0), &outputs.dicfo, &dicfo)?;
    check_layout(op, "dicfo", &outputs.dicfo)?;
    for (view, name) in gates.iter().zip(["i", "f", "o", "ci"]) {
        check_layout(op, name, view)?;
    }
    check_layout(op, "co", co)?;
    let shapes = [cs_prev, cs_grad, h_grad].map(|list| list.iter().map(ArrayViewD::shape));
    let shapes = shapes.map(Iterator::collect::<Vec<_>>);
    let needed =
        lstm_cell_grad_scratch(gates[0].dim(), co.shape(), shapes.each_ref().map(Vec::as_slice));
    if scratch.len() < needed {
        return Err(Error::Scratch { op, needed, got: scratch.len() });
    }
    E::plain_lstm_cell_grad(context, inputs, outputs, scratch);
    Ok(())
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    inputs: LstmCellGradInputs<'_, E>,
    outputs: LstmCellGradOutputs<'_, E>,
    scratch: &mut [E],
) {
    let size = inputs.gates[0].dim();
    if inputs.co.shape() != [size.0, size.1] {
        return lstm_grad_sums::compute(&inputs, outputs, scratch);
    }
    let LstmCellGradInputs { gates: [i, f, o, ci], co, cs_prev, cs_grad, h_grad } = inputs;
    let co = co.into_dimensionality().expect("it was looked at");
    let LstmCellGradOutputs { cs_prev_grad, dicfo } = outputs;
    let cs_prev_grad = cs_prev_grad.into_dimensionality().expect("of the shape of co");
    let mut rest = scratch;
    let [cs_prev, cs_grad, h_grad] = [cs_prev.as_slice(), &cs_grad, &h_grad].map(|summands| {
        let shapes: Vec<_> = summands.iter().map(ArrayViewD::shape).collect();
        let needed = if is_one_of(&shapes, size) { 0 } else { size.0 * size.1 };
        let (memory, left) = std::mem::take(&mut rest).split_at_mut(needed);
        rest = left;
        sum_of(summands, size, memory)
    });
    let (batch, cell_size) = size;
    let sizes = Sizes { time: 0, batch, input_size: 0, cell_size, optional: [0; 3] };
    // Without peepholes, nobody reads or writes these but the other outputs, which are empty.
    let (empty, none) = (empty_matrix(), empty_vector());
    let inputs = BlockCellGradInputs {
        x: empty,
        cs_prev,
        h_prev: empty,
        w: empty,
        wci: none,
        wcf: none,
        wco: none,
        b: none,
        i,
        cs: empty,
        f,
        o,
        ci,
        co,
        cs_grad,
        h_grad,
    };
    let unused = || ArrayViewMut1::from_shape(0, &mut []).expect("nothing is needed");
    let outputs = BlockCellGradOutputs {
        cs_prev_grad,
        dicfo,
        wci_grad: unused(),
        wcf_grad: unused(),
        wco_grad: unused(),
    };
    crate::lstm::cell_grad::compute(context, sizes, false, inputs, outputs);
}

fn empty_matrix<'a, E>() -> ArrayView2<'a, E> {
    ArrayView2::from_shape((0, 0), &[]).expect("nothing is needed")
}

fn empty_vector<'a, E>() -> ArrayView1<'a, E> {
    ArrayView1::from_shape(0, &[]).expect("nothing is needed")
}

/// The sum of tensors that broadcast to a matrix. A single one of its size is that itself; otherwise
/// the sum is put into `memory`.
fn sum_of<'a, E: Storage>(
    summands: &[ArrayViewD<'a, E>],
    size: (usize, usize),
    memory: &'a mut [E],
) -> ArrayView2<'a, E> {
    match summands {
        [one] if one.shape() == [size.0, size.1] => {
            return one.clone().into_dimensionality().expect("a matrix");
        }
        _ => {}
    }
    let mut sum = ArrayViewMut2::from_shape(size, &mut *memory).expect("it was measured");
    add_up(summands, &mut sum.view_mut().into_dyn());
    ArrayView2::from_shape(size, memory).expect("it was measured")
}

/// The sum of tensors that broadcast to its shape.
pub(super) fn add_up<E: Storage>(summands: &[ArrayViewD<'_, E>], sum: &mut ArrayViewMutD<'_, E>) {
    sum.fill(E::ZERO);
    for summand in summands {
        sum.zip_mut_with(summand, |sum, &value| *sum = E::from_f32(sum.to_f32() + value.to_f32()));
    }
}
