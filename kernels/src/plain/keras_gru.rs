//! `BlockcellKerasGRU`: a loop over a sequence whose rounds are steps of Keras's GRU cell, which resets the state after
//! its product.

use ndarray::{
    ArrayView1, ArrayView2, ArrayView3, ArrayViewMut1, ArrayViewMut2, ArrayViewMut3, Axis, Zip, s,
};

use super::keras::{self, KerasMask, KerasShapes, KerasSteps, Pieces, Taken};
use super::steps::{self, ElementShapes};
use crate::block_gru::forward::{GruSequence, forward_scratch};
use crate::gru::step::GruStep;
use crate::ops::{PartialShape, Sizes};
use crate::recurrence::{Lengths, last_states};
use crate::shapes::{Dim, bind, check_layout, check_output, shape_of};
use crate::{Context, Element, Error, Storage};

/// The operation's name in TensorFlow.
pub const KERAS_GRU: &str = "BlockcellKerasGRU";

/// Inputs of [`keras_gru`]. Where the batch is larger, one row of a tensor stands for all.
#[derive(Clone, Debug)]
pub struct KerasGruInputs<'a, E> {
    /// None if all rows take part in all steps.
    pub mask: Option<KerasMask<'a, E>>,
    /// `[time, batch, input]`
    pub x: ArrayView3<'a, E>,
    /// State before the first step, `[batch, cell]`.
    pub h_prev: ArrayView2<'a, E>,
    /// Weights of x, `[input, 3 * cell]`: of the update gate, reset gate and candidate.
    pub w_x: ArrayView2<'a, E>,
    /// Weights of the state, `[cell, 3 * cell]`.
    pub w_h: ArrayView2<'a, E>,
    /// Biases of the products with x, `[3 * cell]`.
    pub b_x: ArrayView1<'a, E>,
    /// Biases of the products with the state, `[3 * cell]`.
    pub b_h: ArrayView1<'a, E>,
}

/// Outputs of [`keras_gru`]. Previous contents do not matter.
#[derive(Debug)]
pub struct KerasGruOutputs<'a, E> {
    /// Outputs of the steps, `[size, batch, cell]`: zero from the last round on.
    pub h: ArrayViewMut3<'a, E>,
    /// State after each row's last step, `[batch, cell]`.
    pub h_last: ArrayViewMut2<'a, E>,
}

/// The shapes of [`keras_gru`]'s outputs, in their order, as far as they follow from what is known of the inputs'
/// shapes: those of `shapes`, and of `w_x`, `w_h`, `b_x` and `b_h`.
///
/// # Errors
///
/// [`Error::ListShape`] for the first tensor at odds with those before it, [`Error::Overflow`] for an output that
/// cannot be addressed.
pub fn keras_gru_shapes(
    shapes: &KerasShapes<'_>,
    weights: &[PartialShape; 4],
    size: Option<usize>,
) -> Result<Vec<Vec<Option<usize>>>, Error> {
    let op = KERAS_GRU;
    let [batch, mut input, mut cell] = keras::sizes(op, shapes)?;
    let mut gates = cell.map(|cell| cell.saturating_mul(3));
    let [w_x, w_h, b_x, b_h] = weights;
    let dims = &mut [Dim::new("input", &mut input), Dim::new("3 * cell", &mut gates)];
    bind(op, ("w_x", 0), w_x, dims)?;
    let dims = &mut [Dim::new("cell", &mut cell), Dim::new("3 * cell", &mut gates)];
    bind(op, ("w_h", 0), w_h, dims)?;
    bind(op, ("b_x", 0), b_x, &mut [Dim::new("3 * cell", &mut gates)])?;
    bind(op, ("b_h", 0), b_h, &mut [Dim::new("3 * cell", &mut gates)])?;
    keras::outputs(op, size, [batch, cell], shapes.states)
}

/// How much scratch memory [`keras_gru`] needs: so many numbers, and so many elements.
#[must_use]
pub fn keras_gru_scratch([time, batch, input_size, cell_size]: [usize; 4]) -> [usize; 2] {
    let sizes = Sizes { time, batch, input_size, cell_size, optional: [0; 3] };
    let states = batch.saturating_mul(cell_size);
    // First states, gates, and the outputs of all steps.
    let elements = states.saturating_mul(time.saturating_add(6));
    let x = time.saturating_mul(batch).saturating_mul(input_size);
    let rows = input_size.saturating_add(cell_size).saturating_add(1);
    let weights = rows.saturating_mul(cell_size).saturating_mul(3);
    let elements = elements.saturating_add(x).saturating_add(weights);
    [forward_scratch(&sizes), elements]
}

