//! Patterns: what sums are made of.

use super::gradients::preactivation_grad;
use super::products::{Product, read_bias_gradient};
use crate::graph::{Graph, NodeId, Output, ops};

/// What a sum is made of: products, sums over rows, and other tensors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    /// Products `left^T @ dz`.
    pub(crate) products: Vec<Product>,
    /// Each `dz` whose rows are added up.
    pub(crate) row_sums: Vec<Output>,
    /// Other summands.
    pub(crate) addends: Vec<Output>,
}

impl Terms {
    /// What a node contributes to a sum if it is a product or a sum over rows, or an operation of
    /// this library that adds such up.
    pub(crate) fn read(graph: &Graph, id: NodeId) -> Option<Terms> {
        if let Some(product) = Product::read(graph, id) {
            return Some(Terms { products: vec![product], ..Terms::default() });
        }
        if let Some(dz) = read_bias_gradient(graph, id) {
            return Some(Terms { row_sums: vec![dz], ..Terms::default() });
        }
        match graph.op(id) {
            ops::MAT_MUL_ADD_N => read_mat_mul_add_n(graph, id),
            ops::BIAS_ADD_GRAD_ADD_N => read_bias_add_grad_add_n(graph, id),
            _ => None,
        }
    }

    /// How many products and sums over rows there are.
    pub(crate) fn len(&self) -> usize {
        self.products.len() + self.row_sums.len()
    }

    pub(crate) fn append(&mut self, more: Terms) {
        self.products.extend(more.products);
        self.row_sums.extend(more.row_sums);
        self.addends.extend(more.addends);
    }
}

/// Whether a node is what [`crate::shield()`] put in place of an `AddN`: it has no terms but addends.
pub(crate) fn is_shield(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    match node.op.as_str() {
        ops::MAT_MUL_ADD_N => node.int("num_b") == Some(0),
        ops::BIAS_ADD_GRAD_ADD_N => node.int("num_out_backprop") == Some(0),
        _ => false,
    }
}

/// The terms of `BlockcellMatMulAddN(a, b, addends)`. None if it is a shield, or if there are others
/// than products of cells.
fn read_mat_mul_add_n(graph: &Graph, id: NodeId) -> Option<Terms> {
    let node = graph.node(id);
    let [products, lefts] = counts(graph, id, ["num_b", "num_a"])?;
    let (a, rest) = node.inputs.split_at_checked(lefts)?;
    let (b, addends) = rest.split_at_checked(products)?;
    let parts = lefts / products;
    let mut terms = Terms { addends: addends.to_vec(), ..Terms::default() };
    for (left, &dz) in a.chunks_exact(parts).zip(b) {
        preactivation_grad(graph, dz)?;
        let whole = (parts == 1).then(|| left[0]);
        let product = Product { whole, parts: left.to_vec(), concat: None, dz };
        if whole.is_none() && !product.starts_with_x(graph) {
            return None;
        }
        terms.products.push(product);
    }
    Some(terms)
}

/// The terms of `BlockcellBiasAddGradAddN(out_backprop, addends)`, as above.
fn read_bias_add_grad_add_n(graph: &Graph, id: NodeId) -> Option<Terms> {
    let [count, _] = counts(graph, id, ["num_out_backprop"; 2])?;
    let (row_sums, addends) = graph.node(id).inputs.split_at_checked(count)?;
    row_sums.iter().all(|&dz| preactivation_grad(graph, dz).is_some()).then(|| Terms {
        products: Vec::new(),
        row_sums: row_sums.to_vec(),
        addends: addends.to_vec(),
    })
}

/// Lengths of lists, none of which is empty.
fn counts(graph: &Graph, id: NodeId, names: [&str; 2]) -> Option<[usize; 2]> {
    let count = |name| {
        let number = usize::try_from(graph.node(id).int(name)?).ok()?;
        (number > 0).then_some(number)
    };
    Some([count(names[0])?, count(names[1])?])
}
