//! The arrays that a loop reads x from, and writes outputs to: `TensorArray`s of TensorFlow 1.
//!
//! ```text
//! array, flow = TensorArrayV3(size)
//! x[t] = TensorArrayReadV3(Enter(array), t, Enter(TensorArrayScatterV3(array, range(size), x, flow)))
//! h    = TensorArrayGatherV3(array, range(size), Exit(the flow of TensorArrayWriteV3(Enter(array), t, h[t], ...)))
//! ```

use super::frame::Frame;
use super::lists::{Input, Written, merged};
use crate::graph::{Attribute, DataType, Graph, NodeId, Output};
use crate::reading::constants::integers;
use crate::reading::neighbours::skip_identities;
use crate::reading::variables::Variable;

impl Input {
    /// Reads `TensorArrayReadV3(array, t, flow)`. `counts` tells whether a tensor is t.
    pub(super) fn of_array(
        graph: &Graph,
        frame: &Frame,
        read: NodeId,
        counts: impl Fn(Output) -> bool,
    ) -> Option<Input> {
        let &[array, t, flow] = &graph.node(read).inputs[..] else { return None };
        let is_read = graph.op(read) == "TensorArrayReadV3" && counts(t);
        let handle = frame.outside(graph, array).filter(|_| is_read)?;
        let filled = frame.outside(graph, flow)?;
        let scatter = filled.node;
        let &[same, indices, x, first] = &graph.node(scatter).inputs[..] else { return None };
        let array = handle.node;
        let is_filled = graph.op(scatter) == "TensorArrayScatterV3"
            && same == handle
            && first == Output { node: array, index: 1 };
        let (size, element) = definition(graph, handle).filter(|_| is_filled)?;
        let rows = |limit| is_row_count(graph, limit, x);
        let outside = whole_range(graph, indices, handle, size, rows)?;
        let inside: Vec<_> = [0, 2].map(|number| graph.input(read, number).node).into();
        let users = [&inside[..], &[scatter]].concat();
        let is_alone = graph.data_consumers(array).all(|id| users.contains(&id))
            && graph.data_consumers(scatter).all(|id| inside.contains(&id))
            && inside.iter().all(|&id| graph.data_consumers(id).all(|user| user == read));
        let outside = [outside, vec![array, scatter]].concat();
        let inside = [inside, vec![read]].concat();
        let size = Some(size);
        is_alone.then_some(Input { is_list: false, x, size, element, inside, outside })
    }
}

impl Written {
    /// Reads a variable that is the flow of an array.
    pub(super) fn of_array(
        graph: &Graph,
        frame: &Frame,
        variable: &Variable,
        counts: impl Fn(Output) -> bool,
    ) -> Option<Written> {
        let write = variable.next.node;
        let &[entered, t, value, flow] = &graph.node(write).inputs[..] else { return None };
        let is_write = graph.op(write) == "TensorArrayWriteV3"
            && counts(t)
            && variable.is(graph, flow)
            && graph.data_consumers(write).count() == 1;
        let handle = frame.outside(graph, entered).filter(|_| is_write)?;
        let array = handle.node;
        let first = variable.first;
        let (size, mut element) = definition(graph, handle)?;
        let readers: Vec<_> =
            variable.exit.iter().flat_map(|&exit| graph.data_consumers(exit)).collect();
        let is = |op: &'static str| move |id: &NodeId| graph.op(*id) == op;
        let count: Vec<_> = readers.iter().copied().filter(is("TensorArraySizeV3")).collect();
        let gathers: Vec<_> = readers.iter().copied().filter(is("TensorArrayGatherV3")).collect();
        let of_array = |&id: &NodeId| graph.input(id, 0) == handle;
        let known = count.len() + gathers.len() == readers.len()
            && gathers.len() <= 1
            && readers.iter().all(of_array)
            && first == Output { node: array, index: 1 }
            && graph
                .data_consumers(array)
                .all(|id| id == entered.node || variable.enters(id) || readers.contains(&id))
            && graph.data_consumers(entered.node).all(|id| id == write);
        let gather = gathers.first().copied();
        let mut outside = Vec::new();
        if let Some(gather) = gather.filter(|_| known) {
            let range = whole_range(graph, graph.input(gather, 1), handle, size, |_| false)?;
            // They run after the loop, and the new node must not wait for what comes then.
            let mut after = range.iter().copied().chain([gather]).chain(count.iter().copied());
            let is_known = |id: &NodeId| *id == array || Some(*id) == variable.exit;
            if !after.all(|id| graph.node(id).control_inputs.iter().all(is_known)) {
                return None;
            }
            if let Some(Attribute::Shape(Some(sizes))) =
                graph.node(gather).attribute("element_shape")
            {
                element = merged(&element, sizes)?;
            }
            outside = range;
        }
        outside.push(array);
        known.then_some(Written {
            is_list: false,
            merge: variable.merge,
            first,
            size,
            element,
            last_only: false,
            value,
            inside: vec![entered.node, write],
            outside,
            between: Vec::new(),
            stack: gather,
            count,
        })
    }
}

