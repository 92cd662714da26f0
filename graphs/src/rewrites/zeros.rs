//! Zeros that new nodes take in place of a bias that there is not.

use crate::graph::{Attribute, Constant, Graph, Node, NodeId, Output, Values};

/// Adds a constant: a vector of so many zeros, of the type and on the device of the node `root`. It is in the round of a loop
/// in which `awaited` is.
pub(super) fn add(
    graph: &mut Graph,
    root: NodeId,
    (number, count): (usize, i64),
    awaited: Option<NodeId>,
) -> Output {
    let root = graph.node(root);
    let data_type = root.data_type().expect("it was found replaceable");
    let value = Constant { data_type, shape: vec![count], values: Values::Zeros };
    let node = Node {
        name: format!("{}/blockcell/Const_{number}", root.name),
        op: "Const".to_owned(),
        device: root.device.clone(),
        attributes: vec![
            ("dtype".to_owned(), data_type.into()),
            ("value".to_owned(), Attribute::Constant(value)),
        ],
        control_inputs: awaited.into_iter().collect(),
        output_types: vec![data_type],
        ..Node::default()
    };
    Output { node: graph.add(node), index: 0 }
}
