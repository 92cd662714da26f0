//! What can be known of shapes before a graph runs, as far as rewrites need it.
//!
//! TensorFlow's own inference knows nothing of what comes from the stacks of a loop's gradient.
//! Here the rules of the cells help: their kernels check that the gradient of the weights, as the
//! product of x and h_prev with the gradient of the gates, has the shape of the weights.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use crate::graph::order::order;
use crate::graph::{Attribute, Graph, Node, NodeId, Output};
use crate::reading::constants::{constant, integers};
use crate::reading::products::parameter_of_gradient;

/// How often to look at each node, on average, before giving up.
const MOST_VISITS: usize = 20;

/// What is known of the shape of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    /// Nothing yet: it comes from a round of a loop that was not followed so far.
    Open,
    /// The sizes.
    Sizes(Vec<i64>),
    /// That it is the shape of this tensor, at worst of the tensor itself.
    Like(Output),
}

/// The shapes of all tensors of a graph. Whether two are the same holds for tensors of one frame,
/// whenever both have a value.
#[derive(Debug)]
pub(crate) struct Shapes {
    /// By node: the shape of its first output, or of all outputs of a `Switch`, `Split` or `Unpack`.
    shapes: Vec<Shape>,
}

/// The shapes of a graph, inferred when somebody asks for them. What came into the graph after that has unknown ones.
#[derive(Debug, Default)]
pub(crate) struct LazyShapes(OnceCell<Shapes>);

impl LazyShapes {
    pub(crate) fn of(&self, graph: &Graph) -> &Shapes {
        self.0.get_or_init(|| Shapes::of(graph))
    }
}

impl Shapes {
    /// Infers the shapes of a graph.
    ///
    /// By induction over the rounds of a loop: what enters a loop has its shape in all rounds if what
    /// comes from a round has that shape whenever the round began with it. So the first guess is that
    /// a `Merge` has the shape of what enters; guesses that turn out wrong are given up, and what was
    /// inferred from them is inferred again.
    pub(crate) fn of(graph: &Graph) -> Shapes {
        let order = order(graph);
        let mut place = vec![0; graph.len()];
        for (number, id) in order.iter().enumerate() {
            place[id.0] = number;
        }
        let mut shapes = Shapes { shapes: vec![Shape::Open; graph.len()] };
        let mut open: BTreeSet<_> = (0..order.len()).collect();
        let mut visits = MOST_VISITS * order.len();
        while let Some(number) = open.pop_first() {
            let id = order[number];
            let shape = shapes.infer(graph, id);
            if shape == shapes.shapes[id.0] {
                continue;
            }
            shapes.shapes[id.0] = shape;
            open.extend(graph.data_consumers(id).map(|consumer| place[consumer.0]));
            visits -= 1;
            if visits == 0 {
                return Shapes::unknown(graph);
            }
        }
        shapes
    }

    /// Whether two tensors certainly have the same shape.
    pub(crate) fn are_same(&self, graph: &Graph, left: Output, right: Output) -> bool {
        let shape = self.of_tensor(graph, left);
        shape != Shape::Open && shape == self.of_tensor(graph, right)
    }

    /// The sizes of a tensor, if they are known.
    pub(crate) fn sizes(&self, graph: &Graph, tensor: Output) -> Option<Vec<i64>> {
        match self.of_tensor(graph, tensor) {
            Shape::Sizes(sizes) => Some(sizes),
            _ => None,
        }
    }

    /// That nothing is known.
    fn unknown(graph: &Graph) -> Shapes {
        let shapes =
            (0..graph.len()).map(|node| Shape::Like(Output { node: NodeId(node), index: 0 }));
        Shapes { shapes: shapes.collect() }
    }

    fn of_tensor(&self, graph: &Graph, tensor: Output) -> Shape {
        let has_one = |op| matches!(op, "RefSwitch" | "Split" | "Switch" | "Unpack");
        let is_known = tensor.index == 0 || has_one(graph.op(tensor.node));
        // Nodes that were added since are not looked at.
        let shape = self.shapes.get(tensor.node.0).filter(|_| is_known);
        shape.cloned().unwrap_or(Shape::Like(tensor))
    }

