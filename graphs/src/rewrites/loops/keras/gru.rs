//! The step of Keras's GRU cell with `reset_after`.
//!
//! ```text
//! x_z, x_r, x_c = Split(1, MatMul(x, w_x) + b_x)             h_z, h_r, h_c = columns of MatMul(h_prev, w_h) + b_h
//! z = Sigmoid(x_z + h_z)        r = Sigmoid(x_r + h_r)       c = Tanh(x_c + r * h_c)
//! h = z * h_prev + (1 - z) * c
//! ```
//!
//! Another function may stand in place of both `Sigmoid`, and one in place of `Tanh`.

use blockcell_kernels::Activation;

use super::super::frame::Frame;
use super::step::{self, Step, Terms};
use crate::graph::{Graph, NodeId, Output, ops};
use crate::reading::constants::{integers, names_columns, scalar};
use crate::reading::functions::Function;
use crate::reading::neighbours::{factors, of, other_factor, parts, takers};

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
            "StridedSlice" => Part::of_slice(graph, tensor.node),
            _ => None,
        }
    }

    /// `whole[:, :units]`, `whole[:, units:2 * units]` or `whole[:, 2 * units:]`.
    fn of_slice(graph: &Graph, slice: NodeId) -> Option<Part> {
        let node = graph.node(slice);
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
        let (index, units) = match (begin, end) {
            (0, Some(units)) => (0, units),
            (units, Some(end)) if end == 2 * units => (1, units),
            (twice, None) if twice % 2 == 0 => (2, twice / 2),
            _ => return None,
        };
        (units > 0).then_some(Part { whole, index, units: Some(units) })
    }
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
        let Some((function, sum)) = argument(self.graph, tensor) else { return false };
        let Some([left, right]) = summands(self.graph, sum) else { return false };
        if self.function.is_some_and(|of_other| of_other != function.activation) {
            return false;
        }
        self.function = Some(function.activation);
        self.nodes.extend(function.nodes);
        self.nodes.push(sum.node);
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
        let candidates = orders(factors(graph, reset)?).into_iter();
        candidates.filter_map(|gate| candidate(graph, frame, of_x, [sum, reset], gate)).next()
    });
    let mut step = found.next().filter(|_| names_columns(graph, graph.input(split, 0)))?;
    step.nodes.insert(split);
    step.root = split;
    Some(step)
}

/// The step with the candidate `Tanh(sum)`, whose summand `reset` is `r * h_c`.
fn candidate(
    graph: &Graph,
    frame: &Frame,
    of_x: Output,
    [sum, reset]: [Output; 2],
    [r, h_c]: [Output; 2],
) -> Option<Step> {
    let mut parts =
        Parts { graph, of_x, of_h: None, units: None, function: None, nodes: Vec::new() };
    let is_reset = parts.is_of_h(h_c, 2) && parts.is_gate(r, 1);
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
    let (&[[x, w_x]], &[b_x]) = (&x_terms.products[..], &x_terms.biases[..]) else { return None };
    let (&[[state, w_h]], &[b_h]) = (&h_terms.products[..], &h_terms.biases[..]) else {
        return None;
    };
    frame.variable(graph, h_prev).filter(|variable| variable.is(graph, state))?;
    let mut nodes = x_terms.nodes;
    nodes.extend(h_terms.nodes.into_iter().chain(parts.nodes));
    nodes.extend(candidate.nodes);
    nodes.extend([sum, reset, new, rest, kept, h].map(|tensor| tensor.node));
    Some(Step {
        root: sum.node,
        op: ops::KERAS_GRU,
        x,
        h,
        states: vec![[h_prev, h]],
        weights: vec![w_x, w_h, b_x, b_h],
        added: [x_terms.added, h_terms.added].concat(),
        needs_one_row: x_terms.needs_one_row || h_terms.needs_one_row,
        functions: step::functions(candidate.activation, parts.function?),
        units: parts.units,
        nodes,
    })
}
