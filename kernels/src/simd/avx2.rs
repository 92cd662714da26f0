//! AVX2 with FMA and half conversion: eight lanes, sixteen registers.

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::Simd;
use super::token::{Enter, enter, token};
use super::x86::{x86_methods, x86_vector};

/// Proof of AVX2, FMA and F16C (Haswell, Zen and later), and with `VNNI` of AVX-VNNI (Alder Lake, Zen 5 and later).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Avx2<const VNNI: bool>(());

token! {
    is_x86_feature_detected,
    Avx2<false>: "avx", "avx2", "fma", "f16c"
}

token! {
    is_x86_feature_detected,
    Avx2<true>: "avx", "avx2", "fma", "f16c", "avxvnni"
}

enter!(Avx2, false, true);

x86_vector! {
    /// Eight numbers.
    F32x8(__m256):
        Add add _mm256_add_ps, Sub sub _mm256_sub_ps, Mul mul _mm256_mul_ps, Div div _mm256_div_ps
}

/// The mask of the first `n` lanes, for `n` below 8.
#[inline(always)]
fn first<const VNNI: bool>(_: Avx2<VNNI>, n: usize) -> __m256i {
    const ONES_THEN_ZEROS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    let mask: &[i32; 8] = ONES_THEN_ZEROS[8 - n..].first_chunk().expect("n is below 8");
    // SAFETY: features proven by the token; eight elements are there.
    unsafe { _mm256_loadu_si256(mask.as_ptr().cast()) }
}

/// `2^n` for integers from -126 to 127.
#[inline(always)]
fn power_of_2(n: F32x8) -> F32x8 {
    // SAFETY: vectors are made only by methods of the token, so the processor has the instructions.
    F32x8(unsafe {
        let biased = _mm256_add_epi32(_mm256_cvtps_epi32(n.0), _mm256_set1_epi32(127));
        _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased))
    })
}

/// Numbers in bfloat16, rounded as the instructions of AVX512-BF16 do it, in the upper halves of lanes. The lower halves
/// hold anything.
#[inline(always)]
fn rounded(vector: F32x8) -> __m256i {
    // SAFETY: vectors are made only by methods of the token, so the processor has the instructions.
    nearest(F32x8(unsafe {
        let sign = _mm256_set1_ps(-0.0);
        let least = _mm256_set1_ps(f32::MIN_POSITIVE);
        let is_normal = _mm256_cmp_ps::<_CMP_NLT_UQ>(_mm256_andnot_ps(sign, vector.0), least);
        _mm256_and_ps(vector.0, _mm256_or_ps(is_normal, sign))
    }))
}

/// The same with what is not normal rounded, too.
#[inline(always)]
fn nearest(vector: F32x8) -> __m256i {
    // SAFETY: as for `rounded`.
    unsafe {
        let bits = _mm256_castps_si256(vector.0);
        let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
        let up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
        let quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x40_0000));
        let is_nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(vector.0, vector.0));
        _mm256_blendv_epi8(up, quiet, is_nan)
    }
}

/// `from` and zeros after it.
#[inline(always)]
fn padded<E: Copy>(from: &[E], zero: E) -> [E; 8] {
    let mut all = [zero; 8];
    all[..from.len()].copy_from_slice(from);
    all
}

