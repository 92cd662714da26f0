use std::ops::Range;

use ndarray::{Array2, ArrayView2, Axis};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::columns::Strips;
use super::interleaved::Interleaved;
use super::lanes::Quads;
use super::tiled_tests::with_tiles;
use super::tiling::slices;
use super::*;
use crate::simd::{Simd, WithSimd};
use crate::tiles::{Place, Tiling, columns as columns_of, rows as rows_of};
use crate::{Constant, Constants, Context, Copies, Isa, Serial, Weights};

fn random(rng: &mut SmallRng, rows: usize, columns: usize) -> Array2<f32> {
    Array2::from_shape_simple_fn((rows, columns), || rng.random_range(-1.0..=1.0))
}

/// Terms in int8, and their scale, of the rows of a matrix.
fn terms_of(matrix: ArrayView2<'_, f32>) -> (Array2<i32>, Vec<f32>) {
    let largest = matrix.rows().into_iter().map(|row| row.iter().fold(0f32, |a, b| a.max(b.abs())));
    let largest: Vec<f32> = largest.collect();
    let mut terms = Array2::zeros(matrix.dim());
    for ((row, largest), mut to) in matrix.rows().into_iter().zip(&largest).zip(terms.rows_mut()) {
        for (value, to) in row.iter().zip(&mut to) {
            *to = if *largest == 0.0 {
                0
            } else {
                (value * (127.0 / largest)).round_ties_even() as i32
            };
        }
    }
    (terms, largest.into_iter().map(|largest| largest / 127.0).collect())
}

/// `a @ b`: what sums in int32 of each slice give.
fn product(a: ArrayView2<'_, f32>, b: ArrayView2<'_, f32>) -> Array2<f32> {
    let ((a, a_scales), (b, b_scales)) = (terms_of(a), terms_of(b.t()));
    let mut sums = Array2::zeros((a.nrows(), b.nrows()));
    for slice in slices::<Quads>(a.ncols()) {
        for ((m, n), sum) in sums.indexed_iter_mut() {
            let of_slice: i32 = slice.clone().map(|k| a[[m, k]] * b[[n, k]]).sum();
            *sum += of_slice as f32 * (a_scales[m] * b_scales[n]);
        }
    }
    sums
}

fn constant<'b>(b: &'b Array2<f32>, copies: &'b Copies) -> [Constant<'b>; 1] {
    [Constant { bytes: bytemuck::cast_slice(b.as_slice().expect("no gaps")), copies }]
}

/// What packs constants in int8.
fn int8<'c>(isa: Isa, constants: &'c [Constant<'c>]) -> Context<'c> {
    let constants = Constants(constants);
    Context { weights: Weights::Int8, constants, ..Context::new(isa, &Serial) }
}

const DEPTHS: [usize; 8] = [40, 41, 43, 64, 511, 512, 513, 1100];

#[test]
fn tiles_have_the_sums_of_the_model() {
    let mut rng = SmallRng::seed_from_u64(1);
    for (rows, depth) in [1, 3, 5, 8, 14, 33].into_iter().flat_map(|m| DEPTHS.map(|k| (m, k))) {
        for (gates, cells, at_once) in
            [(1, 7, 16), (4, 40, 48), (3, 40, 16), (2, 160, 96), (4, 48, 16)]
        {
            let a = random(&mut rng, rows, depth);
            let b = random(&mut rng, depth, gates * cells);
            let want = product(a.view(), b.view());
            let b_columns = b.t().as_standard_layout().into_owned();
            for isa in Isa::choices().into_iter().chain(with_tiles()) {
                for (b, is_transposed) in [(&b, false), (&b_columns, true)] {
                    let copies = Copies::default();
                    let constants = constant(b, &copies);
                    let context = &int8(isa, &constants);
                    let right = if is_transposed {
                        Right::Transposed(b.view())
                    } else {
                        Right::RowMajor(b.view())
                    };
                    let case = format!("{}, {rows}, {depth}, {gates}x{cells}", isa.name());
                    check_tiles(context, (&a, right), (gates, cells, at_once), &want, &case);
                }
            }
        }
    }
}

fn check_tiles<'a>(
    context: &Context<'a>,
    (a, right): (&Array2<f32>, Right<'a, f32>),
    (gates, cells, at_once): (usize, usize, usize),
    want: &Array2<f32>,
    case: &str,
) {
    let (rows, depth) = a.dim();
    let sums = |strips: Strips<'_>, right: Right<'_, f32>| {
        tile(context.isa, rows, strips, |tile| {
            tile.add(a.view(), right);
            let views: Vec<_> = tile.strips().collect();
            ndarray::concatenate(Axis(1), &views).expect("of equal height")
        })
    };
    let strips = |cells: usize, part: &Range<usize>| -> Vec<Range<usize>> {
        (0..gates).map(|gate| gate * cells + part.start..gate * cells + part.end).collect()
    };
    let whole = strips(cells, &(0..cells));
    let packed = packed_strips(context, (rows, depth), right, &whole, None);
    assert!(matches!(packed, Right::Quads(_)), "{case}");
    assert_eq!(sums(&whole, packed), want, "{case}, all columns");
    let tiling = Tiling { rows, columns: at_once };
    let tiles = |part: &Range<usize>| strips(cells, part);
    for start in (0..cells).step_by(at_once) {
        let part = start..cells.min(start + at_once);
        let place = Place { rows: 0..rows, columns: part.clone() };
        let got = match gates {
            1 => at::<1>(context, tiling, (depth, cells), right, &place),
            2 => at::<2>(context, tiling, (depth, cells), right, &place),
            3 => at::<3>(context, tiling, (depth, cells), right, &place),
            _ => at::<4>(context, tiling, (depth, cells), right, &place),
        };
        let views: Vec<_> = tiles(&part).into_iter().map(|s| columns_of(want.view(), s)).collect();
        let want = ndarray::concatenate(Axis(1), &views).expect("of equal height");
        assert_eq!(sums(&tiles(&part), got), want, "{case}, {part:?}");
    }
}

/// The factor of a tile.
fn at<'c, const G: usize>(
    context: &Context<'c>,
    tiling: Tiling,
    (depth, cells): (usize, usize),
    right: Right<'_, f32>,
    place: &Place,
) -> Right<'c, f32> {
    let strips = |part: &Range<usize>| {
        std::array::from_fn::<_, G, _>(|gate| gate * cells + part.start..gate * cells + part.end)
    };
    let packed = PackedWeights::pack(context, tiling, (depth, cells), right, strips, None);
    packed.expect("a constant").at(place)
}

