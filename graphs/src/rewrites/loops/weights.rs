//! Weights of a loop: tensors that are the same in every round, and how they leave it.
//!
//! They come into the loop, or are read from variables in every round, and may be parts of what is read, or put together of
//! it. The nodes that compute them leave the loop, and so do constants. They wait for a node `begin` instead, which waits for all that the
//! loop waits for. Nothing in the loop writes to variables, so it does not matter that they are read once.

use std::collections::BTreeSet;

use super::frame::Frame;
use super::rounds::{Guard, Rounds};
use crate::graph::reason::Reason;
use crate::graph::{Graph, Node, NodeId, Output, ops};
use crate::rewrites::candidate::Candidate;

/// Weights are no more nodes away from what comes into the loop.
const MOST_NODES: usize = 16;

/// A tensor that is the same in every round.
#[derive(Debug)]
pub(super) struct Weight {
    pub(super) tensor: Output,
    /// What it is computed from, outside of the loop.
    pub(super) sources: BTreeSet<Output>,
    /// The nodes in the loop that compute it.
    pub(super) nodes: BTreeSet<NodeId>,
}

impl Weight {
    pub(super) fn read(graph: &Graph, frame: &Frame, tensor: Output) -> Option<Weight> {
        let (sources, nodes) = (BTreeSet::new(), BTreeSet::new());
        let mut weight = Weight { tensor, sources, nodes };
        if let Some(same) =
            frame.same(graph, tensor).filter(|same| !frame.nodes.contains(&same.node))
        {
            weight.tensor = same;
            weight.sources.insert(same);
            return Some(weight);
        }
        let mut open = vec![tensor];
        while let Some(next) = open.pop() {
            if let Some(source) = frame.entry(graph, next) {
                weight.sources.insert(source);
                continue;
            }
            let node = graph.node(next.node);
            match node.op.as_str() {
                "Const" => {}
                "Add" | "AddV2" | "Cast" | "ConcatV2" | "ExpandDims" | "Identity"
                | "ReadVariableOp" | "Reshape" | "Split" | "SplitV" | "Squeeze"
                | "StridedSlice" | "Unpack" => {
                    open.extend(&node.inputs);
                }
                _ => return None,
            }
            // One that waits for nothing in the loop may run before the loop, or in one without a round.
            let waits = node.control_inputs.iter().any(|id| frame.nodes.contains(id));
            if node.op == "ReadVariableOp" && !waits {
                return None;
            }
            weight.nodes.insert(next.node);
            if weight.nodes.len() > MOST_NODES {
                return None;
            }
        }
        Some(weight)
    }

    /// Whether the rounds compute it of what comes into the loop, so that there may be an error.
    fn is_computed(&self) -> bool {
        !self.nodes.is_empty() && !self.sources.is_empty()
    }
}

/// What leaves a loop so that the nodes in its place can take it.
pub(super) struct Leaving<'l> {
    pub(super) frame: &'l Frame,
    pub(super) rounds: &'l Rounds,
    /// A tensor of the weights' type.
    pub(super) x: Output,
    pub(super) weights: Vec<&'l Weight>,
    pub(super) candidate: &'l Candidate,
}

impl Leaving<'_> {
    /// What is read once waits for the nodes of all inputs, and a node that switches has run before its sides have
    /// values.
    pub(super) fn check(&self, graph: &Graph) -> Result<(), Reason> {
        let switches = |input: &&Output| {
            graph.is(input.node, ops::SWITCH) && !self.frame.nodes.contains(&input.node)
        };
        let is_computed = self.weights.iter().any(|weight| weight.is_computed());
        match self.candidate.inputs.iter().find(switches).filter(|_| is_computed) {
            Some(input) => Err(Reason::Waits { slice: graph.node(input.node).name.clone() }),
            None => Ok(()),
        }
    }

    /// The nodes that leave the loop: those that compute weights, and constants.
    pub(super) fn nodes(&self) -> BTreeSet<NodeId> {
        let constants = self.candidate.inputs.iter().map(|input| input.node);
        let constants = constants.filter(|id| self.frame.nodes.contains(id));
        let computing = self.weights.iter().flat_map(|weight| weight.nodes.iter().copied());
        constants.chain(computing).collect()
    }

    /// Lets them leave. Returns the weights, and the nodes that were added.
    pub(super) fn release(&self, graph: &mut Graph) -> (Vec<Output>, Vec<NodeId>) {
        let nodes = self.nodes();
        let weights = || self.weights.iter().map(|weight| weight.tensor).collect();
        if nodes.is_empty() {
            return (weights(), Vec::new());
        }
        let begin = self.begin(graph);
        if !self.weights.iter().any(|weight| weight.is_computed()) {
            nodes.iter().for_each(|&id| self.move_waits(graph, id, begin));
            return (weights(), vec![begin]);
        }
        let mut guard = Guard::new(graph, self.rounds, self.candidate.root);
        for &id in &nodes {
            for input in graph.node(id).inputs.clone() {
                if let Some(source) = self.frame.entry(graph, input) {
                    let guarded = guard.guarded(graph, source);
                    graph.redirect(input, guarded);
                }
            }
            self.move_waits(graph, id, begin);
        }
        let weights = self.weights.iter().map(|weight| match weight.is_computed() {
            true => guard.either(graph, weight.tensor, self.x),
            false => weight.tensor,
        });
        let weights = weights.collect();
        (weights, [vec![begin], guard.added].concat())
    }

    /// Lets a node wait for `begin` instead of what is in the loop.
    fn move_waits(&self, graph: &mut Graph, id: NodeId, begin: NodeId) {
        for awaited in graph.node(id).control_inputs.clone() {
            if self.frame.nodes.contains(&awaited) {
                graph.move_control(id, awaited, begin);
            }
        }
    }

    /// Adds a node that waits for all that the loop waits for.
    fn begin(&self, graph: &mut Graph) -> NodeId {
        let root = graph.node(self.candidate.root);
        let inputs = self.candidate.inputs.iter().map(|input| input.node);
        let inputs = inputs.filter(|id| !self.frame.nodes.contains(id));
        let all: BTreeSet<_> = inputs.chain(self.candidate.waits.iter().copied()).collect();
        let node = Node {
            name: format!("{}/blockcell/NoOp", root.name),
            op: "NoOp".to_owned(),
            device: root.device.clone(),
            control_inputs: all.into_iter().collect(),
            ..Node::default()
        };
        graph.add(node)
    }
}
