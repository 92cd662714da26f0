//! Rewrites of computation graphs around recurrent cells, on graphs as plain data.
//!
//! The products around a cell take most of the time of its training graph. [`rewrite`] recognizes them, and the cells
//! themselves, and replaces them with operations of this library. It does not use TensorFlow's classes: a program
//! describes its graph as a [`Graph`], and applies the resulting [`Edit`]s.
//!
//! # The rule
//!
//! A rewrite may happen only if every consumer gets the same values, at the latest when it would have
//! got them, whatever else the graph does. What the graph may do:
//!
//! * **Be fed and fetched anywhere.** At the point where [`rewrite`] runs, each tensor that is fed or fetched has a
//!   node of its own. A node is removed only if nothing depends on it except the node that replaces it
//!   (`placement.rs`).
//! * **Leave branches dead, or feed them later** (`Switch`, `cond`, `partial_run`). A node with several outputs
//!   computes all of them at the same time, or none (`waits.rs`).
//! * **Change variables.** A tensor may be the memory of a variable, and must then not be read later than
//!   before (`memory.rs`).
//! * **Loop.** Fused nodes are in the same iteration of the same loop (`replacement.rs`).
//! * **Run elsewhere.** Another process may not have the library: only nodes on CPUs of this process are rewritten
//!   (`placement.rs`).
//! * **Broadcast.** The two inputs of `Add` may have different shapes (`shapes.rs`).
//!
//! If a condition is not certain to hold, the graph is left unchanged, and the [`Report`] gives the reason. Each
//! rewrite lists its conditions and where they are checked. No algorithm is recursive over the depth of a graph, and
//! the time is proportional to the size of the graph.
//!
//! # Layers
//!
//! Modules import only from modules below them: `rewrites` (the rewrites), `facts` (what conditions query about the
//! whole graph), `reading` (patterns) and `graph` (the data, and the table of operations).

mod facts;
mod graph;
mod reading;
mod rewrites;

pub use graph::reason::Reason;
pub use graph::report::{Kept, Report, Rewritten};
pub use graph::{
    Attribute, Constant, DataType, Device, Edit, Graph, Node, NodeId, Output, Use, Values,
};
pub use graph::{ops, text};
pub use rewrites::keras2_functions::function::{Body, Function, FunctionEdit, FunctionNode};
pub use rewrites::keras2_functions::{Choice, Choices, Copy as FunctionCopy, choose};

use graph::order;
use reading::terms::Terms;
use rewrites::{cells, loops, slices, sums, unrolled};

/// Rewrites a graph that is about to run: pruned, after TensorFlow's optimizers, and before it is partitioned by
/// device.
pub fn rewrite(graph: &mut Graph) -> Report {
    let mut report = Report::default();
    if let Some((id, reason)) = flaw(graph) {
        report.stays(id, reason);
    } else if graph.ids().any(|id| graph.is(id, ops::WRITES)) {
        places(graph).for_each(|id| report.stays(id, Reason::WritesInput));
    } else {
        loops::rewrite_keras(graph, &mut report);
        cells::rewrite(graph, &mut report);
        loops::rewrite(graph, &mut report);
        unrolled::rewrite(graph, &mut report);
        sums::rewrite(graph, &mut report);
        sums::rewrite_products(graph, &mut report);
        slices::rewrite(graph, &mut report);
    }
    rewrites::shield::remove(graph);
    report.finish(graph);
    report
}

/// The nodes at which a pattern may begin.
fn places(graph: &Graph) -> impl Iterator<Item = NodeId> + '_ {
    graph.ids().filter(|&id| is_place(graph, id))
}

fn is_place(graph: &Graph, id: NodeId) -> bool {
    Terms::read(graph, id).is_some()
        || slices::is_product(graph, id)
        || cells::is_place(graph, id)
        || graph.is(id, ops::STEP)
}

/// What TensorFlow would not run, if the graph has it. Patterns rely on it not being there.
fn flaw(graph: &Graph) -> Option<(NodeId, Reason)> {
    let mut ids = graph.ids();
    if let Some(id) = ids.find(|&id| graph.node(id).inputs.len() < ops::fewest_inputs(graph.op(id)))
    {
        return Some((id, Reason::Incomplete));
    }
    order::first_on_or_after_a_circle(graph).map(|id| (id, Reason::Endless))
}

/// Prepares a graph for TensorFlow's optimizers: after placement, before they run.
pub fn shield(graph: &mut Graph) {
    if flaw(graph).is_none() {
        rewrites::shield::put(graph);
    }
}
