//! The operations on cells and sequences: those of [`ops::BLOCK`].

use blockcell_kernels::block_lstm::Variant::{self, BlockLstm, BlockLstmV2};
use blockcell_kernels::ops::{
    self, DataType, Dim, Inferred, Keeps, Lists, Op, PartialShape, Sizes,
};
use blockcell_kernels::{Activations, Context, Element, Error, block_gru, block_lstm, gru, lstm};
use bytemuck::Pod;
use half::{bf16, f16};

use super::attributes::{Attributes, activations};
use super::ffi::{Input, Plan, Shape};
use super::kernels::{self, Node, Operation, describe};
use super::tensors::{self, Inputs, Outputs};

/// One for each of [`ops::BLOCK`].
pub(super) const ALL: [&dyn Operation; ops::BLOCK.len()] = [
    &BlockOp {
        op: &ops::GRU_BLOCK_CELL,
        read: |_| Ok(()),
        use_optional: |()| false,
        scratch: |sizes, (), _| gru::block_cell_scratch(sizes),
        float: gru_block_cell,
        half: None,
        bfloat16: None,
    },
    &BlockOp {
        op: &ops::GRU_BLOCK_CELL_GRAD,
        read: |_| Ok(()),
        use_optional: |()| false,
        scratch: |_, (), _| 0,
        float: gru_block_cell_grad,
        half: None,
        bfloat16: None,
    },
    &BlockOp {
        op: &ops::LSTM_BLOCK_CELL,
        read: lstm_attributes,
        use_optional: |attributes| attributes.use_peephole,
        scratch: |_, _, _| 0,
        float: lstm_block_cell::<f32>,
        half: Some(lstm_block_cell::<f16>),
        bfloat16: None,
    },
    &BlockOp {
        op: &ops::LSTM_BLOCK_CELL_GRAD,
        read: use_peephole,
        use_optional: |&use_peephole| use_peephole,
        scratch: |_, _, _| 0,
        float: lstm_block_cell_grad::<f32>,
        half: Some(lstm_block_cell_grad::<f16>),
        bfloat16: None,
    },
    &BlockOp {
        op: &ops::BLOCK_LSTM,
        read: lstm_attributes,
        use_optional: |attributes| attributes.use_peephole,
        scratch: |sizes, _, _| block_lstm::forward_scratch(sizes),
        float: |attributes, call| block_lstm::<f32>(BlockLstm, attributes, call),
        half: Some(|attributes, call| block_lstm::<f16>(BlockLstm, attributes, call)),
        bfloat16: None,
    },
    &BlockOp {
        op: &ops::BLOCK_LSTM_V2,
        read: lstm_attributes_without_bias,
        use_optional: |attributes| attributes.use_peephole,
        scratch: |sizes, _, _| block_lstm::forward_scratch(sizes),
        float: |attributes, call| block_lstm::<f32>(BlockLstmV2, attributes, call),
        half: Some(|attributes, call| block_lstm::<f16>(BlockLstmV2, attributes, call)),
        bfloat16: None,
    },
    &BlockOp {
        op: &ops::BLOCK_LSTM_GRAD,
        read: use_peephole,
        use_optional: |&use_peephole| use_peephole,
        scratch: |sizes, _, is_apart| block_lstm::grad_scratch(sizes, is_apart),
        float: |&use_peephole, call| block_lstm_grad::<f32>(BlockLstm, use_peephole, call),
        half: Some(|&use_peephole, call| block_lstm_grad::<f16>(BlockLstm, use_peephole, call)),
        bfloat16: None,
    },
    &BlockOp {
        op: &ops::BLOCK_LSTM_GRAD_V2,
        read: use_peephole,
        use_optional: |&use_peephole| use_peephole,
        scratch: |sizes, _, is_apart| block_lstm::grad_scratch(sizes, is_apart),
        float: |&use_peephole, call| block_lstm_grad::<f32>(BlockLstmV2, use_peephole, call),
        half: Some(|&use_peephole, call| block_lstm_grad::<f16>(BlockLstmV2, use_peephole, call)),
        bfloat16: None,
    },
    &BlockOp {
        op: &ops::BLOCK_GRU,
        read: gru_attributes,
        use_optional: |attributes| attributes.reset_after,
        scratch: |sizes, _, _| block_gru::forward_scratch(sizes),
        float: block_gru::<f32>,
        half: Some(block_gru::<f16>),
        bfloat16: Some(block_gru::<bf16>),
    },
    &BlockOp {
        op: &ops::BLOCK_GRU_GRAD,
        read: gru_attributes,
        use_optional: |attributes| attributes.reset_after,
        scratch: |sizes, _, is_apart| block_gru::grad_scratch(sizes, is_apart),
        float: block_gru_grad::<f32>,
        half: Some(block_gru_grad::<f16>),
        bfloat16: Some(block_gru_grad::<bf16>),
    },
    &BlockOp {
        op: &ops::LSTM,
        read: activations,
        use_optional: |_| false,
        scratch: |sizes, _, _| block_lstm::forward_scratch(sizes),
        float: lstm_by_row::<f32>,
        half: Some(lstm_by_row::<f16>),
        bfloat16: Some(lstm_by_row::<bf16>),
    },
    &BlockOp {
        op: &ops::LSTM_GRAD,
        read: activations,
        use_optional: |_| false,
        scratch: |sizes, _, is_apart| block_lstm::grad_scratch(sizes, is_apart),
        float: lstm_by_row_grad::<f32>,
        half: Some(lstm_by_row_grad::<f16>),
        bfloat16: Some(lstm_by_row_grad::<bf16>),
    },
];

