//! The vectors of every instruction set: lengths, lanes, arithmetic and the conversion of half and bfloat16.

mod common;

use blockcell_kernels::simd::{Simd, WithSimd};
use blockcell_kernels::{Isa, Storage};
use common::compare::Failures;
use half::{bf16, f16};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Fills what surrounds the elements that may be read or written.
const OUTSIDE: f32 = 77.0;

/// More lanes than any instruction set has.
const MANY: usize = 32;

/// Loads from a slice and stores into another.
struct Through<'a, A, B> {
    from: &'a [A],
    to: &'a mut [B],
}

impl<A: Storage, B: Storage> WithSimd for Through<'_, A, B> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        B::store(simd, A::load(simd, self.from), self.to);
    }
}

/// `1, 2, ...`: every lane its own number, exact in each type.
fn numbers() -> Vec<f32> {
    (0..MANY).map(|n| n as f32 + 1.0).collect()
}

fn stored<E: Storage>(numbers: &[f32]) -> Vec<E> {
    numbers.iter().map(|&number| E::from_f32(number)).collect()
}

fn floats<E: Storage>(elements: &[E]) -> Vec<f32> {
    elements.iter().map(|element| element.to_f32()).collect()
}

#[test]
fn instruction_sets_have_their_lanes() {
    let lanes: Vec<_> = Isa::available().into_iter().map(Isa::lanes).collect();
    let longest = if cfg!(target_arch = "x86_64") { 16 } else { 8 };
    assert_eq!(lanes, [8, 8, longest][..lanes.len()]);
}

#[test]
fn load_reads_the_slice_and_fills_with_zeros() {
    fn check<E: Storage>(failures: &mut Failures, isa: Isa, len: usize) {
        let lanes = isa.lanes();
        let mut from = numbers();
        from[len..].fill(OUTSIDE);
        let mut want = vec![0.0; lanes];
        want[..len.min(lanes)].copy_from_slice(&from[..len.min(lanes)]);
        let mut got = vec![OUTSIDE; lanes];
        isa.run(Through { from: &stored::<E>(&from)[..len], to: &mut got });
        let case = format!("{} {}, {len}", isa.name(), E::TYPE.name());
        failures.check(case, got == want, format!("{got:?}"));
    }
    for_all_types_and_lengths([check::<f32>, check::<f16>, check::<bf16>]);
}

#[test]
fn store_writes_the_slice_and_nothing_else() {
    fn check<E: Storage>(failures: &mut Failures, isa: Isa, len: usize) {
        let (from, lanes) = (numbers(), isa.lanes());
        let mut want = vec![OUTSIDE; MANY + 2];
        want[1..][..len.min(lanes)].copy_from_slice(&from[..len.min(lanes)]);
        let mut got = stored::<E>(&[OUTSIDE; MANY + 2]);
        isa.run(Through { from: &from, to: &mut got[1..][..len] });
        let got = floats(&got);
        let case = format!("{} {}, {len}", isa.name(), E::TYPE.name());
        failures.check(case, got == want, format!("{got:?}"));
    }
    for_all_types_and_lengths([check::<f32>, check::<f16>, check::<bf16>]);
}

fn for_all_types_and_lengths(checks: [fn(&mut Failures, Isa, usize); 3]) {
    let mut failures = Failures::default();
    for isa in Isa::available() {
        for len in 0..=MANY {
            checks.iter().for_each(|check| check(&mut failures, isa, len));
        }
    }
    failures.finish();
}

/// Every half there is, widened and narrowed again.
#[test]
fn half_survives_the_way_through_f32() {
    let mut failures = Failures::default();
    let all: Vec<_> = (0..=u16::MAX).map(f16::from_bits).collect();
    for isa in Isa::available() {
        for from in all.chunks(isa.lanes()) {
            let mut wide = vec![OUTSIDE; from.len()];
            let mut narrow = vec![f16::ZERO; from.len()];
            isa.run(Through { from, to: &mut wide });
            isa.run(Through { from: &wide, to: &mut narrow });
            for ((from, wide), narrow) in from.iter().zip(wide).zip(narrow) {
                let right = if from.is_nan() {
                    wide.is_nan() && narrow.is_nan()
                } else {
                    wide == value(*from) && narrow.to_bits() == from.to_bits()
                };
                let message = format!("became {wide:e}, {narrow:e}");
                failures.check(format!("{}, {from:e}", isa.name()), right, message);
            }
        }
    }
    failures.finish();
}

