//! The operations that this library defines: their tensors, attributes and documentation.
//!
//! The documentation is that of the operation in TensorFlow, which `help()` shows. It is in
//! TensorFlow's form: text, then `name: description` of each tensor and attribute.

use blockcell_kernels::Error;
use blockcell_kernels::mat_mul;
use blockcell_kernels::ops::{self, DataType, Op, PartialShape as Known, Tensor};
use blockcell_kernels::plain as plain_cells;

use super::attributes::Attributes;
use super::ffi::{NodeAttributes, OpDefinition, PartialShape, Shape, Status};
use super::keras;
use super::kernels::describe;
use super::layers;
use super::lists::Lists;
use super::loops::LoopOf;
use super::plain;
use super::products;
use super::status::{guarded, or_default};

/// The shapes of all outputs, as far as they are known.
pub(super) type Shapes = Vec<Vec<Option<usize>>>;

/// An operation that this library defines.
struct OwnOp {
    name: &'static str,
    tensors: Tensors,
    /// `name: type`, or `name: type = default`; without that of T where the tensors come from a table.
    attributes: &'static [&'static str],
    /// Whether calls with the same inputs may have other results.
    is_stateful: bool,
    doc: &'static str,
    /// Checks what is known of the inputs' shapes, and tells what follows for those of the outputs.
    infer: fn(Attributes<'_>, &[Known]) -> Result<Shapes, Error>,
}

/// The inputs and outputs of an operation.
enum Tensors {
    /// Those of its table, of element type T.
    Of(&'static Op),
    /// `name: type` of each input, then of each output.
    Listed(&'static [&'static str], &'static [&'static str]),
}

const KERAS_ATTRIBUTES: &[&str] = &[
    "T: {half, float}",
    "R: int >= 1",
    "M: int >= 0",
    "last_only: bool = false",
    "repeats: bool = true",
    "x_sizes: list(int) = []",
    "h_sizes: list(int) = []",
    "needs_h: bool = true",
];

