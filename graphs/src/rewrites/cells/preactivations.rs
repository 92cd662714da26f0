//! The pre-activations of gates.
//!
//! ```text
//! z = BiasAdd(MatMul(ConcatV2(x, h_prev, 1), w), b)      also as one _FusedMatMul
//! ```

use crate::graph::{Graph, NodeId, Output};
use crate::reading::constants::names_columns;
use crate::reading::neighbours::{fuses, has_bias_of_columns, transposes, unary};

/// `z = [x | h_prev] @ w + b`
pub(super) struct Preactivations {
    pub(super) x: Output,
    pub(super) h_prev: Output,
    pub(super) w: Output,
    pub(super) b: Output,
    /// The nodes from z back to the concatenation. The first one is the activation's if it is fused.
    pub(super) nodes: Vec<NodeId>,
}

impl Preactivations {
    /// Reads `z`.
    pub(super) fn read(graph: &Graph, z: Output) -> Option<Preactivations> {
        let node = graph.node(z.node);
        if node.op != "BiasAdd" {
            return Preactivations::fused(graph, z, &["BiasAdd"]);
        }
        let &[product, b] = node.inputs.first_chunk()?;
        let is_product = has_bias_of_columns(node, "BiasAdd") && graph.op(product.node) == "MatMul";
        is_product.then(|| Preactivations::of(graph, &[z.node, product.node], b))?
    }

    /// Reads `z`, given `activation(z)`. TensorFlow fuses the two on some processors.
    pub(super) fn activated(
        graph: &Graph,
        tensor: Output,
        activation: &str,
    ) -> Option<Preactivations> {
        match unary(graph, tensor, activation) {
            Some(z) => Preactivations::read(graph, z),
            None => Preactivations::fused(graph, tensor, &["BiasAdd", activation]),
        }
    }

    fn fused(graph: &Graph, tensor: Output, ops: &[&str]) -> Option<Preactivations> {
        let node = graph.node(tensor.node);
        let is_such = node.inputs.len() == 3 && fuses(node, ops);
        is_such.then(|| Preactivations::of(graph, &[tensor.node], node.inputs[2]))?
    }

    /// With the nodes from the product on, the last one first.
    fn of(graph: &Graph, nodes: &[NodeId], b: Output) -> Option<Preactivations> {
        let mut nodes = nodes.to_vec();
        let product = graph.node(*nodes.last().expect("there is one"));
        let &[left, w] =
            product.inputs.first_chunk().filter(|_| transposes(product) == Some([false; 2]))?;
        let concat = graph.node(left.node);
        let &[x, h_prev, axis] =
            concat.inputs.first_chunk().filter(|_| concat.inputs.len() == 3)?;
        if concat.op != "ConcatV2" || !names_columns(graph, axis) {
            return None;
        }
        nodes.push(left.node);
        Some(Preactivations { x, h_prev, w, b, nodes })
    }
}