/// The number that a half which is not NaN stands for, from the definition of the format.
fn value(half: f16) -> f32 {
    let bits = half.to_bits();
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff) / 1024.0);
    sign * match exponent {
        0 => fraction * 2f32.powi(-14),
        31 => f32::INFINITY,
        _ => (1.0 + fraction) * 2f32.powi(exponent - 15),
    }
}

/// Between any two halves: what lies nearer to one becomes that one, and what lies in the middle
/// the one whose last bit is zero.
#[test]
fn rounding_to_half_is_to_nearest_ties_to_even() {
    let mut failures = Failures::default();
    let mut cases = Vec::new();
    for bits in 0..f16::INFINITY.to_bits() {
        let (low, high) = (f16::from_bits(bits), f16::from_bits(bits + 1));
        // Beyond the largest half the next step would be 65536; from the middle on, infinity.
        let next = if high.is_infinite() { 65536.0 } else { value(high) };
        let middle = (value(low) + next) / 2.0;
        let even = if bits % 2 == 0 { low } else { high };
        cases.extend([(middle.next_down(), low), (middle, even), (middle.next_up(), high)]);
    }
    cases.extend([(1e30, f16::INFINITY), (f32::INFINITY, f16::INFINITY), (1e-30, f16::ZERO)]);
    let mirrored: Vec<_> = cases.iter().map(|&(from, want)| (-from, -want)).collect();
    cases.extend(mirrored);
    for isa in Isa::available() {
        for cases in cases.chunks(isa.lanes()) {
            let from: Vec<_> = cases.iter().map(|&(from, _)| from).collect();
            let mut to = vec![f16::ZERO; from.len()];
            isa.run(Through { from: &from, to: &mut to });
            for (&(from, want), got) in cases.iter().zip(to) {
                let message = format!("got {got:e}, want {want:e}");
                let right = got.to_bits() == want.to_bits();
                failures.check(format!("{}, {from:e}", isa.name()), right, message);
            }
        }
    }
    failures.finish();
}

/// Every number in bfloat16, widened and narrowed again. It is the upper half of the bits of an `f32`.
#[test]
fn bfloat16_survives_the_way_through_f32() {
    let mut failures = Failures::default();
    let all: Vec<_> = (0..=u16::MAX).map(bf16::from_bits).collect();
    for isa in Isa::available() {
        for from in all.chunks(isa.lanes()) {
            let mut wide = vec![OUTSIDE; from.len()];
            let mut narrow = vec![bf16::ZERO; from.len()];
            isa.run(Through { from, to: &mut wide });
            isa.run(Through { from: &wide, to: &mut narrow });
            for ((from, wide), narrow) in from.iter().zip(wide).zip(narrow) {
                let bits = u32::from(from.to_bits()) << 16;
                let same = wide.to_bits() == bits && narrow.to_bits() == from.to_bits();
                let right = if from.is_nan() { wide.is_nan() && narrow.is_nan() } else { same };
                let message = format!("became {wide:e}, {narrow:e}");
                failures.check(format!("{}, {from:e}", isa.name()), right, message);
            }
        }
    }
    failures.finish();
}

/// Around every number in bfloat16 and every middle between two: what lies nearer to one becomes that one, and what
/// lies in the middle the one whose last bit is zero. NaN stays NaN with its sign, also one whose upper half is that of
/// an infinity.
#[test]
fn rounding_to_bfloat16_is_to_nearest_ties_to_even() {
    let mut failures = Failures::default();
    let mut cases = Vec::new();
    for upper in 0..=u16::MAX {
        for lower in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
            let from = f32::from_bits(u32::from(upper) << 16 | lower);
            let is_up = lower > 0x8000 || lower == 0x8000 && upper % 2 == 1;
            // Past the largest number comes infinity.
            let want = if is_up && !from.is_nan() { upper + 1 } else { upper };
            cases.push((from, bf16::from_bits(want)));
        }
    }
    for isa in Isa::available() {
        for cases in cases.chunks(isa.lanes()) {
            let from: Vec<_> = cases.iter().map(|&(from, _)| from).collect();
            let mut to = vec![bf16::ZERO; from.len()];
            isa.run(Through { from: &from, to: &mut to });
            for (&(from, want), got) in cases.iter().zip(to) {
                let message = format!("got {got:e}, want {want:e}");
                let right = if from.is_nan() {
                    got.is_nan() && got.is_sign_negative() == from.is_sign_negative()
                } else {
                    got.to_bits() == want.to_bits()
                };
                failures.check(format!("{}, {from:e}", isa.name()), right, message);
            }
        }
    }
    failures.finish();
}

