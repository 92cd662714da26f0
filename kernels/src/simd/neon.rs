//! NEON, which every aarch64 has: thirty-two registers of four numbers.
//!
//! A vector is two registers, as long as one of AVX2. So a block of the micro-kernel, two vectors wide and six high,
//! keeps its sums in 24 registers, and each coefficient that it reads serves four of them. With one register it would
//! be fourteen high, and read a coefficient for every two multiply-adds: Neoverse N1 has two vector pipelines, and the
//! load of a coefficient into all lanes takes one of them.

use std::arch::aarch64::*;
use std::arch::asm;
use std::ops::{Add, Div, Mul, Sub};

use half::{bf16, f16};

use super::token::{Enter, enter, token};
use super::{Simd, WithSimd};

/// Proof of NEON, and of what `WITH` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Neon<const WITH: u8>(());

/// Nothing else.
pub(super) const PLAIN: u8 = 0;

/// Dot products of int8 (Neoverse N1, Cortex-A76, Apple M1 and later).
pub(super) const DOT: u8 = 1;

token! {
    is_aarch64_feature_detected,
    Neon<PLAIN>: "neon"
}

token! {
    is_aarch64_feature_detected,
    Neon<DOT>: "neon", "dotprod"
}

enter!(Neon, PLAIN, DOT);

/// Eight numbers.
#[derive(Clone, Copy)]
pub(super) struct F32x8([float32x4_t; 2]);

/// Methods that do the same with both registers, by an expression of intrinsics. A closure might not be inlined.
macro_rules! methods {
    ($($method:ident($($argument:ident),+) = $result:expr;)+) => {
        $(#[inline(always)]
        fn $method(self, $($argument: F32x8),+) -> F32x8 {
            // SAFETY: features proven by `self`; the expressions only compute on registers.
            let first = unsafe {
                $(let $argument = $argument.0[0];)+
                $result
            };
            // SAFETY: the same.
            let second = unsafe {
                $(let $argument = $argument.0[1];)+
                $result
            };
            F32x8([first, second])
        })+
    };
}

macro_rules! operators {
    ($($operator:ident $method:ident $intrinsic:ident),+) => {
        $(impl $operator for F32x8 {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                let (F32x8([a, b]), F32x8([c, d])) = (self, other);
                // SAFETY: every aarch64 has the instruction.
                F32x8(unsafe { [$intrinsic(a, c), $intrinsic(b, d)] })
            }
        })+
    };
}

operators!(Add add vaddq_f32, Sub sub vsubq_f32, Mul mul vmulq_f32, Div div vdivq_f32);

/// The first elements, at most eight, and zeros after them.
#[inline(always)]
fn padded<E: Copy>(from: &[E], zero: E) -> [E; 8] {
    // A copy of any length would be a call.
    let mut all = [zero; 8];
    for (to, from) in all.iter_mut().zip(from) {
        *to = *from;
    }
    all
}

/// Numbers in bfloat16, rounded to nearest, ties to even, in the upper halves of lanes. The lower halves hold anything.
#[inline(always)]
fn nearest(four: float32x4_t) -> uint32x4_t {
    // SAFETY: every aarch64 has the instructions.
    unsafe {
        let bits = vreinterpretq_u32_f32(four);
        let odd = vandq_u32(vshrq_n_u32::<16>(bits), vdupq_n_u32(1));
        let up = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
        let quiet = vorrq_u32(bits, vdupq_n_u32(0x40_0000));
        vbslq_u32(vceqq_f32(four, four), up, quiet)
    }
}

/// The nearest integers, ties to even, which fit in int16.
#[inline(always)]
fn integers(vector: F32x8) -> int16x8_t {
    // SAFETY: every aarch64 has the instructions.
    unsafe {
        let [low, high] = [vcvtnq_s32_f32(vector.0[0]), vcvtnq_s32_f32(vector.0[1])];
        vuzp1q_s16(vreinterpretq_s16_s32(low), vreinterpretq_s16_s32(high))
    }
}

/// The bytes of integers that fit in int8.
#[inline(always)]
fn bytes(low: int16x8_t, high: int16x8_t) -> float32x4_t {
    // SAFETY: every aarch64 has the instructions.
    unsafe {
        vreinterpretq_f32_s8(vuzp1q_s8(vreinterpretq_s8_s16(low), vreinterpretq_s8_s16(high)))
    }
}

