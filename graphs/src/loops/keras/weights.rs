//! Weights of a loop: tensors that are the same in every round.
//!
//! They come into the loop, or are read from variables in every round, and may be parts of what is read. The nodes that
//! compute them leave the loop then.

use std::collections::BTreeSet;

use super::super::frame::Frame;
use crate::graph::{Graph, NodeId, Output};

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
    /// Whether the rounds compute it of what comes into the loop, so that there may be an error.
    pub(super) fn is_computed(&self) -> bool {
        !self.nodes.is_empty() && !self.sources.is_empty()
    }

    pub(super) fn read(graph: &Graph, frame: &Frame, tensor: Output) -> Option<Weight> {
        let (sources, nodes) = (BTreeSet::new(), BTreeSet::new());
        let mut weight = Weight { tensor, sources, nodes };
        let mut open = vec![tensor];
        while let Some(next) = open.pop() {
            let node = graph.node(next.node);
            match node.op.as_str() {
                "Enter" if node.flag("is_constant") => {
                    weight.sources.insert(node.inputs[0]);
                    continue;
                }
                "Const" => {}
                "Cast" | "ExpandDims" | "Identity" | "ReadVariableOp" | "Reshape" | "Split"
                | "SplitV" | "Squeeze" | "StridedSlice" | "Unpack" => open.extend(&node.inputs),
                _ => return None,
            }
            // A node that reads a variable must not come before what the loop waits for.
            let waits = node.control_inputs.iter().any(|id| frame.nodes.contains(id));
            if node.op == "ReadVariableOp" && !waits {
                return None;
            }
            weight.nodes.insert(next.node);
            if weight.nodes.len() > MOST_NODES {
                return None;
            }
        }
        if graph.op(tensor.node) == "Enter" {
            weight.tensor = graph.input(tensor.node, 0);
        }
        Some(weight)
    }
}
