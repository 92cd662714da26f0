//! Whole matrices of products.

use ndarray::ArrayViewMut2;

use super::{COLUMN_ROWS, GROUP, MOST_ROWS, Tile, UNIT, cost, even, tile};
use crate::executor::for_each;
use crate::simd::{Kernel, Simd};
use crate::tiles::{Place, Tiling, row, row_mut};
use crate::{Context, Element};

/// A part of a result, to be written by [`products`].
pub(crate) struct Product<'o, E, T> {
    pub(crate) out: ArrayViewMut2<'o, E>,
    /// What [`products`] passes on.
    pub(crate) terms: T,
}

/// How the left factors of [`products`] are given, which decides how high their tiles are.
#[derive(Clone, Copy)]
pub(crate) enum Given {
    ByRows,
    ByColumns,
}

/// Computes every element of some matrices: `add` adds the products that belong to a place of the
/// matrix with these terms, which are `depth` deep all together.
pub(crate) fn products<'o, E: Element, T: Sync + Copy + Send>(
    context: &Context<'_>,
    left: Given,
    depth: usize,
    results: impl IntoIterator<Item = Product<'o, E, T>>,
    add: impl Fn(&mut Tile<'_>, T, &Place) + Sync,
) {
    let Context { isa, executor } = *context;
    let mut tiles = Vec::new();
    let mut largest = 0;
    for Product { out, terms } in results {
        let tiling = products_tiling(left, out.dim(), executor.threads());
        largest = largest.max(tiling.rows * tiling.columns);
        tiles.extend(tiling.tiles(out).map(|(place, out)| (place, out, terms)));
    }
    for_each(executor, cost(largest, depth), tiles, |(place, out, terms)| {
        tile(isa, place.rows.len(), std::slice::from_ref(&place.columns), |tile| {
            add(tile, terms, &place);
            tile.store(out);
        });
    });
}

/// Tiles of a matrix of products, for so many threads.
pub(crate) fn products_tiling(
    left: Given,
    (rows, columns): (usize, usize),
    threads: usize,
) -> Tiling {
    /// The wider a tile, the fewer copies of the left factor.
    const MOST_COLUMNS: usize = 512;
    /// Tiles of a thread: it may take some more, or less, than others.
    const EACH: usize = 4;
    let rows_at_once = match left {
        Given::ByColumns => COLUMN_ROWS,
        Given::ByRows => MOST_ROWS,
    };
    let wanted = (EACH * threads).div_ceil(rows.div_ceil(rows_at_once).max(1));
    let columns_at_once = columns.div_ceil(wanted).next_multiple_of(2 * GROUP).min(MOST_COLUMNS);
    Tiling { rows: even(rows, rows_at_once, 1), columns: even(columns, columns_at_once, UNIT) }
}

/// Writes the sums of a tile.
pub(super) struct Store<'t, 's, 'o, E> {
    pub(super) tile: &'t mut Tile<'s>,
    pub(super) out: ArrayViewMut2<'o, E>,
    /// Whether they are added to what is there.
    pub(super) add: bool,
}

impl<E: Element> Kernel for Store<'_, '_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let mut before = 0;
        for sums in self.tile.strips() {
            let (rows, width) = sums.dim();
            for at in 0..rows {
                let out = &mut row_mut(&mut self.out, at)[before..before + width];
                let from = row(sums, at).chunks(S::LANES);
                for (from, to) in from.zip(out.chunks_mut(S::LANES)) {
                    let sums = simd.load(from);
                    E::store(simd, if self.add { sums + E::load(simd, to) } else { sums }, to);
                }
            }
            before += width;
        }
    }
}

/// Rows of a sequence's input whose products are computed at once: enough for packing the weights to
/// cost little, and few enough for the products to stay in cache.
const ROWS_AT_ONCE: usize = 256;

/// Steps of a sequence whose inputs' products are computed at once.
pub(crate) fn steps_at_once(time: usize, batch: usize) -> usize {
    (ROWS_AT_ONCE / batch.max(1)).clamp(1, time.max(1))
}
