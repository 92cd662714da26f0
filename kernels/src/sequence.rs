//! What the sequences of all cells share: steps of time-major tensors, products of all steps, and sums over rows of
//! tiles.

use std::iter;
use std::ops::Range;

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut1, ArrayViewMut2, ArrayViewMut3, Axis, Slice};

use crate::Context;
use crate::element::Storage;
use crate::executor::for_each;
use crate::gemm::{self, Given, Right, Target, Tile, Weights, weights_len};
use crate::lengths::Lengths;
use crate::tiles::{self, Place, Tiling};

/// Rows of a sequence's input whose products are computed at once: enough for packing the weights to
/// cost little, and few enough for the products to stay in cache.
const ROWS_AT_ONCE: usize = 256;

/// Steps of a sequence whose inputs' products are computed at once.
pub(crate) fn steps_at_once(time: usize, batch: usize) -> usize {
    (ROWS_AT_ONCE / batch.max(1)).clamp(1, time.max(1))
}

/// Steps `steps` of a time-major tensor, one row for each row of the batch in each.
pub(crate) fn all_rows<T>(mut tensor: ArrayView3<'_, T>, steps: Range<usize>) -> ArrayView2<'_, T> {
    tensor.slice_axis_inplace(Axis(0), Slice::from(steps));
    let (steps, batch, columns) = tensor.dim();
    tensor.into_shape_with_order((steps * batch, columns)).expect("a tensor without gaps")
}

/// [`all_rows`] of a tensor to be written.
pub(crate) fn all_rows_mut<T>(
    mut tensor: ArrayViewMut3<'_, T>,
    steps: Range<usize>,
) -> ArrayViewMut2<'_, T> {
    tensor.slice_axis_inplace(Axis(0), Slice::from(steps));
    let (steps, batch, columns) = tensor.dim();
    tensor.into_shape_with_order((steps * batch, columns)).expect("a tensor without gaps")
}

/// Sets `vector` to the sum of `parts`, vectors of its length one after the other.
pub(crate) fn add_parts<E: Storage>(vector: ArrayViewMut1<'_, E>, parts: &[f32]) {
    let length = vector.len();
    for (at, to) in vector.into_iter().enumerate() {
        *to = E::from_f32(parts.chunks_exact(length).map(|part| part[at]).sum());
    }
}

/// What step `t` reads and writes of tensors over all steps: the steps before it, and itself. A tensor of one
/// step serves every step, and keeps the latest.
pub(crate) fn at_step<'a, E, const N: usize>(
    tensors: &'a mut [ArrayViewMut3<'_, E>; N],
    t: usize,
) -> ([ArrayViewMut3<'a, E>; N], [ArrayViewMut2<'a, E>; N]) {
    let mut parts = tensors.each_mut().map(|tensor| {
        let t = if tensor.len_of(Axis(0)) == 1 { 0 } else { t };
        let (done, rest) = tensor.view_mut().split_at(Axis(0), t);
        (done, Some(rest.index_axis_move(Axis(0), 0)))
    });
    let step = parts.each_mut().map(|(_, step)| step.take().expect("taken once"));
    (parts.map(|(done, _)| done), step)
}

/// Sets tensors over all steps to zero from a step on.
pub(crate) fn clear_from<E: Storage>(tensors: &mut [ArrayViewMut3<'_, E>], step: usize) {
    for tensor in tensors {
        let step = step.min(tensor.len_of(Axis(0)));
        tensor.slice_axis_mut(Axis(0), Slice::from(step..)).fill(E::ZERO);
    }
}

/// The state that enters step `t` of a sequence, where `first` enters the first step, and `states`
/// are those that the steps leave.
pub(crate) fn state_before<'a, E>(
    t: usize,
    first: ArrayView2<'a, E>,
    states: ArrayView3<'a, E>,
) -> ArrayView2<'a, E> {
    t.checked_sub(1).map_or(first, |before| states.index_axis_move(Axis(0), before))
}

/// Sets `last` to the state after each row's last step: `first` where the row has none.
pub(crate) fn last_states<E: Storage>(
    lengths: Lengths<'_>,
    first: ArrayView2<'_, E>,
    states: ArrayView3<'_, E>,
    mut last: ArrayViewMut2<'_, E>,
) {
    for (b, mut last) in last.outer_iter_mut().enumerate() {
        last.assign(&state_before(lengths.of(b), first, states).row(b));
    }
}

/// Length of the memory for `sums` sums over the rows of a matrix that is cut every `tile_rows`: each
/// row of tiles keeps its own.
pub(crate) fn sums_len(sums: usize, (rows, columns): (usize, usize), tile_rows: usize) -> usize {
    rows.div_ceil(tile_rows).saturating_mul(sums).saturating_mul(columns)
}

