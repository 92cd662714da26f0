//! Products of all steps: the gradients with respect to x and to weights.

use std::ops::Range;
use std::slice;

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis};

use super::lengths::{Lengths, Rows};
use super::steps::{all_rows, clear_from};
use crate::gemm::{self, LeftLayout, Right, Target};
use crate::tiles;
use crate::{Context, Storage};

/// Sets the gradient with respect to x: the sum of `d @ w^T` over the gates, whose weights are `w`, or the sum of `d`
/// where the gates have no weights. `d` has all rows of the steps. Weights may lie in memory as their transposes.
/// Without memory nothing is computed.
pub(crate) fn input_gradient<E: Storage, D: Storage, const N: usize>(
    context: &Context<'_>,
    lengths: Lengths<'_>,
    d: [ArrayView2<'_, D>; N],
    w: Option<[ArrayView2<'_, E>; N]>,
    mut x_grad: ArrayViewMut3<'_, E>,
) {
    if x_grad.is_empty() {
        return;
    }
    let (steps, batch) = (lengths.longest(), x_grad.len_of(Axis(1)));
    clear_from(slice::from_mut(&mut x_grad), steps);
    let depth: usize = d.iter().map(ArrayView2::ncols).sum();
    let out = all_rows(x_grad.view_mut(), 0..steps);
    let results = [Target { out, terms: () }];
    gemm::products(context, LeftLayout::RowMajor, depth, results, |tile, (), place| match w {
        Some(w) => {
            for (d, w) in d.into_iter().zip(w) {
                tile.add(place.rows_of(d), Right::of(w.reversed_axes()));
            }
        }
        None => d.into_iter().for_each(|d| tile.add_matrix(place.of(d))),
    });
    for (t, x_grad) in x_grad.outer_iter_mut().enumerate().take(steps) {
        Rows { lengths, t }.clear_ended(0..batch, x_grad);
    }
}

/// What weights were multiplied by.
#[derive(Clone, Copy)]
pub(crate) enum Left<'a, E> {
    /// x of the steps.
    Input,
    /// The state before each step.
    State,
    /// A row for each row of the batch in each step.
    Rows(ArrayView2<'a, E>),
}

/// A gradient with respect to the weights of a gate, or of several side by side.
pub(crate) struct WeightGradient<'a, 'o, E, D> {
    pub(crate) left: Left<'a, E>,
    /// Gradient with respect to the products, of all steps: zero in rows that have ended.
    pub(crate) d: ArrayView2<'a, D>,
    /// It may lie in memory as its transpose.
    pub(crate) out: ArrayViewMut2<'o, E>,
}

/// What [`weight_gradients`] reads of a sequence.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a, E> {
    pub(crate) lengths: Lengths<'a>,
    pub(crate) x: ArrayView3<'a, E>,
    /// The state before the first step, and after each step.
    pub(crate) h_prev: ArrayView2<'a, E>,
    pub(crate) h: ArrayView3<'a, E>,
}

/// The gradients with respect to the weights of x and of the state, of a matrix that has both, or is empty because
/// nobody reads it.
pub(crate) fn split_rows<E>(
    w_grad: ArrayViewMut2<'_, E>,
    input_size: usize,
) -> [ArrayViewMut2<'_, E>; 2] {
    let rows = input_size.min(w_grad.nrows());
    w_grad.split_at(Axis(0), rows).into()
}

/// `left^T @ d` of all steps, for each of some weights that have memory. Where the memory holds their transposes, x and
/// rows must be finite in steps that a row does not have.
pub(crate) fn weight_gradients<'a, 'o, E: Storage, D: Storage>(
    context: &Context<'_>,
    inputs: Inputs<'_, E>,
    gradients: impl IntoIterator<Item = WeightGradient<'a, 'o, E, D>>,
) {
    let Inputs { lengths, x, h_prev, h } = inputs;
    let (batch, steps) = (h_prev.nrows(), lengths.longest());
    // The factors of rows that have ended may hold anything, even NaN, though their d are zeros.
    let valid = lengths.valid(steps);
    let x = all_rows(x, 0..steps);
    // The first step's state is an input, that of the others comes from the step before.
    let h = all_rows(h, 0..steps - 1);
    let gradients = gradients.into_iter().filter(|gradient| !gradient.out.is_empty());
    let results = gradients.map(|WeightGradient { left, d, out }| {
        let transposed = out.strides()[1] != 1;
        let out = if transposed { out.reversed_axes() } else { out };
        Target { out, terms: (left, d, transposed) }
    });
    let depth = steps * batch;
    gemm::products(context, LeftLayout::Transposed, depth, results, |tile, terms, place| {
        let (left, d, transposed) = terms;
        let mut add = |left: ArrayView2<'_, E>, steps: Range<usize>| {
            let rows = steps.start * batch..steps.end * batch;
            let valid = valid.as_ref().map(|valid| &valid[rows.clone()]);
            let (d, columns) = (tiles::rows(d, rows), place.rows.clone());
            if transposed {
                tile.add_tn(tiles::columns(d, columns), None, left);
            } else {
                tile.add_tn(tiles::columns(left, columns), valid, d);
            }
        };
        match left {
            Left::Input => add(x, 0..steps),
            Left::Rows(rows) => add(rows, 0..steps),
            Left::State => {
                add(h_prev, 0..1);
                add(h, 1..steps);
            }
        }
    });
}
