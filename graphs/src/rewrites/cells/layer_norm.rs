//! A normalization whose gradient is taken: in a cell's step, or anywhere beside one.
//!
//! What it is made of is in [`Normalization`]. It is replaced if its gradient was: then nothing takes what is between x and
//! the normalized tensor.

use std::collections::BTreeSet;

use super::step::{Step, check_computed_once, taken};
use crate::graph::reason::Reason;
use crate::graph::{Attribute, Graph, NodeId, Output, ops};
use crate::reading::normalizations::{Inner, Normalization};

/// A normalization, and what it is of.
#[derive(Debug)]
pub(super) struct Norm {
    pub(super) x: Output,
    /// The one with as few sums as there are.
    pub(super) norm: Normalization,
    /// Others by the same scale: with a number, or with the summands in another order.
    others: Vec<Normalization>,
}

impl Norm {
    /// What they are computed by.
    pub(super) fn inner(&self) -> impl Iterator<Item = &Inner> {
        [&self.norm].into_iter().chain(&self.others).filter_map(|one| one.inner.as_ref())
    }
}

/// Whether a node could be the gradient of a normalization's variance.
pub(super) fn looks_like_gradient(graph: &Graph, id: NodeId) -> bool {
    graph.op(id) == "RsqrtGrad"
}

/// All normalizations of a graph that takes gradients of some.
pub(super) fn all(graph: &Graph) -> Vec<Norm> {
    if !graph.ids().any(|id| looks_like_gradient(graph, id)) {
        return Vec::new();
    }
    let means = graph.ids().filter(|&id| graph.op(id) == "Mean");
    let tensors: BTreeSet<_> = means.map(|id| graph.input(id, 0)).collect();
    let smallest = |x| {
        let scale = |norm: &Normalization| norm.inner.as_ref().map(|inner| inner.scale);
        let mut all = Normalization::all(graph, x);
        all.retain(|norm| norm.inner.is_some());
        all.sort_by_key(|norm| norm.nodes.len());
        let norm = all.first()?.clone();
        let mut others = all.split_off(1);
        let parts = |norm: &Normalization| (scale(norm), norm.gamma, norm.beta);
        others.retain(|other| parts(other) == parts(&norm));
        Some(Norm { x, norm, others })
    };
    tensors.into_iter().filter_map(smallest).collect()
}

/// Which of them somebody reads, and those of which nobody asks more than the shape, which is the same.
fn read<'n>(graph: &Graph, norm: &'n Norm) -> (&'n Normalization, Vec<&'n Normalization>) {
    let all: Vec<_> = [&norm.norm].into_iter().chain(&norm.others).collect();
    let is_inside = |id: NodeId| all.iter().any(|one| one.nodes.contains(&id));
    let is_read = |one: &&Normalization| {
        let mut readers = graph.data_consumers(one.y.node);
        readers.any(|id| !is_inside(id) && graph.op(id) != "Shape")
    };
    let (read, unread): (Vec<_>, Vec<_>) = all.iter().copied().partition(is_read);
    match read[..] {
        [one] => (one, unread),
        _ => (&norm.norm, Vec::new()),
    }
}

/// The normalization as a step.
pub(super) fn step(graph: &Graph, of: &Norm) -> Result<Step, Reason> {
    let (norm, unread) = read(graph, of);
    let (y, mut nodes) = (norm.y, norm.nodes.clone());
    nodes.extend(unread.iter().flat_map(|one| &one.nodes));
    nodes.sort_unstable();
    nodes.dedup();
    nodes.retain(|&id| graph.op(id) != "Const");
    let same: Vec<_> = [y].into_iter().chain(unread.iter().map(|one| one.y)).collect();
    let is_inner = |id: &NodeId| same.iter().all(|tensor| tensor.node != *id);
    let inner: Vec<NodeId> = nodes.iter().copied().filter(is_inner).collect();
    check_computed_once(graph, inner, &nodes)?;
    let attributes = vec![
        ("epsilon", norm.epsilon.into()),
        ("axis", Attribute::Int(norm.axis)),
        ("bias", norm.bias.unwrap_or(0.0).into()),
    ];
    let inputs = taken([of.x, norm.gamma, norm.beta]);
    let (root, op, outputs, row_sums) = (y.node, ops::LAYER_NORM, vec![same], Vec::new());
    Ok(Step { root, nodes, op, inputs, attributes, outputs, row_sums })
}
