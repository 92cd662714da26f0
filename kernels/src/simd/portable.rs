//! Plain Rust: eight lanes in an array, which the compiler maps to the registers that every target has.

use std::ops::{Add, Div, Mul, Sub};

use half::{bf16, f16};

use super::{Simd, WithSimd};

/// Needs nothing of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Portable;

/// Eight numbers.
#[derive(Clone, Copy)]
pub(super) struct Array([f32; 8]);

#[inline(always)]
fn zip(a: Array, b: Array, f: impl Fn(f32, f32) -> f32) -> Array {
    let mut out = a;
    for (out, b) in out.0.iter_mut().zip(b.0) {
        *out = f(*out, b);
    }
    out
}

macro_rules! operators {
    ($($operator:ident $method:ident),+) => {
        $(impl $operator for Array {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                zip(self, other, |a, b| a.$method(b))
            }
        })+
    };
}

operators!(Add add, Sub sub, Mul mul, Div div);

impl Simd for Portable {
    type F32 = Array;

    const LANES: usize = 8;
    // Sixteen registers of four numbers, as x86-64 without AVX has.
    const REGISTERS: usize = 8;
    const ESTIMATE_BITS: u32 = 24;

    #[inline(always)]
    fn splat(self, value: f32) -> Array {
        Array([value; 8])
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> Array {
        // A copy of known length is two or four instructions; one of any length is a call.
        if let Some(all) = from.first_chunk() {
            return Array(*all);
        }
        let mut all = [0.0; 8];
        all[..from.len()].copy_from_slice(from);
        Array(all)
    }

    #[inline(always)]
    fn store(self, vector: Array, to: &mut [f32]) {
        match to.first_chunk_mut() {
            Some(to) => *to = vector.0,
            None => to.copy_from_slice(&vector.0[..to.len()]),
        }
    }

    #[inline(always)]
    fn load_f16(self, from: &[f16]) -> Array {
        let mut all = [0.0; 8];
        for (to, from) in all.iter_mut().zip(from) {
            *to = from.to_f32();
        }
        Array(all)
    }

    #[inline(always)]
    fn store_f16(self, vector: Array, to: &mut [f16]) {
        for (to, from) in to.iter_mut().zip(vector.0) {
            *to = f16::from_f32(from);
        }
    }

    #[inline(always)]
    fn load_bf16(self, from: &[bf16]) -> Array {
        let mut all = [0.0; 8];
        for (to, from) in all.iter_mut().zip(from) {
            *to = from.to_f32();
        }
        Array(all)
    }

    #[inline(always)]
    fn store_bf16(self, vector: Array, to: &mut [bf16]) {
        for (to, from) in to.iter_mut().zip(vector.0) {
            *to = bf16::from_f32(from);
        }
    }

    #[inline(always)]
    fn enter<W: WithSimd<T>, T>(self, work: W) -> T {
        #[inline(never)]
        fn compiled<W: WithSimd<T>, T>(simd: Portable, work: W) -> T {
            work.run(simd)
        }
        compiled(self, work)
    }

    #[inline(always)]
    fn prefetch(self, _: *const u8) {}

    #[inline(always)]
    fn prefetch_second_level(self, _: *const u8) {}

    // Two roundings: a fused operation would be a library call for each lane.
    #[inline(always)]
    fn mul_add(self, a: Array, b: Array, c: Array) -> Array {
        a * b + c
    }

    #[inline(always)]
    fn neg_mul_add(self, a: Array, b: Array, c: Array) -> Array {
        let mut result = c;
        for ((c, a), b) in result.0.iter_mut().zip(a.0).zip(b.0) {
            // The product is exact.
            *c = (f64::from(*c) - f64::from(a) * f64::from(b)) as f32;
        }
        result
    }

    #[inline(always)]
    fn max(self, a: Array, b: Array) -> Array {
        zip(a, b, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn min(self, a: Array, b: Array) -> Array {
        zip(a, b, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn abs(self, vector: Array) -> Array {
        Array(vector.0.map(f32::abs))
    }

    #[inline(always)]
    fn where_within(self, vector: Array, tested: Array, bound: Array) -> Array {
        let is_within = zip(tested, bound, |tested, bound| f32::from(tested.abs() <= bound));
        zip(vector, is_within, |value, is_within| if is_within > 0.0 { value } else { 0.0 })
    }

    #[inline(always)]
    fn copysign(self, magnitude: Array, sign: Array) -> Array {
        zip(magnitude, sign, f32::copysign)
    }

    // Adding and taking away 1.5 * 2^23 leaves no room for a fraction; the library's function would
    // be a call for each lane. Exact for magnitudes below 2^22.
    #[inline(always)]
    fn round(self, vector: Array) -> Array {
        const SHIFT: f32 = 12_582_912.0;
        Array(vector.0.map(|v| (v + SHIFT) - SHIFT))
    }

    #[inline(always)]
    fn power_of_2(self, n: Array) -> Array {
        Array(n.0.map(|n| f32::from_bits(((n.max(-126.0) as i32 + 127) << 23) as u32)))
    }

    #[inline(always)]
    fn scale(self, vector: Array, n: Array) -> Array {
        // Two factors, either of which is a normal number. The first product is exact, because only
        // the second one can be subnormal.
        let half = self.round(n * self.splat(0.5));
        vector * self.power_of_2(half) * self.power_of_2(n - half)
    }

    #[inline(always)]
    fn reciprocal_estimate(self, vector: Array) -> Array {
        self.splat(1.0) / vector
    }

    #[inline(always)]
    fn interleave(self, Array(a): Array, Array(b): Array) -> [Array; 2] {
        let first = [a[0], b[0], a[1], b[1], a[2], b[2], a[3], b[3]];
        let rest = [a[4], b[4], a[5], b[5], a[6], b[6], a[7], b[7]];
        [Array(first), Array(rest)]
    }

    #[inline(always)]
    fn sum(self, vector: Array) -> f32 {
        let [a, b, c, d, e, f, g, h] = vector.0;
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }
}
