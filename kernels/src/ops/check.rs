//! The checks of a call's shapes and numbers, and the sizes that follow.

use super::Dim::{
    self, Batch, Cell, Gates, Input, InputCell, InputCellOrNone, Optional, Time, TimeOrNone,
    TimeOrOne,
};
use super::bound::Bound;
use super::{Keeps, Op, Sizes, Tensor};
use crate::Error;
use crate::error::known_shape;

impl Op {
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

    pub(super) fn check_shapes<'s>(
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

    pub(super) fn check_kept<'s>(
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
