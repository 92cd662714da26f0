//! One row of a tensor that stands for all, as where a graph adds the products of x and of `h_prev`.

use crate::ops::{Lists, PartialShape, Tensor};

/// What is known of the shapes of a call's inputs, where those of these names have as many rows as they broadcast to.
pub(super) fn with_all_rows(inputs: &Lists<'_, PartialShape>, names: &[&str]) -> Vec<PartialShape> {
    let axis = |shape: &[Option<usize>]| shape.len().checked_sub(2);
    // None for one row; the number of others may not be known.
    let more = |&name: &&str| match inputs.one(name).as_deref() {
        Some(shape) => axis(shape).map(|axis| shape[axis]).filter(|rows| *rows != Some(1)),
        None => Some(None),
    };
    let more: Vec<_> = names.iter().filter_map(more).collect();
    let known = more.iter().copied().flatten().next();
    let all = known.or(more.is_empty().then_some(1));
    let with_all = |tensor: &Tensor, shape: &PartialShape| {
        let mut shape = shape.clone();
        // One of another rank is an error, which names the shape that it has.
        let has_rank = |shape: &&mut Vec<Option<usize>>| {
            tensor.dims.is_empty() || tensor.dims.len() == shape.len()
        };
        let is_such = names.contains(&tensor.name);
        let shape_of_rows = shape.as_mut().filter(|shape| is_such && has_rank(shape));
        let own = shape_of_rows.and_then(|shape| axis(shape).map(|axis| &mut shape[axis]));
        if let Some(own) = own.filter(|own| matches!(own, Some(1) | None)) {
            *own = all;
        }
        shape
    };
    inputs.iter().map(|(tensor, _, shape)| with_all(tensor, shape)).collect()
}
