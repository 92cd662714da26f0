//! What becomes of a graph: the nodes that it has then, and the report.

use blockcell_graphs::{Graph, Report, rewrite};

use super::notation::{graph, lines};
use super::replay::assert_replays;

/// A graph in the [notation](super::notation) of tests, rewritten.
pub(crate) struct Rewriting {
    before: Graph,
    after: Graph,
    report: Report,
}

/// Rewrites a graph. That its edits say the same is a part of it.
pub(crate) fn rewriting(text: &str) -> Rewriting {
    let (before, mut after) = (graph(text), graph(text));
    let report = rewrite(&mut after);
    assert_replays(&before, &after);
    Rewriting { before, after, report }
}

impl Rewriting {
    /// The nodes are these now. What is fed, constants and cells need not be named.
    pub(crate) fn becomes(self, text: &str) -> Rewriting {
        let mut want = lines(text);
        want.retain(|line| is_of_interest(line));
        want.sort();
        assert_eq!(of_interest(&self.after), want, "\nafter:\n{}\n{:?}", self.after, self.report);
        self
    }

    /// Nothing has changed.
    pub(crate) fn stays(self) -> Rewriting {
        assert_eq!(self.after.to_string(), self.before.to_string(), "{:?}", self.report);
        assert!(self.after.edits().is_empty());
        self
    }

    /// The report has these lines.
    pub(crate) fn reports(self, text: &str) -> Rewriting {
        let mut want: Vec<_> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let mut got: Vec<_> = self.report.lines().collect();
        want.sort_unstable();
        got.sort_unstable();
        assert_eq!(got, want, "\nafter:\n{}", self.after);
        self
    }

    /// The report has these lines and others.
    pub(crate) fn reports_among_others(&self, text: &str) {
        let lines: Vec<_> = self.report.lines().collect();
        for want in text.lines().map(str::trim) {
            assert!(lines.iter().any(|line| line == want), "no {want:?}");
        }
    }

    /// The lines of the report.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.report.lines().collect()
    }

    /// The graph now.
    pub(crate) fn text(&self) -> String {
        self.after.to_string()
    }

    /// There is, or is not, a node of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.after.ids().any(|id| self.after.node(id).name == name)
    }
}

/// The lines of a graph that tests name.
fn of_interest(graph: &Graph) -> Vec<String> {
    let text = graph.to_string();
    let mut lines: Vec<_> =
        text.lines().filter(|line| is_of_interest(line)).map(str::to_owned).collect();
    lines.sort();
    lines
}

fn is_of_interest(line: &str) -> bool {
    let ops = ["Placeholder(", "Const(", "LSTMBlockCellGrad(", "GRUBlockCellGrad("];
    !ops.iter().any(|op| line.contains(&format!("= {op}")))
}
