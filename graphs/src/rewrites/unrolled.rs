//! Rewrite: steps of a cell that follow each other without a loop become one node.
//!
//! ```text
//! in the graph, as `tf.nn.static_rnn` writes it              becomes
//! h_0, cs_0 = BlockcellLSTMCell(x_0, h_prev, w, b, cs_prev)  x = Pack(x_0, x_1, ...)
//! h_1, cs_1 = BlockcellLSTMCell(x_1, h_0, w, b, cs_0)        h, h_last, cs_last = BlockcellLSTMLayer(n, n, x, ...)
//! ...                                                        h_0, h_1, ... = Unpack(h)
//! ```
//!
//! The steps are those that `cells` has put there. The layers of a stack follow each other: what `Unpack` gives
//! one by one, the next layer takes whole. Conditions, and where they are checked:
//!
//! * The steps differ in x and in their states only, and nobody reads other tensors of them than h and the
//!   last states: [`Steps::next`]. So steps of a training graph stay, whose gradients read the gates.
//! * All are on one CPU of this process: [`Chain::check_places`].
//! * No step takes an x that depends on a step before it: [`Levels`].
//! * All outputs have a value at the same time. So whoever takes one waits for all inputs anyhow:
//!   [`Chain::check_consumers`].
//! * What the new node takes keeps its value: no memory of a variable that the graph writes to.
//! * Steps whose x have different shapes are an error before and after: the states have as many rows as each x.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::availability::{Availability, Needed};
use crate::facts::levels::Levels;
use crate::facts::memory::Memory;
use crate::facts::placement::is_claimed;
use crate::facts::waits::waits_for;
use crate::graph::reason::Reason;
use crate::graph::report::Report;
use crate::graph::{Attribute, Constant, DataType, Graph, Node, NodeId, Output, Use, Values, ops};
use crate::reading::constants::has_zeros;
use crate::reading::neighbours::skip_identities;
use crate::rewrites::layer::{Cell, Sequence};

/// With fewer steps, the nodes around the new one take longer than it saves.
const FEWEST_STEPS: usize = 4;

/// Rewrites all such steps of a graph.
pub(crate) fn rewrite(graph: &mut Graph, report: &mut Report) {
    let mut chains = Steps::of(graph).chains(graph);
    chains.retain(|chain| chain.steps.len() >= FEWEST_STEPS);
    if chains.is_empty() {
        return;
    }
    let (mut levels, memory) = (Levels::of(graph), Memory::of(graph));
    let mut availability = Availability::of(graph);
    // The layers of a stack from the first to the last.
    chains.sort_by_key(|chain| levels.of_node(chain.steps[0]));
    for chain in chains {
        // What it takes may have moved since.
        let chain = chain.current(graph);
        match chain.check(graph, &levels, &availability, &memory) {
            Ok((waits, needed)) => {
                let added = chain.replace(graph, waits, report);
                for &new in &added {
                    levels.lift(graph, new, &chain.steps);
                    availability.add(graph, new, needed.clone());
                }
                chain.remove(graph);
            }
            Err(reason) => report.stays(chain.steps[0], reason),
        }
    }
}

/// The steps of a graph of which nobody reads other tensors than states.
struct Steps {
    cells: BTreeMap<NodeId, Cell>,
}

impl Steps {
    fn of(graph: &Graph) -> Steps {
        let cells = graph.ids().filter_map(|id| Some((id, Cell::of(graph, id)?)));
        Steps { cells: cells.filter(|(id, cell)| has_states_only(graph, *id, cell)).collect() }
    }

    /// The step that goes on where another one ends, if only one does.
    fn next(&self, graph: &Graph, id: NodeId, cell: &Cell) -> Option<NodeId> {
        let h = Output { node: id, index: cell.h };
        let follows = |next: &NodeId| {
            self.cells.contains_key(next)
                && cell.is_same(graph.node(id), graph.node(*next))
                && weights(graph, id, cell) == weights(graph, *next, cell)
                && cell.takes_states(graph, *next, id)
        };
        let mut next = takers(graph, h).into_iter().filter(follows);
        let only = next.next().filter(|_| next.next().is_none())?;
        cell.keeps(graph, id).then_some(only)
    }

