//! A graph as plain data, and the changes that are made to it.

mod attribute;
mod edit;
mod node;
pub mod ops;
pub(crate) mod order;
pub(crate) mod reason;
pub(crate) mod report;
pub mod text;

use std::collections::HashMap;

pub use attribute::{Attribute, Constant, DataType, Values};
pub use edit::Edit;
pub use node::{Device, Node, NodeId, Output, Use};

/// The uses of a node.
#[derive(Clone, Debug, Default)]
struct Uses {
    all: Vec<Use>,
    /// How many of them are those of nodes that were removed since.
    gone: usize,
}

/// A graph. Nodes keep their numbers, those of nodes that were removed stay free.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: Vec<Option<Node>>,
    uses: Vec<Uses>,
    /// What took the place of tensors.
    moved: HashMap<Output, Output>,
    edits: Vec<Edit>,
}

impl Graph {
    /// The graph of some nodes, whose numbers are their places.
    ///
    /// # Panics
    ///
    /// If a node depends on one that does not exist.
    #[must_use]
    pub fn new(nodes: Vec<Node>) -> Graph {
        let uses = vec![Uses::default(); nodes.len()];
        let mut graph = Graph { uses, ..Graph::default() };
        for (number, node) in nodes.iter().enumerate() {
            graph.record_uses(NodeId(number), node);
        }
        graph.nodes = nodes.into_iter().map(Some).collect();
        graph
    }

