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

use super::body::Counters;
use crate::graph::{Attribute, DataType, Graph, Node, NodeId, Output};
use crate::reading::constants::integers;
use crate::reading::neighbours::skip_identities;

/// How many rounds a loop has.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    /// The numbers of rounds at most, outside of the loop or constants in it.
    pub(super) bounds: Vec<Output>,
    /// The number of the first round.
    pub(super) zero: Output,
}

impl Rounds {
    pub(super) fn of(counters: &Counters<'_>) -> Rounds {
        Rounds { bounds: counters.bounds.clone(), zero: counters.zero() }
    }

    /// The numbers that may be zero.
    fn uncertain(&self, graph: &Graph) -> Vec<Output> {
        let is_certain = |bound: &Output| {
            let known = integers(graph, skip_identities(graph, *bound));
            matches!(known, Some(&[number]) if number > 0)
        };
        let all = self.bounds.iter().copied();
        let mut bounds: Vec<_> = all.filter(|bound| !is_certain(bound)).collect();
        bounds.sort_unstable();
        bounds.dedup();
        bounds
    }
}

/// The nodes between what weights are computed from and their computation.
pub(super) struct Guard {
    /// What the new nodes have in common: the name is that before theirs.
    node: Node,
    /// Whether there is a round, if that is not certain.
    has_rounds: Option<Output>,
    sources: BTreeMap<Output, NodeId>,
    pub(super) added: Vec<NodeId>,
}

impl Guard {
    /// Adds the nodes that compare numbers of rounds, if there are any. All new nodes have the device of `root`.
    pub(super) fn new(graph: &mut Graph, rounds: &Rounds, root: NodeId) -> Guard {
        let root = graph.node(root);
        let name = format!("{}/blockcell", root.name);
        let node = Node { name, device: root.device.clone(), ..Node::default() };
        let (has_rounds, sources, added) = (None, BTreeMap::new(), Vec::new());
        let mut guard = Guard { node, has_rounds, sources, added };
        for bound in rounds.uncertain(graph) {
            let more = guard.add(graph, "Less", DataType::INT32, vec![rounds.zero, bound]);
            guard.has_rounds = Some(match guard.has_rounds {
                None => more,
                Some(all) => guard.add(graph, "LogicalAnd", DataType::BOOL, vec![all, more]),
            });
        }
        guard
    }

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
            name: format!("{}/{op}_{}", self.node.name, self.added.len()),
            op: op.to_owned(),
            attributes,
            inputs,
            output_types,
            ..self.node.clone()
        });
        self.added.push(node);
        Output { node, index: 0 }
    }

    /// A tensor on one of the sides of a switch. It is the same on both where there is certainly a round.
    fn side(&mut self, graph: &mut Graph, tensor: Output, with_rounds: bool) -> Output {
        let Some(has_rounds) = self.has_rounds else { return tensor };
        let node = self.sources.get(&tensor).copied().unwrap_or_else(|| {
            let data_type = graph.node(tensor.node).output_types[tensor.index];
            self.add(graph, "Switch", data_type, vec![tensor, has_rounds]).node
        });
        self.sources.insert(tensor, node);
        Output { node, index: usize::from(with_rounds) }
    }

    /// A tensor that has a value if there is a round.
    pub(super) fn guarded(&mut self, graph: &mut Graph, tensor: Output) -> Output {
        self.side(graph, tensor, true)
    }

    /// A weight that is computed of guarded tensors, or `other` if there is no round.
    pub(super) fn either(&mut self, graph: &mut Graph, weight: Output, other: Output) -> Output {
        if self.has_rounds.is_none() {
            return weight;
        }
        let data_type = graph.node(other.node).output_types[other.index];
        let other = self.side(graph, other, false);
        self.add(graph, "Merge", data_type, vec![weight, other])
    }
}