/// An operation whose nodes have the attributes `A`, beside their element type.
struct BlockOp<A> {
    op: &'static Op,
    /// Reads a node's attributes.
    read: fn(Attributes<'_>) -> Result<A, Error>,
    /// Whether the operation's optional vectors are used.
    use_optional: fn(&A) -> bool,
    /// How many floats of scratch memory a call needs. The flag tells whether weights are packed apart from their
    /// gradients: where elements have 16 bits, and where nobody reads these.
    scratch: fn(&Sizes, &A, bool) -> usize,
    float: Compute<A>,
    half: Option<Compute<A>>,
    bfloat16: Option<Compute<A>>,
}

type Compute<A> = fn(&A, Call<'_, '_, '_>) -> Result<(), Error>;

impl<A: Send + Sync + 'static> Operation for BlockOp<A> {
    fn op(&self) -> &'static Op {
        self.op
    }

    fn node(&'static self, attributes: Attributes<'_>) -> Result<Box<dyn Node>, Error> {
        let element = attributes.element_type()?;
        let compute = match element {
            DataType::Float => Some(self.float),
            DataType::Half => self.half,
            DataType::BFloat16 => self.bfloat16,
            DataType::Double => None,
        };
        let compute = compute.ok_or(Error::Type { op: self.op.name })?;
        let attributes = (self.read)(attributes)?;
        Ok(Box::new(BlockNode { kind: self, attributes, element, compute }))
    }

    fn infer(
        &self,
        attributes: Attributes<'_>,
        inputs: &[PartialShape],
    ) -> Result<Inferred, Error> {
        let use_optional = (self.use_optional)(&(self.read)(attributes)?);
        let [lengths, outputs] = [self.op.inputs, self.op.outputs].map(|all| vec![1; all.len()]);
        self.op.infer(use_optional, &Lists::new(self.op, &lengths, &outputs, inputs))
    }
}

struct BlockNode<A: 'static> {
    kind: &'static BlockOp<A>,
    attributes: A,
    element: DataType,
    /// The function of the element type.
    compute: Compute<A>,
}

