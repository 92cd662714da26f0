//! Whole matrices of products.

use ndarray::ArrayViewMut2;

use super::tile::{Tile, tile_at};
use super::tiling::{LeftLayout, cost, pairs_pay, product_tiling};
use crate::executor::for_each;
use crate::tiles::Place;
use crate::{Context, Storage};

/// A matrix to be computed by [`products`].
pub(crate) struct Target<'o, E, T> {
    pub(crate) out: ArrayViewMut2<'o, E>,
    /// What [`products`] passes on.
    pub(crate) terms: T,
}

/// Computes every element of some matrices: `add` adds the products that belong to a place of the
/// matrix with these terms, which are `depth` deep all together.
pub(crate) fn products<'o, E: Storage, T: Sync + Copy + Send>(
    context: &Context<'_>,
    left: LeftLayout,
    depth: usize,
    targets: impl IntoIterator<Item = Target<'o, E, T>>,
    add: impl Fn(&mut Tile<'_>, T, &Place) + Sync,
) {
    let Context { isa, executor, .. } = *context;
    let mut tiles = Vec::new();
    let mut largest = 0;
    for Target { out, terms } in targets {
        let pairs = pairs_pay(out.nrows(), depth) && context.takes_pairs::<E>();
        let tiling = product_tiling(left, out.dim(), executor.threads());
        largest = largest.max(cost(tiling, 1, depth));
        tiles.extend(tiling.tiles(out).map(|(place, out)| (place, out, terms, pairs)));
    }
    for_each(executor, largest, tiles, |(place, out, terms, pairs)| {
        tile_at(isa, &place, |tile| {
            tile.set_pairs(pairs);
            add(tile, terms, &place);
            tile.store(out);
        });
    });
}