/// All operations on full vectors.
struct Arithmetic<'a> {
    a: &'a [f32],
    b: &'a [f32],
    c: &'a [f32],
}

/// Results of [`Arithmetic`], those of single lanes in the first `lanes` elements.
#[derive(Default)]
struct Results {
    splat: [f32; MANY],
    add: [f32; MANY],
    sub: [f32; MANY],
    mul: [f32; MANY],
    mul_add: [f32; MANY],
    sum: f32,
}

impl WithSimd<Results> for Arithmetic<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Results {
        let [a, b, c] = [self.a, self.b, self.c].map(|from| simd.load(from));
        let mut results = Results::default();
        simd.store(simd.splat(self.a[0]), &mut results.splat);
        simd.store(a + b, &mut results.add);
        simd.store(a - b, &mut results.sub);
        simd.store(a * b, &mut results.mul);
        simd.store(simd.mul_add(a, b, c), &mut results.mul_add);
        results.sum = simd.sum(a);
        results
    }
}

#[test]
fn arithmetic_is_that_of_every_lane() {
    let mut failures = Failures::default();
    let values = |n: u32| -> Vec<f32> {
        (0..MANY as u32).map(|k| 1.0 / ((k * 7 + n * 13) % 31 + 3) as f32 - 0.1).collect()
    };
    let [a, b, c] = [values(1), values(2), values(3)];
    for isa in Isa::available() {
        let lanes = isa.lanes();
        let results = isa.run(Arithmetic { a: &a, b: &b, c: &c });
        let each = |f: &dyn Fn(f32, f32, f32) -> f32| -> Vec<f32> {
            (0..lanes).map(|k| f(a[k], b[k], c[k])).collect()
        };
        let fused = isa.name() != "portable";
        for (name, got, want) in [
            ("splat", results.splat, each(&|_, _, _| a[0])),
            ("add", results.add, each(&|a, b, _| a + b)),
            ("sub", results.sub, each(&|a, b, _| a - b)),
            ("mul", results.mul, each(&|a, b, _| a * b)),
            (
                "mul_add",
                results.mul_add,
                each(&|a, b, c| if fused { a.mul_add(b, c) } else { a * b + c }),
            ),
        ] {
            let message = format!("got {:?}, want {want:?}", &got[..lanes]);
            failures.check(format!("{} {name}", isa.name()), got[..lanes] == want[..], message);
        }
    }
    failures.finish();
}

#[test]
fn sum_takes_every_lane_once() {
    let mut failures = Failures::default();
    for isa in Isa::available() {
        let lanes = isa.lanes();
        for lane in 0..lanes {
            // Powers of two tell the lanes apart.
            let mut a = vec![0.0; lanes];
            a[lane] = 2f32.powi(lane as i32);
            let got = isa.run(Arithmetic { a: &a, b: &a, c: &a }).sum;
            failures.check(format!("{}, lane {lane}", isa.name()), got == a[lane], got);
        }
        let a: Vec<_> = (0..lanes).map(|lane| 2f32.powi(lane as i32)).collect();
        let got = isa.run(Arithmetic { a: &a, b: &a, c: &a }).sum;
        let want = 2f32.powi(lanes as i32) - 1.0;
        failures.check(format!("{}, all lanes", isa.name()), got == want, got);
    }
    failures.finish();
}

/// Operations on the first lanes of three slices.
struct OfLanes<'a> {
    names: &'a [&'static str],
    from: [&'a [f32]; 3],
}

