//! Stacks, by which a loop hands the tensors of its rounds to the loop of its gradient.
//!
//! ```text
//! stack = StackV2(...)
//! StackPushV2(Enter(stack), tensor)         in every round of the loop
//! StackPopV2(Enter(stack))                  in every round of the gradient's loop, the last one first
//! ```
//!
//! Loops of TensorFlow 2 have lists instead: `accumulators.rs`.

use super::accumulators;
use super::neighbours::factors;
use super::variables::outside;
use crate::graph::{Graph, NodeId, Output, Use};

/// A stack that tensors are pushed onto at one place, and popped from at one.
#[derive(Clone, Copy, Debug)]
struct Stack {
    node: NodeId,
    push: NodeId,
    pop: NodeId,
}

impl Stack {
    /// The stack that a tensor is popped from.
    fn of(graph: &Graph, popped: Output) -> Option<Stack> {
        if graph.op(popped.node) != "StackPopV2" {
            return None;
        }
        let mut node = graph.input(popped.node, 0).node;
        while graph.op(node) == "Enter" {
            node = graph.input(node, 0).node;
        }
        if graph.op(node) != "StackV2" {
            return None;
        }
        let (mut pushes, mut pops) = (Vec::new(), Vec::new());
        let mut open = vec![node];
        while let Some(next) = open.pop() {
            for one in graph.uses(next) {
                match (one, graph.op(one.consumer())) {
                    (Use::Data { .. }, "Enter") => open.push(one.consumer()),
                    (Use::Data { input: 0, .. }, "StackPushV2") => pushes.push(one.consumer()),
                    (Use::Data { .. }, "StackPopV2") => pops.push(one.consumer()),
                    (Use::Control { .. }, _) => {}
                    _ => return None,
                }
            }
        }
        match (&pushes[..], &pops[..]) {
            (&[push], &[pop]) => Some(Stack { node, push, pop }),
            _ => None,
        }
    }
}

/// The tensor of the loop that comes back in the loop of its gradient, if a tensor is such a one.
/// Otherwise the tensor itself.
pub(crate) fn pushed(graph: &Graph, tensor: Output) -> Output {
    let of_stack = Stack::of(graph, tensor).map(|stack| graph.input(stack.push, 1));
    of_stack.or_else(|| accumulators::pushed(graph, tensor)).unwrap_or(tensor)
}

/// The factors of a product. The second is `saved`, or that from the loop before.
pub(crate) fn factors_with(
    graph: &Graph,
    product: Output,
    saved: Output,
) -> Option<(Output, Output)> {
    let [left, right] = factors(graph, product)?;
    let is_saved = |tensor| pushed(graph, tensor) == saved;
    let in_order = is_saved(right).then_some((left, right));
    in_order.or_else(|| is_saved(left).then_some((right, left)))
}

/// Whether two tensors are the same outside of loops, or come from there.
pub(crate) fn is_same_outside(graph: &Graph, one: Output, other: Output) -> bool {
    let of = |tensor| outside(graph, pushed(graph, tensor));
    of(one) == of(other)
}

/// Removes the stacks from which nobody takes what is popped.
///
/// Who waits for a push or a pop waits for what that waited for, instead: `awaited` tells whether the
/// second implies that the first has run.
pub(crate) fn remove_unused(graph: &mut Graph, awaited: impl Fn(&Graph, NodeId, NodeId) -> bool) {
    let pops: Vec<_> = graph.ids().filter(|&id| graph.op(id) == "StackPopV2").collect();
    for pop in pops {
        let Some(stack) = Stack::of(graph, Output { node: pop, index: 0 }) else { continue };
        let before = [stack.push, stack.pop].map(|id| only_waits(graph, id));
        let [Some(before_push), Some(before_pop)] = before else { continue };
        if !awaited(graph, before_push, stack.push) || !awaited(graph, before_pop, stack.pop) {
            continue;
        }
        for (id, before) in [(stack.pop, before_pop), (stack.push, before_push)] {
            graph.redirect_control(id, before);
            graph.remove_unused(id);
        }
        if graph.use_count(stack.node) == 0 && !graph.node(stack.node).is_target {
            graph.remove_unused(stack.node);
        }
    }
}

/// The one node that a node waits for, if nobody takes its output and it may go.
fn only_waits(graph: &Graph, id: NodeId) -> Option<NodeId> {
    let node = graph.node(id);
    let is_free = !node.is_target && graph.data_consumers(id).next().is_none();
    match node.control_inputs[..] {
        [before] if is_free => Some(before),
        _ => None,
    }
}
