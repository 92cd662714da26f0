use ndarray::Array1;

use super::{ColumnSums, sums_len};
use crate::tiles::Tiling;

const ALL: usize = 3;

/// Each tile of some matrices, some of which are cut, adds its place to the last two of three sums.
#[test]
fn each_row_of_tiles_adds_up_its_own_part() {
    for (rows, columns) in [(1, 1), (3, 8), (8, 3), (usize::MAX, 5), (7, usize::MAX)] {
        for shape in [(1, 1), (2, 9), (9, 2), (65, 64)] {
            let tiling = Tiling { rows, columns };
            let mut memory = vec![0.0; sums_len(ALL, shape, rows)];
            let mut sums = ColumnSums::new(&mut memory, ALL);
            let mut tiles = sums.from(1).of_tiles::<2>(columns, shape.1);
            for place in tiling.places(shape) {
                let parts = tiles.next().expect("one for each tile");
                for (sum, part) in parts.into_iter().enumerate() {
                    assert_eq!(part.len(), place.columns.len(), "{tiling:?} of {shape:?}");
                    for (to, column) in part.iter_mut().zip(place.columns.clone()) {
                        *to += (1000 * place.rows.len() * (sum + 1) + column) as f32;
                    }
                }
            }
            assert!(tiles.next().is_none());
            drop(tiles);
            let row_tiles = shape.0.div_ceil(rows);
            for n in 0..ALL {
                let mut got = Array1::<f32>::zeros(shape.1);
                sums.store(n, got.view_mut());
                let want =
                    (0..shape.1).map(|column| (1000 * shape.0 * n + column * row_tiles) as f32);
                let want = if n == 0 { vec![0.0; shape.1] } else { want.collect() };
                assert_eq!(got.to_vec(), want, "sum {n}, {tiling:?} of {shape:?}");
            }
        }
    }
}
