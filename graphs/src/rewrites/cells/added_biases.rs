//! What follows from the gradient `dz` of pre-activations where a sum has added the bias.
//!
//! ```text
//! dz      = Reshape(Sum(dz, r_z), Shape(product))       r_z, r_b = BroadcastGradientArgs(Shape(product), Shape(b))
//! b_grad  = Reshape(Sum(dz, r_b), Shape(b))             with known shapes Sum(dz, 0), or Reshape(Sum(dz, 0), [columns])
//! ```
//!
//! The bias is a vector for the columns of the product, so nothing is added up in the first. The second is `BiasAddGrad(dz)`,
//! and becomes that. Shapes of other tensors may be constants.

use super::preactivations::Preactivations;
use crate::facts::placement::check_beside;
use crate::facts::shapes::LazyShapes;
use crate::graph::{Graph, NodeId, Output};
use crate::reading::constants::integers;
use crate::reading::neighbours::{of, takers, unary};
use crate::reading::stacks::{is_same_outside, pushed};

/// What was read.
#[derive(Default)]
pub(super) struct AddedBias {
    /// The tensors that are `dz`.
    pub(super) same: Vec<Output>,
    /// The gradients of the bias.
    pub(super) sums: Vec<Output>,
    pub(super) nodes: Vec<NodeId>,
}

/// What a shape is that of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Product,
    Bias,
}

struct Reader<'g> {
    graph: &'g Graph,
    z: &'g Preactivations,
    b: Output,
    columns: i64,
}

impl AddedBias {
    /// Reads what takes the gradient of these pre-activations.
    pub(super) fn read(
        graph: &Graph,
        shapes: &LazyShapes,
        z: &Preactivations,
        dz: Output,
    ) -> AddedBias {
        let mut found = AddedBias::default();
        for b in z.added_biases() {
            if let Some(&[columns]) = shapes.of(graph).sizes(graph, b).as_deref() {
                found.add(&Reader { graph, z, b, columns }, dz);
            }
        }
        found
    }

    /// Adds what is read of one bias. The sums over rows are those of all.
    fn add(&mut self, reader: &Reader<'_>, dz: Output) {
        let (found, graph) = (self, reader.graph);
        let is_beside = |&id: &NodeId| check_beside(graph, id, dz.node).is_ok();
        for sum in takers(graph, dz, "Sum").filter(is_beside) {
            let axes = graph.input(sum, 1);
            let is_over_rows = integers(graph, axes) == Some(&[0]);
            if is_over_rows && !graph.node(sum).flag("keep_dims") {
                found.sums.push(of(sum));
                found.nodes.push(sum);
            }
            for reshape in takers(graph, of(sum), "Reshape").filter(is_beside) {
                let shape = graph.input(reshape, 1);
                let own = match is_over_rows {
                    true => reader.of_shape(shape).filter(|&own| own == Of::Bias),
                    false => reader.broadcast(axes, shape),
                };
                match own {
                    Some(Of::Product) => found.same.push(of(reshape)),
                    Some(Of::Bias) => found.sums.push(of(reshape)),
                    None => continue,
                }
                found.nodes.extend([sum, reshape]);
            }
        }
    }
}

impl Reader<'_> {
    /// What a tensor is the shape of.
    fn of_shape(&self, tensor: Output) -> Option<Of> {
        let shape = pushed(self.graph, tensor);
        match integers(self.graph, shape) {
            Some(&[columns]) if columns == self.columns => return Some(Of::Bias),
            Some(&[_, columns]) if columns == self.columns => return Some(Of::Product),
            Some(_) => return None,
            None => {}
        }
        let tensor = pushed(self.graph, unary(self.graph, shape, "Shape")?);
        if self.z.whole().contains(&tensor.node) {
            return Some(Of::Product);
        }
        is_same_outside(self.graph, tensor, self.b).then_some(Of::Bias)
    }

    /// Whose gradient is added up along these axes, and has this shape then.
    fn broadcast(&self, axes: Output, shape: Output) -> Option<Of> {
        let both = self.graph.node(axes.node);
        if both.op != "BroadcastGradientArgs" || both.inputs.get(axes.index) != Some(&shape) {
            return None;
        }
        let own = self.of_shape(shape)?;
        let other = self.of_shape(both.inputs[1 - axes.index])?;
        (own != other).then_some(own)
    }
}
