//! The step of Keras's GRU cell.
//!
//! ```text
//! x_z, x_r, x_c = Split(1, MatMul(x, w_x) [+ b_x])           h_z, h_r, h_c = columns of MatMul(h_prev, w_h) [+ b_h]
//! z = Sigmoid(x_z + h_z)        r = Sigmoid(x_r + h_r)       c = Tanh(x_c + r * h_c)
//! h = z * h_prev + (1 - z) * c
//! ```
//!
//! Without `reset_after`, there are other products, and no `b_h`:
//!
//! ```text
//! h_z, h_r = columns of MatMul(h_prev, w_h[:, :2 * units])
//! c = Tanh(x_c + MatMul(r * h_prev, w_h[:, 2 * units:]))
//! ```
//!
//! Keras 3 takes the columns by slices, and Keras 2 by a `SplitV`.
//!
//! Another function may stand in place of both `Sigmoid`, and one in place of `Tanh`. Of `hard_sigmoid`, TensorFlow's optimizers
//! add the number to one of the two summands.

use blockcell_kernels::Activation;

use super::super::frame::Frame;
use super::step::{self, Step, Terms};
use crate::graph::{Graph, NodeId, Output, ops};
use crate::reading::constants::{integers, names_columns, scalar};
use crate::reading::functions::Function;
use crate::reading::neighbours::{factors, of, other_factor, parts, takers, transposes, unary};

/// No function is longer.
const MOST_NODES: usize = 5;

/// One of the three parts of the columns of a matrix.
struct Part {
    whole: Output,
    index: usize,
    /// How many columns a part has, if it says so.
    units: Option<i64>,
}

impl Part {
    fn read(graph: &Graph, tensor: Output) -> Option<Part> {
        let node = graph.node(tensor.node);
        match node.op.as_str() {
            "Split" => {
                let is_such = parts(node) == Some(3) && names_columns(graph, node.inputs[0]);
                let (whole, index) = (node.inputs[1], tensor.index);
                is_such.then_some(Part { whole, index, units: None })
            }
            "SplitV" => Part::of_sizes(graph, tensor),
            "StridedSlice" => Part::of_slice(graph, tensor.node),
            _ => None,
        }
    }

    /// A part of `SplitV(whole, [units, units, -1], 1)`. Without `reset_after`, nothing is left for the last one.
    fn of_sizes(graph: &Graph, tensor: Output) -> Option<Part> {
        let &[whole, sizes, axis] = &graph.node(tensor.node).inputs[..] else { return None };
        let &[units, same, last] = integers(graph, sizes)? else { return None };
        let is_such = units > 0 && same == units && (last == units || last == -1);
        let is_such = is_such && names_columns(graph, axis);
        is_such.then_some(Part { whole, index: tensor.index, units: Some(units) })
    }

    /// `whole[:, :units]`, `whole[:, units:2 * units]` or `whole[:, 2 * units:]`.
    fn of_slice(graph: &Graph, slice: NodeId) -> Option<Part> {
        let Columns { whole, begin, end } = Columns::read(graph, slice)?;
        let (index, units) = match (begin, end) {
            (0, Some(units)) => (0, units),
            (units, Some(end)) if end == 2 * units => (1, units),
            (twice, None) if twice % 2 == 0 => (2, twice / 2),
            _ => return None,
        };
        (units > 0).then_some(Part { whole, index, units: Some(units) })
    }
}

/// `whole[:, begin:end]`, or `whole[:, begin:]`.
struct Columns {
    whole: Output,
    begin: i64,
    end: Option<i64>,
}

impl Columns {
    fn read(graph: &Graph, slice: NodeId) -> Option<Columns> {
        let node = graph.node(slice);
        if node.op != "StridedSlice" {
            return None;
        }
        let &[whole, begin, end, steps] = &node.inputs[..] else { return None };
        let mask = |name| node.int(name).unwrap_or(0);
        let others = ["ellipsis_mask", "new_axis_mask", "shrink_axis_mask"];
        let takes_columns = integers(graph, steps) == Some(&[1, 1])
            && others.iter().all(|name| mask(name) == 0)
            && mask("end_mask") & 1 == 1
            && (mask("begin_mask") & 1 == 1 || integers(graph, begin)?.first() == Some(&0));
        let &[_, begin] = integers(graph, begin).filter(|_| takes_columns)? else { return None };
        let &[_, end] = integers(graph, end)? else { return None };
        let begin = if mask("begin_mask") & 2 == 2 { 0 } else { begin };
        let end = (mask("end_mask") & 2 == 0).then_some(end);
        Some(Columns { whole, begin, end })
    }
}

