//! Bands: rows of the batch that all steps can be computed for by themselves.

use std::iter;

use ndarray::{ArrayViewMut3, Axis};

use crate::executor::for_each;
use crate::tiles::Tiling;
use crate::tuning::TIME_SLICE_CYCLES;
use crate::{Context, Serial};

/// The rows of a band. Where tiles are as wide as a matrix, none needs what another one computes, so each is a band,
/// and one task computes all its steps. Otherwise the whole batch is one, and each step is cut into tiles.
pub(super) fn band_rows(tiling: Tiling, (batch, cells): (usize, usize)) -> usize {
    if cells <= tiling.columns { tiling.rows.min(batch) } else { batch }
}

/// How many steps of `cost` processor cycles a thread computes before it can turn to other work.
pub(super) fn steps_of_slice(cost: u64) -> usize {
    usize::try_from(TIME_SLICE_CYCLES / cost.max(1)).unwrap_or(usize::MAX)
}

/// Runs `work` on every band, several side by side, or one of which each step may be cut.
pub(super) fn for_each_band<B: Send>(
    context: &Context<'_>,
    cost: u64,
    bands: Vec<B>,
    work: impl Fn(&Context<'_>, B) + Sync,
) {
    if bands.len() == 1 {
        return bands.into_iter().for_each(|band| work(context, band));
    }
    let Context { isa, executor, precision, weights, ran, constants } = *context;
    for_each(executor, cost, bands, |band| {
        let executor = &Serial;
        work(&Context { isa, executor, precision, weights, ran, constants }, band);
    });
}

/// The parts of tensors over all steps that bands of `rows` rows have.
pub(super) fn cut<'a, T, const N: usize>(
    tensors: &'a mut [ArrayViewMut3<'_, T>; N],
    rows: usize,
) -> impl Iterator<Item = [ArrayViewMut3<'a, T>; N]> {
    let mut parts = tensors.each_mut().map(|tensor| tensor.axis_chunks_iter_mut(Axis(1), rows));
    iter::repeat_with(move || {
        parts.each_mut().map(|parts| parts.next().expect("a part for each band"))
    })
}
