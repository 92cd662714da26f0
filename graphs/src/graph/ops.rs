//! What rewrites know of operations: a row for each.

use std::collections::HashMap;
use std::sync::LazyLock;

use blockcell_kernels::ops::{self, Op};

// The names of operations that rewrites put into graphs or look for, as patterns.
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $op:ident;)+) => {
        $($(#[$doc])* pub const $name: &str = ops::$op.name;)+
    };
}

names! {
    /// The sum of products in place of `AddN`.
    MAT_MUL_ADD_N = MAT_MUL_ADD_N;
    /// The product with its slices in place of `MatMul` and `Slice`.
    MAT_MUL_SLICE = MAT_MUL_SLICE;
    /// The sum over rows in place of `BiasAddGrad` and `AddN`.
    BIAS_ADD_GRAD_ADD_N = BIAS_ADD_GRAD_ADD_N;
    /// The forward step of a plain LSTM cell.
    LSTM_CELL = UNFUSED_LSTM_CELL;
    /// Its gradient.
    LSTM_CELL_GRAD = UNFUSED_LSTM_CELL_GRAD;
    /// The forward step of TensorFlow's LSTM cell.
    LSTM_BLOCK_CELL = LSTM_BLOCK_CELL;
    /// The forward step of a GRU cell, which is TensorFlow's own operation. It has no half: see [`HALF_GRU_CELL`].
    GRU_CELL = GRU_BLOCK_CELL;
    /// The forward step of a plain GRU cell in half.
    HALF_GRU_CELL = UNFUSED_GRU_CELL;
    /// The gradient of a plain GRU cell, down to the candidate.
    GRU_CELL_GRAD_C = UNFUSED_GRU_CELL_GRAD_C;
    /// The rest of it.
    GRU_CELL_GRAD_RU = UNFUSED_GRU_CELL_GRAD_RU;
    /// The forward step of an LSTM cell with layer normalization.
    NORMALIZED_LSTM_CELL = NORMALIZED_LSTM_CELL;
    /// A normalization alone.
    LAYER_NORM = LAYER_NORM;
    /// Its gradient.
    LAYER_NORM_GRAD = LAYER_NORM_GRAD;
    /// A loop around such a cell.
    NORMALIZED_LSTM_LAYER = NORMALIZED_LSTM_LAYER;
    /// A loop around a plain LSTM cell.
    LSTM_LAYER = LSTM_LAYER;
    /// The same of a GRU cell.
    GRU_LAYER = GRU_LAYER;
    /// The loop of an LSTM layer of Keras.
    KERAS_LSTM = KERAS_LSTM;
    /// The same of a GRU layer.
    KERAS_GRU = KERAS_GRU;
}

/// What is known of an operation.
#[derive(Debug)]
struct Row {
    name: &'static str,
    /// How many inputs patterns read by number. TensorFlow makes no node with fewer; a program that describes a graph
    /// might.
    inputs: usize,
    /// The attributes that patterns read, beside [`CLAIMS`].
    attributes: &'static [&'static str],
    /// The declaration of an operation that has kernels. It has the inputs and attributes, then.
    declared: Option<&'static Op>,
    /// What it is: a sum of the constants below.
    is: u16,
}

/// It does nothing but compute its outputs, so that it is not missed where nobody reads them. Only those that rewrites
/// take consumers from are marked.
pub const COMPUTES: u16 = 1;
/// Its outputs are certainly not the memory of its inputs.
///
/// A kernel may pass its input on as its output, or a part of it, as `Identity`, `Reshape` and `Split` do. Then the
/// output is a variable's memory if the input is. Operations that are not marked are taken to do that. Kernels that
/// reuse the memory of an input nobody else holds do not count: a variable holds its memory.
pub const OWNS: u16 = 2;
/// It is the gradient of a cell.
pub const GRADIENT: u16 = 4;
/// Rewrites put it into graphs.
pub const NEW: u16 = 8;
/// It has a state, and does not wait for anything but its inputs.
pub const PROMPT: u16 = 16;
/// Only one of its outputs has a value, which its second input chooses.
pub const SWITCH: u16 = 32;
/// It runs without a value for some of its inputs, or in another round of a loop, or another loop, than they. Where
/// any other node has a value, everything before it has.
pub const APART: u16 = 64;
/// It writes into the memory of an input that is not a variable. No rewrite is made in a graph with such an operation.
pub const WRITES: u16 = 128;
/// It is the step of a cell that loops and sequences without a loop may be made of.
pub const STEP: u16 = 256;

