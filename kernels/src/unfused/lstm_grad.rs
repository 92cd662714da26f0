//! `BlockcellLSTMCellGrad`: the backward step of a plain LSTM cell.

use ndarray::{ArrayView2, ArrayViewD, ArrayViewMut1, ArrayViewMut2, ArrayViewMutD, Axis, Slice};

use super::GateColumns;
use super::lstm::{broadcast, check_peepholes, with_zeros};
use super::lstm_grad_equations::Backward;
use super::lstm_grad_sums::{self, add_up};
use crate::activation::{Functions, Usual};
use crate::elementwise::{self, Equation};
use crate::lstm::step::GateOrder;
use crate::lstm::step_grad::gates_of;
use crate::ops::partial::{may_be_same, may_broadcast};
use crate::ops::{Inferred, Lists, PartialShape, UNFUSED_LSTM_CELL_GRAD};
use crate::{Activations, Context, Element, Error, Storage, error, lstm};

pub use crate::ops::unfused::{LstmCellGradInputs, LstmCellGradOutputs};

/// Attributes of the forward step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LstmCellGradAttributes {
    /// Whether the cell state may be larger than `[batch, cell]`, because cs_prev is.
    pub sums_to_gates: bool,
    /// Whether the gradients through peepholes are summed to the shape of cs_prev.
    pub sums_to_cs_prev: bool,
    /// Whether they are otherwise summed to the shape of the product of cs_prev and the weights.
    pub sums_to_product: bool,
    /// The magnitude the cell state was clipped to, as in [`crate::lstm::Attributes`].
    pub cell_clip: f32,
    /// The columns of each gate's gradient in dicfo.
    pub columns: GateColumns,
    /// The functions of the cell.
    pub activations: Activations,
}

/// The shapes of [`lstm_cell_grad`]'s outputs, as far as they follow from the known parts of the inputs' shapes.
///
/// # Errors
///
/// [`Error::Shape`] for the first tensor that does not match the others, [`Error::Overflow`] for an output that cannot
/// be addressed.
pub fn lstm_cell_grad_shapes(
    [sums_to_gates, sums_to_cs_prev, sums_to_product]: [bool; 3],
    inputs: &Lists<'_, PartialShape>,
) -> Result<Inferred, Error> {
    let op = &UNFUSED_LSTM_CELL_GRAD;
    let mut inferred = op.infer(false, inputs)?;
    let size = vec![inferred.sizes.batch, inferred.sizes.cell_size];
    let state = state_shape(sums_to_gates, &size, inputs)?;
    let gate = if inputs.of("peepholes").is_empty() { &size } else { &state };
    for (names, expected) in [(&["i", "f", "o"][..], gate), (&["cs"], &state)] {
        for (tensor, got) in
            names.iter().flat_map(|&name| inputs.of(name).iter().map(move |got| (name, got)))
        {
            if let Some(got) = got.as_ref().filter(|got| !may_be_same(got, expected)) {
                let (op, got, expected) = (op.name, got.clone(), error::shape(expected));
                return Err(Error::Shape { op, tensor, index: None, expected, got });
            }
        }
    }
    for name in ["cs_prev", "cs_grad", "h_grad"] {
        let list = inputs.of(name);
        for (index, shape) in list.iter().enumerate() {
            let index = (list.len() > 1).then_some(index);
            if let Some(got) = shape.as_ref().filter(|got| !may_broadcast(got, &state)) {
                let expected = error::shape(&state);
                let expected = format!("the shape of cs, {expected}, or one that broadcasts to it");
                let (op, got) = (op.name, got.clone());
                return Err(Error::Shape { op, tensor: name, index, expected, got });
            }
        }
    }
    op.check_size("cs_prev_grad", "the shape of cs", &state)?;
    let through = match inputs.of("cs_prev") {
        [cs_prev] if sums_to_cs_prev || sums_to_product => {
            let cs_prev = cs_prev.clone().unwrap_or_else(|| vec![None; state.len()]);
            let product = || broadcast(&cs_prev, &size[1..]).unwrap_or_else(|| state.clone());
            if sums_to_cs_prev { cs_prev } else { product() }
        }
        _ => state.clone(),
    };
    inferred.outputs[op.output("cs_prev_grad")] = state;
    let peepholes = inferred.outputs.len() - inputs.of("peepholes").len();
    inferred.outputs[op.output("through_peepholes")..peepholes].fill(through);
    Ok(inferred)
}

