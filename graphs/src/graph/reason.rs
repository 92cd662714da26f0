//! Why a place in a graph stays as it is.

use std::fmt;

use super::{Graph, NodeId};

/// Why a node stays as it is. Names are those of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A node has another device than the others.
    Device(String),
    /// The node is for XLA, or asks for a kernel by name.
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
    /// A step asks for the node itself.
    Target(String),
    /// A tensor is the memory of a variable, which may change before it would be read.
    Memory(String),
    /// The graph has an operation that writes into the memory of its input.
    WritesInput,
    /// The node lacks inputs that its operation takes. The whole graph stays.
    Incomplete,
    /// Nodes of the graph depend on themselves, and no `NextIteration` is between.
    Endless,
    /// A slice waits for something that its product need not wait for.
    Waits {
        /// The slice.
        slice: String,
    },
    /// Somebody takes a tensor of a step, and may run before the whole step could.
    Early {
        /// The node that the tensor comes from.
        node: String,
        /// Who takes it.
        consumer: String,
    },
    /// A step takes a tensor that depends on a part of the step.
    Circle(String),
    /// A step has another equation than the cells that are known.
    Equation {
        /// Which part of it.
        part: &'static str,
        /// Where the step is.
        node: String,
    },
    /// A tensor may have another shape than that of the cells that are known.
    Shape(String),
    /// A loop with steps of cells has another part than those that become one node.
    Loop {
        /// Which part.
        part: &'static str,
        /// The loop's condition.
        node: String,
    },
    /// A loop with steps of cells does something else, too.
    InLoop(String),
    /// Two slices have columns in common, or one has none of the product's.
    Overlap,
    /// Slices have other rows than each other, begin at another row than the first, or are not
    /// constant.
    Slices(String),
    /// The factors of a sum's products are not in parts that are equally wide, nor whole.
    Parts,
    /// A sum may broadcast its summands: their shapes are not known to be the same.
    Broadcast(String),
    /// The sum has many more other summands than products.
    Addends,
    /// Products and sums over rows in one sum.
    Kinds,
    /// The left factor of a single product is not put together for it alone, so there is nothing
    /// to save.
    NothingToSave,
}

impl Reason {
    /// That a node has a consumer that is in the way.
    pub(crate) fn consumer(graph: &Graph, node: NodeId, consumer: NodeId) -> Reason {
        let name = |id| graph.node(id).name.clone();
        Reason::Consumer { node: name(node), consumer: name(consumer) }
    }

    /// That a part of the step at a node has another equation.
    pub(crate) fn equation(graph: &Graph, node: NodeId, part: &'static str) -> Reason {
        Reason::Equation { part, node: graph.node(node).name.clone() }
    }

    /// That a consumer of a node may run too early.
    pub(crate) fn early(graph: &Graph, node: NodeId, consumer: NodeId) -> Reason {
        let name = |id| graph.node(id).name.clone();
        Reason::Early { node: name(node), consumer: name(consumer) }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Device(node) => write!(f, "{node} is on another device"),
            Reason::Kernel(node) => write!(f, "{node} is for XLA or asks for another kernel"),
            Reason::Type => f.write_str("its type is neither float nor half"),
            Reason::Consumer { node, consumer } => write!(f, "{consumer} depends on {node}, too"),
            Reason::Target(node) => write!(f, "the step asks for {node}"),
            Reason::Memory(node) => {
                write!(f, "{node} is a variable's memory, which may change before it would be read")
            }
            Reason::Endless => f.write_str("the graph has a circle that is no loop"),
            Reason::Incomplete => f.write_str("it lacks inputs, so the whole graph stays"),
            Reason::WritesInput => {
                f.write_str("an operation of the graph writes into the memory of its input")
            }
            Reason::Waits { slice } => {
                write!(f, "{slice} waits for something that the product does not wait for")
            }
            Reason::Early { node, consumer } => {
                write!(f, "{consumer} takes {node} and may run before the whole step could")
            }
            Reason::Circle(node) => {
                write!(f, "what {node} is computed from depends on a part of its step")
            }
            Reason::Equation { part, node } => {
                write!(
                    f,
                    "the {part} of the step at {node} has another equation than the cells that are known"
                )
            }
            Reason::Shape(node) => {
                write!(
                    f,
                    "the shape of {node} is not known, or not that of a cell's weights and bias"
                )
            }
            Reason::Loop { part, node } => {
                write!(
                    f,
                    "the {part} of the loop at {node} has another form than those that are known"
                )
            }
            Reason::InLoop(node) => write!(f, "its rounds do something else, too: {node}"),
            Reason::Overlap => f.write_str("its slices overlap"),
            Reason::Slices(node) => write!(f, "{node} takes something else than columns of it"),
            Reason::Parts => f.write_str("the left factors are concatenated in different ways"),
            Reason::Broadcast(node) => {
                write!(f, "the summands of {node} may have different shapes")
            }
            Reason::Addends => f.write_str("the sum has many more summands that are no products"),
            Reason::Kinds => f.write_str("the sum has summands of both kinds"),
            Reason::NothingToSave => f.write_str("nothing around it can be saved"),
        }
    }
}
