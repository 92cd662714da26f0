//! What a node says of itself beside its inputs: attributes, types and constants.

/// An element type, by TensorFlow's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataType(pub i32);

impl DataType {
    /// `tf.float32`
    pub const FLOAT: DataType = DataType(1);
    /// `tf.int32`
    pub const INT32: DataType = DataType(3);
    /// `tf.int64`
    pub const INT64: DataType = DataType(9);
    /// `tf.bool`
    pub const BOOL: DataType = DataType(10);
    /// `tf.variant`
    pub const VARIANT: DataType = DataType(21);
    /// `tf.float16`
    pub const HALF: DataType = DataType(19);

    /// TensorFlow adds this to the type of a tensor that is a variable's own memory.
    const REFERENCE: i32 = 100;

    /// The type of a reference to a variable of this type.
    #[must_use]
    pub fn reference(self) -> DataType {
        DataType(self.0 + Self::REFERENCE)
    }

    /// The type without that.
    #[must_use]
    pub fn value(self) -> DataType {
        DataType(self.0 % Self::REFERENCE)
    }

    /// Whether a tensor of this type is a variable's own memory.
    #[must_use]
    pub fn is_reference(self) -> bool {
        self.0 > Self::REFERENCE
    }
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// A truth value.
    Bool(bool),
    /// A number.
    Int(i64),
    /// A floating point number.
    Float(f32),
    /// A string.
    Text(String),
    /// An element type.
    Type(DataType),
    /// A list of element types.
    Types(Vec<DataType>),
    /// A list of numbers.
    Ints(Vec<i64>),
    /// A list of strings.
    Texts(Vec<String>),
    /// A shape, or a list of one: sizes, -1 for those that are not known, or None if not even their number is known.
    Shape(Option<Vec<i64>>),
    /// A constant tensor.
    Constant(Constant),
    /// The name of a function.
    Function(String),
    /// Something that no rewrite looks at.
    Other,
}

impl Attribute {
    /// The element type that it is.
    pub(super) fn data_type(&self) -> Option<DataType> {
        match self {
            Attribute::Type(data_type) => Some(*data_type),
            _ => None,
        }
    }
}

/// Values of Rust as attributes of new nodes.
macro_rules! from {
    ($($variant:ident($type:ty)),+) => {
        $(impl From<$type> for Attribute {
            fn from(value: $type) -> Attribute {
                Attribute::$variant(value)
            }
        })+
    };
}

from!(Bool(bool), Int(i64), Float(f32), Type(DataType), Ints(Vec<i64>));

impl From<usize> for Attribute {
    fn from(count: usize) -> Attribute {
        Attribute::Int(i64::try_from(count).expect("a graph has fewer tensors"))
    }
}

/// A constant tensor. Those that are too large to be of interest come without their values.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// The element type.
    pub data_type: DataType,
    /// The sizes of its dimensions.
    pub shape: Vec<i64>,
    /// The elements, row by row.
    pub values: Values,
}

/// Elements of a constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Of `tf.int32` or `tf.int64`.
    Ints(Vec<i64>),
    /// Of `tf.float32` or `tf.float16`.
    Floats(Vec<f32>),
    /// Of `tf.bool`.
    Bools(Vec<bool>),
    /// Zeros, too many to list them.
    Zeros,
    /// Of another type, or too many.
    Unknown,
}
