//! The one rule for variables of the environment that choose among a few values.

use std::env;
use std::io::{self, Write};

/// What the environment variable `name` chooses among `values`. Each value has its spelling, what it stands for, and
/// its meaning in a few words. The first one is the default.
///
/// An empty variable counts as not set. A value that is not among them is ignored, and a line on stderr says so.
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
    let _ = writeln!(io::stderr(), "blockcell: {name}={set} is ignored. The values are {known}");
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
