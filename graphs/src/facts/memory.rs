//! Which tensors may change after they were computed.
//!
//! A variable of TensorFlow 1 hands out its own memory (types with `_ref`), and so do `Identity` and
//! others that pass their input on. Whoever reads such a tensor later reads what was assigned
//! meanwhile. So a rewrite must not let anybody read it later than before. Variables of TensorFlow 2
//! (resources) copy their memory before they write to it while somebody holds it.

use std::collections::HashSet;

use crate::graph::reason::Reason;
use crate::graph::{Graph, Node, NodeId, Output, ops};

/// The tensors of a graph whose values may change while a step runs.
#[derive(Debug)]
pub(crate) struct Memory {
    /// By node: whether its outputs may be the memory of a variable that the graph writes to.
    is_shared: Vec<bool>,
}

impl Memory {
    /// Follows the memory of variables through a graph without operations that write into other
    /// tensors' memory ([`ops::WRITES`]).
    pub(crate) fn of(graph: &Graph) -> Memory {
        let written = written_variables(graph);
        let mut is_shared = vec![false; graph.len()];
        let mut reached = Vec::new();
        for id in graph.ids() {
            let node = graph.node(id);
            let is_reference = node.output_types.iter().any(|data_type| data_type.is_reference());
            let is_constant = variable(node).is_some_and(|name| !written.contains(name));
            if is_reference && !is_constant {
                is_shared[id.0] = true;
                reached.push(id);
            }
        }
        let mut pops: Vec<_> =
            graph.ids().filter(|&id| graph.op(id).starts_with("StackPop")).collect();
        while let Some(id) = reached.pop() {
            let mut next: Vec<_> = graph.data_consumers(id).collect();
            // What is on a stack may come back anywhere.
            if graph.op(id).starts_with("StackPush") {
                next.append(&mut pops);
            }
            for consumer in next {
                let passes_on = !graph.is(consumer, ops::OWNS);
                if passes_on && !is_shared[consumer.0] {
                    is_shared[consumer.0] = true;
                    reached.push(consumer);
                }
            }
        }
        Memory { is_shared }
    }

    /// The first of some tensors that may change after it was computed. Nodes that were added since
    /// have memory of their own, as all replacements have.
    pub(crate) fn unstable(&self, tensors: &[Output]) -> Option<NodeId> {
        let is_shared = |node: NodeId| self.is_shared.get(node.0) == Some(&true);
        tensors.iter().map(|tensor| tensor.node).find(|&node| is_shared(node))
    }

    /// Whether tensors keep their values until a later node reads them.
    pub(crate) fn check_stable(&self, graph: &Graph, tensors: &[Output]) -> Result<(), Reason> {
        match self.unstable(tensors) {
            Some(node) => Err(Reason::Memory(graph.node(node).name.clone())),
            None => Ok(()),
        }
    }
}

/// The names of variables whose memory goes to nodes that may write to it.
fn written_variables(graph: &Graph) -> HashSet<&str> {
    let may_be_written =
        |id: NodeId| graph.data_consumers(id).any(|consumer| graph.node(consumer).takes_references);
    let variables = graph.ids().filter_map(|id| Some((id, variable(graph.node(id))?)));
    variables.filter(|&(id, _)| may_be_written(id)).map(|(_, name)| name).collect()
}

/// The name of a variable's memory, which several nodes may share.
pub(crate) fn variable(node: &Node) -> Option<&str> {
    if !matches!(node.op.as_str(), "Variable" | "VariableV2") {
        return None;
    }
    let shared = node.text("shared_name").filter(|name| !name.is_empty());
    shared.or(Some(&node.name))
}