/// The lanes of each, and how precise estimates are.
impl WithSimd<(Vec<Vec<f32>>, u32)> for OfLanes<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> (Vec<Vec<f32>>, u32) {
        let [a, b, c] = self.from.map(|from| simd.load(from));
        let mut results = Vec::new();
        for &name in self.names {
            let result = match name {
                "div" => a / b,
                "neg_mul_add" => simd.neg_mul_add(a, b, c),
                "max" => simd.max(a, b),
                "min" => simd.min(a, b),
                "abs" => simd.abs(a),
                "where_within" => simd.where_within(a, b, c),
                "copysign" => simd.copysign(simd.abs(a), b),
                "first of both" => simd.interleave(a, b)[0],
                "rest of both" => simd.interleave(a, b)[1],
                "round" => simd.round(a),
                "power_of_2" => simd.power_of_2(a),
                "scale" => simd.scale(a, b),
                "reciprocal_estimate" => simd.reciprocal_estimate(a),
                _ => unreachable!("no operation {name}"),
            };
            let mut lanes = vec![0.0; S::LANES];
            simd.store(result, &mut lanes);
            results.push(lanes);
        }
        (results, S::ESTIMATE_BITS)
    }
}

/// Checks operations on the lanes of `a`, `b` and `c`, those that `want` tells, by its test of what each lane became.
fn check_lanes(
    [a, b, c]: [&[f32]; 3],
    names: &[&'static str],
    right: impl Fn(Isa, &str, [f32; 3], f32, u32) -> bool,
) {
    let mut failures = Failures::default();
    for isa in Isa::available() {
        let all = a.chunks(isa.lanes()).zip(b.chunks(isa.lanes())).zip(c.chunks(isa.lanes()));
        for ((a, b), c) in all {
            let (results, bits) = isa.run(OfLanes { names, from: [a, b, c] });
            for (name, got) in names.iter().zip(results) {
                for (n, ((&a, &b), &c)) in a.iter().zip(b).zip(c).enumerate() {
                    let is_right = right(isa, name, [a, b, c], got[n], bits);
                    let message = format!("got {:e}", got[n]);
                    failures.check(
                        format!("{} {name}, {a:e} {b:e} {c:e}", isa.name()),
                        is_right,
                        message,
                    );
                }
            }
        }
    }
    failures.finish();
}

/// All pairs of numbers that are special, with bounds.
#[test]
fn lanes_of_special_numbers() {
    let special = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN_POSITIVE,
        -1e-40,
        0.0,
        -0.0,
        1.5,
        -2.5,
        -f32::NAN,
    ];
    let triples = special.iter().flat_map(|&a| special.iter().map(move |&b| (a, b)));
    let triples = triples.flat_map(|(a, b)| [0.0, 2.0, f32::NAN, -1.0].map(|c| (a, b, c)));
    let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
    for (first, second, third) in triples {
        a.push(first);
        b.push(second);
        c.push(third);
    }
    let names = ["div", "max", "min", "abs", "where_within", "copysign"];
    check_lanes([&a, &b, &c], &names, |_, name, [a, b, c], got, _| {
        let want = match name {
            "div" => a / b,
            "max" => {
                if a > b {
                    a
                } else {
                    b
                }
            }
            "min" => {
                if a < b {
                    a
                } else {
                    b
                }
            }
            "abs" => a.abs(),
            "where_within" => {
                if b.abs() <= c {
                    a
                } else {
                    0.0
                }
            }
            _ => a.abs().copysign(b),
        };
        // The sign of a NaN is not told.
        same(got.to_bits(), want.to_bits())
    });
}

#[test]
fn lanes_are_in_turn() {
    let (a, b) = (numbers(), numbers().iter().map(|n| -n).collect::<Vec<_>>());
    for isa in Isa::available() {
        let lanes = isa.lanes();
        let names = &["first of both", "rest of both"];
        let (results, _) = isa.run(OfLanes { names, from: [&a, &b, &a] });
        let got = results.concat();
        let want: Vec<_> = a.iter().zip(&b).flat_map(|(&a, &b)| [a, b]).take(2 * lanes).collect();
        assert_eq!(got, want, "{}", isa.name());
    }
}

