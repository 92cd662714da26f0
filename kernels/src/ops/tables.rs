//! The tensors of every operation, in TensorFlow's order.

use super::DataType::{Float, Half};
use super::Dim::{self, Batch, Cell, Gates, Input, InputCell, Optional, Time};
use super::{Op, Tensor};

const fn tensor(name: &'static str, dims: &'static [Dim]) -> Tensor {
    Tensor { name, dims, is_steps: false }
}

/// An int64 tensor of numbers of time steps.
const fn steps(name: &'static str, dims: &'static [Dim]) -> Tensor {
    Tensor { name, dims, is_steps: true }
}

const WCI: Dim = Optional(0);
const WCF: Dim = Optional(1);
const WCO: Dim = Optional(2);
const B_HC: Dim = Optional(0);

/// `GRUBlockCell`: see [`crate::gru::block_cell`].
pub static GRU_BLOCK_CELL: Op = Op {
    name: "GRUBlockCell",
    inputs: &[
        tensor("x", &[Batch, Input]),
        tensor("h_prev", &[Batch, Cell]),
        tensor("w_ru", &[InputCell, Gates(2)]),
        tensor("w_c", &[InputCell, Cell]),
        tensor("b_ru", &[Gates(2)]),
        tensor("b_c", &[Cell]),
    ],
    in_place: &[],
    outputs: &[
        tensor("r", &[Batch, Cell]),
        tensor("u", &[Batch, Cell]),
        tensor("c", &[Batch, Cell]),
        tensor("h", &[Batch, Cell]),
    ],
    types: &[Float],
    is_stock: true,
};

/// `GRUBlockCellGrad`: see [`crate::gru::block_cell_grad`].
pub static GRU_BLOCK_CELL_GRAD: Op = Op {
    name: "GRUBlockCellGrad",
    inputs: &[
        tensor("x", &[Batch, Input]),
        tensor("h_prev", &[Batch, Cell]),
        tensor("w_ru", &[InputCell, Gates(2)]),
        tensor("w_c", &[InputCell, Cell]),
        tensor("b_ru", &[Gates(2)]),
        tensor("b_c", &[Cell]),
        tensor("r", &[Batch, Cell]),
        tensor("u", &[Batch, Cell]),
        tensor("c", &[Batch, Cell]),
        tensor("d_h", &[Batch, Cell]),
    ],
    in_place: &[],
    outputs: &[
        tensor("d_x", &[Batch, Input]),
        tensor("d_h_prev", &[Batch, Cell]),
        tensor("d_c_bar", &[Batch, Cell]),
        tensor("d_r_bar_u_bar", &[Batch, Gates(2)]),
    ],
    types: &[Float],
    is_stock: true,
};

/// `LSTMBlockCell`: see [`crate::lstm::block_cell`].
pub static LSTM_BLOCK_CELL: Op = Op {
    name: "LSTMBlockCell",
    inputs: &[
        tensor("x", &[Batch, Input]),
        tensor("cs_prev", &[Batch, Cell]),
        tensor("h_prev", &[Batch, Cell]),
        tensor("w", &[InputCell, Gates(4)]),
        tensor("wci", &[WCI]),
        tensor("wcf", &[WCF]),
        tensor("wco", &[WCO]),
        tensor("b", &[Gates(4)]),
    ],
    in_place: &[],
    outputs: &[
        tensor("i", &[Batch, Cell]),
        tensor("cs", &[Batch, Cell]),
        tensor("f", &[Batch, Cell]),
        tensor("o", &[Batch, Cell]),
        tensor("ci", &[Batch, Cell]),
        tensor("co", &[Batch, Cell]),
        tensor("h", &[Batch, Cell]),
    ],
    types: &[Float, Half],
    is_stock: true,
};

