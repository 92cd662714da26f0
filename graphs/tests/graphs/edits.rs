//! The changes that come of a rewrite, one by one. That they lead to the rewritten graph is a part of
//! all tests ([`rewriting`](crate::common::rewriting::rewriting)).

use crate::common::notation::graph;
use crate::common::replay::assert_replays;
use blockcell_graphs::{Edit, Graph, rewrite, shield};

fn words(graph: &Graph, names: &[&str]) -> Vec<String> {
    let name = |id: blockcell_graphs::NodeId| names.get(id.0).copied().unwrap_or("new");
    let words = |edit: &Edit| match edit {
        Edit::Add { definition, .. } => format!("add {} {}", definition.op, definition.name),
        Edit::SetInput { node, input, to } => {
            format!("{} takes {}:{} as {input}", name(*node), name(to.node), to.index)
        }
        Edit::MoveControl { node, from, to } => {
            format!("{} waits for {}, not {}", name(*node), name(*to), name(*from))
        }
        Edit::Remove { node } => format!("remove {}", name(*node)),
    };
    graph.edits().iter().map(words).collect()
}

fn names(graph: &Graph) -> Vec<&str> {
    graph.ids().map(|id| graph.node(id).name.as_str()).collect()
}

#[test]
fn a_graph_that_stays_has_no_edits() {
    let mut graph = graph("out = Apply(x)");
    rewrite(&mut graph);
    assert!(graph.edits().is_empty());
}

#[test]
fn nodes_are_added_before_they_are_used_and_removed_after() {
    let text = "cell1 = lstm(x1, h1)
        p = dx_dh(cell1)
        begin = Const() value=[0,0]
        size = Const() value=[-1,2]
        dx = Slice(p, begin, size)
        out = Apply(dx)
        later = NoOp(^dx, ^p)";
    let (before, mut after) = (graph(text), graph(text));
    rewrite(&mut after);
    assert_replays(&before, &after);
    assert_eq!(
        words(&after, &names(&before)),
        [
            "add BlockcellMatMulSlice p",
            "out takes new:0 as 0",
            "later waits for new, not dx",
            "remove dx",
            "remove size",
            "remove begin",
            "later waits for new, not p",
            "remove p",
        ]
    );
}

#[test]
fn a_shield_can_be_replayed() {
    let text = "cell1 = lstm(x1, h1)
        p1 = product(left1, cell1)
        sum = AddN(a, p1, b, ^c)
        out = Apply(sum, ^sum)";
    let (before, mut after) = (graph(text), graph(text));
    shield(&mut after);
    assert_replays(&before, &after);
    rewrite(&mut after);
    assert_replays(&before, &after);
}

/// Two sums, one of which adds the other up, and both are replaced.
#[test]
fn nodes_that_were_added_change_again() {
    let text = "v = VariableV2()
        written = Assign(v, fed)
        cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        p1 = product(left1, cell1)
        p2 = product(left2, cell2)
        inner = AddN(p1, v)
        sum = AddN(inner, p2)";
    let (before, mut after) = (graph(text), graph(text));
    rewrite(&mut after);
    assert_replays(&before, &after);
    let numbers: Vec<_> =
        after.edits().iter().filter(|edit| matches!(edit, Edit::Add { .. })).collect();
    assert_eq!(numbers.len(), 2);
}
