//! The node that takes the place of a loop of Keras.

use std::collections::BTreeSet;

use super::KerasLoop;
use super::rounds::Guard;
use crate::attribute::Attribute;
use crate::graph::{Graph, Node, NodeId, Output};
use crate::report::Report;

impl KerasLoop {
    /// Puts a layer in the place of the loop. Returns the new nodes.
    pub(in crate::loops) fn replace(self, graph: &mut Graph, report: &mut Report) -> Vec<NodeId> {
        let mut added = Vec::new();
        let mut guard = self.guard(graph);
        let kept = self.kept();
        if !kept.is_empty() {
            let begin = self.begin(graph);
            kept.iter().for_each(|&id| self.free(graph, id, begin, guard.as_mut()));
            added.push(begin);
        }
        let layer = self.emit(graph, guard.as_mut());
        added.extend(guard.into_iter().flat_map(|guard| guard.added));
        added.push(layer);
        self.redirect(graph, layer);
        self.remove(graph);
        report.rewritten(graph, layer, 1, None);
        added
    }

    /// The nodes that leave the loop: those that compute weights, and constants.
    fn kept(&self) -> BTreeSet<NodeId> {
        let constants = self.inputs().map(|input| input.node);
        let constants = constants.filter(|id| self.frame.nodes.contains(id));
        constants
            .chain(self.weights.iter().flat_map(|weight| weight.nodes.iter().copied()))
            .collect()
    }

    /// Lets a node leave the loop. It waits for `begin` instead of what is in the loop.
    fn free(&self, graph: &mut Graph, id: NodeId, begin: NodeId, mut guard: Option<&mut Guard>) {
        for input in graph.node(id).inputs.clone() {
            if graph.op(input.node) == "Enter" {
                let outside = graph.input(input.node, 0);
                let source = match &mut guard {
                    Some(guard) => guard.guarded(graph, outside),
                    None => outside,
                };
                graph.redirect(input, source);
            }
        }
        for awaited in graph.node(id).control_inputs.clone() {
            if self.frame.nodes.contains(&awaited) {
                graph.move_control(id, awaited, begin);
            }
        }
    }

    /// A node that waits for all that the loop waits for.
    fn begin(&self, graph: &mut Graph) -> NodeId {
        let root = graph.node(self.step.root);
        let inputs = self.inputs().map(|input| input.node);
        let inputs = inputs.filter(|id| !self.frame.nodes.contains(id));
        let all: BTreeSet<_> = inputs.chain(self.waits.iter().copied()).collect();
        let node = Node {
            name: format!("{}/blockcell/NoOp", root.name),
            op: "NoOp".to_owned(),
            device: root.device.clone(),
            control_inputs: all.into_iter().collect(),
            ..Node::default()
        };
        graph.add(node)
    }

    /// Adds the node of the layer.
    fn emit(&self, graph: &mut Graph, guard: Option<&mut Guard>) -> NodeId {
        let weights = self.weights_of(graph, guard);
        let root = graph.node(self.step.root);
        let data_type = root.data_type().expect("it was found replaceable");
        let count = |number: usize| Attribute::Int(i64::try_from(number).expect("a few"));
        let repeats = self.mask.as_ref().is_none_or(|mask| mask.repeats);
        let attributes = [
            ("T", Attribute::Type(data_type)),
            ("R", count(self.bounds.len())),
            ("M", count(usize::from(self.mask.is_some()))),
            ("last_only", Attribute::Bool(self.written.last_only)),
            ("repeats", Attribute::Bool(repeats)),
            ("x_sizes", Attribute::Ints(self.input.element.clone())),
            ("h_sizes", Attribute::Ints(self.written.element.clone())),
            ("needs_h", Attribute::Bool(self.written.stack.is_some())),
        ];
        let mut inputs = vec![self.written.size];
        inputs.extend(&self.bounds);
        inputs.extend(self.mask.iter().flat_map(|mask| [mask.input.x, mask.before]));
        inputs.push(self.input.x);
        inputs.extend(self.states.iter().map(|state| state.0));
        inputs.extend(weights);
        let node = Node {
            name: root.name.clone(),
            op: self.step.op.to_owned(),
            device: root.device.clone(),
            attributes: attributes.map(|(name, value)| (name.to_owned(), value)).into(),
            inputs,
            control_inputs: self.waits.iter().copied().collect(),
            output_types: vec![data_type; 1 + self.states.len()],
            // A step that asks for one of them runs them all.
            is_target: self.results().any(|result| graph.node(result).is_target),
            ..Node::default()
        };
        graph.add(node)
    }

    /// The weights, which nobody computes if there is no round.
    fn weights_of(&self, graph: &mut Graph, mut guard: Option<&mut Guard>) -> Vec<Output> {
        let weights = self.weights.iter().map(|weight| match &mut guard {
            Some(guard) if weight.is_computed() => guard.either(graph, weight.tensor, self.input.x),
            _ => weight.tensor,
        });
        weights.collect()
    }

    /// Gives what leaves the loop to those who took it.
    fn redirect(&self, graph: &mut Graph, layer: NodeId) {
        for (number, &(_, exit)) in self.states.iter().enumerate() {
            if let Some(node) = exit {
                let to = Output { node: layer, index: 1 + number };
                graph.redirect(Output { node, index: 0 }, to);
            }
        }
        if let Some(node) = self.written.stack {
            graph.redirect(Output { node, index: 0 }, Output { node: layer, index: 0 });
            graph.redirect_control(node, layer);
            graph.remove_all([node]);
        }
        for variable in &self.frame.variables {
            let Some(node) = variable.exit else { continue };
            graph.redirect_control(node, layer);
            // What is the same in every round is what came in.
            if variable.stays(graph) {
                graph.redirect(Output { node, index: 0 }, variable.first);
            }
        }
    }

    /// Removes the loop, and the lists that nobody else needs.
    fn remove(&self, graph: &mut Graph) {
        let kept = self.kept();
        let inside = self.frame.nodes.iter().copied().filter(|id| !kept.contains(id));
        graph.remove_all(inside);
        for id in self.lists() {
            if graph.get(id).is_some() && graph.uses(id).is_empty() {
                graph.remove_unused(id);
            }
        }
    }
}