/// `LSTMBlockCellGrad`: see [`crate::lstm::block_cell_grad`].
pub static LSTM_BLOCK_CELL_GRAD: Op = Op {
    name: "LSTMBlockCellGrad",
    inputs: &[
        tensor("x", &[Batch, Input]),
        tensor("cs_prev", &[Batch, Cell]),
        tensor("h_prev", &[Batch, Cell]),
        tensor("w", &[InputCell, Gates(4)]),
        tensor("wci", &[WCI]),
        tensor("wcf", &[WCF]),
        tensor("wco", &[WCO]),
        tensor("b", &[Gates(4)]),
        tensor("i", &[Batch, Cell]),
        tensor("cs", &[Batch, Cell]),
        tensor("f", &[Batch, Cell]),
        tensor("o", &[Batch, Cell]),
        tensor("ci", &[Batch, Cell]),
        tensor("co", &[Batch, Cell]),
        tensor("cs_grad", &[Batch, Cell]),
        tensor("h_grad", &[Batch, Cell]),
    ],
    in_place: &[],
    outputs: &[
        tensor("cs_prev_grad", &[Batch, Cell]),
        tensor("dicfo", &[Batch, Gates(4)]),
        tensor("wci_grad", &[WCI]),
        tensor("wcf_grad", &[WCF]),
        tensor("wco_grad", &[WCO]),
    ],
    types: &[Float, Half],
    is_stock: true,
};

const BLOCK_LSTM_INPUTS: &[Tensor] = &[
    steps("seq_len_max", &[]),
    tensor("x", &[Time, Batch, Input]),
    tensor("cs_prev", &[Batch, Cell]),
    tensor("h_prev", &[Batch, Cell]),
    tensor("w", &[InputCell, Gates(4)]),
    tensor("wci", &[WCI]),
    tensor("wcf", &[WCF]),
    tensor("wco", &[WCO]),
    tensor("b", &[Gates(4)]),
];

const BLOCK_LSTM_OUTPUTS: &[Tensor] = &[
    tensor("i", &[Time, Batch, Cell]),
    tensor("cs", &[Time, Batch, Cell]),
    tensor("f", &[Time, Batch, Cell]),
    tensor("o", &[Time, Batch, Cell]),
    tensor("ci", &[Time, Batch, Cell]),
    tensor("co", &[Time, Batch, Cell]),
    tensor("h", &[Time, Batch, Cell]),
];

const BLOCK_LSTM_GRAD_INPUTS: &[Tensor] = &[
    steps("seq_len_max", &[]),
    tensor("x", &[Time, Batch, Input]),
    tensor("cs_prev", &[Batch, Cell]),
    tensor("h_prev", &[Batch, Cell]),
    tensor("w", &[InputCell, Gates(4)]),
    tensor("wci", &[WCI]),
    tensor("wcf", &[WCF]),
    tensor("wco", &[WCO]),
    tensor("b", &[Gates(4)]),
    tensor("i", &[Time, Batch, Cell]),
    tensor("cs", &[Time, Batch, Cell]),
    tensor("f", &[Time, Batch, Cell]),
    tensor("o", &[Time, Batch, Cell]),
    tensor("ci", &[Time, Batch, Cell]),
    tensor("co", &[Time, Batch, Cell]),
    tensor("h", &[Time, Batch, Cell]),
    tensor("cs_grad", &[Time, Batch, Cell]),
    tensor("h_grad", &[Time, Batch, Cell]),
];

const BLOCK_LSTM_GRAD_OUTPUTS: &[Tensor] = &[
    tensor("x_grad", &[Time, Batch, Input]),
    tensor("cs_prev_grad", &[Batch, Cell]),
    tensor("h_prev_grad", &[Batch, Cell]),
    tensor("w_grad", &[InputCell, Gates(4)]),
    tensor("wci_grad", &[WCI]),
    tensor("wcf_grad", &[WCF]),
    tensor("wco_grad", &[WCO]),
    tensor("b_grad", &[Gates(4)]),
];

