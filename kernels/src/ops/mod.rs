//! The declaration of every operation: its tensors, their shapes and the structs that hold them.
//!
//! TensorFlow's shim asks [`Op::check`] for the sizes before it allocates outputs, and the Rust
//! API asks the same table. Names and order of tensors are those of `tf.raw_ops`.

// Its macros are in scope from here on.
#[macro_use]
mod declare;

pub(crate) mod block_gru;
pub(crate) mod block_lstm;
mod bound;
mod check;
mod cudnn;
pub(crate) mod gru;
mod help;
mod lists;
pub(crate) mod loops;
pub(crate) mod lstm;
pub(crate) mod lstm_by_row;
pub(crate) mod normalized;
pub(crate) mod partial;
pub(crate) mod products;
mod table;
pub(crate) mod unfused;
pub(crate) mod views;

pub use block_gru::{BLOCK_GRU, BLOCK_GRU_GRAD};
pub use block_lstm::{BLOCK_LSTM, BLOCK_LSTM_GRAD, BLOCK_LSTM_GRAD_V2, BLOCK_LSTM_V2};
pub use cudnn::CUDNN;
pub use gru::{GRU_BLOCK_CELL, GRU_BLOCK_CELL_GRAD};
pub use lists::{Inferred, KnownSizes, Lengths, Lists};
pub use loops::{GRU_LAYER, KERAS_GRU, KERAS_LSTM, LSTM_LAYER};
pub use lstm::{LSTM_BLOCK_CELL, LSTM_BLOCK_CELL_GRAD};
pub use lstm_by_row::{LSTM, LSTM_GRAD};
pub use normalized::{LAYER_NORM, LAYER_NORM_GRAD, NORMALIZED_LSTM_CELL, NORMALIZED_LSTM_LAYER};
pub use partial::PartialShape;
pub use products::{BIAS_ADD_GRAD_ADD_N, MAT_MUL_ADD_N, MAT_MUL_SLICE};
pub(crate) use table::Word;
pub use table::{Attribute, DataType, Dim, Elements, Keeps, Op, Read, Shape, Sizes, Tensor};
pub use unfused::{
    UNFUSED_GRU_CELL, UNFUSED_GRU_CELL_GRAD_C, UNFUSED_GRU_CELL_GRAD_RU, UNFUSED_LSTM_CELL,
    UNFUSED_LSTM_CELL_GRAD,
};

/// The operations on single cells and on sequences, which have no lists.
pub static BLOCK: [&Op; 12] = [
    &GRU_BLOCK_CELL,
    &GRU_BLOCK_CELL_GRAD,
    &LSTM_BLOCK_CELL,
    &LSTM_BLOCK_CELL_GRAD,
    &BLOCK_LSTM,
    &BLOCK_LSTM_V2,
    &BLOCK_LSTM_GRAD,
    &BLOCK_LSTM_GRAD_V2,
    &BLOCK_GRU,
    &BLOCK_GRU_GRAD,
    &LSTM,
    &LSTM_GRAD,
];

/// The operations that this library puts into graphs.
pub static GRAPH: [&Op; 16] = [
    &MAT_MUL_ADD_N,
    &MAT_MUL_SLICE,
    &BIAS_ADD_GRAD_ADD_N,
    &UNFUSED_LSTM_CELL,
    &UNFUSED_LSTM_CELL_GRAD,
    &NORMALIZED_LSTM_CELL,
    &LAYER_NORM,
    &LAYER_NORM_GRAD,
    &UNFUSED_GRU_CELL,
    &UNFUSED_GRU_CELL_GRAD_C,
    &UNFUSED_GRU_CELL_GRAD_RU,
    &LSTM_LAYER,
    &NORMALIZED_LSTM_LAYER,
    &GRU_LAYER,
    &KERAS_LSTM,
    &KERAS_GRU,
];

/// `BlockcellInfo`: tells about the library.
pub static INFO: Op = Op {
    name: "BlockcellInfo",
    inputs: &[],
    in_place: &[],
    outputs: &[Tensor {
        name: "info",
        elements: Elements::Text,
        doc: &[
            " A JSON object: `version` of the library; `tensorflow_built_for` and `tensorflow_running`, the latter null",
            " if unknown; `isa`, the instruction set in use (\"avx512_amx\", \"avx512_bf16\", \"avx512_vnni\", \"avx512\",",
            " \"avx2_vnni\", \"avx2\" or \"portable\"); `float32_matmul_precision`, the level of precision that is set (\"highest\", \"high\" or",
            " \"medium\"), and `float32_matmul_runs`, the level that the processor supports; `weights`, the type in which",
            " constant weights are packed (\"float32\", \"int8\" or \"int8_except_x\"); `ops`, the operations that have a",
            " kernel under the label \"blockcell\"; `override`, how unlabelled nodes select these kernels (\"priority\",",
            " \"graph_pass\" or \"off\"); `taken_over`, the operations whose unlabelled nodes do; `cudnn`, whether the",
            " operations CudnnRNN have kernels (\"on\" or \"off\"); `rewrite`, whether graphs are rewritten (\"on\" or",
            " \"off\"); `rewritten`, an object with the number of nodes that the graph passes have inserted in this process,",
            " by op.",
        ],
        ..Tensor::T
    }],
    attributes: &[],
    types: &[],
    is_stock: false,
    is_stateful: true,
    doc: &[" Describes the loaded libblockcell."],
};

/// Every operation that has kernels.
pub fn all() -> impl Iterator<Item = &'static Op> {
    BLOCK.into_iter().chain(GRAPH).chain(&CUDNN).chain([&INFO])
}

/// Where the tensors of a call come from that are known by their order alone, as they are outside of
/// Rust. Each struct of views has a function `from_source` that takes its fields from one.
pub trait Source<T> {
    /// The next tensor, as a field of such a struct.
    ///
    /// # Panics
    ///
    /// It may panic if there is none left, or if the tensor is not a `T`.
    fn next(&mut self) -> T;
}

impl Op {
    /// The operation TensorFlow calls `name`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Op> {
        all().find(|op| op.name == name)
    }
}

#[cfg(test)]
mod tests;
