//! Products that every step of a sequence has.

use std::array;
use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2, Axis};

use super::Rows;
use crate::executor::for_each;
use crate::gemm::{self, Interleaved, PackedWeights, Right, Tile, weights_len};
use crate::simd::Simd;
use crate::tiles::{Place, Tiling};
use crate::{Context, Isa, Storage};

/// The number of steps from which on packing the weights pays.
const WORTH_PACKING: usize = 9;

/// Weights that a factor of every step is multiplied by, for `G` gates of each cell, in tiles of cells.
#[derive(Clone, Copy)]
pub(crate) struct Product<'w, E, const G: usize> {
    pub(crate) tiling: Tiling,
    weights: Factor<'w, E, G>,
    depth: usize,
    cells: usize,
    /// The cells of a group, if steps are computed group by group.
    group: Option<usize>,
}

#[derive(Clone, Copy)]
enum Factor<'w, E, const G: usize> {
    Packed(PackedWeights<'w>),
    Interleaved(Interleaved<'w, G>),
    Plain(Right<'w, E>),
}

impl<'w, E: Storage, const G: usize> Product<'w, E, G> {
    /// How many elements of memory packed weights of so many terms need.
    pub(crate) fn memory(depth: usize, cells: usize) -> usize {
        weights_len(depth, G, cells)
    }

    /// Weights `[depth, G * cells]`, gate by gate, which may lie in memory as their transpose, as they are.
    pub(crate) fn plain<'f: 'w>(tiling: Tiling, weights: ArrayView2<'f, E>) -> Self {
        let (depth, columns) = weights.dim();
        let weights = Factor::Plain(Right::of(weights.reborrow()));
        let cells = columns / G;
        Product { tiling, weights, depth, cells, group: None }
    }

    /// The same weights, packed: constants of the call once and for all, others into memory of [`Product::memory`].
    pub(crate) fn packed(self, context: &Context<'w>, memory: &'w mut [f32]) -> Self {
        if let Some(kept) = self.kept(context) {
            return kept;
        }
        let Product { tiling, depth, cells, .. } = self;
        let Factor::Plain(right) = self.weights else { return self };
        let strips = |cells: &Range<usize>| self.strips(cells);
        let weights = PackedWeights::pack(context, tiling, (depth, cells), right, strips, memory);
        Product { weights: Factor::Packed(weights), ..self }
    }

    /// The same weights, packed, if they are a constant of the call.
    pub(super) fn kept(&self, context: &Context<'w>) -> Option<Self> {
        let Product { tiling, depth, cells, .. } = *self;
        let Factor::Plain(right) = self.weights else { return None };
        let strips = |cells: &Range<usize>| self.strips(cells);
        let weights = PackedWeights::kept(context, tiling, (depth, cells), right, strips)?;
        Some(Product { weights: Factor::Packed(weights), ..*self })
    }

    /// [`Product::packed`] if that pays in so many steps.
    pub(crate) fn packed_for(
        self,
        context: &Context<'w>,
        steps: usize,
        memory: &'w mut [f32],
    ) -> Self {
        if steps < WORTH_PACKING { self } else { self.packed(context, memory) }
    }

    /// [`Product::packed_for`], for steps that are computed group by group of cells if their rows are few: in phases of
    /// products with so many gates each, of which this is one. Tiles then have whole blocks.
    pub(crate) fn grouped_for(
        self,
        context: &Context<'w>,
        steps: usize,
        gates: &[usize],
        memory: &'w mut [f32],
    ) -> Self {
        let Product { tiling, depth, cells, .. } = self;
        let widths = gates.iter().map(|&gates| gemm::block_width(context.isa, tiling.rows, gates));
        let widest = widths.collect::<Option<Vec<_>>>().and_then(|widths| widths.into_iter().max());
        let pays = !E::IS_HALF && steps >= WORTH_PACKING;
        let (Factor::Plain(right), Some(widest), true) = (self.weights, widest, pays) else {
            return self.packed_for(context, steps, memory);
        };
        let tiling = if cells <= tiling.columns {
            tiling
        } else {
            gemm::group_tiling(context, (tiling.rows, cells), gates.iter().sum(), widest)
        };
        // Tiles have whole blocks, whose widths are powers of 2.
        let most =
            if cells <= tiling.columns { widest } else { 1 << tiling.columns.trailing_zeros() };
        let width = gemm::block_width(context.isa, tiling.rows, G).expect("one of the widths");
        let width = width.min(most);
        // A row by itself takes as long as its weights are read, so the equation of few cells runs beside that.
        let least = if tiling.rows == 1 { 32 } else { 64 };
        let group = widest.min(most).max(least);
        let (strips, at_once) = (self.strips(&(0..cells)), tiling.columns.next_multiple_of(width));
        let size = (depth, width, at_once);
        let weights = Interleaved::kept(context, size, right, &strips)
            .unwrap_or_else(|| Interleaved::pack(context, size, right, strips, memory));
        Product { tiling, weights: Factor::Interleaved(weights), group: Some(group), ..self }
    }

    /// The cells of a group, after [`Product::grouped_for`], if there are groups.
    pub(crate) fn group_width(&self) -> Option<usize> {
        self.group
    }

    /// Sets `sums`, `[rows, gates, cells]`, to those of a group: what is known of each row, or zeros, and its products.
    /// Sums of a row are `pitch` apart from those of the next.
    #[inline(always)]
    pub(crate) fn sum_group<'l, S: Simd>(
        &self,
        simd: S,
        cells: &Range<usize>,
        rows: impl Iterator<Item = (Option<&'l [f32]>, &'l [E])> + Clone,
        (sums, pitch): (&mut [f32], usize),
    ) {
        let Factor::Interleaved(weights) = self.weights else { unreachable!("not in groups") };
        let size = gemm::padded(cells.len());
        for ((known, _), sums) in rows.clone().zip(sums.chunks_mut(pitch)) {
            let gates = sums.chunks_exact_mut(size).take(G);
            let Some(known) = known else {
                gates.for_each(|sums| sums.fill(0.0));
                continue;
            };
            for (columns, to) in self.strips(cells).into_iter().zip(gates) {
                copy_padded(simd, &known[columns], to);
            }
        }
        let left = rows.map(|(_, left)| E::as_f32(left).expect("elements of type f32"));
        weights.add(simd, cells, left, (sums, pitch));
    }

    /// How many columns the weights have.
    pub(super) fn columns(&self) -> usize {
        G * self.cells
    }

    /// The processor cycles that a tile may take.
    pub(crate) fn cost(&self) -> u64 {
        gemm::cost(self.tiling, G, self.depth)
    }

    /// The columns of all gates that belong to some cells.
    fn strips(&self, cells: &Range<usize>) -> [Range<usize>; G] {
        array::from_fn(|gate| gate * self.cells + cells.start..gate * self.cells + cells.end)
    }

    /// The product with a left factor, or zeros without one: see [`Sum`].
    pub(crate) fn of<'p, 'l: 'p, A>(
        &'p self,
        of: Rows<'p>,
        left: Option<ArrayView2<'l, A>>,
    ) -> Sum<'p, 'w, A, E, G, 1> {
        self.after(Input::Zeros, of, left)
    }

    /// The same, added to an input.
    pub(crate) fn after<'p, 'i: 'p, 'l: 'p, A>(
        &'p self,
        input: Input<'i, E>,
        of: Rows<'p>,
        left: Option<ArrayView2<'l, A>>,
    ) -> Sum<'p, 'w, A, E, G, 1> {
        let left = [left.map(|left| left.reborrow())];
        Sum { of, input: input.reborrow(), products: [self], left }
    }

    /// Adds the product of the rows of `left` at `place`.
    fn add<A: Storage>(&self, tile: &mut Tile<'_>, place: &Place, left: ArrayView2<'_, A>) {
        let left = place.rows_of(left);
        match self.weights {
            Factor::Packed(weights) => tile.add(left, weights.at(place)),
            Factor::Interleaved(_) => unreachable!("multiplied group by group"),
            Factor::Plain(weights) => tile.add(left, weights),
        }
    }
}

