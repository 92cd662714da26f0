//! Nodes of a graph, and how they depend on each other.

use super::attribute::{Attribute, DataType};
use super::ops;

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
    /// Its attributes, as far as rewrites read those of its operation ([`ops::reads`]).
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
    /// The nodes that it depends on, once for each input and each node that it waits for.
    pub(crate) fn sources(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.inputs.iter().map(|input| input.node).chain(self.control_inputs.iter().copied())
    }

    /// The value of an attribute, which the row of the operation names: others are not in a graph's description.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        debug_assert!(ops::reads(&self.op, name), "no row says that {name} of {} is read", self.op);
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Whether an attribute is true. One that the node does not have is false.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.attribute(name) == Some(&Attribute::Bool(true))
    }

    /// A text among the attributes.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.attribute(name) {
            Some(Attribute::Text(text)) => Some(text),
            _ => None,
        }
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
        self.attribute("T")?.data_type()
    }

    /// A new node of an operation in the place of this one: with its name, its device, and the type that both compute.
    pub(crate) fn like(&self, op: &str, data_type: DataType) -> Node {
        let (name, device) = (self.name.clone(), self.device.clone());
        Node { name, op: op.to_owned(), device, ..Node::default() }.with("T", data_type)
    }

    /// The node with one attribute more.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Attribute>) -> Node {
        self.attributes.push((name.to_owned(), value.into()));
        self
    }
}
