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
fn sums_are_parts_of_the_row_of_tiles_and_the_columns() {
    for (tiling, shape) in cases().filter(|&(_, shape)| shape.0 > 0 && shape.1 > 0) {
        let mut memory = vec![0.0; crate::sequence::sums_len(2, shape, tiling.rows)];
        let places = tiling.places(shape).collect::<Vec<_>>();
        let parts = tiling.sums_of::<2>(shape.1, &mut memory);
        assert_eq!(parts.len(), places.len(), "{tiling:?} of {shape:?}");
        for (place, parts) in places.iter().zip(parts) {
            for (sum, part) in parts.into_iter().enumerate() {
                assert_eq!(part.len(), place.columns.len(), "{tiling:?} of {shape:?}");
                for (to, column) in part.iter_mut().zip(place.columns.clone()) {
                    *to += (1 + 1000 * (10 * place.rows.start + sum) + column) as f32;
                }
            }
        }
        let tops: Vec<_> = (0..shape.0).step_by(tiling.rows).collect();
        let want = (0..2).flat_map(|sum| tops.iter().map(move |top| 10 * top + sum));
        let want = want.flat_map(|row| (0..shape.1).map(move |column| 1 + 1000 * row + column));
        assert!(memory.iter().map(|&sum| sum as usize).eq(want), "{tiling:?} of {shape:?}");
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
