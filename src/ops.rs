//! The shape rules of every operation, once.
//!
//! TensorFlow's shim asks [`Op::check`] for the sizes before it allocates outputs, and the Rust
//! API asks the same table. Names and order of tensors are those of `tf.raw_ops`.

use crate::Error;
use Dim::{Batch, Cell, Gates, Input, InputCell, Wcf, Wci, Wco};

/// One dimension of a tensor, in the symbols of the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dim {
    /// `batch` (B), the number of rows.
    Batch,
    /// `input_size` (D).
    Input,
    /// `cell_size` (C).
    Cell,
    /// `input_size + cell_size`, the rows of a weight matrix: those of x first.
    InputCell,
    /// A number of gates times `cell_size`.
    Gates(usize),
    /// Length of the input gate's peephole weights: `cell_size`, or any without peepholes.
    Wci,
    /// Length of the forget gate's peephole weights: `cell_size`, or any without peepholes.
    Wcf,
    /// Length of the output gate's peephole weights: `cell_size`, or any without peepholes.
    Wco,
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
}

/// An operation: its name, tensors and element types.
#[derive(Debug)]
pub struct Op {
    /// The name in TensorFlow.
    pub name: &'static str,
    /// The inputs in TensorFlow's order.
    pub inputs: &'static [Tensor],
    /// The outputs in TensorFlow's order.
    pub outputs: &'static [Tensor],
    /// The element types it has kernels for.
    pub types: &'static [DataType],
}

const fn tensor(name: &'static str, dims: &'static [Dim]) -> Tensor {
    Tensor { name, dims }
}

/// `GRUBlockCellGrad`: see [`crate::gru::block_cell_grad`].
pub static GRU_BLOCK_CELL_GRAD: Op = Op {
    name: "GRUBlockCellGrad",
    inputs: &[
        tensor("x", &[Batch, Input]),
        tensor("h_prev", &[Batch, Cell]),
        tensor("w_ru", &[InputCell, Gates(2)]),
        tensor("w_c", &[InputCell, Cell]),
        tensor("b_ru", &[Gates(2)]),
        tensor("b_c", &[Cell]),
        tensor("r", &[Batch, Cell]),
        tensor("u", &[Batch, Cell]),
        tensor("c", &[Batch, Cell]),
        tensor("d_h", &[Batch, Cell]),
    ],
    outputs: &[
        tensor("d_x", &[Batch, Input]),
        tensor("d_h_prev", &[Batch, Cell]),
        tensor("d_c_bar", &[Batch, Cell]),
        tensor("d_r_bar_u_bar", &[Batch, Gates(2)]),
    ],
    types: &[DataType::Float],
};

/// `LSTMBlockCellGrad`: see [`crate::lstm::block_cell_grad`].
pub static LSTM_BLOCK_CELL_GRAD: Op = Op {
    name: "LSTMBlockCellGrad",
    inputs: &[
        tensor("x", &[Batch, Input]),
        tensor("cs_prev", &[Batch, Cell]),
        tensor("h_prev", &[Batch, Cell]),
        tensor("w", &[InputCell, Gates(4)]),
        tensor("wci", &[Wci]),
        tensor("wcf", &[Wcf]),
        tensor("wco", &[Wco]),
        tensor("b", &[Gates(4)]),
        tensor("i", &[Batch, Cell]),
        tensor("cs", &[Batch, Cell]),
        tensor("f", &[Batch, Cell]),
        tensor("o", &[Batch, Cell]),
        tensor("ci", &[Batch, Cell]),
        tensor("co", &[Batch, Cell]),
        tensor("cs_grad", &[Batch, Cell]),
        tensor("h_grad", &[Batch, Cell]),
    ],
    outputs: &[
        tensor("cs_prev_grad", &[Batch, Cell]),
        tensor("dicfo", &[Batch, Gates(4)]),
        tensor("wci_grad", &[Wci]),
        tensor("wcf_grad", &[Wcf]),
        tensor("wco_grad", &[Wco]),
    ],
    types: &[DataType::Float, DataType::Half],
};

/// Every operation that has a kernel.
pub static ALL: [&Op; 2] = [&GRU_BLOCK_CELL_GRAD, &LSTM_BLOCK_CELL_GRAD];

