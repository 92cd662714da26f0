//! Whole matrices of products.

use ndarray::{ArrayView2, ArrayViewMut2};

use super::tile::{Tile, tile_at};
use super::tiling::{LeftLayout, cost, product_tiling};
use crate::executor::for_each;
use crate::simd::{Simd, WithSimd};
use crate::tiles::{Place, row, row_mut};
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
        let tiling = product_tiling(left, out.dim(), executor.threads());
        largest = largest.max(cost(tiling, 1, depth));
        tiles.extend(tiling.tiles(out).map(|(place, out)| (place, out, terms)));
    }
    for_each(executor, largest, tiles, |(place, out, terms)| {
        tile_at(isa, &place, |tile| {
            add(tile, terms, &place);
            tile.store(out);
        });
    });
}

/// Writes the sums of a strip of a tile.
pub(super) struct Store<'s, 'o, E> {
    pub(super) sums: ArrayView2<'s, f32>,
    pub(super) out: ArrayViewMut2<'o, E>,
    /// Whether they are added to what is there.
    pub(super) add: bool,
}

impl<E: Storage> WithSimd for Store<'_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        for at in 0..self.sums.nrows() {
            let from = row(self.sums, at).chunks(S::LANES);
            for (from, to) in from.zip(row_mut(&mut self.out, at).chunks_mut(S::LANES)) {
                let sums = simd.load(from);
                E::store(simd, if self.add { sums + E::load(simd, to) } else { sums }, to);
            }
        }
    }
}
