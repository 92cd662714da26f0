use std::ops::Range;

use half::bf16;
use ndarray::{Array2, ArrayView2, Axis};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::columns::{Strips, packed_len};
use super::few_rows::packed_vectors;
use super::lanes::{Pairs, lanes};
use super::pack::pack;
use super::tiling::slices;
use super::*;
use crate::Isa;
use crate::constants::Packing;
use crate::tiles::rows as rows_of;

/// What has tiles: the processor, if it can, and the model beside vectors of each instruction set.
pub(super) fn with_tiles() -> Vec<Isa> {
    let best = Isa::available().into_iter().filter(|isa| isa.tiles().is_some());
    let models = Isa::available().into_iter().map(Isa::with_model_of_tiles);
    best.chain(models).chain(Isa::models().into_iter().skip(1)).collect()
}

fn random(rng: &mut SmallRng, rows: usize, columns: usize) -> Array2<f32> {
    Array2::from_shape_simple_fn((rows, columns), || rng.random_range(-1.0..=1.0))
}

/// `a @ b`, rounded wherever tiles round.
fn product(a: ArrayView2<'_, f32>, b: ArrayView2<'_, f32>) -> Array2<f32> {
    let [a, b] = [a, b].map(|matrix| matrix.mapv(|value| bf16::from_f32(value).to_f32()));
    Array2::from_shape_fn((a.nrows(), b.ncols()), |(m, n)| {
        let mut total = 0.0;
        for slice in slices::<Pairs>(a.ncols()) {
            let mut sum = 0.0;
            for start in slice.clone().step_by(32) {
                let mut halves = [0.0; 2];
                for k in start..slice.end.min(start + 32) {
                    let half = &mut halves[(k - start) % 2];
                    *half = a[[m, k]].mul_add(b[[k, n]], *half);
                }
                sum += halves[0] + halves[1];
            }
            total += sum;
        }
        total
    })
}

/// The only strip of so many columns.
fn strip(columns: usize) -> Vec<Range<usize>> {
    std::iter::once(0..columns).collect()
}

/// The columns of strips, side by side.
fn of_strips<T: Clone>(matrix: ArrayView2<'_, T>, strips: Strips<'_>) -> Array2<T> {
    let columns: Vec<_> = strips.iter().flat_map(Clone::clone).collect();
    matrix.select(Axis(1), &columns)
}

fn sums(isa: Isa, rows: usize, strips: Strips<'_>, add: impl FnOnce(&mut Tile<'_>)) -> Array2<f32> {
    tile(isa, rows, strips, |tile| {
        tile.set_pairs(true);
        add(tile);
        let views: Vec<_> = tile.strips().collect();
        ndarray::concatenate(Axis(1), &views).expect("of equal height")
    })
}

const ROWS: [usize; 10] = [1, 3, 15, 16, 17, 31, 32, 33, 50, 65];
const DEPTHS: [usize; 13] = [0, 1, 2, 15, 16, 31, 32, 33, 63, 65, 256, 257, 300];
const STRIPS: [&[[usize; 2]]; 5] =
    [&[[2, 3]], &[[0, 15]], &[[1, 18], [40, 71]], &[[0, 33], [33, 64]], &[[3, 67], [80, 96]]];

