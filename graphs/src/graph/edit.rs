//! The result of rewriting: what to change in TensorFlow's graph.

use super::node::{Node, NodeId, Output};

/// One change. Changes are applied in their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Add a node. Its inputs and what it waits for exist at this time.
    Add {
        /// Its number.
        node: NodeId,
        /// The node.
        definition: Node,
    },
    /// Let a node take another tensor.
    SetInput {
        /// The node.
        node: NodeId,
        /// Which of its inputs.
        input: usize,
        /// The tensor to take.
        to: Output,
    },
    /// Let a node wait for `to` instead of `from`.
    MoveControl {
        /// The node.
        node: NodeId,
        /// What it waits for no more.
        from: NodeId,
        /// What it waits for now.
        to: NodeId,
    },
    /// Remove a node that nothing depends on, or only nodes of the same loop, which are removed next.
    Remove {
        /// The node.
        node: NodeId,
    },
}
