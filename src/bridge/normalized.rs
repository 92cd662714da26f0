//! The operation on steps of LSTM cells with layer normalization.

use std::marker::PhantomData;

use blockcell_kernels::ops::{self, Inferred, Lists, Op, PartialShape, Sizes};
use blockcell_kernels::unfused::{self, NormalizedAttributes};
use blockcell_kernels::unfused::{NormalizedLstmCellInputs, NormalizedLstmCellOutputs};
use blockcell_kernels::{Element, Error};
use bytemuck::Pod;

use super::attributes::{Attributes, activations};
use super::ffi::Input;
use super::kernels::Operation;
use super::lists::{Call, ListsOp, OperationOf};
use super::unfused::gate_columns;

/// All of them.
pub(super) const ALL: [&dyn Operation; 1] = [&OperationOf::<NormalizedLstmCell>(PhantomData)];

/// `BlockcellLayerNormLSTMCell`.
struct NormalizedLstmCell(NormalizedAttributes);

impl ListsOp for NormalizedLstmCell {
    const OP: &'static Op = &ops::NORMALIZED_LSTM_CELL;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        attributes.is_given("num_cs_prev")?;
        let over_last_axis = match attributes.number("state_axis")? {
            1 => false,
            -1 => true,
            axis => {
                let expected = "state_axis must be 1 or -1".to_owned();
                return Err(Error::Attribute {
                    op: Self::OP.name,
                    expected,
                    got: axis.to_string(),
                });
            }
        };
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
