//! Rewrite: steps of a cell that follow each other without a loop become one node.
//!
//! ```text
//! in the graph, as `tf.nn.static_rnn` writes it              becomes
//! h_0, cs_0 = BlockcellLSTMCell(x_0, h_prev, w, b, cs_prev)  x = Pack(x_0, x_1, ...)
//! h_1, cs_1 = BlockcellLSTMCell(x_1, h_0, w, b, cs_0)        h, h_last, cs_last = BlockcellLSTMLayer(n, n, x, ...)
//! ...                                                        h_0, h_1, ... = Unpack(h)
//! ```
//!
//! The steps are those that `cells` has put there, and those of TensorFlow's block cells. The layers of a stack follow each other: what `Unpack` gives
//! one by one, the next layer takes whole. Conditions, and where they are checked:
//!
//! * The steps differ in x and in their states only, and nobody reads other tensors of them than h and the
//!   last states: [`Steps::next`]. So steps of a training graph stay, whose gradients read the gates.
//! * All those that nodes have in common which become layers: [`Candidate`].
//! * Steps whose x have different shapes are an error before and after: the states have as many rows as each x.

use std::collections::{BTreeMap, BTreeSet};

use super::candidate::{Candidate, Facts, Order, Readers};
use super::layer::{Cell, Sequence};
use crate::facts::waits::waits_for;
use crate::graph::report::Report;
use crate::graph::{Attribute, Constant, DataType, Graph, Node, NodeId, Output, Use, Values, ops};
use crate::reading::constants::{constant, has_zeros};
use crate::reading::neighbours::{identities, skip_identities};

/// With fewer steps, the nodes around the new one take longer than it saves.
const FEWEST_STEPS: usize = 4;

