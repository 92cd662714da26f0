//! Which tensors are gradients with respect to pre-activations, and what these were computed from.

use blockcell_kernels::ops::{
    GRU_BLOCK_CELL, GRU_BLOCK_CELL_GRAD, LSTM_BLOCK_CELL_GRAD, Op, UNFUSED_GRU_CELL,
    UNFUSED_GRU_CELL_GRAD_C, UNFUSED_GRU_CELL_GRAD_RU, UNFUSED_LSTM_CELL, UNFUSED_LSTM_CELL_GRAD,
};

use super::stacks::pushed;
use crate::graph::ops::{GRU_CELL, HALF_GRU_CELL};
use crate::graph::{Graph, Output};

/// An output of a cell's gradient operation that is a factor of the gradients of weights and bias:
/// the gradient with respect to the pre-activations of gates.
#[derive(Debug)]
pub(crate) struct PreactivationGrad {
    /// The cell's gradient operation.
    op: &'static Op,
    /// Which output.
    output: usize,
    /// The forward step, if the gradient takes its outputs in place of the cell's inputs, and which one it takes first.
    forward: Option<(&'static Op, usize)>,
    /// What the pre-activations are computed from: inputs of the forward step, if there is one, or of the gradient.
    x: usize,
    h_prev: usize,
    weights: usize,
    bias: usize,
    /// The name of the weights of `h_prev` alone, which a step may have.
    w_h: &'static str,
    /// An output of the forward step, if there is one, or an input of the gradient.
    r: Option<usize>,
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
    /// The weights, of the input alone if those of the output before are a tensor of their own.
    pub(crate) weights: Output,
    /// The weights of the output before, then.
    pub(crate) w_h: Option<Output>,
    /// The bias.
    pub(crate) bias: Output,
}

const fn grad(
    (op, output): (&'static Op, &str),
    forward: Option<(&'static Op, &str)>,
    [weights, bias, w_h]: [&'static str; 3],
    r: Option<&str>,
) -> PreactivationGrad {
    let of = match forward {
        Some((forward, _)) => forward,
        None => op,
    };
    PreactivationGrad {
        op,
        output: op.output(output),
        forward: match forward {
            Some((forward, first)) => Some((forward, forward.output(first))),
            None => None,
        },
        x: of.input("x"),
        h_prev: of.input("h_prev"),
        weights: of.input(weights),
        bias: of.input(bias),
        w_h,
        r: match (r, forward) {
            (Some(r), Some((forward, _))) => Some(forward.output(r)),
            (Some(r), None) => Some(op.input(r)),
            (None, _) => None,
        },
    }
}

const LSTM: [&str; 3] = ["w", "b", "w_h"];
const GATES: [&str; 3] = ["w_ru", "b_ru", "w_ru_h"];
const CANDIDATE: [&str; 3] = ["w_c", "b_c", "w_c_h"];

#[rustfmt::skip]
static PREACTIVATION_GRADS: [PreactivationGrad; 6] = [
    grad((&LSTM_BLOCK_CELL_GRAD, "dicfo"), None, LSTM, None),
    grad((&GRU_BLOCK_CELL_GRAD, "d_r_bar_u_bar"), None, GATES, None),
    grad((&GRU_BLOCK_CELL_GRAD, "d_c_bar"), None, CANDIDATE, Some("r")),
    grad((&UNFUSED_LSTM_CELL_GRAD, "dicfo"), Some((&UNFUSED_LSTM_CELL, "i")), LSTM, None),
    grad((&UNFUSED_GRU_CELL_GRAD_RU, "d_r_bar_u_bar"), Some((&GRU_BLOCK_CELL, "r")), GATES, None),
    grad((&UNFUSED_GRU_CELL_GRAD_C, "d_c_bar"), Some((&GRU_BLOCK_CELL, "u")), CANDIDATE, Some("r")),
];

/// The entry for a tensor, if it is such an output.
pub(crate) fn preactivation_grad(
    graph: &Graph,
    tensor: Output,
) -> Option<&'static PreactivationGrad> {
    let op = graph.op(tensor.node);
    PREACTIVATION_GRADS.iter().find(|entry| entry.op.name == op && entry.output == tensor.index)
}

/// What the gates are computed from whose gradient a tensor is, if that can be seen.
pub(crate) fn cell_tensors(graph: &Graph, tensor: Output) -> Option<CellTensors> {
    let entry = preactivation_grad(graph, tensor)?;
    // A plain GRU cell has the same outputs as TensorFlow's own, and the same first inputs.
    let is_plain = |id, op: &Op| op.name == GRU_CELL && graph.op(id) == HALF_GRU_CELL;
    let (node, r) = match entry.forward {
        None => (tensor.node, entry.r.map(|number| graph.input(tensor.node, number))),
        Some((op, output)) => {
            let first = pushed(graph, graph.input(tensor.node, 0));
            let is_such = (graph.op(first.node) == op.name || is_plain(first.node, op))
                && first.index == output;
            let node = is_such.then_some(first.node)?;
            (node, entry.r.map(|index| Output { node, index }))
        }
    };
    let input = |number| graph.input(node, number);
    let op = entry.forward.map_or(entry.op, |(op, _)| op);
    let op = if is_plain(node, op) { &UNFUSED_GRU_CELL } else { op };
    let w_h = op.inputs.iter().any(|tensor| tensor.name == entry.w_h).then(|| {
        let count = |name| usize::try_from(graph.node(node).int(name).unwrap_or(0)).unwrap_or(0);
        op.input_range(entry.w_h, count)
    });
    let w_h = w_h.and_then(|mut range| graph.node(node).inputs.get(range.next()?).copied());
    Some(CellTensors {
        x: input(entry.x),
        h_prev: input(entry.h_prev),
        r,
        weights: input(entry.weights),
        w_h,
        bias: input(entry.bias),
    })
}
