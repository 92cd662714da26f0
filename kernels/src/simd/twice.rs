//! Two vectors as one. Where every operation waits for the one before, as in an activation, operations on a
//! second vector fill the time. The processor does not look far enough ahead to find them by itself.

use std::ops::{Add, Div, Mul, Sub};

use half::{bf16, f16};

use super::{Simd, WithSimd};

/// Vectors of twice the length.
#[derive(Clone, Copy)]
pub(crate) struct Twice<S>(pub(crate) S);

/// Two vectors.
#[derive(Clone, Copy)]
pub(crate) struct Pair<V>([V; 2]);

macro_rules! operator {
    ($operator:ident, $method:ident) => {
        impl<V: Copy + $operator<Output = V>> $operator for Pair<V> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Pair([self.0[0].$method(other.0[0]), self.0[1].$method(other.0[1])])
            }
        }
    };
}

operator!(Add, add);
operator!(Sub, sub);
operator!(Mul, mul);
operator!(Div, div);

/// Methods that are the same for each of the two vectors. A closure might not be inlined.
macro_rules! of_each {
    ($($method:ident($($argument:ident),+);)+) => {
        $(#[inline(always)]
        fn $method(self, $($argument: Self::F32),+) -> Self::F32 {
            Pair([self.0.$method($($argument.0[0]),+), self.0.$method($($argument.0[1]),+)])
        })+
    };
}

/// The elements of each vector.
#[inline(always)]
fn halves<S: Simd, E>(elements: &[E]) -> [&[E]; 2] {
    elements.split_at(elements.len().min(S::LANES)).into()
}

#[inline(always)]
fn halves_mut<S: Simd, E>(elements: &mut [E]) -> [&mut [E]; 2] {
    elements.split_at_mut(elements.len().min(S::LANES)).into()
}

impl<S: Simd> Simd for Twice<S> {
    type F32 = Pair<S::F32>;

    const LANES: usize = 2 * S::LANES;
    const REGISTERS: usize = S::REGISTERS / 2;
    const ESTIMATE_BITS: u32 = S::ESTIMATE_BITS;

    /// Inlined: a function for the instruction set is entered with the vectors of [`Self::0`] alone.
    #[inline(always)]
    fn enter<W: WithSimd<T>, T>(self, work: W) -> T {
        work.run(self)
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::F32 {
        Pair([self.0.splat(value); 2])
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> Self::F32 {
        let [first, rest] = halves::<S, _>(from);
        Pair([self.0.load(first), self.0.load(rest)])
    }

    #[inline(always)]
    fn store(self, vector: Self::F32, to: &mut [f32]) {
        let [first, rest] = halves_mut::<S, _>(to);
        self.0.store(vector.0[0], first);
        self.0.store(vector.0[1], rest);
    }

    #[inline(always)]
    fn load_f16(self, from: &[f16]) -> Self::F32 {
        let [first, rest] = halves::<S, _>(from);
        Pair([self.0.load_f16(first), self.0.load_f16(rest)])
    }

    #[inline(always)]
    fn store_f16(self, vector: Self::F32, to: &mut [f16]) {
        let [first, rest] = halves_mut::<S, _>(to);
        self.0.store_f16(vector.0[0], first);
        self.0.store_f16(vector.0[1], rest);
    }

    #[inline(always)]
    fn load_bf16(self, from: &[bf16]) -> Self::F32 {
        let [first, rest] = halves::<S, _>(from);
        Pair([self.0.load_bf16(first), self.0.load_bf16(rest)])
    }

    #[inline(always)]
    fn store_bf16(self, vector: Self::F32, to: &mut [bf16]) {
        let [first, rest] = halves_mut::<S, _>(to);
        self.0.store_bf16(vector.0[0], first);
        self.0.store_bf16(vector.0[1], rest);
    }

    #[inline(always)]
    fn prefetch(self, address: *const u8) {
        self.0.prefetch(address);
    }

    #[inline(always)]
    fn prefetch_second_level(self, address: *const u8) {
        self.0.prefetch_second_level(address);
    }

    of_each! {
        mul_add(a, b, c);
        neg_mul_add(a, b, c);
        max(a, b);
        min(a, b);
        abs(vector);
        where_within(vector, tested, bound);
        copysign(magnitude, sign);
        round(vector);
        power_of_2(n);
        scale(vector, n);
        reciprocal_estimate(vector);
    }

    #[inline(always)]
    fn interleave(self, a: Self::F32, b: Self::F32) -> [Self::F32; 2] {
        [Pair(self.0.interleave(a.0[0], b.0[0])), Pair(self.0.interleave(a.0[1], b.0[1]))]
    }

    #[inline(always)]
    fn sum(self, vector: Self::F32) -> f32 {
        self.0.sum(vector.0[0] + vector.0[1])
    }
}
