use std::ops::Range;

use half::{bf16, f16};
use ndarray::{Array2, ArrayView2, Axis};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::columns::{Strips, packed_len};
use super::few_rows::packed_vectors;
use super::lanes::{Floats, Pairs, Rounded, lanes};
use super::pack::pack;
use super::*;
use crate::constants::Packing;
use crate::tiles::{columns as columns_of, rows as rows_of};
use crate::{Context, Isa, Storage};

fn random(rng: &mut SmallRng, rows: usize, columns: usize) -> Array2<f32> {
    Array2::from_shape_simple_fn((rows, columns), || rng.random_range(-1.0..=1.0))
}

/// All strips of a tile, side by side, after `add`.
fn sums_of(
    isa: Isa,
    rows: usize,
    strips: Strips<'_>,
    add: impl FnOnce(&mut Tile<'_>),
) -> Array2<f32> {
    tile(isa, rows, strips, |tile| {
        add(tile);
        let views: Vec<_> = tile.strips().collect();
        ndarray::concatenate(Axis(1), &views).expect("of equal height")
    })
}

/// Strips of these widths in a matrix of `columns`, from its end backwards.
fn strips_of(widths: &[usize], columns: usize) -> Vec<Range<usize>> {
    let mut end = columns;
    let strip = |&width: &usize| {
        end -= width;
        end..end + width
    };
    widths.iter().map(strip).collect()
}

fn exact(a: &Array2<f32>, b: &Array2<f32>, strips: Strips<'_>) -> Array2<f64> {
    let [a, b] = [a, b].map(|matrix| matrix.mapv(f64::from));
    let product = a.dot(&b);
    let views: Vec<_> = strips.iter().map(|s| columns_of(product.view(), s.clone())).collect();
    ndarray::concatenate(Axis(1), &views).expect("of equal height")
}

const ROWS: [usize; 17] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14, 15, 28, 29, 35, 96];
const DEPTHS: [usize; 10] = [0, 1, 7, 16, 31, 127, 128, 129, 300, 600];
const WIDTHS: [&[usize]; 10] = [
    &[1],
    &[7],
    &[16],
    &[17],
    &[33],
    &[64],
    &[48, 49],
    &[64, 64, 64, 64],
    &[40, 40, 40, 40],
    &[83, 112],
];

