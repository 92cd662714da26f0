//! Patterns: what `tf.clip_by_value` makes of a tensor.

use super::constants::scalar;
use super::neighbours::{of, takers};
use crate::graph::{Graph, Output};

/// `Maximum(Minimum(tensor, k), -k)`
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clipped {
    /// k
    pub(crate) bound: f32,
    /// `Minimum(tensor, k)`
    pub(crate) least: Output,
    pub(crate) tensor: Output,
}

impl Clipped {
    /// What a tensor is clipped to, if it is.
    pub(crate) fn read(graph: &Graph, tensor: Output) -> Option<Clipped> {
        let clip = |tensor: Output, op: &str| {
            let node = takers(graph, tensor, op).next()?;
            let [left, right] = *graph.node(node).inputs.first_chunk()?;
            Some((of(node), scalar(graph, if left == tensor { right } else { left })?))
        };
        let (least, bound) = clip(tensor, "Minimum")?;
        let (tensor, other) = clip(least, "Maximum")?;
        (other == -bound && bound > 0.0).then_some(Clipped { bound, least, tensor })
    }
}
