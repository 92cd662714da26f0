//! Rewrite: a loop over a sequence that does nothing but steps of cells becomes one node for each layer.
//!
//! ```text
//! in the graph                                             becomes
//! x -> TensorArrayScatter -> loop of BlockcellLSTMCell     BlockcellLSTMLayer(time, rounds, x, ...)
//!                            -> TensorArrayGather -> h
//!                         of GRUBlockCell                  BlockcellGRULayer
//! ```
//!
//! The steps in the loop are those that `cells` has put there. What such a loop is made of is in `frame.rs` (its
//! variables), `arrays.rs` (its input and output) and `body.rs` (its round). Conditions, and where they are checked:
//!
//! * Every node of the loop is one of those that the new nodes stand for, so that nothing else happens in a round:
//!   `Loop::read`. All are on one CPU of this process: `Loop::check`.
//! * Nobody else reads or writes the arrays: `arrays.rs`.
//! * All that leaves the loop has a value when all that the new nodes take has: `Loop::check`.
//! * What the new nodes take keeps its value: no memory of a variable that the graph writes to, same place.
//! * An array that is too short, or has elements of other shapes, is an error as in the loop: the kernel has the
//!   sizes of the arrays and of their elements.

mod arrays;
mod body;
mod frame;
mod keras;
mod layers;
mod lists;
mod rounds;
mod weights;

use crate::facts::availability::{Availability, Needed};
use crate::facts::memory::Memory;
use crate::graph::reason::Reason;
use crate::graph::report::Report;
use crate::graph::{Graph, NodeId, ops};
use frame::Frame;

/// Whether a node is in a step that such loops have.
fn is_place(graph: &Graph, id: NodeId) -> bool {
    matches!(graph.op(id), ops::LSTM_CELL | ops::GRU_CELL | ops::HALF_GRU_CELL)
        || keras::is_place(graph, id)
}

/// Rewrites all such loops of a graph.
pub(crate) fn rewrite(graph: &mut Graph, report: &mut Report) {
    let mut frames = frame::with(graph, graph.ids().filter(|&id| is_place(graph, id)));
    // Where gradients are taken, a round keeps tensors for them.
    let keeps = |id: &NodeId| matches!(graph.op(*id), "StackPushV2" | "TensorListPushBack");
    frames.retain(|frame| !frame.nodes.iter().any(keeps));
    if frames.is_empty() {
        return;
    }
    let (mut availability, memory) = (Availability::of(graph), Memory::of(graph));
    for frame in frames {
        let condition = frame.condition;
        let replaced = if frame.nodes.iter().any(|&id| keras::is_place(graph, id)) {
            replace_keras(graph, frame, &availability, &memory, report)
        } else {
            replace(graph, frame, &availability, &memory, report)
        };
        match replaced {
            Ok((added, needed)) => {
                for new in added {
                    availability.add(graph, new, needed.clone());
                }
            }
            Err(reason) => report.stays(condition, reason),
        }
    }
}

/// The nodes in the place of a loop, and what they need to run.
type Replaced = Result<(Vec<NodeId>, Needed), Reason>;

fn replace(
    graph: &mut Graph,
    frame: Frame,
    availability: &Availability,
    memory: &Memory,
    report: &mut Report,
) -> Replaced {
    let found = layers::Loop::read(graph, frame)?;
    let needed = found.check(graph, availability, memory)?;
    Ok((found.replace(graph, report), needed))
}

fn replace_keras(
    graph: &mut Graph,
    frame: Frame,
    availability: &Availability,
    memory: &Memory,
    report: &mut Report,
) -> Replaced {
    let found = keras::KerasLoop::read(graph, frame)?;
    let needed = found.check(graph, availability, memory)?;
    Ok((found.replace(graph, report), needed))
}
