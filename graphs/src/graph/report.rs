//! What was done to a graph, and what was not and why.

use std::collections::{BTreeMap, HashSet};

use super::reason::Reason;
use super::{Graph, NodeId};

/// What a call of [`crate::rewrite()`] did and did not do, place by place.
#[derive(Debug, Default)]
pub struct Report {
    /// The new nodes.
    pub rewritten: Vec<Rewritten>,
    /// Nodes that could have become a part of one.
    pub kept: Vec<Kept>,
    stays: BTreeMap<NodeId, Reason>,
}

/// A node that took the place of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// Its name, which is that of one of them.
    pub name: String,
    /// Its operation.
    pub op: String,
    /// How many products, sums over rows or slices it computes.
    pub parts: usize,
    /// Why it does not do more.
    pub but: Option<Reason>,
}

/// A node that stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// Its operation.
    pub op: String,
    /// Why it stays.
    pub reason: Reason,
}

impl Report {
    /// Notes a new node that computes so many parts, and why not more.
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

    /// Forgets new nodes that another one takes the place of.
    pub(crate) fn replaced(&mut self, graph: &Graph, nodes: impl IntoIterator<Item = NodeId>) {
        let nodes = nodes.into_iter().map(|id| graph.node(id));
        let gone: HashSet<_> = nodes.map(|node| (&node.name, &node.op)).collect();
        self.rewritten.retain(|new| !gone.contains(&(&new.name, &new.op)));
    }

    /// Notes why a node is not replaced; the latest reason counts, and none if it is replaced later.
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
            let but =
                but.as_ref().map_or(String::new(), |reason| format!("; no more, because {reason}"));
            format!("{name} becomes {op} of {parts}{but}")
        });
        let kept = self.kept.iter();
        rewritten
            .chain(kept.map(|Kept { name, op, reason }| format!("{name} ({op}) stays: {reason}")))
    }
}
