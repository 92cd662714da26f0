//! The node that takes the place of a loop of Keras.

use std::collections::BTreeSet;

use super::KerasLoop;
use crate::graph::report::Report;
use crate::graph::{Attribute, Graph, Node, NodeId, Output};

impl KerasLoop {
    /// Puts a layer in the place of the loop. Returns the new nodes.
    pub(in crate::rewrites::loops) fn replace(
        self,
        graph: &mut Graph,
        report: &mut Report,
    ) -> Vec<NodeId> {
        let leaving = self.leaving();
        let left = leaving.nodes();
        let (weights, mut added) = leaving.release(graph);
        let layer = self.emit(graph, weights);
        added.push(layer);
        self.redirect(graph, layer);
        self.remove(graph, &left);
        report.rewritten(graph, layer, 1, None);
        added
    }

    /// Adds the node of the layer.
    fn emit(&self, graph: &mut Graph, weights: Vec<Output>) -> NodeId {
        let root = graph.node(self.step.root);
        let data_type = root.data_type().expect("it was found replaceable");
        let count = |number: usize| Attribute::Int(i64::try_from(number).expect("a few"));
        let repeats = self.mask.as_ref().is_none_or(|mask| mask.repeats);
        let attributes = [
            ("T", Attribute::Type(data_type)),
            ("R", count(self.rounds.bounds.len())),
            ("M", count(usize::from(self.mask.is_some()))),
            ("last_only", Attribute::Bool(self.written.last_only)),
            ("repeats", Attribute::Bool(repeats)),
            ("x_sizes", Attribute::Ints(self.input.element.clone())),
            ("h_sizes", Attribute::Ints(self.written.element.clone())),
            ("needs_h", Attribute::Bool(self.written.stack.is_some())),
        ];
        let mut inputs = vec![self.written.size];
        inputs.extend(&self.rounds.bounds);
        inputs.push(self.input.x);
        inputs.extend(self.states.iter().map(|state| state.0));
        inputs.extend(weights);
        inputs.extend(self.mask.iter().flat_map(|mask| [mask.input.x, mask.before]));
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
        self.frame.redirect_exits(graph, layer);
        let list = self.frame.variables.iter().find(|one| one.merge == self.written.merge);
        if let Some((list, exit)) = list.and_then(|list| Some((list, list.exit?))) {
            graph.redirect(Output { node: exit, index: 0 }, list.first);
        }
        self.written.between.iter().for_each(|&identity| graph.redirect_control(identity, layer));
    }

    /// Removes the loop, and the lists that nobody else needs.
    fn remove(&self, graph: &mut Graph, left: &BTreeSet<NodeId>) {
        let inside = self.frame.nodes.iter().copied().filter(|id| !left.contains(id));
        graph.remove_all(inside);
        for id in self.lists() {
            if graph.get(id).is_some() && graph.uses(id).is_empty() {
                graph.remove_unused(id);
            }
        }
    }
}
