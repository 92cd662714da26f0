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

use super::neighbours::skip_identities;
use super::variables::{Parts, Variable, pivot};
use crate::graph::{Graph, NodeId, Output, Use};

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
}

/// Whether somebody takes what a node pops.
fn is_read(graph: &Graph, pop: NodeId) -> bool {
    graph.uses(pop).any(|one| matches!(one, Use::Data { output: 1, .. }))
}

/// The nodes that pop a tensor which somebody takes.
pub(crate) fn read(graph: &Graph) -> BTreeSet<NodeId> {
    let pops = graph.ids().filter(|&id| graph.op(id) == "TensorListPopBack");
    pops.filter(|&id| is_read(graph, id)).collect()
}

/// The tensor of the loop that comes back in the loop of its gradient, if a tensor is such a one.
pub(crate) fn pushed(graph: &Graph, tensor: Output) -> Option<Output> {
    let accumulator = Accumulator::of(graph, tensor.node).filter(|_| tensor.index == 1)?;
    Some(graph.input(accumulator.push, 1))
}

/// Removes the lists from which nobody takes what is popped, by the nodes `freed`. Other lists that nobody reads are
/// the program's own: their errors are, too.
///
/// One that is read stays between the same loops. So if a list would be too short, that one is. Who waits for a push or
/// a pop waits for the round instead: `is_same` tells whether two nodes run as soon as each other. Returns the nodes
/// that are waited for then.
pub(crate) fn remove_unused(
    graph: &mut Graph,
    freed: &BTreeSet<NodeId>,
    is_same: impl Fn(NodeId, NodeId) -> bool,
) -> Vec<NodeId> {
    let all: Vec<_> = graph.ids().filter_map(|id| Accumulator::of(graph, id)).collect();
    let (read, unread): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| is_read(graph, one.pop));
    let read: BTreeSet<_> = read.iter().map(|one| one.loops(graph)).collect();
    let mut removal = Removal { graph, is_same, pivots: Vec::new() };
    for one in unread.into_iter().filter(|one| freed.contains(&one.pop)) {
        if read.contains(&one.loops(removal.graph)) {
            let Accumulator { push, pop, pushing, popping } = one;
            // Another loop may pop from the list, too.
            if removal.remove(&popping, pop) && removal.graph.get(push).is_some() {
                removal.remove(&pushing, push);
            }
        }
    }
    removal.pivots
}

struct Removal<'g, F> {
    graph: &'g mut Graph,
    is_same: F,
    pivots: Vec<NodeId>,
}

impl<F: Fn(NodeId, NodeId) -> bool> Removal<'_, F> {
    /// Removes a variable with what changes it in a round, if nothing else depends on these. Returns whether it did.
    fn remove(&mut self, variable: &Variable, change: NodeId) -> bool {
        let Some(parts) = variable.parts_with(self.graph, change) else { return false };
        if !parts.awaited.is_empty() && !self.move_waits(variable, &parts) {
            return false;
        }
        let Parts { nodes, .. } = parts;
        let inputs = nodes.iter().flat_map(|&id| &self.graph.node(id).inputs);
        let inputs: BTreeSet<_> = inputs.map(|input| input.node).collect();
        self.graph.remove_all(nodes);
        inputs.into_iter().for_each(|id| self.graph.remove_unseen(id));
        true
    }

    /// Lets who waits for a part of a variable wait for the round, or for what else leaves the loop.
    fn move_waits(&mut self, variable: &Variable, parts: &Parts) -> bool {
        let graph = &*self.graph;
        let condition = variable.condition(graph);
        let pivot = pivot(graph, condition, &parts.nodes);
        let other = |consumer, awaited| match graph.op(awaited) {
            "Exit" => other_exit(graph, consumer, condition, &parts.nodes),
            _ => pivot,
        };
        let mut moves = Vec::new();
        for &awaited in &parts.awaited {
            for consumer in graph.waiting(awaited) {
                let to = other(consumer, awaited);
                let Some(to) = to.filter(|&to| (self.is_same)(awaited, to)) else {
                    return false;
                };
                moves.push((consumer, awaited, to));
            }
        }
        for (consumer, awaited, to) in moves {
            self.graph.move_control(consumer, awaited, to);
        }
        self.pivots.extend(pivot);
        true
    }
}

/// What else leaves a loop that a node waits for. TensorFlow has a node that waits for all that does.
fn other_exit(
    graph: &Graph,
    consumer: NodeId,
    condition: NodeId,
    gone: &BTreeSet<NodeId>,
) -> Option<NodeId> {
    let is_of_loop = |&id: &NodeId| {
        let variable = Variable::of_exit(graph, Output { node: id, index: 0 });
        graph.op(id) == "Exit" && variable.is_some_and(|one| one.condition(graph) == condition)
    };
    let awaited = graph.node(consumer).control_inputs.iter().copied();
    let mut exits = awaited.filter(|id| !gone.contains(id)).filter(is_of_loop);
    exits.next().filter(|_| graph.op(consumer) == "NoOp")
}
