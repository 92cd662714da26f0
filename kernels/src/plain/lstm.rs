//! `BlockcellLSTMCell`: the forward step of a plain LSTM cell.

use ndarray::{ArrayView1, ArrayView2, ArrayViewD, ArrayViewMut2, ArrayViewMutD, Axis, IxDyn, Zip};

use crate::lstm::{Attributes, BlockCellInputs, BlockCellOutputs};
use crate::ops::{PartialShape, Sizes};
use crate::shapes::{Dim, bind, check_layout, check_output, check_size, shape_of};
use crate::{Context, Element, Error, Storage};

/// The operation's name in TensorFlow.
pub const LSTM_CELL: &str = "BlockcellLSTMCell";

/// Inputs of [`lstm_cell`].
#[derive(Clone, Debug)]
pub struct LstmCellInputs<'a, E> {
    /// `[batch, input]`
    pub x: ArrayView2<'a, E>,
    /// Output of the step before, `[batch, output]`. With a projection it is narrower than the state.
    pub h_prev: ArrayView2<'a, E>,
    /// Weights, `[input + output, 4 * cell]`.
    pub w: ArrayView2<'a, E>,
    /// Biases, `[4 * cell]`.
    pub b: ArrayView1<'a, E>,
    /// Cell state of the step before, of a shape that broadcasts with `[batch, cell]`; None for
    /// zeros.
    pub cs_prev: Option<ArrayViewD<'a, E>>,
    /// Peephole weights, `[cell]` each: none, or those of the input, forget and output gate; without a cs_prev also that of
    /// the output gate alone, as the others would look at zeros. A cs_prev must broadcast to `[batch, cell]` then.
    pub peepholes: Vec<ArrayView1<'a, E>>,
}

/// Outputs of [`lstm_cell`]. Previous contents do not matter.
#[derive(Debug)]
pub struct LstmCellOutputs<'a, E> {
    /// Input gate, `[batch, cell]`.
    pub i: ArrayViewMut2<'a, E>,
    /// Cell state, of the shape that `[batch, cell]` and cs_prev broadcast to.
    pub cs: ArrayViewMutD<'a, E>,
    /// Forget gate, `[batch, cell]`.
    pub f: ArrayViewMut2<'a, E>,
    /// Output gate, `[batch, cell]`.
    pub o: ArrayViewMut2<'a, E>,
    /// Cell input, `[batch, cell]`.
    pub ci: ArrayViewMut2<'a, E>,
    /// `tanh(cs)`
    pub co: ArrayViewMutD<'a, E>,
    /// Output, before any projection.
    pub h: ArrayViewMutD<'a, E>,
}

/// What is known of the shapes of the inputs.
#[derive(Clone, Debug)]
pub struct LstmCellShapes<'s> {
    /// Those of x, h_prev, w and b.
    pub fixed: &'s [PartialShape; 4],
    /// That of cs_prev, if there is one.
    pub cs_prev: Option<&'s PartialShape>,
    /// Those of the peephole weights, if there are any.
    pub peepholes: &'s [PartialShape],
}

/// The sizes of a step.
pub(super) struct Known {
    pub(super) batch: Option<usize>,
    pub(super) cell: Option<usize>,
}

impl LstmCellShapes<'_> {
    /// Checks them for an operation whose tensors have these names.
    pub(super) fn check(&self, op: &'static str) -> Result<Known, Error> {
        let (mut batch, mut input, mut output) = (None, None, None);
        let (mut rows, mut columns) = (None, None);
        let [x, h_prev, w, b] = self.fixed;
        bind(op, ("x", 0), x, &mut [Dim::new("batch", &mut batch), Dim::new("input", &mut input)])?;
        let dims = &mut [Dim::new("batch", &mut batch), Dim::new("output", &mut output)];
        bind(op, ("h_prev", 0), h_prev, dims)?;
        rows = input.zip(output).map(|(input, output)| input.saturating_add(output)).or(rows);
        let dims = &mut [Dim::new("input + output", &mut rows), Dim::new("4 * cell", &mut columns)];
        bind(op, ("w", 0), w, dims)?;
        bind(op, ("b", 0), b, &mut [Dim::new("4 * cell", &mut columns)])?;
        let mut cell = columns.map(|columns| columns / 4);
        if columns.is_some_and(|columns| columns % 4 != 0) {
            let (expected, got) = ("[4 * cell]".to_owned(), vec![columns]);
            return Err(Error::ListShape { op, tensor: "b", index: 0, expected, got });
        }
        for (index, weights) in self.peepholes.iter().enumerate() {
            bind(op, ("peepholes", index), weights, &mut [Dim::new("cell", &mut cell)])?;
        }
        Ok(Known { batch, cell })
    }
}

