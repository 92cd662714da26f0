//! Graphs as text ([`blockcell_graphs::text`]), with words for what nearly all tests have:
//!
//! | word | stands for |
//! |---|---|
//! | `lstm(x, h)`, `lstm(x, h, w, bias)` | `LSTMBlockCellGrad`, whose second output is `dicfo` |
//! | `gru(x, h, r)` | `GRUBlockCellGrad`, whose outputs 2 and 3 are `d_c_bar` and `d_r_bar_u_bar` |
//! | `concat(a, b)` | `ConcatV2` of columns |
//! | `product(left, cell)` | `MatMul(left, cell:1)`, the left one transposed |
//! | `bias_grad(cell)` | `BiasAddGrad(cell:1)` |
//! | `dx_dh(cell)`, `dx_dh(cell, w)` | `MatMul(cell:1, w)`, the right one transposed |
//! | `columns(p, begin, size)` | `Slice(p, ...)` by the constants `..._begin` and `..._size` |
//!
//! A name that no line explains is a `Placeholder`, but for `axis`, which is 1. A bias `b` is known to be a vector.

use std::collections::BTreeSet;

use blockcell_graphs::Graph;
use blockcell_graphs::text::parse;

/// Reads a graph in this notation.
pub(crate) fn graph(text: &str) -> Graph {
    let lines = lines(text);
    let defined: BTreeSet<_> = lines.iter().filter_map(|line| Some(split(line)?.0)).collect();
    let taken: BTreeSet<_> = lines.iter().flat_map(|line| sources(line)).collect();
    let open = taken.difference(&defined).map(|&name| match name {
        "axis" => "axis = Const() value=1\n".to_owned(),
        "b" => "b = Placeholder() shape=[8]\n".to_owned(),
        _ => format!("{name} = Placeholder()\n"),
    });
    let text = open.collect::<String>() + &lines.join("\n");
    parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The lines of a text, with its words written out.
pub(crate) fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.flat_map(write_out).collect()
}

/// Name, operation, arguments and the rest of a line.
fn split(line: &str) -> Option<(&str, &str, Vec<&str>, &str)> {
    let (name, call) = line.split_once('=')?;
    let (op, call) = call.split_once('(')?;
    let (arguments, rest) = call.split_once(')')?;
    let arguments = arguments.split(',').map(str::trim).filter(|one| !one.is_empty());
    Some((name.trim(), op.trim(), arguments.collect(), rest))
}

/// The nodes that a line depends on.
fn sources(line: &str) -> Vec<&str> {
    let (_, _, arguments, _) = split(line).unwrap_or_else(|| panic!("no node: {line}"));
    let names = arguments.into_iter().map(|one| one.trim_start_matches('^'));
    names.map(|name| name.split(':').next().unwrap_or(name)).collect()
}

fn write_out(line: &str) -> Vec<String> {
    let (name, op, arguments, rest) = split(line).unwrap_or_else(|| panic!("no node: {line}"));
    let (waits, inputs): (Vec<_>, Vec<_>) =
        arguments.into_iter().partition(|one| one.starts_with('^'));
    let mut before = Vec::new();
    let (op, inputs, attributes) = match (op, &inputs[..]) {
        ("lstm", &[x, h]) => ("LSTMBlockCellGrad", lstm_inputs(name, [x, h, "w", "bias"]), ""),
        ("lstm", &[x, h, w, bias]) => ("LSTMBlockCellGrad", lstm_inputs(name, [x, h, w, bias]), ""),
        ("gru", &[x, h, r]) => ("GRUBlockCellGrad", gru_inputs(name, [x, h, r]), ""),
        ("concat", parts) => ("ConcatV2", owned(&[parts, &["axis"]].concat()), ""),
        ("product", &[left, cell]) => {
            ("MatMul", vec![left.to_owned(), dz_of(cell)], " transpose_a=true")
        }
        ("bias_grad", &[cell]) => ("BiasAddGrad", vec![dz_of(cell)], ""),
        ("dx_dh", &[cell]) => ("MatMul", vec![dz_of(cell), "w".to_owned()], " transpose_b=true"),
        ("dx_dh", &[cell, w]) => ("MatMul", vec![dz_of(cell), w.to_owned()], " transpose_b=true"),
        ("columns", &[product, begin, size]) => {
            before.push(format!("{name}_begin = Const() value=[0,{begin}]"));
            before.push(format!("{name}_size = Const() value=[-1,{size}]"));
            ("Slice", owned(&[product, &format!("{name}_begin"), &format!("{name}_size")]), "")
        }
        _ => (op, owned(&inputs), ""),
    };
    let arguments = [inputs, owned(&waits)].concat().join(", ");
    before.push(format!("{name} = {op}({arguments}){attributes}{rest}"));
    before
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn dz_of(cell: &str) -> String {
    if cell.contains(':') { cell.to_owned() } else { format!("{cell}:1") }
}

/// `LSTMBlockCellGrad` takes x, cs_prev, h_prev, w, three peephole weights, b, i, cs, f, o, ci, co,
/// cs_grad and h_grad.
fn lstm_inputs(name: &str, [x, h, w, bias]: [&str; 4]) -> Vec<String> {
    let grad = format!("{name}_grad");
    let saved = "saved";
    owned(&[
        x, saved, h, w, saved, saved, saved, bias, saved, saved, saved, saved, saved, saved, saved,
        &grad,
    ])
}

/// `GRUBlockCellGrad` takes x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c and d_h.
fn gru_inputs(name: &str, [x, h, r]: [&str; 3]) -> Vec<String> {
    let grad = format!("{name}_grad");
    owned(&[x, h, "w_ru", "w_c", "b_ru", "b_c", r, "saved", "saved", &grad])
}
