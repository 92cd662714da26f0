//! The variables of a loop.
//!
//! ```text
//! merge  = Merge(Enter(first), NextIteration(next))
//! switch = Switch(merge, condition)      switch:1 is the value in a round, Exit(switch) the last one
//! ```

use std::collections::BTreeSet;

use super::neighbours::{skip_identities, takers};
use crate::graph::{Graph, NodeId, Output, Use};

/// A variable of a loop.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    /// Its value before the first round, outside of the loop.
    pub(crate) first: Output,
    /// Its value in the condition.
    pub(crate) merge: NodeId,
    pub(crate) switch: NodeId,
    /// Its value after a round.
    pub(crate) next: Output,
    /// What leaves the loop, if anything does.
    pub(crate) exit: Option<NodeId>,
    enter: NodeId,
    /// All nodes that make it a variable.
    pub(crate) nodes: Vec<NodeId>,
}

impl Variable {
    pub(crate) fn read(graph: &Graph, merge: NodeId, condition: NodeId) -> Option<Variable> {
        let &[enter, next] = &graph.node(merge).inputs[..] else { return None };
        if graph.op(enter.node) != "Enter" || graph.op(next.node) != "NextIteration" {
            return None;
        }
        let switch = graph.data_consumers(merge).find(|&id| {
            graph.op(id) == "Switch" && graph.condition(id) == Output { node: condition, index: 0 }
        })?;
        let exit = graph.data_consumers(switch).find(|&id| graph.op(id) == "Exit");
        let mut nodes = vec![merge, enter.node, next.node, switch];
        nodes.extend(exit);
        let [first, next] = [enter, next].map(|part| graph.input(part.node, 0));
        Some(Variable { first, merge, switch, next, exit, enter: enter.node, nodes })
    }

    /// The variable whose value in a round a tensor is.
    pub(crate) fn of_round(graph: &Graph, tensor: Output) -> Option<Variable> {
        let tensor = skip_identities(graph, tensor);
        Variable::of_switch(graph, tensor.node).filter(|_| tensor.index == 1)
    }

    /// The variable whose last value a tensor is.
    pub(crate) fn of_exit(graph: &Graph, tensor: Output) -> Option<Variable> {
        let exit = skip_identities(graph, tensor).node;
        let last = graph.node(exit).inputs.first().filter(|_| graph.op(exit) == "Exit")?;
        Variable::of_switch(graph, last.node).filter(|_| last.index == 0)
    }

    fn of_switch(graph: &Graph, switch: NodeId) -> Option<Variable> {
        let node = graph.node(switch);
        let &[merge, condition] = &node.inputs[..] else { return None };
        let is_of_loop = node.op == "Switch"
            && merge.index == 0
            && graph.op(merge.node) == "Merge"
            && graph.op(condition.node) == "LoopCond";
        let variable = Variable::read(graph, merge.node, condition.node).filter(|_| is_of_loop);
        variable.filter(|variable| variable.switch == switch)
    }

    /// Whether a node leads the first value into the loop.
    pub(crate) fn enters(&self, id: NodeId) -> bool {
        id == self.enter
    }

    /// Whether its value is the same in every round.
    pub(crate) fn stays(&self, graph: &Graph) -> bool {
        self.is(graph, self.next)
    }

    /// Whether a tensor is the value in the condition.
    pub(crate) fn is_in_condition(&self, graph: &Graph, tensor: Output) -> bool {
        skip_identities(graph, tensor) == Output { node: self.merge, index: 0 }
    }

    /// Whether a tensor is the value in a round.
    pub(crate) fn is(&self, graph: &Graph, tensor: Output) -> bool {
        skip_identities(graph, tensor) == Output { node: self.switch, index: 1 }
    }

    /// The `LoopCond` of the loop.
    pub(crate) fn condition(&self, graph: &Graph) -> NodeId {
        graph.condition(self.switch).node
    }

    /// What the variable is made of, with the node that changes it in a round. None if anything else depends on that,
    /// but for nodes that wait for a round, or for the loop.
    pub(crate) fn parts_with(&self, graph: &Graph, change: NodeId) -> Option<Parts> {
        let mut parts = Parts { nodes: BTreeSet::from([self.merge]), awaited: BTreeSet::new() };
        let mut open = vec![self.merge];
        while let Some(next) = open.pop() {
            if graph.node(next).is_target {
                return None;
            }
            let may_be_awaited = next == change || matches!(graph.op(next), "Identity" | "Exit");
            for one in graph.uses(next) {
                let id = one.consumer();
                let op = graph.op(id);
                let is_part = match one {
                    Use::Control { .. } if may_be_awaited => {
                        parts.awaited.insert(next);
                        continue;
                    }
                    Use::Control { .. } => false,
                    Use::Data { output: 0, .. } if next == self.switch => op == "Exit",
                    Use::Data { .. } if next == self.merge => id == self.switch,
                    Use::Data { .. } => {
                        id == change
                            || id == self.merge
                            || matches!(op, "Identity" | "NextIteration")
                    }
                };
                if !is_part {
                    return None;
                }
                if parts.nodes.insert(id) {
                    open.push(id);
                }
            }
        }
        let enters = graph.use_count(self.enter) == 1 && !graph.node(self.enter).is_target;
        parts.nodes.extend(Some(self.enter).filter(|_| enters));
        Some(parts)
    }
}

/// The nodes of a variable that can be taken out of its loop.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) nodes: BTreeSet<NodeId>,
    /// Those of them that others wait for: they run in each round, or are what leaves the loop.
    pub(crate) awaited: BTreeSet<NodeId>,
}

/// The name of the frame that a node leads into.
pub(crate) fn frame_name(graph: &Graph, enter: NodeId) -> Option<&str> {
    let node = graph.node(enter);
    (node.op == "Enter").then(|| node.text("frame_name"))?
}

/// A node that runs in each round of the loop with this condition, as soon as a variable has its value. It is none of
/// `others`.
pub(crate) fn pivot(graph: &Graph, condition: NodeId, others: &BTreeSet<NodeId>) -> Option<NodeId> {
    let switches = graph.data_consumers(condition).filter(|&id| graph.op(id) == "Switch");
    let in_round =
        switches.flat_map(|switch| takers(graph, Output { node: switch, index: 1 }, "Identity"));
    let mut pivots =
        in_round.filter(|id| graph.node(*id).control_inputs.is_empty() && !others.contains(id));
    pivots.next()
}

/// What a tensor in a loop is outside of it, if it is the same in every round.
pub(crate) fn outside(graph: &Graph, tensor: Output) -> Output {
    let mut tensor = skip_identities(graph, tensor);
    loop {
        let node = graph.node(tensor.node);
        let first = match node.op.as_str() {
            "Enter" if node.flag("is_constant") => Some(node.inputs[0]),
            "Switch" | "Exit" => {
                let variable =
                    Variable::of_round(graph, tensor).or_else(|| Variable::of_exit(graph, tensor));
                variable.filter(|one| one.stays(graph)).map(|one| one.first)
            }
            _ => None,
        };
        let Some(first) = first else { return tensor };
        tensor = skip_identities(graph, first);
    }
}