/// The numbers behind the symbols of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// `batch` (B).
    pub batch: usize,
    /// `input_size` (D).
    pub input_size: usize,
    /// `cell_size` (C).
    pub cell_size: usize,
    /// Lengths of wci, wcf and wco; `cell_size` each with peepholes.
    pub peephole: [usize; 3],
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
    /// symbol stands alone gives it its number; every later one has to agree.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] for the first tensor that does not fit, [`Error::Overflow`] if a size that
    /// follows from the inputs cannot be addressed, [`Error::Count`] for a wrong number of inputs.
    pub fn check(&'static self, use_peephole: bool, shapes: &[&[usize]]) -> Result<Sizes, Error> {
        self.check_count("inputs", self.inputs.len(), shapes.len())?;
        let mut bound = Bound::new(use_peephole);
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
        for tensor in self.inputs.iter().chain(self.outputs) {
            if bound.bytes(tensor.dims).is_none() {
                let shape = bound.symbols(tensor.dims);
                return Err(Error::Overflow { op: self.name, tensor: tensor.name, shape });
            }
        }
        Ok(bound.sizes())
    }

    /// Checks the outputs of a call whose inputs have `sizes`.
    ///
    /// # Errors
    ///
    /// As [`Op::check`].
    pub fn check_outputs(&'static self, sizes: &Sizes, shapes: &[&[usize]]) -> Result<(), Error> {
        self.check_count("outputs", self.outputs.len(), shapes.len())?;
        for (tensor, &got) in self.outputs.iter().zip(shapes) {
            let expected = tensor.dims.iter().map(|&dim| sizes.of(dim));
            if !expected.clone().eq(got.iter().copied()) {
                let expected = format!("{:?}", expected.collect::<Vec<_>>());
                let (op, got) = (self.name, got.to_vec());
                return Err(Error::Shape { op, tensor: tensor.name, expected, got });
            }
        }
        Ok(())
    }

    /// [`Op::check`], [`Op::check_outputs`] and the layouts of a call of the Rust API.
    pub(crate) fn check_views<const I: usize, const O: usize>(
        &'static self,
        use_peephole: bool,
        inputs: [View<'_>; I],
        outputs: [View<'_>; O],
    ) -> Result<Sizes, Error> {
        let sizes = self.check(use_peephole, &inputs.map(|view| view.shape))?;
        self.check_outputs(&sizes, &outputs.map(|view| view.shape))?;
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
            Batch => self.batch,
            Input => self.input_size,
            Cell => self.cell_size,
            InputCell => self.input_size + self.cell_size,
            Gates(gates) => gates * self.cell_size,
            Wci => self.peephole[0],
            Wcf => self.peephole[1],
            Wco => self.peephole[2],
        }
    }
}

/// Symbols that have a number so far, while the inputs of a call are being read.
struct Bound {
    use_peephole: bool,
    batch: Option<usize>,
    input_size: Option<usize>,
    cell_size: Option<usize>,
    peephole: [Option<usize>; 3],
}

impl Bound {
    fn new(use_peephole: bool) -> Self {
        Bound { use_peephole, batch: None, input_size: None, cell_size: None, peephole: [None; 3] }
    }

    /// The place of a symbol that can be given a number.
    fn slot(&mut self, dim: Dim) -> Option<&mut Option<usize>> {
        match dim {
            Batch => Some(&mut self.batch),
            Input => Some(&mut self.input_size),
            Cell => Some(&mut self.cell_size),
            Wci | Wcf | Wco if self.use_peephole => Some(&mut self.cell_size),
            Wci => Some(&mut self.peephole[0]),
            Wcf => Some(&mut self.peephole[1]),
            Wco => Some(&mut self.peephole[2]),
            InputCell | Gates(_) => None,
        }
    }

    /// The number `dim` stands for, or `None` if it is not known yet or overflows.
    fn value(&self, dim: Dim) -> Option<usize> {
        match dim {
            Batch => self.batch,
            Input => self.input_size,
            Cell => self.cell_size,
            Wci | Wcf | Wco if self.use_peephole => self.cell_size,
            Wci => self.peephole[0],
            Wcf => self.peephole[1],
            Wco => self.peephole[2],
            InputCell => self.input_size?.checked_add(self.cell_size?),
            Gates(gates) => self.cell_size?.checked_mul(gates),
        }
    }

    /// Whether `got` is a shape that `dims` allow; symbols without a number take it from `got`.
    ///
    /// Only a shape that fits as a whole binds symbols, so that a message about a tensor never
    /// presents the tensor's own wrong dimensions as expected.
    fn fits(&mut self, dims: &[Dim], got: &[usize]) -> bool {
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

    /// Size in bytes at the largest element type, if that can be addressed.
    ///
    /// Zeros do not count: as NumPy and `ndarray` have it, no part of a shape may overflow.
    fn bytes(&self, dims: &[Dim]) -> Option<usize> {
        let size = dims
            .iter()
            .try_fold(size_of::<f32>(), |size, &dim| size.checked_mul(self.value(dim)?.max(1)))?;
        isize::try_from(size).ok().map(|_| size)
    }

    /// `[batch, 2 * cell_size] = [3, 8]`; without numbers if none is known, `?` for an unknown one.
    fn describe(&self, dims: &[Dim]) -> String {
        let values: Vec<_> = dims.iter().map(|&dim| self.value(dim)).collect();
        if values.iter().all(Option::is_none) {
            return self.symbols(dims);
        }
        let numbers: Vec<_> =
            values.iter().map(|v| v.map_or("?".to_owned(), |n| n.to_string())).collect();
        format!("{} = [{}]", self.symbols(dims), numbers.join(", "))
    }

    /// `[batch, 2 * cell_size]`
    fn symbols(&self, dims: &[Dim]) -> String {
        let names: Vec<_> = dims
            .iter()
            .map(|dim| match dim {
                Batch => "batch".to_owned(),
                Input => "input_size".to_owned(),
                InputCell => "input_size + cell_size".to_owned(),
                Gates(gates) => format!("{gates} * cell_size"),
                Wci | Wcf | Wco if !self.use_peephole => "any length".to_owned(),
                Cell | Wci | Wcf | Wco => "cell_size".to_owned(),
            })
            .collect();
        format!("[{}]", names.join(", "))
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            batch: self.batch.unwrap_or(0),
            input_size: self.input_size.unwrap_or(0),
            cell_size: self.cell_size.unwrap_or(0),
            peephole: [Wci, Wcf, Wco].map(|dim| self.value(dim).unwrap_or(0)),
        }
    }
}
