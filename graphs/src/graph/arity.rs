//! How many inputs operations take.
//!
//! Patterns read the inputs of a node by number, once they know its operation. TensorFlow makes no node with
//! fewer than its operation takes; a program that describes a graph might. So this is looked at once, before
//! any pattern.

use blockcell_kernels::ops::Op;

use super::node::Node;
use super::ops;

/// Whether a node has the inputs that patterns read by number.
pub(crate) fn is_complete(node: &Node) -> bool {
    node.inputs.len() >= fewest_inputs(&node.op)
}

/// The fewest inputs that an operation takes. 0 for those whose inputs nobody reads by number.
fn fewest_inputs(op: &str) -> usize {
    if let Some(op) = Op::by_name(op) {
        return op.fewest_inputs();
    }
    match op {
        "AddN" | "BiasAddGrad" | "Enter" | "Exit" | "Identity" | "LoopCond" | "Neg"
        | "NextIteration" | "Pack" | "ReadVariableOp" | "RefEnter" | "RefExit"
        | "RefNextIteration" | "Shape" | "Sigmoid" | "Snapshot" | "StackPopV2" | "Tanh"
        | "TensorArrayV3" | "Unpack" | "ZerosLike" => 1,
        "Add"
        | "AddV2"
        | "BiasAdd"
        | "BroadcastGradientArgs"
        | "EmptyTensorList"
        | "Fill"
        | "Greater"
        | "GreaterEqual"
        | "Less"
        | "LessEqual"
        | "LogicalAnd"
        | "MatMul"
        | "Maximum"
        | "Minimum"
        | "Mul"
        | "RefSwitch"
        | "Reshape"
        | "SigmoidGrad"
        | "Split"
        | "StackPushV2"
        | "Sub"
        | "Sum"
        | "Switch"
        | "TanhGrad"
        | "TensorArraySizeV3"
        | "TensorListFromTensor"
        | "TensorListPopBack"
        | "TensorListPushBack"
        | "TensorListReserve"
        | "TensorListStack"
        | "_FusedMatMul"
        | "_SwitchN"
        | ops::MAT_MUL_SLICE => 2,
        "ConcatV2"
        | "Select"
        | "SelectV2"
        | "Slice"
        | "TensorArrayGatherV3"
        | "TensorArrayReadV3"
        | "TensorListGetItem"
        | "TensorListSetItem" => 3,
        "StridedSlice"
        | "TensorArrayScatterV3"
        | "TensorArrayWriteV3"
        | ops::GRU_CELL_GRAD_C
        | ops::GRU_CELL_GRAD_RU
        | ops::LSTM_CELL
        | ops::LSTM_CELL_GRAD => 4,
        _ => 0,
    }
}
