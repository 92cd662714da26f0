//! Rewrites: steps of plain cells, which graphs write with small operations.
//!
//! | in the graph | becomes |
//! |---|---|
//! | the forward step of `BasicLSTMCell` or `LSTMCell` | `BlockcellLSTMCell` |
//! | its backward step | `BlockcellLSTMCellGrad` |
//!
//! What the steps are made of is in `lstm.rs` and `lstm_grad.rs`. Conditions, and where they are checked:
//!
//! * All nodes of a step are on one CPU of this process, float or half: [`step::Step::check_places`].
//! * All outputs of the new node have a value at the same time. So whoever takes an inner tensor waits
//!   for all inputs of the step anyhow: [`step::Step::check_consumers`], [`availability`].
//! * Nothing that the step takes depends on a part of it: [`levels`].
//! * The new node reads its inputs later than some nodes of the step did. A variable's memory must not be
//!   written to before: [`writers`].

mod availability;
mod equations;
mod levels;
mod lstm;
mod lstm_grad;
mod step;
mod writers;

use crate::graph::{Graph, NodeId};
use crate::report::Report;

/// Rewrites all steps of a graph.
pub(crate) fn rewrite(graph: &mut Graph, report: &mut Report) {
    let forward: Vec<_> = graph.ids().filter(|&id| lstm::is_place(graph, id)).collect();
    if forward.is_empty() {
        return;
    }
    let mut context = step::Context::of(graph);
    // These first: what they read of a forward step may be all that keeps it from being replaced.
    let known = lstm_grad::known(graph, &forward);
    let backward: Vec<_> = graph.ids().filter(|&id| lstm_grad::looks_like_one(graph, id)).collect();
    let replaced = backward
        .into_iter()
        .filter(|&id| lstm_grad::rewrite(graph, &mut context, &known, id, report))
        .count();
    if replaced > 0 {
        context.remove_unused_stacks(graph);
    }
    for id in forward {
        lstm::rewrite(graph, &mut context, id, report);
    }
}

/// Whether a step may begin at a node.
pub(crate) fn is_place(graph: &Graph, id: NodeId) -> bool {
    lstm::is_place(graph, id)
}

/// Whether a node looks like the end of a backward step, whose forward step is not yet replaced.
pub(crate) fn is_gradient_of_gates(graph: &Graph, id: NodeId) -> bool {
    lstm_grad::looks_like_one(graph, id)
}