static ALL: [OwnOp; 15] = [
    OwnOp {
        name: ops::BLOCK_GRU.name,
        tensors: Tensors::Of(&ops::BLOCK_GRU),
        attributes: &["reset_after: bool = false"],
        is_stateful: false,
        doc: include_str!("own_ops/BlockGRU.txt"),
        infer: |attributes, inputs| ops::BLOCK_GRU.infer(attributes.flag("reset_after")?, inputs),
    },
    OwnOp {
        name: ops::BLOCK_GRU_GRAD.name,
        tensors: Tensors::Of(&ops::BLOCK_GRU_GRAD),
        attributes: &["reset_after: bool = false"],
        is_stateful: false,
        doc: include_str!("own_ops/BlockGRUGrad.txt"),
        infer: |attributes, inputs| {
            ops::BLOCK_GRU_GRAD.infer(attributes.flag("reset_after")?, inputs)
        },
    },
    OwnOp {
        name: mat_mul::ADD_N,
        tensors: Tensors::Listed(&["a: M * T", "b: N * T", "addends: A * T"], &["sum: T"]),
        attributes: &["T: {half, float}", "A: int >= 0", "M: int >= 0", "N: int >= 0"],
        is_stateful: false,
        doc: include_str!("own_ops/BlockcellMatMulAddN.txt"),
        infer: of_lists::<products::AddN>,
    },
    OwnOp {
        name: mat_mul::SLICE,
        tensors: Tensors::Listed(&["a: T", "b: T"], &["parts: P * T"]),
        attributes: &[
            "T: {half, float}",
            "P: int >= 1",
            "begins: list(int)",
            "sizes: list(int)",
            "rows: int = -1",
        ],
        is_stateful: false,
        doc: include_str!("own_ops/BlockcellMatMulSlice.txt"),
        infer: of_lists::<products::Slice>,
    },
    OwnOp {
        name: mat_mul::BIAS_ADD_GRAD_ADD_N,
        tensors: Tensors::Listed(&["out_backprop: N * T", "addends: A * T"], &["sum: T"]),
        attributes: &["T: {half, float}", "A: int >= 0", "N: int >= 0"],
        is_stateful: false,
        doc: include_str!("own_ops/BlockcellBiasAddGradAddN.txt"),
        infer: of_lists::<products::BiasAddGradAddN>,
    },
    OwnOp {
        name: plain_cells::LSTM_CELL,
        tensors: Tensors::Listed(
            &["x: T", "h_prev: T", "w: T", "b: T", "cs_prev: C * T", "peepholes: P * T"],
            &["i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "h: T"],
        ),
        attributes: &[
            "T: {half, float}",
            "C: int >= 0",
            "P: int >= 0",
            "forget_bias: float = 1.0",
            "cell_clip: float = -1.0",
        ],
        is_stateful: false,
        doc: include_str!("own_ops/BlockcellLSTMCell.txt"),
        infer: of_lists::<plain::LstmCell>,
    },
    OwnOp {
        name: plain_cells::LSTM_CELL_GRAD,
        tensors: Tensors::Listed(
            &[
                "i: T",
                "f: T",
                "o: T",
                "ci: T",
                "co: T",
                "cs_prev: C * T",
                "cs_grad: A * T",
                "h_grad: H * T",
                "peepholes: P * T",
                "cs: S * T",
            ],
            &["cs_prev_grad: T", "dicfo: T", "through_peepholes: Q * T", "peephole_grads: P * T"],
        ),
        attributes: &[
            "T: {half, float}",
            "C: int >= 0",
            "A: int >= 0",
            "H: int >= 0",
            "P: int >= 0",
            "Q: int >= 0",
            "S: int >= 0",
            "sums_to_gates: bool = false",
            "cell_clip: float = -1.0",
        ],
        is_stateful: false,
        doc: include_str!("own_ops/BlockcellLSTMCellGrad.txt"),
        infer: of_lists::<plain::LstmCellGrad>,
    },
    OwnOp {
        name: plain_cells::GRU_CELL,
        tensors: Tensors::Listed(
            &["x: T", "h_prev: T", "w_ru: T", "w_c: T", "b_ru: T", "b_c: T"],
            &["r: T", "u: T", "c: T", "h: T"],
        ),
        attributes: &["T: {half, float}"],
        is_stateful: false,
        doc: include_str!("own_ops/BlockcellGRUCell.txt"),
        infer: of_lists::<plain::GruCell>,
    },
    OwnOp {
        name: plain_cells::GRU_CELL_GRAD_C,
        tensors: Tensors::Listed(
            &["u: T", "h_prev: T", "c: T", "d_h: T"],
            &["d_c_bar: T", "d_u_bar: T", "d_h_u: T"],
        ),
        attributes: &["T: {half, float}"],
        is_stateful: false,
        doc: include_str!("own_ops/BlockcellGRUCellGradC.txt"),
        infer: of_lists::<plain::GruCellGradC>,
    },
    OwnOp {
        name: plain_cells::GRU_CELL_GRAD_RU,
        tensors: Tensors::Listed(
            &["r: T", "h_prev: T", "d_u_bar: T", "d_hr: T"],
            &["d_r_bar_u_bar: T", "d_hr_r: T"],
        ),
        attributes: &["T: {half, float}"],
        is_stateful: false,
        doc: include_str!("own_ops/BlockcellGRUCellGradRU.txt"),
        infer: of_lists::<plain::GruCellGradRu>,
    },
    OwnOp {
        name: plain_cells::LSTM_LAYER,
        tensors: Tensors::Listed(
            &[
                "time: int32",
                "rounds: R * int32",
                "sequence_length: L * int32",
                "x: T",
                "h_prev: T",
                "cs_prev: T",
                "w: T",
                "b: T",
                "peepholes: P * T",
            ],
            &["h: T", "h_last: T", "cs_last: T"],
        ),
        attributes: &[
            "T: {half, float}",
            "R: int >= 1",
            "L: int >= 0",
            "P: int >= 0",
            "forget_bias: float = 1.0",
            "cell_clip: float = -1.0",
            "x_sizes: list(int) = []",
            "h_sizes: list(int) = []",
            "needs_h: bool = true",
            "lists: bool = false",
        ],
        is_stateful: false,
        doc: include_str!("own_ops/BlockcellLSTMLayer.txt"),
        infer: of_lists::<LoopOf<layers::LstmLayer>>,
    },
    OwnOp {
        name: plain_cells::GRU_LAYER,
        tensors: Tensors::Listed(
            &[
                "time: int32",
                "rounds: R * int32",
                "sequence_length: L * int32",
                "x: T",
                "h_prev: T",
                "w_ru: T",
                "w_c: T",
                "b_ru: T",
                "b_c: T",
            ],
            &["h: T", "h_last: T"],
        ),
        attributes: &[
            "T: {half, float}",
            "R: int >= 1",
            "L: int >= 0",
            "x_sizes: list(int) = []",
            "h_sizes: list(int) = []",
            "needs_h: bool = true",
            "lists: bool = false",
        ],
        is_stateful: false,
        doc: include_str!("own_ops/BlockcellGRULayer.txt"),
        infer: of_lists::<LoopOf<layers::GruLayer>>,
    },
    OwnOp {
        name: plain_cells::KERAS_LSTM,
        tensors: Tensors::Listed(
            &[
                "size: int32",
                "rounds: R * int32",
                "x: T",
                "h_prev: T",
                "cs_prev: T",
                "w_x: T",
                "w_h: T",
                "b: T",
                "mask: M * bool",
                "before: M * T",
            ],
            &["h: T", "h_last: T", "cs_last: T"],
        ),
        attributes: KERAS_ATTRIBUTES,
        is_stateful: false,
        doc: include_str!("own_ops/BlockcellKerasLSTM.txt"),
        infer: of_lists::<LoopOf<keras::KerasLstm>>,
    },
    OwnOp {
        name: plain_cells::KERAS_GRU,
        tensors: Tensors::Listed(
            &[
                "size: int32",
                "rounds: R * int32",
                "x: T",
                "h_prev: T",
                "w_x: T",
                "w_h: T",
                "b_x: T",
                "b_h: T",
                "mask: M * bool",
                "before: M * T",
            ],
            &["h: T", "h_last: T"],
        ),
        attributes: KERAS_ATTRIBUTES,
        is_stateful: false,
        doc: include_str!("own_ops/BlockcellKerasGRU.txt"),
        infer: of_lists::<LoopOf<keras::KerasGru>>,
    },
    OwnOp {
        name: "BlockcellInfo",
        tensors: Tensors::Listed(&[], &["info: string"]),
        attributes: &[],
        is_stateful: true,
        doc: include_str!("own_ops/BlockcellInfo.txt"),
        infer: |_, _| Ok(vec![Vec::new()]),
    },
];

/// What follows for the outputs of an operation whose inputs are lists.
fn of_lists<P: Lists>(attributes: Attributes<'_>, inputs: &[Known]) -> Result<Shapes, Error> {
    P::read(attributes)?.shapes(inputs)
}

pub(super) fn own_ops() -> Vec<OpDefinition> {
    or_default("own_ops", || ALL.iter().map(OwnOp::definition).collect())
}

pub(super) fn infer(
    op: &str,
    attributes: &NodeAttributes,
    inputs: &[PartialShape<'_>],
    outputs: &mut [Shape],
) -> Status {
    guarded(op, || {
        let own = ALL.iter().find(|own| own.name == op).expect("an operation of this library");
        let known = |shape: &PartialShape<'_>| {
            let dims = shape.dims.iter().map(|&dim| usize::try_from(dim).ok());
            shape.has_rank.then(|| dims.collect())
        };
        let inputs: Vec<_> = inputs.iter().map(known).collect();
        let shapes = (own.infer)(Attributes::new(own.name, attributes), &inputs)?;
        for (output, dims) in outputs.iter_mut().zip(shapes) {
            describe(own.name, output, dims.into_iter())?;
        }
        Ok(())
    })
}

impl OwnOp {
    fn definition(&self) -> OpDefinition {
        let owned = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect();
        let mut attributes: Vec<_> = owned(self.attributes);
        let (inputs, outputs) = match self.tensors {
            Tensors::Of(op) => {
                attributes.push(element_type(op));
                (op.inputs.iter().map(tensor).collect(), op.outputs.iter().map(tensor).collect())
            }
            Tensors::Listed(inputs, outputs) => (owned(inputs), owned(outputs)),
        };
        let OwnOp { name, is_stateful, doc, .. } = *self;
        OpDefinition { name, inputs, outputs, attributes, doc, is_stateful }
    }
}

/// A tensor of a table, as `name: type`.
fn tensor(tensor: &Tensor) -> String {
    format!("{}: {}", tensor.name, if tensor.is_steps { "int64" } else { "T" })
}

/// The attribute T of a table.
fn element_type(op: &Op) -> String {
    let all = [(DataType::Half, "half"), (DataType::Float, "float")];
    let names = all.into_iter().filter(|(kind, _)| op.types.contains(kind)).map(|(_, name)| name);
    format!("T: {{{}}}", names.collect::<Vec<_>>().join(", "))
}
