use half::{bf16, f16};
use ndarray::{Array2, s};

use super::{Computed, Elements, Equation, map};
use crate::simd::Simd;
use crate::tuning::{PASS_ELEMENTS, SUM_COLUMNS, SUM_ROWS};
use crate::{Context, Executor, Isa, Serial, Storage};

/// `p = 2a - b`, `q += a`; sums of `a` and of `a * b`.
#[derive(Clone, Copy)]
struct Sample;

impl Equation<2, 2, 2> for Sample {
    #[inline(always)]
    fn apply<S: Simd>(self, _: S, at: Elements<S::F32, 2, 2>) -> Computed<S::F32, 2, 0, 2> {
        let Elements { inputs: [a, b], before: [_, q], .. } = at;
        ([a + a - b, q + a], [], [a, a * b])
    }
}

/// [`Sample`] without its sums: these are tiled by rows, those with sums by columns.
#[derive(Clone, Copy)]
struct NoSums<const PAIRS: bool>;

impl<const PAIRS: bool> Equation<2, 2> for NoSums<PAIRS> {
    const PAIR_VECTORS: bool = PAIRS;

    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 2, 2>) -> Computed<S::F32, 2> {
        (Sample.apply(simd, at).0, [], [])
    }
}

/// Around vectors of eight and sixteen lanes, and around a tile's columns.
const COLUMNS: [usize; 12] = [0, 1, 7, 8, 9, 15, 16, 17, 33, 64, 65, 130];

fn shapes() -> Vec<(usize, usize)> {
    let rows = [0, 1, 2, 5, SUM_ROWS - 1, SUM_ROWS, SUM_ROWS + 1];
    let mut all: Vec<_> = rows.into_iter().flat_map(|m| COLUMNS.map(|n| (m, n))).collect();
    // Several tiles.
    all.extend([SUM_COLUMNS - 1, SUM_COLUMNS, SUM_COLUMNS + 1, 600].map(|n| (3, n)));
    all.extend([
        (1, PASS_ELEMENTS - 1),
        (1, PASS_ELEMENTS),
        (2, PASS_ELEMENTS + 1),
        (PASS_ELEMENTS, 3),
        (300, 150),
    ]);
    all
}

/// Whole numbers, small enough for every result and sum to be exact in `f32`.
fn numbers(shape: (usize, usize), seed: usize) -> Array2<f32> {
    Array2::from_shape_fn(shape, |(i, j)| ((i * 5 + j * 3 + i * j + seed) % 11) as f32 - 5.0)
}

fn pools() -> Vec<Box<dyn Executor>> {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    vec![Box::new(Serial), Box::new(pool(2).expect("threads")), Box::new(pool(3).expect("threads"))]
}

fn to<E: Storage>(matrix: &Array2<f32>) -> Array2<E> {
    matrix.mapv(E::from_f32)
}

/// What [`run`] runs.
#[derive(Clone, Copy, PartialEq)]
enum Which {
    WithSums,
    WithoutSums,
    /// Two vectors at a time, and short rows as one.
    InPairs,
}

/// Runs the equations on matrices that are parts of wider ones, and returns `p`, `q`, the sums, and
/// whether what surrounds them is as before.
fn run<E: Storage>(
    context: &Context<'_>,
    [a, b, q]: [&Array2<f32>; 3],
    which: Which,
) -> ([Array2<f32>; 4], bool) {
    const OUTSIDE: f32 = 99.0;
    let (m, n) = a.dim();
    let mut wide = to::<E>(&Array2::from_elem((m, 2 * n + 3), OUTSIDE));
    wide.slice_mut(s![.., 1..=n]).fill(E::from_f32(f32::NAN));
    wide.slice_mut(s![.., n + 2..2 * n + 2]).assign(&to::<E>(q));
    let mut sums = [0, 1].map(|_| to::<E>(&Array2::from_elem((1, n), f32::NAN)));
    let (a, b) = (to::<E>(a), to::<E>(b));
    let (p, q) = wide.multi_slice_mut((s![.., 1..=n], s![.., n + 2..2 * n + 2]));
    let inputs = [a.view(), b.view()];
    match which {
        Which::WithSums => {
            map(context, Sample, inputs, [p, q], sums.each_mut().map(|sum| sum.view_mut()));
        }
        Which::WithoutSums => map(context, NoSums::<false>, inputs, [p, q], []),
        Which::InPairs => map(context, NoSums::<true>, inputs, [p, q], []),
    }
    let wide = wide.mapv(E::to_f32);
    let around =
        [0, n + 1, 2 * n + 2].map(|column| wide.column(column).iter().all(|&v| v == OUTSIDE));
    let [first, second] = sums.map(|sum| sum.mapv(E::to_f32));
    let p = wide.slice(s![.., 1..=n]).to_owned();
    let q = wide.slice(s![.., n + 2..2 * n + 2]).to_owned();
    ([p, q, first, second], around == [true; 3])
}

