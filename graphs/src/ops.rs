//! What rewrites know of operations.

use std::sync::LazyLock;

use blockcell_kernels::ops::{GRU_BLOCK_CELL, GRU_BLOCK_CELL_GRAD, LSTM_BLOCK_CELL_GRAD, Op};
pub use blockcell_kernels::plain::{
    GRU_CELL as HALF_GRU_CELL, GRU_CELL_GRAD_C, GRU_CELL_GRAD_RU, GRU_LAYER, KERAS_GRU, KERAS_LSTM,
    LSTM_CELL, LSTM_CELL_GRAD, LSTM_LAYER,
};

use crate::graph::{Graph, Output};
use crate::stacks::pushed;

/// The sum of products in place of `AddN`.
pub const MAT_MUL_ADD_N: &str = "BlockcellMatMulAddN";
/// The product with its slices in place of `MatMul` and `Slice`.
pub const MAT_MUL_SLICE: &str = "BlockcellMatMulSlice";
/// The sum over rows in place of `BiasAddGrad` and `AddN`.
pub const BIAS_ADD_GRAD_ADD_N: &str = "BlockcellBiasAddGradAddN";

/// The forward step of a GRU cell, which is TensorFlow's own operation. It has no half: see [`HALF_GRU_CELL`].
pub const GRU_CELL: &str = GRU_BLOCK_CELL.name;

/// The operations that rewrites put into graphs.
pub const REPLACEMENTS: [&str; 17] = [
    BIAS_ADD_GRAD_ADD_N,
    HALF_GRU_CELL,
    GRU_CELL_GRAD_C,
    GRU_CELL_GRAD_RU,
    GRU_LAYER,
    KERAS_GRU,
    KERAS_LSTM,
    LSTM_CELL,
    LSTM_CELL_GRAD,
    LSTM_LAYER,
    MAT_MUL_ADD_N,
    MAT_MUL_SLICE,
    "CudnnRNN",
    "CudnnRNNBackprop",
    "CudnnRNNBackpropV3",
    "CudnnRNNV3",
    GRU_CELL,
];