    /// How many numbers of nodes there are, free ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there never was a node.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The numbers of all nodes that there are, in increasing order.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.len()).map(NodeId).filter(|&id| self.get(id).is_some())
    }

    /// A node, or None if it was removed.
    #[must_use]
    pub fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes[id.0].as_ref()
    }

    /// A node.
    ///
    /// # Panics
    ///
    /// If it was removed.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        self.get(id).expect("the node is there")
    }

    /// The operation of a node.
    #[must_use]
    pub fn op(&self, id: NodeId) -> &str {
        &self.node(id).op
    }

    /// Whether a node is of a kind that [`ops`] has a constant for.
    pub(crate) fn is(&self, id: NodeId, what: u16) -> bool {
        ops::is(self.op(id), what)
    }

    /// The input of a node.
    #[must_use]
    pub fn input(&self, id: NodeId, number: usize) -> Output {
        self.node(id).inputs[number]
    }

    /// What a switch chooses by.
    #[must_use]
    pub fn condition(&self, switch: NodeId) -> Output {
        self.input(switch, 1)
    }

    /// What depends on a node, in the order in which it came to do so.
    pub fn uses(&self, id: NodeId) -> impl Iterator<Item = Use> + '_ {
        self.uses[id.0].all.iter().copied().filter(|one| self.nodes[one.consumer().0].is_some())
    }

    /// How many uses of a node there are.
    #[must_use]
    pub fn use_count(&self, id: NodeId) -> usize {
        self.uses[id.0].all.len() - self.uses[id.0].gone
    }

    /// Every node that takes outputs of a node, once for each input.
    pub fn data_consumers(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.uses(id).filter_map(|one| match one {
            Use::Data { consumer, .. } => Some(consumer),
            Use::Control { .. } => None,
        })
    }

    /// Every node that waits for a node by control.
    pub fn waiting(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.uses(id).filter_map(|one| match one {
            Use::Control { consumer } => Some(consumer),
            Use::Data { .. } => None,
        })
    }

    /// Adds a node.
    pub fn add(&mut self, node: Node) -> NodeId {
        let id = NodeId(self.len());
        self.uses.push(Uses::default());
        self.record_uses(id, &node);
        self.edits.push(Edit::Add { node: id, definition: node.clone() });
        self.nodes.push(Some(node));
        id
    }

    /// Makes the consumers of one tensor take another.
    pub fn redirect(&mut self, from: Output, to: Output) {
        self.moved.insert(from, to);
        let moves = |one: &Use| matches!(*one, Use::Data { output, .. } if output == from.index);
        for one in self.take_uses(from.node, moves) {
            let Use::Data { consumer, input, .. } = one else { continue };
            self.node_mut(consumer).inputs[input] = to;
            self.uses[to.node.0].all.push(Use::Data { consumer, input, output: to.index });
            self.edits.push(Edit::SetInput { node: consumer, input, to });
        }
    }

    /// The tensor that has taken the place of another one, or that itself.
    #[must_use]
    pub fn current(&self, mut tensor: Output) -> Output {
        while let Some(&next) = self.moved.get(&tensor) {
            tensor = next;
        }
        tensor
    }

    /// Makes what waits for one node wait for another.
    pub fn redirect_control(&mut self, from: NodeId, to: NodeId) {
        for one in self.take_uses(from, |one| matches!(one, Use::Control { .. })) {
            self.wait_instead(one.consumer(), from, to);
        }
    }

    /// Makes a node wait for `to` instead of `from`.
    pub fn move_control(&mut self, consumer: NodeId, from: NodeId, to: NodeId) {
        self.take_uses(from, |one| *one == Use::Control { consumer });
        self.wait_instead(consumer, from, to);
    }

    fn wait_instead(&mut self, consumer: NodeId, from: NodeId, to: NodeId) {
        let waits = &mut self.node_mut(consumer).control_inputs;
        waits.retain(|&awaited| awaited != from);
        let is_new = !waits.contains(&to);
        if is_new {
            waits.push(to);
            self.uses[to.0].all.push(Use::Control { consumer });
        }
        self.edits.push(Edit::MoveControl { node: consumer, from, to });
    }

    /// Removes nodes that depend on each other at most, and nothing else on them.
    pub fn remove_all(&mut self, ids: impl IntoIterator<Item = NodeId>) {
        for id in ids {
            self.remove(id);
        }
    }

    /// Removes a node that nothing depends on, and those that nothing depends on thereby, as far
    /// as they only compute: the executor would run them.
    pub fn remove_unused(&mut self, id: NodeId) {
        let mut unused = vec![id];
        while let Some(next) = unused.pop() {
            if self.get(next).is_none() || self.use_count(next) > 0 {
                continue;
            }
            let inputs = self.remove(next);
            unused.extend(inputs.into_iter().filter(|&input| self.is_unseen(input)));
        }
    }

    /// The same for a node that may not be missed, or may be gone.
    pub fn remove_unseen(&mut self, id: NodeId) {
        if self.is_unseen(id) {
            self.remove_unused(id);
        }
    }

    /// Whether a node only computes, so that it is not missed where nothing depends on it.
    fn is_unseen(&self, id: NodeId) -> bool {
        let is_unseen = |node: &Node| !node.is_target && ops::is(&node.op, ops::COMPUTES);
        self.get(id).is_some_and(is_unseen)
    }

    /// Removes a node, and returns those whose outputs it took.
    fn remove(&mut self, id: NodeId) -> Vec<NodeId> {
        let node = self.nodes[id.0].take().expect("the node is there");
        let inputs: Vec<_> = node.inputs.iter().map(|input| input.node).collect();
        for before in inputs.iter().chain(&node.control_inputs) {
            self.uses[before.0].gone += 1;
        }
        for before in inputs.iter().chain(&node.control_inputs) {
            self.forget_gone(*before);
        }
        self.edits.push(Edit::Remove { node: id });
        inputs
    }

    /// The changes since the graph was made, in their order.
    #[must_use]
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// Takes some of the uses of a node out.
    fn take_uses(&mut self, id: NodeId, moves: impl Fn(&Use) -> bool) -> Vec<Use> {
        let (moved, kept) = self.uses(id).partition(moves);
        self.uses[id.0] = Uses { all: kept, gone: 0 };
        moved
    }

    /// Takes the uses of nodes that were removed out, once they are the most: then removing all nodes that use one takes
    /// time in proportion to their number.
    fn forget_gone(&mut self, id: NodeId) {
        let Uses { all, gone } = &mut self.uses[id.0];
        if 2 * *gone > all.len() {
            all.retain(|one| self.nodes[one.consumer().0].is_some());
            *gone = 0;
        }
    }

    fn record_uses(&mut self, consumer: NodeId, node: &Node) {
        for (input, from) in node.inputs.iter().enumerate() {
            let one = Use::Data { consumer, input, output: from.index };
            self.uses[from.node.0].all.push(one);
        }
        for awaited in &node.control_inputs {
            self.uses[awaited.0].all.push(Use::Control { consumer });
        }
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes[id.0].as_mut().expect("the node is there")
    }
}