/// The weights of the state in two products: the first columns of a tensor, and the others. Returns that tensor, half the
/// number of the first columns, and the nodes.
fn whole_weights(
    graph: &Graph,
    [of_gates, of_candidate]: [Output; 2],
) -> Option<(Output, i64, Vec<NodeId>)> {
    let parts = [of_gates, of_candidate].map(|part| Columns::read(graph, part.node));
    let [Some(gates), Some(candidate)] = parts else { return None };
    let both = [gates.whole, candidate.whole];
    let [first, second] = both.map(|whole| graph.node(whole.node));
    // Nothing in the loop writes to a variable.
    let is_same = both[0] == both[1]
        || (first.op == "ReadVariableOp" && second.op == first.op && first.inputs == second.inputs);
    let twice = gates.end.filter(|&end| end > 0 && end % 2 == 0)?;
    let is_whole =
        gates.begin == 0 && candidate.begin == twice && candidate.end.is_none() && is_same;
    let nodes = vec![of_gates.node, of_candidate.node, both[1].node];
    is_whole.then_some((both[0], twice / 2, nodes))
}

/// The parts of a sum of two, of which the first belongs to x, and what belongs to the state.
struct Parts<'g> {
    graph: &'g Graph,
    of_x: Output,
    /// None until a part was found.
    of_h: Option<Output>,
    units: Option<i64>,
    /// The function of the gates; None until a gate was found.
    function: Option<Activation>,
    nodes: Vec<NodeId>,
}

impl Parts<'_> {
    /// Whether a tensor is this part of the product with x.
    fn is_of_x(&mut self, tensor: Output, index: usize) -> bool {
        let part = Part::read(self.graph, tensor);
        part.is_some_and(|part| {
            part.whole == self.of_x && part.index == index && self.take(&part, tensor)
        })
    }

    /// Whether a tensor is this part of the product with the state.
    fn is_of_h(&mut self, tensor: Output, index: usize) -> bool {
        let Some(part) = Part::read(self.graph, tensor) else { return false };
        let is_such = part.whole != self.of_x
            && part.index == index
            && self.of_h.is_none_or(|whole| whole == part.whole)
            && self.take(&part, tensor);
        if is_such {
            self.of_h = Some(part.whole);
        }
        is_such
    }

    fn take(&mut self, part: &Part, tensor: Output) -> bool {
        let fits = self.units.is_none() || part.units.is_none() || self.units == part.units;
        self.units = self.units.or(part.units);
        self.nodes.push(tensor.node);
        fits
    }

    /// Whether a tensor is the gate of these parts.
    fn is_gate(&mut self, tensor: Output, index: usize) -> bool {
        let direct = argument(self.graph, tensor).and_then(|(mut function, sum)| {
            function.nodes.push(sum.node);
            Some((function, summands(self.graph, sum)?))
        });
        let found = direct.or_else(|| hard_sigmoid(self.graph, tensor));
        let Some((function, [left, right])) = found else { return false };
        if self.function.is_some_and(|of_other| of_other != function.activation) {
            return false;
        }
        self.function = Some(function.activation);
        self.nodes.extend(function.nodes);
        (self.is_of_x(left, index) && self.is_of_h(right, index))
            || (self.is_of_x(right, index) && self.is_of_h(left, index))
    }
}

/// The function that a tensor is of a sum, and the sum.
fn argument(graph: &Graph, tensor: Output) -> Option<(Function, Output)> {
    let mut sum = tensor;
    for _ in 0..MOST_NODES {
        if let Some(found) = summands(graph, sum) {
            let is_it = |function: &Function| function.tensor == tensor;
            let ours = |sum| {
                let itself = (sum == tensor).then(|| Function::linear(sum));
                Function::all(graph, sum).into_iter().find(is_it).or(itself)
            };
            if let Some(function) = ours(sum) {
                return Some((function, sum));
            }
            // A function may add a number itself.
            sum = *found.iter().find(|&&one| scalar(graph, one).is_none())?;
            continue;
        }
        let inputs = graph.node(sum.node).inputs.iter();
        sum = *inputs.into_iter().find(|&&one| scalar(graph, one).is_none())?;
    }
    None
}

/// The two terms of which a tensor is the `hard_sigmoid`, where the number is added to one of them.
fn hard_sigmoid(graph: &Graph, tensor: Output) -> Option<(Function, [Output; 2])> {
    let node = graph.node(tensor.node);
    let &[left, right] = &node.inputs[..] else { return None };
    let is_sixth = |tensor| scalar(graph, tensor) == Some(1.0 / 6.0);
    let bounded = match node.op.as_str() {
        "Mul" if is_sixth(right) => left,
        "Mul" if is_sixth(left) => right,
        "RealDiv" if scalar(graph, right) == Some(6.0) => left,
        _ => return None,
    };
    let sum = unary(graph, bounded, "Relu6")?;
    let [inner, outer] = orders(summands(graph, sum)?).into_iter().find(|both| {
        let of_inner = summands(graph, both[0]).into_iter().flatten();
        of_inner.filter_map(|term| scalar(graph, term)).eq([3.0])
    })?;
    let term = summands(graph, inner)?.into_iter().find(|&one| scalar(graph, one).is_none())?;
    let nodes = [tensor, bounded, sum, inner].map(|one| one.node).to_vec();
    Some((Function { activation: Activation::HardSigmoid, tensor, nodes }, [term, outer]))
}

/// The summands of a sum of two.
fn summands(graph: &Graph, sum: Output) -> Option<[Output; 2]> {
    let node = graph.node(sum.node);
    let is_sum = matches!(node.op.as_str(), "Add" | "AddV2");
    node.inputs.first_chunk().copied().filter(|_| is_sum && node.inputs.len() == 2)
}

