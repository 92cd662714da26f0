//! The declaration of every operation: its tensors, their shapes and the structs that hold them.
//!
//! TensorFlow's shim asks [`Op::check`] for the sizes before it allocates outputs, and the Rust
//! API asks the same table. Names and order of tensors are those of `tf.raw_ops`.

// Its macros are in scope from here on.
#[macro_use]
mod declare;

pub(crate) mod block_gru;
pub(crate) mod block_lstm;
mod bound;
mod cudnn;
pub(crate) mod gru;
mod help;
mod lists;
pub(crate) mod loops;
pub(crate) mod lstm;
pub(crate) mod partial;
pub(crate) mod products;
pub(crate) mod unfused;
pub(crate) mod views;

use crate::Error;
use crate::error::known_shape;
use Dim::{
    Batch, Cell, Gates, Input, InputCell, InputCellOrNone, Optional, Time, TimeOrNone, TimeOrOne,
};
use bound::Bound;

pub use block_gru::{BLOCK_GRU, BLOCK_GRU_GRAD};
pub use block_lstm::{BLOCK_LSTM, BLOCK_LSTM_GRAD, BLOCK_LSTM_GRAD_V2, BLOCK_LSTM_V2};
pub use cudnn::*;
pub use gru::{GRU_BLOCK_CELL, GRU_BLOCK_CELL_GRAD};
pub use lists::{Inferred, KnownSizes, Lengths, Lists};
pub use loops::{GRU_LAYER, KERAS_GRU, KERAS_LSTM, LSTM_LAYER};
pub use lstm::{LSTM_BLOCK_CELL, LSTM_BLOCK_CELL_GRAD};
pub use partial::PartialShape;
pub use products::{BIAS_ADD_GRAD_ADD_N, MAT_MUL_ADD_N, MAT_MUL_SLICE};
pub use unfused::{
    UNFUSED_GRU_CELL, UNFUSED_GRU_CELL_GRAD_C, UNFUSED_GRU_CELL_GRAD_RU, UNFUSED_LSTM_CELL,
    UNFUSED_LSTM_CELL_GRAD,
};

/// The operations on single cells and on sequences, which have no lists.
pub static BLOCK: [&Op; 10] = [
    &GRU_BLOCK_CELL,
    &GRU_BLOCK_CELL_GRAD,
    &LSTM_BLOCK_CELL,
    &LSTM_BLOCK_CELL_GRAD,
    &BLOCK_LSTM,
    &BLOCK_LSTM_V2,
    &BLOCK_LSTM_GRAD,
    &BLOCK_LSTM_GRAD_V2,
    &BLOCK_GRU,
    &BLOCK_GRU_GRAD,
];

/// The operations that this library puts into graphs.
pub static GRAPH: [&Op; 12] = [
    &MAT_MUL_ADD_N,
    &MAT_MUL_SLICE,
    &BIAS_ADD_GRAD_ADD_N,
    &UNFUSED_LSTM_CELL,
    &UNFUSED_LSTM_CELL_GRAD,
    &UNFUSED_GRU_CELL,
    &UNFUSED_GRU_CELL_GRAD_C,
    &UNFUSED_GRU_CELL_GRAD_RU,
    &LSTM_LAYER,
    &GRU_LAYER,
    &KERAS_LSTM,
    &KERAS_GRU,
];

/// `BlockcellInfo`: tells about the library.
pub static INFO: Op = Op {
    name: "BlockcellInfo",
    inputs: &[],
    in_place: &[],
    outputs: &[Tensor {
        name: "info",
        elements: Elements::Text,
        doc: &[
            " A JSON object: `version` of the library; `tensorflow_built_for` and `tensorflow_running`, the latter null",
            " if not known; `isa`, the instruction set in use (\"avx512\", \"avx2\" or \"portable\"); `ops`, the operations",
            " that have a kernel under the label \"blockcell\"; `override`, how unlabelled nodes reach them (\"priority\",",
            " \"graph_pass\" or \"off\"); `taken_over`, the operations for which they do; `cudnn`, whether there are",
            " kernels of the operations CudnnRNN (\"on\" or \"off\"); `rewrite`, whether graphs are rewritten (\"on\" or",
            " \"off\"); `rewritten`, an object that has for each op that can take the place of others the number of such",
            " nodes in this process.",
        ],
        ..Tensor::T
    }],
    attributes: &[],
    types: &[],
    is_stock: false,
    is_stateful: true,
    doc: &[" Describes the loaded libblockcell."],
};

