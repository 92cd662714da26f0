use ndarray::{Array2, s};

use super::{Product, Update, block_columns, block_rows, cost, tiling};
use crate::Isa;

/// Around one, two and four vectors of eight and of sixteen lanes.
const LENGTHS: [usize; 14] = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65];

/// Whole numbers, small enough for sums of their products to be exact.
fn numbers(rows: usize, columns: usize, seed: usize) -> Array2<f32> {
    Array2::from_shape_fn((rows, columns), |(i, j)| {
        ((i * 31 + j * 17 + i * j * 7 + seed * 5) % 19) as f32 - 9.0
    })
}

/// The dot products of rows, one by one.
fn naive(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f64> {
    Array2::from_shape_fn((a.nrows(), b.nrows()), |(i, j)| {
        a.row(i).iter().zip(b.row(j)).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
    })
}

/// Runs a product of `[m, k]` by `[n, k]` into the middle of a larger matrix.
///
/// All three matrices are parts of wider ones, as they are in the kernels. Says what is wrong with
/// the result, or with what surrounds it.
fn check(isa: Isa, [m, n, k]: [usize; 3], update: Update) -> Option<String> {
    const OUTSIDE: f32 = 1e6;
    let (a, b, before) = (numbers(m, k, 1), numbers(n, k, 2), numbers(m, n, 3));
    let [mut wide_a, mut wide_b] = [m, n].map(|rows| Array2::from_elem((rows, k + 5), f32::NAN));
    wide_a.slice_mut(s![.., 2..k + 2]).assign(&a);
    wide_b.slice_mut(s![.., 3..k + 3]).assign(&b);
    let mut wide = Array2::from_elem((m + 2, n + 3), OUTSIDE);
    // What is stored must not depend on what was there.
    let start = if update == Update::Add { before.clone() } else { before.mapv(|_| f32::NAN) };
    wide.slice_mut(s![1..=m, 2..n + 2]).assign(&start);

    isa.run(Product {
        a: wide_a.slice(s![.., 2..k + 2]),
        b: wide_b.slice(s![.., 3..k + 3]),
        out: wide.slice_mut(s![1..=m, 2..n + 2]),
        update,
    });

    let mut want = Array2::from_elem((m + 2, n + 3), f64::from(OUTSIDE));
    let added = if update == Update::Add { before.mapv(f64::from) } else { Array2::zeros((m, n)) };
    want.slice_mut(s![1..=m, 2..n + 2]).assign(&(naive(&a, &b) + added));
    let got = wide.mapv(f64::from);
    let wrong = got.indexed_iter().find(|&(at, &value)| value != want[at])?;
    let (name, add) = (isa.name(), update == Update::Add);
    Some(format!("{name}, m {m}, n {n}, k {k}, add {add}: {wrong:?}, want {}", want[wrong.0]))
}

fn check_all(cases: impl Iterator<Item = [usize; 3]> + Clone) {
    let mut wrong = Vec::new();
    for isa in Isa::available() {
        for case in cases.clone() {
            wrong.extend(check(isa, case, Update::Store));
            wrong.extend(check(isa, case, Update::Add));
        }
    }
    assert!(wrong.is_empty(), "{} cases failed:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn is_exact_on_whole_numbers() {
    let sizes = (0..=11).flat_map(|m| (0..=19).map(move |n| [m, n]));
    check_all(sizes.flat_map(|[m, n]| LENGTHS.into_iter().map(move |k| [m, n, k])));
}

#[test]
fn is_exact_on_larger_shapes() {
    let shapes =
        [[20, 121, 65], [64, 33, 130], [65, 60, 17], [127, 7, 9], [129, 1, 1], [3, 241, 8]];
    check_all(shapes.into_iter());
}

/// Rounding errors are small against the sum of the terms' magnitudes.
#[test]
fn is_close_on_fractions() {
    for isa in Isa::available() {
        for k in [1, 7, 16, 33, 500, 2000] {
            let [a, b] = [1, 2].map(|seed| numbers(7, k, seed).mapv(|v| v / 10.7 + 0.01));
            let mut out = Array2::from_elem((7, 7), f32::NAN);
            isa.run(Product {
                a: a.view(),
                b: b.view(),
                out: out.view_mut(),
                update: Update::Store,
            });
            let magnitude = naive(&a.mapv(f32::abs), &b.mapv(f32::abs));
            for (at, want) in naive(&a, &b).indexed_iter() {
                let error = (f64::from(out[at]) - want).abs() / magnitude[at];
                assert!(error < 2e-6, "{}, k {k}, {at:?}: error {error:e}", isa.name());
            }
        }
    }
}

/// An element is the same bit for bit wherever its rows stand.
#[test]
fn elements_do_not_depend_on_their_block() {
    for isa in Isa::available() {
        for k in LENGTHS {
            let a = numbers(1, k, 1).mapv(|v| v / 3.0);
            let b = numbers(1, k, 2).mapv(|v| v / 7.0);
            let product = |m: usize, n: usize| {
                let (a, b) =
                    (a.broadcast((m, k)).expect("rows"), b.broadcast((n, k)).expect("rows"));
                let mut out = Array2::from_elem((m, n), f32::NAN);
                isa.run(Product { a, b, out: out.view_mut(), update: Update::Store });
                out.mapv(f32::to_bits)
            };
            let alone = product(1, 1)[[0, 0]];
            for (m, n) in [(1, 9), (2, 2), (3, 5), (4, 13), (5, 6), (7, 17), (11, 8)] {
                let same = product(m, n).iter().all(|&bits| bits == alone);
                assert!(same, "{}, k {k}, block of {m} x {n}", isa.name());
            }
        }
    }
}

/// The promises of the documentation of [`tiling`].
#[test]
fn tiles_fit_blocks_and_caches() {
    for m in 0..400 {
        for k in [0, 1, 16, 256, 4096] {
            let tiles = tiling(m, k);
            assert!((1..=128).contains(&tiles.rows), "m {m}: {tiles:?}");
            assert!(tiles.columns >= 60, "m {m}: {tiles:?}");
            let work = tiles.rows * tiles.columns * k.max(1);
            assert!(work >= 1 << 19, "m {m}, k {k}: a tile of {work} is too small");
            assert_eq!(cost(tiles, k), (work / 16) as u64);
            for registers in [8, 16, 32] {
                let blocks = tiles.rows.div_ceil(block_rows(registers));
                let columns = block_columns(registers, tiles.rows.div_ceil(blocks));
                assert_eq!(tiles.columns % columns, 0, "m {m}, {registers} registers: {tiles:?}");
            }
        }
    }
}

#[test]
fn tiling_of_huge_sizes_does_not_overflow() {
    for (m, k) in [(usize::MAX, 0), (0, usize::MAX), (usize::MAX, usize::MAX), (1, 1 << 62)] {
        let tiles = tiling(m, k);
        assert!(tiles.rows >= 1 && tiles.columns >= 1, "{tiles:?}");
    }
}