/// The shape of the cell state, as far as it is known. One of unknown rank is taken to be a matrix.
fn state_shape(
    may_be_larger: bool,
    gate: &[Option<usize>],
    inputs: &Lists<'_, PartialShape>,
) -> Result<Vec<Option<usize>>, Error> {
    let co = inputs.one("co");
    let state = match inputs.of("cs_prev") {
        [Some(cs_prev)] if may_be_larger => {
            let state = broadcast(gate, cs_prev);
            if state.is_none() {
                let expected = format!("a shape that broadcasts with {}", error::shape(gate));
                let (op, tensor, got) = (UNFUSED_LSTM_CELL_GRAD.name, "cs_prev", cs_prev.clone());
                return Err(Error::Shape { op, tensor, index: None, expected, got });
            }
            state
        }
        [None] if may_be_larger => None,
        _ => Some(gate.to_vec()),
    };
    let (Some(state), Some(co)) = (&state, co) else {
        return Ok(state.or_else(|| co.clone()).unwrap_or_else(|| vec![None; 2]));
    };
    if !may_be_same(state, co) {
        let expected = format!("{}, which is that of cs", error::shape(state));
        let (op, got) = (UNFUSED_LSTM_CELL_GRAD.name, co.clone());
        return Err(Error::Shape { op, tensor: "co", index: None, expected, got });
    }
    Ok(state.iter().zip(co).map(|(left, right)| left.or(*right)).collect())
}

/// The number of elements of scratch memory that [`lstm_cell_grad`] needs, by the sizes of ci, the shape of co, those
/// of cs_prev, if there is one, and of the summands, and the number of peepholes.
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
    let through = match peepholes {
        1 => 2 * (gate.0 + 1) * gate.1,
        3 if !is_one_of(lists[0], gate) => 2 * gate.0 * gate.1,
        _ => 0,
    };
    summed * gate.0 * gate.1 + through
}

/// Whether there is one tensor, of this size.
fn is_one_of(shapes: &[&[usize]], size: (usize, usize)) -> bool {
    matches!(shapes, [shape] if *shape == [size.0, size.1])
}

/// `BlockcellLSTMCellGrad`: the backward step of [`crate::lstm`] on tensors that broadcast, as defined by
/// [`UNFUSED_LSTM_CELL_GRAD`].
///
/// # Errors
///
/// If a tensor has the wrong shape or layout; for another number of peepholes or outputs; or if the scratch memory is
/// too short. Nothing is written then.
pub fn lstm_cell_grad<E: Element>(
    context: &Context<'_>,
    attributes: &LstmCellGradAttributes,
    inputs: LstmCellGradInputs<'_, E>,
    outputs: LstmCellGradOutputs<'_, E>,
    scratch: &mut [E],
) -> Result<(), Error> {
    let op = &UNFUSED_LSTM_CELL_GRAD;
    let LstmCellGradInputs { ci, co, cs_prev, cs_grad, h_grad, peepholes, .. } = &inputs;
    check_counts(peepholes.len(), cs_prev.is_some(), &outputs)?;
    let infer = |shapes: &Lists<'_, _>| lstm_cell_grad_shapes(attributes.sums(), shapes);
    op.check_lists(&inputs, &outputs, infer)?;
    let lists = [cs_prev.as_slice(), cs_grad, h_grad];
    let shapes = lists.map(|list| list.iter().map(ArrayViewD::shape).collect::<Vec<_>>());
    let lists = shapes.each_ref().map(Vec::as_slice);
    let needed = lstm_cell_grad_scratch(ci.dim(), co.shape(), lists, peepholes.len());
    op.check_scratch(needed, scratch)?;
    E::unfused_lstm_cell_grad(context, attributes, inputs, outputs, scratch);
    Ok(())
}

