//! Who writes to variables, and whether that is later than a step.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::memory::{Memory, variable};
use crate::graph::{Graph, Node, NodeId, Output};

/// How many nodes to follow a variable's memory through before giving up.
const MOST_VISITS: usize = 1000;

/// The nodes before writers of variables, found when they are asked for.
#[derive(Debug)]
pub(crate) struct Writers {
    memory: Memory,
    /// By name of a variable: what may write to its memory. No rewrite adds or removes any.
    writers: HashMap<String, Vec<NodeId>>,
    before: HashMap<NodeId, Vec<bool>>,
}

impl Writers {
    pub(crate) fn of(graph: &Graph) -> Writers {
        let mut writers: HashMap<_, Vec<_>> = HashMap::new();
        for id in graph.ids() {
            if let Some(name) = variable(graph.node(id)) {
                let writes = |id: &NodeId| graph.node(*id).takes_references;
                let of_name = writers.entry(name.to_owned()).or_default();
                of_name.extend(graph.data_consumers(id).filter(writes));
            }
        }
        Writers { memory: Memory::of(graph), writers, before: HashMap::new() }
    }

    /// The first of some tensors that are memory of a variable which something writes to.
    pub(crate) fn unstable(&self, tensors: &[Output]) -> Option<NodeId> {
        self.memory.unstable(tensors)
    }

    /// The first of some tensors that may be written to before a step has read it.
    pub(crate) fn too_early(
        &mut self,
        graph: &Graph,
        tensors: &[Output],
        step: &[NodeId],
    ) -> Option<NodeId> {
        let tensor = |&tensor: &Output| self.memory.unstable(&[tensor]);
        let unstable: Vec<_> = tensors.iter().filter_map(tensor).collect();
        unstable.into_iter().find(|&node| !self.are_later(graph, node, step))
    }

    /// Whether all writers of the variables that a node may hand on depend on the step.
    fn are_later(&mut self, graph: &Graph, node: NodeId, step: &[NodeId]) -> bool {
        let variables = self.variables(graph, node);
        variables.is_some_and(|all| all.iter().all(|name| self.writes_later(graph, name, step)))
    }

    /// The names of the variables whose memory a node may hand on; None if it may come from elsewhere.
    fn variables<'g>(&self, graph: &'g Graph, node: NodeId) -> Option<BTreeSet<&'g str>> {
        let (mut names, mut seen, mut open) = (BTreeSet::new(), HashSet::from([node]), vec![node]);
        while let Some(next) = open.pop() {
            if let Some(name) = variable(graph.node(next)) {
                names.insert(name);
                continue;
            }
            let from = graph.node(next).inputs.iter().filter_map(|&input| self.unstable(&[input]));
            let from: Vec<_> = from.collect();
            if from.is_empty() || seen.len() > MOST_VISITS {
                return None;
            }
            open.extend(from.into_iter().filter(|&id| seen.insert(id)));
        }
        Some(names)
    }

    /// Whether all that writes to a variable depends on the step.
    fn writes_later(&mut self, graph: &Graph, name: &str, step: &[NodeId]) -> bool {
        self.writers[name].iter().all(|&writer| {
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
            // Either input may be missing, but no round of a loop comes before what enters it.
            if let Some(enter) = entered(graph, node) {
                visit(enter, &mut open);
            }
            continue;
        }
        node.sources().for_each(|id| visit(id, &mut open));
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

/// What enters a loop, if a merge is where a variable of one begins a round.
fn entered(graph: &Graph, merge: &Node) -> Option<NodeId> {
    let &[enter, next] = &merge.inputs[..] else { return None };
    let is_loop = graph.op(enter.node) == "Enter" && graph.op(next.node) == "NextIteration";
    is_loop.then_some(enter.node)
}
