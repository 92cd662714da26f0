//! TensorFlow's operations for cuDNN. Their shapes depend on attributes: see [`crate::cudnn_rnn`].

use super::DataType::{Double, Float, Half};
use super::{Attribute, Elements, Op, Shape, Tensor};

const fn tensor(name: &'static str, elements: Elements) -> Tensor {
    Tensor { name, elements, shape: Shape::Checked, ..Tensor::T }
}

const fn of_type(name: &'static str) -> Tensor {
    tensor(name, Elements::T)
}

const fn list(name: &'static str, list: &'static str) -> Tensor {
    Tensor { list: Some(list), ..of_type(name) }
}

const fn attribute(name: &'static str, kind: &'static str) -> Attribute {
    Attribute { name, kind, doc: &[] }
}

const INPUT: Tensor = of_type("input");
const INPUT_H: Tensor = of_type("input_h");
const INPUT_C: Tensor = of_type("input_c");
const PARAMS: Tensor = of_type("params");
const SEQUENCE_LENGTHS: Tensor = tensor("sequence_lengths", Elements::Int32);
const OUTPUT: Tensor = of_type("output");
const OUTPUT_H: Tensor = of_type("output_h");
const OUTPUT_C: Tensor = of_type("output_c");
const OUTPUT_BACKPROP: Tensor = of_type("output_backprop");
const OUTPUT_H_BACKPROP: Tensor = of_type("output_h_backprop");
const OUTPUT_C_BACKPROP: Tensor = of_type("output_c_backprop");
const RESERVE_SPACE: Tensor = of_type("reserve_space");
const HOST_RESERVED: Tensor = tensor("host_reserved", Elements::Int8);
const NUM_LAYERS: Tensor = tensor("num_layers", Elements::Int32);
const NUM_UNITS: Tensor = tensor("num_units", Elements::Int32);
const INPUT_SIZE: Tensor = tensor("input_size", Elements::Int32);

/// The gradients that every backward pass returns.
const BACKPROPS: &[Tensor] = &[
    of_type("input_backprop"),
    of_type("input_h_backprop"),
    of_type("input_c_backprop"),
    of_type("params_backprop"),
];

const RNN_MODE: Attribute =
    attribute("rnn_mode", "{'rnn_relu', 'rnn_tanh', 'lstm', 'gru'} = 'lstm'");
const INPUT_MODE: Attribute =
    attribute("input_mode", "{'linear_input', 'skip_input', 'auto_select'} = 'linear_input'");
const DIRECTION: Attribute =
    attribute("direction", "{'unidirectional', 'bidirectional'} = 'unidirectional'");
const DROPOUT: Attribute = attribute("dropout", "float = 0.0");
const SEED: Attribute = attribute("seed", "int = 0");
const SEED2: Attribute = attribute("seed2", "int = 0");
const NUM_PROJ: Attribute = attribute("num_proj", "int = 0");
const IS_TRAINING: Attribute = attribute("is_training", "bool = true");
const TIME_MAJOR: Attribute = attribute("time_major", "bool = true");
const NUM_PARAMS: Attribute = attribute("num_params", "int >= 1");
const NUM_PARAMS_WEIGHTS: Attribute = attribute("num_params_weights", "int >= 1");
const NUM_PARAMS_BIASES: Attribute = attribute("num_params_biases", "int >= 1");

const NETWORK: &[Attribute] = &[RNN_MODE, INPUT_MODE, DIRECTION, DROPOUT, SEED, SEED2];

/// One of them: what they have in common.
const OP: Op = Op {
    name: "",
    inputs: &[],
    in_place: &[],
    outputs: &[],
    attributes: NETWORK,
    types: &[Half, Float],
    is_stock: true,
    is_stateful: true,
    doc: &[],
};

const CONVERSION: Op = Op { types: &[Half, Float, Double], is_stateful: false, ..OP };

const FORWARD: Op = Op {
    inputs: &[INPUT, INPUT_H, INPUT_C, PARAMS],
    outputs: &[OUTPUT, OUTPUT_H, OUTPUT_C, RESERVE_SPACE],
    attributes: &[RNN_MODE, INPUT_MODE, DIRECTION, DROPOUT, SEED, SEED2, IS_TRAINING],
    ..OP
};

const FORWARD_V2: Op =
    Op { outputs: &[OUTPUT, OUTPUT_H, OUTPUT_C, RESERVE_SPACE, HOST_RESERVED], ..FORWARD };

const BACKPROP: Op = Op {
    inputs: &[
        INPUT,
        INPUT_H,
        INPUT_C,
        PARAMS,
        OUTPUT,
        OUTPUT_H,
        OUTPUT_C,
        OUTPUT_BACKPROP,
        OUTPUT_H_BACKPROP,
        OUTPUT_C_BACKPROP,
        RESERVE_SPACE,
    ],
    in_place: &["reserve_space"],
    outputs: BACKPROPS,
    ..OP
};

