//! What a loop without a round does not do: compute its weights.
//!
//! A variable without a value, for one, is no error in such a loop. Where the number of rounds is not known, weights that
//! rounds compute are computed on one side of a switch:
//!
//! ```text
//! kernel -> Switch(kernel, 0 < rounds):1 -> ReadVariableOp -> Merge(w_x, Switch(x, 0 < rounds):0) -> the layer
//! ```
//!
//! Without a round, the layer gets `x` in place of the weights, and does not look at it.

use std::collections::BTreeMap;

use super::KerasLoop;
use crate::attribute::{Attribute, DataType};
use crate::constants::integers;
use crate::graph::{Graph, Node, NodeId, Output};
use crate::products::skip_identities;

/// The nodes around weights that only a loop with a round has.
pub(super) struct Guard {
    name: String,
    node: Node,
    /// Whether there is a round.
    has_rounds: Output,
    switched: BTreeMap<Output, NodeId>,
    pub(super) added: Vec<NodeId>,
}

impl KerasLoop {
    /// The numbers of rounds that may be zero.
    fn uncertain<'s>(&'s self, graph: &'s Graph) -> impl Iterator<Item = Output> + 's {
        let is_certain = |bound: &Output| {
            let known = integers(graph, skip_identities(graph, *bound));
            matches!(known, Some(&[number]) if number > 0)
        };
        self.bounds.iter().copied().filter(move |bound| !is_certain(bound))
    }

    /// Whether weights are computed only if there is a round.
    pub(super) fn is_guarded(&self, graph: &Graph) -> bool {
        let mut weights = self.weights.iter();
        weights.any(super::Weight::is_computed) && self.uncertain(graph).next().is_some()
    }

    /// Adds the nodes that compare numbers of rounds, if there are any.
    pub(super) fn guard(&self, graph: &mut Graph) -> Option<Guard> {
        if !self.is_guarded(graph) {
            return None;
        }
        let root = graph.node(self.step.root);
        let node = Node { device: root.device.clone(), ..Node::default() };
        let has_rounds = self.zero;
        let (name, switched) = (format!("{}/blockcell", root.name), BTreeMap::new());
        let mut guard = Guard { name, node, has_rounds, switched, added: Vec::new() };
        let mut bounds: Vec<_> = self.uncertain(graph).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let mut all = None;
        for bound in bounds {
            let more = guard.add(graph, "Less", DataType::INT32, vec![self.zero, bound]);
            all = Some(match all {
                None => more,
                Some(before) => guard.add(graph, "LogicalAnd", DataType::BOOL, vec![before, more]),
            });
        }
        guard.has_rounds = all.expect("there is a number of rounds");
        Some(guard)
    }
}

impl Guard {
    /// Adds a node that takes tensors of a type. Returns its first output.
    fn add(
        &mut self,
        graph: &mut Graph,
        op: &str,
        data_type: DataType,
        inputs: Vec<Output>,
    ) -> Output {
        let mut attributes = vec![("T".to_owned(), Attribute::Type(data_type))];
        let output_types = match op {
            "Less" => vec![DataType::BOOL],
            "LogicalAnd" => {
                attributes.clear();
                vec![DataType::BOOL]
            }
            "Merge" => {
                attributes.push(("N".to_owned(), Attribute::Int(2)));
                vec![data_type, DataType::INT32]
            }
            _ => vec![data_type; 2],
        };
        let node = graph.add(Node {
            name: format!("{}/{op}_{}", self.name, self.added.len()),
            op: op.to_owned(),
            attributes,
            inputs,
            output_types,
            ..self.node.clone()
        });
        self.added.push(node);
        Output { node, index: 0 }
    }

    /// A tensor on one of the sides of a switch.
    fn side(&mut self, graph: &mut Graph, tensor: Output, with_rounds: bool) -> Output {
        let node = self.switched.get(&tensor).copied().unwrap_or_else(|| {
            let data_type = graph.node(tensor.node).output_types[tensor.index];
            self.add(graph, "Switch", data_type, vec![tensor, self.has_rounds]).node
        });
        self.switched.insert(tensor, node);
        Output { node, index: usize::from(with_rounds) }
    }

    /// A tensor that has a value if there is a round.
    pub(super) fn guarded(&mut self, graph: &mut Graph, tensor: Output) -> Output {
        self.side(graph, tensor, true)
    }

    /// A weight that is computed of guarded tensors, or `other` if there is no round.
    pub(super) fn either(&mut self, graph: &mut Graph, weight: Output, other: Output) -> Output {
        let data_type = graph.node(other.node).output_types[other.index];
        let other = self.side(graph, other, false);
        self.add(graph, "Merge", data_type, vec![weight, other])
    }
}