struct Grouped<'g, 'w> {
    weights: &'g Interleaved<'w, 4>,
    rows: &'g [&'g [f32]],
    cells: Range<usize>,
    sums: &'g mut [f32],
    pitch: usize,
}

impl WithSimd for Grouped<'_, '_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let rows = self.rows.iter().copied();
        self.weights.add(simd, &self.cells, rows, (self.sums, self.pitch));
    }
}

#[test]
fn groups_have_the_sums_of_the_model() {
    let mut rng = SmallRng::seed_from_u64(2);
    for (rows, depth) in [1, 2, 5].into_iter().flat_map(|m| DEPTHS.map(|k| (m, k))) {
        for cells in [7, 48, 70] {
            let (a, b) = (random(&mut rng, rows, depth), random(&mut rng, depth, 4 * cells));
            let want = product(a.view(), b.view());
            for isa in Isa::choices() {
                let Some(width) = block_width(isa, rows, 4) else { continue };
                let copies = Copies::default();
                let constants = constant(&b, &copies);
                let context = &int8(isa, &constants);
                let strips = std::array::from_fn(|gate| gate * cells..(gate + 1) * cells);
                let right = Right::RowMajor(b.view());
                let size = [rows, depth, width, padded(cells)];
                let weights = Interleaved::<4>::pack(context, size, right, &strips, &mut []);
                let lanes = weights.row_lanes();
                let mut memory = vec![f32::NAN; rows * lanes.memory()];
                let rows_in_lanes = a.rows().into_iter().zip(memory.chunks_mut(lanes.memory()));
                let rows_in_lanes: Vec<_> = rows_in_lanes
                    .map(|(row, to)| lanes.of(row.to_slice().expect("no gaps"), to))
                    .collect();
                let pitch = 4 * padded(cells);
                let mut sums = vec![0.0; rows * pitch];
                let (rows, cells) = (&rows_in_lanes[..], 0..cells);
                isa.run(Grouped { weights: &weights, rows, cells, sums: &mut sums, pitch });
                for (row, sums) in want.rows().into_iter().zip(sums.chunks(pitch)) {
                    let got = sums.chunks(pitch / 4).flat_map(|gate| &gate[..want.ncols() / 4]);
                    assert!(row.iter().eq(got), "{}, {depth}, {}", isa.name(), want.ncols());
                }
            }
        }
    }
}

/// A row's sums depend on it alone, also where others are not finite; its own are NaN then, and those of a column whose
/// weights are not finite.
#[test]
fn numbers_that_are_not_finite_stay_in_their_rows_and_columns() {
    let mut rng = SmallRng::seed_from_u64(3);
    let (mut a, mut b) = (random(&mut rng, 9, 40), random(&mut rng, 40, 33));
    let want = product(a.view(), b.view());
    (a[[2, 7]], a[[5, 0]], b[[3, 11]]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
    a.row_mut(8).fill(0.0);
    for isa in Isa::choices().into_iter().chain(with_tiles()) {
        let copies = Copies::default();
        let constants = constant(&b, &copies);
        let context = &int8(isa, &constants);
        let all = 0..33;
        let strips = std::slice::from_ref(&all);
        let right = packed_strips(context, (9, 40), Right::RowMajor(b.view()), strips, None);
        let got = tile(isa, 9, strips, |tile| {
            tile.add(a.view(), right);
            tile.strips().next().expect("a strip").to_owned()
        });
        for ((m, n), &got) in got.indexed_iter() {
            let is_right = match (m, n) {
                (2 | 5, _) | (_, 11) => got.is_nan(),
                (8, _) => got == 0.0,
                _ => got == want[[m, n]],
            };
            assert!(is_right, "{}, {m}, {n}: {got}", isa.name());
        }
        let alone = tile(isa, 1, strips, |tile| {
            tile.add(rows_of(a.view(), 6..7), right);
            tile.strips().next().expect("a strip").to_owned()
        });
        assert!(alone.iter().zip(got.row(6)).all(|(a, b)| a == b || a.is_nan() && b.is_nan()));
    }
}

/// One copy serves all tiles where gates begin with a unit, and two serve all others.
#[test]
fn copies_take_little_memory() {
    let mut rng = SmallRng::seed_from_u64(4);
    for (cells, copies_of_it) in [(64, 1), (200, 2)] {
        let b = random(&mut rng, cells, 4 * cells);
        let copies = Copies::default();
        let constants = constant(&b, &copies);
        let context = &int8(Isa::get(), &constants);
        let place = Place { rows: 0..1, columns: 0..16 };
        for columns in [16, 32, 64, 256] {
            let tiling = Tiling { rows: 20, columns };
            at::<4>(context, tiling, (cells, cells), Right::RowMajor(b.view()), &place);
        }

        let share = copies.bytes() as f64 / (size_of::<f32>() * b.len()) as f64;
        assert!(share > 0.0 && share <= 0.3 * f64::from(copies_of_it), "{cells}: {share}");
    }
}
