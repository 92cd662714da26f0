//! What a declaration says of an operation, its tensors and attributes.

use Dim::Optional;

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
    /// `tf.bfloat16`
    BFloat16,
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
            DataType::BFloat16 => "bfloat16",
            DataType::Half => "half",
            DataType::Float => "float",
            DataType::Double => "double",
        }
    }

    /// The bytes of an element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            DataType::BFloat16 | DataType::Half => 2,
            DataType::Float => 4,
            DataType::Double => 8,
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

/// What a declaration says of a tensor by one word.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Word {
    /// Elements of type T, and a shape that is just so.
    T,
    /// Numbers of time steps.
    Steps,
    /// int32
    Int32,
    /// int32 numbers of time steps, one for each row or one for all.
    Lengths,
    /// bool
    Bool,
    /// Values that the operation never reads.
    Unread,
    /// Values that are read only where the optional vectors are used.
    Switched,
    /// A shape that broadcasts to the one that follows.
    Broadcast,
    /// A shape that the operation's own check knows more about.
    Checked,
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

    /// A tensor without a name, of which a word says this.
    pub(crate) const fn of(word: Word) -> Tensor {
        let (mut elements, mut shape, mut read) = (Elements::T, Shape::Exact, Read::Always);
        match word {
            Word::T => {}
            Word::Steps => elements = Elements::Steps,
            Word::Int32 => elements = Elements::Int32,
            Word::Lengths => (elements, shape) = (Elements::Int32, Shape::Checked),
            Word::Bool => elements = Elements::Bool,
            Word::Unread => read = Read::Never,
            Word::Switched => read = Read::WithOptional,
            Word::Broadcast => shape = Shape::Broadcasts,
            Word::Checked => shape = Shape::Checked,
        }
        Tensor { elements, shape, read, ..Tensor::T }
    }

    /// When its values are read: those of an optional vector only where it is used.
    #[must_use]
    pub fn read(&self) -> Read {
        let is_optional = self.dims.iter().any(|dim| matches!(dim, Optional(_)));
        if is_optional && self.read == Read::Always { Read::WithOptional } else { self.read }
    }

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