impl<'w, E: Storage> Product<'w, E, 1> {
    /// A product with all cells of weights, of some rows, that stands for itself.
    pub(crate) fn of_rows<'f: 'w>(
        context: &Context<'_>,
        rows: usize,
        weights: ArrayView2<'f, E>,
    ) -> Self {
        let tiling = gemm::step_tiling(context, (rows, weights.ncols()), 1);
        Product::plain(tiling, weights)
    }
}

/// Copies some sums, filled up to whole vectors with zeros.
#[inline(always)]
pub(crate) fn copy_padded<S: Simd>(simd: S, from: &[f32], to: &mut [f32]) {
    for (to, from) in to.chunks_exact_mut(S::LANES).zip(from.chunks(S::LANES)) {
        simd.store(simd.load(from), to);
    }
}

/// Products of x, computed before the step.
pub(crate) enum Known<'s> {
    /// A column for each of the weights' columns.
    Matrix(ArrayViewMut2<'s, f32>),
    /// What the sums of all cells begin with: as a tile has them, for each of the weights.
    Sums([&'s mut [f32]; 2]),
}

impl<'s> Known<'s> {
    /// The same for a shorter time.
    pub(super) fn reborrow<'b>(self) -> Known<'b>
    where
        Self: 'b,
    {
        match self {
            Known::Matrix(matrix) => Known::Matrix(matrix.reborrow()),
            Known::Sums(sums) => Known::Sums(sums),
        }
    }

    /// Those with the first weights, which have so many columns, and those with the second.
    pub(crate) fn split(self, columns: usize) -> [Self; 2] {
        match self {
            Known::Matrix(matrix) => {
                <[_; 2]>::from(matrix.split_at(Axis(1), columns)).map(Known::Matrix)
            }
            Known::Sums(sums) => sums.map(|sums| Known::Sums([sums, &mut []])),
        }
    }

    /// Those of a single gate, `[rows, cells]`.
    pub(crate) fn of_gate(self, (rows, cells): (usize, usize)) -> ArrayViewMut2<'s, f32> {
        match self {
            Known::Matrix(matrix) => matrix,
            Known::Sums([sums, _]) => {
                let sums = ArrayViewMut2::from_shape((rows, gemm::padded(cells)), sums);
                sums.expect("a tile of a gate").split_at(Axis(1), cells).0
            }
        }
    }
}

/// What the sums of a step begin with.
pub(crate) enum Input<'s, E> {
    Zeros,
    /// Products of x.
    Known(Known<'s>),
    /// x, and its weights.
    Product(ArrayView2<'s, E>, ArrayView2<'s, E>),
}

impl<E> Input<'_, E> {
    /// The same for a shorter time.
    fn reborrow<'b>(self) -> Input<'b, E>
    where
        Self: 'b,
    {
        match self {
            Input::Zeros => Input::Zeros,
            Input::Known(products) => Input::Known(products.reborrow()),
            Input::Product(x, weights) => Input::Product(x.reborrow(), weights.reborrow()),
        }
    }
}

