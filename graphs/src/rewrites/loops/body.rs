//! The round of a loop: what it counts, its steps of cells, and the states that they keep.
//!
//! ```text
//! condition   t < bound, also several of these with LogicalAnd
//! t           0 in the first round, t + 1 in the next
//! state       next = h, or Select(t >= sequence_length, state, h)
//! output      h, or Select(t >= sequence_length, zeros, h)
//! ```

use std::collections::BTreeSet;

use super::frame::Frame;
use crate::graph::{DataType, Graph, NodeId, Output};
use crate::reading::constants::integers;
use crate::reading::neighbours::skip_identities;
use crate::reading::variables::Variable;

/// What counts the rounds.
pub(super) struct Counters<'f> {
    variables: Vec<&'f Variable>,
    /// The nodes that count and compare.
    pub(super) nodes: BTreeSet<NodeId>,
    /// The numbers of rounds at most, outside of the loop.
    pub(super) bounds: Vec<Output>,
}

impl<'f> Counters<'f> {
    pub(super) fn read(graph: &Graph, frame: &'f Frame) -> Option<Counters<'f>> {
        let mut nodes = BTreeSet::new();
        let counts = |variable: &&Variable| {
            let sum = graph.node(skip_identities(graph, variable.next).node);
            let types = &graph.node(variable.merge).output_types;
            let is_one = |tensor| integers(graph, tensor) == Some(&[1]);
            let is_next = match sum.inputs[..] {
                [left, right] => {
                    (variable.is(graph, left) && is_one(right))
                        || (variable.is(graph, right) && is_one(left))
                }
                _ => false,
            };
            integers(graph, variable.first) == Some(&[0])
                && types.first() == Some(&DataType::INT32)
                && matches!(sum.op.as_str(), "Add" | "AddV2")
                && is_next
        };
        let variables: Vec<_> = frame.variables.iter().filter(counts).collect();
        nodes.extend(variables.iter().map(|variable| skip_identities(graph, variable.next).node));
        let mut counters = Counters { variables, nodes, bounds: Vec::new() };
        let mut open = vec![graph.input(frame.condition, 0)];
        while let Some(next) = open.pop() {
            let next = skip_identities(graph, next);
            let node = graph.node(next.node);
            counters.nodes.insert(next.node);
            match (node.op.as_str(), &node.inputs[..]) {
                ("LogicalAnd", &[left, right]) => open.extend([right, left]),
                ("Less", &[t, bound]) => {
                    let mut all = counters.variables.iter();
                    all.find(|variable| variable.is_in_condition(graph, t))?;
                    counters.bounds.push(frame.same_in_condition(graph, bound)?);
                }
                _ => return None,
            }
        }
        Some(counters)
    }

    /// Whether a tensor is the number of the round.
    pub(super) fn is_count(&self, graph: &Graph, tensor: Output) -> bool {
        self.variables.iter().any(|variable| variable.is(graph, tensor))
    }

    /// The number of the first round, outside of the loop.
    pub(super) fn zero(&self) -> Output {
        self.variables.first().expect("the condition compares one").first
    }

    /// Whether somebody takes a count that leaves the loop.
    pub(super) fn leave(&self, graph: &Graph) -> bool {
        let mut exits = self.variables.iter().filter_map(|variable| variable.exit);
        exits.any(|exit| graph.data_consumers(exit).next().is_some())
    }

    /// Whether a variable is one of these.
    pub(super) fn have(&self, variable: &Variable) -> bool {
        self.variables.iter().any(|one| one.merge == variable.merge)
    }
}

/// A tensor that a row keeps from before where it has ended.
pub(super) struct Masked {
    /// What it is otherwise.
    pub(super) value: Output,
    /// What it is in an ended row, if rows end, and the lengths of rows.
    pub(super) ended: Option<[Output; 2]>,
    pub(super) nodes: Vec<NodeId>,
}

impl Masked {
    /// Reads `Select(t >= sequence_length, kept, value)`. What is no such thing is a value.
    pub(super) fn read(
        graph: &Graph,
        frame: &Frame,
        counters: &Counters<'_>,
        tensor: Output,
    ) -> Option<Masked> {
        let tensor = skip_identities(graph, tensor);
        let node = graph.node(tensor.node);
        let ("Select", &[has_ended, kept, value]) = (node.op.as_str(), &node.inputs[..]) else {
            return Some(Masked { value: tensor, ended: None, nodes: Vec::new() });
        };
        let has_ended = skip_identities(graph, has_ended);
        let compares = graph.node(has_ended.node);
        let &[t, lengths] = &compares.inputs[..] else { return None };
        let lengths = frame.same(graph, lengths)?;
        let is_int32 =
            graph.node(lengths.node).output_types.get(lengths.index) == Some(&DataType::INT32);
        let is_end = compares.op == "GreaterEqual" && counters.is_count(graph, t) && is_int32;
        is_end.then(|| Masked {
            value: skip_identities(graph, value),
            ended: Some([kept, lengths]),
            nodes: vec![tensor.node, has_ended.node],
        })
    }
}
