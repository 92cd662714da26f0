//! The pre-activations of gates.
//!
//! ```text
//! z = BiasAdd(MatMul(ConcatV2(x, h_prev, 1), w), b)
//!     _FusedMatMul(ConcatV2(x, h_prev, 1), w, b)         if b is known to be a vector
//!     Add(MatMul(...), b)                                if it is known to be one for the columns of w
//!     MatMul(...)                                        what optimizers leave where b is zero
//! ```
//!
//! TensorFlow 2 fuses sums, too, also those with a matrix of one row.

use super::step::Taken;
use crate::facts::shapes::LazyShapes;
use crate::graph::reason::Reason;
use crate::graph::{Graph, NodeId, Output};
use crate::reading::constants::names_columns;
use crate::reading::neighbours::{fuses, has_bias_of_columns, transposes, unary};

/// `z = [x | h_prev] @ w + b`
#[derive(Clone)]
pub(super) struct Preactivations {
    pub(super) x: Output,
    pub(super) h_prev: Output,
    pub(super) w: Output,
    bias: Bias,
    /// The nodes from z back to the concatenation. The first one is the activation's if it is fused.
    pub(super) nodes: Vec<NodeId>,
}

/// What is added to a product.
#[derive(Clone, Copy)]
enum Bias {
    /// A vector, of as many numbers as the product has columns.
    OfColumns(Output),
    /// The same, or a tensor of that many numbers.
    Fused(Output),
    /// A tensor that the sum may broadcast in other ways.
    Summand(Output),
    None,
}

impl Preactivations {
    /// Reads `z`.
    pub(super) fn read(graph: &Graph, z: Output) -> Option<Preactivations> {
        let node = graph.node(z.node);
        let is_product = |tensor: Output| graph.op(tensor.node) == "MatMul";
        let of_sum = |product: Output, bias| {
            let nodes = [z.node, product.node];
            is_product(product).then(|| Preactivations::of(graph, &nodes, bias))?
        };
        match (node.op.as_str(), &node.inputs[..]) {
            ("BiasAdd", &[product, b]) if has_bias_of_columns(node, "BiasAdd") => {
                of_sum(product, Bias::OfColumns(b))
            }
            ("Add" | "AddV2", &[left, right]) => {
                of_sum(left, Bias::Summand(right)).or_else(|| of_sum(right, Bias::Summand(left)))
            }
            ("MatMul", _) => Preactivations::of(graph, &[z.node], Bias::None),
            _ => Preactivations::fused(graph, z, &["BiasAdd"]),
        }
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
        let bias = || Bias::Fused(node.inputs[2]);
        is_such.then(|| Preactivations::of(graph, &[tensor.node], bias()))?
    }

    /// With the nodes from the product on, the last one first.
    fn of(graph: &Graph, nodes: &[NodeId], bias: Bias) -> Option<Preactivations> {
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
        Some(Preactivations { x, h_prev, w, bias, nodes })
    }

    /// The bias of the cell: a vector of as many numbers as w has columns, or zeros. An error is a tensor that may have
    /// another shape.
    pub(super) fn b(&self, graph: &Graph, shapes: &LazyShapes) -> Result<Taken, Reason> {
        let sizes = |tensor| shapes.of(graph).sizes(graph, tensor);
        let other = |tensor: Output| Reason::Shape(graph.node(tensor.node).name.clone());
        let columns = || match sizes(self.w).as_deref() {
            Some(&[_, columns]) => Ok(columns),
            _ => Err(other(self.w)),
        };
        match self.bias {
            Bias::OfColumns(b) => Ok(b.into()),
            Bias::Fused(b) => match sizes(b).as_deref() {
                Some([_]) => Ok(b.into()),
                _ => Err(other(b)),
            },
            Bias::Summand(b) => {
                let columns = columns()?;
                let is_vector = sizes(b).is_some_and(|sizes| sizes == [columns]);
                if is_vector { Ok(b.into()) } else { Err(other(b)) }
            }
            Bias::None => columns().map(Taken::Zeros),
        }
    }

    /// The bias, if a sum may have added it.
    pub(super) fn added_bias(&self) -> Option<Output> {
        match self.bias {
            Bias::Fused(b) | Bias::Summand(b) => Some(b),
            Bias::OfColumns(_) | Bias::None => None,
        }
    }

    /// Whether nothing is added to the product.
    pub(super) fn has_no_bias(&self) -> bool {
        matches!(self.bias, Bias::None)
    }

    /// The nodes from z back to the product, which would be computed twice if others took what is in it.
    pub(super) fn product(&self) -> &[NodeId] {
        &self.nodes[..self.nodes.len() - 1]
    }
}
