//! The kernel of every operation.

use std::sync::LazyLock;

use bytemuck::Pod;
use half::f16;

use super::cudnn::{self, CudnnKernel};
use super::describe;
use super::ffi::{Attributes, Input, Shape};
use super::tensors::{self, Inputs, Outputs};
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
pub(super) enum Kernel {
    /// One of [`ops::ALL`].
    Block(BlockKernel),
    /// One of [`cudnn::ALL`].
    Cudnn(CudnnKernel),
}

impl Kernel {
    /// The operation's name in TensorFlow.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Kernel::Block(kernel) => kernel.op.name,
            Kernel::Cudnn(kernel) => kernel.name,
        }
    }

    /// Whether it has a kernel for half, beside the one for float.
    pub(super) fn has_half(&self) -> bool {
        match self {
            Kernel::Block(kernel) => kernel.op.types.contains(&DataType::Half),
            Kernel::Cudnn(_) => true,
        }
    }

    /// Whether TensorFlow has kernels for CPUs, too.
    pub(super) fn is_stock(&self) -> bool {
        match self {
            Kernel::Block(kernel) => kernel.op.is_stock,
            Kernel::Cudnn(_) => false,
        }
    }
}

/// How one of [`ops::ALL`] is computed.
pub(super) struct BlockKernel {
    pub(super) op: &'static Op,
    /// How many floats of scratch memory a call needs.
    scratch: fn(&Sizes, &Attributes) -> usize,
    float: Compute,
    half: Option<Compute>,
}

impl BlockKernel {
    /// Checks a call, describes its outputs, and tells how many floats of scratch memory it needs.
    pub(super) fn plan(
        &self,
        attributes: &Attributes,
        inputs: &[Input<'_>],
        outputs: &mut [Shape],
    ) -> Result<usize, Error> {
        let op = self.op;
        let shapes: Vec<_> = inputs.iter().map(|input| input.dims).collect();
        let sizes = op.check(attributes.use_optional(), &shapes)?;
        for (input, _) in inputs.iter().zip(op.inputs).filter(|(_, tensor)| tensor.is_steps) {
            op.check_steps(&sizes, tensors::steps(input).into_iter().map(i128::from))?;
        }
        for (shape, tensor) in outputs.iter_mut().zip(op.outputs) {
            describe(shape, tensor.dims.iter().map(|&dim| Some(sizes.of(dim))));
        }
        Ok((self.scratch)(&sizes, attributes))
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

/// The kernel of every operation.
pub(super) static KERNELS: LazyLock<Vec<Kernel>> = LazyLock::new(|| {
    let block = BLOCK.into_iter().map(Kernel::Block);
    block.chain(cudnn::ALL.map(Kernel::Cudnn)).collect()
});

/// One for each of [`ops::ALL`].
const BLOCK: [BlockKernel; ops::ALL.len()] = [
    BlockKernel {
        op: &ops::GRU_BLOCK_CELL,
        scratch: |sizes, _| gru::block_cell_scratch(sizes),
        float: gru_block_cell,
        half: None,
    },
    BlockKernel {
        op: &ops::GRU_BLOCK_CELL_GRAD,
        scratch: |_, _| 0,
        float: gru_block_cell_grad,
        half: None,
    },
    BlockKernel {
        op: &ops::LSTM_BLOCK_CELL,
        scratch: |_, _| 0,
        float: lstm_block_cell::<f32>,
        half: Some(lstm_block_cell::<f16>),
    },
    BlockKernel {
        op: &ops::LSTM_BLOCK_CELL_GRAD,
        scratch: |_, _| 0,
        float: lstm_block_cell_grad::<f32>,
        half: Some(lstm_block_cell_grad::<f16>),
    },
    BlockKernel {
        op: &ops::BLOCK_LSTM,
        scratch: |sizes, _| block_lstm::forward_scratch(sizes),
        float: |call| block_lstm::<f32>(BlockLstm, call),
        half: Some(|call| block_lstm::<f16>(BlockLstm, call)),
    },
    BlockKernel {
        op: &ops::BLOCK_LSTM_V2,
        scratch: |sizes, _| block_lstm::forward_scratch(sizes),
        float: |call| block_lstm::<f32>(BlockLstmV2, call),
        half: Some(|call| block_lstm::<f16>(BlockLstmV2, call)),
    },
    BlockKernel {
        op: &ops::BLOCK_LSTM_GRAD,
        scratch: |sizes, attributes| block_lstm::grad_scratch(sizes, attributes.half),
        float: |call| block_lstm_grad::<f32>(BlockLstm, call),
        half: Some(|call| block_lstm_grad::<f16>(BlockLstm, call)),
    },
    BlockKernel {
        op: &ops::BLOCK_LSTM_GRAD_V2,
        scratch: |sizes, attributes| block_lstm::grad_scratch(sizes, attributes.half),
        float: |call| block_lstm_grad::<f32>(BlockLstmV2, call),
        half: Some(|call| block_lstm_grad::<f16>(BlockLstmV2, call)),
    },
    BlockKernel {
        op: &ops::BLOCK_GRU,
        scratch: |sizes, _| block_gru::forward_scratch(sizes),
        float: block_gru::<f32>,
        half: Some(block_gru::<f16>),
    },
    BlockKernel {
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