/// Checks how many peepholes there are, and how many outputs for them: three peepholes give gradients through two.
fn check_counts<E>(
    peepholes: usize,
    has_cs_prev: bool,
    outputs: &LstmCellGradOutputs<'_, E>,
) -> Result<(), Error> {
    let op = UNFUSED_LSTM_CELL_GRAD.name;
    check_peepholes(op, peepholes, has_cs_prev)?;
    let through = if peepholes == 3 { 2 } else { 0 };
    let got = (outputs.through_peepholes.len(), outputs.peephole_grads.len());
    if got == (through, peepholes) {
        return Ok(());
    }
    let (expected, got) = (through + peepholes, got.0 + got.1);
    Err(Error::Count { op, what: "outputs of peepholes", expected, got })
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    attributes: &LstmCellGradAttributes,
    inputs: LstmCellGradInputs<'_, E>,
    outputs: LstmCellGradOutputs<'_, E>,
    scratch: &mut [E],
) {
    let (clip, order) = (attributes.clip_in::<E>(), attributes.columns.order());
    let size = inputs.ci.dim();
    if inputs.co.shape() != [size.0, size.1] {
        let kind = (clip, order, attributes.activations);
        return lstm_grad_sums::compute(kind, &inputs, outputs, scratch);
    }
    match attributes.activations {
        one if one.are_usual() => {
            with_clip(context, (Usual, clip, order), inputs, outputs, scratch)
        }
        any => with_clip(context, (any, clip, order), inputs, outputs, scratch),
    }
}

fn with_clip<E: Storage>(
    context: &Context<'_>,
    (functions, clip, order): (impl Functions, Option<f32>, GateOrder),
    inputs: LstmCellGradInputs<'_, E>,
    outputs: LstmCellGradOutputs<'_, E>,
    scratch: &mut [E],
) {
    match clip {
        Some(clip) => {
            let equation = Backward::<E, _, true>::clipped(functions, clip);
            step(context, (equation, order), inputs, outputs, scratch);
        }
        None => {
            let equation = Backward::<E, _, false>::unclipped(functions);
            step(context, (equation, order), inputs, outputs, scratch);
        }
    }
}

impl LstmCellGradAttributes {
    /// The sums, as an argument of [`lstm_cell_grad_shapes`].
    #[must_use]
    pub fn sums(&self) -> [bool; 3] {
        [self.sums_to_gates, self.sums_to_cs_prev, self.sums_to_product]
    }

    fn clip_in<E: Storage>(self) -> Option<f32> {
        let LstmCellGradAttributes { cell_clip, .. } = self;
        lstm::Attributes { use_peephole: false, forget_bias: 0.0, cell_clip }.cell_clip_in::<E>()
    }
}

