//! Writes the files that are generated from the declarations of the ops, or checks that they are up to date.
//!
//! `make generated` writes them.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use blockcell_kernels::ops::{self, Op, Read, Tensor};
use serde_json::{Value, json};

/// What Python reads: a list of ops, each with its tensors line by line.
#[test]
fn table_of_python() {
    let ops: Vec<_> = ops::all().map(declaration).collect();
    check("python/blockcell/ops.json", &format!("[\n{}\n]\n", ops.join(",\n")));
}

/// The page of all ops.
#[test]
fn page_of_ops() {
    check("docs/op-reference.md", &page());
}

/// Compares a file of the repository with what it should be, or writes it.
fn check(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    if env::var_os("BLOCKCELL_WRITE_GENERATED").is_some() {
        fs::write(&path, text).expect("a file of the repository");
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == text,
        "{} does not match the declarations of the ops: run `make generated`",
        path.display()
    );
}

fn declaration(op: &Op) -> String {
    let types: Vec<_> = op.types.iter().map(|of| of.name()).collect();
    let attributes: Vec<_> = op.attributes.iter().map(|of| json!([of.name, of.kind])).collect();
    let lines = |lines: Vec<Value>| {
        let lines: Vec<_> = lines.iter().map(|line| format!("    {line}")).collect();
        if lines.is_empty() { "[]".to_owned() } else { format!("[\n{}\n  ]", lines.join(",\n")) }
    };
    let inputs = op.inputs.iter().map(input).collect();
    let outputs = op.outputs.iter().map(|tensor| json!(description(tensor))).collect();
    let fields = [
        ("name", json!(op.name).to_string()),
        ("stock", op.is_stock.to_string()),
        ("types", json!(types).to_string()),
        ("inputs", lines(inputs)),
        ("outputs", lines(outputs)),
        ("attributes", lines(attributes)),
    ];
    let fields = fields.map(|(name, value)| format!("  {}: {value}", json!(name)));
    format!("{{\n{}\n}}", fields.join(",\n"))
}

/// Name, type and shape.
fn description(tensor: &Tensor) -> Vec<Value> {
    let shape = tensor.dims.iter().map(ToString::to_string).collect::<Vec<_>>();
    vec![json!(tensor.name), json!(tensor.op_def_type()), json!(shape)]
}

/// The same, and when its values are read.
fn input(tensor: &Tensor) -> Value {
    let read = match tensor.read() {
        Read::Always => "always",
        Read::WithOptional => "with_optional",
        Read::Never => "never",
    };
    description(tensor).into_iter().chain([json!(read)]).collect()
}

fn page() -> String {
    let mut page = "# Reference of all operations\n\n\
        This page is generated from the declarations of the ops in the library. [Operations](ops.md) describes the ops on \
        cells and\nsequences, [Operations of the graph passes](graph-ops.md) and [cuDNN's operations](cudnn-ops.md) \
        the others. T is the type of tensors and\nan attribute of every op.\n"
        .to_owned();
    for op in ops::all() {
        let name = op.name;
        let origin = if op.is_stock { "TensorFlow" } else { "this library" };
        let types: Vec<_> = op.types.iter().map(|of| of.name()).collect();
        let types =
            if types.is_empty() { String::new() } else { format!(" T: {}.", types.join(", ")) };
        let text = op.help_text();
        write!(page, "\n## {name}\n\nDefined by {origin}.{types}\n").expect("text");
        if !text.is_empty() {
            write!(page, "\n{text}").expect("text");
        }
        for (title, tensors) in [("input", op.inputs), ("output", op.outputs)] {
            if !tensors.is_empty() {
                write!(page, "\n| {title} | type | description |\n|---|---|---|\n").expect("text");
            }
            for tensor in tensors {
                let Tensor { name, .. } = tensor;
                let (of, text) = (tensor.op_def_type(), tensor.description());
                writeln!(page, "| `{name}` | {of} | {} |", text.replace('|', "\\|")).expect("text");
            }
        }
        if !op.attributes.is_empty() {
            page += "\n| attribute | type and default | description |\n|---|---|---|\n";
        }
        for attribute in op.attributes {
            let (name, kind) = (attribute.name, attribute.kind);
            writeln!(page, "| `{name}` | `{kind}` | {} |", op.description(attribute))
                .expect("text");
        }
    }
    page
}
