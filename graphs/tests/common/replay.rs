//! Changes applied to a copy of a graph, as the shim in `cpp/rewrites.cc` applies them to
//! TensorFlow's.

use blockcell_graphs::{Edit, Graph, Node, NodeId};

/// A graph as TensorFlow has it: nodes and edges, and nothing that could go out of step.
struct Copy {
    nodes: Vec<Option<Node>>,
}

/// The edits of `after`, in their order, turn `before` into it.
pub(crate) fn assert_replays(before: &Graph, after: &Graph) {
    let mut copy =
        Copy { nodes: (0..before.len()).map(|id| before.get(NodeId(id)).cloned()).collect() };
    copy.add_nodes(after.edits());
    after.edits().iter().for_each(|edit| copy.apply(edit));
    copy.assert_complete();
    assert_eq!(copy.nodes.len(), after.len());
    for (id, node) in copy.nodes.iter().enumerate() {
        let want = after.get(NodeId(id));
        assert_eq!(node.as_ref().map(sorted), want.map(sorted), "{before}\nbecomes\n{after}");
    }
}

/// A node whose edges of control have no order, as in TensorFlow.
fn sorted(node: &Node) -> Node {
    let mut node = node.clone();
    node.control_inputs.sort();
    node
}

impl Copy {
    /// New nodes come first, without edges.
    fn add_nodes(&mut self, edits: &[Edit]) {
        for edit in edits {
            if let Edit::Add { node, definition } = edit {
                assert_eq!(node.0, self.nodes.len(), "numbers follow those that there are");
                let unset = blockcell_graphs::Output { node: NodeId(usize::MAX), index: 0 };
                let inputs = vec![unset; definition.inputs.len()];
                let control_inputs = Vec::new();
                self.nodes.push(Some(Node { inputs, control_inputs, ..definition.clone() }));
            }
        }
    }

    fn apply(&mut self, edit: &Edit) {
        match edit {
            Edit::Add { node, definition } => {
                for (input, &from) in definition.inputs.iter().enumerate() {
                    self.node(from.node);
                    self.node(*node).inputs[input] = from;
                }
                for &awaited in &definition.control_inputs {
                    self.add_control(awaited, *node);
                }
            }
            Edit::SetInput { node, input, to } => {
                self.node(to.node);
                self.node(*node).inputs[*input] = *to;
            }
            Edit::MoveControl { node, from, to } => {
                let waits = &mut self.node(*node).control_inputs;
                let place = waits.iter().position(|awaited| awaited == from);
                waits.remove(place.expect("it waits for that"));
                self.add_control(*to, *node);
            }
            Edit::Remove { node } => {
                self.node(*node);
                self.nodes[node.0] = None;
            }
        }
    }

    /// Nothing depends on a node that was removed. Nodes of a loop depend on each other until the last is.
    fn assert_complete(&self) {
        for node in self.nodes.iter().flatten() {
            let before = node.inputs.iter().map(|input| input.node);
            for id in before.chain(node.control_inputs.iter().copied()) {
                assert!(self.nodes[id.0].is_some(), "something before {node:?} was removed");
            }
        }
    }

    /// `tensorflow::Graph` has no edge of control twice.
    fn add_control(&mut self, from: NodeId, to: NodeId) {
        self.node(from);
        let waits = &mut self.node(to).control_inputs;
        if !waits.contains(&from) {
            waits.push(from);
        }
    }

    fn node(&mut self, id: NodeId) -> &mut Node {
        self.nodes[id.0].as_mut().expect("the node is there")
    }
}