    /// All steps, in chains that are as long as they can be.
    fn chains(&self, graph: &Graph) -> Vec<Chain> {
        let next =
            self.cells.iter().filter_map(|(&id, cell)| Some((id, self.next(graph, id, cell)?)));
        let next: BTreeMap<_, _> = next.collect();
        let later: BTreeSet<_> = next.values().copied().collect();
        let firsts = self.cells.iter().filter(|(id, _)| !later.contains(id));
        firsts
            .map(|(&first, cell)| {
                let steps = std::iter::successors(Some(first), |id| next.get(id).copied());
                let states = cell.states.iter().map(|&[input, _]| graph.input(first, input));
                Chain { cell: cell.clone(), states: states.collect(), steps: steps.collect() }
            })
            .map(|chain| chain.with_first(graph))
            .collect()
    }
}

/// Steps of a cell, each of which takes the states of the one before.
#[derive(Debug)]
struct Chain {
    cell: Cell,
    /// The first step's.
    states: Vec<Output>,
    steps: Vec<NodeId>,
}

impl Chain {
    /// The chain with the step before it from which the optimizers took cs_prev, as it is zero.
    fn with_first(mut self, graph: &Graph) -> Chain {
        let step = self.steps[0];
        let before = self.states[0].node;
        let node = graph.node(before);
        let is_first = node.op == ops::LSTM_CELL
            && [("C", 0), ("P", 0)].iter().all(|&(name, count)| node.int(name) == Some(count))
            && graph.op(step) == ops::LSTM_CELL
            && graph.node(step).int("P") == Some(0);
        if !is_first {
            return self;
        }
        let is_same = node.data_type() == graph.node(step).data_type()
            && node.attribute("cell_clip") == graph.node(step).attribute("cell_clip")
            && weights(graph, before, &self.cell) == weights(graph, step, &self.cell)
            && self.cell.takes_states(graph, step, before)
            && self.cell.keeps(graph, before)
            && has_states_only(graph, before, &self.cell);
        let h_prev = graph.input(before, 1);
        if is_same && has_zeros(graph, h_prev) {
            self.steps.insert(0, before);
            // Both states have the shape of h, and are zero.
            self.states = vec![h_prev; 2];
        }
        self
    }

    fn current(mut self, graph: &Graph) -> Chain {
        self.states.iter_mut().for_each(|state| *state = graph.current(*state));
        self
    }

    /// The last step.
    fn last(&self) -> NodeId {
        *self.steps.last().expect("there are steps")
    }

    /// Each step's x.
    fn x(&self, graph: &Graph) -> Vec<Output> {
        self.steps.iter().map(|&id| graph.input(id, 0)).collect()
    }

    /// Each step's h.
    fn h(&self) -> Vec<Output> {
        self.steps.iter().map(|&node| Output { node, index: self.cell.h }).collect()
    }

    /// Checks all conditions. Returns what the new node has to wait for, and what it needs to run.
    fn check(
        &self,
        graph: &Graph,
        levels: &Levels,
        availability: &Availability,
        memory: &Memory,
    ) -> Result<(BTreeSet<NodeId>, Needed), Reason> {
        let name = |id: NodeId| graph.node(id).name.clone();
        self.check_places(graph)?;
        let weights = weights(graph, self.last(), &self.cell);
        let inputs = [self.x(graph), self.states.clone(), weights].concat();
        let waits = self.steps.iter().flat_map(|&id| waits_for(graph, id));
        let waits: BTreeSet<_> = waits.filter(|id| !self.steps.contains(id)).collect();
        let awaited: Vec<_> = waits.iter().copied().collect();
        let before = [inputs.iter().map(|input| input.node).collect(), awaited.clone()].concat();
        if !levels.are_independent(graph, &before, &self.steps) {
            return Err(Reason::Circle(name(self.steps[0])));
        }
        if let Some(node) = memory.unstable(&inputs) {
            return Err(Reason::Memory(name(node)));
        }
        let needed = availability.needed(graph, &inputs, &awaited);
        self.check_consumers(graph, availability, &needed)?;
        Ok((waits, needed))
    }

