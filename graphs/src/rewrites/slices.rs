//! Rewrite: the gradients of a cell's inputs, without the matrix of all of them.
//!
//! `MatMul(dz, w, transpose_b)`, and the `Slice`s that take columns of it, become one
//! `BlockcellMatMulSlice`. Without such slices the product alone does.
//!
//! Conditions, and where they are checked:
//!
//! * Nothing but slices takes the product. They have constant sizes, the same rows from the first one
//!   on, and no column in common: [`Slices::read`], [`Slices::check_columns`].
//! * All outputs of the new node have a value, and have it, at the same time. So no slice may wait for
//!   anything that the product does not wait for anyhow; or all wait for the same, and nothing else
//!   waits for the product, whose factors do not change meanwhile: [`Slices::check_waits`].

use std::collections::BTreeSet;

use crate::facts::memory::Memory;
use crate::facts::placement::{check_beside, check_replaceable, check_same_device};
use crate::facts::waits::{Before, waits_for};
use crate::graph::reason::Reason;
use crate::graph::report::Report;
use crate::graph::{Graph, NodeId, Output, ops};
use crate::reading::constants::integers;
use crate::reading::gradients::preactivation_grad;
use crate::reading::neighbours::transposes;
use crate::rewrites::replacement::Replacement;

/// Rewrites all such products of a graph.
pub(crate) fn rewrite(graph: &mut Graph, report: &mut Report) {
    let memory = Memory::of(graph);
    let ids: Vec<_> = graph.ids().collect();
    for id in ids {
        if graph.get(id).is_none() || !is_product(graph, id) {
            continue;
        }
        if let Err(reason) = check(graph, id) {
            report.stays(id, reason);
            continue;
        }
        let slices = Slices::read(graph, id)
            .and_then(|slices| slices.check_waits(graph, &memory, id).map(|()| slices));
        match slices {
            Ok(slices) => slices.emit(graph, id, report, None),
            Err(reason) => Slices::none().emit(graph, id, report, Some(reason)),
        }
    }
}

/// Whether a node is `MatMul(dz, right, transpose_b)`.
pub(crate) fn is_product(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    node.op == "MatMul"
        && transposes(node) == Some([false, true])
        && preactivation_grad(graph, node.inputs[0]).is_some()
}

fn check(graph: &Graph, id: NodeId) -> Result<(), Reason> {
    check_replaceable(graph.node(id))?;
    check_same_device(graph, graph.input(id, 0).node, id)
}

/// The slices of a product, in the order of their first columns.
struct Slices {
    nodes: Vec<NodeId>,
    columns: Vec<Columns>,
    /// How many rows they have, from the first one on; -1 for all.
    rows: i64,
}

/// Some columns of a product.
#[derive(Clone, Copy)]
struct Columns {
    begin: i64,
    /// -1 for all from `begin` on.
    size: i64,
}

impl Slices {
    /// That the whole product is wanted.
    fn none() -> Slices {
        Slices { nodes: Vec::new(), columns: vec![Columns { begin: 0, size: -1 }], rows: -1 }
    }

    fn read(graph: &Graph, product: NodeId) -> Result<Slices, Reason> {
        let nodes: BTreeSet<_> = graph.data_consumers(product).collect();
        let mut found = Vec::new();
        for &node in &nodes {
            let (rows, columns) = read_slice(graph, node)
                .ok_or_else(|| Reason::Slices(graph.node(node).name.clone()))?;
            check_beside(graph, node, product)?;
            found.push((node, rows, columns));
        }
        let Some(&(_, rows, _)) = found.first() else { return Err(Reason::NothingToSave) };
        if let Some((node, ..)) = found.iter().find(|(_, other, _)| *other != rows) {
            return Err(Reason::Slices(graph.node(*node).name.clone()));
        }
        found.sort_by_key(|(_, _, columns)| columns.begin);
        let (nodes, columns) = found.into_iter().map(|(node, _, columns)| (node, columns)).unzip();
        let slices = Slices { nodes, columns, rows };
        slices.check_columns()?;
        Ok(slices)
    }

    /// Whether no two slices have columns in common. The product would be computed twice.
    fn check_columns(&self) -> Result<(), Reason> {
        let wanted: Vec<_> = self.columns.iter().filter(|columns| columns.size != 0).collect();
        let overlap = wanted.windows(2).any(|pair| {
            let [left, right] = [pair[0], pair[1]];
            left.size < 0 || left.begin.saturating_add(left.size) > right.begin
        });
        if overlap { Err(Reason::Overlap) } else { Ok(()) }
    }

    /// Whether no consumer of a slice has to wait longer, or goes without a value, if all slices
    /// wait for what any of them waits for.
    fn check_waits(&self, graph: &Graph, memory: &Memory, product: NodeId) -> Result<(), Reason> {
        let waits: Vec<_> = self.nodes.iter().map(|&slice| waits_for(graph, slice)).collect();
        if waits.iter().all(BTreeSet::is_empty) {
            return Ok(());
        }
        let before = Before::of(graph, product);
        let mut more = Vec::new();
        for (&slice, waits) in self.nodes.iter().zip(waits) {
            let open = waits.into_iter().filter(|&awaited| !before.implies(awaited));
            more.push((slice, open.collect::<BTreeSet<_>>()));
        }
        if more.iter().all(|(_, waits)| waits.is_empty()) {
            return Ok(());
        }
        let all_wait_for_the_same = more.iter().all(|(_, waits)| *waits == more[0].1);
        if all_wait_for_the_same && graph.waiting(product).next().is_none() {
            // The product is computed later than before.
            return memory.check_stable(graph, &graph.node(product).inputs);
        }
        let waiting = more.iter().find(|(_, waits)| !waits.is_empty());
        let slice = waiting.map_or(product, |&(slice, _)| slice);
        Err(Reason::Waits { slice: graph.node(slice).name.clone() })
    }

    fn emit(self, graph: &mut Graph, product: NodeId, report: &mut Report, but: Option<Reason>) {
        let mut replacement = Replacement::of(graph, product, ops::MAT_MUL_SLICE);
        for &slice in &self.nodes {
            replacement.absorb(graph, slice);
        }
        let inputs: [Output; 2] = [graph.input(product, 0), graph.input(product, 1)];
        replacement.take(inputs);
        let numbers = |of: fn(&Columns) -> i64| self.columns.iter().map(of).collect::<Vec<_>>();
        replacement.set("num_parts", self.columns.len());
        replacement.set("begins", numbers(|columns| columns.begin));
        replacement.set("sizes", numbers(|columns| columns.size));
        replacement.set("rows", self.rows);
        let parts = self.columns.len();
        let replaced = if self.nodes.is_empty() { vec![product] } else { self.nodes };
        let new = replacement.finish_for(graph, &replaced);
        report.rewritten(graph, new, parts, but);
    }
}

/// The rows and columns that a constant `Slice` takes, which begins in the first row.
fn read_slice(graph: &Graph, id: NodeId) -> Option<(i64, Columns)> {
    let node = graph.node(id);
    if node.op != "Slice" {
        return None;
    }
    let &[0, begin] = integers(graph, node.inputs[1])? else { return None };
    let &[rows, size] = integers(graph, node.inputs[2])? else { return None };
    let fits = |value: i64, least| (least..=i64::from(i32::MAX)).contains(&value);
    let all_fit = fits(begin, 0) && fits(size, -1) && fits(rows, -1);
    all_fit.then_some((rows, Columns { begin, size }))
}