const fn row(
    name: &'static str,
    inputs: usize,
    attributes: &'static [&'static str],
    is: u16,
) -> Row {
    Row { name, inputs, attributes, declared: None, is }
}

const fn declared(op: &'static Op, is: u16) -> Row {
    Row { declared: Some(op), ..row(op.name, 0, NONE, is) }
}

/// Attributes by which other compilers and kernels claim a node. They are read of every operation that has a row.
pub const CLAIMS: [&str; 6] = [
    "_XlaCompile",
    "_XlaCluster",
    "_xla_compile_id",
    "_XlaMustCompile",
    "_tpu_replicate",
    "_kernel",
];

const NONE: &[&str] = &[];
/// The type of what the node computes.
const T: &[&str] = &["T"];
const OF_SLICE: &[&str] =
    &["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"];

#[rustfmt::skip]
static TABLE: &[Row] = &[
    row("Add", 2, T, COMPUTES | OWNS),
    row("AddN", 1, T, COMPUTES),
    row("AddV2", 2, T, COMPUTES | OWNS),
    row("AliasInplaceAdd", 0, NONE, WRITES),
    row("AliasInplaceSub", 0, NONE, WRITES),
    row("AliasInplaceUpdate", 0, NONE, WRITES),
    row("Assert", 0, NONE, PROMPT),
    row("BiasAdd", 2, &["T", "data_format"], COMPUTES | OWNS),
    row("BiasAddGrad", 1, &["T", "data_format"], COMPUTES | OWNS),
    row("BroadcastGradientArgs", 2, NONE, COMPUTES),
    row("BroadcastTo", 2, T, COMPUTES),
    row("Cast", 1, NONE, COMPUTES),
    row("ConcatV2", 3, T, COMPUTES | OWNS),
    row("Const", 0, &["value"], COMPUTES),
    row("ControlTrigger", 0, NONE, APART),
    row("CudnnRNN", 0, NONE, NEW),
    row("CudnnRNNBackprop", 0, NONE, NEW),
    row("CudnnRNNBackpropV3", 0, NONE, NEW),
    row("CudnnRNNV3", 0, NONE, NEW),
    row("DynamicStitch", 0, NONE, COMPUTES),
    row("EmptyTensorList", 2, NONE, COMPUTES),
    row("Enter", 1, &["frame_name", "is_constant"], COMPUTES | APART),
    row("Exit", 1, NONE, APART),
    row("ExpandDims", 2, NONE, 0),
    row("Fill", 2, T, COMPUTES),
    row("FloorDiv", 2, NONE, COMPUTES),
    row("GatherV2", 0, NONE, OWNS),
    row("Greater", 2, NONE, 0),
    row("GreaterEqual", 2, T, COMPUTES),
    row("HostRecv", 0, NONE, APART),
    row("Identity", 1, T, COMPUTES),
    row("InplaceAdd", 0, NONE, WRITES),
    row("InplaceSub", 0, NONE, WRITES),
    row("InplaceUpdate", 0, NONE, WRITES),
    row("IteratorGetNext", 0, NONE, PROMPT),
    row("IteratorV2", 0, NONE, PROMPT),
    row("Less", 2, NONE, 0),
    row("LessEqual", 2, T, COMPUTES),
    row("LogicalAnd", 2, NONE, 0),
    row("LoopCond", 1, NONE, 0),
    row("MatMul", 2, &["T", "transpose_a", "transpose_b"], COMPUTES | OWNS),
    row("Maximum", 2, T, COMPUTES | OWNS),
    row("Mean", 2, &["T", "keep_dims"], COMPUTES | OWNS),
    row("Merge", 0, NONE, APART),
    row("Minimum", 2, T, COMPUTES | OWNS),
    row("Mul", 2, T, COMPUTES | OWNS),
    row("Neg", 1, T, COMPUTES | OWNS),
    row("NextIteration", 1, NONE, APART),
    row("NoOp", 0, NONE, 0),
    row("OneShotIterator", 0, NONE, PROMPT),
    row("Pack", 1, &["T", "axis"], 0),
    row("Placeholder", 0, &["shape"], 0),
    row("Print", 0, NONE, PROMPT),
    row("PrintV2", 0, NONE, PROMPT),
    row("Prod", 2, NONE, COMPUTES),
    row("Range", 0, NONE, 0),
    row("RealDiv", 2, T, COMPUTES | OWNS),
    row("ReadVariableOp", 1, NONE, PROMPT),
    row("Recv", 0, NONE, APART),
    row("RefEnter", 1, NONE, APART),
    row("RefExit", 1, NONE, APART),
    row("RefMerge", 0, NONE, APART),
    row("RefNextIteration", 1, NONE, APART),
    row("RefSwitch", 2, NONE, SWITCH),
    row("Relu", 1, T, COMPUTES | OWNS),
    row("Relu6", 1, T, COMPUTES | OWNS),
    row("ReluGrad", 2, T, COMPUTES | OWNS),
    row("Reshape", 2, T, COMPUTES),
    row("Rsqrt", 1, T, COMPUTES | OWNS),
    row("RsqrtGrad", 2, T, COMPUTES | OWNS),
    row("Select", 3, T, COMPUTES),
    row("SelectV2", 3, T, COMPUTES),
    row("Shape", 1, T, COMPUTES),
    row("Sigmoid", 1, T, COMPUTES | OWNS),
    row("SigmoidGrad", 2, T, COMPUTES | OWNS),
    row("Slice", 3, T, COMPUTES),
    row("Snapshot", 1, T, COMPUTES),
    row("Split", 2, &["T", "num_split"], COMPUTES),
    row("SplitV", 0, NONE, 0),
    row("Square", 0, NONE, OWNS),
    row("Squeeze", 1, NONE, 0),
    row("SquaredDifference", 2, T, COMPUTES | OWNS),
    row("StackPopV2", 1, NONE, 0),
    row("StackPushV2", 2, NONE, 0),
    row("StopGradient", 1, T, COMPUTES),
    row("StridedSlice", 4, OF_SLICE, 0),
    row("Sub", 2, T, COMPUTES | OWNS),
    row("Sum", 2, &["T", "keep_dims"], COMPUTES),
    row("Switch", 2, NONE, SWITCH),
    row("Tanh", 1, T, COMPUTES | OWNS),
    row("TanhGrad", 2, T, COMPUTES | OWNS),
    row("TensorArrayGatherV3", 3, &["element_shape"], 0),
    row("TensorArrayReadV3", 3, NONE, 0),
    row("TensorArrayScatterV3", 4, NONE, 0),
    row("TensorArraySizeV3", 2, NONE, 0),
    row("TensorArrayV3", 1, &["dynamic_size", "element_shape"], 0),
    row("TensorArrayWriteV3", 4, NONE, 0),
    row("TensorListFromTensor", 2, NONE, 0),
    row("TensorListGetItem", 3, NONE, 0),
    row("TensorListPopBack", 2, NONE, 0),
    row("TensorListPushBack", 2, NONE, 0),
    row("TensorListReserve", 2, NONE, 0),
    row("TensorListSetItem", 3, &["resize_if_index_out_of_bounds"], 0),
    row("TensorListStack", 2, &["num_elements"], 0),
    row("Tile", 2, T, COMPUTES),
    row("Unpack", 1, &["axis", "num"], 0),
    row("VarHandleOp", 0, &["shape"], PROMPT),
    row("Variable", 0, &["shape", "shared_name"], PROMPT),
    row("VariableShape", 0, NONE, PROMPT),
    row("VariableV2", 0, &["shape", "shared_name"], PROMPT),
    row("ZerosLike", 1, T, COMPUTES | OWNS),
    row("_Arg", 0, &["_handle_shapes", "_output_shapes"], PROMPT),
    row("_FusedMatMul", 2, &["T", "transpose_a", "transpose_b", "fused_ops"], COMPUTES | OWNS),
    row("_MklLayerNorm", 3, &["T", "epsilon"], COMPUTES | OWNS),
    row("_HostRecv", 0, NONE, APART),
    row("_ParallelConcatUpdate", 0, NONE, WRITES),
    row("_Recv", 0, NONE, APART),
    row("_Retval", 0, NONE, PROMPT),
    row("_SwitchN", 2, NONE, SWITCH),
    row("_XlaMerge", 0, NONE, APART),
    declared(&ops::BIAS_ADD_GRAD_ADD_N, COMPUTES | OWNS | NEW),
    declared(&ops::GRU_BLOCK_CELL, OWNS | NEW | STEP),
    declared(&ops::GRU_BLOCK_CELL_GRAD, OWNS | GRADIENT),
    declared(&ops::GRU_LAYER, OWNS | NEW),
    declared(&ops::KERAS_GRU, OWNS | NEW),
    declared(&ops::KERAS_LSTM, OWNS | NEW),
    declared(&ops::LAYER_NORM, OWNS | NEW),
    declared(&ops::LAYER_NORM_GRAD, OWNS | NEW),
    declared(&ops::LSTM_BLOCK_CELL, OWNS | STEP),
    declared(&ops::LSTM_BLOCK_CELL_GRAD, OWNS | GRADIENT),
    declared(&ops::LSTM_LAYER, OWNS | NEW),
    declared(&ops::MAT_MUL_ADD_N, COMPUTES | OWNS | NEW),
    declared(&ops::MAT_MUL_SLICE, OWNS | NEW),
    declared(&ops::NORMALIZED_LSTM_CELL, OWNS | NEW | STEP),
    declared(&ops::NORMALIZED_LSTM_LAYER, OWNS | NEW),
    declared(&ops::UNFUSED_GRU_CELL, OWNS | NEW | STEP),
    declared(&ops::UNFUSED_GRU_CELL_GRAD_C, OWNS | GRADIENT | NEW),
    declared(&ops::UNFUSED_GRU_CELL_GRAD_RU, OWNS | GRADIENT | NEW),
    declared(&ops::UNFUSED_LSTM_CELL, OWNS | NEW | STEP),
    declared(&ops::UNFUSED_LSTM_CELL_GRAD, OWNS | GRADIENT | NEW),
];