/// Checks how many peepholes there are.
pub(super) fn check_peepholes(
    op: &'static str,
    count: usize,
    has_cs_prev: bool,
) -> Result<(), Error> {
    match (count, has_cs_prev) {
        (0 | 3, _) | (1, false) => Ok(()),
        _ => Err(Error::Count { op, what: "peepholes", expected: 3, got: count }),
    }
}

/// The shapes of [`lstm_cell`]'s outputs, in their order, as far as they follow from what is known of
/// the inputs' shapes. An unknown cs_prev is taken to be a matrix.
///
/// # Errors
///
/// [`Error::ListShape`] for the first tensor at odds with those before it, [`Error::Overflow`] for
/// an output that cannot be addressed.
pub fn lstm_cell_shapes(shapes: &LstmCellShapes<'_>) -> Result<[Vec<Option<usize>>; 7], Error> {
    let Known { batch, cell } = shapes.check(LSTM_CELL)?;
    let gate = vec![batch, cell];
    let state = match shapes.cs_prev {
        Some(Some(cs_prev)) => {
            let has_peepholes = !shapes.peepholes.is_empty();
            let fits = |state: &Vec<Option<usize>>| !has_peepholes || may_be_same(state, &gate);
            broadcast(&gate, cs_prev).filter(fits).ok_or_else(|| {
                let word = if has_peepholes { "to" } else { "with" };
                let expected = format!("a shape that broadcasts {word} [batch, cell]");
                let (op, got) = (LSTM_CELL, cs_prev.clone());
                Error::ListShape { op, tensor: "cs_prev", index: 0, expected, got }
            })?
        }
        Some(None) if !shapes.peepholes.is_empty() => gate.clone(),
        // One row of states may meet many rows, and many one.
        Some(None) => vec![None, cell.filter(|&cell| cell != 1)],
        None => gate.clone(),
    };
    check_size(LSTM_CELL, "cs", "[batch, cell]", &state)?;
    let [i, f, o, ci] = [(); 4].map(|()| gate.clone());
    Ok([i, state.clone(), f, o, ci, state.clone(), state])
}

/// Whether two shapes are the same, as far as they are known.
fn may_be_same(one: &[Option<usize>], other: &[Option<usize>]) -> bool {
    let fits = |(one, other): (&Option<usize>, &Option<usize>)| {
        one.zip(*other).is_none_or(|(one, other)| one == other)
    };
    one.len() == other.len() && one.iter().zip(other).all(fits)
}

/// The shape that two shapes broadcast to.
pub(super) fn broadcast(
    one: &[Option<usize>],
    other: &[Option<usize>],
) -> Option<Vec<Option<usize>>> {
    let rank = one.len().max(other.len());
    let dim = |shape: &[Option<usize>], axis: usize| match (axis + shape.len()).checked_sub(rank) {
        Some(axis) => shape[axis],
        None => Some(1),
    };
    let dims = (0..rank).map(|axis| match (dim(one, axis), dim(other, axis)) {
        (Some(1), dim) | (dim, Some(1)) => Some(dim),
        (None, dim) | (dim, None) => Some(dim),
        (left, right) => (left == right).then_some(left),
    });
    dims.collect()
}

/// How many elements of scratch memory [`lstm_cell`] needs.
#[must_use]
pub fn lstm_cell_scratch(batch: usize, cell: usize, cs_prev: Option<&[usize]>) -> usize {
    match cs_prev {
        Some(shape) if shape == [batch, cell] => 0,
        Some(_) => 4 * batch * cell,
        None => batch * cell,
    }
}