/// An output of a cell's gradient operation that is a factor of the gradients of weights and bias:
/// the gradient with respect to the pre-activations of gates.
#[derive(Debug)]
pub struct PreactivationGrad {
    /// The cell's gradient operation.
    pub op: &'static str,
    /// Which output.
    pub output: usize,
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
pub struct CellTensors {
    /// The input.
    pub x: Output,
    /// The output of the step before.
    pub h_prev: Output,
    /// What h_prev is multiplied by before the product with the weights, if anything.
    pub r: Option<Output>,
    /// The weights.
    pub weights: Output,
    /// The bias.
    pub bias: Output,
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
#[must_use]
pub fn preactivation_grad(graph: &Graph, tensor: Output) -> Option<&'static PreactivationGrad> {
    let op = graph.op(tensor.node);
    PREACTIVATION_GRADS.iter().find(|entry| entry.op == op && entry.output == tensor.index)
}

/// What the gates are computed from whose gradient a tensor is, if that can be seen.
#[must_use]
pub fn cell_tensors(graph: &Graph, tensor: Output) -> Option<CellTensors> {
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

/// Whether graphs with this operation are worth a look at all. Others need not be described.
#[must_use]
pub fn starts_rewrites(op: &str) -> bool {
    op == "Split" || is_gradient(op)
}

/// Whether an operation is the gradient of a cell.
fn is_gradient(op: &str) -> bool {
    PREACTIVATION_GRADS.iter().any(|entry| entry.op == op)
}

/// Whether a node of an operation may wait for something that happens elsewhere, though its inputs have
/// values: another process, another step, or another part of the graph. Operations without a state do
/// not, but for Python functions.
#[must_use]
pub fn may_wait(op: &str, is_stateful: bool) -> bool {
    let is_prompt = matches!(
        op,
        "VariableV2"
            | "Variable"
            | "VarHandleOp"
            | "ReadVariableOp"
            | "VariableShape"
            | "ResourceGather"
            | "IteratorGetNext"
            | "IteratorV2"
            | "OneShotIterator"
            | "Assert"
            | "Print"
            | "PrintV2"
            | "_Arg"
            | "_Retval"
    ) || [
        "Assign",
        "Random",
        "Resource",
        "Stack",
        "StatefulStandardNormal",
        "TensorArray",
        "TensorList",
    ]
    .iter()
    .any(|prefix| op.starts_with(prefix));
    op.contains("PyFunc") || (is_stateful && !is_prompt)
}

/// Whether rewrites look at the attributes of this operation, beside the type of its outputs.
#[must_use]
pub fn has_attributes(op: &str) -> bool {
    only_computes(op)
        || starts_rewrites(op)
        || matches!(
            op,
            "VariableV2"
                | "Variable"
                | "VarHandleOp"
                | "_Arg"
                | "Pack"
                | "StridedSlice"
                | "TensorArrayV3"
                | "TensorArrayGatherV3"
                | "TensorListSetItem"
                | "TensorListStack"
                | "Unpack"
                | MAT_MUL_SLICE
        )
}

/// Whether an operation does nothing but compute its outputs, so that it is not missed where nobody
/// reads them. Only those that rewrites take consumers from are listed.
#[must_use]
pub fn only_computes(op: &str) -> bool {
    matches!(
        op,
        "Add"
            | "AddN"
            | "AddV2"
            | "BiasAddGrad"
            | "BroadcastGradientArgs"
            | "ConcatV2"
            | "Const"
            | "EmptyTensorList"
            | "Enter"
            | "Fill"
            | "GreaterEqual"
            | "Identity"
            | "LessEqual"
            | "MatMul"
            | "Maximum"
            | "Minimum"
            | "Mul"
            | "Neg"
            | "Reshape"
            | "Select"
            | "SelectV2"
            | "Shape"
            | "Sigmoid"
            | "SigmoidGrad"
            | "Slice"
            | "Snapshot"
            | "Split"
            | "Sub"
            | "Sum"
            | "Tanh"
            | "TanhGrad"
            | "ZerosLike"
            | "_FusedMatMul"
            | "BiasAdd"
            | BIAS_ADD_GRAD_ADD_N
            | MAT_MUL_ADD_N
    )
}

/// Whether the outputs of an operation are certainly not the memory of its inputs.
///
/// A kernel may pass its input on as its output, or a part of it, as `Identity`, `Reshape` and
/// `Split` do. Then the output is a variable's memory if the input is. Operations that are not
/// listed are taken to do that. Kernels that reuse the memory of an input nobody else holds do not
/// count: a variable holds its memory.
#[must_use]
pub fn has_memory_of_its_own(op: &str) -> bool {
    is_gradient(op)
        || matches!(
            op,
            "Add"
                | "AddV2"
                | "BiasAdd"
                | "BiasAddGrad"
                | "ConcatV2"
                | "GRUBlockCell"
                | "GatherV2"
                | "LSTMBlockCell"
                | "MatMul"
                | "Maximum"
                | "Minimum"
                | "Mul"
                | "Neg"
                | "Relu"
                | "Sigmoid"
                | "SigmoidGrad"
                | "Square"
                | "Sub"
                | "Tanh"
                | "TanhGrad"
                | "ZerosLike"
                | "_FusedMatMul"
                | BIAS_ADD_GRAD_ADD_N
                | GRU_CELL_GRAD_C
                | GRU_CELL_GRAD_RU
                | GRU_LAYER
                | KERAS_GRU
                | KERAS_LSTM
                | HALF_GRU_CELL
                | LSTM_LAYER
                | LSTM_CELL
                | LSTM_CELL_GRAD
                | MAT_MUL_ADD_N
                | MAT_MUL_SLICE
        )
}

/// Whether an operation writes into the memory of an input that is not a variable. No rewrite is
/// made in a graph with such an operation.
#[must_use]
pub fn writes_its_input(op: &str) -> bool {
    matches!(
        op,
        "InplaceAdd"
            | "InplaceSub"
            | "InplaceUpdate"
            | "AliasInplaceAdd"
            | "AliasInplaceSub"
            | "AliasInplaceUpdate"
            | "_ParallelConcatUpdate"
    )
}

/// Whether only one output of an operation has a value, which its second input chooses.
#[must_use]
pub fn is_switch(op: &str) -> bool {
    matches!(op, "Switch" | "RefSwitch" | "_SwitchN")
}

/// Whether a node runs only if all its inputs have a value, and in the same round of the same loop
/// as they. Where such a node has a value, everything before it has.
#[must_use]
pub fn needs_all_inputs(op: &str) -> bool {
    !matches!(
        op,
        "Merge"
            | "RefMerge"
            | "_XlaMerge"
            | "ControlTrigger"
            | "Enter"
            | "RefEnter"
            | "Exit"
            | "RefExit"
            | "NextIteration"
            | "RefNextIteration"
            | "_Recv"
            | "_HostRecv"
            | "Recv"
            | "HostRecv"
    )
}