/// Every combination of sizes, with the two factors and what their product is.
fn for_each_case(check: impl Fn(Isa, Strips<'_>, &Array2<f32>, &Array2<f32>, &Array2<f64>)) {
    let mut rng = SmallRng::seed_from_u64(1);
    for (rows, depth) in ROWS.iter().flat_map(|&m| DEPTHS.map(|k| (m, k))) {
        for widths in WIDTHS {
            let columns = widths.iter().sum::<usize>() + 3;
            let (a, b) = (random(&mut rng, rows, depth), random(&mut rng, depth, columns));
            let mut strips = strips_of(widths, columns);
            // The other way round they are neighbours.
            for _ in 0..2 {
                let want = exact(&a, &b, &strips);
                for isa in Isa::available() {
                    check(isa, &strips, &a, &b, &want);
                }
                strips.reverse();
            }
        }
    }
}

fn assert_close(isa: Isa, got: &Array2<f32>, want: &Array2<f64>) {
    let worst = got.iter().zip(want).map(|(&got, want)| (f64::from(got) - want).abs());
    let worst = worst.fold(0.0, f64::max);
    assert!(worst <= 2e-5, "{:?} on {}: off by {worst}", got.dim(), isa.name());
}

#[test]
fn every_layout_gives_the_product_and_the_same_bits() {
    for_each_case(|isa, strips, a, b, want| {
        let (a_columns, b_columns) = (a.t().as_standard_layout().into_owned(), b.t());
        let b_columns = b_columns.as_standard_layout();
        let matrices = [Right::RowMajor(b.view()), Right::Transposed(b_columns.view())];
        let widths = [2, packed_vectors(isa, a.nrows())];
        let packed = widths.iter().flat_map(|&vectors| matrices.map(|right| (vectors, right)));
        let packed: Vec<_> = packed
            .map(|(vectors, right)| {
                let mut packed = vec![f32::NAN; packed_len(b.nrows(), strips)];
                pack::<_, Floats>(isa, right, b.nrows(), strips, vectors, &mut packed);
                (packed, vectors)
            })
            .collect();
        let packed = packed.iter().map(|&(ref data, vectors)| Right::Packed {
            data,
            vectors,
            packing: Packing::Floats,
        });
        let rights = matrices.into_iter().chain(packed);
        let first =
            sums_of(isa, a.nrows(), strips, |tile| tile.add_tn(a_columns.view(), None, b.view()));
        assert_close(isa, &first, want);
        for right in rights {
            let got = sums_of(isa, a.nrows(), strips, |tile| tile.add(a.view(), right));
            assert_eq!(first, got, "on {}", isa.name());
        }
        let swept = sums_of(isa, a.nrows(), strips, |tile| {
            tile.clear_blank();
            tile.for_each_slice(a.view().insert_axis(Axis(0)), |tile, left, slice| {
                tile.add_swept(left, b.view(), slice)
            });
        });
        assert_eq!(first, swept, "sweeps on {}", isa.name());
    });
}

/// Few rows sweep over such a factor, and more rows pack it.
#[test]
fn rows_of_a_product_with_a_large_factor_do_not_depend_on_others() {
    fn check<E: Storage>(a: ArrayView2<'_, f32>, b: ArrayView2<'_, E>) {
        let strips = strips_of(&[65, 200], b.ncols());
        for isa in Isa::available() {
            let of = |rows: Range<usize>| {
                sums_of(isa, rows.len(), &strips, |tile| {
                    tile.add(rows_of(a, rows), Right::RowMajor(b))
                })
            };
            let all = of(0..a.nrows());
            for rows in [1, 4, 7, 13, 14] {
                assert_eq!(rows_of(all.view(), 0..rows), of(0..rows), "{rows} on {}", isa.name());
            }
        }
    }
    let mut rng = SmallRng::seed_from_u64(3);
    let (a, b) = (random(&mut rng, 30, 270), random(&mut rng, 270, 32_000));
    assert!(sweep::pays(Isa::available()[0], 4, b.view()));
    check(a.view(), b.view());
    check(a.view(), b.mapv(f16::from_f32).view());
}

#[test]
fn dot_products_are_close_and_do_not_depend_on_others() {
    for_each_case(|isa, strips, a, b, want| {
        let transpose = b.t().as_standard_layout().into_owned();
        let of = |a: ArrayView2<'_, f32>, strips: Strips<'_>| {
            sums_of(isa, a.nrows(), strips, |tile| tile.add_dots(a, transpose.view()))
        };
        let all = of(a.view(), strips);
        assert_close(isa, &all, want);
        let (row, column) = (a.nrows() - 1, strips[strips.len() - 1].end - 1);
        let alone =
            of(rows_of(a.view(), row..row + 1), std::slice::from_ref(&(column..column + 1)));
        assert_eq!(all.last(), alone.last(), "{:?} on {}", all.dim(), isa.name());
    });
}

/// Rows, columns and terms around the sizes of blocks, chunks of rows and slices of dot products.
fn dot_product_sizes() -> impl Iterator<Item = [usize; 3]> {
    const TERMS: [usize; 14] = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65];
    let small = (1..=11).flat_map(|m| (1..=19).map(move |n| [m, n]));
    let small = small.flat_map(|[m, n]| TERMS.map(|k| [m, n, k]));
    let large =
        [[20, 121, 65], [64, 33, 130], [41, 60, 511], [127, 7, 9], [3, 241, 513], [5, 9, 1100]];
    small.chain(large)
}

