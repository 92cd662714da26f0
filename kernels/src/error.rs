//! Errors of calls.

use std::fmt;

/// The reason why an operation rejected a call. Nothing was computed and no output was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A tensor's rank or one of its dimensions does not match the operation's declaration ([`crate::ops`]), or the
    /// tensors before it.
    Shape {
        /// The operation's name in TensorFlow.
        op: &'static str,
        /// The tensor's name in `tf.raw_ops`.
        tensor: &'static str,
        /// The index in a list of tensors; `None` for a single tensor.
        index: Option<usize>,
        /// The expected shape, in symbols and, if known, in numbers.
        expected: String,
        /// The tensor's shape; `None` is an unknown dimension.
        got: Vec<Option<usize>>,
    },
    /// A slice is not inside the dimension that it is taken from.
    Slice {
        /// The operation's name in TensorFlow.
        op: &'static str,
        /// What is sliced: `"rows"` or `"columns"`.
        what: &'static str,
        /// The begin of the slice.
        begin: i64,
        /// The size of the slice; -1 for the rest.
        size: i64,
        /// The length of the dimension, if it is known.
        dim: Option<usize>,
    },
    /// A size that follows from the inputs does not fit in memory addresses.
    Overflow {
        /// The operation's name in TensorFlow.
        op: &'static str,
        /// The tensor whose size overflows.
        tensor: &'static str,
        /// Its shape in symbols.
        shape: String,
    },
    /// A number of time steps is negative or exceeds `time`.
    Value {
        /// The operation's name in TensorFlow.
        op: &'static str,
        /// The tensor's name in `tf.raw_ops`.
        tensor: &'static str,
        /// The index of the element; `None` for a scalar.
        index: Option<usize>,
        /// The number of steps.
        time: usize,
        /// The number.
        got: i128,
    },
    /// The slice for intermediate values is too short.
    Scratch {
        /// The operation's name in TensorFlow.
        op: &'static str,
        /// The required number of elements.
        needed: usize,
        /// The number of elements it has.
        got: usize,
    },
    /// The number of input or output tensors is not the operation's.
    Count {
        /// The operation's name in TensorFlow.
        op: &'static str,
        /// What was counted: `"inputs"` or `"outputs"`.
        what: &'static str,
        /// The expected number.
        expected: usize,
        /// The actual number.
        got: usize,
    },
    /// A view of the Rust API is not in standard (row-major, gap-free) layout.
    Layout {
        /// The operation's name in TensorFlow.
        op: &'static str,
        /// The tensor's name in `tf.raw_ops`.
        tensor: &'static str,
    },
    /// An attribute has an invalid value.
    Attribute {
        /// The operation's name in TensorFlow.
        op: &'static str,
        /// The attribute's name in `tf.raw_ops`, and its valid values.
        expected: String,
        /// Its value.
        got: String,
    },
    /// A loop has zero iterations, and the shape of its outputs is unknown.
    NoSteps {
        /// The operation's name in TensorFlow.
        op: &'static str,
        /// The number of steps of its input.
        time: usize,
    },
    /// The operation has no kernel for the element type.
    Type {
        /// The operation's name in TensorFlow.
        op: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Shape { op, tensor, index, expected, got } => {
                let tensor = Element(tensor, *index);
                write!(f, "{op}: {tensor} must have shape {expected}, got {}", shape(got))
            }
            Error::Slice { op, what, begin, size, dim } => {
                let dim = known(&[*dim]);
                write!(f, "{op}: {what} {begin} to {begin} + {size} are outside 0 to {dim}")
            }
            Error::Overflow { op, tensor, shape } => {
                write!(f, "{op}: the size of {tensor}, {shape}, is too large")
            }
            Error::Value { op, tensor, index, time, got } => {
                let tensor = Element(tensor, *index);
                write!(f, "{op}: {tensor} must be between 0 and time = {time}, got {got}")
            }
            Error::Scratch { op, needed, got } => {
                write!(f, "{op}: scratch must have {needed} elements, got {got}")
            }
            Error::Count { op, what, expected, got } => {
                write!(f, "{op}: expected {expected} {what}, got {got}")
            }
            Error::Layout { op, tensor } => {
                write!(f, "{op}: {tensor} must be in standard (row-major, gap-free) layout")
            }
            Error::Attribute { op, expected, got } => write!(f, "{op}: {expected}, got {got}"),
            Error::NoSteps { op, time } => write!(
                f,
                "{op}: the loop runs 0 of {time} steps, and the shape of its outputs (h_sizes) is unknown"
            ),
            Error::Type { op } => write!(f, "{op}: no kernel for this element type"),
        }
    }
}

impl Error {
    /// A single tensor has an invalid shape.
    #[must_use]
    pub fn shape(op: &'static str, tensor: &'static str, expected: String, got: &[usize]) -> Self {
        Error::Shape { op, tensor, index: None, expected, got: known_shape(got) }
    }
}

/// A tensor's name, and the place of one of its elements, or in a list of such tensors.
struct Element<'a>(&'a str, Option<usize>);

impl fmt::Display for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Element(name, index) = *self;
        f.write_str(name)?;
        index.map_or(Ok(()), |index| write!(f, "[{index}]"))
    }
}

/// A shape of which everything is known.
pub(crate) fn known_shape(shape: &[usize]) -> Vec<Option<usize>> {
    shape.iter().copied().map(Some).collect()
}

/// The dimensions that are known, with `?` for the others.
pub(crate) fn known(dims: &[Option<usize>]) -> String {
    let dims = dims.iter().map(|dim| dim.map_or("?".to_owned(), |n| n.to_string()));
    dims.collect::<Vec<_>>().join(", ")
}

/// A shape as messages show it: `[3, ?]`.
pub(crate) fn shape(dims: &[Option<usize>]) -> String {
    format!("[{}]", known(dims))
}

impl std::error::Error for Error {}
