//! Patterns: the products around a cell in a training graph.
//!
//! With `dz` a cell's gradient with respect to pre-activations ([`preactivation_grad`]), a
//! training graph has at every step
//!
//! ```text
//! w_grad = [x | h_prev]^T @ dz       MatMul(ConcatV2(x, h_prev, 1), dz, transpose_a)
//! b_grad = sum of the rows of dz     BiasAddGrad(dz)
//! dx_dh  = dz @ w^T                  MatMul(dz, w, transpose_b), and Slices of it
//! ```

use super::constants::names_columns;
use super::gradients::{CellTensors, cell_tensors, preactivation_grad};
use super::neighbours::{factors, has_bias_of_columns, skip_identities, transposes};
use super::stacks::pushed;
use crate::graph::{Graph, NodeId, Output};

/// `left^T @ dz`, a gradient of weights.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    /// The left factor as one tensor, if there is such a tensor.
    pub(crate) whole: Option<Output>,
    /// The left factor as tensors side by side: `[parts[0] | parts[1] | ...]`.
    pub(crate) parts: Vec<Output>,
    /// What puts the parts together, if something does.
    pub(crate) concat: Option<NodeId>,
    /// The right factor.
    pub(crate) dz: Output,
}

impl Product {
    /// Reads `MatMul(left, dz, transpose_a)`.
    pub(crate) fn read(graph: &Graph, id: NodeId) -> Option<Product> {
        let node = graph.node(id);
        if node.op != "MatMul" || transposes(node) != Some([true, false]) {
            return None;
        }
        let (left, dz) = (node.inputs[0], node.inputs[1]);
        preactivation_grad(graph, dz)?;
        let concat = columns(graph, left);
        Some(match concat.filter(|_| graph.node(left.node).device == node.device) {
            Some(parts) => Product { whole: Some(left), parts, concat: Some(left.node), dz },
            None => Product { whole: Some(left), parts: vec![left], concat: None, dz },
        })
    }

    /// Whether there are two parts, the first of which is the cell's own x.
    pub(crate) fn starts_with_x(&self, graph: &Graph) -> bool {
        starts_with_x(graph, &self.parts, self.dz)
    }

    /// Whether the left factor is the cell's own x and h_prev, times r where the weights take that. Then
    /// the product has the shape of the weights: the cell's kernel checks it.
    pub(crate) fn is_of_cell(&self, graph: &Graph) -> bool {
        self.weights(graph).is_some()
    }

    /// The weights that it is the gradient of, as one cell has them.
    fn weights(&self, graph: &Graph) -> Option<Output> {
        let cell = cell_tensors(graph, self.dz)?;
        let Some(w_h) = cell.w_h else { return self.takes_both(graph).then_some(cell.weights) };
        let &[left] = &self.parts[..] else { return None };
        let mut left =
            [left, pushed(graph, left)].map(|one| skip_identities(graph, one)).into_iter();
        if left.clone().any(|left| left == skip_identities(graph, cell.x)) {
            return Some(cell.weights);
        }
        left.any(|left| is_state(graph, &cell, left)).then_some(w_h)
    }

    /// Whether the left factor is x and h_prev side by side.
    fn takes_both(&self, graph: &Graph) -> bool {
        // In a loop, it may be put together before it is kept for the loop of the gradient.
        let earlier = self.whole.filter(|_| self.concat.is_none());
        let earlier = earlier.and_then(|whole| columns(graph, pushed(graph, whole)));
        let parts = earlier.as_deref().unwrap_or(&self.parts);
        let cell = cell_tensors(graph, self.dz).filter(|_| starts_with_x(graph, parts, self.dz));
        cell.is_some_and(|cell| is_state(graph, &cell, skip_identities(graph, parts[1])))
    }
}

/// Whether a tensor is what the weights of the state take: `h_prev`, times r where a cell has that.
fn is_state(graph: &Graph, cell: &CellTensors, state: Output) -> bool {
    let is = |tensor, other| skip_identities(graph, tensor) == skip_identities(graph, other);
    let Some(r) = cell.r else { return is(state, cell.h_prev) };
    let Some([left, right]) = factors(graph, state) else { return false };
    (is(left, cell.h_prev) && is(right, r)) || (is(right, cell.h_prev) && is(left, r))
}

fn starts_with_x(graph: &Graph, parts: &[Output], dz: Output) -> bool {
    let Some(cell) = cell_tensors(graph, dz) else { return false };
    parts.len() == 2 && skip_identities(graph, parts[0]) == skip_identities(graph, cell.x)
}

/// `dz` of `BiasAddGrad(dz)`, a gradient of a bias.
pub(crate) fn read_bias_gradient(graph: &Graph, id: NodeId) -> Option<Output> {
    let node = graph.node(id);
    let is_such = has_bias_of_columns(node, "BiasAddGrad");
    is_such.then(|| node.inputs[0]).filter(|&dz| preactivation_grad(graph, dz).is_some())
}

/// The weights or bias that a tensor is the gradient of, as one cell has it. The cell's kernel makes
/// sure that the two have the same shape.
pub(crate) fn parameter_of_gradient(graph: &Graph, tensor: Output) -> Option<Output> {
    if let Some(product) = Product::read(graph, tensor.node) {
        return product.weights(graph);
    }
    cell_tensors(graph, read_bias_gradient(graph, tensor.node)?).map(|cell| cell.bias)
}

/// The parts of `ConcatV2(parts..., 1)`.
fn columns(graph: &Graph, tensor: Output) -> Option<Vec<Output>> {
    let node = graph.node(tensor.node);
    if node.op != "ConcatV2" {
        return None;
    }
    let (axis, parts) = node.inputs.split_last()?;
    names_columns(graph, *axis).then(|| parts.to_vec())
}
