//! The operations on steps of plain cells, and on the products around them.

use std::marker::PhantomData;

use blockcell_kernels::mat_mul::{self, AddNInputs, AddNOutputs, BiasInputs, BiasOutputs, Part};
use blockcell_kernels::mat_mul::{SliceInputs, SliceOutputs};
use blockcell_kernels::ops::{self, Inferred, Lengths, Lists, Op, PartialShape, Sizes};
use blockcell_kernels::unfused::{self, GruAttributes, GruCellInputs, GruCellOutputs};
use blockcell_kernels::unfused::{GateColumns, LstmCellInputs, LstmCellOutputs};
use blockcell_kernels::unfused::{GruCellGradCInputs, GruCellGradCOutputs};
use blockcell_kernels::unfused::{GruCellGradRuInputs, GruCellGradRuOutputs};
use blockcell_kernels::unfused::{LstmCellGradAttributes, LstmCellGradInputs, LstmCellGradOutputs};
use blockcell_kernels::{Activations, Element, Error, lstm};
use bytemuck::Pod;

use super::attributes::{Attributes, activations};
use super::ffi::{Input, Output};
use super::kernels::Operation;
use super::lists::{Call, ListsOp, OperationOf};

/// All of them.
pub(super) const ALL: [&dyn Operation; 8] = [
    &OperationOf::<AddN>(PhantomData),
    &OperationOf::<Slice>(PhantomData),
    &OperationOf::<BiasAddGradAddN>(PhantomData),
    &OperationOf::<LstmCell>(PhantomData),
    &OperationOf::<LstmCellGrad>(PhantomData),
    &OperationOf::<GruCell>(PhantomData),
    &OperationOf::<GruCellGradC>(PhantomData),
    &OperationOf::<GruCellGradRu>(PhantomData),
];

type Shapes<'a> = Lists<'a, PartialShape>;
type CallInputs<'a> = Lists<'a, Input<'a>>;

/// `BlockcellMatMulAddN`. The first addend's memory may become that of the sum.
struct AddN;

impl ListsOp for AddN {
    const OP: &'static Op = &ops::MAT_MUL_ADD_N;

    fn read(_: Attributes<'_>) -> Result<Self, Error> {
        Ok(AddN)
    }

    fn infer(&self, shapes: &Shapes<'_>, _: Option<&CallInputs<'_>>) -> Result<Inferred, Error> {
        mat_mul::add_n_shapes(shapes)
    }

    fn forward_input(&self, lengths: &Lengths) -> Option<usize> {
        let addends = Self::OP.inputs.iter().position(|tensor| tensor.name == "addends")?;
        let before = lengths.inputs[..addends].iter().sum();
        (lengths.inputs[addends] > 0).then_some(before)
    }

    fn run<E: Element + Pod>(&self, mut call: Call<'_, '_>) -> Result<(), Error> {
        let inputs = AddNInputs::<E>::from_source(&mut call.inputs);
        let outputs = AddNOutputs::from_source(&mut call.outputs);
        mat_mul::add_n(call.context, inputs, call.forwarded, outputs)
    }
}

/// `BlockcellMatMulSlice`.
struct Slice {
    rows: i64,
    parts: Vec<Part>,
}

impl ListsOp for Slice {
    const OP: &'static Op = &ops::MAT_MUL_SLICE;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        let parts = attributes.count("num_parts")?;
        let (begins, sizes) = (attributes.numbers("begins")?, attributes.numbers("sizes")?);
        if [begins.len(), sizes.len()] != [parts; 2] {
            let op = Self::OP.name;
            let expected = format!("begins and sizes must have P = {parts} elements each");
            let got = format!("{} and {}", begins.len(), sizes.len());
            return Err(Error::Attribute { op, expected, got });
        }
        let parts = begins.into_iter().zip(sizes);
        let parts = parts.map(|(begin, size)| Part { begin, size }).collect();
        Ok(Slice { rows: attributes.number("rows")?, parts })
    }

    fn infer(&self, shapes: &Shapes<'_>, _: Option<&CallInputs<'_>>) -> Result<Inferred, Error> {
        mat_mul::slice_shapes(self.rows, &self.parts, shapes)
    }

    fn run<E: Element + Pod>(&self, mut call: Call<'_, '_>) -> Result<(), Error> {
        let inputs = SliceInputs::<E>::from_source(&mut call.inputs);
        let outputs = SliceOutputs::from_source(&mut call.outputs);
        mat_mul::slice(call.context, inputs, self.rows, &self.parts, outputs)
    }
}

/// `BlockcellBiasAddGradAddN`.
struct BiasAddGradAddN;

impl ListsOp for BiasAddGradAddN {
    const OP: &'static Op = &ops::BIAS_ADD_GRAD_ADD_N;

    fn read(_: Attributes<'_>) -> Result<Self, Error> {
        Ok(BiasAddGradAddN)
    }

    fn infer(&self, shapes: &Shapes<'_>, _: Option<&CallInputs<'_>>) -> Result<Inferred, Error> {
        mat_mul::bias_add_grad_add_n_shapes(shapes)
    }

