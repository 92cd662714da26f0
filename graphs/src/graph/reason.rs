//! Why a place in a graph is not rewritten.

use std::fmt;

use super::{Graph, NodeId};

/// Why a node is not rewritten. Names are those of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A node is on another device than the others.
    Device(String),
    /// The node is compiled by XLA, or selects a kernel by name.
    Kernel(String),
    /// The type is neither float nor half.
    Type,
    /// The node has another consumer.
    Consumer {
        /// The node.
        node: String,
        /// One of its consumers.
        consumer: String,
    },
    /// The node itself is a fetch or a target of the step.
    Target(String),
    /// A tensor may be the memory of a variable that is written before the new node would read it.
    Memory(String),
    /// The graph has an operation that modifies its input in place.
    WritesInput,
    /// The node has fewer inputs than its operation takes. The whole graph is left unchanged.
    Incomplete,
    /// The graph has a cycle without a `NextIteration`.
    Endless,
    /// A slice has a dependency that its product does not have.
    Waits {
        /// The slice.
        slice: String,
    },
    /// A consumer of a tensor of a step may run before all inputs of the step are available.
    Early {
        /// The node that the tensor comes from.
        node: String,
        /// The consumer.
        consumer: String,
    },
    /// An input of a step depends on a part of the step.
    Circle(String),
    /// A step does not match a supported cell.
    Equation {
        /// The part that differs.
        part: &'static str,
        /// The node at which the step is.
        node: String,
    },
    /// A tensor's shape is unknown, or not that of a supported cell.
    Shape(String),
    /// A loop with steps of cells does not match a supported loop.
    Loop {
        /// The part that differs.
        part: &'static str,
        /// The loop's condition.
        node: String,
    },
    /// A loop with steps of cells also computes something else.
    InLoop(String),
    /// Two slices have columns in common, or a slice has no column of the product.
    Overlap,
    /// Slices have different rows, do not begin at the first row, or are not constant.
    Slices(String),
    /// The factors of a sum's products are not divided into parts of equal widths.
    Parts,
    /// A sum may broadcast its inputs: their shapes are not known to be equal.
    Broadcast(String),
    /// The sum has too many inputs that are not products.
    Addends,
    /// A sum has both products and sums over rows.
    Kinds,
    /// A single product whose left factor has other consumers: replacing it saves nothing.
    NothingToSave,
}

impl Reason {
    /// A node has a consumer that prevents the rewrite.
    pub(crate) fn consumer(graph: &Graph, node: NodeId, consumer: NodeId) -> Reason {
        let name = |id| graph.node(id).name.clone();
        Reason::Consumer { node: name(node), consumer: name(consumer) }
    }

    /// A part of the step at a node does not match a supported cell.
    pub(crate) fn equation(graph: &Graph, node: NodeId, part: &'static str) -> Reason {
        Reason::Equation { part, node: graph.node(node).name.clone() }
    }

    /// A consumer of a node may run too early.
    pub(crate) fn early(graph: &Graph, node: NodeId, consumer: NodeId) -> Reason {
        let name = |id| graph.node(id).name.clone();
        Reason::Early { node: name(node), consumer: name(consumer) }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Device(node) => write!(f, "{node} is on another device"),
            Reason::Kernel(node) => {
                write!(f, "{node} is compiled by XLA or selects another kernel")
            }
            Reason::Type => f.write_str("its type is neither float nor half"),
            Reason::Consumer { node, consumer } => write!(f, "{consumer} depends on {node}, too"),
            Reason::Target(node) => write!(f, "{node} is a fetch or a target of the step"),
            Reason::Memory(node) => {
                write!(
                    f,
                    "{node} may be the memory of a variable that is written before the new node would read it"
                )
            }
            Reason::Endless => f.write_str("the graph has a cycle that is not a loop"),
            Reason::Incomplete => {
                f.write_str("it has too few inputs, so the whole graph is left unchanged")
            }
            Reason::WritesInput => {
                f.write_str("the graph has an op that modifies its input in place")
            }
            Reason::Waits { slice } => {
                write!(f, "{slice} has a dependency that the product does not have")
            }
            Reason::Early { node, consumer } => {
                write!(
                    f,
                    "{consumer} consumes {node} and may run before all inputs of the step are available"
                )
            }
            Reason::Circle(node) => {
                write!(f, "an input of {node} depends on a part of the same step")
            }
            Reason::Equation { part, node } => {
                write!(f, "the {part} of the step at {node} does not match a supported cell")
            }
            Reason::Shape(node) => {
                write!(
                    f,
                    "the shape of {node} is unknown, or not that of a cell's weights and bias"
                )
            }
            Reason::Loop { part, node } => {
                write!(f, "the {part} of the loop at {node} does not match a supported loop")
            }
            Reason::InLoop(node) => write!(f, "its iterations also compute {node}"),
            Reason::Overlap => f.write_str("its slices overlap"),
            Reason::Slices(node) => write!(f, "{node} is not a slice of its columns"),
            Reason::Parts => f.write_str("the left factors are concatenated in different ways"),
            Reason::Broadcast(node) => {
                write!(f, "the inputs of the sum {node} may have different shapes")
            }
            Reason::Addends => f.write_str("the sum has too many inputs that are not products"),
            Reason::Kinds => f.write_str("the sum has both products and sums over rows"),
            Reason::NothingToSave => f.write_str("replacing it alone saves nothing"),
        }
    }
}