/// `c`, and four products of neighbours for each lane. The token proves the instruction.
#[inline(always)]
fn dot<const WITH: u8>(
    _: Neon<WITH>,
    a: float32x4_t,
    b: float32x4_t,
    mut c: float32x4_t,
) -> float32x4_t {
    if const { WITH == DOT } {
        // The intrinsic is not stable. SAFETY: feature proven by the token; it computes on registers.
        unsafe {
            asm!(
                ".arch_extension dotprod",
                "sdot {c:v}.4s, {a:v}.16b, {b:v}.16b",
                a = in(vreg) a, b = in(vreg) b, c = inout(vreg) c,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        return c;
    }
    // SAFETY: every aarch64 has the instructions.
    unsafe {
        let (a, b) = (vreinterpretq_s8_f32(a), vreinterpretq_s8_f32(b));
        let low = vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)));
        let high = vpaddlq_s16(vmull_high_s8(a, b));
        let sums = vaddq_s32(vreinterpretq_s32_f32(c), vpaddq_s32(low, high));
        vreinterpretq_f32_s32(sums)
    }
}

impl<const WITH: u8> Simd for Neon<WITH>
where
    Self: Enter,
{
    type F32 = F32x8;

    const LANES: usize = 8;
    const REGISTERS: usize = 16;
    // Eight of the instruction, and a step of Newton's method.
    const ESTIMATE_BITS: u32 = 15;

    #[inline(always)]
    fn enter<W: WithSimd<T>, T>(self, work: W) -> T {
        self.run(work)
    }

    #[inline(always)]
    fn prefetch(self, address: *const u8) {
        // SAFETY: a prefetch never faults, wherever it points.
        unsafe {
            asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
        }
    }

    #[inline(always)]
    fn prefetch_second_level(self, address: *const u8) {
        // SAFETY: as for `prefetch`.
        unsafe {
            asm!("prfm pldl2keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
        }
    }

    #[inline(always)]
    fn splat(self, value: f32) -> F32x8 {
        // SAFETY: features proven by `self`.
        F32x8([unsafe { vdupq_n_f32(value) }; 2])
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> F32x8 {
        let all;
        let from = match from.first_chunk::<8>() {
            Some(from) => from,
            None => {
                all = padded(from, 0.0);
                &all
            }
        };
        let from = from.as_ptr();
        // SAFETY: features proven by `self`; eight elements are there.
        F32x8(unsafe { [vld1q_f32(from), vld1q_f32(from.add(4))] })
    }

    #[inline(always)]
    fn store(self, vector: F32x8, to: &mut [f32]) {
        let mut all = [0.0; 8];
        let whole = to.len() >= Self::LANES;
        let address = if whole { to.as_mut_ptr() } else { all.as_mut_ptr() };
        let [first, second] = vector.0;
        // SAFETY: features proven by `self`; there is room for eight elements.
        unsafe {
            vst1q_f32(address, first);
            vst1q_f32(address.add(4), second);
        }
        if !whole {
            for (to, from) in to.iter_mut().zip(all) {
                *to = from;
            }
        }
    }

    #[inline(always)]
    fn load_f16(self, from: &[f16]) -> F32x8 {
        let all;
        let from = match from.first_chunk::<8>() {
            Some(from) => from,
            None => {
                all = padded(from, f16::ZERO);
                &all
            }
        };
        let (low, high): (float32x4_t, float32x4_t);
        // The intrinsics take a type that is not stable. SAFETY: features proven by `self`; eight elements of two bytes
        // are there.
        unsafe {
            let halves = vld1q_u16(from.as_ptr().cast());
            asm!(
                "fcvtl {low:v}.4s, {halves:v}.4h",
                "fcvtl2 {high:v}.4s, {halves:v}.8h",
                halves = in(vreg) halves, low = out(vreg) low, high = lateout(vreg) high,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        F32x8([low, high])
    }

    #[inline(always)]
    fn store_f16(self, vector: F32x8, to: &mut [f16]) {
        let halves: uint16x8_t;
        // As for `load_f16`. SAFETY: features proven by `self`; it computes on registers. Rounding is to nearest, ties
        // to even, because Rust's programs leave the processor's mode as it is.
        unsafe {
            asm!(
                "fcvtn {halves:v}.4h, {low:v}.4s",
                "fcvtn2 {halves:v}.8h, {high:v}.4s",
                halves = out(vreg) halves, low = in(vreg) vector.0[0], high = in(vreg) vector.0[1],
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        let mut all = [f16::ZERO; 8];
        let whole = to.len() >= Self::LANES;
        let address = if whole { to.as_mut_ptr() } else { all.as_mut_ptr() };
        // SAFETY: features proven by `self`; there is room for eight elements of two bytes.
        unsafe { vst1q_u16(address.cast(), halves) }
        if !whole {
            for (to, from) in to.iter_mut().zip(all) {
                *to = from;
            }
        }
    }

    #[inline(always)]
    fn load_bf16(self, from: &[bf16]) -> F32x8 {
        let all;
        let from = match from.first_chunk::<8>() {
            Some(from) => from,
            None => {
                all = padded(from, bf16::ZERO);
                &all
            }
        };
        // SAFETY: features proven by `self`; eight elements of two bytes are there.
        unsafe {
            let eight = vld1q_u16(from.as_ptr().cast());
            let bits = [vmovl_u16(vget_low_u16(eight)), vmovl_high_u16(eight)];
            F32x8(bits.map(|bits| vreinterpretq_f32_u32(vshlq_n_u32::<16>(bits))))
        }
    }

    #[inline(always)]
    fn store_bf16(self, vector: F32x8, to: &mut [bf16]) {
        // SAFETY: features proven by `self`.
        let eight = unsafe {
            let [low, high] = vector.0.map(nearest);
            vcombine_u16(vshrn_n_u32::<16>(low), vshrn_n_u32::<16>(high))
        };
        let mut all = [bf16::ZERO; 8];
        let whole = to.len() >= Self::LANES;
        let address = if whole { to.as_mut_ptr() } else { all.as_mut_ptr() };
        // SAFETY: features proven by `self`; there is room for eight elements of two bytes.
        unsafe { vst1q_u16(address.cast(), eight) }
        if !whole {
            for (to, from) in to.iter_mut().zip(all) {
                *to = from;
            }
        }
    }

    methods! {
        mul_add(a, b, c) = vfmaq_f32(c, a, b);
        neg_mul_add(a, b, c) = vfmsq_f32(c, a, b);
        // The processor's own would return the NaN.
        max(a, b) = vbslq_f32(vcgtq_f32(a, b), a, b);
        min(a, b) = vbslq_f32(vcltq_f32(a, b), a, b);
        abs(vector) = vabsq_f32(vector);
        where_within(vector, tested, bound) = {
            let is_within = vcleq_f32(vabsq_f32(tested), bound);
            vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(vector), is_within))
        };
        copysign(magnitude, sign) = vbslq_f32(vdupq_n_u32(1 << 31), sign, magnitude);
        round(vector) = vrndnq_f32(vector);
        power_of_2(n) = {
            let n = vcvtnq_s32_f32(vmaxq_f32(vdupq_n_f32(-126.0), n));
            vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(n, vdupq_n_s32(127))))
        };
        reciprocal_estimate(vector) = {
            let estimate = vrecpeq_f32(vector);
            vmulq_f32(estimate, vrecpsq_f32(estimate, vector))
        };
        of_integers(integers) = vcvtq_f32_s32(vreinterpretq_s32_f32(integers));
    }

    #[inline(always)]
    fn scale(self, vector: F32x8, n: F32x8) -> F32x8 {
        // Two factors, either of which is a normal number. The first product is exact, because only
        // the second one can be subnormal.
        let half = self.round(n * self.splat(0.5));
        vector * self.power_of_2(half) * self.power_of_2(n - half)
    }

    #[inline(always)]
    fn quads(self, [a, b, c, d]: [F32x8; 4]) -> F32x8 {
        F32x8([bytes(integers(a), integers(b)), bytes(integers(c), integers(d))])
    }

    #[inline(always)]
    fn add_quads(self, F32x8(a): F32x8, F32x8(b): F32x8, F32x8(c): F32x8) -> F32x8 {
        F32x8([dot(self, a[0], b[0], c[0]), dot(self, a[1], b[1], c[1])])
    }

    #[inline(always)]
    fn interleave(self, F32x8([a, b]): F32x8, F32x8([c, d]): F32x8) -> [F32x8; 2] {
        // SAFETY: features proven by `self`.
        unsafe {
            let first = [vzip1q_f32(a, c), vzip2q_f32(a, c)];
            let rest = [vzip1q_f32(b, d), vzip2q_f32(b, d)];
            [F32x8(first), F32x8(rest)]
        }
    }

    #[inline(always)]
    fn sum(self, vector: F32x8) -> f32 {
        // SAFETY: features proven by `self`.
        unsafe { vaddvq_f32(vaddq_f32(vector.0[0], vector.0[1])) }
    }
}
