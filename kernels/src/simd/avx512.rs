//! AVX-512: sixteen lanes, thirty-two registers, masked loads and stores.

use std::arch::x86_64::*;
use std::mem::transmute;

use half::{bf16, f16};

use super::token::{Enter, enter, token};
use super::x86::{x86_methods, x86_vector};
use super::{Simd, pairs};

/// Proof of AVX-512 F, BW, DQ and VL (Skylake-SP, Zen 4 and later), and of what `WITH` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Avx512<const WITH: u8>(());

/// Nothing else.
pub(super) const PLAIN: u8 = 0;

/// AVX512-BF16 (Cooper Lake, Sapphire Rapids, Zen 4 and later).
pub(super) const BF16: u8 = 1;

/// AVX512-VNNI (Cascade Lake, Ice Lake, Zen 4 and later).
pub(super) const VNNI: u8 = 2;

token! {
    is_x86_feature_detected,
    Avx512<PLAIN>: "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c"
}

token! {
    is_x86_feature_detected,
    Avx512<BF16>: "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c", "avx512bf16"
}

token! {
    is_x86_feature_detected,
    Avx512<VNNI>: "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c", "avx512vnni"
}

enter!(Avx512, PLAIN, BF16, VNNI);

x86_vector! {
    /// Sixteen numbers.
    F32x16(__m512):
        Add add _mm512_add_ps, Sub sub _mm512_sub_ps, Mul mul _mm512_mul_ps, Div div _mm512_div_ps
}

/// The mask of the first `n` lanes, for `n` below 16.
#[inline(always)]
fn first(n: usize) -> __mmask16 {
    debug_assert!(n < 16);
    (1 << n) - 1
}

/// Numbers in bfloat16, rounded as the instructions of AVX512-BF16 do it, in the upper halves of lanes. The lower halves
/// hold anything.
#[inline(always)]
fn rounded(vector: F32x16) -> __m512i {
    // SAFETY: vectors are made only by methods of the token, so the processor has the instructions.
    nearest(F32x16(unsafe {
        let (bits, least) = (_mm512_castps_si512(vector.0), _mm512_set1_ps(f32::MIN_POSITIVE));
        let is_small = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(_mm512_abs_ps(vector.0), least);
        let sign = _mm512_set1_epi32(i32::MIN);
        _mm512_castsi512_ps(_mm512_mask_and_epi32(bits, is_small, bits, sign))
    }))
}

/// The same with what is not normal rounded, too.
#[inline(always)]
fn nearest(vector: F32x16) -> __m512i {
    // SAFETY: as for `rounded`.
    unsafe {
        let bits = _mm512_castps_si512(vector.0);
        let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
        let up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
        let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(vector.0, vector.0);
        _mm512_mask_or_epi32(up, is_nan, bits, _mm512_set1_epi32(0x40_0000))
    }
}