    /// The shape of a node's first output, from what is known of its inputs.
    fn infer(&self, graph: &Graph, id: NodeId) -> Shape {
        let tensor = Output { node: id, index: 0 };
        let node = graph.node(id);
        let input = |number: usize| self.of_tensor(graph, node.inputs[number]);
        let sizes_or_itself = |shape| match shape {
            Shape::Like(_) => Shape::Like(tensor),
            known => known,
        };
        match node.op.as_str() {
            "Const" => sizes_or_like(constant(graph, tensor).map(|value| &value.shape[..]), tensor),
            "VariableV2" | "Variable" | "VarHandleOp" => of_variable(graph, tensor, "shape"),
            "Placeholder" => of_variable(graph, tensor, "shape"),
            // A function takes the variables that it reads, and tensors that it was made for.
            "_Arg" if node.attribute("_handle_shapes").is_some() => {
                of_variable(graph, tensor, "_handle_shapes")
            }
            "_Arg" => of_variable(graph, tensor, "_output_shapes"),
            "Fill" => sizes_or_like(integers(graph, node.inputs[0]), tensor),
            "Merge" => self.of_merge(graph, tensor),
            "AddN" => self.of_add_n(graph, tensor),
            "Add" | "AddV2" => match (input(0), input(1)) {
                (Shape::Open, other) | (other, Shape::Open) => other,
                (left, right) if left == right => left,
                _ => Shape::Like(tensor),
            },
            "Identity" | "Enter" | "RefEnter" | "Switch" | "RefSwitch" | "ZerosLike"
            | "Snapshot" | "Cast" => input(0),
            // The tensor before these may be another one at another time.
            "ReadVariableOp" | "NextIteration" | "Exit" => sizes_or_itself(input(0)),
            "MatMul" | "BiasAddGrad" => match parameter_of_gradient(graph, tensor) {
                Some(parameter) => self.of_tensor(graph, parameter),
                None => Shape::Like(tensor),
            },
            "ConcatV2" | "ExpandDims" | "Reshape" | "Split" | "Squeeze" | "Unpack" => {
                let of = node.inputs.iter().map(|&one| self.sizes(graph, one));
                sizes_or_like(rearranged(graph, node, &of.collect::<Vec<_>>()).as_deref(), tensor)
            }
            _ => Shape::Like(tensor),
        }
    }

    /// `AddN` refuses summands of different shapes, so one that is known tells it.
    fn of_add_n(&self, graph: &Graph, tensor: Output) -> Shape {
        let inputs = &graph.node(tensor.node).inputs;
        let mut shapes = inputs.iter().map(|&input| self.of_tensor(graph, input));
        let first = self.of_tensor(graph, inputs[0]);
        shapes.find(|shape| matches!(shape, Shape::Sizes(_))).unwrap_or(first)
    }

    /// The shape of all inputs, if that is one. What is still open does not count: a loop's first
    /// round comes before the others.
    fn of_merge(&self, graph: &Graph, tensor: Output) -> Shape {
        let inputs = &graph.node(tensor.node).inputs;
        let mut shape = Shape::Open;
        for &input in inputs {
            match (&shape, self.of_tensor(graph, input)) {
                (_, Shape::Open) => {}
                (Shape::Open, next @ Shape::Sizes(_)) => shape = next,
                (known, next) if *known == next => {}
                _ => return Shape::Like(tensor),
            }
        }
        shape
    }
}

/// The sizes of what a node makes of tensors by putting them together, cutting them, or counting other axes. `of` has
/// the sizes of its inputs, as far as they are known.
fn rearranged(graph: &Graph, node: &Node, of: &[Option<Vec<i64>>]) -> Option<Vec<i64>> {
    let number = |input: usize| match integers(graph, *node.inputs.get(input)?)? {
        &[number] => Some(number),
        _ => None,
    };
    let place = |axis: i64, rank: usize| {
        let rank = i64::try_from(rank).ok()?;
        usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()
    };
    let sizes = |input: usize| of.get(input).cloned().flatten();
    match node.op.as_str() {
        "ConcatV2" => {
            let last = of.len().checked_sub(1)?;
            let mut whole = sizes(0)?;
            let axis = place(number(last)?, whole.len())?;
            for part in 1..last {
                *whole.get_mut(axis)? += sizes(part)?.get(axis)?;
            }
            Some(whole)
        }
        "ExpandDims" => {
            let mut more = sizes(0)?;
            let axis = place(number(1)?, more.len() + 1).filter(|&axis| axis <= more.len())?;
            more.insert(axis, 1);
            Some(more)
        }
        "Reshape" => Some(integers(graph, node.inputs[1])?.to_vec()),
        "Split" => {
            let mut part = sizes(1)?;
            let axis = place(number(0)?, part.len())?;
            *part.get_mut(axis)? /= node.int("num_split").filter(|&count| count > 0)?;
            Some(part)
        }
        // Whether it names the axis or not, it is the only one that can go.
        "Squeeze" => {
            let mut rest = sizes(0)?;
            rest.retain(|&size| size != 1);
            (rest.len() + 1 == sizes(0)?.len()).then_some(rest)
        }
        "Unpack" => {
            let mut part = sizes(0)?;
            let axis = place(node.int("axis").unwrap_or(0), part.len())?;
            (axis < part.len()).then(|| part.remove(axis))?;
            Some(part)
        }
        _ => None,
    }
}

fn sizes_or_like(sizes: Option<&[i64]>, tensor: Output) -> Shape {
    match sizes {
        Some(sizes) if sizes.iter().all(|&size| size >= 0) => Shape::Sizes(sizes.to_vec()),
        _ => Shape::Like(tensor),
    }
}

/// A value of another shape than the variable's attribute says is an error of the graph, and
/// TensorFlow's optimizers rely on the attribute, too.
fn of_variable(graph: &Graph, tensor: Output, attribute: &str) -> Shape {
    let node = graph.node(tensor.node);
    let Some(Attribute::Shape(Some(sizes))) = node.attribute(attribute) else {
        return Shape::Like(tensor);
    };
    // Old graphs say "no dimensions" for "not known".
    if node.op == "Variable" && sizes.is_empty() {
        return Shape::Like(tensor);
    }
    sizes_or_like(Some(sizes), tensor)
}
