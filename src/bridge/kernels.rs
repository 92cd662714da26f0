//! The kernel of every operation.

use bytemuck::Pod;
use half::f16;

use super::ffi::Attributes;
use super::tensors::{Inputs, Outputs};
use blockcell_kernels::block_lstm::Variant::{self, BlockLstm, BlockLstmV2};
use blockcell_kernels::ops::{self, DataType, Op, Sizes};
use blockcell_kernels::{Context, Element, Error, block_gru, block_lstm, gru, lstm};

/// A call: its tensors in the operation's order.
pub(super) struct Call<'c, 'p, 'o> {
    pub(super) context: &'c Context<'c>,
    pub(super) attributes: &'c Attributes,
    pub(super) inputs: Inputs<'c>,
    pub(super) in_place: Outputs<'c, 'p>,
    pub(super) outputs: Outputs<'c, 'o>,
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

    /// Computes a call.
    pub(super) fn run(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
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

fn gru_block_cell(mut call: Call<'_, '_, '_>) -> Result<(), Error> {
    let inputs = gru::BlockCellInputs::from_source(&mut call.inputs);
    let outputs = gru::BlockCellOutputs::from_source(&mut call.outputs);
    gru::block_cell(call.context, inputs, outputs, call.scratch)
}

fn gru_block_cell_grad(mut call: Call<'_, '_, '_>) -> Result<(), Error> {
    let inputs = gru::BlockCellGradInputs::from_source(&mut call.inputs);
    let outputs = gru::BlockCellGradOutputs::from_source(&mut call.outputs);
    gru::block_cell_grad(call.context, inputs, outputs)
}

fn lstm_block_cell<E: Element + Pod>(mut call: Call<'_, '_, '_>) -> Result<(), Error> {
    let inputs = lstm::BlockCellInputs::<E>::from_source(&mut call.inputs);
    let outputs = lstm::BlockCellOutputs::from_source(&mut call.outputs);
    lstm::block_cell(call.context, &call.attributes.into(), inputs, outputs)
}

fn lstm_block_cell_grad<E: Element + Pod>(mut call: Call<'_, '_, '_>) -> Result<(), Error> {
    let inputs = lstm::BlockCellGradInputs::<E>::from_source(&mut call.inputs);
    let outputs = lstm::BlockCellGradOutputs::from_source(&mut call.outputs);
    lstm::block_cell_grad(call.context, call.attributes.use_peephole, inputs, outputs)
}

fn block_lstm<E: Element + Pod>(variant: Variant, mut call: Call<'_, '_, '_>) -> Result<(), Error> {
    let inputs = block_lstm::Inputs::<E>::from_source(&mut call.inputs);
    let outputs = block_lstm::Outputs::from_source(&mut call.outputs);
    let attributes = &call.attributes.into();
    block_lstm::forward(call.context, variant, attributes, inputs, outputs, call.scratch)
}

fn block_lstm_grad<E: Element + Pod>(
    variant: Variant,
    mut call: Call<'_, '_, '_>,
) -> Result<(), Error> {
    let inputs = block_lstm::GradInputs::<E>::from_source(&mut call.inputs);
    let in_place = block_lstm::GradInPlace::from_source(&mut call.in_place);
    let outputs = block_lstm::GradOutputs::from_source(&mut call.outputs);
    let use_peephole = call.attributes.use_peephole;
    block_lstm::grad(call.context, variant, use_peephole, inputs, in_place, outputs, call.scratch)
}

fn block_gru<E: Element + Pod>(mut call: Call<'_, '_, '_>) -> Result<(), Error> {
    let inputs = block_gru::Inputs::<E>::from_source(&mut call.inputs);
    let outputs = block_gru::Outputs::from_source(&mut call.outputs);
    let reset_after = call.attributes.reset_after;
    block_gru::forward(call.context, reset_after, inputs, outputs, call.scratch)
}

fn block_gru_grad<E: Element + Pod>(mut call: Call<'_, '_, '_>) -> Result<(), Error> {
    let inputs = block_gru::GradInputs::<E>::from_source(&mut call.inputs);
    let in_place = block_gru::GradInPlace::from_source(&mut call.in_place);
    let outputs = block_gru::GradOutputs::from_source(&mut call.outputs);
    let reset_after = call.attributes.reset_after;
    block_gru::grad(call.context, reset_after, inputs, in_place, outputs, call.scratch)
}