impl<const VNNI: bool> Simd for Avx2<VNNI>
where
    Self: Enter,
{
    type F32 = F32x8;

    const LANES: usize = 8;
    const REGISTERS: usize = 16;
    const ESTIMATE_BITS: u32 = 11;
    const ROUNDS: bool = true;
    // `VPDPBUSD` takes terms of one factor without a sign.
    const QUAD_OFFSET: i32 = if VNNI { 128 } else { 0 };

    x86_methods! {
        F32x8, _mm256_set1_ps;
        reciprocal_estimate(vector) = _mm256_rcp_ps(vector);
        mul_add(a, b, c) = _mm256_fmadd_ps(a, b, c);
        neg_mul_add(a, b, c) = _mm256_fnmadd_ps(a, b, c);
        max(a, b) = _mm256_max_ps(a, b);
        min(a, b) = _mm256_min_ps(a, b);
        abs(vector) = _mm256_andnot_ps(_mm256_set1_ps(-0.0), vector);
        where_within(vector, tested, bound) = {
            let magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0), tested);
            _mm256_and_ps(vector, _mm256_cmp_ps::<_CMP_LE_OQ>(magnitude, bound))
        };
        copysign(magnitude, sign) =
            _mm256_or_ps(magnitude, _mm256_and_ps(sign, _mm256_set1_ps(-0.0)));
        round(vector) =
            _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(vector);
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> F32x8 {
        if from.len() >= Self::LANES {
            // SAFETY: features proven by `self`; eight elements are there.
            F32x8(unsafe { _mm256_loadu_ps(from.as_ptr()) })
        } else {
            // SAFETY: features proven by `self`; the mask covers the elements that are there.
            F32x8(unsafe { _mm256_maskload_ps(from.as_ptr(), first(self, from.len())) })
        }
    }

    #[inline(always)]
    fn store(self, vector: F32x8, to: &mut [f32]) {
        if to.len() >= Self::LANES {
            // SAFETY: features proven by `self`; there is room for eight elements.
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), vector.0) }
        } else {
            // SAFETY: features proven by `self`; the mask covers the room that is there.
            unsafe { _mm256_maskstore_ps(to.as_mut_ptr(), first(self, to.len()), vector.0) }
        }
    }

    #[inline(always)]
    fn load_f16(self, from: &[f16]) -> F32x8 {
        let all;
        let from = if from.len() < Self::LANES {
            all = padded(from, f16::ZERO);
            &all
        } else {
            from
        };
        // SAFETY: features proven by `self`; eight elements of two bytes are there.
        F32x8(unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().cast())) })
    }

    #[inline(always)]
    fn store_f16(self, vector: F32x8, to: &mut [f16]) {
        // SAFETY: features proven by `self`.
        let halves = unsafe { _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(vector.0) };
        if to.len() >= Self::LANES {
            // SAFETY: there is room for eight elements of two bytes.
            unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), halves) }
        } else {
            let mut all = [f16::ZERO; 8];
            // SAFETY: `all` has eight elements of two bytes.
            unsafe { _mm_storeu_si128(all.as_mut_ptr().cast(), halves) }
            to.copy_from_slice(&all[..to.len()]);
        }
    }

    #[inline(always)]
    fn load_bf16(self, from: &[bf16]) -> F32x8 {
        let all;
        let from = if from.len() < Self::LANES {
            all = padded(from, bf16::ZERO);
            &all
        } else {
            from
        };
        // SAFETY: features proven by `self`; eight elements of two bytes are there.
        F32x8(unsafe {
            let bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.as_ptr().cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits))
        })
    }

    #[inline(always)]
    fn store_bf16(self, vector: F32x8, to: &mut [bf16]) {
        // SAFETY: features proven by `self`.
        let eight = unsafe {
            let bits = _mm256_srli_epi32::<16>(nearest(vector));
            // It packs halves: four numbers twice in either.
            let packed = _mm256_permute4x64_epi64::<0b10_00>(_mm256_packus_epi32(bits, bits));
            _mm256_castsi256_si128(packed)
        };
        if to.len() >= Self::LANES {
            // SAFETY: there is room for eight elements of two bytes.
            unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), eight) }
        } else {
            let mut all = [bf16::ZERO; 8];
            // SAFETY: `all` has eight elements of two bytes.
            unsafe { _mm_storeu_si128(all.as_mut_ptr().cast(), eight) }
            to.copy_from_slice(&all[..to.len()]);
        }
    }

    #[inline(always)]
    fn power_of_2(self, n: F32x8) -> F32x8 {
        power_of_2(Simd::max(self, self.splat(-126.0), n))
    }

    #[inline(always)]
    fn scale(self, vector: F32x8, n: F32x8) -> F32x8 {
        // Two factors, either of which is a normal number. The first product is exact, because only
        // the second one can be subnormal.
        let half = self.round(n * self.splat(0.5));
        vector * power_of_2(half) * power_of_2(n - half)
    }

    #[inline(always)]
    fn pairs(self, low: F32x8, high: F32x8) -> F32x8 {
        // SAFETY: features proven by `self`.
        F32x8(unsafe {
            let low = _mm256_srli_epi32::<16>(rounded(low));
            _mm256_castsi256_ps(_mm256_blend_epi16::<0b1010_1010>(low, rounded(high)))
        })
    }

    #[inline(always)]
    fn neighbours(self, first: F32x8, rest: F32x8) -> F32x8 {
        // SAFETY: features proven by `self`.
        F32x8(unsafe {
            let [first, rest] = [first, rest].map(|eight| _mm256_srli_epi32::<16>(rounded(eight)));
            // It packs halves: four numbers of each vector follow each other in either.
            let packed = _mm256_packus_epi32(first, rest);
            _mm256_castsi256_ps(_mm256_permute4x64_epi64::<0b11_01_10_00>(packed))
        })
    }

    #[inline(always)]
    fn unpair(self, pairs: F32x8) -> [F32x8; 2] {
        // SAFETY: features proven by `self`.
        unsafe {
            let bits = _mm256_castps_si256(pairs.0);
            let high = _mm256_and_si256(bits, _mm256_set1_epi32(!0xffff));
            [_mm256_slli_epi32::<16>(bits), high].map(|half| F32x8(_mm256_castsi256_ps(half)))
        }
    }

    #[inline(always)]
    fn quads(self, terms: [F32x8; 4]) -> F32x8 {
        // SAFETY: features proven by `self`.
        F32x8(unsafe {
            let [a, b, c, d] = terms.map(|eight| _mm256_cvtps_epi32(eight.0));
            // Both packings work on halves: four bytes of each vector follow each other in either.
            let bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
            let in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            let signed = _mm256_permutevar8x32_epi32(bytes, in_order);
            _mm256_castsi256_ps(_mm256_add_epi8(signed, _mm256_set1_epi8(Self::QUAD_OFFSET as i8)))
        })
    }

    #[inline(always)]
    fn add_quads(self, a: F32x8, b: F32x8, c: F32x8) -> F32x8 {
        // SAFETY: features proven by `self`.
        F32x8(unsafe {
            let [a, b, c] = [a, b, c].map(|vector| _mm256_castps_si256(vector.0));
            let sums = if const { VNNI } {
                _mm256_dpbusd_avx_epi32(c, a, b)
            } else {
                // Sums of two products of magnitudes of at most 127 fit in 16 bits.
                let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(a), _mm256_sign_epi8(b, a));
                _mm256_add_epi32(c, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
            };
            _mm256_castsi256_ps(sums)
        })
    }

    #[inline(always)]
    fn of_integers(self, integers: F32x8) -> F32x8 {
        // SAFETY: features proven by `self`.
        F32x8(unsafe { _mm256_cvtepi32_ps(_mm256_castps_si256(integers.0)) })
    }

    #[inline(always)]
    fn interleave(self, a: F32x8, b: F32x8) -> [F32x8; 2] {
        // SAFETY: features proven by `self`.
        unsafe {
            // Interleaved within each half: a0 b0 a1 b1 | a4 b4 a5 b5 and a2 b2 a3 b3 | a6 b6 a7 b7.
            let (low, high) = (_mm256_unpacklo_ps(a.0, b.0), _mm256_unpackhi_ps(a.0, b.0));
            let first = _mm256_permute2f128_ps::<0x20>(low, high);
            let rest = _mm256_permute2f128_ps::<0x31>(low, high);
            [F32x8(first), F32x8(rest)]
        }
    }

    #[inline(always)]
    fn sum(self, vector: F32x8) -> f32 {
        // SAFETY: features proven by `self`.
        unsafe {
            let four =
                _mm_add_ps(_mm256_castps256_ps128(vector.0), _mm256_extractf128_ps::<1>(vector.0));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
}
