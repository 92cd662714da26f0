//! Rewrite, before TensorFlow's optimizers: sums that they would take apart.
//!
//! Where memory seems to be short, TensorFlow's memory optimizer turns a large `AddN` into a chain of
//! assignments, which would hide the sum from [`crate::rewrites::sums`]. So an `AddN` with products of cells
//! becomes an operation of this library that adds the same tensors up. It has the same name, so that
//! whoever feeds or fetches it finds it. [`remove`] turns those that are still there back.

use crate::facts::placement::check_replaceable;
use crate::graph::{Graph, NodeId, ops};
use crate::reading::neighbours::transposes;
use crate::reading::terms::{Terms, is_shield};
use crate::rewrites::cells;
use crate::rewrites::replacement::Replacement;

/// TensorFlow's optimizers leave sums of two as they are.
const FEWEST_SUMMANDS: usize = 3;

/// Shields all sums of products of a graph.
pub(crate) fn put(graph: &mut Graph) {
    let ids: Vec<_> = graph.ids().collect();
    for id in ids {
        let Some(op) = shield_for(graph, id) else { continue };
        let mut replacement = Replacement::of(graph, id, op);
        let addends = graph.node(id).inputs.clone();
        let empty: &[_] =
            if op == ops::MAT_MUL_ADD_N { &["num_a", "num_b"] } else { &["num_out_backprop"] };
        empty.iter().for_each(|list| replacement.set(list, 0_usize));
        replacement.set("num_addends", addends.len());
        replacement.take(addends);
        replacement.finish(graph);
    }
}

/// Turns all shields of a graph back into `AddN`.
pub(crate) fn remove(graph: &mut Graph) {
    let ids: Vec<_> = graph.ids().filter(|&id| is_shield(graph, id)).collect();
    for id in ids {
        if check_replaceable(graph.node(id)).is_err() {
            continue;
        }
        let mut replacement = Replacement::of(graph, id, "AddN");
        let summands = graph.node(id).inputs.clone();
        replacement.set("N", summands.len());
        replacement.take(summands);
        replacement.finish(graph);
    }
}

/// The operation to put in place of a node.
fn shield_for(graph: &Graph, id: NodeId) -> Option<&'static str> {
    let node = graph.node(id);
    let is_sum = node.op == "AddN" && node.inputs.len() >= FEWEST_SUMMANDS;
    if !is_sum || check_replaceable(node).is_err() {
        return None;
    }
    let is_product = node.inputs.iter().find_map(|summand| is_product(graph, summand.node))?;
    Some(if is_product { ops::MAT_MUL_ADD_N } else { ops::BIAS_ADD_GRAD_ADD_N })
}

/// Whether a node is a product of a cell; false for a sum over rows, None for anything else.
fn is_product(graph: &Graph, id: NodeId) -> Option<bool> {
    if let Some(terms) = Terms::read(graph, id) {
        return Some(!terms.products.is_empty());
    }
    let node = graph.node(id);
    let dz = |number: usize| cells::is_gradient_of_gates(graph, node.inputs[number].node);
    match node.op.as_str() {
        "MatMul" if transposes(node).is_some_and(|[left, _]| left) && dz(1) => Some(true),
        "BiasAddGrad" if dz(0) => Some(false),
        _ => None,
    }
}
