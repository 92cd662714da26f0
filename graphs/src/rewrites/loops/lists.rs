//! What a loop reads x from, and writes outputs to: lists of TensorFlow 2, or the [arrays](super::arrays) of
//! TensorFlow 1.
//!
//! ```text
//! x[t] = TensorListGetItem(TensorListFromTensor(x), t)
//! h    = TensorListStack(the last of: TensorListReserve(size), TensorListSetItem(list, t, h[t]))
//! ```

use super::frame::Frame;
use crate::graph::{Graph, NodeId, Output, Values};
use crate::reading::constants::{constant, integers};
use crate::reading::neighbours::skip_identities;
use crate::reading::variables::Variable;

/// The list or array that a loop reads.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) is_list: bool,
    /// What was put into it.
    pub(super) x: Output,
    /// How many elements it has. None for a list, which was made of a tensor that tells it.
    pub(super) size: Option<Output>,
    /// The sizes of an element, -1 for any; empty if nothing is known.
    pub(super) element: Vec<i64>,
    /// The nodes around it in the loop.
    pub(super) inside: Vec<NodeId>,
    /// Those outside of it, which nobody needs without the loop.
    pub(super) outside: Vec<NodeId>,
}

impl Input {
    /// Reads `TensorListGetItem(list, t)`. `counts` tells whether a tensor is t.
    pub(super) fn of_list(
        graph: &Graph,
        frame: &Frame,
        tensor: Output,
        counts: impl Fn(Output) -> bool,
    ) -> Option<Input> {
        let read = tensor.node;
        let &[list, t, _] = &graph.node(read).inputs[..] else { return None };
        let is_read = graph.op(read) == "TensorListGetItem" && counts(t);
        let list = frame.same(graph, list).filter(|_| is_read)?.node;
        let &[x, shape] = &graph.node(list).inputs[..] else { return None };
        let is_filled = graph.op(list) == "TensorListFromTensor";
        let element = element(graph, shape).filter(|_| is_filled)?;
        let (inside, outside) = (vec![read], vec![list]);
        Some(Input { is_list: true, x, size: None, element, inside, outside })
    }
}

/// The list or array that a loop writes.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) is_list: bool,
    /// The `Merge` of its variable.
    pub(super) merge: NodeId,
    /// The list before the loop, or the flow of the array.
    pub(super) first: Output,
    /// How many elements it has.
    pub(super) size: Output,
    /// As those of [`Input`].
    pub(super) element: Vec<i64>,
    /// Whether each round writes to the first place of a list with one.
    pub(super) last_only: bool,
    /// What a round writes.
    pub(super) value: Output,
    pub(super) inside: Vec<NodeId>,
    /// Each after those that it takes.
    pub(super) outside: Vec<NodeId>,
    /// The `Identity`s between the loop and `stack`.
    pub(super) between: Vec<NodeId>,
    /// What makes a tensor of all elements.
    pub(super) stack: Option<NodeId>,
    /// What asks for the number of elements.
    pub(super) count: Vec<NodeId>,
}

impl Written {
    /// Reads the variable whose rounds write into a list. None if there are several.
    pub(super) fn of_list(
        graph: &Graph,
        frame: &Frame,
        counts: impl Fn(Output) -> bool,
    ) -> Option<Written> {
        let mut lists = frame.variables.iter().filter(|variable| writes(graph, variable));
        let variable = lists.next().filter(|_| lists.next().is_none())?;
        let write = skip_identities(graph, variable.next).node;
        let &[before, place, value] = &graph.node(write).inputs[..] else { return None };
        let last_only = !counts(place);
        let is_first = integers(graph, place) == Some(&[0]);
        let list = variable.first.node;
        let is_write = variable.is(graph, before)
            && (!last_only || is_first)
            && !graph.node(write).flag("resize_if_index_out_of_bounds")
            && graph.op(list) == "TensorListReserve";
        let &[shape, size] = graph.node(list).inputs.first_chunk().filter(|_| is_write)?;
        let is_one = integers(graph, skip_identities(graph, size)) == Some(&[1]);
        let mut element = element(graph, shape).filter(|_| !last_only || is_one)?;
        let (mut stack, mut between) = (None, Vec::new());
        let mut last = variable.exit;
        while let Some(id) = last.take() {
            let mut takers = graph.data_consumers(id);
            let Some(taker) = takers.next() else { break };
            if takers.next().is_some() {
                return None;
            }
            if graph.op(taker) == "Identity" {
                // Who takes the outputs must not wait for less than before.
                if !graph.node(taker).control_inputs.is_empty() {
                    return None;
                }
                between.push(taker);
                last = Some(taker);
            } else {
                element = merged(&element, &stacked(graph, taker, size)?)?;
                stack = Some(taker);
            }
        }
        Some(Written {
            is_list: true,
            merge: variable.merge,
            first: variable.first,
            size,
            element,
            last_only,
            value,
            inside: vec![write],
            outside: vec![list],
            between,
            stack,
            count: Vec::new(),
        })
    }

    /// With the number of columns that the step says.
    pub(super) fn with_units(mut self, units: Option<i64>) -> Option<Written> {
        let Some(units) = units else { return Some(self) };
        // Then a list without elements would know their shape.
        if matches!(self.element[..], [rows, -1] if rows >= 0) {
            return None;
        }
        self.element = merged(&self.element, &[-1, units])?;
        Some(self)
    }
}

/// Whether the rounds of a loop write into a variable that is a list.
pub(super) fn writes(graph: &Graph, variable: &Variable) -> bool {
    graph.op(skip_identities(graph, variable.next).node) == "TensorListSetItem"
}

/// What a node that stacks a list of this size knows of its elements.
fn stacked(graph: &Graph, stack: NodeId, size: Output) -> Option<Vec<i64>> {
    let node = graph.node(stack);
    let &[_, shape] = node.inputs.first_chunk().filter(|_| node.op == "TensorListStack")?;
    let is_size = match node.int("num_elements") {
        None | Some(-1) => true,
        Some(number) => integers(graph, skip_identities(graph, size)) == Some(&[number]),
    };
    element(graph, shape).filter(|_| is_size)
}

/// The sizes of an element that a constant tells: two, or nothing.
fn element(graph: &Graph, shape: Output) -> Option<Vec<i64>> {
    let known = constant(graph, skip_identities(graph, shape))?;
    match (&known.shape[..], &known.values) {
        ([], Values::Ints(number)) if number[..] == [-1] => Some(Vec::new()),
        ([2], Values::Ints(sizes)) => Some(sizes.clone()),
        _ => None,
    }
}

/// What is known by two descriptions. None if they contradict each other.
pub(super) fn merged(left: &[i64], right: &[i64]) -> Option<Vec<i64>> {
    if left.is_empty() || right.is_empty() {
        return Some([left, right].concat());
    }
    let both = |(&left, &right): (&i64, &i64)| {
        (left == right || left < 0 || right < 0).then_some(left.max(right))
    };
    (left.len() == right.len()).then(|| left.iter().zip(right).map(both).collect())?
}
