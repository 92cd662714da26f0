//! The attributes of a node, which the kernels of its operation read once.

use super::ffi::{AttributeKind, AttributeValue, NodeAttributes};
use blockcell_kernels::Error;

/// `DT_INT64` of TensorFlow's `types.proto`.
const DT_INT64: i64 = 9;

/// A type of a tensor's elements, with its number in TensorFlow's `types.proto`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementType {
    Float = 1,
    Double = 2,
    Half = 19,
}

/// The attributes of a node of the operation `op`. TensorFlow has checked that each is of the type that
/// the operation gives it, so it is an error only if there is none of its name.
#[derive(Clone, Copy)]
pub(super) struct Attributes<'a> {
    op: &'static str,
    node: &'a NodeAttributes,
}

impl<'a> Attributes<'a> {
    pub(super) fn new(op: &'static str, node: &'a NodeAttributes) -> Self {
        Attributes { op, node }
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
            op: self.op,
            expected: format!("{name} must not be negative"),
            got: number.to_string(),
        })
    }

    pub(super) fn float(self, name: &str) -> Result<f32, Error> {
        Ok(self.get(name, AttributeKind::Float)?.real)
    }

    pub(super) fn text(self, name: &str) -> Result<String, Error> {
        Ok(self.get(name, AttributeKind::String)?.text)
    }

    pub(super) fn numbers(self, name: &str) -> Result<Vec<i64>, Error> {
        Ok(self.get(name, AttributeKind::Ints)?.numbers)
    }

    /// The element type T, one of those that a kernel was registered for.
    pub(super) fn element_type(self) -> Result<ElementType, Error> {
        let number = self.get("T", AttributeKind::Type)?.number;
        let is_it = |of: &ElementType| *of as i64 == number;
        let all = [ElementType::Float, ElementType::Double, ElementType::Half];
        all.into_iter().find(is_it).ok_or(Error::Type { op: self.op })
    }

    /// Whether the element type T is half.
    pub(super) fn is_half(self) -> Result<bool, Error> {
        Ok(self.element_type()? == ElementType::Half)
    }

    /// Whether the type attribute `name` is int64.
    pub(super) fn is_int64(self, name: &str) -> Result<bool, Error> {
        Ok(self.get(name, AttributeKind::Type)?.number == DT_INT64)
    }

    fn get(self, name: &str, kind: AttributeKind) -> Result<AttributeValue, Error> {
        let value = self.node.get(name, kind);
        if value.found {
            return Ok(value);
        }
        let expected = format!("a node must have the attribute {name}");
        Err(Error::Attribute { op: self.op, expected, got: "none".to_owned() })
    }
}