/// `BlockcellKerasGRU`: the steps of `BlockGRU` with `reset_after` in a loop.
///
/// A row keeps its state in steps that are masked.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, more rounds than x or h have steps, or too short a scratch memory; nothing
/// is written then.
pub fn keras_gru<E: Element>(
    context: &Context<'_>,
    (steps, elements): (&KerasSteps, &ElementShapes),
    inputs: KerasGruInputs<'_, E>,
    outputs: KerasGruOutputs<'_, E>,
    (scratch, memory): (&mut [f32], &mut [E]),
) -> Result<(), Error> {
    let op = KERAS_GRU;
    let KerasGruInputs { mask, x, h_prev, w_x, w_h, b_x, b_h } = &inputs;
    let (size, rounds) = (steps.outputs(op)?, steps.rounds(op, x.len_of(Axis(0)))?);
    let mask = keras::check_mask(op, mask.as_ref(), rounds)?;
    let (x_shape, states) = (shape_of(x), [shape_of(h_prev)]);
    let shapes = KerasShapes { scalars: &[], mask: &mask, x: &x_shape, states: &states, elements };
    let weights = [shape_of(w_x), shape_of(w_h), shape_of(b_x), shape_of(b_h)];
    let known = keras_gru_shapes(&shapes, &weights, Some(size))?;
    check_output(op, ("h", 0), &outputs.h, &known[0])?;
    check_output(op, ("h_last", 0), &outputs.h_last, &known[1])?;
    check_layout(op, "h", &outputs.h)?;
    check_layout(op, "h_last", &outputs.h_last)?;
    for (view, name) in [(h_prev, "h_prev"), (w_x, "w_x"), (w_h, "w_h")] {
        check_layout(op, name, view)?;
    }
    check_layout(op, "x", x)?;
    check_layout(op, "b_x", b_x)?;
    check_layout(op, "b_h", b_h)?;
    let (_, batch, cell) = outputs.h.dim();
    let needed = keras_gru_scratch([x.dim().0, batch, x.dim().2, cell]);
    steps::check_scratch(op, needed, [scratch.len(), memory.len()])?;
    if batch > 0 && cell > 0 {
        E::plain_keras_gru(context, steps, inputs, outputs, scratch, memory);
    }
    Ok(())
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    steps: &KerasSteps,
    inputs: KerasGruInputs<'_, E>,
    outputs: KerasGruOutputs<'_, E>,
    scratch: &mut [f32],
    memory: &mut [E],
) {
    let KerasGruInputs { mask, x, h_prev, w_x, w_h, b_x, b_h } = inputs;
    let KerasGruOutputs { mut h, h_last } = outputs;
    let (_, batch, cell) = h.dim();
    let rounds = usize::try_from(steps.rounds).unwrap_or(0);
    let taken = Taken::of(mask.as_ref(), rounds, batch);
    let mut pieces = Pieces::new(memory);
    let h_prev = pieces.whole(h_prev, batch);
    let before = mask.map(|mask| pieces.whole(mask.before, batch));
    let x = taken.x(x, rounds, &mut pieces);
    let [r, u, c, hc] = [(); 4].map(|()| pieces.take([1, batch, cell]));
    let mut own = (!taken.in_place(steps)).then(|| pieces.take([rounds, batch, cell]));
    // The products take matrices without gaps.
    let mut parts = [w_x, w_h].map(|w| {
        let part = |gates| pieces.take([1, w.nrows(), gates * cell]).index_axis_move(Axis(0), 0);
        [2, 1].map(part)
    });
    for ([gates, candidate], w) in parts.iter_mut().zip([w_x, w_h]) {
        swap_gates(w, gates.view_mut());
        candidate.assign(&w.slice(s![.., 2 * cell..]));
    }
    let [w_x, w_h] = parts.each_ref().map(|both| both.each_ref().map(|part| part.view()));
    let mut b_ru = pieces.take([1, 1, 2 * cell]);
    add_biases(b_x, b_h, b_ru.slice_mut(s![0, 0, ..]));
    let [b_c, b_hc] = [b_x, b_h].map(|b| b.split_at(Axis(0), 2 * cell).1);
    let lengths = Lengths::new(ArrayView1::from(&taken.lengths));
    let sequence = GruSequence {
        lengths,
        x,
        h_prev,
        w_x: Some(w_x),
        w_h,
        step: GruStep { b_ru: b_ru.slice(s![0, 0, ..]), b_c, b_hc: Some(b_hc) },
    };
    let outputs_of_steps = own.as_mut().map_or_else(|| h.view_mut(), |own| own.view_mut());
    sequence.compute(context, [r, u, c, hc, outputs_of_steps], scratch);
    let outputs_of_steps = own.as_ref().map_or_else(|| h.view(), |own| own.view());
    last_states(lengths, h_prev, outputs_of_steps, h_last);
    if own.is_some() {
        h.fill(E::ZERO);
    }
    taken.spread(steps, before, own.as_ref().map(|own| own.view()), h);
}

/// The columns of the reset and of the update gate, in the order that `BlockGRU` has. Keras has the update gate first.
fn swap_gates<E: Storage>(w: ArrayView2<'_, E>, mut swapped: ArrayViewMut2<'_, E>) {
    let cell = swapped.ncols() / 2;
    swapped.slice_mut(s![.., ..cell]).assign(&w.slice(s![.., cell..2 * cell]));
    swapped.slice_mut(s![.., cell..]).assign(&w.slice(s![.., ..cell]));
}

/// The biases of these gates: nothing comes between the two products.
fn add_biases<E: Storage>(
    b_x: ArrayView1<'_, E>,
    b_h: ArrayView1<'_, E>,
    mut b_ru: ArrayViewMut1<'_, E>,
) {
    let cell = b_ru.len() / 2;
    for (to, from) in [(0..cell, cell..2 * cell), (cell..2 * cell, 0..cell)] {
        let (x, h) = (b_x.slice(s![from.clone()]), b_h.slice(s![from]));
        let sum = |to: &mut E, x: &E, h: &E| *to = E::from_f32(x.to_f32() + h.to_f32());
        Zip::from(b_ru.slice_mut(s![to])).and(x).and(h).for_each(sum);
    }
}