/// Rewrites all such steps of a graph.
pub(crate) fn rewrite(graph: &mut Graph, report: &mut Report) {
    let mut chains = Steps::of(graph).chains(graph);
    chains.retain(|chain| chain.steps.len() >= FEWEST_STEPS);
    if chains.is_empty() {
        return;
    }
    let mut facts = Facts::of(graph);
    // The layers of a stack from the first to the last.
    chains.sort_by_key(|chain| facts.levels.of_node(chain.steps[0]));
    for chain in chains {
        // What it takes may have moved since.
        let chain = chain.current(graph);
        let candidate = chain.candidate(graph);
        match candidate.check(graph, &facts) {
            Ok(needed) => candidate.replace(graph, &mut facts, &needed, |graph| {
                chain.replace(graph, &candidate, report)
            }),
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
            self.cells.get(next) == Some(cell)
                && have_same_weights(graph, cell, id, *next)
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
            && node.int("num_cs_prev") == Some(0)
            && graph.op(step) == ops::LSTM_CELL
            && ["num_peepholes", "num_w_h"].iter().all(|name| {
                [node, graph.node(step)].map(|node| node.int(name).unwrap_or(0)) == [0; 2]
            });
        if !is_first {
            return self;
        }
        let is_same = node.data_type() == graph.node(step).data_type()
            && ["cell_clip", "gate_order", "activation"]
                .iter()
                .all(|name| node.attribute(name) == graph.node(step).attribute(name))
            && have_same_weights(graph, &self.cell, before, step)
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

    fn candidate(&self, graph: &Graph) -> Candidate {
        let nodes: BTreeSet<_> = self.steps.iter().copied().collect();
        let weights = weights(graph, self.last(), &self.cell);
        let inputs = [self.x(graph), self.states.clone(), weights].concat();
        let awaited =
            self.steps.iter().copied().chain(self.unread(graph)).chain(self.passed(graph));
        let awaited = awaited.flat_map(|id| waits_for(graph, id));
        Candidate {
            root: self.steps[0],
            waits: Candidate::waits(awaited, &nodes, &inputs),
            inputs,
            outputs: nodes.clone(),
            order: Order::Apart,
            read: nodes.clone(),
            readers: Readers::Late,
            nodes,
        }
    }

    /// Puts new nodes in the place of the steps. Returns them.
    fn replace(
        &self,
        graph: &mut Graph,
        candidate: &Candidate,
        report: &mut Report,
    ) -> Vec<NodeId> {
        let last = self.last();
        report.replaced(graph, self.steps.iter().copied());
        let before = graph.len();
        let x = self.packed(graph);
        let time = self.time(graph, x);
        let sequence = Sequence {
            time,
            rounds: vec![time],
            lengths: None,
            x,
            x_sizes: Vec::new(),
            h_sizes: Vec::new(),
            needs_h: true,
        };
        let tensors = [self.states.clone(), weights(graph, last, &self.cell)].concat();
        let (step, outputs) = (graph.node(last), 1 + self.cell.states.len());
        let attributes = self.cell.attributes(false, false);
        let mut layer = sequence.node(step, self.cell.op, &attributes, tensors, outputs);
        layer.control_inputs = candidate.waits.iter().copied().collect();
        layer.is_target = self.steps.iter().any(|&id| graph.node(id).is_target);
        let layer = graph.add(layer);
        self.give_whole(graph, layer);
        self.give_each(graph, layer, &candidate.nodes);
        for (number, &[_, output]) in self.cell.states.iter().enumerate() {
            let to = Output { node: layer, index: 1 + number };
            graph.redirect(Output { node: last, index: output }, to);
        }
        for &id in &self.steps {
            graph.redirect_control(id, layer);
        }
        report.rewritten(graph, layer, self.steps.len(), None);
        self.remove(graph);
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
    fn give_each(&self, graph: &mut Graph, layer: NodeId, steps: &BTreeSet<NodeId>) {
        let h = self.h();
        let is_read = |tensor: &Output| !takers(graph, *tensor).is_subset(steps);
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

    /// What the steps take and the layer does not.
    fn unread(&self, graph: &Graph) -> impl Iterator<Item = NodeId> {
        self.steps.iter().flat_map(|&id| self.cell.unread(graph, id))
    }

    /// What passes weights on to the steps, and not to the layer.
    fn passed(&self, graph: &Graph) -> impl Iterator<Item = NodeId> {
        let inputs = move |&id: &NodeId| self.cell.weights.iter().map(move |&n| graph.input(id, n));
        self.steps.iter().flat_map(inputs).flat_map(|weights| identities(graph, weights))
    }

    /// Removes the steps, and what took x apart for them alone, or is not read.
    fn remove(&self, graph: &mut Graph) {
        let parts = self.x(graph).into_iter().map(|x| x.node);
        let mut needless: BTreeSet<_> = parts.filter(|&id| graph.op(id) == "Unpack").collect();
        needless.extend(self.unread(graph));
        graph.remove_all(self.steps.iter().copied());
        for id in needless {
            if graph.use_count(id) == 0 && !graph.node(id).is_target {
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

/// Whether two steps have the same weights. Each has nodes of its own for what `cells` found missing, or added up.
fn have_same_weights(graph: &Graph, cell: &Cell, one: NodeId, other: NodeId) -> bool {
    let zeros = |tensor| {
        constant(graph, tensor).filter(|constant| matches!(constant.values, Values::Zeros))
    };
    let are_zeros =
        |(one, other)| zeros(one).is_some_and(|constant| zeros(other) == Some(constant));
    let mut pairs = weights(graph, one, cell).into_iter().zip(weights(graph, other, cell));
    let sum = |tensor: Output| Some(graph.node(tensor.node)).filter(|node| node.op == "AddV2");
    let are_sums = |(one, other)| {
        let both = sum(one).zip(sum(other));
        both.is_some_and(|(one, other)| one.inputs == other.inputs)
    };
    pairs.all(|pair| pair.0 == pair.1 || are_zeros(pair) || are_sums(pair))
}

/// Who takes a tensor.
fn takers(graph: &Graph, tensor: Output) -> BTreeSet<NodeId> {
    let takes = |one: &Use| matches!(*one, Use::Data { output, .. } if output == tensor.index);
    graph.uses(tensor.node).filter(takes).map(|one| one.consumer()).collect()
}

/// Whether nobody reads other tensors of a step than its states.
fn has_states_only(graph: &Graph, step: NodeId, cell: &Cell) -> bool {
    let is_state = |index: usize| cell.states.iter().any(|&[_, output]| output == index);
    graph.uses(step).all(|one| !matches!(one, Use::Data { output, .. } if !is_state(output)))
}