/// Both orders of two tensors.
fn orders([left, right]: [Output; 2]) -> [[Output; 2]; 2] {
    [[left, right], [right, left]]
}

/// Reads the step that begins with a `Split` in three parts, of the product with x.
pub(super) fn read(graph: &Graph, frame: &Frame, split: NodeId) -> Option<Step> {
    let of_x = graph.input(split, 1);
    let x_c = Output { node: split, index: 2 };
    let sums = ["Add", "AddV2"].into_iter().flat_map(|op| takers(graph, x_c, op)).map(of);
    let mut found = sums.filter_map(|sum| {
        let reset = orders(summands(graph, sum)?).into_iter().find(|both| both[0] == x_c)?[1];
        let with = |reset| candidate(graph, frame, of_x, sum, reset);
        Reset::all(graph, reset).into_iter().find_map(with)
    });
    let mut step = found.next().filter(|_| names_columns(graph, graph.input(split, 0)))?;
    step.nodes.insert(split);
    step.root = split;
    Some(step)
}

/// What the reset gate is a factor of.
struct Reset {
    r: Output,
    /// The other factor: a part of the product with the state, or the state.
    other: Output,
    /// The weights that the state is multiplied by then, if it is the state.
    weights: Option<Output>,
    nodes: Vec<NodeId>,
}

impl Reset {
    /// Each factor of a product may be the gate.
    fn all(graph: &Graph, reset: Output) -> Vec<Reset> {
        let node = graph.node(reset.node);
        let (product, weights) = match (node.op.as_str(), &node.inputs[..]) {
            ("MatMul", &[product, weights]) if transposes(node) == Some([false; 2]) => {
                (product, Some(weights))
            }
            _ => (reset, None),
        };
        let nodes = vec![reset.node, product.node];
        let both = factors(graph, product).into_iter().flat_map(orders);
        both.map(|[r, other]| Reset { r, other, weights, nodes: nodes.clone() }).collect()
    }
}

/// The step with the candidate `Tanh(sum)`.
fn candidate(
    graph: &Graph,
    frame: &Frame,
    of_x: Output,
    sum: Output,
    reset: Reset,
) -> Option<Step> {
    let mut parts =
        Parts { graph, of_x, of_h: None, units: None, function: None, nodes: Vec::new() };
    let is_after = reset.weights.is_none();
    let is_reset = (!is_after || parts.is_of_h(reset.other, 2)) && parts.is_gate(reset.r, 1);
    let candidate = Function::only(graph, sum).filter(|_| is_reset)?;
    let c = candidate.tensor;
    let new = of(takers(graph, c, "Mul").next()?);
    let rest = other_factor(graph, new, c)?;
    let &[one, z] = graph.node(rest.node).inputs.first_chunk()?;
    let is_rest = graph.op(rest.node) == "Sub" && scalar(graph, one) == Some(1.0);
    if !is_rest || !parts.is_gate(z, 0) {
        return None;
    }
    let h = of(["Add", "AddV2"].into_iter().find_map(|op| takers(graph, new, op).next())?);
    let [_, kept] = orders(summands(graph, h)?).into_iter().find(|both| both[0] == new)?;
    let h_prev = other_factor(graph, kept, z)?;
    let (x_terms, h_terms) = (Terms::read(graph, of_x)?, Terms::read(graph, parts.of_h?)?);
    let (&[[x, w_x]], &[[state, of_state]]) = (&x_terms.products[..], &h_terms.products[..]) else {
        return None;
    };
    let variable = frame.variable(graph, h_prev).filter(|one| one.is(graph, state))?;
    let biases = [x_terms.bias()?, h_terms.bias()?];
    let (w_h, of_weights) = match reset.weights {
        None => (of_state, Vec::new()),
        Some(weights) => {
            let (whole, units, nodes) = whole_weights(graph, [of_state, weights])?;
            let fits = parts.units.is_none_or(|own| own == units);
            let is_such = fits && biases[1].is_none() && variable.is(graph, reset.other);
            parts.units = is_such.then_some(units);
            is_such.then_some((whole, nodes))?
        }
    };
    let mut nodes = x_terms.nodes;
    nodes.extend(h_terms.nodes.into_iter().chain(parts.nodes).chain(of_weights));
    nodes.extend(candidate.nodes.into_iter().chain(reset.nodes));
    nodes.extend([sum, new, rest, kept, h].map(|tensor| tensor.node));
    let mut functions = step::functions(candidate.activation, parts.function?);
    functions.extend((!is_after).then(|| ("reset_after", false.into())));
    Some(Step {
        root: sum.node,
        op: ops::KERAS_GRU,
        x,
        h,
        states: vec![[h_prev, h]],
        w_x,
        w_h,
        biases: biases.to_vec(),
        needs_columns: !is_after,
        added: [x_terms.added, h_terms.added].concat(),
        needs_one_row: x_terms.needs_one_row || h_terms.needs_one_row,
        functions,
        units: parts.units,
        nodes,
    })
}
