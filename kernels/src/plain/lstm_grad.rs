//! `BlockcellLSTMCellGrad`: the backward step of a plain LSTM cell.

use ndarray::{
    ArrayView1, ArrayView2, ArrayViewD, ArrayViewMut1, ArrayViewMut2, ArrayViewMutD, Axis,
};

use super::lstm::{broadcast, check_peepholes, with_zeros};
use super::lstm_grad_equations::Backward;
use super::lstm_grad_sums;
use crate::elementwise::{self, Equation};
use crate::error::known;
use crate::lstm;
use crate::ops::PartialShape;
use crate::shapes::{Dim, bind, check_layout, check_output, check_size, shape_of};
use crate::{Context, Element, Error, Storage};

/// The operation's name in TensorFlow.
pub const LSTM_CELL_GRAD: &str = "BlockcellLSTMCellGrad";

/// What the forward step did beside its equations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LstmCellGradAttributes {
    /// Whether the cell state may be larger than `[batch, cell]`, because cs_prev is. With peepholes, whether cs_prev
    /// must be `[batch, cell]`, because what comes through peepholes would have to be added up otherwise.
    pub sums_to_gates: bool,
    /// The magnitude the cell state was clipped to, as in [`crate::lstm::Attributes`].
    pub cell_clip: f32,
}

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
    /// What peepholes take, if there are any. The cell state is `[batch, cell]` then.
    pub peepholes: Option<LstmPeepholes<'a, E>>,
}

/// What peepholes take.
#[derive(Clone, Debug)]
pub struct LstmPeepholes<'a, E> {
    /// Of the input, forget and output gate, `[cell]` each, or without a cs_prev of the output gate alone.
    pub weights: Vec<ArrayView1<'a, E>>,
    /// Cell state, `[batch, cell]`. Without it the gradient of the output gate's weights is zero.
    pub cs: Option<ArrayView2<'a, E>>,
}

/// Outputs of [`lstm_cell_grad`]. Previous contents do not matter.
#[derive(Debug)]
pub struct LstmCellGradOutputs<'a, E> {
    /// With respect to cs_prev, of the shape of cs, also where cs_prev has fewer rows. With peepholes, as far as it
    /// does not come through them.
    pub cs_prev_grad: ArrayViewMutD<'a, E>,
    /// With respect to the gates' pre-activations, `[batch, 4 * cell]`.
    pub dicfo: ArrayViewMut2<'a, E>,
    /// What comes through peepholes, if there are any.
    pub peepholes: Option<LstmPeepholeGrads<'a, E>>,
}

/// The gradients that come through peepholes.
#[derive(Debug)]
pub struct LstmPeepholeGrads<'a, E> {
    /// With respect to cs_prev, through the input and the forget gate, `[batch, cell]` each. None where these have no
    /// peepholes.
    pub cs_prev: Vec<ArrayViewMut2<'a, E>>,
    /// With respect to the weights, in their order, `[cell]` each.
    pub weights: Vec<ArrayViewMut1<'a, E>>,
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
    /// Those of the peephole weights, if there are any.
    pub peepholes: &'s [PartialShape],
    /// That of cs, if it is there.
    pub cs: &'s [PartialShape],
    /// That of [`LstmCellGradAttributes`].
    pub sums_to_gates: bool,
}

/// The shapes of [`lstm_cell_grad`]'s outputs, as far as they follow from what is known of the inputs'
/// shapes. With peepholes there are more, which are those of [`LstmPeepholeGrads`].
///
/// # Errors
///
/// [`Error::ListShape`] for the first tensor at odds with those before it, [`Error::Overflow`] for
/// an output that cannot be addressed.
pub fn lstm_cell_grad_shapes(
    shapes: &LstmCellGradShapes<'_>,
) -> Result<Vec<Vec<Option<usize>>>, Error> {
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
    for (index, weights) in shapes.peepholes.iter().enumerate() {
        bind(op, ("peepholes", index), weights, &mut [Dim::new("cell", &mut cell)])?;
    }
    let has_peepholes = !shapes.peepholes.is_empty();
    let of_peepholes = shapes.cs_prev.iter().filter(|_| has_peepholes && shapes.sums_to_gates);
    let whole = shapes.cs.iter().map(|cs| ("cs", cs));
    for (name, shape) in whole.chain(of_peepholes.map(|cs_prev| ("cs_prev", cs_prev))) {
        let dims = &mut [Dim::new("batch", &mut batch), Dim::new("cell", &mut cell)];
        bind(op, (name, 0), shape, dims)?;
    }
    let columns = cell.and_then(|cell| cell.checked_mul(4));
    check_size(op, "dicfo", "[batch, 4 * cell]", &[batch, columns.or(cell.map(|_| usize::MAX))])?;
    check_size(op, "cs_prev_grad", "the shape of cs", &state)?;
    let mut all = vec![state, vec![batch, columns]];
    let peepholes = shapes.peepholes.len();
    all.extend(vec![vec![batch, cell]; through(peepholes)]);
    all.extend(vec![vec![cell]; peepholes]);
    Ok(all)
}

