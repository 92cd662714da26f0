//! Reads environment variables that select one of a few values.

use std::env;
use std::io::{self, Write};

/// Returns the one of `values` that the environment variable `name` selects. Each value has its spelling, what it
/// stands for, and a short description. The first one is the default.
///
/// An empty variable counts as not set. An unknown value is ignored, with a warning on stderr.
///
/// # Panics
///
/// If there are no `values`.
#[must_use]
pub fn switch<T: Copy>(name: &str, values: &[(&str, T, &str)]) -> T {
    let default = values[0].1;
    let Some(set) = env::var_os(name).filter(|set| !set.is_empty()) else { return default };
    if let Some(&(_, chosen, _)) = values.iter().find(|(spelling, ..)| set == *spelling) {
        return chosen;
    }
    let (set, known) = (set.to_string_lossy(), listed(values));
    // Where stderr cannot be written to, the line is lost.
    let _ = writeln!(io::stderr(), "blockcell: {name}={set} is ignored. Valid values: {known}");
    default
}

/// All values with their meanings, as `a (…, the default), b (…) and c (…)`.
fn listed<T>(values: &[(&str, T, &str)]) -> String {
    let described = values.iter().enumerate().map(|(place, (spelling, _, meaning))| {
        let default = if place == 0 { ", the default" } else { "" };
        let before = match place {
            0 => "",
            _ if place + 1 == values.len() => " and ",
            _ => ", ",
        };
        format!("{before}{spelling} ({meaning}{default})")
    });
    described.collect()
}
