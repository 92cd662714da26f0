//! Values that are known before a graph runs.

use super::neighbours::skip_identities;
use crate::graph::{Attribute, Constant, Graph, Output, Values};

/// The constant that a tensor is, also one that comes into a loop and is the same in every round.
pub(crate) fn constant(graph: &Graph, mut tensor: Output) -> Option<&Constant> {
    while graph.op(tensor.node) == "Enter" && graph.node(tensor.node).flag("is_constant") {
        tensor = graph.input(tensor.node, 0);
    }
    let node = Some(graph.node(tensor.node)).filter(|node| node.op == "Const")?;
    match node.attribute("value")? {
        Attribute::Constant(value) => Some(value),
        _ => None,
    }
}

/// A constant scalar or vector of integers.
pub(crate) fn integers(graph: &Graph, tensor: Output) -> Option<&[i64]> {
    match constant(graph, tensor)? {
        Constant { shape, values: Values::Ints(values), .. } if shape.len() <= 1 => Some(values),
        _ => None,
    }
}

/// The truth value that a tensor is.
pub(crate) fn truth(graph: &Graph, tensor: Output) -> Option<bool> {
    match constant(graph, skip_identities(graph, tensor))? {
        Constant { shape, values: Values::Bools(values), .. } if shape.is_empty() => {
            values.first().copied()
        }
        _ => None,
    }
}

/// Whether a tensor is a constant of zeros.
pub(crate) fn is_zero(graph: &Graph, tensor: Output) -> bool {
    match constant(graph, tensor).map(|constant| &constant.values) {
        Some(Values::Zeros) => true,
        Some(Values::Floats(values)) => values.iter().all(|&value| value == 0.0),
        _ => false,
    }
}

/// Whether a tensor has only zeros, however many.
pub(crate) fn has_zeros(graph: &Graph, tensor: Output) -> bool {
    let tensor = skip_identities(graph, tensor);
    let node = graph.node(tensor.node);
    is_zero(graph, tensor) || (node.op == "Fill" && is_zero(graph, node.inputs[1]))
}

/// Whether a tensor is certainly a vector, of constants that are where it is.
pub(crate) fn is_vector(graph: &Graph, tensor: Output) -> bool {
    let own = |tensor: Output| constant(graph, tensor).filter(|_| graph.op(tensor.node) == "Const");
    let has_rank = |tensor, rank| own(tensor).is_some_and(|one| one.shape.len() == rank);
    let node = graph.node(tensor.node);
    match (node.op.as_str(), &node.inputs[..]) {
        ("Const", _) => has_rank(tensor, 1),
        ("Fill", &[sizes, value]) => {
            let is_size = |sizes: &[i64]| matches!(*sizes, [size] if size >= 0);
            has_rank(sizes, 1) && integers(graph, sizes).is_some_and(is_size) && has_rank(value, 0)
        }
        _ => false,
    }
}

/// The number that a constant of one element is.
pub(crate) fn scalar(graph: &Graph, tensor: Output) -> Option<f32> {
    match constant(graph, tensor)? {
        Constant { shape, values: Values::Floats(values), .. } if shape.is_empty() => {
            values.first().copied()
        }
        _ => None,
    }
}

/// Whether a tensor is a constant that names the columns of a matrix.
pub(crate) fn names_columns(graph: &Graph, tensor: Output) -> bool {
    matches!(integers(graph, tensor), Some([1 | -1]))
}
