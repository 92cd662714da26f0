//! What the x86 instruction sets share: the operations that are one intrinsic each.

/// Defines a vector type and its operators, one intrinsic each.
macro_rules! x86_vector {
    ($(#[$doc:meta])* $vector:ident($register:ty): $($operator:ident $method:ident $intrinsic:ident),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) struct $vector($register);

        $(impl std::ops::$operator for $vector {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                // SAFETY: vectors are made only by methods of the token, so the processor has the
                // instruction.
                $vector(unsafe { $intrinsic(self.0, other.0) })
            }
        })+
    };
}

/// Methods of [`Simd`](super::Simd) for an x86 instruction set: those that are the same for each, and those on vectors
/// by an expression of intrinsics on registers.
macro_rules! x86_methods {
    ($vector:ident, $splat:ident; $($method:ident($($argument:ident),+) = $result:expr;)+) => {
        #[inline(always)]
        fn enter<W: $crate::simd::WithSimd<T>, T>(self, work: W) -> T {
            self.run(work)
        }

        #[inline(always)]
        fn prefetch(self, address: *const u8) {
            // SAFETY: features proven by `self`; a prefetch never faults, wherever it points.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
        }

        #[inline(always)]
        fn prefetch_second_level(self, address: *const u8) {
            // SAFETY: as for `prefetch`.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
        }

        #[inline(always)]
        fn splat(self, value: f32) -> $vector {
            // SAFETY: features proven by `self`.
            $vector(unsafe { $splat(value) })
        }

        $(#[inline(always)]
        fn $method(self, $($argument: $vector),+) -> $vector {
            $(let $argument = $argument.0;)+
            // SAFETY: features proven by `self`; the expressions only compute on registers.
            $vector(unsafe { $result })
        })+
    };
}

pub(super) use {x86_methods, x86_vector};
