//! Loops of steps of this library's and TensorFlow's cells.

use std::collections::BTreeSet;

use super::arrays::is_same;
use super::body::{Counters, Masked};
use super::frame::Frame;
use super::layers::{Layer, Loop};
use super::lists::{self, Input, Written};
use super::outputs::After;
use super::rounds::Rounds;
use super::weights::Weight;
use crate::facts::shapes::LazyShapes;
use crate::graph::reason::Reason;
use crate::graph::{Graph, NodeId, Output};
use crate::reading::constants::has_zeros;
use crate::reading::neighbours::skip_identities;
use crate::reading::variables::Variable;
use crate::rewrites::candidate::Readers;
use crate::rewrites::layer::Cell;

/// What was read of a loop so far.
struct Reader<'r> {
    graph: &'r Graph,
    frame: &'r Frame,
    counters: Counters<'r>,
    /// The lengths of rows that its parts have, or that they have none.
    lengths: Vec<Option<Output>>,
    nodes: BTreeSet<NodeId>,
}

/// The step of a layer, and what becomes of its output.
type Step = (NodeId, Cell, After);

/// The states and weights of a layer, as [`Layer`] has them.
type LayerParts = (Vec<(Output, Option<NodeId>)>, Vec<Weight>);

/// Reads a loop that is nothing but steps of cells.
pub(super) fn read(graph: &Graph, frame: Frame, shapes: &LazyShapes) -> Result<Loop, Reason> {
    let node = graph.node(frame.condition).name.clone();
    let other = |part: &'static str| Reason::Loop { part, node: node.clone() };
    let counters = Counters::read(graph, &frame).ok_or_else(|| other("condition"))?;
    if counters.leave(graph) {
        return Err(other("exit of the count"));
    }
    let rounds = Rounds::of(&counters);
    let nodes = frame.nodes_of_variables().chain(counters.nodes.iter().copied()).collect();
    let mut reader = Reader { graph, frame: &frame, counters, lengths: Vec::new(), nodes };
    let (input, steps) = reader.steps(shapes).ok_or_else(|| other("input"))?;
    let parts = steps.iter().map(|step| reader.layer(step)).collect::<Option<Vec<_>>>();
    let parts = parts.ok_or_else(|| other("state"))?;
    let last = steps.last().map(|(_, _, after)| after.y);
    let written = last.and_then(|y| reader.written(y)).ok_or_else(|| other("output"))?;
    let Reader { lengths, nodes, .. } = reader;
    if lengths.iter().any(|one| *one != lengths[0]) {
        return Err(other("length of rows"));
    }
    let size = size_of(graph, &input, written.as_ref(), &rounds);
    let size = size.ok_or_else(|| other("size of arrays"))?;
    frame.check_nodes(graph, &nodes)?;
    let lengths = lengths.first().copied().flatten();
    let layer = |((root, cell, after), (states, weights)): (Step, LayerParts)| {
        let mut attributes = cell.attributes(lengths.is_some(), input.is_list);
        attributes[1].extend(after.attributes());
        let (zeros, more) = (Vec::new(), Vec::new());
        Layer { root, op: cell.op, attributes, states, weights, zeros, more }
    };
    let layers = steps.into_iter().zip(parts).map(layer).collect();
    // Without an array, nobody misses outputs of steps that there are not.
    let needs_h = written.is_some();
    let (lists, readers) = (Vec::new(), Readers::OfLateTensors);
    Ok(Loop { frame, rounds, size, lengths, input, lists, layers, written, needs_h, readers })
}

/// How many steps a loop has: as many as the arrays have elements, both of the same number; of lists the one that is
/// written. Where nobody takes outputs, a number of rounds serves for lists.
fn size_of(
    graph: &Graph,
    input: &Input,
    written: Option<&Written>,
    rounds: &Rounds,
) -> Option<Output> {
    if written.is_some_and(|written| written.is_list != input.is_list) {
        return None;
    }
    let of_written = written.map(|written| written.size);
    let Some(size) = input.size else {
        return of_written.or(rounds.bounds.first().copied());
    };
    of_written.is_none_or(|other| is_same(graph, other, size)).then_some(size)
}

