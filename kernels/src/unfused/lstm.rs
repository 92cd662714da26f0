//! `BlockcellLSTMCell`: the forward step of a plain LSTM cell.

use ndarray::{ArrayView1, ArrayView2, ArrayViewD, ArrayViewMut2, ArrayViewMutD, Axis, Zip};

use super::GateColumns;
use super::memory::{Pieces, whole_len};
use super::rows::with_all_rows;
use crate::lstm::cell::SingleStep;
use crate::lstm::step::LstmStep;
use crate::lstm::{Attributes, BlockCellOutputs};
use crate::ops::{Inferred, Lists, PartialShape, Sizes, UNFUSED_LSTM_CELL};
use crate::{Activation, Activations, Context, Element, Error, Storage};

pub use crate::ops::unfused::{LstmCellInputs, LstmCellOutputs};

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

/// The shapes of [`lstm_cell`]'s outputs, in their order, as far as they follow from the known parts of the inputs'
/// shapes. An unknown cs_prev is taken to be a matrix. With `w_h` and `broadcasts_rows`, x or `h_prev` may have a
/// single row, which broadcasts.
///
/// # Errors
///
/// [`Error::Shape`] for the first tensor that does not match the others, [`Error::Overflow`] for an output that cannot
/// be addressed.
pub fn lstm_cell_shapes(
    broadcasts_rows: bool,
    inputs: &Lists<'_, PartialShape>,
) -> Result<Inferred, Error> {
    let op = &UNFUSED_LSTM_CELL;
    let is_such = broadcasts_rows && !inputs.of("w_h").is_empty();
    let whole = is_such.then(|| with_all_rows(inputs, &["x", "h_prev"]));
    let whole = whole.as_ref().map(|shapes| inputs.with(shapes));
    let mut inferred = op.infer(false, whole.as_ref().unwrap_or(inputs))?;
    let (batch, cell) = (inferred.sizes.batch, inferred.sizes.cell_size);
    let gate = vec![batch, cell];
    let state = match inputs.of("cs_prev") {
        [Some(cs_prev)] => broadcast(&gate, cs_prev).ok_or_else(|| {
            let expected = "a shape that broadcasts with [batch, cell_size]".to_owned();
            let (op, tensor, got) = (op.name, "cs_prev", cs_prev.clone());
            Error::Shape { op, tensor, index: None, expected, got }
        })?,
        // One row of states may meet many rows, and many one.
        [None] => vec![None, cell.filter(|&cell| cell != 1)],
        _ => gate,
    };
    op.check_size("cs", "[batch, cell_size]", &state)?;
    // Gates that look at the state are as large.
    let gates = if inputs.of("peepholes").is_empty() { &[][..] } else { &["i", "f", "o"] };
    for name in gates.iter().chain(&["cs", "co", "h"]) {
        inferred.outputs[op.output(name)].clone_from(&state);
    }
    Ok(inferred)
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

/// The number of elements of scratch memory that [`lstm_cell`] needs for x and `h_prev` of these sizes, and for the
/// state.
#[must_use]
pub fn lstm_cell_scratch(
    [x, h_prev]: [(usize, usize); 2],
    cell: usize,
    cs_prev: Option<&[usize]>,
) -> usize {
    let batch = batch_of(x.0, h_prev.0);
    let whole = [x, h_prev].map(|(rows, columns)| whole_len([1, rows, columns], batch));
    let of_state = match cs_prev {
        Some(shape) if shape == [batch, cell] => 0,
        Some(_) => 7 * batch * cell,
        None => batch * cell,
    };
    whole[0] + whole[1] + of_state
}

/// The batch of tensors of so many rows, if they broadcast.
pub(super) fn batch_of(rows: usize, others: usize) -> usize {
    if rows == 1 { others } else { rows }
}

/// `BlockcellLSTMCell`: the forward step of [`crate::lstm`] on tensors that broadcast, as defined by
/// [`UNFUSED_LSTM_CELL`].
///
/// With `w_h` and `broadcasts_rows`, x or `h_prev` may have a single row, which broadcasts. Peepholes are used if
/// `inputs` has some; `attributes.use_peephole` is ignored.
///
/// # Errors
///
/// If a tensor has the wrong shape or layout; for another number of peepholes; or if the scratch memory is too short.
/// Nothing is written then.
pub fn lstm_cell<E: Element>(
    context: &Context<'_>,
    (attributes, columns, activations): (&Attributes, GateColumns, Activations),
    broadcasts_rows: bool,
    inputs: LstmCellInputs<'_, E>,
    outputs: LstmCellOutputs<'_, E>,
    scratch: &mut [E],
) -> Result<(), Error> {
    let op = &UNFUSED_LSTM_CELL;
    let cs_prev = inputs.cs_prev.as_ref();
    check_peepholes(op.name, inputs.peepholes.len(), cs_prev.is_some())?;
    let infer = |shapes: &Lists<'_, _>| lstm_cell_shapes(broadcasts_rows, shapes);
    let Sizes { cell_size, .. } = op.check_lists(&inputs, &outputs, infer)?;
    let rows = [inputs.x.dim(), inputs.h_prev.dim()];
    let needed = lstm_cell_scratch(rows, cell_size, cs_prev.map(ArrayViewD::shape));
    op.check_scratch(needed, scratch)?;
    let attributes = Attributes { use_peephole: !inputs.peepholes.is_empty(), ..*attributes };
    E::unfused_lstm_cell(context, (attributes, columns, activations), inputs, outputs, scratch);
    Ok(())
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    attributes: (Attributes, GateColumns, Activations),
    inputs: LstmCellInputs<'_, E>,
    outputs: LstmCellOutputs<'_, E>,
    scratch: &mut [E],
) {
    let size = outputs.ci.dim();
    let cs_prev = inputs.cs_prev.clone();
    let is_whole = outputs.cs.shape() == [size.0, size.1];
    let mut pieces = Pieces::new(scratch);
    let [x, h_prev] = [inputs.x, inputs.h_prev].map(|matrix| pieces.whole(matrix, size.0));
    let (inputs, scratch) = (LstmCellInputs { x, h_prev, ..inputs }, pieces.rest());
    match cs_prev {
        Some(cs_prev) if cs_prev.shape() != [size.0, size.1] && is_whole => {
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
    let [i, cs, f, o, co, h] =
        [i, cs, f, o, co, h].map(|view| view.into_dimensionality().expect("a matrix"));
    BlockCellOutputs { i, cs, f, o, ci, co, h }
}

fn step<E: Storage>(
    context: &Context<'_>,
    attributes: (Attributes, GateColumns, Activations),
    inputs: LstmCellInputs<'_, E>,
    cs_prev: ArrayView2<'_, E>,
    outputs: BlockCellOutputs<'_, E>,
) {
    let LstmCellInputs { x, h_prev, w, b, peepholes, w_h, .. } = inputs;
    let (w_x, w_h) = apart(w, w_h, x.ncols());
    let peepholes = match peepholes[..] {
        [wci, wcf, wco] => [wci, wcf, wco],
        [wco] => with_zeros(cs_prev, wco),
        // Nobody reads these.
        _ => [b; 3],
    };
    let (attributes, columns, activations) = attributes;
    let step = LstmStep { attributes, activations, order: columns.order(), b, peepholes };
    SingleStep { x, cs_prev, h_prev, w_x, w_h, step }.compute(context, outputs);
}

/// The weights of x, and those of the state, which may be a tensor of their own.
pub(super) fn apart<'a, E>(
    w: ArrayView2<'a, E>,
    w_h: Option<ArrayView2<'a, E>>,
    input_size: usize,
) -> (ArrayView2<'a, E>, ArrayView2<'a, E>) {
    match w_h {
        Some(w_h) => (w, w_h),
        None => w.split_at(Axis(0), input_size),
    }
}

/// The weights of all peepholes where only the output gate has one: a row of a state of zeros serves as the others'.
pub(super) fn with_zeros<'a, E>(
    zeros: ArrayView2<'a, E>,
    wco: ArrayView1<'a, E>,
) -> [ArrayView1<'a, E>; 3] {
    let zeros = if zeros.nrows() > 0 { zeros.index_axis_move(Axis(0), 0) } else { wco };
    [zeros, zeros, wco]
}

/// A step on a state that is larger than the cell input. Nobody needs it to be fast.
fn broadcast_step<E: Storage>(
    context: &Context<'_>,
    (attributes, columns, activations): (Attributes, GateColumns, Activations),
    inputs: LstmCellInputs<'_, E>,
    cs_prev: &ArrayViewD<'_, E>,
    outputs: LstmCellOutputs<'_, E>,
    scratch: &mut [E],
) {
    let LstmCellOutputs { mut i, mut cs, mut f, mut o, mut ci, mut co, mut h } = outputs;
    let size = ci.dim();
    let mut memory = scratch.chunks_exact_mut((size.0 * size.1).max(1));
    let mut matrix = || {
        let memory = memory.next().unwrap_or_default();
        ArrayViewMut2::from_shape(size, memory).expect("as much memory as was asked for")
    };
    let [mut zeros, mut i_bar, mut f_bar, mut o_bar] = [(); 4].map(|()| matrix());
    zeros.fill(E::ZERO);
    let gates = BlockCellOutputs {
        i: i_bar.view_mut(),
        cs: matrix(),
        f: f_bar.view_mut(),
        o: o_bar.view_mut(),
        ci: ci.view_mut(),
        co: matrix(),
        h: matrix(),
    };
    // A gate that looks at the state is as large. It gets its function then.
    let (peepholes, function) = (inputs.peepholes.clone(), activations.gates);
    let before = if peepholes.is_empty() { function } else { Activation::Linear };
    let functions = Activations { gates: before, ..activations };
    let own = Attributes { use_peephole: false, ..attributes };
    let inputs = LstmCellInputs { peepholes: Vec::new(), ..inputs };
    step(context, (own, columns, functions), inputs, zeros.view(), gates);
    let look = |number: usize,
                bar: &ArrayViewMut2<'_, E>,
                state: ArrayViewD<'_, E>,
                gate: &mut ArrayViewMutD<'_, E>| {
        let Some(weights) = peepholes.get(number) else { return gate.assign(bar) };
        let gate = Zip::from(gate).and_broadcast(bar.view()).and_broadcast(weights.view());
        gate.and(state).for_each(|gate, bar, weight, state| {
            let bar = bar.to_f32() + weight.to_f32() * state.to_f32();
            *gate = E::from_f32(function.of_number(bar));
        });
    };
    let cs_prev = cs_prev.broadcast(cs.raw_dim()).expect("it was checked");
    look(0, &i_bar, cs_prev.view(), &mut i);
    look(1, &f_bar, cs_prev.view(), &mut f);
    let clip = attributes.cell_clip_in::<E>();
    cs.assign(&cs_prev);
    let new = Zip::from(&mut cs).and_broadcast(i.view()).and_broadcast(ci.view());
    new.and_broadcast(f.view()).for_each(|cs, i, ci, f| {
        let state = i.to_f32() * ci.to_f32() + f.to_f32() * cs.to_f32();
        let clipped =
            clip.filter(|_| !state.is_nan()).map_or(state, |clip| state.clamp(-clip, clip));
        *cs = E::from_f32(clipped);
    });
    look(2, &o_bar, cs.view(), &mut o);
    let function = activations.state;
    let of = |cs: &E| E::from_f32(function.of_number(cs.to_f32()));
    Zip::from(&mut co).and(&cs).for_each(|co, cs| *co = of(cs));
    Zip::from(&mut h)
        .and(&co)
        .and_broadcast(o.view())
        .for_each(|h, co, o| *h = E::from_f32(o.to_f32() * co.to_f32()));
}