/// A step whose state has the size of the gates.
fn step<E, Q>(
    context: &Context<'_>,
    (equation, order): (Q, GateOrder),
    inputs: LstmCellGradInputs<'_, E>,
    outputs: LstmCellGradOutputs<'_, E>,
    scratch: &mut [E],
) where
    E: Storage,
    Q: Equation<8, 5> + Equation<12, 7, 3>,
{
    let LstmCellGradInputs { i, f, o, ci, co, cs_prev, cs_grad, h_grad, peepholes, cs } = inputs;
    let LstmCellGradOutputs { cs_prev_grad, dicfo, through_peepholes, peephole_grads } = outputs;
    let size = ci.dim();
    let [i, f, o, co] = [i, f, o, co].map(|view| view.into_dimensionality().expect("as co"));
    let cs = cs.map(|cs| cs.into_dimensionality().expect("as co"));
    let cs_prev_grad = cs_prev_grad.into_dimensionality().expect("of the shape of co");
    let mut memory = scratch;
    let [cs_prev, cs_grad, h_grad] = [cs_prev.as_slice(), &cs_grad, &h_grad].map(|summands| {
        let shapes: Vec<_> = summands.iter().map(ArrayViewD::shape).collect();
        let needed = if is_one_of(&shapes, size) { 0 } else { size.0 * size.1 };
        let (sum, rest) = std::mem::take(&mut memory).split_at_mut(needed);
        memory = rest;
        sum_of(summands, size, sum)
    });
    let [di, dci, df, d_o] = gates_of(dicfo, order);
    let weights = match peepholes[..] {
        [wci, wcf, wco] => [wci, wcf, wco],
        [wco] => with_zeros(cs_prev, wco),
        _ => {
            let (inputs, outputs) =
                ([cs_prev, i, f, o, ci, co, cs_grad, h_grad], [cs_prev_grad, di, dci, df, d_o]);
            return elementwise::map(context, equation, inputs, outputs, []);
        }
    };
    // Every row of the batch has the same weights.
    let [wci, wcf, wco] = weights.each_ref().map(|w| w.broadcast(size).expect("of length cell"));
    let inputs = [cs_prev, i, f, o, ci, co, cs_grad, h_grad, cs.unwrap_or(co), wci, wcf, wco];
    let (through_peepholes, smaller): (Vec<_>, Vec<_>) =
        through_peepholes.into_iter().partition(|through| through.shape() == [size.0, size.1]);
    let through_peepholes = through_peepholes.into_iter();
    let through_peepholes =
        through_peepholes.map(|one| one.into_dimensionality().expect("a matrix"));
    let through_peepholes = through_peepholes.collect();
    let (mut through, sums) = all_peepholes(through_peepholes, peephole_grads, size, memory);
    let [through_i, through_f] = through.each_mut().map(|one| one.view_mut());
    let outputs = [cs_prev_grad, di, dci, df, d_o, through_i, through_f];
    let mut sums = sums.map(|sum| sum.insert_axis(Axis(0)));
    elementwise::map(context, equation, inputs, outputs, sums.each_mut().map(|sum| sum.view_mut()));
    for (mut sum, through) in smaller.into_iter().zip(&through) {
        add_down(&through.view(), &mut sum);
    }
    if cs.is_none() {
        sums[2].fill(E::ZERO);
    }
}

/// The gradients of all peepholes. Those that nobody reads, or only the sum of all rows, are in `memory`: where only the
/// output gate has a peephole, those of the others.
fn all_peepholes<'a, E: Storage>(
    mut through: Vec<ArrayViewMut2<'a, E>>,
    mut sums: Vec<ArrayViewMut1<'a, E>>,
    size: (usize, usize),
    memory: &'a mut [E],
) -> ([ArrayViewMut2<'a, E>; 2], [ArrayViewMut1<'a, E>; 3]) {
    let matrices = if through.is_empty() { 2 * size.0 * size.1 } else { 0 };
    let (matrices, vectors) = memory.split_at_mut(matrices);
    if through.is_empty() {
        let (first, second) = matrices.split_at_mut(size.0 * size.1);
        let matrix = |memory| ArrayViewMut2::from_shape(size, memory).expect("it was measured");
        through.extend([first, second].map(matrix));
    }
    if sums.len() == 1 {
        let (first, second) = vectors[..2 * size.1].split_at_mut(size.1);
        sums.splice(0..0, [first, second].map(ArrayViewMut1::from));
    }
    let (mut through, mut sums) = (through.into_iter(), sums.into_iter());
    let through = [(); 2].map(|()| through.next().expect("there are two"));
    (through, [(); 3].map(|()| sums.next().expect("there are three")))
}

/// Adds a matrix up to a shape that broadcasts to its own.
fn add_down<E: Storage>(matrix: &ArrayView2<'_, E>, sum: &mut ArrayViewMutD<'_, E>) {
    let missing = matrix.ndim() - sum.ndim();
    let sizes = sum.shape().to_vec();
    for (index, sum) in sum.indexed_iter_mut() {
        let part = matrix.slice_each_axis(|axis| match axis.axis.index().checked_sub(missing) {
            Some(own) if sizes[own] == axis.len => Slice::from(index[own]..=index[own]),
            _ => Slice::from(..),
        });
        *sum = E::from_f32(part.iter().map(|value| value.to_f32()).sum());
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