/// TensorFlow's operations for cuDNN. There are kernels for GPUs alone; of `CudnnRNNBackprop` and its versions,
/// `reserve_space` is worked on in place.
pub static CUDNN: [Op; 11] = [
    Op { name: "CudnnRNN", ..FORWARD },
    Op { name: "CudnnRNNV2", ..FORWARD_V2 },
    Op {
        name: "CudnnRNNV3",
        inputs: &[INPUT, INPUT_H, INPUT_C, PARAMS, SEQUENCE_LENGTHS],
        attributes: &[
            RNN_MODE,
            INPUT_MODE,
            DIRECTION,
            DROPOUT,
            SEED,
            SEED2,
            NUM_PROJ,
            IS_TRAINING,
            TIME_MAJOR,
        ],
        ..FORWARD_V2
    },
    Op { name: "CudnnRNNBackprop", ..BACKPROP },
    Op {
        name: "CudnnRNNBackpropV2",
        inputs: &[
            INPUT,
            INPUT_H,
            INPUT_C,
            PARAMS,
            OUTPUT,
            OUTPUT_H,
            OUTPUT_C,
            OUTPUT_BACKPROP,
            OUTPUT_H_BACKPROP,
            OUTPUT_C_BACKPROP,
            RESERVE_SPACE,
            HOST_RESERVED,
        ],
        ..BACKPROP
    },
    Op {
        name: "CudnnRNNBackpropV3",
        inputs: &[
            INPUT,
            INPUT_H,
            INPUT_C,
            PARAMS,
            SEQUENCE_LENGTHS,
            OUTPUT,
            OUTPUT_H,
            OUTPUT_C,
            OUTPUT_BACKPROP,
            OUTPUT_H_BACKPROP,
            OUTPUT_C_BACKPROP,
            RESERVE_SPACE,
            HOST_RESERVED,
        ],
        attributes: &[RNN_MODE, INPUT_MODE, DIRECTION, DROPOUT, SEED, SEED2, NUM_PROJ, TIME_MAJOR],
        ..BACKPROP
    },
    Op {
        name: "CudnnRNNParamsSize",
        inputs: &[NUM_LAYERS, NUM_UNITS, INPUT_SIZE],
        outputs: &[tensor("params_size", Elements::S)],
        attributes: &[
            attribute("S", "{int32, int64}"),
            RNN_MODE,
            INPUT_MODE,
            DIRECTION,
            DROPOUT,
            SEED,
            SEED2,
            NUM_PROJ,
        ],
        ..CONVERSION
    },
    Op {
        name: "CudnnRNNParamsToCanonical",
        inputs: &[NUM_LAYERS, NUM_UNITS, INPUT_SIZE, PARAMS],
        outputs: &[list("weights", "num_params"), list("biases", "num_params")],
        attributes: &[NUM_PARAMS, RNN_MODE, INPUT_MODE, DIRECTION, DROPOUT, SEED, SEED2],
        ..CONVERSION
    },
    Op {
        name: "CudnnRNNParamsToCanonicalV2",
        inputs: &[NUM_LAYERS, NUM_UNITS, INPUT_SIZE, PARAMS],
        outputs: &[list("weights", "num_params_weights"), list("biases", "num_params_biases")],
        attributes: CANONICAL_V2,
        ..CONVERSION
    },
    Op {
        name: "CudnnRNNCanonicalToParams",
        inputs: &[
            NUM_LAYERS,
            NUM_UNITS,
            INPUT_SIZE,
            list("weights", "num_params"),
            list("biases", "num_params"),
        ],
        outputs: &[PARAMS],
        attributes: &[NUM_PARAMS, RNN_MODE, INPUT_MODE, DIRECTION, DROPOUT, SEED, SEED2],
        ..CONVERSION
    },
    Op {
        name: "CudnnRNNCanonicalToParamsV2",
        inputs: &[
            NUM_LAYERS,
            NUM_UNITS,
            INPUT_SIZE,
            list("weights", "num_params_weights"),
            list("biases", "num_params_biases"),
        ],
        outputs: &[PARAMS],
        attributes: CANONICAL_V2,
        ..CONVERSION
    },
];

const CANONICAL_V2: &[Attribute] = &[
    NUM_PARAMS_WEIGHTS,
    NUM_PARAMS_BIASES,
    RNN_MODE,
    INPUT_MODE,
    DIRECTION,
    DROPOUT,
    SEED,
    SEED2,
    NUM_PROJ,
];
