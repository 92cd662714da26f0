//! `BlockcellGRULayer`: a loop over a sequence whose rounds are steps of a GRU cell.

use ndarray::{ArrayView1, ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis};

use super::steps::{self, ElementShapes, Steps};
use crate::block_gru::forward::{GruSequence, forward_scratch};
use crate::gru::step::GruStep;
use crate::ops::{PartialShape, Sizes};
use crate::recurrence::{Lengths, last_states};
use crate::shapes::{Dim, bind, check_layout, check_output, check_size, shape_of};
use crate::{Context, Element, Error, Storage};

/// The operation's name in TensorFlow.
pub const GRU_LAYER: &str = "BlockcellGRULayer";

/// Inputs of [`gru_layer`].
#[derive(Clone, Debug)]
pub struct GruLayerInputs<'a, E> {
    /// `[time, batch, input]`
    pub x: ArrayView3<'a, E>,
    /// State before the first step, `[batch, cell]`.
    pub h_prev: ArrayView2<'a, E>,
    /// Weights of the reset and update gates, `[input + cell, 2 * cell]`.
    pub w_ru: ArrayView2<'a, E>,
    /// Weights of the candidate, `[input + cell, cell]`.
    pub w_c: ArrayView2<'a, E>,
    /// Biases of the gates, `[2 * cell]`.
    pub b_ru: ArrayView1<'a, E>,
    /// Bias of the candidate, `[cell]`.
    pub b_c: ArrayView1<'a, E>,
}

/// Outputs of [`gru_layer`]. Previous contents do not matter.
#[derive(Debug)]
pub struct GruLayerOutputs<'a, E> {
    /// Outputs of the steps, `[time, batch, cell]`: zero in steps that a row does not take part in.
    pub h: ArrayViewMut3<'a, E>,
    /// State after each row's last step, `[batch, cell]`.
    pub h_last: ArrayViewMut2<'a, E>,
}

/// What is known of the shapes of the inputs.
#[derive(Clone, Debug)]
pub struct GruLayerShapes<'s> {
    /// Those of time, and of each number of rounds.
    pub scalars: &'s [PartialShape],
    /// That of `sequence_length`, if there is one.
    pub sequence_length: &'s [PartialShape],
    /// Those of x, `h_prev`, `w_ru`, `w_c`, `b_ru` and `b_c`.
    pub fixed: &'s [PartialShape; 6],
    /// What is known of the elements of the loop's arrays.
    pub elements: &'s ElementShapes,
}

/// The shapes of [`gru_layer`]'s outputs, in their order, as far as they follow from what is known of the inputs'
/// shapes.
///
/// # Errors
///
/// [`Error::ListShape`] for the first tensor at odds with those before it, [`Error::Overflow`] for an output that
/// cannot be addressed.
pub fn gru_layer_shapes(shapes: &GruLayerShapes<'_>) -> Result<[Vec<Option<usize>>; 2], Error> {
    let op = GRU_LAYER;
    let [x, cell @ ..] = shapes.fixed;
    let [time, mut batch, input] =
        steps::check_sequence(op, x, shapes.scalars, shapes.sequence_length)?;
    let cell = check_cell(op, cell, &mut batch, input)?;
    steps::check_element(op, "x", &shapes.elements.x, [batch, input])?;
    steps::check_element(op, "h", &shapes.elements.h, [batch, cell])?;
    let h = vec![time, batch, cell];
    check_size(op, "h", "[time, batch, cell]", &h)?;
    Ok([h, vec![batch, cell]])
}

/// The number of cells, from the shapes of `h_prev`, `w_ru`, `w_c`, `b_ru` and `b_c`.
pub(super) fn check_cell(
    op: &'static str,
    [h_prev, w_ru, w_c, b_ru, b_c]: &[PartialShape; 5],
    batch: &mut Option<usize>,
    input: Option<usize>,
) -> Result<Option<usize>, Error> {
    let mut cell = None;
    let state = &mut [Dim::new("batch", batch), Dim::new("cell", &mut cell)];
    bind(op, ("h_prev", 0), h_prev, state)?;
    bind(op, ("b_c", 0), b_c, &mut [Dim::new("cell", &mut cell)])?;
    // What is too large to be counted cannot be addressed either.
    let mut rows = input.zip(cell).map(|(input, cell)| input.saturating_add(cell));
    let mut gates = cell.map(|cell| cell.saturating_mul(2));
    let dims = &mut [Dim::new("input + cell", &mut rows), Dim::new("2 * cell", &mut gates)];
    bind(op, ("w_ru", 0), w_ru, dims)?;
    let dims = &mut [Dim::new("input + cell", &mut rows), Dim::new("cell", &mut cell)];
    bind(op, ("w_c", 0), w_c, dims)?;
    bind(op, ("b_ru", 0), b_ru, &mut [Dim::new("2 * cell", &mut gates)])?;
    Ok(cell)
}