    fn run<E: Element + Pod>(&self, mut call: Call<'_, '_>) -> Result<(), Error> {
        let inputs = BiasInputs::<E>::from_source(&mut call.inputs);
        let outputs = BiasOutputs::from_source(&mut call.outputs);
        mat_mul::bias_add_grad_add_n(call.context, inputs, outputs)
    }
}

/// `BlockcellLSTMCell`.
struct LstmCell {
    attributes: lstm::Attributes,
    columns: GateColumns,
    activations: Activations,
    broadcasts_rows: bool,
}

impl ListsOp for LstmCell {
    const OP: &'static Op = &ops::UNFUSED_LSTM_CELL;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        let cs_prev = attributes.is_given("num_cs_prev")?;
        let peepholes = attributes.count("num_peepholes")?;
        if !matches!((cs_prev, peepholes), (_, 0) | (true, 3) | (false, 1)) {
            let op = Self::OP.name;
            let expected = "num_peepholes must be 0, or 3 with a cs_prev and 1 without".to_owned();
            return Err(Error::Attribute { op, expected, got: peepholes.to_string() });
        }
        attributes.is_given("num_w_h")?;
        Ok(LstmCell {
            attributes: lstm_attributes(attributes, peepholes > 0)?,
            columns: gate_columns(attributes)?,
            activations: activations(attributes)?,
            broadcasts_rows: attributes.flag("broadcasts_rows")?,
        })
    }

    fn infer(&self, shapes: &Shapes<'_>, _: Option<&CallInputs<'_>>) -> Result<Inferred, Error> {
        unfused::lstm_cell_shapes(self.broadcasts_rows, shapes)
    }

    fn scratch(&self, sizes: &Sizes, inputs: &CallInputs<'_>) -> [usize; 2] {
        let cs_prev = inputs.of("cs_prev").first().map(|cs_prev| cs_prev.dims);
        let both = ["x", "h_prev"].map(|name| matrix_size(inputs, name));
        [0, unfused::lstm_cell_scratch(both, sizes.cell_size, cs_prev)]
    }

    fn run<E: Element + Pod>(&self, mut call: Call<'_, '_>) -> Result<(), Error> {
        let inputs = LstmCellInputs::<E>::from_source(&mut call.inputs);
        let outputs = LstmCellOutputs::from_source(&mut call.outputs);
        let (context, attributes) =
            (call.context, (&self.attributes, self.columns, self.activations));
        let memory = call.memory().1;
        unfused::lstm_cell(context, attributes, self.broadcasts_rows, inputs, outputs, memory)
    }
}

fn matrix_size(inputs: &CallInputs<'_>, name: &str) -> (usize, usize) {
    let dims = inputs.one(name).dims;
    (dims[0], dims[1])
}

/// The attributes of an LSTM, as those of `LSTMBlockCell`.
pub(super) fn lstm_attributes(
    attributes: Attributes<'_>,
    use_peephole: bool,
) -> Result<lstm::Attributes, Error> {
    let forget_bias = attributes.float("forget_bias")?;
    Ok(lstm::Attributes { use_peephole, forget_bias, cell_clip: attributes.float("cell_clip")? })
}

/// The attribute `gate_order`.
pub(super) fn gate_columns(attributes: Attributes<'_>) -> Result<GateColumns, Error> {
    GateColumns::new(attributes.op_name(), &attributes.numbers("gate_order")?)
}

/// `BlockcellLSTMCellGrad`.
struct LstmCellGrad(LstmCellGradAttributes);

impl ListsOp for LstmCellGrad {
    const OP: &'static Op = &ops::UNFUSED_LSTM_CELL_GRAD;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        let count = |name| attributes.count(name);
        let (peepholes, through) = (count("num_peepholes")?, count("num_through_peepholes")?);
        let (cs_prev, cs) = (attributes.is_given("num_cs_prev")?, attributes.is_given("num_cs")?);
        let has_one = (cs_prev, peepholes, through) == (false, 1, 0);
        if (peepholes, through) != (3, 2) && !has_one && (peepholes, through, cs) != (0, 0, false) {
            let op = Self::OP.name;
            let expected = "num_peepholes, num_through_peepholes and num_cs must be 0, or with \
                            peepholes 3, 2 and at most 1, or without a cs_prev 1, 0 and at most 1"
                .to_owned();
            let got = format!("{peepholes}, {through} and {}", usize::from(cs));
            return Err(Error::Attribute { op, expected, got });
        }
        Ok(LstmCellGrad(LstmCellGradAttributes {
            sums_to_gates: attributes.flag("sums_to_gates")?,
            sums_to_cs_prev: attributes.flag("sums_to_cs_prev")?,
            sums_to_product: attributes.flag("sums_to_product")?,
            cell_clip: attributes.float("cell_clip")?,
            columns: gate_columns(attributes)?,
            activations: activations(attributes)?,
        }))
    }

    fn infer(&self, shapes: &Shapes<'_>, _: Option<&CallInputs<'_>>) -> Result<Inferred, Error> {
        unfused::lstm_cell_grad_shapes(self.0.sums(), shapes)
    }

    fn scratch(&self, sizes: &Sizes, inputs: &CallInputs<'_>) -> [usize; 2] {
        let gate = (sizes.batch, sizes.cell_size);
        let dims = |name: &str| inputs.of(name).iter().map(|input| input.dims).collect::<Vec<_>>();
        let lists = ["cs_prev", "cs_grad", "h_grad"].map(dims);
        let lists = lists.each_ref().map(Vec::as_slice);
        let peepholes = inputs.of("peepholes").len();
        [0, unfused::lstm_cell_grad_scratch(gate, inputs.one("co").dims, lists, peepholes)]
    }

    fn run<E: Element + Pod>(&self, mut call: Call<'_, '_>) -> Result<(), Error> {
        let inputs = LstmCellGradInputs::<E>::from_source(&mut call.inputs);
        let outputs = LstmCellGradOutputs::from_source(&mut call.outputs);
        unfused::lstm_cell_grad(call.context, &self.0, inputs, outputs, call.memory().1)
    }
}

