//! The vectors of every instruction set: lengths, lanes, arithmetic and the conversion of half.

mod common;

use blockcell_kernels::Isa;
use blockcell_kernels::simd::{Simd, WithSimd};
use common::compare::Failures;
use half::f16;

/// Fills what surrounds the elements that may be read or written.
const OUTSIDE: f32 = 77.0;

/// More lanes than any instruction set has.
const MANY: usize = 32;

/// Loads from a slice and stores into another.
struct Through<'a> {
    from: Slice<'a>,
    to: SliceMut<'a>,
}

enum Slice<'a> {
    Float(&'a [f32]),
    Half(&'a [f16]),
}

enum SliceMut<'a> {
    Float(&'a mut [f32]),
    Half(&'a mut [f16]),
}

impl WithSimd for Through<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let vector = match self.from {
            Slice::Float(from) => simd.load(from),
            Slice::Half(from) => simd.load_f16(from),
        };
        match self.to {
            SliceMut::Float(to) => simd.store(vector, to),
            SliceMut::Half(to) => simd.store_f16(vector, to),
        }
    }
}

/// `1, 2, ...`: every lane its own number, exact in half.
fn numbers() -> Vec<f32> {
    (0..MANY).map(|n| n as f32 + 1.0).collect()
}

fn halves(numbers: &[f32]) -> Vec<f16> {
    numbers.iter().map(|&number| f16::from_f32(number)).collect()
}

fn floats(halves: &[f16]) -> Vec<f32> {
    halves.iter().map(|half| half.to_f32()).collect()
}

#[test]
fn instruction_sets_have_their_lanes() {
    let lanes: Vec<_> = Isa::available().into_iter().map(Isa::lanes).collect();
    assert_eq!(lanes, [8, 8, 16][..lanes.len()]);
}

#[test]
fn load_reads_the_slice_and_fills_with_zeros() {
    let mut failures = Failures::default();
    for isa in Isa::available() {
        let lanes = isa.lanes();
        for len in 0..=MANY {
            let mut from = numbers();
            from[len..].fill(OUTSIDE);
            let mut want = vec![0.0; lanes];
            want[..len.min(lanes)].copy_from_slice(&from[..len.min(lanes)]);

            let mut float = vec![OUTSIDE; lanes];
            isa.run(Through { from: Slice::Float(&from[..len]), to: SliceMut::Float(&mut float) });
            failures.check(
                format!("{} f32, {len}", isa.name()),
                float == want,
                format!("{float:?}"),
            );

            let from = &halves(&from)[..len];
            let mut half = vec![OUTSIDE; lanes];
            isa.run(Through { from: Slice::Half(from), to: SliceMut::Float(&mut half) });
            failures.check(format!("{} f16, {len}", isa.name()), half == want, format!("{half:?}"));
        }
    }
    failures.finish();
}

#[test]
fn store_writes_the_slice_and_nothing_else() {
    let mut failures = Failures::default();
    let from = numbers();
    for isa in Isa::available() {
        let lanes = isa.lanes();
        for len in 0..=MANY {
            let mut want = vec![OUTSIDE; MANY + 2];
            want[1..][..len.min(lanes)].copy_from_slice(&from[..len.min(lanes)]);

            let mut float = vec![OUTSIDE; MANY + 2];
            let to = SliceMut::Float(&mut float[1..][..len]);
            isa.run(Through { from: Slice::Float(&from), to });
            failures.check(
                format!("{} f32, {len}", isa.name()),
                float == want,
                format!("{float:?}"),
            );

            let mut half = halves(&[OUTSIDE; MANY + 2]);
            let to = SliceMut::Half(&mut half[1..][..len]);
            isa.run(Through { from: Slice::Float(&from), to });
            let half = floats(&half);
            failures.check(format!("{} f16, {len}", isa.name()), half == want, format!("{half:?}"));
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
            isa.run(Through { from: Slice::Half(from), to: SliceMut::Float(&mut wide) });
            isa.run(Through { from: Slice::Float(&wide), to: SliceMut::Half(&mut narrow) });
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
            isa.run(Through { from: Slice::Float(&from), to: SliceMut::Half(&mut to) });
            for (&(from, want), got) in cases.iter().zip(to) {
                let message = format!("got {got:e}, want {want:e}");
                let right = got.to_bits() == want.to_bits();
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