const fn block_lstm(name: &'static str) -> Op {
    Op {
        name,
        inputs: BLOCK_LSTM_INPUTS,
        in_place: &[],
        outputs: BLOCK_LSTM_OUTPUTS,
        types: &[Float, Half],
        is_stock: true,
    }
}

const fn block_lstm_grad(name: &'static str) -> Op {
    Op {
        name,
        inputs: BLOCK_LSTM_GRAD_INPUTS,
        in_place: &["i", "f", "o", "ci"],
        outputs: BLOCK_LSTM_GRAD_OUTPUTS,
        types: &[Float, Half],
        is_stock: true,
    }
}

/// `BlockLSTM`: see [`crate::block_lstm::forward`].
pub static BLOCK_LSTM: Op = block_lstm("BlockLSTM");

/// `BlockLSTMV2`: see [`crate::block_lstm::forward`].
pub static BLOCK_LSTM_V2: Op = block_lstm("BlockLSTMV2");

/// `BlockLSTMGrad`: see [`crate::block_lstm::grad`].
pub static BLOCK_LSTM_GRAD: Op = block_lstm_grad("BlockLSTMGrad");

/// `BlockLSTMGradV2`: see [`crate::block_lstm::grad`].
pub static BLOCK_LSTM_GRAD_V2: Op = block_lstm_grad("BlockLSTMGradV2");

/// `BlockGRU`: see [`crate::block_gru::forward`].
pub static BLOCK_GRU: Op = Op {
    name: "BlockGRU",
    inputs: &[
        steps("sequence_length", &[Batch]),
        tensor("x", &[Time, Batch, Input]),
        tensor("h_prev", &[Batch, Cell]),
        tensor("w_ru", &[InputCell, Gates(2)]),
        tensor("w_c", &[InputCell, Cell]),
        tensor("b_ru", &[Gates(2)]),
        tensor("b_c", &[Cell]),
        tensor("b_hc", &[B_HC]),
    ],
    in_place: &[],
    outputs: &[
        tensor("r", &[Time, Batch, Cell]),
        tensor("u", &[Time, Batch, Cell]),
        tensor("c", &[Time, Batch, Cell]),
        tensor("hc", &[Time, Batch, Cell]),
        tensor("h", &[Time, Batch, Cell]),
        tensor("h_last", &[Batch, Cell]),
    ],
    types: &[Float, Half],
    is_stock: false,
};

/// `BlockGRUGrad`: see [`crate::block_gru::grad`].
pub static BLOCK_GRU_GRAD: Op = Op {
    name: "BlockGRUGrad",
    inputs: &[
        steps("sequence_length", &[Batch]),
        tensor("x", &[Time, Batch, Input]),
        tensor("h_prev", &[Batch, Cell]),
        tensor("w_ru", &[InputCell, Gates(2)]),
        tensor("w_c", &[InputCell, Cell]),
        tensor("b_ru", &[Gates(2)]),
        tensor("b_c", &[Cell]),
        tensor("b_hc", &[B_HC]),
        tensor("r", &[Time, Batch, Cell]),
        tensor("u", &[Time, Batch, Cell]),
        tensor("c", &[Time, Batch, Cell]),
        tensor("hc", &[Time, Batch, Cell]),
        tensor("h", &[Time, Batch, Cell]),
        tensor("h_grad", &[Time, Batch, Cell]),
        tensor("h_last_grad", &[Batch, Cell]),
    ],
    in_place: &["r", "u", "c", "hc"],
    outputs: &[
        tensor("x_grad", &[Time, Batch, Input]),
        tensor("h_prev_grad", &[Batch, Cell]),
        tensor("w_ru_grad", &[InputCell, Gates(2)]),
        tensor("w_c_grad", &[InputCell, Cell]),
        tensor("b_ru_grad", &[Gates(2)]),
        tensor("b_c_grad", &[Cell]),
        tensor("b_hc_grad", &[B_HC]),
    ],
    types: &[Float, Half],
    is_stock: false,
};

/// Every operation that has a kernel.
pub static ALL: [&Op; 10] = [
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
];