/// How much scratch memory [`gru_layer`] needs: so many numbers, and so many elements.
#[must_use]
pub fn gru_layer_scratch([time, batch, input_size, cell_size]: [usize; 4]) -> [usize; 2] {
    let sizes = Sizes { time, batch, input_size, cell_size, optional: [0; 3] };
    [forward_scratch(&sizes), batch.saturating_mul(cell_size).saturating_mul(4)]
}

/// `BlockcellGRULayer`: the steps of [`crate::gru`] in a loop, the state of each being that of the step before.
///
/// A row that has ended keeps its state, and its outputs are zero, as are those of steps that the loop does not
/// reach.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, more rounds than x has steps, a loop without a round whose outputs have no
/// known shape, or too short a scratch memory; nothing is written then.
pub fn gru_layer<E: Element>(
    context: &Context<'_>,
    (steps, elements): (&Steps, &ElementShapes),
    inputs: GruLayerInputs<'_, E>,
    outputs: GruLayerOutputs<'_, E>,
    (scratch, memory): (&mut [f32], &mut [E]),
) -> Result<(), Error> {
    let op = GRU_LAYER;
    let GruLayerInputs { x, h_prev, w_ru, w_c, b_ru, b_c } = &inputs;
    let [gates, candidate] = [b_ru, b_c].map(shape_of);
    let fixed = [shape_of(x), shape_of(h_prev), shape_of(w_ru), shape_of(w_c), gates, candidate];
    let shapes = GruLayerShapes {
        scalars: &[],
        sequence_length: &steps.shape_of_lengths(),
        fixed: &fixed,
        elements,
    };
    let [h, h_last] = gru_layer_shapes(&shapes)?;
    check_output(op, ("h", 0), &outputs.h, &h)?;
    check_output(op, ("h_last", 0), &outputs.h_last, &h_last)?;
    check_layout(op, "h", &outputs.h)?;
    check_layout(op, "h_last", &outputs.h_last)?;
    for (view, name) in [(h_prev, "h_prev"), (w_ru, "w_ru"), (w_c, "w_c")] {
        check_layout(op, name, view)?;
    }
    check_layout(op, "x", x)?;
    check_layout(op, "b_ru", b_ru)?;
    check_layout(op, "b_c", b_c)?;
    let (time, batch, cell) = outputs.h.dim();
    let lengths = steps.check(op, (time, batch, cell), elements)?;
    let needed = gru_layer_scratch([time, batch, x.dim().2, cell]);
    steps::check_scratch(op, needed, [scratch.len(), memory.len()])?;
    if lengths.of_rows.is_empty() {
        return Ok(());
    }
    E::plain_gru_layer(context, &lengths.of_rows, inputs, outputs, scratch, memory);
    Ok(())
}

/// The steps of rows that take part in `lengths` of them.
pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    lengths: &[i64],
    inputs: GruLayerInputs<'_, E>,
    outputs: GruLayerOutputs<'_, E>,
    scratch: &mut [f32],
    memory: &mut [E],
) {
    let GruLayerInputs { x, h_prev, w_ru, w_c, b_ru, b_c } = inputs;
    let GruLayerOutputs { mut h, h_last } = outputs;
    let (_, batch, cell) = h.dim();
    let lengths = Lengths::new(ArrayView1::from(lengths));
    let [(ru_x, ru_h), (c_x, c_h)] = [w_ru, w_c].map(|w| w.split_at(Axis(0), x.dim().2));
    let sequence = GruSequence {
        lengths,
        x,
        h_prev,
        w_x: Some([ru_x, c_x]),
        w_h: [ru_h, c_h],
        step: GruStep { b_ru, b_c, b_hc: None },
    };
    let mut gates = memory.chunks_exact_mut((batch * cell).max(1));
    let [r, u, c, hc] = [(); 4].map(|()| {
        let gate = gates.next().unwrap_or_default();
        ArrayViewMut3::from_shape((1, batch, cell), gate).expect("as much memory as was asked for")
    });
    sequence.compute(context, [r, u, c, hc, h.view_mut()], scratch);
    last_states(lengths, h_prev, h.view(), h_last);
}
