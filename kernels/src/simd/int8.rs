//! Four terms in int8 in the bits of a lane, and int32 sums of their products, in plain Rust.
//!
//! Instruction sets without instructions for them compute by this model. A test compares the others with it, bit for bit.

use std::array;

use super::pairs::lanes;
use super::{MOST_LANES, Simd};

/// The bits of a lane with these four terms.
fn lane(terms: [i8; 4]) -> f32 {
    f32::from_bits(u32::from_le_bytes(terms.map(i8::cast_unsigned)))
}

/// [`Simd::quads`]
#[inline(always)]
pub(super) fn quads<S: Simd>(simd: S, terms: [S::F32; 4]) -> S::F32 {
    let mut all = [0.0; 4 * MOST_LANES];
    for (to, vector) in all.chunks_exact_mut(S::LANES).zip(terms) {
        simd.store(vector, to);
    }
    let mut quads = [0.0; MOST_LANES];
    for (to, terms) in quads.iter_mut().zip(all.as_chunks::<4>().0) {
        *to = lane(terms.map(|term| term.round_ties_even() as i8));
    }
    simd.load(&quads[..S::LANES])
}

/// [`Simd::add_quads`]
#[inline(always)]
pub(super) fn add_quads<S: Simd>(simd: S, a: S::F32, b: S::F32, c: S::F32) -> S::F32 {
    let [a, b, c] = [a, b, c].map(|vector| lanes(simd, vector).map(f32::to_bits));
    let sums: [f32; MOST_LANES] = array::from_fn(|n| {
        let [a, b] = [a[n], b[n]].map(|lane| lane.to_le_bytes().map(|byte| i32::from(byte as i8)));
        let products = a[0] * b[0] + a[1] * b[1] + (a[2] * b[2] + a[3] * b[3]);
        f32::from_bits(c[n].wrapping_add(products.cast_unsigned()))
    });
    simd.load(&sums[..S::LANES])
}

/// [`Simd::of_integers`]
#[inline(always)]
pub(super) fn of_integers<S: Simd>(simd: S, integers: S::F32) -> S::F32 {
    let floats = lanes(simd, integers).map(|lane| lane.to_bits().cast_signed() as f32);
    simd.load(&floats[..S::LANES])
}
