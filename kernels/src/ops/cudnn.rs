//! TensorFlow's operations for cuDNN. Their shapes depend on attributes: see [`crate::cudnn_rnn`].

use super::DataType::{Double, Float, Half};
use super::{Attribute, Elements, Op, Shape, Tensor};

/// Tensors: single ones of type T, `name: Elements`, or lists `name * attribute`.
macro_rules! all {
    ($($name:ident $(: $elements:ident)? $(* $list:ident)?),*) => {
        &[$(Tensor {
            name: stringify!($name),
            shape: Shape::Checked,
            $(elements: Elements::$elements,)?
            $(list: Some(stringify!($list)),)?
            ..Tensor::T
        }),*]
    };
}

/// An operation with the tensors and attributes that are given, and those of another one.
macro_rules! cudnn {
    ($name:ident: $like:ident $((inputs $($inputs:tt)*))? $((outputs $($outputs:tt)*))? $((attributes $($attributes:tt)*))?) => {
        Op {
            name: stringify!($name),
            $(inputs: all!($($inputs)*),)?
            $(outputs: all!($($outputs)*),)?
            $(attributes: &[$($attributes)*],)?
            ..$like
        }
    };
}

const fn attribute(name: &'static str, kind: &'static str) -> Attribute {
    Attribute { name, kind, doc: &[] }
}

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
const SIZE_TYPE: Attribute = attribute("S", "{int32, int64}");
const NUM_PARAMS: Attribute = attribute("num_params", "int >= 1");
const WEIGHTS: Attribute = attribute("num_params_weights", "int >= 1");
const BIASES: Attribute = attribute("num_params_biases", "int >= 1");

/// What all of them have in common.
const OP: Op = Op {
    name: "",
    inputs: &[],
    in_place: &[],
    outputs: &[],
    attributes: &[RNN_MODE, INPUT_MODE, DIRECTION, DROPOUT, SEED, SEED2],
    types: &[Half, Float],
    is_stock: true,
    is_stateful: true,
    doc: &[],
};

/// The backward passes work on `reserve_space` in place.
const BACKPROP: Op = Op {
    in_place: &["reserve_space"],
    outputs: all!(input_backprop, input_h_backprop, input_c_backprop, params_backprop),
    ..OP
};

/// The conversions of parameters copy numbers of any type.
const CONVERSION: Op = Op {
    inputs: all!(num_layers: Int32, num_units: Int32, input_size: Int32, params),
    outputs: all!(params),
    types: &[Half, Float, Double],
    is_stateful: false,
    ..OP
};

/// TensorFlow's operations for cuDNN, of which it has kernels for GPUs alone.
pub static CUDNN: [Op; 11] = [
    cudnn! { CudnnRNN: OP
        (inputs input, input_h, input_c, params)
        (outputs output, output_h, output_c, reserve_space)
        (attributes RNN_MODE, INPUT_MODE, DIRECTION, DROPOUT, SEED, SEED2, IS_TRAINING)
    },
    cudnn! { CudnnRNNV2: OP
        (inputs input, input_h, input_c, params)
        (outputs output, output_h, output_c, reserve_space, host_reserved: Int8)
        (attributes RNN_MODE, INPUT_MODE, DIRECTION, DROPOUT, SEED, SEED2, IS_TRAINING)
    },
    cudnn! { CudnnRNNV3: OP
        (inputs input, input_h, input_c, params, sequence_lengths: Int32)
        (outputs output, output_h, output_c, reserve_space, host_reserved: Int8)
        (attributes RNN_MODE, INPUT_MODE, DIRECTION, DROPOUT, SEED, SEED2, NUM_PROJ, IS_TRAINING, TIME_MAJOR)
    },
    cudnn! { CudnnRNNBackprop: BACKPROP
        (inputs input, input_h, input_c, params, output, output_h, output_c, output_backprop, output_h_backprop,
            output_c_backprop, reserve_space)
    },
    cudnn! { CudnnRNNBackpropV2: BACKPROP
        (inputs input, input_h, input_c, params, output, output_h, output_c, output_backprop, output_h_backprop,
            output_c_backprop, reserve_space, host_reserved: Int8)
    },
    cudnn! { CudnnRNNBackpropV3: BACKPROP
        (inputs input, input_h, input_c, params, sequence_lengths: Int32, output, output_h, output_c,
            output_backprop, output_h_backprop, output_c_backprop, reserve_space, host_reserved: Int8)
        (attributes RNN_MODE, INPUT_MODE, DIRECTION, DROPOUT, SEED, SEED2, NUM_PROJ, TIME_MAJOR)
    },
    cudnn! { CudnnRNNParamsSize: CONVERSION
        (inputs num_layers: Int32, num_units: Int32, input_size: Int32)
        (outputs params_size: S)
        (attributes SIZE_TYPE, RNN_MODE, INPUT_MODE, DIRECTION, DROPOUT, SEED, SEED2, NUM_PROJ)
    },
    cudnn! { CudnnRNNParamsToCanonical: CONVERSION
        (outputs weights * num_params, biases * num_params)
        (attributes NUM_PARAMS, RNN_MODE, INPUT_MODE, DIRECTION, DROPOUT, SEED, SEED2)
    },
    cudnn! { CudnnRNNParamsToCanonicalV2: CONVERSION
        (outputs weights * num_params_weights, biases * num_params_biases)
        (attributes WEIGHTS, BIASES, RNN_MODE, INPUT_MODE, DIRECTION, DROPOUT, SEED, SEED2, NUM_PROJ)
    },
    cudnn! { CudnnRNNCanonicalToParams: CONVERSION
        (inputs num_layers: Int32, num_units: Int32, input_size: Int32, weights * num_params, biases * num_params)
        (attributes NUM_PARAMS, RNN_MODE, INPUT_MODE, DIRECTION, DROPOUT, SEED, SEED2)
    },
    cudnn! { CudnnRNNCanonicalToParamsV2: CONVERSION
        (inputs num_layers: Int32, num_units: Int32, input_size: Int32, weights * num_params_weights,
            biases * num_params_biases)
        (attributes WEIGHTS, BIASES, RNN_MODE, INPUT_MODE, DIRECTION, DROPOUT, SEED, SEED2, NUM_PROJ)
    },
];