/// Random numbers of all magnitudes that matter to each operation.
#[test]
fn lanes_of_random_numbers() {
    let mut random = SmallRng::seed_from_u64(5);
    let mut many = |from: f32, to: f32| -> Vec<f32> {
        (0..4096).map(|_| random.random_range(from..to)).collect()
    };
    let [a, b, c] = [many(-2.0, 2.0), many(0.5, 2.0), many(-2.0, 2.0)];
    check_lanes([&a, &b, &c], &["div", "neg_mul_add"], |isa, name, [a, b, c], got, _| {
        let in_double = (f64::from(c) - f64::from(a) * f64::from(b)) as f32;
        match name {
            "div" => got == a / b,
            _ if isa.name() == "portable" => got == in_double,
            _ => got == (-a).mul_add(b, c),
        }
    });
    let halves: Vec<_> = (-4000..4000).map(|n| n as f32 / 2.0).collect();
    check_lanes([&many(-4e6, 4e6), &b, &c], &["round"], |_, _, [a, ..], got, _| {
        got == a.round_ties_even()
    });
    check_lanes([&halves, &halves, &halves], &["round"], |_, _, [a, ..], got, _| {
        got == a.round_ties_even()
    });
    let exponents: Vec<_> = (-160..128).map(|n| n as f32).collect();
    check_lanes([&exponents; 3], &["power_of_2"], |_, _, [n, ..], got, _| {
        let want = 2f64.powf(f64::from(n)) as f32;
        got == want || n < -126.0 && got == f32::MIN_POSITIVE
    });
    let magnitudes: Vec<_> = many(-1.0, 1.0).into_iter().zip(many(-80.0, 80.0)).collect();
    let magnitudes: Vec<_> = magnitudes.into_iter().map(|(a, n)| a * 2f32.powf(n)).collect();
    let exponents: Vec<_> = many(-252.0, 252.0).into_iter().map(f32::round).collect();
    check_lanes([&magnitudes, &exponents, &c], &["scale"], |_, _, [a, n, _], got, _| {
        got == (f64::from(a) * 2f64.powf(f64::from(n))) as f32
    });
    check_lanes([&magnitudes, &b, &c], &["reciprocal_estimate"], |_, _, [a, ..], got, bits| {
        let error = f64::from(got) * f64::from(a) - 1.0;
        error.abs() <= 0.5f64.powi(bits.min(23) as i32)
    });
}

/// Operations on pairs of numbers in bfloat16.
struct OfPairs<'a> {
    a: &'a [f32],
    b: &'a [f32],
    c: &'a [f32],
}

/// The bits of the lanes of `pairs(a, b)`, `neighbours(a, b)`, `add_pairs(a, b, c)` and `unpair(a)`.
impl WithSimd<[Vec<u32>; 5]> for OfPairs<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> [Vec<u32>; 5] {
        let [a, b, c] = [self.a, self.b, self.c].map(|lanes| simd.load(lanes));
        let [low, high] = simd.unpair(a);
        let sums = simd.add_pairs(a, b, c);
        let results = [simd.pairs(a, b), simd.neighbours(a, b), sums, low, high];
        results.map(|vector| {
            let mut lanes = vec![0.0; S::LANES];
            simd.store(vector, &mut lanes);
            lanes.into_iter().map(f32::to_bits).collect()
        })
    }
}

/// Bits of all kinds of numbers: any at all, such as are near each other, near the least normal one, and special ones.
fn bits_of_all_kinds(numbers: &mut SmallRng, kind: u32) -> u32 {
    const SPECIAL: [u32; 12] =
        [0, 1, 0x7f, 0x80, 0x3f80, 0x3f00, 0x7f7f, 0x7f80, 0x7f81, 0x7fc5, 0x8001, 0xff80];
    let any: u32 = numbers.random();
    let with_exponent = |exponent: u32| any & 0x807f_ffff | exponent << 23;
    match kind {
        0 => any,
        1 => with_exponent(numbers.random_range(120..136)),
        2 => with_exponent(numbers.random_range(0..30)),
        3 => with_exponent(numbers.random_range(52..82)),
        _ => SPECIAL[any as usize % 12] << 16 | SPECIAL[(any >> 8) as usize % 12],
    }
}

