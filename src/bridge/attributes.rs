//! The attributes of a node, which the kernels of its operation read once.

use blockcell_kernels::ops::{DataType, Op};
use blockcell_kernels::{Activations, Error, Precision, Weights};

use super::ffi::{AttributeKind, AttributeValue, NodeAttributes};

/// The attribute by which a node says how precise its products are.
const PRECISION: &str = "_blockcell_precision";

/// The attribute by which a node says what its constant weights are packed as.
const WEIGHTS: &str = "_blockcell_weights";

/// `DT_INT64` of TensorFlow's `types.proto`.
const DT_INT64: i64 = 9;

/// The number of a type in TensorFlow's `types.proto`.
pub(super) fn number(of: DataType) -> i32 {
    match of {
        DataType::Float => 1,
        DataType::Double => 2,
        DataType::BFloat16 => 14,
        DataType::Half => 19,
    }
}

/// The attributes of a node of the operation `op`. TensorFlow has checked that each is of the type that
/// the operation gives it, so it is an error only if there is none of its name.
#[derive(Clone, Copy)]
pub(super) struct Attributes<'a> {
    op: &'static Op,
    node: &'a NodeAttributes,
}

impl<'a> Attributes<'a> {
    pub(super) fn new(op: &'static Op, node: &'a NodeAttributes) -> Self {
        Attributes { op, node }
    }

    pub(super) fn op_name(self) -> &'static str {
        self.op.name
    }

    pub(super) fn flag(self, name: &str) -> Result<bool, Error> {
        Ok(self.get(name, AttributeKind::Bool)?.flag)
    }

    pub(super) fn number(self, name: &str) -> Result<i64, Error> {
        Ok(self.get(name, AttributeKind::Int)?.number)
    }

    /// The length of a list of tensors.
    pub(super) fn count(self, name: &str) -> Result<usize, Error> {
        let number = self.number(name)?;
        usize::try_from(number).map_err(|_| Error::Attribute {
            op: self.op.name,
            expected: format!("{name} must not be negative"),
            got: number.to_string(),
        })
    }

    /// The same of a list that has one tensor or none.
    pub(super) fn is_given(self, name: &str) -> Result<bool, Error> {
        match self.count(name)? {
            given @ (0 | 1) => Ok(given == 1),
            got => {
                let (op, expected) = (self.op.name, format!("{name} must be 0 or 1"));
                Err(Error::Attribute { op, expected, got: got.to_string() })
            }
        }
    }

    pub(super) fn float(self, name: &str) -> Result<f32, Error> {
        Ok(self.get(name, AttributeKind::Float)?.real)
    }

    pub(super) fn text(self, name: &str) -> Result<String, Error> {
        Ok(self.get(name, AttributeKind::String)?.text)
    }

    /// How precise the node's products are, if it says so.
    pub(super) fn precision(self) -> Result<Option<Precision>, Error> {
        self.one_of(PRECISION, Precision::ALL, Precision::name)
    }

    /// What the node's constant weights are packed as, if it says so.
    pub(super) fn weights(self) -> Result<Option<Weights>, Error> {
        self.one_of(WEIGHTS, Weights::ALL, Weights::name)
    }

    /// The value whose name an attribute has that a node need not have.
    fn one_of<T: Copy, const N: usize>(
        self,
        attribute: &str,
        all: [T; N],
        name: fn(T) -> &'static str,
    ) -> Result<Option<T>, Error> {
        let Ok(got) = self.text(attribute) else { return Ok(None) };
        match all.into_iter().find(|&value| name(value) == got) {
            Some(value) => Ok(Some(value)),
            None => {
                let names = all.map(name).join(", ");
                let (op, expected) = (self.op.name, format!("{attribute} must be one of {names}"));
                Err(Error::Attribute { op, expected, got })
            }
        }
    }

    pub(super) fn numbers(self, name: &str) -> Result<Vec<i64>, Error> {
        Ok(self.get(name, AttributeKind::Ints)?.numbers)
    }

    /// The element type T, one of those that a kernel was registered for.
    pub(super) fn element_type(self) -> Result<DataType, Error> {
        let value = self.get("T", AttributeKind::Type)?.number;
        let is_it = |&of: &DataType| i64::from(number(of)) == value;
        let types = self.op.types.iter().copied();
        types.into_iter().find(is_it).ok_or(Error::Type { op: self.op.name })
    }

    /// Whether the type attribute `name` is int64.
    pub(super) fn is_int64(self, name: &str) -> Result<bool, Error> {
        Ok(self.get(name, AttributeKind::Type)?.number == DT_INT64)
    }

    fn get(self, name: &str, kind: AttributeKind) -> Result<AttributeValue, Error> {
        let is_declared = self.op.attributes.iter().any(|attribute| attribute.name == name);
        assert!(is_declared || name == "T" || name.starts_with('_'), "{name} is declared");
        let value = self.node.get(name, kind);
        if value.found {
            return Ok(value);
        }
        let expected = format!("a node must have the attribute {name}");
        Err(Error::Attribute { op: self.op.name, expected, got: "none".to_owned() })
    }
}

/// The functions of a cell.
pub(super) fn activations(attributes: Attributes<'_>) -> Result<Activations, Error> {
    let [state, gates] = ["activation", "recurrent_activation"].map(|name| attributes.text(name));
    Activations::new(attributes.op_name(), &state?, &gates?)
}