/// The factors are parts of wider matrices, as they are in the kernels.
#[test]
fn dot_products_of_whole_numbers_are_exact_and_added() {
    let numbers = |rows: usize, columns: usize, seed: usize| {
        let small = |i, j| ((i * 31 + j * 17 + i * j * 7 + seed * 5) % 19) as f32 - 9.0;
        Array2::from_shape_fn((rows, columns), |(i, j)| small(i, j))
    };
    let within = |matrix: &Array2<f32>, before: usize| {
        let columns = before..before + matrix.ncols();
        let mut wide = Array2::from_elem((matrix.nrows(), matrix.ncols() + 5), f32::NAN);
        wide.slice_mut(ndarray::s![.., columns]).assign(matrix);
        wide
    };
    for [m, n, k] in dot_product_sizes() {
        let (a, b, before) = (numbers(m, k, 1), numbers(n, k, 2), numbers(m, n, 3));
        let want = a.dot(&b.t()) * 2.0 + &before;
        let (wide_a, wide_b) = (within(&a, 2), within(&b, 3));
        let (a, b) = (columns_of(wide_a.view(), 2..k + 2), columns_of(wide_b.view(), 3..k + 3));
        for isa in Isa::available() {
            const OUTSIDE: f32 = 1e6;
            let mut wide = Array2::from_elem((m + 2, n + 3), OUTSIDE);
            let middle = ndarray::s![1..=m, 2..n + 2];
            wide.slice_mut(middle).assign(&before);
            tile(isa, m, std::slice::from_ref(&(0..n)), |tile| {
                tile.add_dots(a, b);
                tile.add_dots(a, b);
                tile.add_to(wide.slice_mut(middle));
            });
            let mut all = Array2::from_elem((m + 2, n + 3), OUTSIDE);
            all.slice_mut(middle).assign(&want);
            assert_eq!(wide, all, "{}, m {m}, n {n}, k {k}", isa.name());
        }
    }
}

/// Rounding errors are small against the sum of the terms' magnitudes.
#[test]
fn dot_products_of_fractions_are_close() {
    for k in [1, 7, 16, 33, 500, 2000] {
        let rng = &mut SmallRng::seed_from_u64(2);
        let (a, b) = (random(rng, 7, k), random(rng, 7, k));
        let [a_exact, b_exact] = [&a, &b].map(|matrix| matrix.mapv(f64::from));
        let want = a_exact.dot(&b_exact.t());
        let magnitude = a_exact.mapv(f64::abs).dot(&b_exact.mapv(f64::abs).t());
        for isa in Isa::available() {
            let got = sums_of(isa, 7, std::slice::from_ref(&(0..7)), |tile| {
                tile.add_dots(a.view(), b.view())
            });
            for (at, want) in want.indexed_iter() {
                let error = (f64::from(got[at]) - want).abs() / magnitude[at];
                assert!(error < 2e-6, "{}, k {k}, {at:?}: error {error:e}", isa.name());
            }
        }
    }
}

#[test]
fn tiles_of_huge_sizes_do_not_overflow() {
    let context = Context::default();
    for (rows, depth) in [(usize::MAX, 0), (0, usize::MAX), (usize::MAX, usize::MAX), (1, 1 << 62)]
    {
        let tiles = transposed_tiling(&context, (rows, 1), depth);
        assert!(tiles.rows >= 1 && tiles.columns >= 1, "{tiles:?}");
    }
}

#[test]
fn sums_are_stored_or_added() {
    for_each_case(|isa, strips, a, b, want| {
        let mut out = Array2::from_elem(want.raw_dim(), f32::NAN);
        tile(isa, a.nrows(), strips, |tile| {
            tile.add(a.view(), Right::RowMajor(b.view()));
            tile.store(out.view_mut());
            tile.add_to(out.view_mut());
        });
        assert_close(isa, &(out * 0.5), want);
    });
}

#[test]
fn products_add_up() {
    for_each_case(|isa, strips, a, b, want| {
        let got = sums_of(isa, a.nrows(), strips, |tile| {
            tile.add(a.view(), Right::RowMajor(b.view()));
            tile.add(a.view(), Right::RowMajor(b.view()));
        });
        assert_close(isa, &(got * 0.5), want);
    });
}