/// How many of so many peepholes look at cs_prev.
fn through(peepholes: usize) -> usize {
    if peepholes == 3 { 2 } else { 0 }
}

/// The shape of the cell state, as far as it is known. One of unknown rank is taken to be a matrix.
fn state_shape(
    shapes: &LstmCellGradShapes<'_>,
    gate: [Option<usize>; 2],
    co: &PartialShape,
) -> Result<Vec<Option<usize>>, Error> {
    let may_be_larger = shapes.sums_to_gates && shapes.peepholes.is_empty();
    let state = match shapes.cs_prev {
        [Some(cs_prev)] if may_be_larger => broadcast(&gate, cs_prev),
        [None] if may_be_larger => None,
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

/// How many elements of scratch memory [`lstm_cell_grad`] needs, by the sizes of a gate, the shape of co, those of cs_prev,
/// if there is one, and of the summands, and the number of peepholes.
#[must_use]
pub fn lstm_cell_grad_scratch(
    gate: (usize, usize),
    co: &[usize],
    lists: [&[&[usize]]; 3],
    peepholes: usize,
) -> usize {
    if *co != [gate.0, gate.1] {
        return lstm_grad_sums::scratch(gate, co);
    }
    let summed = lists.iter().filter(|list| !is_one_of(list, gate)).count();
    let unread = if peepholes == 1 { 2 * (gate.0 + 1) * gate.1 } else { 0 };
    summed * gate.0 * gate.1 + unread
}

/// Whether there is one tensor, of this size.
fn is_one_of(shapes: &[&[usize]], size: (usize, usize)) -> bool {
    matches!(shapes, [shape] if *shape == [size.0, size.1])
}

/// `BlockcellLSTMCellGrad`: the backward step of [`crate::lstm`] on tensors that broadcast.
///
/// ```text
/// do  = h_grad * co * o * (1 - o)
/// dcs = cs_grad + h_grad * o * (1 - co * co) [+ do * wco]
/// dcs = 0 where the magnitude of i * ci + f * cs_prev is above cell_clip, if that is above 0
/// di  = dcs * ci * i * (1 - i)      dci = dcs * i * (1 - ci * ci)
/// df  = dcs * cs_prev * f * (1 - f)
/// dicfo = [di | dci | df | do]      cs_prev_grad = dcs * f
/// peepholes.cs_prev = [di * wci, df * wcf]
/// peepholes.weights = [sum_B di * cs_prev, sum_B df * cs_prev, sum_B do * cs]
/// ```
///
/// The term in brackets and the last two lines exist only with peepholes. What was clipped has no gradient, as in
/// `tf.clip_by_value`; the gradients of the block cells do not look at the clip.
///
/// If `sums_to_gates`, and the cell state is larger than the gates, then what has the size of the state is
/// added up to that of a gate before it is multiplied by the gate's slope.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, another number of peepholes, or too short a scratch memory; nothing is written
/// then.
pub fn lstm_cell_grad<E: Element>(
    context: &Context<'_>,
    attributes: &LstmCellGradAttributes,
    inputs: LstmCellGradInputs<'_, E>,
    outputs: LstmCellGradOutputs<'_, E>,
    scratch: &mut [E],
) -> Result<(), Error> {
    let op = LSTM_CELL_GRAD;
    check_tensors(attributes, &inputs, &outputs)?;
    let LstmCellGradInputs { gates, co, cs_prev, cs_grad, h_grad, peepholes } = &inputs;
    let lists = [cs_prev.as_slice(), cs_grad, h_grad];
    let peepholes = peepholes.as_ref().map_or(0, |all| all.weights.len());
    let shapes = lists.map(|list| list.iter().map(ArrayViewD::shape).collect::<Vec<_>>());
    let lists = shapes.each_ref().map(Vec::as_slice);
    let needed = lstm_cell_grad_scratch(gates[0].dim(), co.shape(), lists, peepholes);
    if scratch.len() < needed {
        return Err(Error::Scratch { op, needed, got: scratch.len() });
    }
    E::plain_lstm_cell_grad(context, attributes, inputs, outputs, scratch);
    Ok(())
}

/// Checks the shapes and layouts of all tensors.
fn check_tensors<E: Element>(
    attributes: &LstmCellGradAttributes,
    inputs: &LstmCellGradInputs<'_, E>,
    outputs: &LstmCellGradOutputs<'_, E>,
) -> Result<(), Error> {
    let op = LSTM_CELL_GRAD;
    let LstmCellGradInputs { gates, co, cs_prev, cs_grad, h_grad, peepholes } = inputs;
    let all = |list: &[ArrayViewD<'_, E>]| list.iter().map(shape_of).collect::<Vec<_>>();
    let [i, f, o, ci] = gates.each_ref().map(shape_of);
    let weights: Vec<_> = peepholes.iter().flat_map(|all| &all.weights).collect();
    let cs = peepholes.as_ref().and_then(|all| all.cs.as_ref());
    check_peepholes(op, weights.len(), cs_prev.is_some())?;
    let shapes = lstm_cell_grad_shapes(&LstmCellGradShapes {
        saved: &[i, f, o, ci, shape_of(co)],
        cs_prev: &all(cs_prev.as_slice()),
        cs_grad: &all(cs_grad),
        h_grad: &all(h_grad),
        peepholes: &weights.iter().map(|&one| shape_of(one)).collect::<Vec<_>>(),
        cs: &cs.iter().map(|&one| shape_of(one)).collect::<Vec<_>>(),
        sums_to_gates: attributes.sums_to_gates,
    })?;
    check_output(op, ("cs_prev_grad", 0), &outputs.cs_prev_grad, &shapes[0])?;
    check_layout(op, "cs_prev_grad", &outputs.cs_prev_grad)?;
    check_output(op, ("dicfo", 0), &outputs.dicfo, &shapes[1])?;
    check_layout(op, "dicfo", &outputs.dicfo)?;
    let (through, count) = (through(weights.len()), weights.len());
    let grads = outputs.peepholes.as_ref();
    let got = grads.map_or((0, 0), |grads| (grads.cs_prev.len(), grads.weights.len()));
    if got != (through, count) {
        let (expected, got) = (through + count, got.0 + got.1);
        return Err(Error::Count { op, what: "outputs of peepholes", expected, got });
    }
    if let Some(grads) = grads {
        for (index, view) in grads.cs_prev.iter().enumerate() {
            check_output(op, ("through_peepholes", index), view, &shapes[2 + index])?;
            check_layout(op, "through_peepholes", view)?;
        }
        for (index, view) in grads.weights.iter().enumerate() {
            check_output(op, ("peephole_grads", index), view, &shapes[2 + through + index])?;
            check_layout(op, "peephole_grads", view)?;
        }
    }
    for (view, name) in gates.iter().zip(["i", "f", "o", "ci"]) {
        check_layout(op, name, view)?;
    }
    weights.iter().try_for_each(|view| check_layout(op, "peepholes", view))?;
    cs.iter().try_for_each(|view| check_layout(op, "cs", view))?;
    check_layout(op, "co", co)
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    attributes: &LstmCellGradAttributes,
    inputs: LstmCellGradInputs<'_, E>,
    outputs: LstmCellGradOutputs<'_, E>,
    scratch: &mut [E],
) {
    let clip = attributes.clip_in::<E>();
    let size = inputs.gates[0].dim();
    if inputs.co.shape() != [size.0, size.1] {
        return lstm_grad_sums::compute(clip, &inputs, outputs, scratch);
    }
    match clip {
        Some(clip) => step(context, Backward::<E, true>::clipped(clip), inputs, outputs, scratch),
        None => step(context, Backward::<E, false>::unclipped(), inputs, outputs, scratch),
    }
}

impl LstmCellGradAttributes {
    fn clip_in<E: Storage>(self) -> Option<f32> {
        let LstmCellGradAttributes { cell_clip, .. } = self;
        lstm::Attributes { use_peephole: false, forget_bias: 0.0, cell_clip }.cell_clip_in::<E>()
    }
}

/// A step whose state has the size of the gates.
fn step<E, Q>(
    context: &Context<'_>,
    equation: Q,
    inputs: LstmCellGradInputs<'_, E>,
    outputs: LstmCellGradOutputs<'_, E>,
    scratch: &mut [E],
) where
    E: Storage,
    Q: Equation<8, 5> + Equation<12, 7, 3>,
{
    let LstmCellGradInputs { gates: [i, f, o, ci], co, cs_prev, cs_grad, h_grad, peepholes } =
        inputs;
    let size = i.dim();
    let co = co.into_dimensionality().expect("it was looked at");
    let cs_prev_grad = outputs.cs_prev_grad.into_dimensionality().expect("of the shape of co");
    let mut memory = scratch;
    let [cs_prev, cs_grad, h_grad] = [cs_prev.as_slice(), &cs_grad, &h_grad].map(|summands| {
        let shapes: Vec<_> = summands.iter().map(ArrayViewD::shape).collect();
        let needed = if is_one_of(&shapes, size) { 0 } else { size.0 * size.1 };
        let (sum, rest) = std::mem::take(&mut memory).split_at_mut(needed);
        memory = rest;
        sum_of(summands, size, sum)
    });
    let (di, rest) = outputs.dicfo.split_at(Axis(1), size.1);
    let (dci, rest) = rest.split_at(Axis(1), size.1);
    let (df, d_o) = rest.split_at(Axis(1), size.1);
    let (Some(peepholes), Some(mut grads)) = (peepholes, outputs.peepholes) else {
        let inputs = [cs_prev, i, f, o, ci, co, cs_grad, h_grad];
        return elementwise::map(context, equation, inputs, [cs_prev_grad, di, dci, df, d_o], []);
    };
    let LstmPeepholes { weights, cs } = peepholes;
    let weights = match weights[..] {
        [wci, wcf, wco] => [wci, wcf, wco],
        [wco] => with_zeros(cs_prev, wco),
        _ => unreachable!("it was checked"),
    };
    // Every row of the batch has the same weights.
    let [wci, wcf, wco] = weights.each_ref().map(|w| w.broadcast(size).expect("of length cell"));
    let inputs = [cs_prev, i, f, o, ci, co, cs_grad, h_grad, cs.unwrap_or(co), wci, wcf, wco];
    let ([through_i, through_f], sums) = grads.whole(size, memory);
    let outputs = [cs_prev_grad, di, dci, df, d_o, through_i, through_f];
    let mut sums = sums.map(|sum| sum.insert_axis(Axis(0)));
    elementwise::map(context, equation, inputs, outputs, sums.each_mut().map(|sum| sum.view_mut()));
    if cs.is_none() {
        sums[2].fill(E::ZERO);
    }
}

impl<E: Storage> LstmPeepholeGrads<'_, E> {
    /// The gradients of all peepholes. Where only the output gate has one, nobody reads those of the others, which are in
    /// `memory`.
    fn whole<'a>(
        &'a mut self,
        size: (usize, usize),
        memory: &'a mut [E],
    ) -> ([ArrayViewMut2<'a, E>; 2], [ArrayViewMut1<'a, E>; 3]) {
        let mut through: Vec<_> = self.cs_prev.iter_mut().map(|one| one.view_mut()).collect();
        let mut sums: Vec<_> = self.weights.iter_mut().map(|one| one.view_mut()).collect();
        if through.is_empty() {
            let (matrices, vectors) = memory.split_at_mut(2 * size.0 * size.1);
            let (first, second) = matrices.split_at_mut(size.0 * size.1);
            let matrix = |memory| ArrayViewMut2::from_shape(size, memory).expect("it was measured");
            through.extend([first, second].map(matrix));
            let (first, second) = vectors[..2 * size.1].split_at_mut(size.1);
            sums.splice(0..0, [first, second].map(ArrayViewMut1::from));
        }
        let (mut through, mut sums) = (through.into_iter(), sums.into_iter());
        let through = [(); 2].map(|()| through.next().expect("there are two"));
        (through, [(); 3].map(|()| sums.next().expect("there are three")))
    }
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
    // Without columns there may be more rows than anybody could count.
    if sum.is_empty() {
        return;
    }
    sum.fill(E::ZERO);
    for summand in summands {
        sum.zip_mut_with(summand, |sum, &value| *sum = E::from_f32(sum.to_f32() + value.to_f32()));
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayViewD, ArrayViewMutD, IxDyn};

    use super::add_up;

    #[test]
    fn rows_without_columns_are_not_counted() {
        let shape = [1 << 60, 0];
        let of_shape = || ArrayViewD::<f32>::from_shape(IxDyn(&shape), &[]).expect("no elements");
        let mut sum = ArrayViewMutD::from_shape(IxDyn(&shape), &mut []).expect("no elements");
        add_up(&[of_shape(), of_shape()], &mut sum);
    }
}