/// What is the same where any NaN is.
fn same(got: u32, want: u32) -> bool {
    got == want || f32::from_bits(got).is_nan() && f32::from_bits(want).is_nan()
}

/// Where the processor has the instructions, the model computes what they do, bit for bit. Others round as they do.
#[test]
fn pairs_are_those_of_the_model() {
    let mut failures = Failures::default();
    let (model, mut numbers) = (Isa::model(), SmallRng::seed_from_u64(1));
    let lanes = model.lanes();
    for isa in Isa::choices() {
        for case in 0..if isa.has_pairs() { 200_000 } else { 20_000 } {
            let kind = case % 5;
            let mut lane = || {
                let others = if kind == 3 { numbers.random_range(2..4) } else { kind };
                f32::from_bits(bits_of_all_kinds(&mut numbers, others))
            };
            let [a, b, c] = [0; 3].map(|_| (0..MANY).map(|_| lane()).collect::<Vec<_>>());
            let got = isa.run_pairs(OfPairs { a: &a, b: &b, c: &c });
            let all = isa.lanes();
            for at in (0..all).step_by(lanes) {
                let part = at..at + lanes;
                // Neighbours of the lanes of `a`, then of those of `b`.
                let both = [&a[..all], &b[..all]].concat();
                let [first, rest] = [2 * at, 2 * at + lanes].map(|at| &both[at..at + lanes]);
                let of = |a, b, c| model.run_pairs(OfPairs { a, b, c });
                let [pairs, _, sums, low, high] =
                    of(&a[part.clone()], &b[part.clone()], &c[part.clone()]);
                let [_, neighbours, ..] = of(first, rest, rest);
                let wants = [(pairs, 2), (neighbours, 2), (sums, 1), (low, 2), (high, 2)];
                for (got, (want, halves)) in got.iter().zip(wants) {
                    let got = &got[part.clone()];
                    let right = got.iter().zip(&want).all(|(&got, &want)| match halves {
                        1 => same(got, want),
                        _ => got == want,
                    });
                    if !right {
                        failures.check(
                            format!("{}, {case}", isa.name()),
                            false,
                            format!("{got:x?}, want {want:x?}"),
                        );
                    }
                }
            }
        }
        failures.check(isa.name(), true, "");
    }
    failures.finish();
}

/// The model by itself: numbers are rounded to nearest, ties to even, and products added to sums, the upper ones first.
#[test]
fn pairs_round_and_add() {
    let rounded = |value: f32| {
        let [pairs, ..] = Isa::model().run_pairs(OfPairs { a: &[1.0; 8], b: &[value; 8], c: &[] });
        f32::from_bits(pairs[0] & 0xffff_0000)
    };
    for (value, want) in [
        (1.0, 1.0),
        (1.0 + 1.0 / 256.0, 1.0),
        (1.0 + 3.0 / 256.0, 1.0 + 4.0 / 256.0),
        (1.0 + 1.01 / 256.0, 1.0 + 2.0 / 256.0),
        (-0.3, -0.300_781_25),
        (f32::MAX, f32::INFINITY),
        (f32::MIN, f32::NEG_INFINITY),
        // The largest number that does not become infinite.
        (f32::from_bits(0x7f7f_7fff), f32::from_bits(0x7f7f_0000)),
        (f32::from_bits(0x007f_ffff), 0.0),
        (f32::MIN_POSITIVE, f32::MIN_POSITIVE),
    ] {
        assert_eq!(rounded(value), want, "{value:e}");
    }
    assert!(rounded(f32::from_bits(0x7f80_0001)).is_nan());
    let pair = |low: f32, high: f32| f32::from_bits(low.to_bits() >> 16 | high.to_bits());
    let sum = |a: [f32; 2], b: [f32; 2], c: f32| {
        let [a, b] = [a, b].map(|[low, high]| [pair(low, high); 8]);
        let [_, _, sums, ..] = Isa::model().run_pairs(OfPairs { a: &a, b: &b, c: &[c; 8] });
        f32::from_bits(sums[0])
    };
    assert_eq!(sum([2.0, 3.0], [0.5, -7.0], 10.0), -10.0);
    let small = 2f32.powi(-24);
    assert_eq!(sum([small, -1.0], [1.0, 1.0], 1.0), small);
    assert_eq!(sum([-1.0, small], [1.0, 1.0], 1.0), 0.0);
    assert_eq!(sum([f32::INFINITY, 1.0], [1.0, 1.0], 0.0), f32::INFINITY);
    assert!(sum([f32::INFINITY, 1.0], [0.0, 1.0], 0.0).is_nan());
    let least = f32::MIN_POSITIVE;
    assert_eq!(sum([1.0, 0.5], [least, 0.0], 0.0), least);
    assert_eq!(sum([0.5, 0.0], [least, 0.0], 0.0), 0.0);
}

