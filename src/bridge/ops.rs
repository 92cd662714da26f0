//! The kernel of every operation.

use half::f16;

use super::cells::{gru_block_cell, gru_block_cell_grad, lstm_block_cell, lstm_block_cell_grad};
use super::ffi::{Attributes, Input, Output};
use super::sequences::{block_gru, block_gru_grad, block_lstm, block_lstm_grad};
use blockcell_kernels::block_lstm::Variant::{BlockLstm, BlockLstmV2};
use blockcell_kernels::ops::{self, DataType, Op, Sizes};
use blockcell_kernels::{Context, Error, block_gru, block_lstm, gru, lstm};

/// A call: its tensors in the operation's order.
pub(super) struct Call<'c, 'p, 'o> {
    pub(super) context: &'c Context<'c>,
    pub(super) attributes: &'c Attributes,
    /// Those that are worked on in place have no data.
    pub(super) inputs: &'c [Input<'c>],
    pub(super) in_place: &'c mut [Output<'p>],
    pub(super) outputs: &'c mut [Output<'o>],
    pub(super) scratch: &'c mut [f32],
}

type Compute = fn(Call<'_, '_, '_>) -> Result<(), Error>;

/// How an operation is computed.
pub(super) struct Kernel {
    pub(super) op: &'static Op,
    /// How many floats of scratch memory a call needs.
    scratch: fn(&Sizes, &Attributes) -> usize,
    float: Compute,
    half: Option<Compute>,
}

impl Kernel {
    /// The kernel of the operation TensorFlow calls `name`. It was registered under it.
    pub(super) fn of(name: &str) -> &'static Kernel {
        let kernel = KERNELS.iter().find(|kernel| kernel.op.name == name);
        kernel.unwrap_or_else(|| panic!("{name} is not registered"))
    }

    /// Whether it has a kernel for half, beside the one for float.
    pub(super) fn has_half(&self) -> bool {
        self.op.types.contains(&DataType::Half)
    }

    /// How many floats of scratch memory a call needs.
    pub(super) fn scratch(&self, sizes: &Sizes, attributes: &Attributes) -> Result<usize, Error> {
        let floats = (self.scratch)(sizes, attributes);
        if floats > isize::MAX as usize / size_of::<f32>() {
            let (op, tensor, shape) = (self.op.name, "the scratch memory", format!("[{floats}]"));
            return Err(Error::Overflow { op, tensor, shape });
        }
        Ok(floats)
    }

    pub(super) fn compute(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        if !call.attributes.half {
            return (self.float)(call);
        }
        let half = self.half.ok_or(Error::Type { op: self.op.name })?;
        half(call)
    }
}

impl Attributes {
    /// Whether the operation's optional vectors are used. It has one of these attributes at most.
    pub(super) fn use_optional(&self) -> bool {
        self.use_peephole || self.reset_after
    }
}

impl From<&Attributes> for lstm::Attributes {
    fn from(&Attributes { use_peephole, forget_bias, cell_clip, .. }: &Attributes) -> Self {
        lstm::Attributes { use_peephole, forget_bias, cell_clip }
    }
}

/// One for each of [`ops::ALL`].
pub(super) static KERNELS: [Kernel; ops::ALL.len()] = [
    Kernel {
        op: &ops::GRU_BLOCK_CELL,
        scratch: |sizes, _| gru::block_cell_scratch(sizes),
        float: gru_block_cell,
        half: None,
    },
    Kernel {
        op: &ops::GRU_BLOCK_CELL_GRAD,
        scratch: |_, _| 0,
        float: gru_block_cell_grad,
        half: None,
    },
    Kernel {
        op: &ops::LSTM_BLOCK_CELL,
        scratch: |_, _| 0,
        float: lstm_block_cell::<f32>,
        half: Some(lstm_block_cell::<f16>),
    },
    Kernel {
        op: &ops::LSTM_BLOCK_CELL_GRAD,
        scratch: |_, _| 0,
        float: lstm_block_cell_grad::<f32>,
        half: Some(lstm_block_cell_grad::<f16>),
    },
    Kernel {
        op: &ops::BLOCK_LSTM,
        scratch: |sizes, _| block_lstm::forward_scratch(sizes),
        float: |call| block_lstm::<f32>(BlockLstm, call),
        half: Some(|call| block_lstm::<f16>(BlockLstm, call)),
    },
    Kernel {
        op: &ops::BLOCK_LSTM_V2,
        scratch: |sizes, _| block_lstm::forward_scratch(sizes),
        float: |call| block_lstm::<f32>(BlockLstmV2, call),
        half: Some(|call| block_lstm::<f16>(BlockLstmV2, call)),
    },
    Kernel {
        op: &ops::BLOCK_LSTM_GRAD,
        scratch: |sizes, attributes| block_lstm::grad_scratch(sizes, attributes.half),
        float: |call| block_lstm_grad::<f32>(BlockLstm, call),
        half: Some(|call| block_lstm_grad::<f16>(BlockLstm, call)),
    },
    Kernel {
        op: &ops::BLOCK_LSTM_GRAD_V2,
        scratch: |sizes, attributes| block_lstm::grad_scratch(sizes, attributes.half),
        float: |call| block_lstm_grad::<f32>(BlockLstmV2, call),
        half: Some(|call| block_lstm_grad::<f16>(BlockLstmV2, call)),
    },
    Kernel {
        op: &ops::BLOCK_GRU,
        scratch: |sizes, _| block_gru::forward_scratch(sizes),
        float: block_gru::<f32>,
        half: Some(block_gru::<f16>),
    },
    Kernel {
        op: &ops::BLOCK_GRU_GRAD,
        scratch: |sizes, attributes| block_gru::grad_scratch(sizes, attributes.half),
        float: block_gru_grad::<f32>,
        half: Some(block_gru_grad::<f16>),
    },
];