    fn check_places(&self, graph: &Graph) -> Result<(), Reason> {
        let device = &graph.node(self.steps[0]).device;
        for &id in &self.steps {
            let node = graph.node(id);
            if node.device != *device || !device.is_local_cpu {
                return Err(Reason::Device(node.name.clone()));
            }
            if is_claimed(node) {
                return Err(Reason::Kernel(node.name.clone()));
            }
        }
        Ok(())
    }

    /// Whether everybody who depends on a step waits for all that the new node needs.
    fn check_consumers(
        &self,
        graph: &Graph,
        availability: &Availability,
        needed: &Needed,
    ) -> Result<(), Reason> {
        for &node in &self.steps {
            for one in graph.uses(node).iter().filter(|one| !self.steps.contains(&one.consumer())) {
                let index = match *one {
                    Use::Data { output, .. } => output,
                    Use::Control { .. } => 0,
                };
                let tensor = Output { node, index };
                if !availability.covers_consumer(graph, one.consumer(), tensor, needed) {
                    let name = |id| graph.node(id).name.clone();
                    return Err(Reason::Early { node: name(node), consumer: name(one.consumer()) });
                }
            }
        }
        Ok(())
    }

    /// Puts new nodes in the place of the steps, which nobody else needs then. Returns the new ones.
    fn replace(
        &self,
        graph: &mut Graph,
        waits: BTreeSet<NodeId>,
        report: &mut Report,
    ) -> Vec<NodeId> {
        let last = self.last();
        for &id in &self.steps {
            report.replaced(&graph.node(id).name, graph.op(id));
        }
        let before = graph.len();
        let x = self.packed(graph);
        let time = self.time(graph, x);
        let sequence = Sequence {
            is_list: false,
            time,
            rounds: vec![time],
            lengths: None,
            x,
            x_sizes: Vec::new(),
            h_sizes: Vec::new(),
            needs_h: true,
        };
        let tensors = [self.states.clone(), weights(graph, last, &self.cell)].concat();
        let mut layer = self.cell.layer(graph.node(last), &sequence, tensors);
        layer.control_inputs = waits.into_iter().collect();
        layer.is_target = self.steps.iter().any(|&id| graph.node(id).is_target);
        let layer = graph.add(layer);
        self.give_whole(graph, layer);
        self.give_each(graph, layer);
        for (number, &[_, output]) in self.cell.states.iter().enumerate() {
            let to = Output { node: layer, index: 1 + number };
            graph.redirect(Output { node: last, index: output }, to);
        }
        for &id in &self.steps {
            graph.redirect_control(id, layer);
        }
        report.rewritten(graph, layer, self.steps.len(), None);
        (before..graph.len()).map(NodeId).collect()
    }

    /// All x as one tensor.
    fn packed(&self, graph: &mut Graph) -> Output {
        let x = self.x(graph);
        let node = graph.node(x[0].node);
        let is_whole = node.op == "Unpack"
            && node.int("axis") == Some(0)
            && node.int("num") == Some(self.count())
            && x.iter().copied().eq((0..x.len()).map(|index| Output { index, ..x[0] }));
        if is_whole {
            return node.inputs[0];
        }
        let attributes = [("N", self.count()), ("axis", 0)];
        let pack = self.node(graph, "Pack", &attributes, x);
        Output { node: graph.add(pack), index: 0 }
    }

    /// The number of steps, in the same round of a loop as they.
    fn time(&self, graph: &mut Graph, x: Output) -> Output {
        let values = Values::Ints(vec![self.count()]);
        let value = Constant { data_type: DataType::INT32, shape: Vec::new(), values };
        let node = Node {
            name: self.name(graph, "Const"),
            op: "Const".to_owned(),
            device: graph.node(self.last()).device.clone(),
            attributes: vec![
                ("dtype".to_owned(), Attribute::Type(DataType::INT32)),
                ("value".to_owned(), Attribute::Constant(value)),
            ],
            control_inputs: vec![x.node],
            output_types: vec![DataType::INT32],
            ..Node::default()
        };
        Output { node: graph.add(node), index: 0 }
    }

