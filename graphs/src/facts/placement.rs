//! Where a node runs, and for whom.

use crate::graph::reason::Reason;
use crate::graph::{Attribute, DataType, Graph, Node, NodeId, Use, ops};

/// Whether a rewrite may replace a node: it computes floats or halves on a CPU of this process, and
/// nobody else has claimed it.
pub(crate) fn check_replaceable(node: &Node) -> Result<(), Reason> {
    if !matches!(node.data_type(), Some(DataType::FLOAT | DataType::HALF)) {
        return Err(Reason::Type);
    }
    if !node.device.is_local_cpu {
        return Err(Reason::Device(node.name.clone()));
    }
    if is_claimed(node) {
        return Err(Reason::Kernel(node.name.clone()));
    }
    Ok(())
}

/// Whether other compilers and kernels claim a node.
pub(crate) fn is_claimed(node: &Node) -> bool {
    let is_ours = |value: &Attribute| *value == Attribute::Text("blockcell".to_owned());
    ops::CLAIMS.iter().any(|claim| node.attribute(claim).is_some_and(|value| !is_ours(value)))
}

/// Whether two nodes are on one device.
pub(crate) fn check_same_device(graph: &Graph, left: NodeId, right: NodeId) -> Result<(), Reason> {
    if graph.node(left).device == graph.node(right).device {
        return Ok(());
    }
    Err(Reason::Device(graph.node(left).name.clone()))
}

/// Whether a rewrite may replace a node together with another one.
pub(crate) fn check_beside(graph: &Graph, node: NodeId, other: NodeId) -> Result<(), Reason> {
    check_replaceable(graph.node(node))?;
    check_same_device(graph, node, other)
}

/// Whether `node` may become a part of `consumer`'s replacement: it is replaceable, on the same
/// device, and nothing but one input of `consumer` depends on it, by data or control.
pub(crate) fn check_only_for(graph: &Graph, node: NodeId, consumer: NodeId) -> Result<(), Reason> {
    for one in graph.uses(node) {
        let other = one.consumer();
        if other != consumer || matches!(one, Use::Control { .. }) {
            return Err(Reason::consumer(graph, node, other));
        }
    }
    if graph.node(node).is_target {
        return Err(Reason::Target(graph.node(node).name.clone()));
    }
    if graph.use_count(node) > 1 {
        return Err(Reason::consumer(graph, node, consumer));
    }
    check_beside(graph, node, consumer)
}