/// `BlockcellGRUCell`.
struct GruCell(GruAttributes);

impl ListsOp for GruCell {
    const OP: &'static Op = &ops::UNFUSED_GRU_CELL;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        attributes.is_given("num_w_h")?;
        Ok(GruCell(GruAttributes {
            activations: activations(attributes)?,
            update_first: attributes.flag("update_first")?,
            u_weighs_c: attributes.flag("u_weighs_c")?,
            broadcasts_rows: attributes.flag("broadcasts_rows")?,
        }))
    }

    fn infer(&self, shapes: &Shapes<'_>, _: Option<&CallInputs<'_>>) -> Result<Inferred, Error> {
        unfused::gru_cell_shapes(self.0.broadcasts_rows, shapes)
    }

    fn scratch(&self, _: &Sizes, inputs: &CallInputs<'_>) -> [usize; 2] {
        unfused::gru_cell_scratch(["x", "h_prev"].map(|name| matrix_size(inputs, name)))
    }

    fn numbers(&self, inputs: &CallInputs<'_>, _: &[Output<'_>]) -> usize {
        unfused::gru_cell_scratch(["x", "h_prev"].map(|name| matrix_size(inputs, name)))[0]
    }

    fn run<E: Element + Pod>(&self, mut call: Call<'_, '_>) -> Result<(), Error> {
        let inputs = GruCellInputs::<E>::from_source(&mut call.inputs);
        let outputs = GruCellOutputs::from_source(&mut call.outputs);
        unfused::gru_cell(call.context, &self.0, inputs, outputs, call.memory())
    }
}

/// `BlockcellGRUCellGradC`.
struct GruCellGradC(GruAttributes);

impl ListsOp for GruCellGradC {
    const OP: &'static Op = &ops::UNFUSED_GRU_CELL_GRAD_C;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        let u_weighs_c = attributes.flag("u_weighs_c")?;
        let activations = activations(attributes)?;
        Ok(GruCellGradC(GruAttributes { activations, u_weighs_c, ..GruAttributes::default() }))
    }

    fn infer(&self, shapes: &Shapes<'_>, _: Option<&CallInputs<'_>>) -> Result<Inferred, Error> {
        Self::OP.infer(false, shapes)
    }

    fn scratch(&self, sizes: &Sizes, inputs: &CallInputs<'_>) -> [usize; 2] {
        gru_scratch(sizes, inputs.one("d_h"))
    }

    fn run<E: Element + Pod>(&self, mut call: Call<'_, '_>) -> Result<(), Error> {
        let inputs = GruCellGradCInputs::<E>::from_source(&mut call.inputs);
        let outputs = GruCellGradCOutputs::from_source(&mut call.outputs);
        unfused::gru_cell_grad_c(call.context, &self.0, inputs, outputs, call.memory().1)
    }
}

/// `BlockcellGRUCellGradRU`.
struct GruCellGradRu(GruAttributes);

impl ListsOp for GruCellGradRu {
    const OP: &'static Op = &ops::UNFUSED_GRU_CELL_GRAD_RU;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        let update_first = attributes.flag("update_first")?;
        Ok(GruCellGradRu(GruAttributes { update_first, ..GruAttributes::default() }))
    }

    fn infer(&self, shapes: &Shapes<'_>, _: Option<&CallInputs<'_>>) -> Result<Inferred, Error> {
        Self::OP.infer(false, shapes)
    }

    fn scratch(&self, sizes: &Sizes, inputs: &CallInputs<'_>) -> [usize; 2] {
        gru_scratch(sizes, inputs.one("d_hr"))
    }

    fn run<E: Element + Pod>(&self, mut call: Call<'_, '_>) -> Result<(), Error> {
        let inputs = GruCellGradRuInputs::<E>::from_source(&mut call.inputs);
        let outputs = GruCellGradRuOutputs::from_source(&mut call.outputs);
        unfused::gru_cell_grad_ru(call.context, &self.0, inputs, outputs, call.memory().1)
    }
}

fn gru_scratch(sizes: &Sizes, gradient: &Input<'_>) -> [usize; 2] {
    [0, unfused::gru_cell_grad_scratch((sizes.batch, sizes.cell_size), gradient.dims)]
}
