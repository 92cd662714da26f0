//! How the gradient of a normalization adds up and repeats numbers, in graphs that know all shapes and in others.
//!
//! ```text
//!                known shapes                                        others
//! rows           Reshape(Sum(tensor, 1), [rows, 1])                  Reshape(Sum(tensor, axes), shape)
//! columns        Reshape(Sum(tensor, 0), [cells])                    Reshape(Sum(tensor, axes), shape)
//! spread         Tile(tensor, [1, cells]) * (1 / cells)              Tile(Reshape(tensor, kept), shape / kept) / count
//! ```
//!
//! `axes` is `BroadcastGradientArgs` of two shapes, and `kept` the shape of x with one column:
//! `DynamicStitch([0, 1], [1], shape, [1])`. `count` is `Prod(shape of x) / Prod(shape of the mean)`.

use super::layer_norm_grad::{Form, Like, Reader, reshaped};
use crate::graph::{NodeId, Output};
use crate::reading::constants::{integers, scalar};
use crate::reading::neighbours::{of, takers, unary};
use crate::reading::stacks::pushed;

impl Reader<'_> {
    /// What is added up to the shape of one operand, where that was broadcast with another. With known shapes, nothing is.
    pub(super) fn sum(&mut self, tensor: Output, own: Like, other: Like) -> Option<Output> {
        match self.form {
            Form::Known { .. } => Some(tensor),
            Form::Open { .. } => {
                let (inner, nodes) = self.summed(tensor, own, Some(other))?;
                self.nodes.extend(nodes);
                Some(inner)
            }
        }
    }

    /// The tensors that [`Self::sum`] would find this one in.
    pub(super) fn results(&self, tensor: Output, own: Like, other: Like) -> Vec<Output> {
        if let Form::Known { .. } = self.form {
            return vec![tensor];
        }
        let is_such = |sum: &Output| {
            self.summed(*sum, own, Some(other)).is_some_and(|(inner, _)| inner == tensor)
        };
        self.reshaped_sums(tensor).into_iter().filter(is_such).collect()
    }

    fn reshaped_sums(&self, tensor: Output) -> Vec<Output> {
        let sums = takers(self.graph, tensor, "Sum").map(of);
        sums.flat_map(|sum| takers(self.graph, sum, "Reshape")).map(of).collect()
    }

    /// What becomes one number for each row. The product of two tensors was that of one with `Mean`, and this other one;
    /// a single number if it is None.
    pub(super) fn row_sum(&mut self, tensor: Output, other: Option<Like>) -> Option<Output> {
        let graph = self.graph;
        let Form::Known { rows, .. } = self.form else {
            let (inner, nodes) = self.summed(tensor, Like::Mean, other)?;
            self.nodes.extend(nodes);
            return Some(inner);
        };
        let is_shape = |shape| integers(graph, shape) == Some(&[rows, 1]);
        let sum = reshaped(graph, tensor).filter(|&(_, shape)| is_shape(shape))?.0;
        let node = graph.node(sum.node);
        let is_sum = node.op == "Sum" && matches!(integers(graph, node.inputs[1]), Some([1 | -1]));
        self.nodes.extend([tensor.node, sum.node]);
        is_sum.then(|| node.inputs[0])
    }

    /// What a single number was added to.
    pub(super) fn number_sum(&mut self, tensor: Output) -> Option<Output> {
        match self.form {
            Form::Known { .. } => Some(tensor),
            Form::Open { .. } => self.row_sum(tensor, None),
        }
    }

    /// The sums over the rows of a tensor, of the shape of scale and offset.
    pub(super) fn column_sums(&mut self, tensor: Output) -> Vec<Output> {
        let graph = self.graph;
        let is_of_rows = |sum: Output| {
            let node = graph.node(sum.node);
            !node.flag("keep_dims") && integers(graph, node.inputs[1]) == Some(&[0])
        };
        let is_such = |sum: &Output| match self.form {
            Form::Known { cells, .. } => reshaped(graph, *sum).is_some_and(|(sum, shape)| {
                is_of_rows(sum) && integers(graph, shape) == Some(&[cells])
            }),
            Form::Open { .. } => [Like::Mean, Like::Y].into_iter().any(|other| {
                self.summed(*sum, Like::Vector, Some(other))
                    .is_some_and(|(inner, _)| inner == tensor)
            }),
        };
        let mut found: Vec<_> = self.reshaped_sums(tensor).into_iter().filter(is_such).collect();
        if let (Form::Known { .. }, true) = (self.form, found.is_empty()) {
            // The sum has that shape, so TensorFlow's optimizers take the Reshape away.
            let sums = takers(graph, tensor, "Sum").map(of);
            found = sums.filter(|&sum| is_of_rows(sum)).collect();
            self.nodes.extend(found.iter().map(|sum| sum.node));
            return found;
        }
        for sum in &found {
            self.nodes.extend([sum.node, graph.input(sum.node, 0).node]);
        }
        found
    }

    /// Reads `Reshape(Sum(tensor, BroadcastGradientArgs(shape, other shape)), shape)`. Without the `Reshape`, that is
    /// what a later one makes of it.
    fn summed(
        &self,
        tensor: Output,
        own: Like,
        other: Option<Like>,
    ) -> Option<(Output, Vec<NodeId>)> {
        let graph = self.graph;
        let (sum, own_shape) = match reshaped(graph, tensor) {
            Some((sum, shape)) => (sum, Some(shape)),
            None if own == Like::Mean => (tensor, None),
            None => return None,
        };
        let node = graph.node(sum.node);
        let &[inner, axes] = node.inputs.first_chunk().filter(|_| node.op == "Sum")?;
        let both = graph.node(axes.node);
        if both.op != "BroadcastGradientArgs" {
            return None;
        }
        let (of_own, of_other) = (both.inputs[axes.index], both.inputs[1 - axes.index]);
        let is_such = own_shape.is_none_or(|shape| shape == of_own)
            && self.is_shape(of_own, Some(own))
            && self.is_shape(of_other, other);
        is_such.then(|| (inner, vec![tensor.node, sum.node]))
    }

    /// Whether a tensor is the shape of such a tensor of the normalization, or of a single number.
    fn is_shape(&self, tensor: Output, like: Option<Like>) -> bool {
        let (graph, shape) = (self.graph, pushed(self.graph, tensor));
        if let Some(sizes) = integers(graph, shape) {
            let Form::Open { cells } = self.form else { return false };
            return match (like, sizes) {
                (None, _) => sizes.is_empty(),
                (Some(Like::Vector), _) => sizes == [cells],
                (Some(Like::Mean), &[rows, 1]) => self.has_rows(rows),
                (Some(Like::X | Like::Y), &[rows, columns]) => {
                    columns == cells && self.has_rows(rows)
                }
                _ => false,
            };
        }
        let of = unary(graph, shape, "Shape").map(|of| pushed(graph, of));
        let is_such = of.is_some_and(|of| (self.like)(of) == like && like.is_some());
        is_such && (like == Some(Like::Vector) || self.has_rows(-1))
    }

    /// Whether so many rows are as many as constants have named before, -1 for a shape that is computed.
    fn has_rows(&self, rows: i64) -> bool {
        let known = self.rows.get().unwrap_or(rows);
        self.rows.set(Some(known));
        known == rows
    }

    /// What is repeated for each column, and divided by how many there are.
    pub(super) fn before_spread(&mut self, tensor: Output) -> Option<Output> {
        let node = self.graph.node(tensor.node);
        let &[one, other] = &node.inputs[..] else { return None };
        self.nodes.push(tensor.node);
        match (self.form, node.op.as_str()) {
            (Form::Known { rows, cells }, "Mul" | "RealDiv") => {
                let factor = if node.op == "Mul" { 1.0 / cells as f32 } else { cells as f32 };
                let is_factor = |tensor| scalar(self.graph, tensor) == Some(factor);
                match (is_factor(other), is_factor(one) && node.op == "Mul") {
                    (true, _) => self.before_tile(one, rows, cells),
                    (false, true) => self.before_tile(other, rows, cells),
                    (false, false) => None,
                }
            }
            (Form::Open { .. }, "RealDiv") => {
                self.is_count(other).then(|| self.before_computed_tile(one)).flatten()
            }
            _ => None,
        }
    }

    /// Reads `Tile(Reshape(tensor, [rows, 1]), [1, cells])`. One number for each row is left as it is reshaped.
    fn before_tile(&mut self, tensor: Output, rows: i64, cells: i64) -> Option<Output> {
        let graph = self.graph;
        let node = graph.node(tensor.node);
        let times = match node.op.as_str() {
            "Tile" => [1, cells],
            "BroadcastTo" => [rows, cells],
            _ => return None,
        };
        self.nodes.push(tensor.node);
        let is_such = integers(graph, node.inputs[1]) == Some(&times);
        let one = node.inputs[0];
        let is_shape = |shape| integers(graph, shape) == Some(&[rows, 1]);
        match reshaped(graph, one).filter(|&(_, shape)| is_shape(shape) && is_such) {
            Some((inner, _)) if graph.op(inner.node) != "Sum" => {
                self.nodes.push(one.node);
                Some(inner)
            }
            _ => is_such.then_some(one),
        }
    }

    /// Reads `Tile(Reshape(tensor, kept), shape / kept)`.
    fn before_computed_tile(&mut self, tensor: Output) -> Option<Output> {
        let graph = self.graph;
        let binary = |tensor: Output, op: &str| {
            let node = graph.node(tensor.node);
            let both: Option<&[Output; 2]> = node.inputs.first_chunk();
            both.copied().filter(|_| node.op == op && node.inputs.len() == 2)
        };
        let [column, times] = binary(tensor, "Tile")?;
        let (inner, kept) = reshaped(graph, column)?;
        let [shape, most] = binary(times, "FloorDiv")?;
        let [same, one] = binary(most, "Maximum")?;
        let is_such = same == kept
            && integers(graph, one) == Some(&[1])
            && self.is_shape(shape, Some(Like::X))
            && self.is_kept(kept);
        self.nodes.extend([tensor.node, column.node]);
        is_such.then_some(inner)
    }

    /// Whether a tensor is the shape of x with one column.
    fn is_kept(&self, tensor: Output) -> bool {
        let graph = self.graph;
        let node = graph.node(tensor.node);
        let &[all, columns, shape, one] = &node.inputs[..] else { return false };
        let ones = graph.node(one.node);
        let is_one = match (ones.op.as_str(), &ones.inputs[..]) {
            ("Fill", &[size, value]) => {
                integers(graph, size) == Some(&[1]) && integers(graph, value) == Some(&[1])
            }
            _ => integers(graph, one) == Some(&[1]),
        };
        node.op == "DynamicStitch"
            && integers(graph, all) == Some(&[0, 1])
            && integers(graph, columns) == Some(&[1])
            && self.is_shape(shape, Some(Like::X))
            && is_one
    }

    /// Whether a tensor is how many numbers each mean is of.
    fn is_count(&self, tensor: Output) -> bool {
        let graph = self.graph;
        let product = |tensor: Output, like: Like| {
            let node = graph.node(tensor.node);
            node.op == "Prod"
                && self.is_shape(node.inputs[0], Some(like))
                && integers(graph, node.inputs[1]) == Some(&[0])
        };
        let quotient = unary(graph, tensor, "Cast").map(|of| graph.node(of.node));
        quotient.is_some_and(|quotient| {
            let &[all, means] = &quotient.inputs[..] else { return false };
            let most = graph.node(means.node);
            quotient.op == "FloorDiv"
                && product(all, Like::X)
                && most.op == "Maximum"
                && product(most.inputs[0], Like::Mean)
                && integers(graph, most.inputs[1]) == Some(&[1])
        })
    }
}
