//! Graphs as text, with changes that no program would make.

use arbitrary::Result;
use blockcell_graphs::{
    Attribute, DataType, Device, Graph, Node, NodeId, Output, rewrite, shield, text,
};

use crate::choices::Choices;

/// How many nodes a graph has at most, so that a run is quick.
const MOST_NODES: usize = 400;

/// Stands between the text of a graph and the changes.
const END_OF_TEXT: u8 = 0;

/// Reads a graph, changes it and rewrites it. Panics if the rewrites do, or if they leave edges to nowhere.
///
/// # Errors
///
/// If the bytes are not a graph.
pub fn graph(bytes: &[u8]) -> Result<()> {
    let (text, changes) = match bytes.iter().position(|&byte| byte == END_OF_TEXT) {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    let refuse = arbitrary::Error::IncorrectFormat;
    let text = std::str::from_utf8(text).map_err(|_| refuse)?;
    if text.lines().count() > MOST_NODES {
        return Err(refuse);
    }
    let parsed = text::parse(text).map_err(|_| refuse)?;
    let mut nodes: Vec<Node> = parsed.ids().map(|id| parsed.node(id).clone()).collect();
    let mut choices = Choices::new(changes);
    let is_shielded = choices.flag();
    for _ in 0..choices.below(24) {
        change(&mut nodes, &mut choices);
    }
    let mut graph = Graph::new(nodes);
    if is_shielded {
        shield(&mut graph);
    }
    let report = rewrite(&mut graph);
    check(&graph);
    // Both are logged.
    let _ = format!("{graph}{report:?}");
    Ok(())
}

/// One node of many.
fn any(nodes: &[Node], choices: &mut Choices<'_>) -> usize {
    (choices.below(256) * 256 + choices.below(256)) % nodes.len()
}

fn change(nodes: &mut Vec<Node>, choices: &mut Choices<'_>) {
    if nodes.is_empty() {
        return;
    }
    let (number, other) = (any(nodes, choices), any(nodes, choices));
    let (kind, place) = (choices.below(12), choices.below(8));
    let output = Output { node: NodeId(other), index: choices.small() };
    let from = nodes[other].clone();
    let node = &mut nodes[number];
    let at = place.min(node.inputs.len());
    match kind {
        0 | 1 if at < node.inputs.len() => node.inputs[at] = output,
        0 | 2 => node.inputs.insert(at, output),
        1 | 3 => node.inputs.truncate(at),
        4 => node.op = from.op,
        5 => node.attributes = from.attributes,
        6 => change_attribute(node, choices),
        7 => node.control_inputs.push(NodeId(other)),
        8 => change_flag(node, choices),
        9 => node.output_types = vec![DataType(choices.number() as i32); place],
        10 => nodes.push(Node { name: format!("copy{}", nodes.len()), ..from }),
        _ => node.name = from.name,
    }
}

fn change_attribute(node: &mut Node, choices: &mut Choices<'_>) {
    let number = choices.number();
    let value = match choices.below(7) {
        0 => Attribute::Bool(number % 2 == 0),
        1 => Attribute::Int(number),
        2 => Attribute::Float(choices.float()),
        3 => Attribute::Type(DataType(number as i32)),
        4 => Attribute::Ints(vec![number; choices.small()]),
        5 => Attribute::Shape(choices.flag().then(|| vec![number; choices.small()])),
        _ => Attribute::Other,
    };
    let count = node.attributes.len();
    match count {
        0 => node.attributes.push(("T".to_owned(), value)),
        _ if choices.flag() => drop(node.attributes.remove(choices.below(count))),
        _ => node.attributes[choices.below(count)].1 = value,
    }
}

fn change_flag(node: &mut Node, choices: &mut Choices<'_>) {
    match choices.below(4) {
        0 => node.is_target ^= true,
        1 => node.may_wait ^= true,
        2 => node.takes_references ^= true,
        _ => node.device = Device { name: "/gpu:0".to_owned(), is_local_cpu: false },
    }
}

/// Every edge leads to a node.
fn check(graph: &Graph) {
    let ids: std::collections::HashSet<_> = graph.ids().collect();
    for id in graph.ids() {
        let node = graph.node(id);
        assert!(
            node.inputs.iter().all(|input| ids.contains(&input.node)),
            "an input of {}",
            node.name
        );
        assert!(node.control_inputs.iter().all(|awaited| ids.contains(awaited)), "{}", node.name);
        assert!(graph.uses(id).all(|one| ids.contains(&one.consumer())), "{}", node.name);
    }
}