/// The size of an array and what is known of its elements.
fn definition(graph: &Graph, handle: Output) -> Option<(Output, Vec<i64>)> {
    let node = Some(graph.node(handle.node)).filter(|node| node.op == "TensorArrayV3")?;
    let is_fixed = handle.index == 0 && !node.flag("dynamic_size");
    let element = match node.attribute("element_shape")? {
        Attribute::Shape(None) => Vec::new(),
        Attribute::Shape(Some(sizes)) if sizes.len() == 2 => sizes.clone(),
        _ => return None,
    };
    is_fixed.then(|| (node.inputs[0], element))
}

/// Whether two tensors are the same number.
pub(super) fn is_same(graph: &Graph, left: Output, right: Output) -> bool {
    let numbers = number(graph, left).zip(number(graph, right));
    skip_identities(graph, left) == skip_identities(graph, right)
        || numbers.is_some_and(|(left, right)| left == right)
}

/// The number that a tensor is known to be.
fn number(graph: &Graph, tensor: Output) -> Option<i64> {
    let tensor = skip_identities(graph, tensor);
    match integers(graph, tensor) {
        Some(&[number]) => Some(number),
        Some(_) => None,
        None => integers(graph, first_of(graph, tensor)?)?.first().copied(),
    }
}

/// The vector that a tensor is the first element of: `StridedSlice(vector, [0], [1], [1])`.
fn first_of(graph: &Graph, tensor: Output) -> Option<Output> {
    let node = graph.node(tensor.node);
    let &[vector, begin, end, step] = &node.inputs[..] else { return None };
    let is = |tensor, number: i64| integers(graph, tensor) == Some(&[number]);
    let masks = ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask"];
    let is_first = node.op == "StridedSlice"
        && node.int("shrink_axis_mask") == Some(1)
        && masks.iter().all(|mask| node.int(mask).unwrap_or(0) == 0)
        && is(begin, 0)
        && is(end, 1)
        && is(step, 1);
    is_first.then(|| skip_identities(graph, vector))
}

/// The nodes of `0, 1, ... size - 1`, each after those that it takes. `is_size` knows other tensors that are the size.
fn whole_range(
    graph: &Graph,
    indices: Output,
    handle: Output,
    size: Output,
    is_size: impl Fn(Output) -> bool,
) -> Option<Vec<NodeId>> {
    if let Some(numbers) = integers(graph, indices) {
        let last = i64::try_from(numbers.len()).ok()?;
        let is_whole = numbers.iter().copied().eq(0..last) && number(graph, size) == Some(last);
        return is_whole.then(|| vec![indices.node]);
    }
    let &[start, limit, step] = &graph.node(indices.node).inputs[..] else { return None };
    let is_range = graph.op(indices.node) == "Range"
        && integers(graph, start) == Some(&[0])
        && integers(graph, step) == Some(&[1]);
    let asks = graph.op(limit.node) == "TensorArraySizeV3" && graph.input(limit.node, 0) == handle;
    let nodes = if asks { vec![limit.node, indices.node] } else { vec![indices.node] };
    (is_range && (asks || is_size(limit) || is_same(graph, limit, size))).then_some(nodes)
}

/// Whether a tensor is the number of steps of another one.
fn is_row_count(graph: &Graph, count: Output, x: Output) -> bool {
    first_of(graph, skip_identities(graph, count)).is_some_and(|shape| {
        let node = graph.node(shape.node);
        node.op == "Shape"
            && skip_identities(graph, node.inputs[0]) == skip_identities(graph, x)
            && node.output_types.first() == Some(&DataType::INT32)
    })
}
