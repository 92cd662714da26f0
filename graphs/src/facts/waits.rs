//! When a node runs, and what that says about other nodes.

use std::collections::{BTreeSet, HashSet, VecDeque};

use crate::graph::{Graph, NodeId, Output, ops};

/// How many nodes before a node to look at. What lies further back counts as not before it.
const MOST_BEFORE: usize = 1000;

/// How many nodes to look at for each node that is waited for.
const MOST_FOLLOWED: usize = 30;

/// What a node waits for by control, directly or through a constant among its inputs.
///
/// In a loop, and below `tf.control_dependencies`, the constant may be all that waits. A constant
/// from outside of a loop comes by a node `Enter`, which stands for the loop having begun.
pub(crate) fn waits_for(graph: &Graph, id: NodeId) -> BTreeSet<NodeId> {
    let mut awaited = BTreeSet::new();
    let mut open = vec![id];
    while let Some(next) = open.pop() {
        let node = graph.node(next);
        awaited.extend(&node.control_inputs);
        for input in &node.inputs {
            match graph.op(input.node) {
                "Enter" => {
                    awaited.insert(input.node);
                }
                "Const" => open.push(input.node),
                _ => {}
            }
        }
    }
    awaited
}

/// What a node has before it: where the node has a value, all of this has run and has a value.
pub(crate) struct Before<'g> {
    graph: &'g Graph,
    nodes: HashSet<NodeId>,
    /// What switches by, and which of its outputs has the value.
    branches: HashSet<(Output, usize)>,
}

impl<'g> Before<'g> {
    /// Looks back from a node, through nodes that need all their inputs.
    pub(crate) fn of(graph: &'g Graph, node: NodeId) -> Before<'g> {
        let mut before = Before { graph, nodes: HashSet::new(), branches: HashSet::new() };
        let mut open = VecDeque::from([node]);
        while let Some(next) = open.pop_front() {
            for input in &graph.node(next).inputs {
                if graph.is(input.node, ops::SWITCH) {
                    before.branches.insert((graph.condition(input.node), input.index));
                }
            }
            for id in graph.node(next).sources() {
                let is_new = before.nodes.len() < MOST_BEFORE && before.nodes.insert(id);
                if is_new && !graph.is(id, ops::APART) {
                    open.push_back(id);
                }
            }
        }
        before
    }

    /// Whether to wait for another node, too, changes nothing: it has run before, or runs without
    /// fail as soon as what comes before has, and has a value.
    pub(crate) fn implies(&self, awaited: NodeId) -> bool {
        let mut seen = HashSet::from([awaited]);
        let mut open = vec![awaited];
        while let Some(next) = open.pop() {
            if self.nodes.contains(&next) {
                continue;
            }
            if seen.len() > MOST_FOLLOWED || !self.follows(next) {
                return false;
            }
            open.extend(self.graph.node(next).sources().filter(|&id| seen.insert(id)));
        }
        true
    }

    /// Whether a node runs, and has a value, as soon as its inputs do.
    fn follows(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        let has_value = |input: &Output| {
            let is_switch = self.graph.is(input.node, ops::SWITCH);
            !is_switch || self.branches.contains(&(self.graph.condition(input.node), input.index))
        };
        match node.op.as_str() {
            "Const" | "Identity" | "NoOp" | "Switch" => node.inputs.iter().all(has_value),
            // From a constant that waits for nothing. In a loop it has a value in every round.
            "Enter" => {
                let source = self.graph.node(node.inputs[0].node);
                node.flag("is_constant") && matches!(source.op.as_str(), "Const" | "Enter")
            }
            _ => false,
        }
    }
}
