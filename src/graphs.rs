//! The part that knows both TensorFlow's graphs and their rewrites.
//!
//! The graph passes in `cpp/rewrites.cc` describe a graph here and apply the changes that come back.
//! What is rewritten, and when, is decided in the crate `blockcell_graphs`.

pub(crate) mod log;
pub(crate) mod node_def;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use blockcell_graphs::{self as graphs, Edit, Graph, Node, NodeId, Output, ops};
use ffi::{Change, ChangeKind, Changes, GraphEdge, GraphNode, NewNode};

use crate::bridge::or_default;
use crate::switches::wants_rewrites;

// cxx generates the `unsafe` of the calls. We rely on `cpp/rewrites.cc` to leave a graph, and its description, as they
// are until a call returns: the slices and strings point into both. Nothing here keeps one longer.
#[allow(unreachable_pub, unsafe_code)]
#[cxx::bridge(namespace = "blockcell")]
mod ffi {
    /// A node of a graph. Its number is its place.
    struct GraphNode<'a> {
        name: &'a str,
        op: &'a str,
        /// The device that it was placed on.
        device: &'a str,
        is_local_cpu: bool,
        /// Whether it takes the memory of variables, and not only values.
        takes_references: bool,
        /// Whether TensorFlow takes its operation to have a state.
        is_stateful: bool,
        /// Whether a step runs it even if nobody reads its outputs.
        is_target: bool,
        /// The types of its outputs, by TensorFlow's numbers.
        output_types: &'a [i32],
        /// Its serialised `NodeDef` for operations that [`reads_attributes`] names, otherwise empty.
        definition: &'a [u8],
    }

    /// An edge of a graph.
    struct GraphEdge {
        from: usize,
        /// -1 for an edge of control.
        output: i32,
        to: usize,
        /// -1 for an edge of control.
        input: i32,
    }

    /// A node to add to a graph.
    struct NewNode {
        /// Its serialised `NodeDef`, without inputs.
        definition: Vec<u8>,
        device: String,
    }

    enum ChangeKind {
        /// Add an edge. It takes the place of the one that leads to the same input.
        AddEdge,
        /// Remove an edge of control.
        RemoveControlEdge,
        /// Remove the node `edge.to`.
        RemoveNode,
    }

    struct Change {
        kind: ChangeKind,
        edge: GraphEdge,
    }

    /// What to do with a graph: first add all nodes, whose numbers follow those of the nodes that
    /// there are, then apply the changes in their order.
    #[derive(Default)]
    struct Changes {
        nodes: Vec<NewNode>,
        changes: Vec<Change>,
    }

    extern "Rust" {
        /// Whether graphs are rewritten, as far as the environment says.
        fn wants_rewrites() -> bool;

        /// Whether a graph with this operation may be rewritten. Others need not be described.
        fn starts_rewrites(op: &str) -> bool;

        /// Whether nodes of this operation need a definition in their description.
        fn reads_attributes(op: &str) -> bool;

        /// The changes before TensorFlow's optimizers run.
        fn shield_graph(nodes: &[GraphNode], edges: &[GraphEdge]) -> Changes;

        /// The changes before a graph is cut into devices.
        fn rewrite_graph(nodes: &[GraphNode], edges: &[GraphEdge]) -> Changes;

        /// Notes how long it took to rewrite a graph of so many nodes, to describe it and to apply the
        /// changes.
        fn note_time(nodes: usize, seconds: f64);

        /// Notes that TensorFlow did not accept the changes of a pass, and the graph stays as it was.
        fn note_failed_pass();

        /// Notes that a graph was not rewritten because its session does not want that.
        fn note_unwanted();
    }
}

/// How many nodes of which operation were put into graphs of this process.
static REWRITTEN: LazyLock<BTreeMap<&'static str, AtomicUsize>> =
    LazyLock::new(|| ops::replacements().map(|op| (op, AtomicUsize::new(0))).collect());

/// How often a pass failed by a fault of this library, and left its graph as it was.
static FAILED: AtomicUsize = AtomicUsize::new(0);

/// How many nodes of which operation were put into graphs of this process.
pub(crate) fn rewritten() -> BTreeMap<&'static str, usize> {
    REWRITTEN.iter().map(|(&op, count)| (op, count.load(Ordering::Relaxed))).collect()
}