impl Reader<'_> {
    /// The input of the first layer, and the steps from the first layer to the last.
    fn steps(&mut self, shapes: &LazyShapes) -> Option<(Input, Vec<Step>)> {
        let (graph, frame) = (self.graph, self.frame);
        let is_read =
            |&id: &NodeId| matches!(graph.op(id), "TensorArrayReadV3" | "TensorListGetItem");
        let mut reads = frame.nodes.iter().copied().filter(is_read);
        let read = reads.next().filter(|_| reads.next().is_none())?;
        let mut x = Output { node: read, index: 0 };
        let counts = |t| self.counters.is_count(graph, t);
        let input = match graph.op(read) {
            "TensorListGetItem" => Input::of_list(graph, frame, x, counts)?,
            _ => Input::of_array(graph, frame, read, counts)?,
        };
        self.nodes.extend(&input.inside);
        let mut steps = Vec::new();
        loop {
            let takes = |&id: &NodeId| {
                let cell = Cell::of(graph, id)?;
                (skip_identities(graph, graph.input(id, 0)) == x).then_some((id, cell))
            };
            let mut next = frame.nodes.iter().filter_map(takes);
            let Some((step, cell)) = next.next() else { break };
            if next.next().is_some() || !self.nodes.insert(step) {
                return None;
            }
            let after = After::read(graph, shapes, (step, &cell), x);
            self.nodes.extend(&after.nodes);
            x = after.y;
            steps.push((step, cell, after));
        }
        (!steps.is_empty()).then_some((input, steps))
    }

    /// What the layer of a step takes.
    fn layer(&mut self, (step, cell, after): &Step) -> Option<LayerParts> {
        let (graph, frame, step) = (self.graph, self.frame, *step);
        let mut states = Vec::new();
        for &[input, output] in cell.states {
            let variable = frame.variable(graph, graph.input(step, input))?;
            let next = self.masked(variable.next)?;
            let own = if output == cell.h { after.h } else { Output { node: step, index: output } };
            if next.value != own || self.counters.have(variable) {
                return None;
            }
            let keeps = |[kept, _]: [Output; 2]| variable.is(graph, kept);
            if !next.ended.is_none_or(keeps) {
                return None;
            }
            states.push((variable.first, variable.exit));
        }
        let weight = |&input: &usize| Weight::read(graph, frame, graph.input(step, input));
        let mut weights = cell.weights.iter().map(weight).collect::<Option<Vec<_>>>()?;
        weights.extend(after.weights(graph, frame)?);
        self.nodes.extend(weights.iter().flat_map(|weight| &weight.nodes));
        self.nodes.extend(cell.unread(graph, step));
        Some((states, weights))
    }

    /// The array that the outputs of the last layer are written to, or that there is none.
    fn written(&mut self, h: Output) -> Option<Option<Written>> {
        let (graph, frame) = (self.graph, self.frame);
        let is_flow = |variable: &&Variable| {
            graph.op(variable.next.node) == "TensorArrayWriteV3" || lists::writes(graph, variable)
        };
        let mut flows = frame.variables.iter().filter(is_flow);
        let Some(flow) = flows.next() else { return Some(None) };
        let counts = |t| self.counters.is_count(graph, t);
        let written = match lists::writes(graph, flow) {
            true => Written::of_list(graph, frame, counts),
            false => Written::of_array(graph, frame, flow, counts),
        };
        let written = written.filter(|one| !one.last_only && flows.next().is_none())?;
        self.nodes.extend(&written.inside);
        let value = self.masked(written.value)?;
        let is_cleared = |[kept, _]: [Output; 2]| {
            frame.same(graph, kept).is_some_and(|kept| has_zeros(graph, kept))
        };
        (value.value == h && value.ended.is_none_or(is_cleared)).then_some(Some(written))
    }

    /// A tensor that may be masked, as all others of the loop are.
    fn masked(&mut self, tensor: Output) -> Option<Masked> {
        let masked = Masked::read(self.graph, self.frame, &self.counters, tensor)?;
        self.nodes.extend(&masked.nodes);
        self.lengths.push(masked.ended.map(|[_, lengths]| lengths));
        Some(masked)
    }
}
