//! A loop as layers, and the nodes that take its place.

use std::collections::BTreeSet;

use super::frame::Frame;
use super::lists::{Input, Written};
use super::rounds::Rounds;
use super::weights::{Leaving, Weight};
use crate::facts::waits::waits_for;
use crate::graph::reason::Reason;
use crate::graph::report::Report;
use crate::graph::{Attribute, Graph, NodeId, Output};
use crate::rewrites::candidate::{Candidate, Facts, Order, Readers};
use crate::rewrites::layer::Sequence;
use crate::rewrites::zeros;

/// A layer: what its cell does in all rounds.
#[derive(Debug)]
pub(super) struct Layer {
    /// A node of the step, whose name the new one gets.
    pub(super) root: NodeId,
    /// The operation of the new node.
    pub(super) op: &'static str,
    /// Its attributes before and after those of [`Sequence`].
    pub(super) attributes: [Vec<(&'static str, Attribute)>; 2],
    /// For each state of the cell: its first value, and what leaves the loop.
    pub(super) states: Vec<(Output, Option<NodeId>)>,
    /// Weights, biases and peepholes.
    pub(super) weights: Vec<Weight>,
    /// The places among these where there is no bias, and so many zeros stand for it.
    pub(super) zeros: Vec<(usize, i64)>,
    /// What the new node takes beside these, as its last inputs.
    pub(super) more: Vec<Output>,
}

/// A loop that is nothing but layers, each of which takes the outputs of the one before.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) frame: Frame,
    pub(super) rounds: Rounds,
    /// How many steps there are.
    pub(super) size: Output,
    /// How many steps each row has, if they differ.
    pub(super) lengths: Option<Output>,
    pub(super) input: Input,
    /// Lists beside that of the input, which nobody may need without the loop.
    pub(super) lists: Vec<NodeId>,
    pub(super) layers: Vec<Layer>,
    pub(super) written: Option<Written>,
    /// Whether somebody reads h where there is no step to compute.
    pub(super) needs_h: bool,
    pub(super) readers: Readers,
}

impl Loop {
    /// Replaces the loop, if all conditions hold.
    pub(super) fn rewrite(
        mut self,
        graph: &mut Graph,
        facts: &mut Facts,
        report: &mut Report,
    ) -> Result<(), Reason> {
        let candidate = self.candidate(graph);
        let needed = candidate.check(graph, facts)?;
        self.leaving(&candidate).check(graph)?;
        self.frame.check_exits(graph, &facts.memory, |variable| {
            let is_list = self.written.as_ref().is_some_and(|one| one.merge == variable.merge);
            is_list || self.states().any(|state| state.1 == variable.exit)
        })?;
        candidate.replace(graph, facts, &needed, |graph| self.replace(graph, &candidate, report));
        Ok(())
    }

    fn candidate(&mut self, graph: &Graph) -> Candidate {
        let (frame, written) = (&self.frame, self.written.as_ref());
        let nodes = frame.nodes.iter().copied().chain(self.outside()).collect();
        let inputs = self.inputs();
        let before = self.input.outside.iter().chain(&self.lists).copied();
        let before = before.chain(written.map(|written| written.first.node));
        let inside = frame.nodes.iter();
        let inside = inside.flat_map(|&id| graph.node(id).control_inputs.iter().copied());
        let awaited = inside.chain(before.flat_map(|id| waits_for(graph, id)));
        let waits = Candidate::waits(awaited, &nodes, &inputs);
        let stack = written.and_then(|written| written.stack);
        let outputs = self.states().filter_map(|&(_, exit)| exit).chain(stack).collect();
        Candidate {
            root: self.layers[0].root,
            nodes,
            inputs,
            outputs,
            waits,
            order: Order::Loop { stack },
            read: frame.exits().chain(stack).collect(),
            readers: std::mem::replace(&mut self.readers, Readers::Late),
        }
    }

    /// The states of all layers.
    fn states(&self) -> impl Iterator<Item = &(Output, Option<NodeId>)> {
        self.layers.iter().flat_map(|layer| &layer.states)
    }

    /// The nodes around the loop that nobody needs without it, each after those that it takes.
    fn outside(&self) -> impl Iterator<Item = NodeId> + '_ {
        let written = self.written.iter();
        let written =
            written.flat_map(|one| one.outside.iter().chain(&one.between).chain(&one.stack));
        self.input.outside.iter().chain(&self.lists).chain(written).copied()
    }

