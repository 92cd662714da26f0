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
        let sizes = w.iter().map(ArrayView2::dim);
        let Some(memory) = memories::<E>(sizes, memory) else { return InputWeights::Plain(w) };
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

/// Weights of x, and the column that stands for column 0 of a tile.
pub(super) type WeightsFrom<'w, E> = (Right<'w, E>, usize);

/// The weights of x of tiles of `rows` rows with all cells, `columns` of each side by side: packed as in
/// [`InputWeights::new`].
pub(super) fn pack_strips<'w, E: Storage>(
    context: &Context<'w>,
    rows: usize,
    w: &[ArrayView2<'w, E>],
    columns: &[Vec<Range<usize>>; 2],
    memory: &'w mut [f32],
) -> Vec<WeightsFrom<'w, E>> {
    let depth = w[0].nrows();
    let [first, second] = columns.each_ref().map(|columns| columns.last().map_or(0, |c| c.end));
    let both = match *w {
        [all] => [(all, 0, first), (all, first, second)],
        [w, other, ..] => [(w, 0, first), (other, 0, second)],
        [] => return Vec::new(),
    };
    let sizes = both.iter().map(|&(_, _, columns)| (depth, columns));
    let mut memory = memories::<E>(sizes, memory).map(Vec::into_iter);
    let of_gates = both.into_iter().zip(columns).filter(|(_, columns)| !columns.is_empty());
    let weights = of_gates.map(|((w, first, _), columns)| {
        let memory = memory.as_mut().and_then(Iterator::next);
        let columns = columns.iter().map(|columns| first + columns.start..first + columns.end);
        let columns: Vec<_> = columns.collect();
        (gemm::packed_strips(context, (rows, depth), Right::of(w), &columns, memory), first)
    });
    weights.collect()
}

/// Parts of some memory for packed weights of these sizes, if it has room for all.
fn memories<E: Storage>(
    sizes: impl Iterator<Item = (usize, usize)>,
    mut memory: &mut [f32],
) -> Option<Vec<&mut [f32]>> {
    let lens = sizes.map(|(depth, columns)| Product::<E, 1>::memory(depth, columns));
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
