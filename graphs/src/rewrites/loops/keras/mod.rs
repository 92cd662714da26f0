//! Loops of Keras's layers: what `tf.keras.layers.LSTM` and `GRU` of Keras 3 write, once the loop is lowered.
//!
//! ```text
//! in the graph                                             becomes
//! x -> TensorListFromTensor -> loop of Keras's LSTM step   BlockcellKerasLSTM(size, rounds, x, ...)
//!                              -> TensorListStack -> h
//!                           of Keras's GRU step            BlockcellKerasGRU
//! ```
//!
//! The steps are small operations in the loop: `step.rs`, `lstm.rs` and `gru.rs`. Its lists are in `../lists.rs`, and
//! what a masked step does in `masks.rs`. Lists are values, not memory, so that it does not matter who else reads them.
//! Variables of the layer are read in every round. `../weights.rs` lets the new node read them once, after all that the
//! loop waits for: nothing in the loop writes to them, and whatever writes to them outside is either before the loop,
//! or might have come after all of its rounds. A loop without a round reads no variable: `../rounds.rs`.

mod gru;
mod lstm;
mod masks;
mod step;

use std::collections::BTreeSet;

use super::body::Counters;
use super::frame::Frame;
use super::layers::{Layer, Loop};
use super::lists::{Input, Written};
use super::rounds::Rounds;
use super::weights::Weight;
use crate::facts::shapes::LazyShapes;
use crate::graph::reason::Reason;
use crate::graph::{Attribute, Graph, NodeId, Output, ops};
use crate::reading::neighbours::parts;
use crate::rewrites::candidate::Readers;
use step::Step;

/// Whether a step of Keras's cells may begin here: with the `Split` of pre-activations.
pub(super) fn is_place(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    // The gates of an LSTM have one sum. Those of a GRU have one for x and one for the state.
    let products = match parts(node) {
        Some(4) => 2,
        Some(3) => 1,
        _ => return false,
    };
    step::Terms::read(graph, node.inputs[1])
        .is_some_and(|terms| terms.products.len() == products && terms.biases.len() <= 1)
}

/// Reads a loop that is nothing but steps of a layer of Keras.
pub(super) fn read(graph: &Graph, frame: Frame, shapes: &LazyShapes) -> Result<Loop, Reason> {
    let node = graph.node(frame.condition).name.clone();
    let other = |part: &'static str| Reason::Loop { part, node: node.clone() };
    let counters = Counters::read(graph, &frame).ok_or_else(|| other("condition"))?;
    let step = step_of(graph, &frame).ok_or_else(|| other("step"))?;
    // `Add` broadcasts: one number, or a row, would do as well.
    let is_vector = |&bias: &Output| matches!(shapes.of(graph).sizes(graph, bias).as_deref(), Some(&[columns]) if columns != 1);
    if !step.added.iter().all(is_vector) {
        return Err(other("shape of the bias"));
    }
    // In a loop of one round, the first state may be narrower than the next one.
    let parts = if step.op == ops::KERAS_LSTM { 4 } else { 3 };
    let of_state = shapes.of(graph).sizes(graph, step.w_h);
    let columns = match of_state.as_deref() {
        Some(&[rows, columns]) if parts * rows == columns => Some(columns),
        None => None,
        _ => return Err(other("shape of the weights")),
    };
    // Without a bias, zeros stand for it. Without all parts of a product, these must be known to be all.
    let is_missing = |bias: &(usize, &Option<Output>)| bias.1.is_none();
    let missing = step.biases.iter().enumerate().filter(is_missing).map(|(place, _)| 2 + place);
    let zeros: Option<Vec<_>> = missing.map(|place| Some((place, columns?))).collect();
    let zeros = zeros.filter(|_| columns.is_some() || !step.needs_columns);
    let zeros = zeros.ok_or_else(|| other("shape of the weights"))?;
    let counts = |t| counters.is_count(graph, t);
    let input = Input::of_list(graph, &frame, step.x, counts).ok_or_else(|| other("input"))?;
    let written = Written::of_list(graph, &frame, counts)
        .and_then(|written| written.with_units(step.units))
        .ok_or_else(|| other("list of outputs"))?;
    let is_row = |element: &[i64]| element.first() == Some(&1);
    let starts_as_row = |[state, _]: &[Output; 2]| {
        let first = frame.variable(graph, *state).map(|variable| variable.first);
        first
            .and_then(|first| shapes.of(graph).sizes(graph, first))
            .is_some_and(|sizes| is_row(&sizes))
    };
    let has_one_row = is_row(&input.element) && step.states.iter().all(starts_as_row);
    if step.needs_one_row && !has_one_row {
        return Err(other("number of rows"));
    }
    let mut masks = masks::Reader::new(graph, &frame, &counters);
    let states = step.states.iter().map(|&state| masks.state(state));
    let states = states.collect::<Option<Vec<_>>>().ok_or_else(|| other("state"))?;
    let mask = masks.output(&written, step.h).ok_or_else(|| other("output"))?;
    if step.needs_one_row && !mask.iter().all(|mask| is_row(&mask.input.element)) {
        return Err(other("number of rows of the mask"));
    }
    let weights = [step.w_x, step.w_h].into_iter().chain(step.biases.iter().copied().flatten());
    let weights = weights.map(|weight| Weight::read(graph, &frame, weight));
    let weights = weights.collect::<Option<Vec<_>>>().ok_or_else(|| other("weights"))?;
    let mut known: BTreeSet<_> = frame.nodes_of_variables().collect();
    known.extend(counters.nodes.iter().chain(&step.nodes).chain(&masks.nodes));
    known.extend(weights.iter().flat_map(|weight| &weight.nodes));
    known.extend(input.inside.iter().chain(&written.inside));
    frame.check_nodes(graph, &known)?;
    let attributes = vec![
        ("num_mask", usize::from(mask.is_some()).into()),
        ("last_only", Attribute::Bool(written.last_only)),
        ("repeats", Attribute::Bool(mask.as_ref().is_none_or(|mask| mask.repeats))),
    ];
    let layer = Layer {
        root: step.root,
        op: step.op,
        attributes: [attributes, step.functions],
        states,
        weights,
        zeros,
        more: mask.iter().flat_map(|mask| [mask.input.x, mask.before]).collect(),
    };
    Ok(Loop {
        rounds: Rounds::of(&counters),
        size: written.size,
        lengths: None,
        input,
        lists: mask.into_iter().flat_map(|mask| mask.input.outside).collect(),
        layers: vec![layer],
        needs_h: written.stack.is_some(),
        written: Some(written),
        readers: Readers::Late,
        frame,
    })
}

/// The step of a loop. None if there is another number of them.
fn step_of(graph: &Graph, frame: &Frame) -> Option<Step> {
    let places = frame.nodes.iter().copied().filter(|&id| is_place(graph, id));
    let step = |id| match parts(graph.node(id)) {
        Some(4) => lstm::read(graph, frame, id),
        _ => gru::read(graph, frame, id),
    };
    let mut steps = places.filter_map(step);
    steps.next().filter(|_| steps.next().is_none())
}
