//! What gradients look like where TensorFlow does not know whether tensors were broadcast.
//!
//! ```text
//! Reshape(Sum(tensor, BroadcastGradientArgs(shape, other shape)), shape)
//! ```
//!
//! That adds a gradient up to the shape of one operand, where that was broadcast with another one.

use crate::graph::{Graph, NodeId, Output};
use crate::reading::constants::{integers, scalar};
use crate::reading::neighbours::unary;
use crate::reading::stacks::pushed;

/// The shapes of a step's tensors. They differ where one row meets many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// That of the pre-activations, and of gates that do not look at the state.
    Gate,
    /// That of cs_prev.
    Previous,
    /// What these two broadcast to, which is the shape of gates that look at the state, too.
    State,
    /// What cs_prev and peephole weights broadcast to.
    Seen,
    /// That of peephole weights.
    Weights,
}

/// Reads such sums in the backward step of a cell.
pub(super) struct Broadcasts<'g> {
    pub(super) graph: &'g Graph,
    /// The size of a tensor of the forward step.
    pub(super) size: &'g dyn Fn(Output) -> Option<Size>,
    /// Whether constants may name axes of one element without telling whose.
    pub(super) takes_axes_of_one: bool,
}

impl Broadcasts<'_> {
    /// What is added up to the size of one operand, and the nodes that do it. The other operand is a
    /// single number if it is None.
    pub(super) fn before_sum(
        &self,
        tensor: Output,
        own: Size,
        other: Option<Size>,
    ) -> Option<(Output, [NodeId; 2])> {
        let node = |tensor: Output, op: &str| {
            Some(self.graph.node(tensor.node)).filter(|node| node.op == op)
        };
        let &[sum, shape] = node(tensor, "Reshape")?.inputs.first_chunk()?;
        let &[inner, axes] = node(sum, "Sum")?.inputs.first_chunk()?;
        let is_such = match node(axes, "BroadcastGradientArgs") {
            Some(both) => {
                let (own_shape, other_shape) =
                    (both.inputs[axes.index], both.inputs[1 - axes.index]);
                shape == own_shape
                    && self.is_shape(own_shape, Some(own))
                    && self.is_shape(other_shape, other)
            }
            None => self.names_axes_of_one(axes, shape),
        };
        is_such.then_some((inner, [tensor.node, sum.node]))
    }

    /// Whether a tensor is the shape of the forward step's tensors of this size, or of a single number.
    /// Where it is a constant, TensorFlow's optimizers put it there for the shape.
    fn is_shape(&self, tensor: Output, size: Option<Size>) -> bool {
        let shape = pushed(self.graph, tensor);
        if let Some(sizes) = integers(self.graph, shape) {
            return sizes.is_empty() == size.is_none();
        }
        let of = unary(self.graph, shape, "Shape").map(|of| pushed(self.graph, of));
        of.is_some_and(|of| match size {
            Some(size) => (self.size)(of) == Some(size),
            None => scalar(self.graph, of).is_some(),
        })
    }

    /// Whether constants are axes along which a shape has one element, and that shape.
    fn names_axes_of_one(&self, axes: Output, shape: Output) -> bool {
        let numbers = |tensor| integers(self.graph, pushed(self.graph, tensor));
        numbers(axes).zip(numbers(shape)).is_some_and(|(axes, shape)| {
            let is_one =
                |&axis: &i64| usize::try_from(axis).is_ok_and(|axis| shape.get(axis) == Some(&1));
            axes.is_empty() || (self.takes_axes_of_one && axes.iter().all(is_one))
        })
    }
}
