//! Rewrites: steps of plain cells, which graphs write with small operations.
//!
//! | in the graph | becomes |
//! |---|---|
//! | the forward step of `BasicLSTMCell` or `LSTMCell` | `BlockcellLSTMCell` |
//! | its backward step | `BlockcellLSTMCellGrad` |
//! | the forward step of `LayerNormBasicLSTMCell` | `BlockcellLayerNormLSTMCell` |
//! | a normalization whose gradient is taken, and that gradient | `BlockcellLayerNorm` and `BlockcellLayerNormGrad` |
//! | the forward step of `GRUCell`, or one of two products | `GRUBlockCell` or `BlockcellGRUCell` |
//! | its backward step | `BlockcellGRUCellGradC` and `BlockcellGRUCellGradRU` |
//!
//! What the steps are made of is in `lstm.rs`, `lstm_grad.rs`, `lstm_grad_parts.rs`, `normalized.rs`, `layer_norm.rs`, `layer_norm_grad.rs`, `gru.rs` and `gru_grad.rs`. Conditions, and where they are checked:
//!
//! * All nodes of a step are on one CPU of this process, float or half: [`step::Step::check`].
//! * All outputs of the new node have a value at the same time. So whoever takes an inner tensor waits
//!   for all inputs of the step anyhow: [`step::Step::check_consumers`], [`Availability`](crate::facts::availability::Availability).
//! * The step has the shapes that the operations take: `lstm::Forward::with_known_shapes`, `gru::Forward::has_one_shape`.
//! * Nothing that the step takes depends on a part of it: [`Levels`](crate::facts::levels::Levels).
//! * The new node reads its inputs later than some nodes of the step did. A variable's memory must not be
//!   written to before: [`Writers`](crate::facts::writers::Writers).

mod added_biases;
mod broadcasts;
mod gru;
mod gru_grad;
mod layer_norm;
mod layer_norm_grad;
mod layer_norm_shapes;
mod lstm;
mod lstm_grad;
mod lstm_grad_parts;
mod normalized;
mod preactivations;
mod row_shapes;
mod step;

use crate::facts::shapes::LazyShapes;
use crate::graph::report::Report;
use crate::graph::{Graph, NodeId};

/// Rewrites all steps of a graph.
///
/// Backward steps come first: what they read of a forward step may be all that keeps it from being replaced.
pub(crate) fn rewrite(graph: &mut Graph, report: &mut Report) {
    let places_of = [lstm::is_place, gru::is_place, normalized::is_place];
    let [lstm, gru, normalized] = places_of.map(|is_place| places(graph, is_place));
    let norms = layer_norm::all(graph);
    if lstm.is_empty() && gru.is_empty() && normalized.is_empty() && norms.is_empty() {
        return;
    }
    let shapes = LazyShapes::default();
    for &split in &lstm {
        if let Ok(forward) = lstm::Forward::read(graph, &shapes, split) {
            row_shapes::rewrite(graph, &shapes, &forward.z);
        }
    }
    for &split in &gru {
        if let Ok(forward) = gru::Forward::read(graph, &shapes, split) {
            row_shapes::rewrite(graph, &shapes, &forward.z);
            row_shapes::rewrite(graph, &shapes, &forward.z_c);
        }
    }
    let mut context = step::Context::of(graph);
    let mut replaced = 0;
    let steps = lstm.iter().filter_map(|&split| lstm::Forward::read(graph, &shapes, split).ok());
    let known = steps.map(|forward| (forward.i.tensor, forward)).collect();
    for id in places(graph, lstm_grad::looks_like_one) {
        let Some(step) = lstm_grad::read(graph, &shapes, &known, id) else { continue };
        replaced += usize::from(step::replace(graph, &mut context, (id, step), report));
    }
    if !gru.is_empty() {
        // Of two splits of the same gates, the first one counts.
        let steps = gru.iter().rev();
        let steps = steps.filter_map(|&split| gru::Forward::read(graph, &shapes, split).ok());
        let known = steps.map(|forward| (forward.gates(), forward)).collect();
        for id in places(graph, gru_grad::looks_like_one) {
            replaced +=
                usize::from(gru_grad::rewrite(graph, &mut context, (&shapes, &known), id, report));
        }
    }
    let norms = layer_norm_grad::rewrite(graph, &mut context, (&shapes, norms), report);
    if replaced > 0 || !norms.is_empty() {
        context.remove_unused_stacks(graph);
    }
    for norm in norms {
        let step = (norm.norm.y.node, layer_norm::step(graph, &norm));
        step::replace(graph, &mut context, step, report);
    }
    for id in lstm {
        let step = lstm::Forward::read(graph, &shapes, id).and_then(|forward| forward.step(graph));
        step::replace(graph, &mut context, (id, step), report);
    }
    for id in normalized {
        let step = normalized::Forward::read(graph, &shapes, id);
        let step = step.and_then(|forward| forward.step(graph));
        step::replace(graph, &mut context, (id, step), report);
    }
    for id in gru {
        let forward = gru::Forward::read(graph, &shapes, id);
        let step = forward.and_then(|forward| forward.step(graph));
        step::replace(graph, &mut context, (id, step), report);
    }
}

fn places(graph: &Graph, is_place: fn(&Graph, NodeId) -> bool) -> Vec<NodeId> {
    graph.ids().filter(|&id| is_place(graph, id)).collect()
}

/// Whether a step may begin at a node.
pub(crate) fn is_place(graph: &Graph, id: NodeId) -> bool {
    lstm::is_place(graph, id) || gru::is_place(graph, id) || normalized::is_place(graph, id)
}

/// Whether a node looks like a gradient of pre-activations, whose backward step is not yet replaced.
pub(crate) fn is_gradient_of_gates(graph: &Graph, id: NodeId) -> bool {
    lstm_grad::looks_like_one(graph, id)
        || gru_grad::looks_like_one(graph, id)
        || gru_grad::looks_like_candidate(graph, id)
}
