//! A loop as layers, and the nodes that take its place.

use std::collections::BTreeSet;

use super::arrays::{Input, Written, is_same};
use super::body::{Counters, Masked};
use super::frame::Frame;
use super::lists;
use super::rounds::Rounds;
use super::weights::{Leaving, Weight};
use crate::facts::availability::{Availability, Needed};
use crate::facts::memory::Memory;
use crate::facts::waits::waits_for;
use crate::graph::reason::Reason;
use crate::graph::report::Report;
use crate::graph::{Graph, NodeId, Output};
use crate::reading::constants::has_zeros;
use crate::reading::neighbours::skip_identities;
use crate::reading::variables::Variable;
use crate::rewrites::layer::{Cell, Sequence};

/// A layer: what its cell does in all rounds.
#[derive(Debug)]
struct Layer {
    step: NodeId,
    cell: Cell,
    /// For each state of the cell: its first value, and what leaves the loop.
    states: Vec<(Output, Option<NodeId>)>,
    /// Weights, biases and peepholes.
    weights: Vec<Weight>,
}

/// A loop that is nothing but layers, each of which takes the outputs of the one before.
#[derive(Debug)]
pub(super) struct Loop {
    frame: Frame,
    rounds: Rounds,
    /// How many steps there are.
    size: Output,
    /// How many steps each row has, if they differ.
    lengths: Option<Output>,
    input: Input,
    layers: Vec<Layer>,
    written: Option<Written>,
    /// What the new nodes have to wait for.
    waits: BTreeSet<NodeId>,
}

/// What was read of a loop so far.
struct Reader<'r> {
    graph: &'r Graph,
    frame: &'r Frame,
    counters: Counters<'r>,
    /// The lengths of rows that its parts have, or that they have none.
    lengths: Vec<Option<Output>>,
    nodes: BTreeSet<NodeId>,
}

impl Loop {
    pub(super) fn read(graph: &Graph, frame: Frame) -> Result<Loop, Reason> {
        let node = graph.node(frame.condition).name.clone();
        let other = |part: &'static str| Reason::Loop { part, node: node.clone() };
        let counters = Counters::read(graph, &frame).ok_or_else(|| other("condition"))?;
        if counters.leave(graph) {
            return Err(other("exit of the count"));
        }
        let rounds = Rounds::of(&counters);
        let nodes = frame.nodes_of_variables().chain(counters.nodes.iter().copied()).collect();
        let mut reader = Reader { graph, frame: &frame, counters, lengths: Vec::new(), nodes };
        let (input, steps) = reader.steps().ok_or_else(|| other("input"))?;
        let layers = steps.iter().map(|&step| reader.layer(step)).collect::<Option<Vec<_>>>();
        let layers = layers.ok_or_else(|| other("state"))?;
        let written = reader.written(&layers).ok_or_else(|| other("output"))?;
        let Reader { lengths, nodes, .. } = reader;
        if lengths.iter().any(|one| *one != lengths[0]) {
            return Err(other("length of rows"));
        }
        let size = size_of(graph, &input, written.as_ref(), &rounds);
        let size = size.ok_or_else(|| other("size of arrays"))?;
        frame.check_nodes(graph, &nodes)?;
        let lengths = lengths.first().copied().flatten();
        let waits = BTreeSet::new();
        let mut found = Loop { frame, rounds, size, lengths, input, layers, written, waits };
        found.waits = found.waits(graph);
        Ok(found)
    }

    /// What the nodes of the loop and of its input wait for.
    fn waits(&self, graph: &Graph) -> BTreeSet<NodeId> {
        let inside = self.frame.nodes.iter();
        let inside = inside.flat_map(|&id| graph.node(id).control_inputs.iter().copied());
        let before = self.input.array.outside.iter().copied().chain(self.array_written());
        let before = before.flat_map(|id| waits_for(graph, id));
        let all = inside.chain(before).filter(|id| !self.frame.nodes.contains(id));
        let own: BTreeSet<_> = self.outside().collect();
        let mut waits: BTreeSet<_> = all.filter(|id| !own.contains(id)).collect();
        for input in self.inputs() {
            waits.remove(&input.node);
        }
        waits
    }

