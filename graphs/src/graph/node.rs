//! Nodes of a graph, and how they depend on each other.

use super::attribute::{Attribute, DataType};

/// The number of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// A tensor: an output of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Output {
    /// The node.
    pub node: NodeId,
    /// Which of its outputs.
    pub index: usize,
}

/// One way in which a node depends on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It takes an output of the other as its input of this number.
    Data {
        /// The node that takes it.
        consumer: NodeId,
        /// Which of its inputs.
        input: usize,
        /// Which output of the other node.
        output: usize,
    },
    /// It waits for the other, by a control edge.
    Control {
        /// The node that waits.
        consumer: NodeId,
    },
}

impl Use {
    /// The node that depends on the other.
    #[must_use]
    pub fn consumer(&self) -> NodeId {
        match *self {
            Use::Data { consumer, .. } | Use::Control { consumer } => consumer,
        }
    }
}

/// Where a node was placed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// TensorFlow's name of the device.
    pub name: String,
    /// Whether it is a CPU of this process. Another process may not have the library.
    pub is_local_cpu: bool,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The operation.
    pub op: String,
    /// Where it was placed.
    pub device: Device,
    /// Its attributes, as far as rewrites look at those of its operation ([`super::ops::has_attributes`]).
    pub attributes: Vec<(String, Attribute)>,
    /// The tensors it takes, in the order of its inputs.
    pub inputs: Vec<Output>,
    /// The nodes it waits for.
    pub control_inputs: Vec<NodeId>,
    /// The types of its outputs.
    pub output_types: Vec<DataType>,
    /// Whether it takes the memory of variables, and not only values. Then it may write there.
    pub takes_references: bool,
    /// Whether it may wait for something that happens elsewhere, though its inputs have values.
    pub may_wait: bool,
    /// Whether a step runs it even if nobody reads its outputs.
    pub is_target: bool,
}

impl Node {
    /// Attributes with names of their own.
    pub(crate) fn named<'n>(
        attributes: impl IntoIterator<Item = (&'n str, Attribute)>,
    ) -> Vec<(String, Attribute)> {
        attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The value of an attribute.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Whether an attribute is true. One that the node does not have is false.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.attribute(name) == Some(&Attribute::Bool(true))
    }

    /// A number among the attributes.
    #[must_use]
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.attribute(name) {
            Some(&Attribute::Int(number)) => Some(number),
            _ => None,
        }
    }

    /// The attribute `T`, the type of what the node computes.
    #[must_use]
    pub fn data_type(&self) -> Option<DataType> {
        match self.attribute("T") {
            Some(&Attribute::Type(data_type)) => Some(data_type),
            _ => None,
        }
    }
}