/// Sets matrices to products of the inputs of several steps: `x @ w` for each of the weights `w`, which may lie in
/// memory as their transposes. Without weights, each gate's part of the matrices is x itself.
pub(crate) fn input_products<E: Storage, const N: usize>(
    context: &Context<'_>,
    x: ArrayView2<'_, E>,
    w: Option<[ArrayView2<'_, E>; N]>,
    out: [ArrayViewMut2<'_, f32>; N],
) {
    let depth = x.ncols();
    let Some(w) = w else {
        let gates = out.into_iter().flat_map(|out| in_gates(out, depth));
        let results = gates.map(|out| Target { out, terms: () });
        return gemm::products(context, Given::RowMajor, 1, results, |tile, (), place| {
            tile.add_matrix(place.of(x));
        });
    };
    let results = w.into_iter().zip(out).map(|(w, out)| Target { out, terms: Right::of(w) });
    gemm::products(context, Given::RowMajor, depth, results, |tile, w, place| {
        tile.add(place.rows_of(x), w);
    });
}

/// The columns of each gate.
fn in_gates<T>(
    out: ArrayViewMut2<'_, T>,
    cell_size: usize,
) -> impl Iterator<Item = ArrayViewMut2<'_, T>> {
    let mut rest = Some(out);
    iter::from_fn(move || {
        let out = rest.take().filter(|out| out.ncols() > 0)?;
        let (gate, after) = out.split_at(Axis(1), cell_size);
        rest = Some(after);
        Some(gate)
    })
}

/// Sets the gradient with respect to the inputs of several steps: the sum of `d @ w^T` over the gates, whose weights
/// are `w`, or the sum of `d` where the gates have no weights. Weights may lie in memory as their transposes.
pub(crate) fn input_gradient<E: Storage, const N: usize>(
    context: &Context<'_>,
    d: [ArrayView2<'_, E>; N],
    w: Option<[ArrayView2<'_, E>; N]>,
    x_grad: ArrayViewMut2<'_, E>,
) {
    let depth: usize = d.iter().map(ArrayView2::ncols).sum();
    let results = [Target { out: x_grad, terms: () }];
    gemm::products(context, Given::RowMajor, depth, results, |tile, (), place| match w {
        Some(w) => {
            for (d, w) in d.into_iter().zip(w) {
                tile.add(place.rows_of(d), Right::of(w.reversed_axes()));
            }
        }
        None => d.into_iter().for_each(|d| tile.add_matrix(place.of(d))),
    });
}

/// A gradient with respect to weights, `left^T @ d` over the rows of a sequence, to be computed by
/// [`WeightGradient::add`].
#[derive(Clone, Copy)]
pub(crate) struct WeightGradient<T> {
    terms: T,
    /// Whether the memory holds the gradient's transpose.
    transposed: bool,
}

impl<T> WeightGradient<T> {
    /// `terms` are what the caller computes it from.
    pub(crate) fn target<E>(
        out: ArrayViewMut2<'_, E>,
        terms: T,
    ) -> Target<'_, E, WeightGradient<T>> {
        let transposed = out.strides()[1] != 1;
        let out = if transposed { out.reversed_axes() } else { out };
        Target { out, terms: WeightGradient { terms, transposed } }
    }

    /// What it is computed from.
    pub(crate) fn terms(self) -> T {
        self.terms
    }
}

impl<T: Copy> WeightGradient<T> {
    /// Adds `left^T @ d` of some rows to its tile. Rows of `left` that are false in `valid` count as zeros; those of
    /// `d` are zeros. Where the transpose is computed, `left` has no gaps and must be finite there.
    pub(crate) fn add<E: Storage>(
        &self,
        tile: &mut Tile<'_>,
        place: &Place,
        left: ArrayView2<'_, E>,
        valid: Option<&[bool]>,
        d: ArrayView2<'_, E>,
    ) {
        let part = |matrix| tiles::columns(matrix, place.rows.clone());
        if self.transposed {
            tile.add_transposed(part(d), None, left);
        } else {
            tile.add_transposed(part(left), valid, d);
        }
    }
}

/// `left^T @ d`, the gradient with respect to weights, which may lie in memory as their transpose.
pub(crate) fn weight_gradient<E: Storage>(
    context: &Context<'_>,
    left: ArrayView2<'_, E>,
    d: ArrayView2<'_, E>,
    out: ArrayViewMut2<'_, E>,
) {
    let results = [WeightGradient::target(out, ())];
    gemm::products(context, Given::Transposed, d.nrows(), results, |tile, gradient, place| {
        gradient.add(tile, place, left, None, d);
    });
}

/// A product that every step has, with packed weights.
#[derive(Clone, Copy)]
pub(crate) struct StepProduct<'w> {
    pub(crate) tiling: Tiling,
    pub(crate) weights: Weights<'w>,
    depth: usize,
}

impl<'w> StepProduct<'w> {
    /// How many elements of memory the packed weights `[depth, columns]` need.
    pub(crate) fn memory(depth: usize, columns: usize) -> usize {
        weights_len(depth, 1, columns)
    }

    /// Packs weights `[depth, columns]`, which may lie in memory as their transpose, for some rows.
    pub(crate) fn pack<E: Storage>(
        context: &Context<'_>,
        rows: usize,
        weights: ArrayView2<'_, E>,
        memory: &'w mut [f32],
    ) -> Self {
        let (depth, columns) = weights.dim();
        let tiling = gemm::step_tiling(context, (rows, columns), 1);
        let strips = |columns: &Range<usize>| [columns.clone()];
        let right = Right::of(weights);
        let weights = Weights::pack(context, tiling, columns, depth, right, strips, memory);
        StepProduct { tiling, weights, depth }
    }

    /// The processor cycles that a tile may take.
    pub(crate) fn cost(&self) -> u64 {
        gemm::cost(self.tiling, 1, self.depth)
    }

    /// Sets `out` to `left @ weights`, or adds that to it.
    pub(crate) fn compute<A: Storage, E: Storage>(
        &self,
        context: &Context<'_>,
        left: ArrayView2<'_, A>,
        out: ArrayViewMut2<'_, E>,
        add: bool,
    ) {
        let StepProduct { tiling, weights, .. } = *self;
        let Context { isa, executor } = *context;
        for_each(executor, self.cost(), tiling.tiles(out).collect(), |(place, out)| {
            gemm::tile_at(isa, &place, |tile| {
                tile.add(place.rows_of(left), weights.at(&place));
                if add { tile.add_to(out) } else { tile.store(out) }
            });
        });
    }
}