#[test]
fn a_row_does_not_depend_on_the_others() {
    for_each_case(|isa, strips, a, b, _| {
        let of = |a: ArrayView2<'_, f32>| {
            sums_of(isa, a.nrows(), strips, |tile| tile.add(a, Right::RowMajor(b.view())))
        };
        let last = a.nrows() - 1;
        let alone = of(rows_of(a.view(), last..last + 1));
        assert_eq!(of(a.view()).row(last), alone.row(0), "on {}", isa.name());
    });
}

fn check_16_bits<E: Storage>() {
    for_each_case(|isa, strips, a, b, _| {
        let [a_stored, b_stored] = [a, b].map(|matrix| matrix.mapv(E::from_f32));
        let [a, b] = [&a_stored, &b_stored].map(|matrix| matrix.mapv(E::to_f32));
        let transposed = |matrix: &Array2<E>| matrix.t().as_standard_layout().into_owned();
        let (a_columns, b_columns) = (transposed(&a_stored), transposed(&b_stored));
        let of = |add: &dyn Fn(&mut Tile<'_>)| sums_of(isa, a_stored.nrows(), strips, add);
        let first = of(&|tile| tile.add(a_stored.view(), Right::RowMajor(b_stored.view())));
        assert_close(isa, &first, &exact(&a, &b, strips));
        let single = of(&|tile| tile.add(a.view(), Right::RowMajor(b.view())));
        assert_eq!(first, single, "as f32, on {}", isa.name());
        let transposed = of(&|tile| tile.add(a_stored.view(), Right::Transposed(b_columns.view())));
        assert_eq!(first, transposed, "transposed, on {}", isa.name());
        let left = of(&|tile| tile.add_tn(a_columns.view(), None, b_stored.view()));
        assert_eq!(first, left, "left transposed, on {}", isa.name());
    });
}

#[test]
fn products_of_16_bits_are_those_of_the_same_numbers_in_single_precision() {
    check_16_bits::<f16>();
    check_16_bits::<bf16>();
}

/// What computes with pairs: the processor, if it can, and the model.
fn with_pairs() -> impl Iterator<Item = Isa> {
    Isa::choices().into_iter().filter(|isa| isa.has_pairs())
}

#[test]
fn pairs_give_the_same_bits_in_every_layout() {
    let sizes =
        [1, 6, 7, 29].into_iter().flat_map(|m| [1, 2, 31, 255, 256, 257, 514].map(|k| (m, k)));
    for (rows, depth) in sizes {
        for widths in [&[7][..], &[33], &[48, 49], &[64, 64, 64, 64], &[83, 112]] {
            let (mut rng, columns) = (SmallRng::seed_from_u64(5), widths.iter().sum::<usize>() + 3);
            let (a, b) = (random(&mut rng, rows, depth), random(&mut rng, depth, columns));
            let strips = &strips_of(widths, columns);
            let want = exact(&a, &b, strips);
            let magnitude = exact(&a.mapv(f32::abs), &b.mapv(f32::abs), strips);
            let transposed = |matrix: &Array2<f32>| matrix.t().as_standard_layout().into_owned();
            let (a_columns, b_columns) = (transposed(&a), transposed(&b));
            for isa in with_pairs() {
                let paired = |add: &dyn Fn(&mut Tile<'_>)| {
                    sums_of(isa, rows, strips, |tile| {
                        tile.pairs = true;
                        add(tile);
                    })
                };
                let first = paired(&|tile| tile.add(a.view(), Right::RowMajor(b.view())));
                for ((got, want), magnitude) in first.iter().zip(&want).zip(&magnitude) {
                    // Each factor is off by at most 2^-8.
                    let error = (f64::from(*got) - want).abs() / magnitude;
                    assert!(error < 7.9e-3, "{}, {rows}, {depth}: {error:e}", isa.name());
                }
                let case = format!("{}, {rows} rows, {depth} terms, {widths:?}", isa.name());
                let right = Right::Transposed(b_columns.view());
                assert_eq!(first, paired(&|tile| tile.add(a.view(), right)), "{case}");
                let left = paired(&|tile| tile.add_tn(a_columns.view(), None, b.view()));
                assert_eq!(first, left, "{case}");
                for right in [Right::RowMajor(b.view()), right] {
                    let mut packed = vec![f32::NAN; packed_len(lanes::<Pairs>(depth), strips)];
                    let vectors = packed_vectors(isa, rows);
                    pack::<_, Pairs>(isa, right, depth, strips, vectors, &mut packed);
                    let right =
                        Right::Packed::<f32> { data: &packed, vectors, packing: Packing::Pairs };
                    let got = sums_of(isa, rows, strips, |tile| tile.add(a.view(), right));
                    assert_eq!(first, got, "{case}, packed");
                }
                let last = rows_of(a.view(), rows - 1..rows);
                let alone = sums_of(isa, 1, strips, |tile| {
                    tile.pairs = true;
                    tile.add(last, Right::RowMajor(b.view()));
                });
                assert_eq!(first.row(rows - 1), alone.row(0), "{case}, alone");
            }
        }
    }
}

/// Products with weights that are rounded while they are packed are those with weights that were rounded before. Both
/// have the same slices at these depths.
#[test]
fn rounded_weights_give_the_bits_of_the_same_numbers() {
    let sizes =
        [1, 2, 3, 6, 7].into_iter().flat_map(|m| [1, 2, 31, 64, 255, 256, 257].map(|k| (m, k)));
    for (rows, depth) in sizes {
        for widths in [&[7][..], &[33], &[48, 49], &[64, 64, 64, 64], &[83, 112]] {
            let (mut rng, columns) = (SmallRng::seed_from_u64(7), widths.iter().sum::<usize>() + 3);
            let (a, b) = (random(&mut rng, rows, depth), random(&mut rng, depth, columns));
            let rounded = b.mapv(|b| bf16::from_f32(b).to_f32());
            let b_columns = b.t().as_standard_layout().into_owned();
            let strips = &strips_of(widths, columns);
            for isa in Isa::choices().into_iter().filter(|isa| isa.rounds()) {
                let want = sums_of(isa, rows, strips, |tile| {
                    tile.add(a.view(), Right::RowMajor(rounded.view()));
                });
                for right in [Right::RowMajor(b.view()), Right::Transposed(b_columns.view())] {
                    let mut packed = vec![f32::NAN; packed_len(lanes::<Pairs>(depth), strips)];
                    let vectors = packed_vectors(isa, rows);
                    pack::<_, Rounded>(isa, right, depth, strips, vectors, &mut packed);
                    let packing = Packing::Rounded;
                    let right = Right::Packed::<f32> { data: &packed, vectors, packing };
                    let got = sums_of(isa, rows, strips, |tile| tile.add(a.view(), right));
                    assert_eq!(want, got, "{}, {rows} rows, {depth} terms, {widths:?}", isa.name());
                }
            }
        }
    }
}

/// Rows that are not valid count as zeros, whatever they hold, also where only one of a pair is valid.
#[test]
fn pairs_skip_rows_that_are_not_valid() {
    let mut rng = SmallRng::seed_from_u64(6);
    let (mut a, mut b) = (random(&mut rng, 37, 9), random(&mut rng, 37, 21));
    let valid: Vec<_> = (0..37).map(|k| k % 3 != 1 && k != 36 && k != 6).collect();
    let strips = &strips_of(&[21], 21);
    for isa in with_pairs() {
        let of = |a: &Array2<f32>, b: &Array2<f32>, valid: Option<&[bool]>| {
            sums_of(isa, 9, strips, |tile| {
                tile.pairs = true;
                tile.add_tn(a.view(), valid, b.view());
            })
        };
        for (k, _) in valid.iter().enumerate().filter(|(_, valid)| !**valid) {
            a.row_mut(k).fill(f32::NAN);
            b.row_mut(k).fill(0.0);
        }
        let got = of(&a, &b, Some(&valid));
        let want = of(&a.mapv(|a| if a.is_nan() { 0.0 } else { a }), &b, None);
        assert_eq!(got, want, "{}", isa.name());
    }
}
