//! Numbers in bfloat16, two in the bits of a lane: what AVX512-BF16 does with them, in plain Rust.
//!
//! Instruction sets without these instructions compute by this model in tests. It is slow. A test compares it with the
//! instructions, bit for bit.

use super::{MOST_LANES, Simd};

/// The sum in `f64` of numbers, either below this magnitude or rounded to at least the least normal `f32`.
const TINY: f64 = 1.1754943508222875e-38 - 3.503246160812043e-46; // 2^-126 - 2^-151

/// Rounds to nearest, ties to even (`VCVTNEPS2BF16`). What is not normal becomes zero, and what is above the largest
/// number becomes infinite.
fn rounded(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    let bits = without_subnormal(value).to_bits();
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// Two numbers as the bits of a lane.
fn pair(low: f32, high: f32) -> f32 {
    f32::from_bits(u32::from(rounded(low)) | u32::from(rounded(high)) << 16)
}

/// The numbers of a lane.
fn numbers(pair: f32) -> [f32; 2] {
    let bits = pair.to_bits();
    [bits << 16, bits & 0xffff_0000].map(f32::from_bits)
}

fn without_subnormal(value: f32) -> f32 {
    if value.is_subnormal() { 0.0f32.copysign(value) } else { value }
}

/// `a * b + c`, rounded once. Operands that are not normal count as zeros, and so does such a result, which is told by
/// its magnitude after it was rounded as if exponents had no bounds.
fn mul_add(a: f32, b: f32, c: f32) -> f32 {
    let [a, b, c] = [a, b, c].map(without_subnormal);
    let result = a.mul_add(b, c);
    // Exact wherever it is near the bound: products have 16 bits.
    let sum = f64::from(a) * f64::from(b) + f64::from(c);
    if sum.abs() < TINY { 0.0f32.copysign(result) } else { result }
}

/// `c` and the products of both numbers of a lane, that of the upper ones first (`VDPBF16PS`).
fn add_products(a: f32, b: f32, c: f32) -> f32 {
    let ([a_low, a_high], [b_low, b_high]) = (numbers(a), numbers(b));
    mul_add(a_low, b_low, mul_add(a_high, b_high, c))
}

#[inline(always)]
pub(super) fn lanes<S: Simd>(simd: S, vector: S::F32) -> [f32; MOST_LANES] {
    let mut lanes = [0.0; MOST_LANES];
    simd.store(vector, &mut lanes[..S::LANES]);
    lanes
}

/// [`Simd::pairs`]
#[inline(always)]
pub(super) fn pairs<S: Simd>(simd: S, low: S::F32, high: S::F32) -> S::F32 {
    let (mut pairs, high) = (lanes(simd, low), lanes(simd, high));
    pairs.iter_mut().zip(high).for_each(|(low, high)| *low = pair(*low, high));
    simd.load(&pairs[..S::LANES])
}

/// [`Simd::neighbours`]
#[inline(always)]
pub(super) fn neighbours<S: Simd>(simd: S, first: S::F32, rest: S::F32) -> S::F32 {
    let mut numbers = [0.0; 2 * MOST_LANES];
    simd.store(first, &mut numbers[..S::LANES]);
    simd.store(rest, &mut numbers[S::LANES..2 * S::LANES]);
    let mut pairs = [0.0; MOST_LANES];
    for (to, &[low, high]) in pairs.iter_mut().zip(numbers.as_chunks().0) {
        *to = pair(low, high);
    }
    simd.load(&pairs[..S::LANES])
}

/// [`Simd::unpair`]
#[inline(always)]
pub(super) fn unpair<S: Simd>(simd: S, pairs: S::F32) -> [S::F32; 2] {
    let numbers = lanes(simd, pairs).map(numbers);
    [0, 1].map(|n| simd.load(&numbers.map(|numbers| numbers[n])[..S::LANES]))
}

/// [`Simd::add_pairs`]
#[inline(always)]
pub(super) fn add_pairs<S: Simd>(simd: S, a: S::F32, b: S::F32, c: S::F32) -> S::F32 {
    let [a, b, mut c] = [a, b, c].map(|vector| lanes(simd, vector));
    for ((c, a), b) in c.iter_mut().zip(a).zip(b) {
        *c = add_products(a, b, *c);
    }
    simd.load(&c[..S::LANES])
}
