//! Who writes to variables, and whether that is later than a step.

use std::collections::HashMap;

use crate::graph::{Graph, NodeId, Output};
use crate::memory::{Memory, variable};

/// The nodes before writers of variables, found when they are asked for.
#[derive(Debug)]
pub(super) struct Writers {
    memory: Memory,
    before: HashMap<NodeId, Vec<bool>>,
}

impl Writers {
    pub(super) fn of(graph: &Graph) -> Writers {
        Writers { memory: Memory::of(graph), before: HashMap::new() }
    }

    /// The first of some tensors that are memory of a variable which something writes to.
    pub(super) fn unstable(&self, tensors: &[Output]) -> Option<NodeId> {
        self.memory.unstable(tensors)
    }

    /// The first of some tensors that may be written to before a step has read it.
    pub(super) fn too_early(
        &mut self,
        graph: &Graph,
        tensors: &[Output],
        step: &[NodeId],
    ) -> Option<NodeId> {
        let tensor = |&tensor: &Output| self.memory.unstable(&[tensor]);
        let unstable: Vec<_> = tensors.iter().filter_map(tensor).collect();
        unstable.into_iter().find(|&node| !self.are_later(graph, node, step))
    }

    /// Whether all writers of the variable that a node hands on depend on the step.
    fn are_later(&mut self, graph: &Graph, mut node: NodeId, step: &[NodeId]) -> bool {
        while matches!(graph.op(node), "Identity" | "Enter") {
            node = graph.input(node, 0).node;
        }
        let Some(name) = variable(graph.node(node)) else { return false };
        let same = graph.ids().filter(|&id| variable(graph.node(id)) == Some(name));
        let takers = same.flat_map(|id| graph.data_consumers(id));
        let writers: Vec<_> = takers.filter(|&id| graph.node(id).takes_references).collect();
        writers.into_iter().all(|writer| {
            let is_assignment = graph.op(writer).starts_with("Assign")
                || graph.op(writer).contains("Apply")
                || graph.op(writer).starts_with("Scatter");
            let before = self.before.entry(writer).or_insert_with(|| before(graph, writer));
            is_assignment && step.iter().any(|id| before.get(id.0) == Some(&true))
        })
    }
}

/// The nodes that have certainly run before a node does. What leaves a loop waits for all rounds of
/// its own variable only.
fn before(graph: &Graph, id: NodeId) -> Vec<bool> {
    let mut seen = vec![false; graph.len()];
    let mut open = vec![id];
    let mut visit = |id: NodeId, open: &mut Vec<NodeId>| {
        if !std::mem::replace(&mut seen[id.0], true) {
            open.push(id);
        }
    };
    while let Some(next) = open.pop() {
        let node = graph.node(next);
        if node.op == "Merge" {
            // Either input may be missing.
            continue;
        }
        for input in &node.inputs {
            visit(input.node, &mut open);
        }
        for &wait in &node.control_inputs {
            visit(wait, &mut open);
        }
        if node.op == "Exit" {
            let switch = node.inputs[0].node;
            let merge = graph.node(switch).inputs.first().map(|input| input.node);
            for round in merge.into_iter().filter(|&id| graph.op(id) == "Merge") {
                graph.node(round).inputs.iter().for_each(|input| visit(input.node, &mut open));
            }
        }
    }
    seen
}
