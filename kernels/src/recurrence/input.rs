//! Products of x with weights, for several steps at once.

use std::iter;
use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2, Axis};

use super::lengths::{Lengths, Rows};
use super::product::Product;
use crate::gemm::{self, LeftLayout, Right, Target};
use crate::tuning::PACKED_INPUT_ROWS;
use crate::{Context, Storage};

/// How many elements of memory packed weights of `gates` gates need, for `rows` rows of x in all steps.
pub(super) fn packed_len(rows: usize, input_size: usize, (gates, cells): (usize, usize)) -> usize {
    if rows < PACKED_INPUT_ROWS { 0 } else { gemm::weights_len(input_size, gates, cells) }
}

/// The memory for packed weights if `rows` rows are worth it.
pub(super) fn worth_packing(memory: &mut [f32], rows: usize) -> &mut [f32] {
    if rows < PACKED_INPUT_ROWS { &mut [] } else { memory }
}

/// What products of `rows` rows of x in all steps run on.
pub(super) fn context_of_x<'c, E>(
    context: &Context<'c>,
    rows: usize,
    w: Option<&[ArrayView2<'_, E>]>,
) -> Context<'c> {
    context.for_x().where_it_pays(gemm::pairs_pay(rows, w.map_or(0, |w| w[0].nrows())))
}

/// What x of several steps is multiplied by.
pub(super) enum InputWeights<'w, E> {
    /// Nothing: x is the product of each gate.
    None,
    /// Weights side by side, which may lie in memory as their transposes.
    Plain(&'w [ArrayView2<'w, E>]),
    /// The same, packed.
    Packed(Vec<Product<'w, E, 1>>),
}

impl<'w, E: Storage> InputWeights<'w, E> {
    /// Weights for products of `rows` rows: packed if all are constants of the call, or if memory of [`packed_len`] is
    /// there for them.
    pub(super) fn new(
        context: &Context<'w>,
        rows: usize,
        w: Option<&'w [ArrayView2<'w, E>]>,
        memory: &'w mut [f32],
    ) -> Self {
        let Some(w) = w else { return InputWeights::None };
        let plain = w.iter().map(|w| {
            let tiling = gemm::constant_tiling((rows, w.ncols()));
            Product::plain(tiling, w.view())
        });
        if let Some(kept) = plain.clone().map(|product| product.kept(context)).collect() {
            return InputWeights::Packed(kept);
        }
        let Some(memory) = memories(w, memory) else { return InputWeights::Plain(w) };
        let packed = plain.zip(memory).map(|(product, memory)| product.packed(context, memory));
        InputWeights::Packed(packed.collect())
    }

    /// Sets `out` to the products of the inputs of several steps: `x @ w` for each of the weights `w`, side by side.
    pub(super) fn multiply(
        &self,
        context: &Context<'_>,
        x: ArrayView2<'_, E>,
        out: ArrayViewMut2<'_, f32>,
    ) {
        let depth = x.ncols();
        match self {
            InputWeights::None => {
                let gates = side_by_side(out, iter::repeat(depth));
                let results = gates.map(|out| Target { out, terms: () });
                gemm::products(context, LeftLayout::RowMajor, 1, results, |tile, (), place| {
                    tile.add_matrix(place.of(x));
                });
            }
            InputWeights::Plain(w) => {
                let outs = side_by_side(out, w.iter().map(ArrayView2::ncols));
                let results =
                    w.iter().zip(outs).map(|(&w, out)| Target { out, terms: Right::of(w) });
                let pairs = context.takes_pairs::<E>();
                gemm::products(context, LeftLayout::RowMajor, depth, results, |tile, w, place| {
                    tile.set_pairs(pairs);
                    tile.add(place.rows_of(x), w);
                });
            }
            InputWeights::Packed(products) => {
                let all = Rows { lengths: Lengths::Same(1), t: 0 };
                let outs = side_by_side(out, products.iter().map(Product::columns));
                for (product, out) in products.iter().zip(outs) {
                    product.of(all, Some(x)).store(context, out, None);
                }
            }
        }
    }
}

/// The weights of x of tiles of `rows` rows with all cells, `columns` of each side by side: packed as in
/// [`InputWeights::new`].
pub(super) fn pack_strips<'w, E: Storage>(
    context: &Context<'w>,
    rows: usize,
    w: &[ArrayView2<'w, E>],
    columns: &[Vec<Range<usize>>],
    memory: &'w mut [f32],
) -> Vec<Right<'w, E>> {
    let size = (rows, w[0].nrows());
    let mut memory = memories(w, memory).map(Vec::into_iter);
    let weights = w.iter().zip(columns).map(|(&w, columns)| {
        let memory = memory.as_mut().and_then(Iterator::next);
        gemm::packed_strips(context, size, Right::of(w), columns, memory)
    });
    weights.collect()
}

/// Parts of some memory for packed weights, if it has room for all.
fn memories<'m, E: Storage>(
    w: &[ArrayView2<'_, E>],
    mut memory: &'m mut [f32],
) -> Option<Vec<&'m mut [f32]>> {
    let lens = w.iter().map(|w| Product::<E, 1>::memory(w.nrows(), w.ncols()));
    lens.map(|len| memory.split_off_mut(..len)).collect()
}

/// Parts of a matrix, of `columns` each, as long as there are columns.
fn side_by_side<T>(
    matrix: ArrayViewMut2<'_, T>,
    mut columns: impl Iterator<Item = usize>,
) -> impl Iterator<Item = ArrayViewMut2<'_, T>> {
    let mut rest = Some(matrix);
    iter::from_fn(move || {
        let matrix = rest.take().filter(|matrix| matrix.ncols() > 0)?;
        let (part, after) = matrix.split_at(Axis(1), columns.next()?);
        rest = Some(after);
        Some(part)
    })
}
