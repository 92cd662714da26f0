//! Rewrite: a loop over a sequence that does nothing but steps of cells becomes one node for each layer.
//!
//! ```text
//! in the graph                                             becomes
//! x -> TensorArrayScatter -> loop of BlockcellLSTMCell     BlockcellLSTMLayer(time, rounds, x, ...)
//!                            -> TensorArrayGather -> h
//!                         of LSTMBlockCell                 BlockcellLSTMLayer
//!                         of GRUBlockCell                  BlockcellGRULayer
//! ```
//!
//! The steps in the loop are those that `cells` has put there, and those of TensorFlow's block cells. What such a loop is made of is in `frame.rs` (its
//! variables), `lists.rs` and `arrays.rs` (its input and output), `body.rs` (its round) and `cells.rs` (its steps); what
//! takes its place, in `layers.rs`. Conditions, and where they are checked:
//!
//! * Every node of the loop is one of those that the new nodes stand for, so that nothing else happens in a round:
//!   `Frame::check_nodes`.
//! * Nobody else reads or writes the arrays: `arrays.rs`.
//! * All those that nodes have in common which become layers: [`Candidate`](super::candidate::Candidate).
//! * An array that is too short, or has elements of other shapes, is an error as in the loop: the kernel has the
//!   sizes of the arrays and of their elements.

mod arrays;
mod body;
mod cells;
mod frame;
mod keras;
mod layers;
mod lists;
mod outputs;
mod rounds;
mod weights;

use crate::facts::shapes::LazyShapes;
use crate::graph::report::Report;
use crate::graph::{Graph, NodeId, ops};
use crate::rewrites::candidate::Facts;
use frame::Frame;

/// Whether a node is in a step that such loops have.
fn is_place(graph: &Graph, id: NodeId) -> bool {
    graph.is(id, ops::STEP) || keras::is_place(graph, id)
}

/// Rewrites the loops of Keras's layers. That is before `cells` finds steps in them.
pub(crate) fn rewrite_keras(graph: &mut Graph, report: &mut Report) {
    let frames = inference(graph, keras::is_place);
    if frames.is_empty() {
        return;
    }
    let (mut facts, shapes) = (Facts::of(graph), LazyShapes::default());
    for frame in frames {
        let Some(frame) = frame.current(graph) else { continue };
        let found = keras::read(graph, frame, &shapes);
        // What stays may be a loop of other steps then, and is reported with these.
        let _ = found.and_then(|found| found.rewrite(graph, &mut facts, report));
    }
}

/// The loops with such nodes in which no gradients are taken.
fn inference(graph: &Graph, is_place: fn(&Graph, NodeId) -> bool) -> Vec<Frame> {
    let mut frames = frame::with(graph, graph.ids().filter(|&id| is_place(graph, id)));
    // Where gradients are taken, a round keeps tensors for them.
    let keeps = |id: &NodeId| matches!(graph.op(*id), "StackPushV2" | "TensorListPushBack");
    frames.retain(|frame| !frame.nodes.iter().any(keeps));
    frames
}

/// Rewrites all such loops of a graph.
pub(crate) fn rewrite(graph: &mut Graph, report: &mut Report) {
    let frames = inference(graph, is_place);
    if frames.is_empty() {
        return;
    }
    let mut facts = Facts::of(graph);
    let shapes = LazyShapes::default();
    for frame in frames {
        let Some(frame) = frame.current(graph) else { continue };
        let condition = frame.condition;
        let is_of_keras = frame.nodes.iter().any(|&id| keras::is_place(graph, id));
        let found = match is_of_keras {
            true => keras::read(graph, frame, &shapes),
            false => cells::read(graph, frame, &shapes),
        };
        if let Err(reason) = found.and_then(|found| found.rewrite(graph, &mut facts, report)) {
            report.stays(condition, reason);
        }
    }
}