    /// The array that is written, if there is one.
    fn array_written(&self) -> Option<NodeId> {
        self.written.as_ref().map(|written| written.first.node)
    }

    /// The nodes around the loop that nobody needs without it.
    fn outside(&self) -> impl Iterator<Item = NodeId> + '_ {
        let written = self.written.iter();
        let written = written.flat_map(|one| one.array.outside.iter().chain(&one.gather));
        self.input.array.outside.iter().chain(written).copied()
    }

    /// All that the new nodes take from outside.
    fn inputs(&self) -> impl Iterator<Item = Output> + '_ {
        let states =
            |layer: &'_ Layer| layer.states.iter().map(|state| state.0).collect::<Vec<_>>();
        let weights = |layer: &'_ Layer| {
            layer.weights.iter().flat_map(|weight| weight.sources.clone()).collect()
        };
        let layers = self.layers.iter();
        let of_layers = layers.flat_map(move |layer| [states(layer), weights(layer)].concat());
        let numbers = [self.size, self.rounds.zero].into_iter();
        let numbers = numbers.chain(self.rounds.bounds.iter().copied());
        numbers.chain(self.lengths).chain([self.input.x]).chain(of_layers)
    }

    /// The nodes whose outputs the new nodes have: last states and all outputs.
    fn results(&self) -> impl Iterator<Item = NodeId> + '_ {
        let states = self.layers.iter().flat_map(|layer| &layer.states);
        let gather = self.written.iter().filter_map(|written| written.gather);
        states.filter_map(|&(_, exit)| exit).chain(gather)
    }

    /// Whether new nodes may take the place of the loop.
    pub(super) fn check(
        &self,
        graph: &Graph,
        availability: &Availability,
        memory: &Memory,
    ) -> Result<Needed, Reason> {
        let name = |id: NodeId| graph.node(id).name.clone();
        let device = &graph.node(self.layers[0].step).device;
        for id in self.frame.nodes.iter().copied().chain(self.outside()) {
            let node = graph.node(id);
            if node.is_target && !self.results().any(|result| result == id) {
                return Err(Reason::Target(name(id)));
            }
            if node.device != *device || !device.is_local_cpu {
                return Err(Reason::Device(name(id)));
            }
        }
        let lists = self.written.iter().filter(|written| written.array.is_list);
        if let Some(stack) = lists.filter_map(|written| written.gather).next() {
            let before = self.outside().chain(self.waits.iter().copied());
            self.frame.check_stack(graph, stack, before)?;
        }
        self.leaving().check(graph)?;
        let is_outside = |input: &Output| !self.frame.nodes.contains(&input.node);
        let inputs: Vec<_> = self.inputs().filter(is_outside).collect();
        if let Some(node) = memory.unstable(&inputs) {
            return Err(Reason::Memory(name(node)));
        }
        let waits: Vec<_> = self.waits.iter().copied().collect();
        let needed = availability.needed(graph, &inputs, &waits);
        let gather = self.written.iter().filter_map(|written| written.gather);
        for id in self.frame.exits().chain(gather) {
            let covered = availability.covers(graph, Output { node: id, index: 0 }, &needed);
            let consumer = graph.uses(id).first().map(|one| name(one.consumer()));
            if let Some(consumer) = consumer.filter(|_| !covered) {
                return Err(Reason::Early { node: name(id), consumer });
            }
        }
        self.frame.check_exits(graph, memory, |variable| {
            let mut states = self.layers.iter().flat_map(|layer| &layer.states);
            let is_flow = self.written.as_ref().is_some_and(|one| one.first == variable.first);
            is_flow || states.any(|state| state.1 == variable.exit)
        })?;
        Ok(needed)
    }

    /// What leaves the loop.
    fn leaving(&self) -> Leaving<'_> {
        Leaving {
            frame: &self.frame,
            rounds: &self.rounds,
            root: self.layers[0].step,
            x: self.input.x,
            weights: self.layers.iter().flat_map(|layer| &layer.weights).collect(),
            inputs: self.inputs().collect(),
            waits: &self.waits,
        }
    }

    /// Puts the layers in the place of the loop. Returns the new nodes.
    pub(super) fn replace(self, graph: &mut Graph, report: &mut Report) -> Vec<NodeId> {
        let leaving = self.leaving();
        let left = leaving.nodes();
        let (weights, mut added) = leaving.release(graph);
        let (mut x, mut weights) = (self.input.x, weights.into_iter());
        let mut last = self.frame.condition;
        for (number, layer) in self.layers.iter().enumerate() {
            let of_layer = weights.by_ref().take(layer.weights.len()).collect();
            let new = self.emit(graph, number, x, of_layer);
            for (index, &(_, exit)) in layer.states.iter().enumerate() {
                if let Some(exit) = exit {
                    graph.redirect(
                        Output { node: exit, index: 0 },
                        Output { node: new, index: 1 + index },
                    );
                    graph.redirect_control(exit, new);
                }
            }
            x = Output { node: new, index: 0 };
            (last, added) = (new, [added, vec![new]].concat());
            report.replaced(&graph.node(layer.step).name, graph.op(layer.step));
            report.rewritten(graph, new, 1, None);
        }
        if let Some(gather) = self.written.as_ref().and_then(|written| written.gather) {
            graph.redirect(Output { node: gather, index: 0 }, x);
            graph.redirect_control(gather, last);
        }
        self.remove(graph, last, &left);
        added
    }

    /// Adds the node of a layer.
    fn emit(&self, graph: &mut Graph, number: usize, x: Output, weights: Vec<Output>) -> NodeId {
        let layer = &self.layers[number];
        let is_last = number + 1 == self.layers.len();
        // Only the first layer reads an array, and only the last one writes one.
        let read = (number == 0).then_some(&self.input.array.element);
        let written =
            self.written.as_ref().map(|written| &written.array.element).filter(|_| is_last);
        let sequence = Sequence {
            time: self.size,
            rounds: self.rounds.bounds.clone(),
            is_list: self.input.array.is_list,
            lengths: self.lengths,
            x,
            x_sizes: read.cloned().unwrap_or_default(),
            h_sizes: written.cloned().unwrap_or_default(),
            // Without an array, nobody misses outputs of steps that there are not.
            needs_h: written.is_some(),
        };
        let states = layer.states.iter().map(|state| state.0);
        let tensors = states.chain(weights).collect();
        let mut node = layer.cell.layer(graph.node(layer.step), &sequence, tensors);
        node.control_inputs = self.waits.iter().copied().collect();
        // A step that asks for one of them runs them all.
        node.is_target = self.results().any(|result| graph.node(result).is_target);
        graph.add(node)
    }

    /// Removes the loop and what is around it, as far as nobody else needs it.
    fn remove(&self, graph: &mut Graph, last: NodeId, left: &BTreeSet<NodeId>) {
        if let Some(written) = &self.written {
            let flow = self.frame.variables.iter().find(|one| one.first == written.first);
            if let Some(exit) = flow.and_then(|flow| flow.exit) {
                graph.redirect(Output { node: exit, index: 0 }, written.first);
            }
            let outside = written.array.outside.iter().filter(|_| written.array.is_list);
            outside.skip(1).for_each(|&identity| graph.redirect_control(identity, last));
        }
        self.frame.redirect_exits(graph, last);
        let inside = self.frame.nodes.iter().copied().filter(|id| !left.contains(id));
        graph.remove_all(inside);
        let counts = self.written.iter().flat_map(|written| written.count.iter().copied());
        let mut left: Vec<_> = self.outside().chain(counts).collect();
        // Each may be all that needed another.
        loop {
            let before = left.len();
            left.retain(|&id| {
                let is_unused = graph.get(id).is_some() && graph.uses(id).is_empty();
                if is_unused {
                    graph.remove_unused(id);
                }
                graph.get(id).is_some()
            });
            if left.len() == before {
                return;
            }
        }
    }
}

