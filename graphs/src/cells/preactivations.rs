//! The pre-activations of gates.
//!
//! ```text
//! z = BiasAdd(MatMul(ConcatV2(x, h_prev, 1), w), b)      also as one _FusedMatMul
//! ```

use super::equations::names_columns;
use crate::attribute::Attribute;
use crate::graph::{Graph, NodeId, Output};

/// `z = [x | h_prev] @ w + b`
pub(super) struct Preactivations {
    pub(super) x: Output,
    pub(super) h_prev: Output,
    pub(super) w: Output,
    pub(super) b: Output,
    /// The nodes from the concatenation to z.
    pub(super) nodes: Vec<NodeId>,
}

impl Preactivations {
    pub(super) fn read(graph: &Graph, z: Output) -> Option<Preactivations> {
        let node = graph.node(z.node);
        let (left, w, b, mut nodes) = match node.op.as_str() {
            "_FusedMatMul" => {
                let adds_a_bias = node.attribute("fused_ops")
                    == Some(&Attribute::Texts(vec!["BiasAdd".to_owned()]));
                let &[left, w, b] = node.inputs.get(..3)?.first_chunk()?;
                (adds_a_bias && node.inputs.len() == 3).then_some((left, w, b, vec![z.node]))?
            }
            "BiasAdd" => {
                let is_last = !matches!(node.attribute("data_format"), Some(Attribute::Text(format)) if format != "NHWC");
                let product = graph.node(node.inputs[0].node);
                let is_product = is_last && product.op == "MatMul";
                let nodes = vec![z.node, node.inputs[0].node];
                is_product.then(|| (product.inputs[0], product.inputs[1], node.inputs[1], nodes))?
            }
            _ => return None,
        };
        let product = graph.node(*nodes.last().expect("there is one"));
        if product.flag("transpose_a") || product.flag("transpose_b") {
            return None;
        }
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