impl<A: Send + Sync> Node for BlockNode<A> {
    fn in_place(&self) -> Vec<usize> {
        let Op { inputs, in_place, .. } = self.kind.op;
        let inputs = inputs.iter().enumerate();
        inputs.filter(|(_, tensor)| in_place.contains(&tensor.name)).map(|(n, _)| n).collect()
    }

    fn plan(
        &self,
        inputs: &[Input<'_>],
        is_read: &[bool],
        outputs: &mut [Shape],
    ) -> Result<Plan, Error> {
        let BlockOp { op, use_optional, scratch, .. } = self.kind;
        let shapes: Vec<_> = inputs.iter().map(|input| input.dims).collect();
        let sizes = op.check(use_optional(&self.attributes), &shapes)?;
        for (input, _) in inputs.iter().zip(op.inputs).filter(|(_, tensor)| tensor.is_steps()) {
            op.check_steps(&sizes, tensors::steps(input).into_iter().map(i128::from))?;
        }
        let mut is_apart = self.element.size() < size_of::<f32>();
        for ((shape, tensor), is_read) in outputs.iter_mut().zip(op.outputs).zip(is_read) {
            let size = |&dim| Some(if *is_read { sizes.of(dim) } else { sizes.of_unread(dim) });
            describe(op.name, shape, tensor.dims.iter().map(size))?;
            is_apart |= !is_read && tensor.dims.contains(&Dim::InputCellOrNone);
        }
        Plan::with_scratch(op.name, scratch(&sizes, &self.attributes, is_apart))
    }

    fn compute(&self, call: kernels::Call<'_, '_, '_>) -> Result<(), Error> {
        let op = self.kind.op;
        let call = Call {
            context: call.context,
            inputs: Inputs::new(op, &[], call.inputs),
            in_place: Outputs::new(call.in_place, &[]),
            outputs: Outputs::new(call.outputs, &[]),
            scratch: call.scratch,
        };
        (self.compute)(&self.attributes, call)
    }
}

/// A call whose tensors become the structs of views of its operation.
struct Call<'c, 'p, 'o> {
    context: &'c Context<'c>,
    inputs: Inputs<'c>,
    in_place: Outputs<'c, 'p>,
    outputs: Outputs<'c, 'o>,
    scratch: &'c mut [f32],
}

fn use_peephole(attributes: Attributes<'_>) -> Result<bool, Error> {
    attributes.flag("use_peephole")
}

fn gru_attributes(attributes: Attributes<'_>) -> Result<block_gru::Attributes, Error> {
    let reset_after = attributes.flag("reset_after")?;
    Ok(block_gru::Attributes { reset_after, activations: activations(attributes)? })
}

fn lstm_attributes(attributes: Attributes<'_>) -> Result<lstm::Attributes, Error> {
    let forget_bias = attributes.float("forget_bias")?;
    Ok(lstm::Attributes { forget_bias, ..lstm_attributes_without_bias(attributes)? })
}

/// Those of `BlockLSTMV2`, which has no forget_bias.
fn lstm_attributes_without_bias(attributes: Attributes<'_>) -> Result<lstm::Attributes, Error> {
    Ok(lstm::Attributes {
        use_peephole: attributes.flag("use_peephole")?,
        forget_bias: 0.0,
        cell_clip: attributes.float("cell_clip")?,
    })
}

fn gru_block_cell((): &(), mut call: Call<'_, '_, '_>) -> Result<(), Error> {
    let inputs = gru::BlockCellInputs::from_source(&mut call.inputs);
    let outputs = gru::BlockCellOutputs::from_source(&mut call.outputs);
    gru::block_cell(call.context, inputs, outputs, call.scratch)
}

fn gru_block_cell_grad((): &(), mut call: Call<'_, '_, '_>) -> Result<(), Error> {
    let inputs = gru::BlockCellGradInputs::from_source(&mut call.inputs);
    let outputs = gru::BlockCellGradOutputs::from_source(&mut call.outputs);
    gru::block_cell_grad(call.context, inputs, outputs)
}

