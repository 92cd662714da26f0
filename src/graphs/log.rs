//! `BLOCKCELL_LOG`: logs what is rewritten in which graph to stderr.
//!
//! `1` logs a line for each place, and `2` also the graphs.

use std::sync::atomic::{AtomicUsize, Ordering};

use blockcell_graphs::{Graph, Report};

use crate::switches::LOG;

/// The number of graphs that the passes have seen.
static GRAPHS: AtomicUsize = AtomicUsize::new(0);

/// Logs what was rewritten in a graph, and what was not and why.
pub(super) fn report(report: &Report) {
    if *LOG > 0 {
        let number = GRAPHS.fetch_add(1, Ordering::Relaxed);
        let lines: Vec<_> = report.lines().map(|line| prefixed(number, &line)).collect();
        eprint!("{}", lines.concat());
    }
}

/// Logs a line about a graph that is not rewritten.
pub(super) fn line(words: &str) {
    if *LOG > 0 {
        eprint!("{}", prefixed(GRAPHS.fetch_add(1, Ordering::Relaxed), words));
    }
}

/// Logs lines about a library of functions.
pub(crate) fn functions(words: &str) {
    if *LOG > 0 {
        let lines: Vec<_> = words.lines().map(|line| format!("blockcell: {line}\n")).collect();
        eprint!("{}", lines.concat());
    }
}

/// Logs the time of the pass.
pub(super) fn time(nodes: usize, seconds: f64) {
    if *LOG > 0 {
        let milliseconds = 1e3 * seconds;
        eprintln!("blockcell: the pass took {milliseconds:.1} ms on a graph of {nodes} nodes");
    }
}

/// Logs a graph.
pub(super) fn graph(when: &str, graph: &Graph) {
    if *LOG > 1 {
        eprint!("blockcell: the graph {when} rewriting:\n{graph}");
    }
}

fn prefixed(number: usize, words: &str) -> String {
    format!("blockcell: graph {number}: {words}\n")
}