/// `BlockcellLSTMCell`: the forward step of [`crate::lstm`] on tensors that broadcast.
///
/// ```text
/// [i_bar | ci_bar | f_bar | o_bar] = [x | h_prev] @ w + b
/// i  = S(i_bar [+ wci * cs_prev])     f  = S(f_bar + forget_bias [+ wcf * cs_prev])
/// ci = tanh(ci_bar)                   cs = clip(i * ci + f * cs_prev)
/// o  = S(o_bar [+ wco * cs])          co = tanh(cs)          h = o * co
/// ```
///
/// The terms in brackets exist only with peepholes, whatever `attributes.use_peephole` says.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, another number of peepholes, or too short a scratch memory; nothing is written
/// then.
pub fn lstm_cell<E: Element>(
    context: &Context<'_>,
    attributes: &Attributes,
    inputs: LstmCellInputs<'_, E>,
    outputs: LstmCellOutputs<'_, E>,
    scratch: &mut [E],
) -> Result<(), Error> {
    let LstmCellInputs { x, h_prev, w, b, cs_prev, peepholes } = &inputs;
    let fixed = [shape_of(x), shape_of(h_prev), shape_of(w), shape_of(b)];
    let cs_prev_shape = cs_prev.as_ref().map(shape_of);
    check_peepholes(LSTM_CELL, peepholes.len(), cs_prev.is_some())?;
    let peephole_shapes: Vec<_> = peepholes.iter().map(shape_of).collect();
    let shapes = LstmCellShapes {
        fixed: &fixed,
        cs_prev: cs_prev_shape.as_ref(),
        peepholes: &peephole_shapes,
    };
    let [i, cs, f, o, ci, co, h] = lstm_cell_shapes(&shapes)?;
    let op = LSTM_CELL;
    for (view, shape, name) in
        [(&outputs.i, i, "i"), (&outputs.f, f, "f"), (&outputs.o, o, "o"), (&outputs.ci, ci, "ci")]
    {
        check_output(op, (name, 0), view, &shape)?;
        check_layout(op, name, view)?;
    }
    for (view, shape, name) in
        [(&outputs.cs, cs, "cs"), (&outputs.co, co, "co"), (&outputs.h, h, "h")]
    {
        check_output(op, (name, 0), view, &shape)?;
        check_layout(op, name, view)?;
    }
    for (view, name) in [(x, "x"), (h_prev, "h_prev"), (w, "w")] {
        check_layout(op, name, view)?;
    }
    check_layout(op, "b", b)?;
    cs_prev.iter().try_for_each(|view| check_layout(op, "cs_prev", view))?;
    peepholes.iter().try_for_each(|view| check_layout(op, "peepholes", view))?;
    let (batch, cell) = outputs.i.dim();
    let needed = lstm_cell_scratch(batch, cell, cs_prev.as_ref().map(ArrayViewD::shape));
    if scratch.len() < needed {
        return Err(Error::Scratch { op, needed, got: scratch.len() });
    }
    let use_peephole = !peepholes.is_empty();
    E::plain_lstm_cell(
        context,
        &Attributes { use_peephole, ..*attributes },
        inputs,
        outputs,
        scratch,
    );
    Ok(())
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    attributes: &Attributes,
    inputs: LstmCellInputs<'_, E>,
    outputs: LstmCellOutputs<'_, E>,
    scratch: &mut [E],
) {
    let size = outputs.i.dim();
    let cs_prev = inputs.cs_prev.clone();
    match cs_prev {
        Some(cs_prev) if cs_prev.shape() != [size.0, size.1] && !inputs.peepholes.is_empty() => {
            let mut whole = ArrayViewMut2::from_shape(size, &mut scratch[..size.0 * size.1])
                .expect("as many as were taken");
            whole.assign(&cs_prev.broadcast(size).expect("it was checked"));
            step(context, attributes, inputs, whole.view(), matrices(outputs));
        }
        Some(cs_prev) if cs_prev.shape() != [size.0, size.1] => {
            broadcast_step(context, attributes, inputs, &cs_prev, outputs, scratch);
        }
        Some(cs_prev) => {
            let cs_prev = cs_prev.into_dimensionality().expect("a matrix");
            step(context, attributes, inputs, cs_prev, matrices(outputs));
        }
        None => {
            let zeros = &mut scratch[..size.0 * size.1];
            zeros.fill(E::ZERO);
            let zeros = ArrayView2::from_shape(size, zeros).expect("as many as were taken");
            step(context, attributes, inputs, zeros, matrices(outputs));
        }
    }
}