fn lstm_block_cell<E: Element + Pod>(
    attributes: &lstm::Attributes,
    mut call: Call<'_, '_, '_>,
) -> Result<(), Error> {
    let inputs = lstm::BlockCellInputs::<E>::from_source(&mut call.inputs);
    let outputs = lstm::BlockCellOutputs::from_source(&mut call.outputs);
    lstm::block_cell(call.context, attributes, inputs, outputs)
}

fn lstm_block_cell_grad<E: Element + Pod>(
    &use_peephole: &bool,
    mut call: Call<'_, '_, '_>,
) -> Result<(), Error> {
    let inputs = lstm::BlockCellGradInputs::<E>::from_source(&mut call.inputs);
    let outputs = lstm::BlockCellGradOutputs::from_source(&mut call.outputs);
    lstm::block_cell_grad(call.context, use_peephole, inputs, outputs)
}

fn block_lstm<E: Element + Pod>(
    variant: Variant,
    attributes: &lstm::Attributes,
    mut call: Call<'_, '_, '_>,
) -> Result<(), Error> {
    let inputs = block_lstm::Inputs::<E>::from_source(&mut call.inputs);
    let outputs = block_lstm::Outputs::from_source(&mut call.outputs);
    block_lstm::forward(
        call.context,
        variant,
        attributes,
        inputs,
        outputs,
        Keeps::WhatIsRead,
        call.scratch,
    )
}

fn block_lstm_grad<E: Element + Pod>(
    variant: Variant,
    use_peephole: bool,
    mut call: Call<'_, '_, '_>,
) -> Result<(), Error> {
    let inputs = block_lstm::GradInputs::<E>::from_source(&mut call.inputs);
    let in_place = block_lstm::GradInPlace::from_source(&mut call.in_place);
    let outputs = block_lstm::GradOutputs::from_source(&mut call.outputs);
    block_lstm::grad(call.context, variant, use_peephole, inputs, in_place, outputs, call.scratch)
}

fn block_gru<E: Element + Pod>(
    &attributes: &block_gru::Attributes,
    mut call: Call<'_, '_, '_>,
) -> Result<(), Error> {
    let inputs = block_gru::Inputs::<E>::from_source(&mut call.inputs);
    let outputs = block_gru::Outputs::from_source(&mut call.outputs);
    block_gru::forward(call.context, attributes, inputs, outputs, Keeps::WhatIsRead, call.scratch)
}

fn block_gru_grad<E: Element + Pod>(
    &attributes: &block_gru::Attributes,
    mut call: Call<'_, '_, '_>,
) -> Result<(), Error> {
    let inputs = block_gru::GradInputs::<E>::from_source(&mut call.inputs);
    let in_place = block_gru::GradInPlace::from_source(&mut call.in_place);
    let outputs = block_gru::GradOutputs::from_source(&mut call.outputs);
    block_gru::grad(call.context, attributes, inputs, in_place, outputs, call.scratch)
}

fn lstm_by_row<E: Element + Pod>(
    &activations: &Activations,
    mut call: Call<'_, '_, '_>,
) -> Result<(), Error> {
    let inputs = block_lstm::ByRowInputs::<E>::from_source(&mut call.inputs);
    let outputs = block_lstm::ByRowOutputs::from_source(&mut call.outputs);
    let (context, keeps) = (call.context, Keeps::WhatIsRead);
    block_lstm::forward_by_row(context, activations, inputs, outputs, keeps, call.scratch)
}

fn lstm_by_row_grad<E: Element + Pod>(
    &activations: &Activations,
    mut call: Call<'_, '_, '_>,
) -> Result<(), Error> {
    let inputs = block_lstm::ByRowGradInputs::<E>::from_source(&mut call.inputs);
    let in_place = block_lstm::ByRowGradInPlace::from_source(&mut call.in_place);
    let outputs = block_lstm::ByRowGradOutputs::from_source(&mut call.outputs);
    block_lstm::grad_by_row(call.context, activations, inputs, in_place, outputs, call.scratch)
}