/// Matrices of products, `G` gates of all cells, tile by tile.
pub(crate) trait Products<const G: usize>: Sync {
    fn tiling(&self) -> Tiling;

    /// The processor cycles that a tile may take.
    fn cost(&self) -> u64;

    /// Gives `work` those of a tile. Rows that do not have the step may hold anything.
    fn at(&self, isa: Isa, place: &Place, work: impl FnOnce([ArrayViewMut2<'_, f32>; G]));

    /// [`Products::at`] of the only tile.
    fn whole(self, isa: Isa, place: &Place, work: impl FnOnce([ArrayViewMut2<'_, f32>; G]))
    where
        Self: Sized,
    {
        self.at(isa, place, work);
    }
}

/// An input, and products of `M` left factors with weights.
pub(crate) struct Sum<'p, 'w, A, E, const G: usize, const M: usize> {
    /// The step that the left factors belong to: in rows that do not have it, the products are zero, also where weights
    /// are not finite.
    pub(crate) of: Rows<'p>,
    pub(crate) input: Input<'p, E>,
    pub(crate) products: [&'p Product<'w, E, G>; M],
    /// None for zeros.
    pub(crate) left: [Option<ArrayView2<'p, A>>; M],
}

impl<A: Storage, E: Storage, const G: usize, const M: usize> Products<G>
    for Sum<'_, '_, A, E, G, M>
{
    fn tiling(&self) -> Tiling {
        self.products[0].tiling
    }

    fn cost(&self) -> u64 {
        let of_input = match &self.input {
            Input::Product(x, _) => gemm::cost(self.tiling(), G, x.ncols()),
            _ => 0,
        };
        self.products.iter().map(|product| product.cost()).sum::<u64>() + of_input
    }

    fn at(&self, isa: Isa, place: &Place, work: impl FnOnce([ArrayViewMut2<'_, f32>; G])) {
        gemm::tile(isa, place.rows.len(), &self.products[0].strips(&place.columns), |tile| {
            self.add_to(tile, place);
            work(tile.strips_mut());
        });
    }

    fn whole(self, isa: Isa, place: &Place, work: impl FnOnce([ArrayViewMut2<'_, f32>; G])) {
        let Input::Known(Known::Sums([sums, _])) = self.input else {
            return self.at(isa, place, work);
        };
        let sum = Sum { input: Input::Zeros, ..self };
        gemm::tile_in(isa, &sum.products[0].strips(&place.columns), sums, false, |tile| {
            sum.add_to(tile, place);
            work(tile.strips_mut());
        });
    }
}

impl<A: Storage, E: Storage, const G: usize, const M: usize> Sum<'_, '_, A, E, G, M> {
    fn add_to(&self, tile: &mut Tile<'_>, place: &Place) {
        match &self.input {
            Input::Zeros => {}
            Input::Known(Known::Matrix(products)) => tile.set(place.rows_of(products.view())),
            Input::Known(Known::Sums(_)) => unreachable!("sums of a step that is cut into tiles"),
            &Input::Product(x, weights) => tile.add(place.rows_of(x), Right::RowMajor(weights)),
        }
        for (product, left) in self.products.into_iter().zip(self.left) {
            let Some(left) = left else { continue };
            product.add(tile, place, left);
        }
        for strip in tile.strips_mut::<G>() {
            self.of.clear_ended(place.rows.clone(), strip);
        }
    }
}

impl<A: Storage, E: Storage, const M: usize> Sum<'_, '_, A, E, 1, M> {
    /// Sets `out` to the sums, and to those of `carried` where there is one.
    pub(crate) fn store<O: Storage>(
        &self,
        context: &Context<'_>,
        out: ArrayViewMut2<'_, O>,
        carried: Option<ArrayView2<'_, f32>>,
    ) {
        self.for_each(context, out, |tile, place, out| {
            if let Some(carried) = carried {
                tile.add_matrix(place.of(carried));
            }
            tile.store(out);
        });
    }

    /// Adds the sums to `out`.
    pub(crate) fn add<O: Storage>(&self, context: &Context<'_>, out: ArrayViewMut2<'_, O>) {
        self.for_each(context, out, |tile, _, out| tile.add_to(out));
    }

    fn for_each<O: Storage>(
        &self,
        context: &Context<'_>,
        out: ArrayViewMut2<'_, O>,
        work: impl Fn(&mut Tile<'_>, &Place, ArrayViewMut2<'_, O>) + Sync,
    ) {
        let Context { isa, executor, .. } = *context;
        let tiles = self.tiling().tiles(out).collect();
        for_each(executor, self.cost(), tiles, |(place, out)| {
            gemm::tile_at(isa, &place, |tile| {
                self.add_to(tile, &place);
                work(tile, &place, out);
            });
        });
    }
}

/// Products of gates, and those of another gate.
impl<A: Products<2>, B: Products<1>> Products<3> for (A, B) {
    fn tiling(&self) -> Tiling {
        self.0.tiling()
    }

    fn cost(&self) -> u64 {
        self.0.cost() + self.1.cost()
    }

    fn at(&self, isa: Isa, place: &Place, work: impl FnOnce([ArrayViewMut2<'_, f32>; 3])) {
        self.0.at(isa, place, |[first, second]| {
            self.1.at(isa, place, |[third]| work([first, second, third]));
        });
    }

    fn whole(self, isa: Isa, place: &Place, work: impl FnOnce([ArrayViewMut2<'_, f32>; 3])) {
        self.0.whole(isa, place, |[first, second]| {
            self.1.whole(isa, place, |[third]| work([first, second, third]));
        });
    }
}
