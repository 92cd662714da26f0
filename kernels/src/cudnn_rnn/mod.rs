//! The networks of the operations `CudnnRNN`, `CudnnRNNV2` and `CudnnRNNV3`: layers of recurrent cells in one or two
//! directions, with all their parameters in one buffer.
//!
//! Each direction of a layer is a *pseudo-layer*: number `layer * directions + direction`. It reads the inputs of its
//! layer, which are the outputs of both directions of the previous layer, and has its own weights. The second
//! direction begins with the last step of each row of the batch.
//!
//! The equations of one step, with `W` and `R` the weights of the inputs and of the state, each with a bias, `S` the
//! logistic function and `*` the elementwise product (cuDNN's API reference, `cudnnRNNMode_t`):
//!
//! ```text
//! rnn_tanh, rnn_relu:   h' = act(W x + bW + R h + bR)
//! lstm:  i = S(Wi x + bWi + Ri h + bRi)       f, o the same      c~ = tanh(Wc x + bWc + Rc h + bRc)
//!        c' = f * c + i * c~                  h' = o * tanh(c')
//! gru:   r = S(Wr x + bWr + Rr h + bRr)       i the same
//!        n = tanh(Wn x + bWn + r * (Rn h + bRn))
//!        h' = (1 - i) * n + i * h
//! ```
//!
//! With a projection of an LSTM, `h'` is `P (o * tanh(c'))`. With `skip_input`, x replaces `W x` in the first layer.
//! [`Layout`] describes the buffer.
//!
//! Sequences run on the kernels of [`crate::block_lstm`] and [`crate::block_gru`], and one for simple networks, always
//! in `f32`.

mod backprop;
mod canonical;
mod cell;
mod check;
mod dropout;
mod forward;
mod layout;
mod memory;
mod prepared_inputs;
mod rows;

pub use backprop::{BackpropInputs, BackpropOutputs, backprop, backprop_scratch};
pub use canonical::{canonical_to_params, check_canonical, params_to_canonical};
pub use check::{BackpropShapes, Shapes};
pub use forward::{Outputs, forward, forward_scratch};
pub use layout::{Layout, Network, Region};
pub use prepared_inputs::Inputs;

use crate::Error;

pub(crate) use backprop::compute as compute_backprop;
pub(crate) use forward::compute as compute_forward;

/// The kind of cells: the attribute `rnn_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `rnn_relu`
    RnnRelu,
    /// `rnn_tanh`
    RnnTanh,
    /// `lstm`
    Lstm,
    /// `gru`
    Gru,
}

impl Mode {
    /// The mode with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "rnn_relu" => Some(Mode::RnnRelu),
            "rnn_tanh" => Some(Mode::RnnTanh),
            "lstm" => Some(Mode::Lstm),
            "gru" => Some(Mode::Gru),
            _ => None,
        }
    }

    /// The number of matrices that are multiplied by the input; the same number is multiplied by the state.
    #[must_use]
    pub fn gates(self) -> usize {
        match self {
            Mode::RnnRelu | Mode::RnnTanh => 1,
            Mode::Lstm => 4,
            Mode::Gru => 3,
        }
    }

    /// How many numbers of each cell in each step the backward pass needs.
    fn saved(self) -> usize {
        match self {
            Mode::RnnRelu | Mode::RnnTanh => 1,
            Mode::Lstm => 7,
            Mode::Gru => 5,
        }
    }
}

/// How the first layer uses its inputs: the attribute `input_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputMode {
    /// `linear_input`: multiplied by weights.
    LinearInput,
    /// `skip_input`: as they are. They have as many columns as the network has units.
    SkipInput,
    /// `auto_select`: as they are, if they have as many columns as the network has units.
    AutoSelect,
}

impl InputMode {
    /// The mode with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "linear_input" => Some(InputMode::LinearInput),
            "skip_input" => Some(InputMode::SkipInput),
            "auto_select" => Some(InputMode::AutoSelect),
            _ => None,
        }
    }
}

/// The attributes of the operations, and the index of the call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attributes {
    /// The kind of cells.
    pub rnn_mode: Mode,
    /// How the first layer uses its inputs.
    pub input_mode: InputMode,
    /// Whether there are two directions.
    pub bidirectional: bool,
    /// The probability that an element between two layers is set to zero in training, from 0 to 1.
    pub dropout: f32,
    /// The first part of the seed of the random numbers for dropout.
    pub seed: i64,
    /// The second part.
    pub seed2: i64,
    /// The index of the call: each call has its own random numbers.
    pub call: u64,
    /// Whether a backward pass follows.
    pub is_training: bool,
    /// Whether the first axis of inputs and outputs is time, and that of states pseudo-layers; otherwise it is the
    /// batch.
    pub time_major: bool,
    /// The size of the projection of the outputs of an LSTM; 0 for none.
    pub num_proj: i64,
}

impl Attributes {
    /// The number of directions.
    #[must_use]
    pub fn directions(&self) -> usize {
        if self.bidirectional { 2 } else { 1 }
    }

    /// The size of the projection.
    fn projection(&self, op: &'static str) -> Result<usize, Error> {
        let error = |expected: &str| {
            let got = self.num_proj.to_string();
            Err(Error::Attribute { op, expected: expected.to_owned(), got })
        };
        match usize::try_from(self.num_proj) {
            Err(_) => error("num_proj must not be negative"),
            Ok(size) if size > 0 && self.rnn_mode != Mode::Lstm => {
                error("num_proj must be 0 unless rnn_mode is lstm")
            }
            Ok(size) => Ok(size),
        }
    }
}
