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
pub(crate) mod gru;
pub(crate) mod lstm;
mod partial;

use crate::Error;
use Dim::{
    Batch, Cell, Gates, Input, InputCell, InputCellOrNone, Optional, Time, TimeOrNone, TimeOrOne,
};
use bound::Bound;

pub use block_gru::{BLOCK_GRU, BLOCK_GRU_GRAD};
pub use block_lstm::{BLOCK_LSTM, BLOCK_LSTM_GRAD, BLOCK_LSTM_GRAD_V2, BLOCK_LSTM_V2};
pub use gru::{GRU_BLOCK_CELL, GRU_BLOCK_CELL_GRAD};
pub use lstm::{LSTM_BLOCK_CELL, LSTM_BLOCK_CELL_GRAD};
pub use partial::PartialShape;

/// Every operation that has a kernel.
pub static ALL: [&Op; 10] = [
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
    /// `input_size + cell_size`, the rows of a weight matrix: those of x first.
    InputCell,
    /// The same of an output that may have no memory where nobody reads it, and is not computed then.
    InputCellOrNone,
    /// A number of gates times `cell_size`.
    Gates(usize),
    /// The length of the operation's optional vector of this number, from 0 on. It is `cell_size`
    /// where the vector is used, and any number where an attribute says that it is not: peephole
    /// weights without `use_peephole`, and `b_hc` without `reset_after`.
    Optional(usize),
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

/// Element types TensorFlow registers these operations for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataType {
    /// `tf.float32`
    Float,
    /// `tf.float16`
    Half,
}

/// Name and symbolic shape of an input or output.
#[derive(Debug)]
pub struct Tensor {
    /// The name in `tf.raw_ops`.
    pub name: &'static str,
    /// The symbolic shape.
    pub dims: &'static [Dim],
    /// Whether its elements are numbers of time steps, `int64` from 0 to `time`, whatever the
    /// element type of the other tensors is.
    pub is_steps: bool,
}

/// An operation: its name, tensors and element types.
#[derive(Debug)]
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
    /// The element types it has kernels for.
    pub types: &'static [DataType],
    /// Whether it is an operation of TensorFlow's own; otherwise this library defines it.
    pub is_stock: bool,
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
        ALL.into_iter().find(|op| op.name == name)
    }

    /// Checks rank and every dimension of every input.
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
        self.check_count("inputs", self.inputs.len(), shapes.len())?;
        let mut bound = Bound::new(use_optional);
        for (tensor, got) in self.inputs.iter().zip(shapes) {
            if !bound.fits(tensor.dims, got) {
                let expected = bound.describe(tensor.dims);
                return Err(Error::Shape {
                    op: self.name,
                    tensor: tensor.name,
                    expected,
                    got: got.to_vec(),
                });
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
        self.check_kept(sizes, shapes, Keeps::All)
    }

    fn check_kept(
        &'static self,
        sizes: &Sizes,
        shapes: &[&[usize]],
        keeps: Keeps,
    ) -> Result<(), Error> {
        self.check_count("outputs", self.outputs.len(), shapes.len())?;
        for (tensor, &got) in self.outputs.iter().zip(shapes) {
            let expected = tensor.dims.iter().map(|&dim| sizes.of(dim));
            let mut unread = tensor.dims.iter().map(|&dim| sizes.of_unread(dim));
            let is_unread = keeps == Keeps::WhatIsRead && unread.by_ref().eq(got.iter().copied());
            if !is_unread && !expected.clone().eq(got.iter().copied()) {
                let expected = format!("{:?}", expected.collect::<Vec<_>>());
                let (op, got) = (self.name, got.to_vec());
                return Err(Error::Shape { op, tensor: tensor.name, expected, got });
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
        let Some(tensor) = self.inputs.iter().find(|tensor| tensor.is_steps) else {
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
    pub(crate) fn check_scratch<'a>(
        &self,
        needed: usize,
        scratch: &'a mut [f32],
    ) -> Result<&'a mut [f32], Error> {
        let got = scratch.len();
        scratch.get_mut(..needed).ok_or(Error::Scratch { op: self.name, needed, got })
    }

    /// [`Op::check`], [`Op::check_outputs`] and the layouts of a call of the Rust API.
    pub(crate) fn check_views<const I: usize, const O: usize>(
        &'static self,
        use_optional: bool,
        inputs: [View<'_>; I],
        outputs: [View<'_>; O],
        keeps: Keeps,
    ) -> Result<Sizes, Error> {
        let sizes = self.check(use_optional, &inputs.map(|view| view.shape))?;
        self.check_kept(&sizes, &outputs.map(|view| view.shape), keeps)?;
        let tensors = self.inputs.iter().chain(self.outputs);
        match tensors.zip(inputs.iter().chain(&outputs)).find(|(_, view)| !view.standard) {
            Some((tensor, _)) => Err(Error::Layout { op: self.name, tensor: tensor.name }),
            None => Ok(sizes),
        }
    }

    fn check_count(&self, what: &'static str, expected: usize, got: usize) -> Result<(), Error> {
        if expected == got {
            return Ok(());
        }
        Err(Error::Count { op: self.name, what, expected, got })
    }
}

/// What is checked of an array view.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    shape: &'a [usize],
    standard: bool,
}

/// A number, which is a scalar in TensorFlow.
impl From<&usize> for View<'_> {
    fn from(_: &usize) -> Self {
        View { shape: &[], standard: true }
    }
}

impl<'a, S: ndarray::Data, D: ndarray::Dimension> From<&'a ndarray::ArrayBase<S, D>> for View<'a> {
    fn from(array: &'a ndarray::ArrayBase<S, D>) -> Self {
        View { shape: array.shape(), standard: array.is_standard_layout() }
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
