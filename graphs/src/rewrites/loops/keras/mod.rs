//! Loops of Keras's layers: what `tf.keras.layers.LSTM` and `GRU` of Keras 3 write, once the loop is lowered.
//!
//! ```text
//! in the graph                                             becomes
//! x -> TensorListFromTensor -> loop of Keras's LSTM step   BlockcellKerasLSTM(size, rounds, x, ...)
//!                              -> TensorListStack -> h
//!                           of Keras's GRU step            BlockcellKerasGRU
//! ```
//!
//! The steps are small operations in the loop: `step.rs`, `lstm.rs` and `gru.rs`. Its lists are in `../lists.rs`, and
//! what a masked step does in `masks.rs`. Lists are values, not memory, so that it does not matter who else reads them.
//! Variables of the layer are read in every round. `../weights.rs` lets the new node read them once, after all that the
//! loop waits for: nothing in the loop writes to them, and whatever writes to them outside is either before the loop,
//! or might have come after all of its rounds. A loop without a round reads no variable: `../rounds.rs`.

mod gru;
mod lstm;
mod masks;
mod replacement;
mod step;

use std::collections::BTreeSet;

use super::body::Counters;
use super::frame::Frame;
use super::lists::{Input, Written};
use super::rounds::Rounds;
use super::weights::{Leaving, Weight};
use crate::facts::availability::{Availability, Needed};
use crate::facts::memory::Memory;
use crate::facts::placement::{check_replaceable, is_claimed};
use crate::facts::waits::waits_for;
use crate::graph::reason::Reason;
use crate::graph::{Graph, NodeId, Output, Use};
use crate::reading::neighbours::parts;
use masks::Mask;
use step::Step;

/// Whether a step of Keras's cells may begin here: with the `Split` of pre-activations.
pub(super) fn is_place(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    // The gates of an LSTM have one sum. Those of a GRU have one for x and one for the state.
    let products = match parts(node) {
        Some(4) => 2,
        Some(3) => 1,
        _ => return false,
    };
    step::Terms::read(graph, node.inputs[1])
        .is_some_and(|terms| terms.products.len() == products && terms.biases.len() == 1)
}

/// A loop that is nothing but steps of a layer of Keras.
#[derive(Debug)]
pub(super) struct KerasLoop {
    frame: Frame,
    rounds: Rounds,
    input: Input,
    step: Step,
    /// For each state of the cell: its variable's first value, and what leaves the loop.
    states: Vec<(Output, Option<NodeId>)>,
    weights: Vec<Weight>,
    mask: Option<Mask>,
    written: Written,
    /// What the new nodes have to wait for.
    waits: BTreeSet<NodeId>,
}

impl KerasLoop {
    pub(super) fn read(graph: &Graph, frame: Frame) -> Result<KerasLoop, Reason> {
        let node = graph.node(frame.condition).name.clone();
        let other = |part: &'static str| Reason::Loop { part, node: node.clone() };
        let counters = Counters::read(graph, &frame).ok_or_else(|| other("condition"))?;
        let step = step_of(graph, &frame).ok_or_else(|| other("step"))?;
        check_replaceable(graph.node(step.root))?;
        let counts = |t| counters.is_count(graph, t);
        let input = Input::read(graph, &frame, step.x, counts).ok_or_else(|| other("input"))?;
        let written = Written::read(graph, &frame, counts)
            .and_then(|written| written.with_units(step.units))
            .ok_or_else(|| other("list of outputs"))?;
        let mut masks = masks::Reader::new(graph, &frame, &counters);
        let states = step.states.iter().map(|&state| masks.state(state));
        let states = states.collect::<Option<Vec<_>>>().ok_or_else(|| other("state"))?;
        let mask = masks.output(&written, step.h).ok_or_else(|| other("output"))?;
        let weights = step.weights.iter().map(|&weight| Weight::read(graph, &frame, weight));
        let weights = weights.collect::<Option<Vec<_>>>().ok_or_else(|| other("weights"))?;
        let mut known: BTreeSet<_> = frame.nodes_of_variables().collect();
        known.extend(counters.nodes.iter().chain(&step.nodes).chain(&masks.nodes));
        known.extend(weights.iter().flat_map(|weight| &weight.nodes));
        known.extend([input.read, written.write]);
        frame.check_nodes(graph, &known)?;
        let rounds = Rounds::of(&counters);
        let waits = BTreeSet::new();
        let mut found =
            KerasLoop { frame, rounds, input, step, states, weights, mask, written, waits };
        found.waits = found.waits(graph);
        Ok(found)
    }

