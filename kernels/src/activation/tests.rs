use super::{sigmoid, tanh};
use crate::Isa;
use crate::simd::{Simd, WithSimd};

type Named = (&'static str, fn(f64) -> f64);

const FUNCTIONS: [Named; 2] = [("sigmoid", exact_sigmoid), ("tanh", f64::tanh)];

fn exact_sigmoid(x: f64) -> f64 {
    if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
}

/// `[sigmoid, tanh]` of up to one vector of arguments, in place.
struct Both<'a>(&'a mut [[f32; 64]; 2]);

impl WithSimd for Both<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let [sigmoids, tanhs] = self.0;
        for at in (0..64).step_by(S::LANES) {
            let lanes = &mut sigmoids[at..at + S::LANES];
            simd.store(sigmoid(simd, simd.load(lanes)), lanes);
            let lanes = &mut tanhs[at..at + S::LANES];
            simd.store(tanh(simd, simd.load(lanes)), lanes);
        }
    }
}

/// The distance in units in the last place of the exact value, at least those of the least normal
/// number: below it TensorFlow's threads flush to zero.
fn ulps(got: f32, exact: f64) -> f64 {
    let magnitude = exact.abs().max(f64::from(f32::MIN_POSITIVE));
    let ulp = 2f64.powi(magnitude.log2().floor() as i32 - 23);
    (f64::from(got) - exact).abs() / ulp
}

/// The largest error of each function over the floats whose bits are `bits`.
fn worst(isa: Isa, bits: impl Iterator<Item = u32>) -> [(f64, f32); 2] {
    let mut worst = [(0.0, 0.0); 2];
    let mut bits = bits.peekable();
    while bits.peek().is_some() {
        let mut arguments = [0.0f32; 64];
        for (argument, bits) in arguments.iter_mut().zip(&mut bits) {
            *argument = f32::from_bits(bits);
        }
        let mut results = [arguments; 2];
        isa.run(Both(&mut results));
        for ((worst, results), (name, exact)) in worst.iter_mut().zip(results).zip(FUNCTIONS) {
            for (x, got) in arguments.into_iter().zip(results) {
                if x.is_nan() {
                    assert!(got.is_nan(), "{name}({x}) on {}", isa.name());
                    continue;
                }
                let error = ulps(got, exact(f64::from(x)));
                assert!(!error.is_nan(), "{name}({x}) = {got} on {}", isa.name());
                if error > worst.0 {
                    *worst = (error, x);
                }
            }
        }
    }
    worst
}

fn check(step: usize) {
    for isa in Isa::available() {
        let worst = worst(isa, (0..=u32::MAX).step_by(step));
        for ((ulps, x), (name, _)) in worst.into_iter().zip(FUNCTIONS) {
            println!("{name} on {}: at most {ulps:.3} ulp, at {x:e}", isa.name());
            assert!(ulps <= 2.0, "{name}({x:e}) on {} is off by {ulps} ulp", isa.name());
        }
    }
}

#[test]
fn within_2_ulp_of_float64() {
    check(997);
}

#[test]
#[ignore = "all of float32: minutes"]
fn within_2_ulp_of_float64_everywhere() {
    check(1);
}

#[test]
fn signs_and_limits() {
    for isa in Isa::available() {
        let arguments = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, 20.0, 100.0, -200.0];
        let mut results = [[0.0; 64]; 2];
        for result in &mut results {
            result[..arguments.len()].copy_from_slice(&arguments);
        }
        isa.run(Both(&mut results));
        assert_eq!(results[0][..7], [0.5, 0.5, 1.0, 0.0, 1.0, 1.0, 0.0], "on {}", isa.name());
        assert_eq!(results[1][..7], [0.0, 0.0, 1.0, -1.0, 1.0, 1.0, -1.0], "on {}", isa.name());
        assert!(results[1][1].is_sign_negative(), "tanh(-0) on {}", isa.name());
    }
}