/// The same by `ndarray`, in whole numbers.
fn want<E: Storage>([a, b, q]: [&Array2<f32>; 3]) -> [Array2<f32>; 4] {
    let columns =
        |matrix: &Array2<f32>| matrix.sum_axis(ndarray::Axis(0)).insert_axis(ndarray::Axis(0));
    let round = |matrix: Array2<f32>| to::<E>(&matrix).mapv(E::to_f32);
    [a * 2.0 - b, q + a, columns(a), columns(&(a * b))].map(round)
}

fn check<E: Storage>(name: &str, which: Which) {
    let mut wrong = Vec::new();
    for shape in shapes() {
        let [a, b, q] = [1, 2, 3].map(|seed| numbers(shape, seed));
        let want = want::<E>([&a, &b, &q]);
        for isa in Isa::available() {
            for (n, executor) in pools().iter().enumerate() {
                let context = Context::new(isa, &**executor);
                let (got, around) = run::<E>(&context, [&a, &b, &q], which);
                let compared = if which == Which::WithSums { 4 } else { 2 };
                if got[..compared] != want[..compared] || !around {
                    wrong.push(format!("{name}, {shape:?}, {}, executor {n}", isa.name()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases failed:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn float_with_sums() {
    check::<f32>("f32", Which::WithSums);
}

#[test]
fn float_without_sums() {
    check::<f32>("f32", Which::WithoutSums);
}

#[test]
fn half_with_sums() {
    check::<f16>("f16", Which::WithSums);
}

#[test]
fn bfloat16_with_sums() {
    check::<bf16>("bf16", Which::WithSums);
}

#[test]
fn half_without_sums() {
    check::<f16>("f16", Which::WithoutSums);
}

#[test]
fn bfloat16_without_sums() {
    check::<bf16>("bf16", Which::WithoutSums);
}

#[test]
fn float_in_pairs() {
    check::<f32>("f32", Which::InPairs);
}

#[test]
fn half_in_pairs() {
    check::<f16>("f16", Which::InPairs);
}

#[test]
fn bfloat16_in_pairs() {
    check::<bf16>("bf16", Which::InPairs);
}

/// Inputs may be one row for all, as peephole weights are, and matrices may have no gaps.
#[test]
fn rows_may_be_broadcast() {
    for columns in [1, 4, 9, 20, 70] {
        let row = numbers((1, columns), 4);
        let shape = (150, columns);
        let (a, q) = (numbers(shape, 1), numbers(shape, 2));
        let b = row.broadcast(shape).expect("rows");
        let want = want::<f32>([&a, &b.to_owned(), &q]);
        for isa in Isa::available() {
            let context = Context::new(isa, &Serial);
            let mut got = [(); 2].map(|()| [Array2::from_elem(shape, f32::NAN), q.clone()]);
            let [[p, q], [p_in_pairs, q_in_pairs]] = &mut got;
            let inputs = [a.view(), b];
            map(&context, NoSums::<false>, inputs, [p.view_mut(), q.view_mut()], []);
            let outputs = [p_in_pairs.view_mut(), q_in_pairs.view_mut()];
            map(&context, NoSums::<true>, inputs, outputs, []);
            for got in got {
                assert_eq!(got, want[..2], "{columns} columns, {}", isa.name());
            }
        }
    }
}

/// The sum of a large batch is taken in parts. One running sum would not be as precise as this test demands.
#[test]
fn long_sums_keep_their_digits() {
    const TOLERANCE: f64 = 1e-4;
    let a = Array2::from_elem((200_000, 1), 0.1_f32);
    let zeros = Array2::zeros(a.dim());
    let want = 200_000.0 * f64::from(0.1_f32);
    let error = |sum: f32| (f64::from(sum) - want).abs() / want;
    assert!(error(a.iter().fold(0.0, |sum, &value| sum + value)) > TOLERANCE);
    for isa in Isa::available() {
        let context = Context::new(isa, &Serial);
        let ([_, _, sum, _], _) = run::<f32>(&context, [&a, &zeros, &zeros], Which::WithSums);
        let error = error(sum[[0, 0]]);
        assert!(error < TOLERANCE, "{}: {error:e}", isa.name());
    }
}