/// How many steps a loop has: as many as the arrays have elements, both of the same number; of lists the one that is
/// written. Where nobody takes outputs, a number of rounds serves for lists.
fn size_of(
    graph: &Graph,
    input: &Input,
    written: Option<&Written>,
    rounds: &Rounds,
) -> Option<Output> {
    if written.is_some_and(|written| written.array.is_list != input.array.is_list) {
        return None;
    }
    let of_written = written.and_then(|written| written.array.size);
    let Some(size) = input.array.size else {
        return of_written.or(rounds.bounds.first().copied());
    };
    of_written.is_none_or(|other| is_same(graph, other, size)).then_some(size)
}

impl Reader<'_> {
    /// The input of the first layer, and the steps from the first layer to the last.
    fn steps(&mut self) -> Option<(Input, Vec<NodeId>)> {
        let (graph, frame) = (self.graph, self.frame);
        let is_read =
            |&id: &NodeId| matches!(graph.op(id), "TensorArrayReadV3" | "TensorListGetItem");
        let mut reads = frame.nodes.iter().copied().filter(is_read);
        let read = reads.next().filter(|_| reads.next().is_none())?;
        let input = Input::read(graph, frame, read, |t| self.counters.is_count(graph, t))?;
        self.nodes.extend(&input.array.inside);
        let (mut x, mut steps) = (Output { node: read, index: 0 }, Vec::new());
        loop {
            let takes = |&id: &NodeId| {
                Cell::of(graph, id).is_some() && skip_identities(graph, graph.input(id, 0)) == x
            };
            let mut next = frame.nodes.iter().copied().filter(takes);
            let Some(step) = next.next() else { break };
            if next.next().is_some() || steps.contains(&step) {
                return None;
            }
            x = Output { node: step, index: Cell::of(graph, step)?.h };
            steps.push(step);
        }
        self.nodes.extend(&steps);
        (!steps.is_empty()).then_some((input, steps))
    }

    /// The layer of a step.
    fn layer(&mut self, step: NodeId) -> Option<Layer> {
        let (graph, frame) = (self.graph, self.frame);
        let cell = Cell::of(graph, step)?;
        let mut states = Vec::new();
        for &[input, output] in cell.states {
            let variable = frame.variable(graph, graph.input(step, input))?;
            let next = self.masked(variable.next)?;
            if next.value != (Output { node: step, index: output }) || self.counters.have(variable)
            {
                return None;
            }
            let keeps = |[kept, _]: [Output; 2]| variable.is(graph, kept);
            if !next.ended.is_none_or(keeps) {
                return None;
            }
            states.push((variable.first, variable.exit));
        }
        let weight = |&input: &usize| Weight::read(graph, frame, graph.input(step, input));
        let weights = cell.weights.iter().map(weight).collect::<Option<Vec<_>>>()?;
        self.nodes.extend(weights.iter().flat_map(|weight| &weight.nodes));
        Some(Layer { step, cell, states, weights })
    }

    /// The array that the outputs of the last layer are written to, or that there is none.
    fn written(&mut self, layers: &[Layer]) -> Option<Option<Written>> {
        let (graph, frame) = (self.graph, self.frame);
        let last = layers.last()?;
        let h = Output { node: last.step, index: last.cell.h };
        let is_flow = |variable: &&Variable| {
            graph.op(variable.next.node) == "TensorArrayWriteV3" || lists::writes(graph, variable)
        };
        let mut flows = frame.variables.iter().filter(is_flow);
        let Some(flow) = flows.next() else { return Some(None) };
        let counts = |t| self.counters.is_count(graph, t);
        let written = match lists::writes(graph, flow) {
            true => Written::of_list(graph, frame, counts),
            false => Written::read(graph, frame, flow, counts),
        };
        let written = written.filter(|_| flows.next().is_none())?;
        self.nodes.extend(&written.array.inside);
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
