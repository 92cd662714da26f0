//! The logistic function and the hyperbolic tangent on vectors, within 2 ulp everywhere.
//!
//! Both start from `e^v` for `v <= 0`, which never overflows. The polynomials are minimax fits of
//! the relative error (Lawson's iteration on Chebyshev nodes), rounded to `f32`.

use crate::simd::Simd;

/// `1 / (1 + e^-x)`. Infinities give 0 and 1, NaN gives NaN.
#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    let zero = simd.splat(0.0);
    let one = simd.splat(1.0);
    // S(x) = 1 / (1 + e) for positive x and e / (1 + e) for negative ones, with e = e^-|x|: neither
    // loses digits.
    let e = exp_of_negative(simd, zero - simd.abs(x));
    ratio(simd, simd.select_less(x, zero, e, one), e)
}

/// The hyperbolic tangent. Infinities give -1 and 1, NaN gives NaN, zeros keep their sign.
#[inline(always)]
pub(crate) fn tanh<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    let one = simd.splat(1.0);
    let magnitude = simd.abs(x);
    // Far from zero: 1 - 2 / (e^2|x| + 1), as 1 - 2 e / (1 + e) with e = e^-2|x|.
    let e = exp_of_negative(simd, simd.splat(-2.0) * magnitude);
    let far = one - ratio(simd, e + e, e);
    // Near zero that would cancel: x + x^3 P(x^2).
    let z = magnitude * magnitude;
    let p = polynomial(
        simd,
        z,
        [-3.333_326e-1, 1.333_083e-1, -5.368_802_3e-2, 2.046_942e-2, -5.515_163_8e-3],
    );
    let near = simd.mul_add(magnitude * z, p, magnitude);
    let below = simd.splat(0.65);
    simd.copysign(simd.select_less(magnitude, below, near, far), x)
}

/// `e^v` for `v <= 0`; 0 where that is below the normal numbers' range by more than their precision.
#[inline(always)]
fn exp_of_negative<S: Simd>(simd: S, v: S::F32) -> S::F32 {
    // e^-104 is under half the least subnormal number.
    let v = simd.max(simd.splat(-104.0), v);
    // v = n ln 2 + r with |r| <= ln 2 / 2. The first part of ln 2 has so few digits that its product
    // with n is exact.
    let n = simd.round(v * simd.splat(std::f32::consts::LOG2_E));
    let r = simd.mul_add(n, simd.splat(-0.693_359_4), v);
    let r = simd.mul_add(n, simd.splat(2.121_944_4e-4), r);
    // e^r = 1 + r + r^2 Q(r)
    let q = polynomial(
        simd,
        r,
        [4.999_999_4e-1, 1.666_651_5e-1, 4.166_845_6e-2, 8.369_419e-3, 1.381_314_5e-3],
    );
    let exp = simd.splat(1.0) + simd.mul_add(r * r, q, r);
    simd.scale(exp, n)
}

/// `numerator / (1 + e)` for `e` from 0 to 1.
#[inline(always)]
fn ratio<S: Simd>(simd: S, numerator: S::F32, e: S::F32) -> S::F32 {
    let one = simd.splat(1.0);
    let denominator = one + e;
    let lost = e - (denominator - one);
    let zero = simd.splat(0.0);
    if !S::FUSED {
        let quotient = numerator / denominator;
        return quotient - quotient * lost / denominator;
    }
    // Newton's method for the reciprocal, which an instruction estimates: faster than dividing.
    let estimate = simd.reciprocal_estimate(denominator);
    let error = simd.mul_add(zero - denominator, estimate, one);
    let reciprocal = simd.mul_add(estimate, error, estimate);
    let quotient = numerator * reciprocal;
    // One more step for the quotient, on the exact denominator, removes the rounding of the sum and
    // of the product; what is left is the error of e.
    let residual = simd.mul_add(zero - quotient, denominator, numerator);
    let residual = simd.mul_add(zero - quotient, lost, residual);
    simd.mul_add(residual, reciprocal, quotient)
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
