//! The logistic function, the hyperbolic tangent and their like on vectors: the first two within 2 ulp everywhere.
//!
//! They split their argument as n ln 2 + r with |r| <= ln 2 / 2 and compute `e^r - 1` by a polynomial. The result
//! is a quotient. The processor estimates the reciprocal of its denominator, and Newton's method refines that. The
//! polynomial is a minimax fit of the relative error (Lawson's iteration on Chebyshev nodes), rounded to `f32`.

mod choice;

pub use choice::{Activation, Activations};
pub(crate) use choice::{Functions, Usual};

use crate::simd::Simd;

/// `1 / (1 + e^-x)`. Infinities give 0 and 1, NaN gives NaN.
#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    let one = simd.splat(1.0);
    // Below -104 the result is under half the least subnormal number; above 30 it rounds to 1. In
    // this order of operands NaN survives.
    let x = simd.min(simd.splat(30.0), simd.max(simd.splat(-104.0), x));
    let (n, r) = reduce(simd, x);
    // S(x) = 2^n / (2^n + e^-r), which loses no digits for either sign of x.
    let power = simd.power_of_2(n);
    let exp = one + exp_minus_1(simd, r, -1.0);
    // Newton's method on the exact denominator: its own rounding does not matter.
    let estimate = simd.reciprocal_estimate(power + exp);
    let error = simd.neg_mul_add(estimate, exp, simd.neg_mul_add(estimate, power, one));
    simd.scale(refine(simd, estimate, error), n)
}

/// The hyperbolic tangent. Infinities give -1 and 1, NaN gives NaN, zeros keep their sign.
#[inline(always)]
pub(crate) fn tanh<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    let one = simd.splat(1.0);
    let magnitude = simd.abs(x);
    // Above 10 the result rounds to 1. In this order of operands NaN survives.
    let twice = simd.min(simd.splat(20.0), magnitude + magnitude);
    let (n, r) = reduce(simd, twice);
    // m = e^2|x| - 1 loses no digits near zero, where n is 0, and little elsewhere; tanh |x| is
    // m / (m + 2).
    let power = simd.power_of_2(n);
    let m = simd.mul_add(power, exp_minus_1(simd, r, 1.0), power - one);
    let two = simd.splat(2.0);
    let denominator = m + two;
    let estimate = simd.reciprocal_estimate(denominator);
    let reciprocal = match S::ESTIMATE_BITS {
        ..14 => refine(simd, estimate, simd.neg_mul_add(estimate, denominator, one)),
        _ => estimate,
    };
    // One step of Newton's method for the quotient, on the exact denominator.
    let quotient = m * reciprocal;
    let residual = simd.neg_mul_add(quotient, m, simd.neg_mul_add(quotient, two, m));
    simd.copysign(simd.mul_add(residual, reciprocal, quotient), x)
}

/// `e^x - 1` for x up to 0. NaN gives NaN.
#[inline(always)]
pub(crate) fn expm1_of_negative<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    // Below -30 the result rounds to -1. In this order of operands NaN survives.
    let (n, r) = reduce(simd, simd.max(simd.splat(-30.0), x));
    let power = simd.power_of_2(n);
    simd.mul_add(power, exp_minus_1(simd, r, 1.0), power - simd.splat(1.0))
}

/// `ln(1 + e^x)` for x up to 0, as `2 artanh(t / (2 + t))` of `t = e^x`. NaN gives NaN.
#[inline(always)]
pub(crate) fn log1p_of_exp<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    let (one, two) = (simd.splat(1.0), simd.splat(2.0));
    // Below -104 the result is under half the least subnormal number.
    let (n, r) = reduce(simd, simd.max(simd.splat(-104.0), x));
    let t = simd.scale(one + exp_minus_1(simd, r, 1.0), n);
    let s = t / (two + t);
    // The series of artanh s / s. s is at most 1 / 3.
    let series =
        [1.0, 1.0 / 3.0, 1.0 / 5.0, 1.0 / 7.0, 1.0 / 9.0, 1.0 / 11.0, 1.0 / 13.0, 1.0 / 15.0];
    two * s * polynomial(simd, s * s, series)
}

/// n and r of `x = n ln 2 + r`.
#[inline(always)]
fn reduce<S: Simd>(simd: S, x: S::F32) -> (S::F32, S::F32) {
    let n = simd.round(x * simd.splat(std::f32::consts::LOG2_E));
    // The first part of ln 2 has so few digits that its product with n is exact.
    let r = simd.neg_mul_add(n, simd.splat(0.693_359_4), x);
    (n, simd.mul_add(n, simd.splat(2.121_944_4e-4), r))
}

/// `e^(sign r) - 1` for `|r| <= ln 2 / 2`.
#[inline(always)]
fn exp_minus_1<S: Simd>(simd: S, r: S::F32, sign: f32) -> S::F32 {
    // s r + r^2 Q(s r)
    let [c0, c1, c2, c3, c4] =
        [4.999_999_4e-1, 1.666_651_5e-1, 4.166_845_6e-2, 8.369_419e-3, 1.381_314_5e-3];
    let q = polynomial(simd, r, [c0, sign * c1, c2, sign * c3, c4]);
    if sign < 0.0 { simd.mul_add(r * r, q, simd.splat(0.0) - r) } else { simd.mul_add(r * r, q, r) }
}

/// A better reciprocal from an estimate and its error, `1 - estimate * denominator`.
#[inline(always)]
fn refine<S: Simd>(simd: S, estimate: S::F32, error: S::F32) -> S::F32 {
    let error = match S::ESTIMATE_BITS {
        ..14 => simd.mul_add(error, error, error),
        _ => error,
    };
    simd.mul_add(estimate, error, estimate)
}

/// `c[0] + c[1] z + ...`
#[inline(always)]
fn polynomial<S: Simd, const N: usize>(simd: S, z: S::F32, c: [f32; N]) -> S::F32 {
    let mut sum = simd.splat(c[N - 1]);
    for &c in c[..N - 1].iter().rev() {
        sum = simd.mul_add(sum, z, simd.splat(c));
    }
    sum
}

#[cfg(test)]
mod tests;