    /// Gives all h as one tensor to those who took them to make it.
    fn give_whole(&self, graph: &mut Graph, layer: NodeId) {
        let h = self.h();
        for pack in takers(graph, h[0]) {
            let node = graph.node(pack);
            let is_whole = node.op == "Pack" && node.int("axis") == Some(0) && node.inputs == h;
            if is_whole && !node.is_target && node.device == graph.node(layer).device {
                graph.redirect(Output { node: pack, index: 0 }, Output { node: layer, index: 0 });
                graph.redirect_control(pack, layer);
                graph.remove_unused(pack);
            }
        }
    }

    /// Gives each h to those who took it from a step. The last one is also a state.
    fn give_each(&self, graph: &mut Graph, layer: NodeId) {
        let h = self.h();
        let is_read = |tensor: &Output| {
            takers(graph, *tensor).iter().any(|consumer| !self.steps.contains(consumer))
        };
        if !h[..h.len() - 1].iter().any(is_read) {
            return;
        }
        let attributes = [("num", self.count()), ("axis", 0)];
        let whole = vec![Output { node: layer, index: 0 }];
        let mut unpack = self.node(graph, "Unpack", &attributes, whole);
        unpack.output_types = vec![unpack.output_types[0]; h.len()];
        let unpack = graph.add(unpack);
        for (index, tensor) in h.into_iter().enumerate() {
            graph.redirect(tensor, Output { node: unpack, index });
        }
    }

    /// Removes the steps, and what took x apart for them alone.
    fn remove(&self, graph: &mut Graph) {
        let parts: BTreeSet<_> = self.x(graph).iter().map(|x| x.node).collect();
        graph.remove_all(self.steps.iter().copied());
        for id in parts {
            let is_needless = graph.op(id) == "Unpack" && !graph.node(id).is_target;
            if is_needless && graph.uses(id).is_empty() {
                graph.remove_unused(id);
            }
        }
    }

    fn count(&self) -> i64 {
        i64::try_from(self.steps.len()).expect("a graph has fewer steps")
    }

    /// The name of a new node beside the layer, which has the name of the last step.
    fn name(&self, graph: &Graph, op: &str) -> String {
        format!("{}/blockcell/{op}", graph.node(self.last()).name)
    }

    /// A node of one of TensorFlow's operations, where the steps are.
    fn node(&self, graph: &Graph, op: &str, numbers: &[(&str, i64)], inputs: Vec<Output>) -> Node {
        let step = graph.node(self.last());
        let data_type = step.data_type().expect("steps have a type");
        let numbers = numbers.iter().map(|&(name, number)| (name, Attribute::Int(number)));
        let attributes = [("T", Attribute::Type(data_type))].into_iter().chain(numbers);
        Node {
            name: self.name(graph, op),
            op: op.to_owned(),
            device: step.device.clone(),
            attributes: attributes.map(|(name, value)| (name.to_owned(), value)).collect(),
            inputs,
            output_types: vec![data_type],
            ..Node::default()
        }
    }
}

/// The weights of a step.
fn weights(graph: &Graph, step: NodeId, cell: &Cell) -> Vec<Output> {
    cell.weights.iter().map(|&input| skip_identities(graph, graph.input(step, input))).collect()
}

/// Who takes a tensor.
fn takers(graph: &Graph, tensor: Output) -> BTreeSet<NodeId> {
    let takes = |one: &&Use| matches!(**one, Use::Data { output, .. } if output == tensor.index);
    graph.uses(tensor.node).iter().filter(takes).map(Use::consumer).collect()
}

/// Whether nobody reads other tensors of a step than its states.
fn has_states_only(graph: &Graph, step: NodeId, cell: &Cell) -> bool {
    let is_state = |index: usize| cell.states.iter().any(|&[_, output]| output == index);
    let mut uses = graph.uses(step).iter();
    uses.all(|one| !matches!(*one, Use::Data { output, .. } if !is_state(output)))
}
