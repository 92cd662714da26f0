//! The operations on steps of LSTM cells with layer normalization, and on normalizations alone.

use std::marker::PhantomData;

use blockcell_kernels::ops::{self, Inferred, Lists, Op, PartialShape, Sizes};
use blockcell_kernels::unfused::{self, NormalizedAttributes};
use blockcell_kernels::unfused::{LayerNormAttributes, LayerNormInputs, LayerNormOutputs};
use blockcell_kernels::unfused::{
    LayerNormGradAttributes, LayerNormGradInputs, LayerNormGradOutputs,
};
use blockcell_kernels::unfused::{NormalizedLstmCellInputs, NormalizedLstmCellOutputs};
use blockcell_kernels::{Element, Error};
use bytemuck::Pod;

use super::attributes::{Attributes, activations};
use super::ffi::{Input, Output};
use super::kernels::Operation;
use super::lists::{Call, ListsOp, OperationOf};
use super::unfused::gate_columns;

/// All of them.
pub(super) const ALL: [&dyn Operation; 3] = [
    &OperationOf::<NormalizedLstmCell>(PhantomData),
    &OperationOf::<LayerNorm>(PhantomData),
    &OperationOf::<LayerNormGrad>(PhantomData),
];

/// `BlockcellLayerNormLSTMCell`.
struct NormalizedLstmCell(NormalizedAttributes);

impl ListsOp for NormalizedLstmCell {
    const OP: &'static Op = &ops::NORMALIZED_LSTM_CELL;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        attributes.is_given("num_cs_prev")?;
        let over_last_axis = is_last_axis(Self::OP, attributes, "state_axis")?;
        let attributes = normalized_attributes(attributes)?;
        Ok(NormalizedLstmCell(NormalizedAttributes { over_last_axis, ..attributes }))
    }

    fn infer(
        &self,
        shapes: &Lists<'_, PartialShape>,
        _: Option<&Lists<'_, Input<'_>>>,
    ) -> Result<Inferred, Error> {
        unfused::normalized_lstm_cell_shapes(shapes)
    }

    fn scratch(&self, sizes: &Sizes, _: &Lists<'_, Input<'_>>) -> [usize; 2] {
        [0, unfused::normalized_lstm_cell_scratch(sizes.batch, sizes.cell_size)]
    }

    fn run<E: Element + Pod>(&self, mut call: Call<'_, '_>) -> Result<(), Error> {
        let inputs = NormalizedLstmCellInputs::<E>::from_source(&mut call.inputs);
        let outputs = NormalizedLstmCellOutputs::from_source(&mut call.outputs);
        unfused::normalized_lstm_cell(call.context, &self.0, inputs, outputs, call.memory().1)
    }
}

/// Whether an attribute says that means are taken over the last axis, and not over axis 1.
fn is_last_axis(op: &Op, attributes: Attributes<'_>, name: &str) -> Result<bool, Error> {
    match attributes.number(name)? {
        1 => Ok(false),
        -1 => Ok(true),
        axis => {
            let expected = format!("{name} must be 1 or -1");
            Err(Error::Attribute { op: op.name, expected, got: axis.to_string() })
        }
    }
}

/// `BlockcellLayerNorm`.
struct LayerNorm(LayerNormAttributes);

impl ListsOp for LayerNorm {
    const OP: &'static Op = &ops::LAYER_NORM;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        Ok(LayerNorm(LayerNormAttributes {
            epsilon: attributes.float("epsilon")?,
            over_last_axis: is_last_axis(Self::OP, attributes, "axis")?,
            bias: attributes.float("bias")?,
        }))
    }

    fn infer(
        &self,
        shapes: &Lists<'_, PartialShape>,
        _: Option<&Lists<'_, Input<'_>>>,
    ) -> Result<Inferred, Error> {
        unfused::layer_norm_shapes(&self.0, shapes)
    }

    fn run<E: Element + Pod>(&self, mut call: Call<'_, '_>) -> Result<(), Error> {
        let inputs = LayerNormInputs::<E>::from_source(&mut call.inputs);
        let outputs = LayerNormOutputs::from_source(&mut call.outputs);
        unfused::layer_norm(call.context, &self.0, inputs, outputs)
    }
}

/// `BlockcellLayerNormGrad`.
struct LayerNormGrad(LayerNormGradAttributes);

impl ListsOp for LayerNormGrad {
    const OP: &'static Op = &ops::LAYER_NORM_GRAD;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        let rows = match attributes.number("rows")? {
            -1 => None,
            rows => Some(usize::try_from(rows).map_err(|_| {
                let expected = "rows must be -1 or the number of rows".to_owned();
                Error::Attribute { op: Self::OP.name, expected, got: rows.to_string() }
            })?),
        };
        Ok(LayerNormGrad(LayerNormGradAttributes { epsilon: attributes.float("epsilon")?, rows }))
    }

    fn infer(
        &self,
        shapes: &Lists<'_, PartialShape>,
        _: Option<&Lists<'_, Input<'_>>>,
    ) -> Result<Inferred, Error> {
        unfused::layer_norm_grad_shapes(&self.0, shapes)
    }

    fn scratch(&self, _: &Sizes, call: &Lists<'_, Input<'_>>) -> [usize; 2] {
        let of = |name| call.of(name)[0].dims;
        [unfused::layer_norm_grad_scratch(of("dy")[0].max(of("x")[0]), of("gamma")[0]), 0]
    }

    fn numbers(&self, call: &Lists<'_, Input<'_>>, _: &[Output<'_>]) -> usize {
        let of = |name| call.of(name)[0].dims;
        unfused::layer_norm_grad_scratch(of("dy")[0].max(of("x")[0]), of("gamma")[0])
    }

    fn run<E: Element + Pod>(&self, mut call: Call<'_, '_>) -> Result<(), Error> {
        let inputs = LayerNormGradInputs::<E>::from_source(&mut call.inputs);
        let outputs = LayerNormGradOutputs::from_source(&mut call.outputs);
        unfused::layer_norm_grad(call.context, &self.0, inputs, outputs, call.memory::<E>().0)
    }
}

/// The attributes that steps and loops of such cells have in common.
pub(super) fn normalized_attributes(
    attributes: Attributes<'_>,
) -> Result<NormalizedAttributes, Error> {
    Ok(NormalizedAttributes {
        forget_bias: attributes.float("forget_bias")?,
        epsilon: attributes.float("epsilon")?,
        columns: gate_columns(attributes)?,
        activations: activations(attributes)?,
        over_last_axis: false,
    })
}
