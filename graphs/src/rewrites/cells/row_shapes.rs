//! The shapes of products that are added, which gradients ask for: one of the products may have fewer rows.
//!
//! ```text
//! Shape(MatMul(x, w))        becomes        Shape(x) + [0, columns of w - rows of w]
//! ```
//!
//! So the products are read by nobody but their step. The new nodes have values where the old one had one.

use super::preactivations::Preactivations;
use crate::facts::placement::{check_same_device, is_claimed};
use crate::facts::shapes::LazyShapes;
use crate::graph::{Attribute, Constant, DataType, Graph, Node, NodeId, Output, Values};
use crate::reading::neighbours::{of, takers};

/// Rewrites all such shapes of a step's pre-activations.
pub(super) fn rewrite(graph: &mut Graph, shapes: &LazyShapes, z: &Preactivations) {
    let Some(w_h) = z.w_h else { return };
    for (side, (left, w)) in z.sides.iter().zip([(z.x, z.w), (z.h_prev, w_h)]) {
        let Some(&[rows, columns]) = shapes.of(graph).sizes(graph, w).as_deref() else { continue };
        for &id in side {
            let asks = |shape: &NodeId| {
                let node = graph.node(*shape);
                node.output_types == [DataType::INT32]
                    && !node.is_target
                    && !is_claimed(node)
                    && check_same_device(graph, *shape, id).is_ok()
            };
            let found: Vec<_> = takers(graph, of(id), "Shape").filter(asks).collect();
            found.into_iter().for_each(|shape| replace(graph, shape, side, (left, columns - rows)));
        }
    }
}

/// Puts the shape of a product's left factor, which has fewer columns by `more`, in the place of that of the product.
fn replace(graph: &mut Graph, shape: NodeId, side: &[NodeId], (left, more): (Output, i64)) {
    let old = graph.node(shape);
    let name = format!("{}/blockcell/", old.name);
    let like = |op: &str, attributes, inputs| Node {
        name: format!("{name}{op}"),
        op: op.to_owned(),
        device: old.device.clone(),
        attributes,
        inputs,
        output_types: vec![DataType::INT32],
        ..Node::default()
    };
    // It has a value where all that the product is computed from has one.
    let sources = side.iter().chain([&shape]).flat_map(|&id| graph.node(id).sources());
    let mut waits: Vec<_> = sources.filter(|id| !side.contains(id) && *id != left.node).collect();
    waits.sort_unstable();
    waits.dedup();
    let of_left = like("Shape", old.attributes.clone(), vec![left]);
    let of_left = Node { control_inputs: waits, ..of_left };
    let values = Values::Ints(vec![0, more]);
    let value = Constant { data_type: DataType::INT32, shape: vec![2], values };
    let int32 = |name: &str| (name.to_owned(), Attribute::Type(DataType::INT32));
    let constant = vec![int32("dtype"), ("value".to_owned(), Attribute::Constant(value))];
    let constant = like("Const", constant, Vec::new());
    let sum = like("AddV2", vec![int32("T")], Vec::new());
    let of_left = graph.add(of_left);
    let constant = graph.add(Node { control_inputs: vec![of_left], ..constant });
    let sum = graph.add(Node { inputs: vec![of(of_left), of(constant)], ..sum });
    graph.redirect(of(shape), of(sum));
    graph.redirect_control(shape, sum);
    graph.remove_unused(shape);
}
