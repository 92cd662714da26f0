//! What becomes of the output of a step before the next layer takes it.
//!
//! ```text
//! h   MatMul(h, projection) [Minimum, Maximum]      `LSTMCell` with `num_proj`, which the next step takes, too
//! y   x + h                                         `ResidualWrapper`, which only the next layer takes
//! ```
//!
//! A projection is known to have no more columns than the state. What is added is known to be as wide: `Add` broadcasts.

use super::frame::Frame;
use super::weights::Weight;
use crate::facts::shapes::LazyShapes;
use crate::graph::{Attribute, Graph, NodeId, Output, ops};
use crate::reading::clips::Clipped;
use crate::reading::neighbours::{of, skip_identities, takers, transposes};
use crate::rewrites::layer::Cell;

/// The output of a step.
#[derive(Debug)]
pub(super) struct After {
    /// What the next step takes.
    pub(super) h: Output,
    /// What the next layer takes.
    pub(super) y: Output,
    projection: Option<(Output, f32)>,
    /// The nodes that make these.
    pub(super) nodes: Vec<NodeId>,
}

impl After {
    /// Reads what becomes of the output of a step that takes `x`. What cannot be a part of a layer is left.
    pub(super) fn read(
        graph: &Graph,
        shapes: &LazyShapes,
        (step, cell): (NodeId, &Cell),
        x: Output,
    ) -> After {
        let h = Output { node: step, index: cell.h };
        let mut after = After { h, y: h, projection: None, nodes: Vec::new() };
        let sizes = |tensor| match shapes.of(graph).sizes(graph, tensor).as_deref() {
            Some(&[rows, columns]) => Some([rows, columns]),
            _ => None,
        };
        let mut width = None;
        let is_plain = graph.op(step) == ops::LSTM_CELL;
        if is_plain {
            let is_one = |&id: &NodeId| {
                graph.input(id, 0) == h && transposes(graph.node(id)) == Some([false; 2])
            };
            let projected = takers(graph, h, "MatMul").find(is_one);
            let known = projected.and_then(|id| Some((id, sizes(graph.input(id, 1))?)));
            if let Some((id, [_, columns])) = known.filter(|(_, [cells, columns])| columns <= cells)
            {
                width = Some(columns);
                after.project(graph, id);
            }
        }
        let Some([rows, columns]) = sizes(graph.input(step, cell.weights[0])) else { return after };
        let width = width.unwrap_or(columns / cell.gates());
        if graph.op(step) == ops::NORMALIZED_LSTM_CELL {
            return after; // Its layer adds nothing.
        }
        let may_have_own = is_plain || graph.op(step) == ops::HALF_GRU_CELL;
        let has_own = may_have_own && graph.node(step).int("num_w_h") == Some(1);
        if width == if has_own { rows } else { rows - width } {
            after.add(graph, x);
        }
        after
    }

    fn project(&mut self, graph: &Graph, product: NodeId) {
        self.h = of(product);
        self.nodes.push(product);
        let clipped = Clipped::read(graph, self.h);
        if let Some(Clipped { least, tensor, .. }) = clipped {
            self.h = tensor;
            self.nodes.extend([least.node, tensor.node]);
        }
        let bound = clipped.map_or(-1.0, |clipped| clipped.bound);
        (self.y, self.projection) = (self.h, Some((graph.input(product, 1), bound)));
    }

    fn add(&mut self, graph: &Graph, x: Output) {
        let mut sums = ["Add", "AddV2"].into_iter().flat_map(|op| takers(graph, self.h, op));
        let sum = sums.find(|&sum| match graph.node(sum).inputs[..] {
            [left, right] => {
                let other = if left == self.h { right } else { left };
                skip_identities(graph, other) == x
            }
            _ => false,
        });
        if let Some(sum) = sum {
            self.y = of(sum);
            self.nodes.push(sum);
        }
    }

    /// The weights that the layer has beside those of the step.
    pub(super) fn weights(&self, graph: &Graph, frame: &Frame) -> Option<Vec<Weight>> {
        let weights = self.projection.iter().map(|&(tensor, _)| Weight::read(graph, frame, tensor));
        weights.collect()
    }

    /// The attributes that it has beside those of others.
    pub(super) fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        let mut all = Vec::new();
        if let Some((_, clip)) = self.projection {
            all.extend([("num_projection", 1_usize.into()), ("proj_clip", clip.into())]);
        }
        if self.y != self.h {
            all.push(("adds_x", true.into()));
        }
        all
    }
}