/// Every operation that has kernels.
pub fn all() -> impl Iterator<Item = &'static Op> {
    BLOCK.into_iter().chain(GRAPH).chain(&CUDNN).chain([&INFO])
}

/// One dimension of a tensor, in the symbols of the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dim {
    /// `time` (T) of an output that may have the memory of one step where nobody reads it ([`Keeps`]).
    TimeOrOne,
    /// `time` (T) of an output that may have no memory where nobody reads it, and is not computed then.
    TimeOrNone,
    /// `time` (T), the number of steps.
    Time,
    /// `batch` (B), the number of rows.
    Batch,
    /// `input_size` (D).
    Input,
    /// `cell_size` (C).
    Cell,
    /// The width of an output, which a projection may make narrower than the state.
    Output,
    /// `input_size + cell_size`, the rows of a weight matrix: those of x first.
    InputCell,
    /// `input_size + output_size`, the same with a projection.
    InputOutput,
    /// The same of an output that may have no memory where nobody reads it, and is not computed then.
    InputCellOrNone,
    /// A number of gates times `cell_size`.
    Gates(usize),
    /// The length of the operation's optional vector of this number, from 0 on. It is `cell_size`
    /// where the vector is used, and any number where an attribute says that it is not: peephole
    /// weights without `use_peephole`, and `b_hc` without `reset_after`.
    Optional(usize),
    /// Any number, under the name that documentation gives it.
    Any(&'static str),
}

/// Which outputs of a sequence the caller reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// All of them.
    All,
    /// Those that have memory as if all were read. Others have as little as their dimensions allow, such as
    /// [`Dim::TimeOrOne`], and nobody knows then what is in it.
    WhatIsRead,
}

/// Element types that operations have kernels for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataType {
    /// `tf.float16`
    Half,
    /// `tf.float32`
    Float,
    /// `tf.float64`
    Double,
}

impl DataType {
    /// The name in an `OpDef`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DataType::Half => "half",
            DataType::Float => "float",
            DataType::Double => "double",
        }
    }
}

/// What the elements of a tensor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Numbers of the operation's element type T.
    T,
    /// Numbers of time steps, `int64` from 0 to `time`.
    Steps,
    /// `int8`
    Int8,
    /// `int32`
    Int32,
    /// `bool`
    Bool,
    /// `string`
    Text,
    /// Numbers of the integer type S.
    S,
}

/// What the dimensions of a [`Tensor`] say of its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// It is these.
    Exact,
    /// It broadcasts to these.
    Broadcasts,
    /// The operation's own check knows more than they say.
    Checked,
}

/// When an operation reads the values of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// In every call.
    Always,
    /// Where the optional vectors are used ([`Dim::Optional`]).
    WithOptional,
    /// Never; its shape is checked.
    Never,
}

/// An input or output, or a list of them.
#[derive(Clone, Copy, Debug)]
pub struct Tensor {
    /// The name in `tf.raw_ops`.
    pub name: &'static str,
    /// The attribute that tells how many tensors a list has; `None` for a single tensor.
    pub list: Option<&'static str>,
    /// The symbolic shape.
    pub dims: &'static [Dim],
    /// What it says.
    pub shape: Shape,
    /// The type of its elements.
    pub elements: Elements,
    /// When its values are read.
    pub read: Read,
    /// What it is, by lines.
    pub doc: &'static [&'static str],
}

impl Tensor {
    /// A tensor of element type T without a name: what declarations start from.
    pub(crate) const T: Tensor = Tensor {
        name: "",
        list: None,
        dims: &[],
        shape: Shape::Exact,
        elements: Elements::T,
        read: Read::Always,
        doc: &[],
    };

    /// Whether its elements are numbers of time steps.
    #[must_use]
    pub fn is_steps(&self) -> bool {
        self.elements == Elements::Steps
    }

