//! Reading equations: what a tensor is computed from, and what is computed from it.

use crate::graph::{Attribute, Graph, Node, NodeId, Output, Use};

/// The tensor of a node with one output.
pub(crate) fn of(node: NodeId) -> Output {
    Output { node, index: 0 }
}

/// What an operation of one input takes, if the tensor comes from it.
pub(crate) fn unary(graph: &Graph, tensor: Output, op: &str) -> Option<Output> {
    let node = graph.node(tensor.node);
    (node.op == op).then(|| node.inputs[0])
}

/// The factors of a product of two.
pub(crate) fn factors(graph: &Graph, tensor: Output) -> Option<[Output; 2]> {
    let node = graph.node(tensor.node);
    (node.op == "Mul").then(|| [node.inputs[0], node.inputs[1]])
}

/// The other factor of a product that `one` is a factor of.
pub(crate) fn other_factor(graph: &Graph, product: Output, one: Output) -> Option<Output> {
    let [left, right] = factors(graph, product)?;
    if left == one { Some(right) } else { (right == one).then_some(left) }
}

/// The summands of a sum of any form, and the nodes that add them up. What is no sum is its only
/// summand.
pub(crate) fn summands(graph: &Graph, tensor: Output) -> (Vec<Output>, Vec<NodeId>) {
    let (mut terms, mut sums, mut open) = (Vec::new(), Vec::new(), vec![tensor]);
    while let Some(next) = open.pop() {
        let node = graph.node(next.node);
        // What is left of a sum with zero is a copy. No cell's sums are longer.
        let is_sum = matches!(node.op.as_str(), "Add" | "AddV2" | "AddN" | "Identity" | "Snapshot");
        if is_sum && sums.len() < 4 {
            sums.push(next.node);
            open.extend(node.inputs.iter().rev());
        } else {
            terms.push(next);
        }
    }
    (terms, sums)
}

/// The nodes of an operation that take a tensor.
pub(crate) fn takers<'g>(
    graph: &'g Graph,
    tensor: Output,
    op: &'g str,
) -> impl Iterator<Item = NodeId> + 'g {
    graph.uses(tensor.node).filter_map(move |one| match one {
        Use::Data { consumer, output, .. } if output == tensor.index => {
            (graph.op(consumer) == op).then_some(consumer)
        }
        _ => None,
    })
}

/// The tensor that a chain of `Identity` passes on.
pub(crate) fn skip_identities(graph: &Graph, tensor: Output) -> Output {
    identities(graph, tensor).last().map_or(tensor, |id| graph.input(id, 0))
}

/// The chain of `Identity` that passes a tensor on, from its end.
pub(crate) fn identities(graph: &Graph, tensor: Output) -> impl Iterator<Item = NodeId> {
    let is_one = |id: NodeId| (graph.op(id) == "Identity").then_some(id);
    std::iter::successors(is_one(tensor.node), move |&id| is_one(graph.input(id, 0).node))
}

/// Which factors of a product of matrices are transposed. None if a node is no such product.
pub(crate) fn transposes(node: &Node) -> Option<[bool; 2]> {
    let is_product = matches!(node.op.as_str(), "MatMul" | "_FusedMatMul");
    is_product.then(|| ["transpose_a", "transpose_b"].map(|name| node.flag(name)))
}

/// Whether a node is a product of matrices with these operations behind it.
pub(crate) fn fuses(node: &Node, ops: &[&str]) -> bool {
    let is_such = |fused: &Vec<String>| fused.iter().eq(ops);
    node.op == "_FusedMatMul"
        && matches!(node.attribute("fused_ops"), Some(Attribute::Texts(fused)) if is_such(fused))
}

/// Whether a node of an operation adds a bias to the columns of a matrix, or adds up its rows for the gradient of one.
pub(crate) fn has_bias_of_columns(node: &Node, op: &str) -> bool {
    let is_other = |format: &Attribute| *format != Attribute::Text("NHWC".to_owned());
    node.op == op && !node.attribute("data_format").is_some_and(is_other)
}

/// How many parts a node splits a tensor into.
pub(crate) fn parts(node: &Node) -> Option<i64> {
    (node.op == "Split").then(|| node.int("num_split"))?
}
