//! Reports what was rewritten in a graph, and what was not and why.

use std::collections::{BTreeMap, HashSet};

use super::reason::Reason;
use super::{Graph, NodeId};

/// What a call of [`crate::rewrite()`] rewrote and did not rewrite, place by place.
#[derive(Debug, Default)]
pub struct Report {
    /// The new nodes.
    pub rewritten: Vec<Rewritten>,
    /// Nodes that were not rewritten, although they begin a pattern.
    pub kept: Vec<Kept>,
    stays: BTreeMap<NodeId, Reason>,
}

/// A node that replaced others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// Its name, which is that of one of them.
    pub name: String,
    /// Its operation.
    pub op: String,
    /// The number of products, sums over rows or slices that it computes.
    pub parts: usize,
    /// Why the rest was not rewritten.
    pub but: Option<Reason>,
}

/// A node that was not rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// Its operation.
    pub op: String,
    /// Why it was not rewritten.
    pub reason: Reason,
}

impl Report {
    /// Records a new node that computes `parts` parts, and why the rest was not rewritten.
    pub(crate) fn rewritten(
        &mut self,
        graph: &Graph,
        new: NodeId,
        parts: usize,
        but: Option<Reason>,
    ) {
        let node = graph.node(new);
        let (name, op) = (node.name.clone(), node.op.clone());
        self.rewritten.push(Rewritten { name, op, parts, but });
    }

    /// Removes new nodes that another new node has replaced.
    pub(crate) fn replaced(&mut self, graph: &Graph, nodes: impl IntoIterator<Item = NodeId>) {
        let nodes = nodes.into_iter().map(|id| graph.node(id));
        let gone: HashSet<_> = nodes.map(|node| (&node.name, &node.op)).collect();
        self.rewritten.retain(|new| !gone.contains(&(&new.name, &new.op)));
    }

    /// Records why a node is not rewritten. The latest reason counts; there is none if the node is replaced later.
    pub(crate) fn stays(&mut self, id: NodeId, reason: Reason) {
        self.stays.insert(id, reason);
    }

    /// Fills in `kept`.
    pub(crate) fn finish(&mut self, graph: &Graph) {
        for (id, reason) in std::mem::take(&mut self.stays) {
            let Some(node) = graph.get(id) else { continue };
            let (name, op) = (node.name.clone(), node.op.clone());
            self.kept.push(Kept { name, op, reason });
        }
    }

    /// A line for each place.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let rewritten = self.rewritten.iter().map(|Rewritten { name, op, parts, but }| {
            let but = but
                .as_ref()
                .map_or(String::new(), |reason| format!("; the rest is not rewritten: {reason}"));
            format!("{name} becomes {op} (parts: {parts}){but}")
        });
        let kept = self.kept.iter();
        rewritten.chain(
            kept.map(|Kept { name, op, reason }| {
                format!("{name} ({op}) is not rewritten: {reason}")
            }),
        )
    }
}