static ROWS: LazyLock<HashMap<&str, &Row>> =
    LazyLock::new(|| TABLE.iter().map(|row| (row.name, row)).collect());

fn find(op: &str) -> Option<&'static Row> {
    ROWS.get(op).copied()
}

/// Whether an operation is one of these.
#[must_use]
pub fn is(op: &str, what: u16) -> bool {
    find(op).is_some_and(|row| row.is & what != 0)
}

/// The operations that rewrites put into graphs.
pub fn replacements() -> impl Iterator<Item = &'static str> {
    TABLE.iter().filter(|row| row.is & NEW != 0).map(|row| row.name)
}

/// Whether rewrites read attributes of this operation's nodes. Others come without.
#[must_use]
pub fn has_attributes(op: &str) -> bool {
    find(op).is_some()
}

/// Whether rewrites read this attribute of this operation's nodes. A graph's description has these and no others.
#[must_use]
pub fn reads(op: &str, attribute: &str) -> bool {
    find(op).is_some_and(|row| {
        let is_own =
            |op: &Op| attribute == "T" || op.attributes.iter().any(|known| known.name == attribute);
        row.attributes.contains(&attribute)
            || row.declared.is_some_and(is_own)
            || CLAIMS.contains(&attribute)
    })
}

/// The fewest inputs that an operation takes. 0 for those whose inputs nobody reads by number.
pub(crate) fn fewest_inputs(op: &str) -> usize {
    find(op).map_or(0, |row| row.declared.map_or(row.inputs, Op::fewest_inputs))
}

/// Whether graphs with this operation are worth a look at all. Others need not be described.
#[must_use]
pub fn starts_rewrites(op: &str) -> bool {
    op == "Split" || is(op, GRADIENT | STEP)
}

/// Whether a node of an operation may wait for something that happens elsewhere, though its inputs have
/// values: another process, another step, or another part of the graph. Operations without a state do
/// not, but for Python functions.
#[must_use]
pub fn may_wait(op: &str, is_stateful: bool) -> bool {
    let families = [
        "Assign",
        "Random",
        "Resource",
        "Stack",
        "StatefulStandardNormal",
        "TensorArray",
        "TensorList",
    ];
    let is_prompt = is(op, PROMPT) || families.iter().any(|prefix| op.starts_with(prefix));
    op.contains("PyFunc") || (is_stateful && !is_prompt)
}