/// The outputs of a step whose states are matrices.
fn matrices<E>(outputs: LstmCellOutputs<'_, E>) -> BlockCellOutputs<'_, E> {
    let LstmCellOutputs { i, cs, f, o, ci, co, h } = outputs;
    let [cs, co, h] = [cs, co, h].map(|view| view.into_dimensionality().expect("a matrix"));
    BlockCellOutputs { i, cs, f, o, ci, co, h }
}

fn step<E: Storage>(
    context: &Context<'_>,
    attributes: &Attributes,
    inputs: LstmCellInputs<'_, E>,
    cs_prev: ArrayView2<'_, E>,
    outputs: BlockCellOutputs<'_, E>,
) {
    let LstmCellInputs { x, h_prev, w, b, peepholes, .. } = inputs;
    let (batch, cell_size) = outputs.i.dim();
    let sizes =
        Sizes { time: 0, batch, input_size: x.ncols(), cell_size, optional: [cell_size; 3] };
    let [wci, wcf, wco] = match peepholes[..] {
        [wci, wcf, wco] => [wci, wcf, wco],
        [wco] => with_zeros(cs_prev, wco),
        // Nobody reads these.
        _ => [b; 3],
    };
    let inputs = BlockCellInputs { x, cs_prev, h_prev, w, wci, wcf, wco, b };
    crate::lstm::cell::compute(context, sizes, attributes, inputs, outputs);
}

/// The weights of all peepholes where only the output gate has one: a row of a state of zeros serves as the others'.
pub(super) fn with_zeros<'a, E>(
    zeros: ArrayView2<'a, E>,
    wco: ArrayView1<'a, E>,
) -> [ArrayView1<'a, E>; 3] {
    let zeros = if zeros.nrows() > 0 { zeros.index_axis_move(Axis(0), 0) } else { wco };
    [zeros, zeros, wco]
}

/// A step on a state of another shape than the gates'. Nobody needs it to be fast.
fn broadcast_step<E: Storage>(
    context: &Context<'_>,
    attributes: &Attributes,
    inputs: LstmCellInputs<'_, E>,
    cs_prev: &ArrayViewD<'_, E>,
    outputs: LstmCellOutputs<'_, E>,
    scratch: &mut [E],
) {
    let LstmCellOutputs { mut i, mut cs, mut f, mut o, mut ci, mut co, mut h } = outputs;
    let size = i.dim();
    let mut memory = scratch.chunks_exact_mut((size.0 * size.1).max(1));
    let mut matrix = || {
        let memory = memory.next().unwrap_or_default();
        ArrayViewMut2::from_shape(size, memory).expect("as much memory as was asked for")
    };
    let mut zeros = matrix();
    zeros.fill(E::ZERO);
    let gates = BlockCellOutputs {
        i: i.view_mut(),
        cs: matrix(),
        f: f.view_mut(),
        o: o.view_mut(),
        ci: ci.view_mut(),
        co: matrix(),
        h: matrix(),
    };
    step(context, attributes, inputs, zeros.view(), gates);
    let clip = attributes.cell_clip_in::<E>();
    let shape = IxDyn(cs.shape());
    let [i, f, o, ci] =
        [&i, &f, &o, &ci].map(|gate| gate.broadcast(shape.clone()).expect("it was checked"));
    let cs_prev = cs_prev.broadcast(shape.clone()).expect("it was checked");
    Zip::from(&mut cs).and(i).and(ci).and(f).and(cs_prev).for_each(|cs, i, ci, f, cs_prev| {
        let state = i.to_f32() * ci.to_f32() + f.to_f32() * cs_prev.to_f32();
        let clipped =
            clip.filter(|_| !state.is_nan()).map_or(state, |clip| state.clamp(-clip, clip));
        *cs = E::from_f32(clipped);
    });
    Zip::from(&mut co).and(&cs).for_each(|co, cs| *co = E::from_f32(cs.to_f32().tanh()));
    Zip::from(&mut h)
        .and(&co)
        .and(o)
        .for_each(|h, co, o| *h = E::from_f32(o.to_f32() * co.to_f32()));
}
