//! Tokens: how they are made, only where the processor has every feature, and how they enter code compiled for these.

use super::WithSimd;

/// Defines how a token type is made and used, from one list of features: the constructor asks the processor for exactly
/// those that `run` is compiled with, by the standard library's macro for its architecture.
macro_rules! token {
    ($is_detected:ident, $token:ty: $($feature:tt),+) => {
        impl $token {
            /// The token, if the processor has every feature.
            pub(super) fn new() -> Option<Self> {
                let all = true $(&& std::arch::$is_detected!($feature))+;
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

/// Implements [`Enter`] for tokens that [`token`] has defined.
macro_rules! enter {
    ($token:ident, $($with:tt),+) => {
        $(impl $crate::simd::token::Enter for $token<$with> {
            #[inline(always)]
            fn run<W: $crate::simd::WithSimd<T>, T>(self, work: W) -> T {
                self.run(work)
            }
        })+
    };
}

pub(super) use {enter, token};