/// Counts a node of one of these operations.
pub(crate) fn count(op: &str) {
    let counter = REWRITTEN.get(op);
    debug_assert!(counter.is_some(), "{op} is not counted");
    // A count is not worth the loss of a rewrite.
    if let Some(counter) = counter {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// How often a pass of this process failed.
pub(crate) fn failed_passes() -> usize {
    FAILED.load(Ordering::Relaxed)
}

/// Runs a pass. One that panics says so, is counted, and changes nothing.
pub(crate) fn pass<T: Default>(name: &str, run: impl FnOnce() -> T) -> T {
    let run = || {
        blockcell_failpoints::here("pass");
        Some(run())
    };
    or_default(name, run).unwrap_or_else(|| {
        note_failed_pass();
        T::default()
    })
}

fn note_failed_pass() {
    FAILED.fetch_add(1, Ordering::Relaxed);
}

fn starts_rewrites(op: &str) -> bool {
    ops::starts_rewrites(op)
}

fn reads_attributes(op: &str) -> bool {
    ops::has_attributes(op)
}

fn shield_graph(nodes: &[GraphNode<'_>], edges: &[GraphEdge]) -> Changes {
    pass("the pass before TensorFlow's optimizers", || {
        let mut graph = graph_of(nodes, edges);
        graphs::shield(&mut graph);
        changes_of(&graph)
    })
}

fn rewrite_graph(nodes: &[GraphNode<'_>], edges: &[GraphEdge]) -> Changes {
    pass("the pass that rewrites graphs", || {
        let mut graph = graph_of(nodes, edges);
        log::graph("before", &graph);
        let report = graphs::rewrite(&mut graph);
        report.rewritten.iter().for_each(|new| count(&new.op));
        log::report(&report);
        log::graph("after", &graph);
        changes_of(&graph)
    })
}

fn note_time(nodes: usize, seconds: f64) {
    or_default("the log", || log::time(nodes, seconds));
}

fn note_unwanted() {
    or_default("the log", || {
        log::line("not rewritten: disabled by the configuration of the session")
    });
}

fn graph_of(nodes: &[GraphNode<'_>], edges: &[GraphEdge]) -> Graph {
    let mut described: Vec<_> = nodes.iter().map(node_def::describe).collect();
    let unset = Output { node: NodeId(usize::MAX), index: 0 };
    for edge in edges {
        let node: &mut Node = &mut described[edge.to];
        let from = NodeId(edge.from);
        match (usize::try_from(edge.output), usize::try_from(edge.input)) {
            (Ok(index), Ok(input)) => {
                if node.inputs.len() <= input {
                    node.inputs.resize(input + 1, unset);
                }
                node.inputs[input] = Output { node: from, index };
            }
            _ => node.control_inputs.push(from),
        }
    }
    Graph::new(described)
}

fn changes_of(graph: &Graph) -> Changes {
    let mut all = Changes::default();
    let control =
        |from: NodeId, to: NodeId| GraphEdge { from: from.0, output: -1, to: to.0, input: -1 };
    let data = |from: Output, to: NodeId, input: usize| GraphEdge {
        from: from.node.0,
        output: small(from.index),
        to: to.0,
        input: small(input),
    };
    for edit in graph.edits() {
        let mut change = |kind, edge| all.changes.push(Change { kind, edge });
        match *edit {
            Edit::Add { node, ref definition } => {
                for (input, &from) in definition.inputs.iter().enumerate() {
                    change(ChangeKind::AddEdge, data(from, node, input));
                }
                for &awaited in &definition.control_inputs {
                    change(ChangeKind::AddEdge, control(awaited, node));
                }
                let device = definition.device.name.clone();
                all.nodes.push(NewNode { definition: node_def::encode(definition), device });
            }
            Edit::SetInput { node, input, to } => {
                change(ChangeKind::AddEdge, data(to, node, input))
            }
            Edit::MoveControl { node, from, to } => {
                change(ChangeKind::RemoveControlEdge, control(from, node));
                change(ChangeKind::AddEdge, control(to, node));
            }
            Edit::Remove { node } => change(ChangeKind::RemoveNode, control(node, node)),
        }
    }
    all
}

fn small(number: usize) -> i32 {
    i32::try_from(number).expect("TensorFlow numbers inputs and outputs by 32 bits")
}
