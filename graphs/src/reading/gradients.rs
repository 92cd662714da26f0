//! Which tensors are gradients with respect to pre-activations, and what these were computed from.

use std::sync::LazyLock;

use blockcell_kernels::ops::{GRU_BLOCK_CELL_GRAD, LSTM_BLOCK_CELL_GRAD, Op};

use super::stacks::pushed;
use crate::graph::ops::{
    GRU_CELL, GRU_CELL_GRAD_C, GRU_CELL_GRAD_RU, HALF_GRU_CELL, LSTM_CELL, LSTM_CELL_GRAD,
};
use crate::graph::{Graph, Output};

/// An output of a cell's gradient operation that is a factor of the gradients of weights and bias:
/// the gradient with respect to the pre-activations of gates.
#[derive(Debug)]
pub(crate) struct PreactivationGrad {
    /// The cell's gradient operation.
    pub(crate) op: &'static str,
    /// Which output.
    pub(crate) output: usize,
    /// The operation that takes the cell's inputs, if it is not that one: the forward step, and which of its
    /// outputs that one takes first.
    forward: Option<(&'static str, usize)>,
    x: usize,
    h_prev: usize,
    /// An input of the gradient operation, or an output of the forward step.
    r: Option<usize>,
    weights: usize,
    bias: usize,
}

/// What the gates of a cell are computed from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellTensors {
    /// The input.
    pub(crate) x: Output,
    /// The output of the step before.
    pub(crate) h_prev: Output,
    /// What h_prev is multiplied by before the product with the weights, if anything.
    pub(crate) r: Option<Output>,
    /// The weights.
    pub(crate) weights: Output,
    /// The bias.
    pub(crate) bias: Output,
}

static PREACTIVATION_GRADS: LazyLock<[PreactivationGrad; 6]> = LazyLock::new(|| {
    let entry = |op: &'static Op, output: &str, weights: &str, bias: &str, r: Option<&str>| {
        let find = |tensors: &[blockcell_kernels::ops::Tensor], name: &str| {
            tensors.iter().position(|tensor| tensor.name == name).expect("the op has this tensor")
        };
        PreactivationGrad {
            op: op.name,
            output: find(op.outputs, output),
            forward: None,
            x: find(op.inputs, "x"),
            h_prev: find(op.inputs, "h_prev"),
            r: r.map(|name| find(op.inputs, name)),
            weights: find(op.inputs, weights),
            bias: find(op.inputs, bias),
        }
    };
    [
        entry(&LSTM_BLOCK_CELL_GRAD, "dicfo", "w", "b", None),
        entry(&GRU_BLOCK_CELL_GRAD, "d_r_bar_u_bar", "w_ru", "b_ru", None),
        entry(&GRU_BLOCK_CELL_GRAD, "d_c_bar", "w_c", "b_c", Some("r")),
        PreactivationGrad {
            op: LSTM_CELL_GRAD,
            output: 1,
            forward: Some((LSTM_CELL, 0)),
            x: 0,
            h_prev: 1,
            r: None,
            weights: 2,
            bias: 3,
        },
        PreactivationGrad {
            op: GRU_CELL_GRAD_RU,
            output: 0,
            forward: Some((GRU_CELL, 0)),
            x: 0,
            h_prev: 1,
            r: None,
            weights: 2,
            bias: 4,
        },
        PreactivationGrad {
            op: GRU_CELL_GRAD_C,
            output: 0,
            forward: Some((GRU_CELL, 1)),
            x: 0,
            h_prev: 1,
            r: Some(0),
            weights: 3,
            bias: 5,
        },
    ]
});

/// The entry for a tensor, if it is such an output.
pub(crate) fn preactivation_grad(
    graph: &Graph,
    tensor: Output,
) -> Option<&'static PreactivationGrad> {
    let op = graph.op(tensor.node);
    PREACTIVATION_GRADS.iter().find(|entry| entry.op == op && entry.output == tensor.index)
}

/// What the gates are computed from whose gradient a tensor is, if that can be seen.
pub(crate) fn cell_tensors(graph: &Graph, tensor: Output) -> Option<CellTensors> {
    let entry = preactivation_grad(graph, tensor)?;
    let (node, r) = match entry.forward {
        None => (tensor.node, entry.r.map(|number| graph.input(tensor.node, number))),
        Some((op, output)) => {
            let first = pushed(graph, graph.input(tensor.node, 0));
            let is_half = op == GRU_CELL && graph.op(first.node) == HALF_GRU_CELL;
            let is_such = (graph.op(first.node) == op || is_half) && first.index == output;
            let node = is_such.then_some(first.node)?;
            (node, entry.r.map(|index| Output { node, index }))
        }
    };
    let input = |number| graph.input(node, number);
    Some(CellTensors {
        x: input(entry.x),
        h_prev: input(entry.h_prev),
        r,
        weights: input(entry.weights),
        bias: input(entry.bias),
    })
}
