//! The variables of a loop.
//!
//! ```text
//! merge  = Merge(Enter(first), NextIteration(next))
//! switch = Switch(merge, condition)      switch:1 is the value in a round, Exit(switch) the last one
//! ```

use std::collections::BTreeSet;

use crate::graph::{Graph, NodeId, Output, Use};
use crate::products::skip_identities;

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
            graph.op(id) == "Switch" && graph.input(id, 1) == Output { node: condition, index: 0 }
        })?;
        let exit = graph.data_consumers(switch).find(|&id| graph.op(id) == "Exit");
        let mut nodes = vec![merge, enter.node, next.node, switch];
        nodes.extend(exit);
        let first = graph.input(enter.node, 0);
        Some(Variable {
            first,
            merge,
            switch,
            next: graph.input(next.node, 0),
            exit,
            enter: enter.node,
            nodes,
        })
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
        graph.input(self.switch, 1).node
    }

    /// The nodes of a variable and of what changes it in a round. None if anything else depends on one of them.
    pub(crate) fn nodes_with(&self, graph: &Graph, change: NodeId) -> Option<BTreeSet<NodeId>> {
        let mut nodes = BTreeSet::from([self.merge]);
        let mut open = vec![self.merge];
        while let Some(next) = open.pop() {
            if graph.node(next).is_target {
                return None;
            }
            for one in graph.uses(next) {
                let id = one.consumer();
                let is_known = [self.merge, self.switch, change].contains(&id)
                    || matches!(graph.op(id), "Identity" | "NextIteration" | "Exit");
                if !is_known || matches!(one, Use::Control { .. }) {
                    return None;
                }
                if nodes.insert(id) {
                    open.push(id);
                }
            }
        }
        let enters = graph.uses(self.enter).len() == 1 && !graph.node(self.enter).is_target;
        nodes.extend(Some(self.enter).filter(|_| enters));
        Some(nodes)
    }
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