/// Operations on four terms in int8.
struct OfQuads<'a> {
    a: &'a [f32],
    b: &'a [[i8; 4]],
    c: &'a [i32],
}

/// The int32 of the lanes of `add_quads`, the numbers that these are, and what is added to terms of `a`.
impl WithSimd<(Vec<i32>, Vec<f32>, i32)> for OfQuads<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> (Vec<i32>, Vec<f32>, i32) {
        let bits = |lanes: Vec<u32>| lanes.into_iter().map(f32::from_bits).collect::<Vec<_>>();
        let b = self.b.iter().map(|terms| u32::from_le_bytes(terms.map(i8::cast_unsigned)));
        let c = self.c.iter().map(|sum| sum.cast_unsigned());
        let (b, c) = (bits(b.collect()), bits(c.collect()));
        let mut terms = self.a.chunks(S::LANES).map(|terms| simd.load(terms));
        let a = simd.quads(std::array::from_fn(|_| terms.next().expect("four vectors")));
        let sums = simd.add_quads(a, simd.load(&b), simd.load(&c));
        let (mut integers, mut floats) = (vec![0.0; S::LANES], vec![0.0; S::LANES]);
        simd.store(sums, &mut integers);
        simd.store(simd.of_integers(sums), &mut floats);
        let integers = integers.into_iter().map(|lane| lane.to_bits().cast_signed());
        (integers.collect(), floats, S::QUAD_OFFSET)
    }
}

/// The largest terms of either sign, zeros, halves between two integers, and random ones: on every instruction set the sums
/// are those of integers.
#[test]
fn sums_of_quads_are_exact() {
    let mut rng = SmallRng::seed_from_u64(11);
    let mut failures = Failures::default();
    for isa in Isa::choices() {
        let lanes = isa.lanes();
        for case in 0..200 {
            let mut term = || match case {
                0 | 1 => 127.0,
                2 | 3 => -127.0,
                4..40 => [-127.0, 127.0, 0.0][rng.random_range(0..3)],
                40..80 => rng.random_range(-127..127) as f32 + 0.5,
                _ => rng.random_range(-127.0..=127.0),
            };
            let a: Vec<f32> = (0..4 * lanes).map(|_| term()).collect();
            let mut weight = || match case {
                0 | 2 => 127,
                1 | 3 => -127,
                4..40 => [-127, 127, 0][rng.random_range(0..3)],
                _ => rng.random_range(-127..=127),
            };
            let b: Vec<[i8; 4]> = (0..lanes).map(|_| [(); 4].map(|()| weight())).collect();
            let c: Vec<i32> = (0..lanes).map(|_| rng.random_range(-1 << 30..1 << 30)).collect();
            let (sums, floats, offset) = isa.run_quads(OfQuads { a: &a, b: &b, c: &c });
            let want = a.as_chunks::<4>().0.iter().zip(&b).zip(&c).map(|((a, b), c)| {
                let products = a
                    .iter()
                    .zip(b)
                    .map(|(a, &b)| (a.round_ties_even() as i32 + offset) * i32::from(b));
                c + products.sum::<i32>()
            });
            let want: Vec<i32> = want.collect();
            let right = sums == want
                && floats.iter().eq(&want.iter().map(|&n| n as f32).collect::<Vec<_>>());
            failures.check(
                format!("{}, {case}", isa.name()),
                right,
                format!("{sums:?}, want {want:?}"),
            );
        }
    }
    failures.finish();
}
