//! An order of the nodes: each comes after what it depends on, but for the edges that close loops.

use std::collections::HashSet;

use super::{Graph, NodeId};

/// What a node depends on in the same round of a loop.
pub(crate) fn before(graph: &Graph, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    graph.node(id).sources().filter(|&id| graph.op(id) != "NextIteration")
}

/// All nodes, each after what it depends on.
pub(crate) fn order(graph: &Graph) -> Vec<NodeId> {
    let mut missing = vec![0; graph.len()];
    for id in graph.ids() {
        missing[id.0] = before(graph, id).count();
    }
    let mut order: Vec<_> = graph.ids().filter(|id| missing[id.0] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        let id = order[next];
        next += 1;
        if graph.op(id) == "NextIteration" {
            continue;
        }
        for one in graph.uses(id) {
            let consumer = one.consumer();
            missing[consumer.0] -= 1;
            if missing[consumer.0] == 0 {
                order.push(consumer);
            }
        }
    }
    order
}

/// A node that depends on itself, with no `NextIteration` between, or on such a node.
pub(crate) fn first_on_or_after_a_circle(graph: &Graph) -> Option<NodeId> {
    let order = order(graph);
    if order.len() == graph.ids().count() {
        return None;
    }
    let ordered: HashSet<_> = order.into_iter().collect();
    graph.ids().find(|id| !ordered.contains(id))
}
