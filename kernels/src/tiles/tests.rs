use ndarray::Array2;

use super::{Tiling, rows};

const SIZES: [usize; 8] = [0, 1, 2, 7, 8, 9, 64, 65];
const TILES: [usize; 5] = [1, 3, 8, 64, usize::MAX];

fn cases() -> impl Iterator<Item = (Tiling, (usize, usize))> {
    let tilings = TILES.into_iter().flat_map(|rows| TILES.map(|columns| Tiling { rows, columns }));
    tilings.flat_map(|tiling| SIZES.into_iter().flat_map(move |m| SIZES.map(|n| (tiling, (m, n)))))
}

#[test]
fn tiles_cover_every_element_once() {
    for (tiling, shape) in cases() {
        let mut matrix = Array2::<u32>::zeros(shape);
        for mut tile in tiling.split(matrix.view_mut()) {
            assert!(!tile.is_empty(), "{tiling:?} of {shape:?}");
            assert!(tile.nrows() <= tiling.rows && tile.ncols() <= tiling.columns);
            tile += 1;
        }
        assert!(matrix.iter().all(|&times| times == 1), "{tiling:?} of {shape:?}:\n{matrix}");
    }
}

#[test]
fn places_are_those_of_the_tiles() {
    for (tiling, shape) in cases() {
        let mut matrix = Array2::from_shape_fn(shape, |(i, j)| i * 1000 + j);
        let copy = matrix.clone();
        let count = tiling.places(shape).count();
        let tiles: Vec<_> = tiling.tiles(matrix.view_mut()).collect();
        assert_eq!(tiles.len(), count, "{tiling:?} of {shape:?}");
        for (place, tile) in tiles {
            assert_eq!(place.of(copy.view()), tile, "{place:?}");
            let row_band = rows(copy.view(), place.rows.clone());
            assert_eq!(row_band.dim(), (tile.nrows(), shape.1));
            assert_eq!(row_band[[0, place.columns.start]], tile[[0, 0]]);
        }
    }
}
