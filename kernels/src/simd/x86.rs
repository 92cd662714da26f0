//! What the x86 instruction sets share: their tokens, and the operations that are one intrinsic each.

use super::WithSimd;

/// Defines how a token type for x86 instruction sets is made and used, from one list of features: the constructor asks
/// the processor for exactly those that `enter` is compiled with.
macro_rules! x86_token {
    ($token:ty: $($feature:tt),+) => {
        impl $token {
            /// The token, if the processor has every feature.
            pub(super) fn new() -> Option<Self> {
                let all = true $(&& std::arch::is_x86_feature_detected!($feature))+;
                all.then_some(Self(()))
            }

            /// Runs `work` in code compiled for the features.
            #[inline]
            fn run<W: $crate::simd::WithSimd<T>, T>(self, work: W) -> T {
                $(#[target_feature(enable = $feature)])+
                #[inline(never)]
                fn compiled<W: $crate::simd::WithSimd<T>, T>(simd: $token, work: W) -> T {
                    work.run(simd)
                }
                // SAFETY: `self` exists only where `new` found every feature that `compiled` needs.
                unsafe { compiled(self, work) }
            }
        }
    };
}

/// What tokens are for that differ in what they prove beside the rest.
pub(super) trait Enter {
    /// Runs `work` in code compiled for the features.
    fn run<W: WithSimd<T>, T>(self, work: W) -> T;
}

/// Implements [`Enter`] for tokens that [`x86_token`] has defined.
macro_rules! enter {
    ($token:ident, $($with:tt),+) => {
        $(impl $crate::simd::x86::Enter for $token<$with> {
            #[inline(always)]
            fn run<W: $crate::simd::WithSimd<T>, T>(self, work: W) -> T {
                self.run(work)
            }
        })+
    };
}

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

pub(super) use {enter, x86_methods, x86_token, x86_vector};