/// Odd sizes, factors in every layout and vectors of every instruction set: always the same bits.
#[test]
fn products_are_rounded_as_tiles_round() {
    let mut rng = SmallRng::seed_from_u64(1);
    for (rows, depth) in ROWS.into_iter().flat_map(|m| DEPTHS.map(|k| (m, k))) {
        for strips in STRIPS {
            let strips: &Vec<_> = &strips.iter().map(|&[start, end]| start..end).collect();
            let columns = strips.last().map_or(0, |strip| strip.end) + 1;
            let (a, b) = (random(&mut rng, rows, depth), random(&mut rng, depth, columns));
            let want = of_strips(product(a.view(), b.view()).view(), strips);
            let transposed = |matrix: &Array2<f32>| matrix.t().as_standard_layout().into_owned();
            let (a_columns, b_columns) = (transposed(&a), transposed(&b));
            let rights = [Right::RowMajor(b.view()), Right::Transposed(b_columns.view())];
            for isa in with_tiles() {
                let case = format!("{isa:?}, {rows} rows, {depth} terms, {strips:?}");
                let sums = |add: &dyn Fn(&mut Tile<'_>)| sums(isa, rows, strips, add);
                for right in rights {
                    assert_eq!(sums(&|tile| tile.add(a.view(), right)), want, "{case}");
                    let mut data = vec![f32::NAN; packed_len(lanes::<Pairs>(depth), strips)];
                    let vectors = packed_vectors(isa, rows);
                    pack::<_, Pairs>(isa, right, depth, strips, vectors, &mut data);
                    let packing = Packing::Pairs;
                    let right = Right::Packed::<f32> { data: &data, vectors, packing };
                    assert_eq!(sums(&|tile| tile.add(a.view(), right)), want, "{case}, packed");
                }
                let got = sums(&|tile| tile.add_tn(a_columns.view(), None, b.view()));
                assert_eq!(got, want, "{case}, left factor transposed");
            }
        }
    }
}

/// Sums differ from those of float64 by what rounding the factors makes, and what 300 terms add to that.
#[test]
fn products_are_close_to_those_in_float64() {
    let mut rng = SmallRng::seed_from_u64(2);
    let (a, b) = (random(&mut rng, 33, 300), random(&mut rng, 300, 49));
    let [exact, magnitude] = [|value: f32| f64::from(value), |value: f32| f64::from(value.abs())]
        .map(|of| a.mapv(of).dot(&b.mapv(of)));
    for isa in with_tiles() {
        let strips = strip(49);
        let got = sums(isa, 33, &strips, |tile| tile.add(a.view(), Right::RowMajor(b.view())));
        for ((got, want), magnitude) in got.iter().zip(&exact).zip(&magnitude) {
            let error = (f64::from(*got) - want).abs() / magnitude;
            assert!(error < 7.9e-3, "{isa:?}: {error:e}");
        }
    }
}

/// Rows and columns that are not finite stay by themselves, also where a slice does not fill its last tile and memory
/// holds other numbers from before.
#[test]
fn numbers_that_are_not_finite_stay_in_their_rows_and_columns() {
    let mut rng = SmallRng::seed_from_u64(3);
    let strips = strip(33);
    for isa in with_tiles() {
        let fill = Array2::from_elem((35, 256), f32::NAN);
        sums(isa, 35, &strips, |tile| {
            tile.add(fill.view(), Right::RowMajor(fill.t().as_standard_layout().view()))
        });
        let (mut a, mut b) = (random(&mut rng, 35, 41), random(&mut rng, 41, 33));
        let want = product(a.view(), b.view());
        (a[[2, 7]], a[[33, 40]], b[[3, 11]]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
        (a[[5, 1]], b[[40, 20]]) = (f32::MAX, f32::MIN_POSITIVE / 2.0);
        let got = sums(isa, 35, &strips, |tile| tile.add(a.view(), Right::RowMajor(b.view())));
        for ((m, n), &got) in got.indexed_iter() {
            let is_right = match (m, n) {
                (2, _) => got.is_nan(),
                (5 | 33, _) | (_, 11) => !got.is_finite(),
                (_, 20) => got.is_finite(),
                _ => got == want[[m, n]],
            };
            assert!(is_right, "{isa:?}, {m}, {n}: {got}");
        }
        let alone = sums(isa, 1, &strips, |tile| {
            tile.add(rows_of(a.view(), 6..7), Right::RowMajor(b.view()));
        });
        let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        assert!(alone.iter().zip(got.row(6)).all(same), "{isa:?}");
    }
}
