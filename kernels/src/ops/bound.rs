//! Reading the sizes of a call off the shapes of its inputs.

use super::Dim::{
    self, Any, Batch, Cell, Gates, Input, InputCell, InputCellOrNone, InputOutput, Optional,
    Output, Time, TimeOrNone, TimeOrOne,
};
use super::{Sizes, Tensor};
use crate::error::known;

/// Every tensor whose symbols are at most this can be addressed: it has up to three dimensions, each a few times a symbol.
pub(super) const SMALL: usize = 1 << (usize::BITS / 4);

/// Symbols that have a number so far, while the inputs of a call are being read.
#[derive(Clone, PartialEq)]
pub(super) struct Bound {
    use_optional: bool,
    /// Whether weights are those of x alone, as those of the state are a tensor of their own.
    pub(super) apart: bool,
    /// Whether outputs are as wide as the state, as there is no projection though there might be.
    pub(super) is_whole: bool,
    time: Option<usize>,
    batch: Option<usize>,
    input_size: Option<usize>,
    cell_size: Option<usize>,
    output_size: Option<usize>,
    /// `input_size + cell_size` or `input_size + output_size`, where both are unknown.
    pub(super) rows: Option<usize>,
    optional: [Option<usize>; 3],
}

impl Bound {
    pub(super) fn new(use_optional: bool) -> Self {
        Bound {
            use_optional,
            apart: false,
            is_whole: false,
            time: None,
            batch: None,
            input_size: None,
            cell_size: None,
            output_size: None,
            rows: None,
            optional: [None; 3],
        }
    }

    /// The place of a symbol that can be given a number.
    pub(super) fn slot(&mut self, dim: Dim) -> Option<&mut Option<usize>> {
        match dim {
            Time | TimeOrOne | TimeOrNone => Some(&mut self.time),
            Batch => Some(&mut self.batch),
            Input => Some(&mut self.input_size),
            Cell => Some(&mut self.cell_size),
            Output if self.is_whole => Some(&mut self.cell_size),
            Output => Some(&mut self.output_size),
            Optional(_) if self.use_optional => Some(&mut self.cell_size),
            Optional(n) => Some(&mut self.optional[n]),
            InputCell | InputCellOrNone | InputOutput | Gates(_) | Any(_) => None,
        }
    }

    /// The number `dim` stands for, or `None` if it is not known yet or overflows.
    pub(super) fn value(&self, dim: Dim) -> Option<usize> {
        match dim {
            Time | TimeOrOne | TimeOrNone => self.time,
            Batch => self.batch,
            Input => self.input_size,
            Cell => self.cell_size,
            Output if self.is_whole => self.cell_size,
            Output => self.output_size,
            Any(_) => None,
            Optional(_) if self.use_optional => self.cell_size,
            Optional(n) => self.optional[n],
            InputCell | InputCellOrNone => self.rows_of(self.cell_size),
            InputOutput => self.rows_of(self.value(Output)),
            Gates(gates) => self.cell_size?.checked_mul(gates),
        }
    }

    /// The rows of weights for an input, and for a state of this size.
    fn rows_of(&self, state: Option<usize>) -> Option<usize> {
        match (self.input_size, state) {
            (input_size, _) if self.apart => input_size,
            (Some(input_size), Some(state)) => input_size.checked_add(state),
            _ => self.rows,
        }
    }

    /// Whether `got` is a shape that `dims` allow; symbols without a number take it from `got`.
    ///
    /// Only a shape that fits as a whole gives numbers to symbols. So a message never presents a
    /// tensor's own wrong dimensions as expected.
    pub(super) fn fits(&mut self, dims: &[Dim], got: &[usize]) -> bool {
        let fits =
            dims.len() == got.len() && dims.iter().zip(got).all(|(&dim, &n)| self.allows(dim, n));
        if fits {
            for (&dim, &n) in dims.iter().zip(got) {
                if let Some(slot) = self.slot(dim) {
                    *slot = Some(n);
                }
            }
        }
        fits
    }

    fn allows(&mut self, dim: Dim, n: usize) -> bool {
        match self.value(dim) {
            Some(value) => value == n,
            None => self.slot(dim).is_some(),
        }
    }

    /// Whether all numbers so far are so small that every tensor can be addressed, whatever its dimensions. Most calls are
    /// so, and their sizes need not be multiplied.
    pub(super) fn is_small(&self) -> bool {
        let Bound { time, batch, input_size, cell_size, output_size, rows, optional, .. } = self;
        let numbers = [time, batch, input_size, cell_size, output_size, rows];
        let numbers = numbers.into_iter().chain(optional);
        numbers.flatten().all(|&number| number <= SMALL)
    }

    /// Size in bytes at the largest element type, if that can be addressed.
    ///
    /// A dimension of 0 counts as 1, as in NumPy and `ndarray`: the product of the others must not
    /// overflow either.
    pub(super) fn bytes(&self, tensor: &Tensor) -> Option<usize> {
        let element = if tensor.is_steps() { size_of::<i64>() } else { size_of::<f32>() };
        let size = tensor
            .dims
            .iter()
            .try_fold(element, |size, &dim| size.checked_mul(self.value(dim)?.max(1)))?;
        isize::try_from(size).ok().map(|_| size)
    }

    /// `[batch, 2 * cell_size] = [3, 8]`; without numbers if none is known, `?` for an unknown one.
    pub(super) fn describe(&self, dims: &[Dim]) -> String {
        let values: Vec<_> = dims.iter().map(|&dim| self.value(dim)).collect();
        if values.iter().all(Option::is_none) {
            return self.symbols(dims);
        }
        format!("{} = [{}]", self.symbols(dims), known(&values))
    }

    /// `[batch, 2 * cell_size]`
    pub(super) fn symbols(&self, dims: &[Dim]) -> String {
        let name = |dim: &Dim| match dim {
            Optional(_) if !self.use_optional => "any length".to_owned(),
            InputCell | InputOutput if self.apart => Input.to_string(),
            InputOutput if self.is_whole => InputCell.to_string(),
            Output if self.is_whole => Cell.to_string(),
            _ => dim.to_string(),
        };
        format!("[{}]", dims.iter().map(name).collect::<Vec<_>>().join(", "))
    }

    pub(super) fn sizes(&self) -> Sizes {
        Sizes {
            time: self.time.unwrap_or(0),
            batch: self.batch.unwrap_or(0),
            input_size: self.input_size.unwrap_or(0),
            cell_size: self.cell_size.unwrap_or(0),
            optional: [0, 1, 2].map(|n| self.value(Optional(n)).unwrap_or(0)),
        }
    }
}