// SAFETY of every block below: the token `self` proves the features. Addresses come from slices,
// and a load or store touches no more elements than its slice has: all sixteen only if it is that
// long, otherwise those of the mask, and masked-off lanes access no memory.
impl<const WITH: u8> Simd for Avx512<WITH>
where
    Self: Enter,
{
    type F32 = F32x16;

    const LANES: usize = 16;
    const REGISTERS: usize = 32;
    const ESTIMATE_BITS: u32 = 14;
    const ROUNDS: bool = true;
    // `VPDPBUSD` takes terms of one factor without a sign.
    const QUAD_OFFSET: i32 = if WITH == VNNI { 128 } else { 0 };

    x86_methods! {
        F32x16, _mm512_set1_ps;
        reciprocal_estimate(vector) = _mm512_rcp14_ps(vector);
        mul_add(a, b, c) = _mm512_fmadd_ps(a, b, c);
        neg_mul_add(a, b, c) = _mm512_fnmadd_ps(a, b, c);
        max(a, b) = _mm512_max_ps(a, b);
        min(a, b) = _mm512_min_ps(a, b);
        abs(vector) = _mm512_abs_ps(vector);
        where_within(vector, tested, bound) = {
            let is_within = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(_mm512_abs_ps(tested), bound);
            _mm512_maskz_mov_ps(is_within, vector)
        };
        copysign(magnitude, sign) =
            _mm512_or_ps(magnitude, _mm512_and_ps(sign, _mm512_set1_ps(-0.0)));
        round(vector) = _mm512_roundscale_ps::<_MM_FROUND_TO_NEAREST_INT>(vector);
        scale(vector, n) = _mm512_scalef_ps(vector, n);
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> F32x16 {
        if from.len() >= Self::LANES {
            // SAFETY: features proven by `self`; sixteen elements are there.
            F32x16(unsafe { _mm512_loadu_ps(from.as_ptr()) })
        } else {
            // SAFETY: features proven by `self`; the mask covers the elements that are there.
            F32x16(unsafe { _mm512_maskz_loadu_ps(first(from.len()), from.as_ptr()) })
        }
    }

    #[inline(always)]
    fn store(self, vector: F32x16, to: &mut [f32]) {
        if to.len() >= Self::LANES {
            // SAFETY: features proven by `self`; there is room for sixteen elements.
            unsafe { _mm512_storeu_ps(to.as_mut_ptr(), vector.0) }
        } else {
            // SAFETY: features proven by `self`; the mask covers the room that is there.
            unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), first(to.len()), vector.0) }
        }
    }

    #[inline(always)]
    fn load_f16(self, from: &[f16]) -> F32x16 {
        let address = from.as_ptr().cast();
        if from.len() >= Self::LANES {
            // SAFETY: features proven by `self`; sixteen elements are there.
            F32x16(unsafe { _mm512_cvtph_ps(_mm256_loadu_epi16(address)) })
        } else {
            // SAFETY: features proven by `self`; the mask covers the elements that are there.
            F32x16(unsafe { _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(from.len()), address)) })
        }
    }

    #[inline(always)]
    fn store_f16(self, vector: F32x16, to: &mut [f16]) {
        let address = to.as_mut_ptr().cast();
        // SAFETY: features proven by `self`.
        let halves = unsafe { _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(vector.0) };
        if to.len() >= Self::LANES {
            // SAFETY: features proven by `self`; there is room for sixteen elements.
            unsafe { _mm256_storeu_epi16(address, halves) }
        } else {
            // SAFETY: features proven by `self`; the mask covers the room that is there.
            unsafe { _mm256_mask_storeu_epi16(address, first(to.len()), halves) }
        }
    }

    #[inline(always)]
    fn load_bf16(self, from: &[bf16]) -> F32x16 {
        let address = from.as_ptr().cast();
        let bits = if from.len() >= Self::LANES {
            // SAFETY: features proven by `self`; sixteen elements are there.
            unsafe { _mm256_loadu_epi16(address) }
        } else {
            // SAFETY: features proven by `self`; the mask covers the elements that are there.
            unsafe { _mm256_maskz_loadu_epi16(first(from.len()), address) }
        };
        // SAFETY: features proven by `self`.
        F32x16(unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(bits))) })
    }

    #[inline(always)]
    fn store_bf16(self, vector: F32x16, to: &mut [bf16]) {
        let address = to.as_mut_ptr().cast();
        // SAFETY: features proven by `self`.
        let numbers = unsafe { _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(nearest(vector))) };
        if to.len() >= Self::LANES {
            // SAFETY: features proven by `self`; there is room for sixteen elements.
            unsafe { _mm256_storeu_epi16(address, numbers) }
        } else {
            // SAFETY: features proven by `self`; the mask covers the room that is there.
            unsafe { _mm256_mask_storeu_epi16(address, first(to.len()), numbers) }
        }
    }

    #[inline(always)]
    fn power_of_2(self, n: F32x16) -> F32x16 {
        self.scale(self.splat(1.0), n)
    }

    #[inline(always)]
    fn pairs(self, low: F32x16, high: F32x16) -> F32x16 {
        if const { WITH != BF16 } {
            // SAFETY: features proven by `self`.
            return F32x16(unsafe {
                let low = _mm512_srli_epi32::<16>(rounded(low));
                _mm512_castsi512_ps(_mm512_mask_blend_epi16(0xaaaa_aaaa, low, rounded(high)))
            });
        }
        // SAFETY: features proven by `self`.
        F32x16(unsafe {
            // Sixteen numbers of each: those of `low`, then those of `high`.
            let both = transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high.0, low.0));
            let low = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let high = _mm512_slli_epi32::<16>(_mm512_add_epi32(low, _mm512_set1_epi32(16)));
            let in_turn = _mm512_permutexvar_epi16(_mm512_or_si512(low, high), both);
            _mm512_castsi512_ps(in_turn)
        })
    }

    #[inline(always)]
    fn neighbours(self, first: F32x16, rest: F32x16) -> F32x16 {
        if const { WITH != BF16 } {
            // SAFETY: features proven by `self`.
            return F32x16(unsafe {
                let [first, rest] = [first, rest]
                    .map(|of| _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(rounded(of))));
                let first = _mm512_castsi256_si512(first);
                _mm512_castsi512_ps(_mm512_inserti64x4::<1>(first, rest))
            });
        }
        // SAFETY: features proven by `self`.
        F32x16(unsafe { transmute::<__m512bh, __m512>(_mm512_cvtne2ps_pbh(rest.0, first.0)) })
    }

    #[inline(always)]
    fn unpair(self, pairs: F32x16) -> [F32x16; 2] {
        // SAFETY: features proven by `self`.
        unsafe {
            let bits = _mm512_castps_si512(pairs.0);
            let high = _mm512_and_si512(bits, _mm512_set1_epi32(!0xffff));
            [_mm512_slli_epi32::<16>(bits), high].map(|half| F32x16(_mm512_castsi512_ps(half)))
        }
    }

    #[inline(always)]
    fn add_pairs(self, a: F32x16, b: F32x16, c: F32x16) -> F32x16 {
        if const { WITH != BF16 } {
            return pairs::add_pairs(self, a, b, c);
        }
        // SAFETY: features proven by `self`; the vectors have as many bits.
        F32x16(unsafe {
            let (a, b) = (transmute::<__m512, __m512bh>(a.0), transmute::<__m512, __m512bh>(b.0));
            _mm512_dpbf16_ps(c.0, a, b)
        })
    }

    #[inline(always)]
    fn quads(self, terms: [F32x16; 4]) -> F32x16 {
        // SAFETY: features proven by `self`.
        F32x16(unsafe {
            let [a, b, c, d] = terms.map(|four| _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(four.0)));
            let halves = [_mm256_set_m128i(b, a), _mm256_set_m128i(d, c)];
            let [low, high] = halves.map(|half| _mm512_castsi256_si512(half));
            let signed = _mm512_inserti64x4::<1>(low, _mm512_castsi512_si256(high));
            _mm512_castsi512_ps(_mm512_add_epi8(signed, _mm512_set1_epi8(Self::QUAD_OFFSET as i8)))
        })
    }

    #[inline(always)]
    fn add_quads(self, a: F32x16, b: F32x16, c: F32x16) -> F32x16 {
        // SAFETY: features proven by `self`.
        F32x16(unsafe {
            let [a, b, c] = [a, b, c].map(|vector| _mm512_castps_si512(vector.0));
            let sums = if const { WITH == VNNI } {
                _mm512_dpbusd_epi32(c, a, b)
            } else {
                // Sums of two products of magnitudes of at most 127 fit in 16 bits.
                let is_negative = _mm512_movepi8_mask(a);
                let b = _mm512_mask_sub_epi8(b, is_negative, _mm512_setzero_si512(), b);
                let pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(a), b);
                _mm512_add_epi32(c, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))
            };
            _mm512_castsi512_ps(sums)
        })
    }

    #[inline(always)]
    fn of_integers(self, integers: F32x16) -> F32x16 {
        // SAFETY: features proven by `self`.
        F32x16(unsafe { _mm512_cvtepi32_ps(_mm512_castps_si512(integers.0)) })
    }

    #[inline(always)]
    fn interleave(self, a: F32x16, b: F32x16) -> [F32x16; 2] {
        // SAFETY: features proven by `self`.
        unsafe {
            let first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let rest = _mm512_add_epi32(first, _mm512_set1_epi32(8));
            [first, rest].map(|order| F32x16(_mm512_permutex2var_ps(a.0, order, b.0)))
        }
    }

    #[inline(always)]
    fn sum(self, vector: F32x16) -> f32 {
        // SAFETY: features proven by `self`.
        unsafe { _mm512_reduce_add_ps(vector.0) }
    }
}
