//! Numbers for the steps of plain cells, and their comparison with sums in float64.

use ndarray::{Array, Array2, ArrayD, Axis, Dimension, IxDyn};

/// Numbers between -1 and 1 that depend on `seed`.
pub(crate) fn numbers(seed: u32, shape: &[usize]) -> ArrayD<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    Array::from_shape_fn(IxDyn(shape), |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    })
}

pub(crate) fn matrix(seed: u32, rows: usize, columns: usize) -> Array2<f32> {
    numbers(seed, &[rows, columns]).into_dimensionality().expect("a matrix")
}

pub(crate) fn wide<D: Dimension>(values: &Array<f32, D>) -> Array<f64, D> {
    values.mapv(f64::from)
}

#[track_caller]
pub(crate) fn assert_close<D: Dimension>(
    got: &Array<f32, D>,
    want: &Array<f64, D>,
    tolerance: f64,
    what: &str,
) {
    assert_eq!(got.shape(), want.shape(), "{what}");
    for (got, want) in got.iter().zip(want) {
        assert!((f64::from(*got) - want).abs() < tolerance, "{what}: {got} and {want}");
    }
}

/// A tensor's sum over the axes along which one of another shape was broadcast to it.
pub(crate) fn summed(tensor: &ArrayD<f64>, to: &[usize]) -> ArrayD<f64> {
    let mut sum = tensor.clone();
    while sum.ndim() > to.len() {
        sum = sum.sum_axis(Axis(0));
    }
    for (axis, &size) in to.iter().enumerate() {
        if size == 1 {
            sum = sum.sum_axis(Axis(axis)).insert_axis(Axis(axis));
        }
    }
    sum
}