    /// The type in an `OpDef`, such as `int64` or `P * T`.
    #[must_use]
    pub fn op_def_type(&self) -> String {
        let elements = match self.elements {
            Elements::T => "T",
            Elements::Steps => "int64",
            Elements::Int8 => "int8",
            Elements::Int32 => "int32",
            Elements::Bool => "bool",
            Elements::Text => "string",
            Elements::S => "S",
        };
        self.list.map_or_else(|| elements.to_owned(), |list| format!("{list} * {elements}"))
    }
}

/// An attribute, beside the element type T.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// The name in `tf.raw_ops`.
    pub name: &'static str,
    /// Type and default as in an `OpDef`, such as `float = 1.0` or `int >= 0`.
    pub kind: &'static str,
    /// What it is, by lines.
    pub doc: &'static [&'static str],
}

/// An operation: its name, tensors, attributes and element types.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// The name in TensorFlow.
    pub name: &'static str,
    /// The inputs in TensorFlow's order.
    pub inputs: &'static [Tensor],
    /// The names of the inputs whose memory the kernel overwrites, in the order of `inputs`. The
    /// caller gives them up, or passes copies.
    pub in_place: &'static [&'static str],
    /// The outputs in TensorFlow's order.
    pub outputs: &'static [Tensor],
    /// The attributes, but for the element type T.
    pub attributes: &'static [Attribute],
    /// The element types it has kernels for; none if it has no T.
    pub types: &'static [DataType],
    /// Whether it is an operation of TensorFlow's own, for which it may have kernels; otherwise this library defines it.
    pub is_stock: bool,
    /// Whether calls with the same inputs may have other results.
    pub is_stateful: bool,
    /// What it computes, by lines.
    pub doc: &'static [&'static str],
}

/// Where the tensors of a call come from that are known by their order alone, as they are outside of
/// Rust. Each struct of views has a function `from_source` that takes its fields from one.
pub trait Source<T> {
    /// The next tensor, as a field of such a struct.
    ///
    /// # Panics
    ///
    /// It may panic if there is none left, or if the tensor is not a `T`.
    fn next(&mut self) -> T;
}

/// The numbers behind the symbols of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// `time` (T); 0 for the operations of one step.
    pub time: usize,
    /// `batch` (B).
    pub batch: usize,
    /// `input_size` (D).
    pub input_size: usize,
    /// `cell_size` (C).
    pub cell_size: usize,
    /// Lengths of the optional vectors ([`Dim::Optional`]); `cell_size` each where they are used.
    pub optional: [usize; 3],
}

