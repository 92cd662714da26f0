//! Products that every step of a sequence has.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2, Axis};

use super::grouped;
use super::lengths::Rows;
use crate::executor::for_each;
use crate::gemm::{self, PackedWeights, Right, StepShape, Tile, weights_len};
use crate::tiles::{Place, Tiling};
use crate::tuning::{PACKED_STEPS, PAIR_TERMS};
use crate::{Context, Isa, Storage};

/// Weights that a factor of every step is multiplied by, for `G` gates of each cell, in tiles of cells.
#[derive(Clone, Copy)]
pub(crate) struct Product<'w, E, const G: usize> {
    pub(crate) tiling: Tiling,
    weights: Factor<'w, E>,
    depth: usize,
    cells: usize,
    /// The column of the weights at which those of the gates begin.
    first: usize,
}

#[derive(Clone, Copy)]
enum Factor<'w, E> {
    Packed(PackedWeights<'w>),
    Plain(Right<'w, E>),
}

impl<'w, E: Storage, const G: usize> Product<'w, E, G> {
    /// How many elements of memory packed weights of `depth` terms for `cells` cells need.
    pub(crate) fn memory(depth: usize, cells: usize) -> usize {
        weights_len(depth, G, cells)
    }

    /// Weights `[depth, G * cells]`, gate by gate, which may lie in memory as their transpose, as they are.
    pub(crate) fn plain<'f: 'w>(tiling: Tiling, weights: ArrayView2<'f, E>) -> Self {
        Product::of_columns(tiling, (weights, 0..weights.ncols()))
    }

    /// The same of some columns of the weights.
    pub(crate) fn of_columns<'f: 'w>(
        tiling: Tiling,
        (weights, columns): (ArrayView2<'f, E>, Range<usize>),
    ) -> Self {
        let (depth, cells) = (weights.nrows(), columns.len() / G);
        let weights = Factor::Plain(Right::of(weights));
        Product { tiling, weights, depth, cells, first: columns.start }
    }

    /// The same weights, packed: constants of the call once and for all, others into memory of [`Product::memory`].
    pub(crate) fn packed(self, context: &Context<'w>, memory: &'w mut [f32]) -> Self {
        self.packed_in(context, Some(memory)).unwrap_or(self)
    }

    /// The same weights, packed, if they are a constant of the call.
    pub(super) fn kept(&self, context: &Context<'w>) -> Option<Self> {
        self.packed_in(context, None)
    }

    fn packed_in(&self, context: &Context<'w>, memory: Option<&'w mut [f32]>) -> Option<Self> {
        let Product { tiling, depth, cells, first, .. } = *self;
        let Factor::Plain(right) = self.weights else { return None };
        let context = &context.where_it_pays(depth >= PAIR_TERMS);
        let strips = |of: &Range<usize>| grouped::strips::<G>(first, cells, of);
        let weights = PackedWeights::pack(context, tiling, (depth, cells), right, strips, memory)?;
        Some(Product { weights: Factor::Packed(weights), ..*self })
    }

    /// [`Product::packed`] if that pays in `steps` steps.
    pub(crate) fn packed_for(
        self,
        context: &Context<'w>,
        steps: usize,
        memory: &'w mut [f32],
    ) -> Self {
        if steps < PACKED_STEPS { self } else { self.packed(context, memory) }
    }

    /// How many columns the weights have.
    pub(super) fn columns(&self) -> usize {
        G * self.cells
    }

    /// The processor cycles that a tile may take.
    pub(crate) fn cost(&self) -> u64 {
        gemm::cost(self.tiling, G, self.depth)
    }

    /// The columns of all gates that belong to some cells, from the first gate on.
    fn strips(&self, cells: &Range<usize>) -> [Range<usize>; G] {
        grouped::strips(0, self.cells, cells)
    }

    /// The product with a left factor, or zeros without one: see [`Sum`].
    pub(crate) fn of<'p, 'l, A>(
        &'p self,
        of: Rows<'p>,
        left: Option<ArrayView2<'l, A>>,
    ) -> Sum<'p, 'w, 'p, 'l, A, E, G, 1> {
        self.after(Input::Zeros, of, left)
    }

    /// The same, added to an input.
    pub(crate) fn after<'p, 'i, 'l, A>(
        &'p self,
        input: Input<'i, E>,
        of: Rows<'p>,
        left: Option<ArrayView2<'l, A>>,
    ) -> Sum<'p, 'w, 'i, 'l, A, E, G, 1> {
        Sum { of, input, products: [self], left: [left] }
    }

    /// Adds the product of the rows of `left` at `place`.
    fn add<A: Storage>(&self, tile: &mut Tile<'_>, place: &Place, left: ArrayView2<'_, A>) {
        let left = place.rows_of(left);
        match self.weights {
            Factor::Packed(weights) => tile.add(left, weights.at(place)),
            Factor::Plain(weights) => {
                tile.set_first(self.first);
                tile.add(left, weights);
                tile.set_first(0);
            }
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
        let tiling = gemm::step_tiling(context, StepShape::new((rows, weights.ncols()), 1));
        Product::plain(tiling, weights)
    }
}

/// Products of x, computed before the step.
pub(crate) enum InputProducts<'s> {
    /// A column for each of the weights' columns.
    Matrix(ArrayViewMut2<'s, f32>),
    /// What the sums of all cells begin with: as a tile has them, for each of the weights.
    Sums([&'s mut [f32]; 2]),
}

impl<'s> InputProducts<'s> {
    /// Splits after `columns`: products with the first weights, then with the second.
    pub(crate) fn split(self, columns: usize) -> [Self; 2] {
        match self {
            InputProducts::Matrix(matrix) => {
                <[_; 2]>::from(matrix.split_at(Axis(1), columns)).map(InputProducts::Matrix)
            }
            InputProducts::Sums(sums) => sums.map(|sums| InputProducts::Sums([sums, &mut []])),
        }
    }

    /// Those of a single gate, `[rows, cells]`.
    pub(crate) fn of_gate(self, (rows, cells): (usize, usize)) -> ArrayViewMut2<'s, f32> {
        match self {
            InputProducts::Matrix(matrix) => matrix,
            InputProducts::Sums([sums, _]) => {
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
    Products(InputProducts<'s>),
    /// x, and its weights.
    Product(ArrayView2<'s, E>, ArrayView2<'s, E>),
}

/// Matrices of products, `G` gates of all cells, tile by tile.
pub(crate) trait Products<const G: usize>: Sync {
    /// How they are cut, and the processor cycles that a tile may take.
    fn tiles(&self) -> (Tiling, u64);

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
pub(crate) struct Sum<'p, 'w, 'i, 'l, A, E, const G: usize, const M: usize> {
    /// The step that the left factors belong to: in rows that do not have it, the products are zero, also where weights
    /// are not finite.
    pub(crate) of: Rows<'p>,
    pub(crate) input: Input<'i, E>,
    pub(crate) products: [&'p Product<'w, E, G>; M],
    /// None for zeros.
    pub(crate) left: [Option<ArrayView2<'l, A>>; M],
}

impl<A: Storage, E: Storage, const G: usize, const M: usize> Products<G>
    for Sum<'_, '_, '_, '_, A, E, G, M>
{
    fn tiles(&self) -> (Tiling, u64) {
        let tiling = self.products[0].tiling;
        let of_input = match &self.input {
            Input::Product(x, _) => gemm::cost(tiling, G, x.ncols()),
            _ => 0,
        };
        (tiling, self.products.iter().map(|product| product.cost()).sum::<u64>() + of_input)
    }

    fn at(&self, isa: Isa, place: &Place, work: impl FnOnce([ArrayViewMut2<'_, f32>; G])) {
        gemm::tile(isa, place.rows.len(), &self.products[0].strips(&place.columns), |tile| {
            self.add_to(tile, place);
            work(tile.strips_mut());
        });
    }

    fn whole(self, isa: Isa, place: &Place, work: impl FnOnce([ArrayViewMut2<'_, f32>; G])) {
        let Input::Products(InputProducts::Sums([sums, _])) = self.input else {
            return self.at(isa, place, work);
        };
        let sum = Sum { input: Input::Zeros, ..self };
        gemm::tile_in(isa, &sum.products[0].strips(&place.columns), sums, false, |tile| {
            sum.add_to(tile, place);
            work(tile.strips_mut());
        });
    }
}

impl<A: Storage, E: Storage, const G: usize, const M: usize> Sum<'_, '_, '_, '_, A, E, G, M> {
    fn add_to(&self, tile: &mut Tile<'_>, place: &Place) {
        match &self.input {
            Input::Zeros => {}
            Input::Products(InputProducts::Matrix(products)) => {
                tile.set(place.rows_of(products.view()))
            }
            // The sums of the only tile.
            Input::Products(InputProducts::Sums([sums, _])) => tile.set_sums(sums),
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

impl<A: Storage, E: Storage, const M: usize> Sum<'_, '_, '_, '_, A, E, 1, M> {
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
        let (tiling, cost) = self.tiles();
        for_each(executor, cost, tiling.tiles(out).collect(), |(place, out)| {
            gemm::tile_at(isa, &place, |tile| {
                self.add_to(tile, &place);
                work(tile, &place, out);
            });
        });
    }
}

/// Products of gates, and those of another gate.
impl<A: Products<2>, B: Products<1>> Products<3> for (A, B) {
    fn tiles(&self) -> (Tiling, u64) {
        let ((tiling, cost), (_, other)) = (self.0.tiles(), self.1.tiles());
        (tiling, cost + other)
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
