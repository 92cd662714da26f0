//! `BLOCKCELL_LOG`: what is rewritten in which graph, on stderr.
//!
//! With `1` there is a line for each place. With `2` the graphs are printed, too.

use std::sync::atomic::{AtomicUsize, Ordering};

use blockcell_graphs::{Graph, Report};

use crate::switches::LOG;

/// How many graphs were looked at.
static GRAPHS: AtomicUsize = AtomicUsize::new(0);

/// Prints what was done to a graph, and what was not and why.
pub(super) fn report(report: &Report) {
    if *LOG > 0 {
        let number = GRAPHS.fetch_add(1, Ordering::Relaxed);
        let lines: Vec<_> = report.lines().map(|line| prefixed(number, &line)).collect();
        eprint!("{}", lines.concat());
    }
}

/// Prints a line about a graph that is not rewritten.
pub(super) fn line(words: &str) {
    if *LOG > 0 {
        eprint!("{}", prefixed(GRAPHS.fetch_add(1, Ordering::Relaxed), words));
    }
}

/// Prints lines about a library of functions.
pub(crate) fn functions(words: &str) {
    if *LOG > 0 {
        let lines: Vec<_> = words.lines().map(|line| format!("blockcell: {line}\n")).collect();
        eprint!("{}", lines.concat());
    }
}

/// Prints what the pass cost.
pub(super) fn time(nodes: usize, seconds: f64) {
    if *LOG > 0 {
        let milliseconds = 1e3 * seconds;
        eprintln!("blockcell: a graph of {nodes} nodes took the pass {milliseconds:.1} ms");
    }
}

/// Prints a graph.
pub(super) fn graph(when: &str, graph: &Graph) {
    if *LOG > 1 {
        eprint!("blockcell: the graph {when} it is rewritten:\n{graph}");
    }
}

fn prefixed(number: usize, words: &str) -> String {
    format!("blockcell: graph {number}: {words}\n")
}