impl Op {
    /// The operation TensorFlow calls `name`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Op> {
        all().find(|op| op.name == name)
    }

    /// Checks rank and every dimension of every input of an operation without lists.
    ///
    /// `shapes` are the shapes of all inputs in the operation's order. The first tensor in which a
    /// symbol stands alone gives it its number; every later one has to agree. `use_optional` tells
    /// whether the optional vectors are used: `use_peephole` of the LSTM operations, `reset_after`
    /// of the GRU sequence operations.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] for the first tensor that does not fit, [`Error::Overflow`] if a size that
    /// follows from the inputs cannot be addressed, [`Error::Count`] for a wrong number of inputs.
    pub fn check(&'static self, use_optional: bool, shapes: &[&[usize]]) -> Result<Sizes, Error> {
        self.check_shapes(use_optional, shapes.len(), |n| shapes[n])
    }

    fn check_shapes<'s>(
        &'static self,
        use_optional: bool,
        count: usize,
        shape: impl Fn(usize) -> &'s [usize],
    ) -> Result<Sizes, Error> {
        self.check_count("inputs", self.inputs.len(), count)?;
        let mut bound = Bound::new(use_optional);
        for (n, tensor) in self.inputs.iter().enumerate() {
            if !bound.fits(tensor.dims, shape(n)) {
                let expected = bound.describe(tensor.dims);
                return Err(tensor.shape_error(self, None, expected, known_shape(shape(n))));
            }
        }
        if bound.is_small() {
            return Ok(bound.sizes());
        }
        let mut tensors = self.inputs.iter().chain(self.outputs);
        match tensors.find(|tensor| bound.bytes(tensor).is_none()) {
            Some(&Tensor { name: tensor, dims, .. }) => {
                let shape = bound.symbols(dims);
                Err(Error::Overflow { op: self.name, tensor, shape })
            }
            None => Ok(bound.sizes()),
        }
    }

    /// Checks the outputs of a call whose inputs have `sizes`: all of them are to be kept.
    ///
    /// # Errors
    ///
    /// As [`Op::check`].
    pub fn check_outputs(&'static self, sizes: &Sizes, shapes: &[&[usize]]) -> Result<(), Error> {
        self.check_kept(sizes, shapes.len(), |n| shapes[n], Keeps::All)
    }

    fn check_kept<'s>(
        &'static self,
        sizes: &Sizes,
        count: usize,
        shape: impl Fn(usize) -> &'s [usize],
        keeps: Keeps,
    ) -> Result<(), Error> {
        self.check_count("outputs", self.outputs.len(), count)?;
        for (n, tensor) in self.outputs.iter().enumerate() {
            let got = shape(n);
            let expected = tensor.dims.iter().map(|&dim| sizes.of(dim));
            let mut unread = tensor.dims.iter().map(|&dim| sizes.of_unread(dim));
            let is_unread = keeps == Keeps::WhatIsRead && unread.by_ref().eq(got.iter().copied());
            if !is_unread && !expected.clone().eq(got.iter().copied()) {
                let expected = format!("{:?}", expected.collect::<Vec<_>>());
                return Err(tensor.shape_error(self, None, expected, known_shape(got)));
            }
        }
        Ok(())
    }

    /// Checks the numbers of time steps that the input with [`Tensor::is_steps`] holds, if the
    /// operation has one.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] for the first number that is negative or above `sizes.time`.
    pub fn check_steps(
        &'static self,
        sizes: &Sizes,
        steps: impl IntoIterator<Item = i128>,
    ) -> Result<(), Error> {
        let Some(tensor) = self.inputs.iter().find(|tensor| tensor.is_steps()) else {
            return Ok(());
        };
        let time = sizes.time;
        let possible = |&(_, got): &(usize, i128)| usize::try_from(got).is_ok_and(|n| n <= time);
        match steps.into_iter().enumerate().find(|step| !possible(step)) {
            None => Ok(()),
            Some((n, got)) => Err(Error::Value {
                op: self.name,
                tensor: tensor.name,
                index: (!tensor.dims.is_empty()).then_some(n),
                time,
                got,
            }),
        }
    }

    /// The first `needed` elements of the memory for intermediate values.
    pub(crate) fn check_scratch<'a, E>(
        &self,
        needed: usize,
        scratch: &'a mut [E],
    ) -> Result<&'a mut [E], Error> {
        let got = scratch.len();
        scratch.get_mut(..needed).ok_or(Error::Scratch { op: self.name, needed, got })
    }

    pub(crate) fn check_count(
        &self,
        what: &'static str,
        expected: usize,
        got: usize,
    ) -> Result<(), Error> {
        if expected == got {
            return Ok(());
        }
        Err(Error::Count { op: self.name, what, expected, got })
    }
}

impl Sizes {
    /// The number that `dim` stands for.
    #[must_use]
    pub fn of(&self, dim: Dim) -> usize {
        match dim {
            Time | TimeOrOne | TimeOrNone => self.time,
            Batch => self.batch,
            Input => self.input_size,
            Cell => self.cell_size,
            InputCell | InputCellOrNone => self.input_size.saturating_add(self.cell_size),
            Gates(gates) => self.cell_size.saturating_mul(gates),
            Optional(n) => self.optional[n],
            Dim::Output | Dim::InputOutput | Dim::Any(_) => {
                unreachable!("only operations with lists have such dimensions")
            }
        }
    }

    /// The number that `dim` stands for in an output that nobody reads.
    #[must_use]
    pub fn of_unread(&self, dim: Dim) -> usize {
        match dim {
            TimeOrOne => self.time.min(1),
            TimeOrNone | InputCellOrNone => 0,
            _ => self.of(dim),
        }
    }
}

#[cfg(test)]
mod tests;