    /// What the nodes of the loop and of its lists wait for.
    fn waits(&self, graph: &Graph) -> BTreeSet<NodeId> {
        let inside = self.frame.nodes.iter();
        let inside = inside.flat_map(|&id| graph.node(id).control_inputs.iter().copied());
        let before = self.lists().flat_map(|id| waits_for(graph, id));
        let all = inside.chain(before);
        let own: BTreeSet<_> = self.lists().chain(self.frame.nodes.iter().copied()).collect();
        let taken: BTreeSet<_> = self.inputs().map(|input| input.node).collect();
        all.filter(|id| !own.contains(id) && !taken.contains(id)).collect()
    }

    /// The lists of the loop, which nobody may need without it.
    fn lists(&self) -> impl Iterator<Item = NodeId> + '_ {
        let of_mask = self.mask.iter().map(|mask| mask.input.list);
        let written = self.written.between.iter().rev().copied().chain([self.written.list]);
        written.chain([self.input.list]).chain(of_mask)
    }

    /// All that the new nodes take from outside of the loop. Constants may be in it.
    fn inputs(&self) -> impl Iterator<Item = Output> + '_ {
        let numbers = [self.written.size, self.rounds.zero].into_iter();
        let numbers = numbers.chain(self.rounds.bounds.iter().copied());
        let mask = self.mask.iter().flat_map(|mask| [mask.input.x, mask.before]);
        let states = self.states.iter().map(|state| state.0);
        let weights = self.weights.iter().flat_map(|weight| weight.sources.iter().copied());
        numbers.chain(mask).chain([self.input.x]).chain(states).chain(weights)
    }

    /// What leaves the loop.
    fn leaving(&self) -> Leaving<'_> {
        Leaving {
            frame: &self.frame,
            rounds: &self.rounds,
            root: self.step.root,
            x: self.input.x,
            weights: self.weights.iter().collect(),
            inputs: self.inputs().collect(),
            waits: &self.waits,
        }
    }

    /// The nodes whose outputs the new node has: last states and all outputs.
    fn results(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.states.iter().filter_map(|state| state.1).chain(self.written.stack)
    }

    /// Whether a new node may take the place of the loop. Returns what that needs to run.
    pub(super) fn check(
        &self,
        graph: &Graph,
        availability: &Availability,
        memory: &Memory,
    ) -> Result<Needed, Reason> {
        let name = |id: NodeId| graph.node(id).name.clone();
        let device = &graph.node(self.step.root).device;
        let ours = self.frame.nodes.iter().copied().chain(self.lists()).chain(self.written.stack);
        for id in ours {
            let node = graph.node(id);
            if node.is_target && !self.results().any(|result| result == id) {
                return Err(Reason::Target(name(id)));
            }
            if node.device != *device || !device.is_local_cpu {
                return Err(Reason::Device(name(id)));
            }
            if is_claimed(node) {
                return Err(Reason::Kernel(name(id)));
            }
        }
        if let Some(stack) = self.written.stack {
            let before = self.lists().chain(self.waits.iter().copied());
            self.frame.check_stack(graph, stack, before)?;
        }
        let is_outside = |input: &Output| !self.frame.nodes.contains(&input.node);
        let inputs: Vec<_> = self.inputs().filter(is_outside).collect();
        if let Some(node) = memory.unstable(&inputs) {
            return Err(Reason::Memory(name(node)));
        }
        self.leaving().check(graph)?;
        let waits: Vec<_> = self.waits.iter().copied().collect();
        let needed = availability.needed(graph, &inputs, &waits);
        self.check_consumers(graph, availability, &needed)?;
        self.frame.check_exits(graph, memory, |variable| {
            let is_state = self.states.iter().any(|state| state.1 == variable.exit);
            is_state || self.written.merge == variable.merge
        })?;
        Ok(needed)
    }

    /// Whether everybody who takes what leaves the loop waits for all that the new node needs.
    fn check_consumers(
        &self,
        graph: &Graph,
        availability: &Availability,
        needed: &Needed,
    ) -> Result<(), Reason> {
        let exits = self.frame.exits();
        for node in exits.chain(self.written.stack) {
            let tensor = Output { node, index: 0 };
            let mut consumers = graph.uses(node).iter().map(Use::consumer);
            let is_early = |id: &NodeId| {
                Some(*id) != self.written.stack
                    && !availability.covers_consumer(graph, *id, tensor, needed)
            };
            if let Some(consumer) = consumers.find(is_early) {
                let name = |id: NodeId| graph.node(id).name.clone();
                return Err(Reason::Early { node: name(node), consumer: name(consumer) });
            }
        }
        Ok(())
    }
}

/// The step of a loop. None if there is another number of them.
fn step_of(graph: &Graph, frame: &Frame) -> Option<Step> {
    let places = frame.nodes.iter().copied().filter(|&id| is_place(graph, id));
    let step = |id| match parts(graph.node(id)) {
        Some(4) => lstm::read(graph, frame, id),
        _ => gru::read(graph, frame, id),
    };
    let mut steps = places.filter_map(step);
    steps.next().filter(|_| steps.next().is_none())
}
