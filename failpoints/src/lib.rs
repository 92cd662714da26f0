//! Places where tests make the library fail. Without the feature `on` they are empty.

use std::fmt::Arguments;

/// Reads the environment variable `FAILPOINTS`. To be called before the others.
#[inline]
pub fn set_up() {
    #[cfg(feature = "on")]
    {
        // Once: the scenario, which is never torn down, holds a lock.
        static SETUP: std::sync::Once = std::sync::Once::new();
        SETUP.call_once(|| std::mem::forget(fail::FailScenario::setup()));
    }
}

/// Panics, waits or prints, if `FAILPOINTS` says so of this name.
#[inline]
#[cfg_attr(not(feature = "on"), expect(unused_variables))]
pub fn here(name: &str) {
    #[cfg(feature = "on")]
    fail::fail_point!(name);
}

/// Whether `FAILPOINTS` says `return` of this name.
#[inline]
#[cfg_attr(not(feature = "on"), expect(unused_variables))]
pub fn returns(name: Arguments<'_>) -> bool {
    #[cfg(feature = "on")]
    fail::fail_point!(&name.to_string(), |_| true);
    false
}
