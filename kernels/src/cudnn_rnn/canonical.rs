//! The parameters as single matrices and vectors, and as one buffer.

use ndarray::{ArrayView1, ArrayViewMut1};

use super::Layout;
use super::layout::Region;
use crate::Error;

/// `CudnnRNNParamsToCanonical` and `CudnnRNNParamsToCanonicalV2`: copies each matrix and then each bias out of the buffer.
///
/// `weights` and `biases` are those of [`Layout::weights`] and [`Layout::biases`], in their order.
///
/// # Errors
///
/// A buffer, a list or a part of it of the wrong size; nothing is written then.
pub fn params_to_canonical<'a, E: Copy>(
    op: &'static str,
    layout: &Layout,
    params: ArrayView1<'_, E>,
    weights: &mut [&'a mut [E]],
    biases: &mut [&'a mut [E]],
) -> Result<(), Error> {
    layout.check_params(op, params.shape())?;
    let params = params.to_slice().ok_or(Error::Layout { op, tensor: "params" })?;
    let lists = regions_of(op, layout, [&*weights, &*biases])?;
    for (regions, parts) in lists.into_iter().zip([weights, biases]) {
        for (region, part) in regions.into_iter().zip(parts) {
            part.copy_from_slice(&params[region.range]);
        }
    }
    Ok(())
}

/// `CudnnRNNCanonicalToParams` and `CudnnRNNCanonicalToParamsV2`: the inverse of [`params_to_canonical`].
///
/// # Errors
///
/// As [`params_to_canonical`].
pub fn canonical_to_params<E: Copy>(
    op: &'static str,
    layout: &Layout,
    weights: &[&[E]],
    biases: &[&[E]],
    params: ArrayViewMut1<'_, E>,
) -> Result<(), Error> {
    layout.check_params(op, params.shape())?;
    let params = params.into_slice().ok_or(Error::Layout { op, tensor: "params" })?;
    let lists = regions_of(op, layout, [weights, biases])?;
    for (regions, parts) in lists.into_iter().zip([weights, biases]) {
        for (region, part) in regions.into_iter().zip(parts) {
            params[region.range].copy_from_slice(part);
        }
    }
    Ok(())
}

/// The regions of all weights and of all biases, which have the sizes of these parts.
fn regions_of<E>(
    op: &'static str,
    layout: &Layout,
    [weights, biases]: [&[impl AsRef<[E]>]; 2],
) -> Result<[Vec<Region>; 2], Error> {
    const NAMES: [&str; 2] = ["weights", "biases"];
    // First of all: a network without units may have more layers than there is memory for their regions.
    for ((name, expected), parts) in NAMES.into_iter().zip(layout.counts()).zip([weights, biases]) {
        if parts.len() != expected {
            return Err(Error::Count { op, what: name, expected, got: parts.len() });
        }
    }
    let lists = [layout.weights().collect::<Vec<_>>(), layout.biases().collect()];
    for ((name, regions), parts) in NAMES.into_iter().zip(&lists).zip([weights, biases]) {
        check_list(op, name, regions, parts.iter().map(|part| part.as_ref().len()))?;
    }
    Ok(lists)
}

/// Checks the sizes of a list. A part may have another shape of the same size, as in TensorFlow.
fn check_list(
    op: &'static str,
    name: &'static str,
    regions: &[Region],
    sizes: impl Iterator<Item = usize>,
) -> Result<(), Error> {
    for (index, (region, size)) in regions.iter().zip(sizes).enumerate() {
        if size != region.range.len() {
            let expected = format!("{:?}, or as many elements", region.shape);
            let got = vec![Some(size)];
            return Err(Error::ListShape { op, tensor: name, index, expected, got });
        }
    }
    Ok(())
}
