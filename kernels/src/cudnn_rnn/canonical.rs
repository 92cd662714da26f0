//! Conversion between separate matrices and vectors of parameters and one buffer.

use ndarray::{ArrayView1, ArrayViewMut1};

use super::Layout;
use super::layout::Region;
use crate::Error;
use crate::error::known_shape;

/// `CudnnRNNParamsToCanonical` and `CudnnRNNParamsToCanonicalV2`: copies each matrix and then each bias from the
/// buffer.
///
/// `weights` and `biases` are those of [`Layout::weights`] and [`Layout::biases`], in their order.
///
/// # Errors
///
/// If the buffer, a list or a part of it has the wrong size. Nothing is written then.
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

/// Checks the shapes of all weights and of all biases. Each may have another shape with the same number of elements,
/// as in TensorFlow.
///
/// # Errors
///
/// [`Error::Count`] for a list of another length, [`Error::Shape`] for the first part of another size.
pub fn check_canonical(
    op: &'static str,
    layout: &Layout,
    weights: &[&[usize]],
    biases: &[&[usize]],
) -> Result<(), Error> {
    checked_regions(op, layout, [weights, biases]).map(|_| ())
}

/// The regions of all weights and of all biases, which have the sizes of these parts.
fn regions_of<E>(
    op: &'static str,
    layout: &Layout,
    parts: [&[impl AsRef<[E]>]; 2],
) -> Result<[Vec<Region>; 2], Error> {
    let shapes =
        parts.map(|list| list.iter().map(|part| [part.as_ref().len()]).collect::<Vec<_>>());
    checked_regions(op, layout, shapes.each_ref().map(Vec::as_slice))
}

/// The regions of all weights and of all biases, if these are the shapes of their parts.
fn checked_regions(
    op: &'static str,
    layout: &Layout,
    shapes: [&[impl AsRef<[usize]>]; 2],
) -> Result<[Vec<Region>; 2], Error> {
    const NAMES: [&str; 2] = ["weights", "biases"];
    // First of all: a network without units may have more layers than there is memory for their regions.
    for ((what, expected), shapes) in NAMES.into_iter().zip(layout.counts()).zip(shapes) {
        if shapes.len() != expected {
            return Err(Error::Count { op, what, expected, got: shapes.len() });
        }
    }
    let lists = [layout.weights().collect::<Vec<_>>(), layout.biases().collect()];
    for ((name, regions), shapes) in NAMES.into_iter().zip(&lists).zip(shapes) {
        check_sizes(op, name, regions, shapes)?;
    }
    Ok(lists)
}

/// Checks the shapes of a list by their sizes.
fn check_sizes(
    op: &'static str,
    name: &'static str,
    regions: &[Region],
    shapes: &[impl AsRef<[usize]>],
) -> Result<(), Error> {
    for (index, (region, shape)) in regions.iter().zip(shapes).enumerate() {
        let shape = shape.as_ref();
        // A tensor that exists has a size that fits.
        if shape.iter().product::<usize>() != region.range.len() {
            let expected = format!("{:?}, or as many elements", region.shape);
            let (index, got) = ((regions.len() > 1).then_some(index), known_shape(shape));
            return Err(Error::Shape { op, tensor: name, index, expected, got });
        }
    }
    Ok(())
}
