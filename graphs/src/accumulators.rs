//! Accumulators: lists by which a loop of TensorFlow 2 hands the tensors of its rounds to the loop of its gradient.
//!
//! ```text
//! push = TensorListPushBack(list, tensor)      in every round of the loop, whose variable `list` becomes the new
//!                                              list; its first value is an EmptyTensorList
//! pop  = TensorListPopBack(list, shape)        in every round of the gradient's loop, whose variable `list` becomes
//!                                              the rest, pop:0; its first value is the last one of the other loop
//! ```
//!
//! Lists are values, so it does not matter who else takes one. All lists from one loop to another have as many tensors
//! as there were rounds, and in each round of the second, pop:1 of all of them are of the same round of the first.

use std::collections::BTreeSet;

use crate::graph::{Graph, NodeId, Output, Use};
use crate::ops;
use crate::products::skip_identities;
use crate::variables::Variable;

/// A list that one loop pushes onto, and another one pops from.
#[derive(Debug)]
struct Accumulator {
    push: NodeId,
    pop: NodeId,
    /// The variable of the loop.
    pushing: Variable,
    /// The variable of the gradient's loop.
    popping: Variable,
}

impl Accumulator {
    /// The list that a node pops from.
    fn of(graph: &Graph, pop: NodeId) -> Option<Accumulator> {
        if graph.op(pop) != "TensorListPopBack" {
            return None;
        }
        let is_first =
            |tensor: Output, node| skip_identities(graph, tensor) == Output { node, index: 0 };
        let popping = Variable::of_round(graph, graph.input(pop, 0))?;
        let pushing = Variable::of_exit(graph, popping.first)?;
        let push = skip_identities(graph, pushing.next).node;
        let is_such = is_first(popping.next, pop)
            && graph.op(push) == "TensorListPushBack"
            && pushing.is(graph, graph.input(push, 0))
            && graph.op(skip_identities(graph, pushing.first).node) == "EmptyTensorList";
        is_such.then_some(Accumulator { push, pop, pushing, popping })
    }

    /// The conditions of the two loops.
    fn loops(&self, graph: &Graph) -> [NodeId; 2] {
        [&self.pushing, &self.popping].map(|variable| variable.condition(graph))
    }

    /// Whether somebody takes what is popped.
    fn is_read(&self, graph: &Graph) -> bool {
        graph.uses(self.pop).iter().any(|one| matches!(*one, Use::Data { output: 1, .. }))
    }
}

/// The tensor of the loop that comes back in the loop of its gradient, if a tensor is such a one.
pub(crate) fn pushed(graph: &Graph, tensor: Output) -> Option<Output> {
    let accumulator = Accumulator::of(graph, tensor.node).filter(|_| tensor.index == 1)?;
    Some(graph.input(accumulator.push, 1))
}

/// Removes the lists from which nobody takes what is popped.
///
/// One that is read stays between the same loops. So if a list would be too short, that one is.
pub(crate) fn remove_unused(graph: &mut Graph) {
    let all: Vec<_> = graph.ids().filter_map(|id| Accumulator::of(graph, id)).collect();
    let (read, unread): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.is_read(graph));
    let read: BTreeSet<_> = read.iter().map(|one| one.loops(graph)).collect();
    for one in unread {
        if read.contains(&one.loops(graph)) {
            let Accumulator { push, pop, pushing, popping } = one;
            if remove(graph, &popping, pop) && graph.get(push).is_some() {
                // Another loop may pop from the list, too.
                remove(graph, &pushing, push);
            }
        }
    }
}

/// Removes a variable with what changes it in a round, if nothing else depends on these. Returns whether it did.
fn remove(graph: &mut Graph, variable: &Variable, change: NodeId) -> bool {
    let Some(nodes) = variable.nodes_with(graph, change) else { return false };
    let inputs = nodes.iter().flat_map(|&id| graph.node(id).inputs.iter().map(|input| input.node));
    let inputs: BTreeSet<_> = inputs.filter(|id| !nodes.contains(id)).collect();
    graph.remove_all(nodes);
    for id in inputs {
        let unseen = |node: &crate::graph::Node| !node.is_target && ops::only_computes(&node.op);
        if graph.get(id).is_some_and(unseen) {
            graph.remove_unused(id);
        }
    }
    true
}
