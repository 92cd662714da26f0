//! What rewrites know of operations.

use blockcell_kernels::ops::{self, GRU_BLOCK_CELL, GRU_BLOCK_CELL_GRAD, LSTM_BLOCK_CELL_GRAD};

/// The sum of products in place of `AddN`.
pub const MAT_MUL_ADD_N: &str = ops::MAT_MUL_ADD_N.name;
/// The product with its slices in place of `MatMul` and `Slice`.
pub const MAT_MUL_SLICE: &str = ops::MAT_MUL_SLICE.name;
/// The sum over rows in place of `BiasAddGrad` and `AddN`.
pub const BIAS_ADD_GRAD_ADD_N: &str = ops::BIAS_ADD_GRAD_ADD_N.name;
/// The forward step of a plain LSTM cell.
pub const LSTM_CELL: &str = ops::UNFUSED_LSTM_CELL.name;
/// Its gradient.
pub const LSTM_CELL_GRAD: &str = ops::UNFUSED_LSTM_CELL_GRAD.name;
/// The forward step of a plain GRU cell in half.
pub const HALF_GRU_CELL: &str = ops::UNFUSED_GRU_CELL.name;
/// The gradient of a plain GRU cell, down to the candidate.
pub const GRU_CELL_GRAD_C: &str = ops::UNFUSED_GRU_CELL_GRAD_C.name;
/// The rest of it.
pub const GRU_CELL_GRAD_RU: &str = ops::UNFUSED_GRU_CELL_GRAD_RU.name;
/// Loops around plain cells.
pub const LSTM_LAYER: &str = ops::LSTM_LAYER.name;
/// The same.
pub const GRU_LAYER: &str = ops::GRU_LAYER.name;
/// Loops of Keras's layers.
pub const KERAS_LSTM: &str = ops::KERAS_LSTM.name;
/// The same.
pub const KERAS_GRU: &str = ops::KERAS_GRU.name;

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

/// Whether graphs with this operation are worth a look at all. Others need not be described.
#[must_use]
pub fn starts_rewrites(op: &str) -> bool {
    op == "Split" || is_gradient(op)
}

/// Whether an operation is the gradient of a cell.
fn is_gradient(op: &str) -> bool {
    let stock = [&GRU_BLOCK_CELL_GRAD, &LSTM_BLOCK_CELL_GRAD].map(|op| op.name);
    matches!(op, LSTM_CELL_GRAD | GRU_CELL_GRAD_C | GRU_CELL_GRAD_RU) || stock.contains(&op)
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