    /// All that the new nodes take from outside. Constants may be in the loop.
    fn inputs(&self) -> Vec<Output> {
        let mut inputs = vec![self.size, self.rounds.zero];
        inputs.extend(self.rounds.bounds.iter().copied().chain(self.lengths));
        inputs.push(self.input.x);
        for layer in &self.layers {
            inputs.extend(layer.states.iter().map(|state| state.0));
            inputs.extend(layer.weights.iter().flat_map(|weight| &weight.sources));
            inputs.extend(&layer.more);
        }
        inputs
    }

    /// What leaves the loop.
    fn leaving<'l>(&'l self, candidate: &'l Candidate) -> Leaving<'l> {
        Leaving {
            frame: &self.frame,
            rounds: &self.rounds,
            x: self.input.x,
            weights: self.layers.iter().flat_map(|layer| &layer.weights).collect(),
            candidate,
        }
    }

    /// Puts the layers in the place of the loop. Returns the new nodes.
    fn replace(
        &self,
        graph: &mut Graph,
        candidate: &Candidate,
        report: &mut Report,
    ) -> Vec<NodeId> {
        let leaving = self.leaving(candidate);
        let left = leaving.nodes();
        let (weights, mut added) = leaving.release(graph);
        let (mut x, mut weights) = (self.input.x, weights.into_iter());
        let mut last = self.frame.condition;
        for (number, layer) in self.layers.iter().enumerate() {
            let mut of_layer: Vec<_> = weights.by_ref().take(layer.weights.len()).collect();
            for &bias in &layer.zeros {
                let zeros = zeros::add(graph, layer.root, bias, Some(self.input.x.node));
                of_layer.insert(bias.0, zeros);
                added.push(zeros.node);
            }
            last = self.emit(graph, candidate, number, x, of_layer);
            for (index, &(_, exit)) in layer.states.iter().enumerate() {
                if let Some(node) = exit {
                    let to = Output { node: last, index: 1 + index };
                    graph.redirect(Output { node, index: 0 }, to);
                    graph.redirect_control(node, last);
                }
            }
            x = Output { node: last, index: 0 };
            added.push(last);
            report.replaced(graph, [layer.root]);
            report.rewritten(graph, last, 1, None);
        }
        if let Some(written) = &self.written {
            if let Some(node) = written.stack {
                graph.redirect(Output { node, index: 0 }, x);
                graph.redirect_control(node, last);
            }
            written.between.iter().for_each(|&identity| graph.redirect_control(identity, last));
            let mut variables = self.frame.variables.iter();
            let list = variables.find(|one| one.merge == written.merge);
            if let Some(node) = list.and_then(|list| list.exit) {
                graph.redirect(Output { node, index: 0 }, written.first);
            }
        }
        self.frame.redirect_exits(graph, last);
        self.remove(graph, &left);
        added
    }

    /// Adds the node of a layer.
    fn emit(
        &self,
        graph: &mut Graph,
        candidate: &Candidate,
        number: usize,
        x: Output,
        weights: Vec<Output>,
    ) -> NodeId {
        let layer = &self.layers[number];
        // Only the first layer reads a list or array, and only the last one writes one.
        let written = self.written.as_ref().filter(|_| number + 1 == self.layers.len());
        let sequence = Sequence {
            time: self.size,
            rounds: self.rounds.bounds.clone(),
            lengths: self.lengths,
            x,
            x_sizes: if number == 0 { self.input.element.clone() } else { Vec::new() },
            h_sizes: written.map(|written| written.element.clone()).unwrap_or_default(),
            needs_h: self.needs_h && written.is_some(),
        };
        let states = layer.states.iter().map(|state| state.0);
        let tensors = states.chain(weights).chain(layer.more.iter().copied()).collect();
        let outputs = 1 + layer.states.len();
        let root = graph.node(layer.root);
        let mut node = sequence.node(root, layer.op, &layer.attributes, tensors, outputs);
        node.control_inputs = candidate.waits.iter().copied().collect();
        // A step that asks for one of them runs them all.
        node.is_target = candidate.outputs.iter().any(|&output| graph.node(output).is_target);
        graph.add(node)
    }

    /// Removes the loop but for what has left it, and what is around it, as far as nobody else needs it.
    fn remove(&self, graph: &mut Graph, left: &BTreeSet<NodeId>) {
        graph.remove_all(self.frame.nodes.difference(left).copied());
        let counts = self.written.iter().flat_map(|written| written.count.iter().copied());
        let mut around: Vec<_> = self.outside().chain(counts).collect();
        // Each may be all that needed another.
        loop {
            let before = around.len();
            around.retain(|&id| {
                let is_unused = graph.get(id).is_some() && graph.use_count(id) == 0;
                if is_unused {
                    graph.remove_unused(id);
                }
                graph.get(id).is_some()
            });
            if around.len() == before {
                return;
            }
        }
    }
}
