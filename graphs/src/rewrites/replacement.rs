//! Putting a new node into a graph in place of others.

use std::collections::BTreeSet;

use crate::facts::waits::waits_for;
use crate::graph::{Attribute, DataType, Graph, Node, NodeId, Output};

/// A node that takes the place of `last`, with its name, device and type, and of nodes before it.
///
/// It waits for what these waited for. They neither enter nor leave the frame of a loop, and depend
/// on each other, so they are all in the frame of `last`, as are the new node's inputs. Inputs without a
/// value leave the new node without one, as they left `last` through the nodes between. A cycle
/// cannot arise: each new edge leads from a node that `last` depended on.
pub(crate) struct Replacement {
    node: Node,
    data_type: DataType,
    last: NodeId,
    waits: BTreeSet<NodeId>,
}

impl Replacement {
    pub(crate) fn of(graph: &Graph, last: NodeId, op: &str) -> Replacement {
        let old = graph.node(last);
        let data_type = old.data_type().expect("it was found replaceable");
        let node = Node { is_target: old.is_target, ..old.like(op, data_type) };
        Replacement { node, data_type, last, waits: waits_for(graph, last) }
    }

    /// Appends tensors to the inputs.
    pub(crate) fn take(&mut self, inputs: impl IntoIterator<Item = Output>) {
        self.node.inputs.extend(inputs);
    }

    /// Sets an attribute.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Attribute>) {
        self.node.attributes.push((name.to_owned(), value.into()));
    }

    /// Takes over what a node waits for.
    pub(crate) fn absorb(&mut self, graph: &Graph, node: NodeId) {
        self.waits.extend(waits_for(graph, node));
    }

    /// Adds the node, and leads the consumers of `last` to its first output.
    pub(crate) fn finish(self, graph: &mut Graph) -> NodeId {
        let last = self.last;
        self.finish_for(graph, &[last])
    }

    /// Adds the node, and leads the consumers of the first output of each of `nodes` to its outputs,
    /// in this order. What is not used any more is removed.
    pub(crate) fn finish_for(mut self, graph: &mut Graph, nodes: &[NodeId]) -> NodeId {
        for input in &mut self.node.inputs {
            *input = graph.current(*input);
        }
        self.node.output_types = vec![self.data_type; nodes.len()];
        let sources: BTreeSet<_> = self.node.inputs.iter().map(|input| input.node).collect();
        self.node.control_inputs = self.waits.difference(&sources).copied().collect();
        self.node.is_target |= nodes.iter().any(|&node| graph.node(node).is_target);
        let new = graph.add(self.node);
        for (index, &node) in nodes.iter().enumerate() {
            graph.redirect(Output { node, index: 0 }, Output { node: new, index });
            graph.redirect_control(node, new);
            graph.remove_unused(node);
        }
        if graph.get(self.last).is_some() {
            graph.redirect_control(self.last, new);
            graph.remove_unused(self.last);
        }
        new
    }
}
