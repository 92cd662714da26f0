//! Graphs as text, for tests and for looking at what a program has.
//!
//! A line is a node: its name, its operation, what it takes (`:1` for its second output, `^` for what
//! it only waits for), its attributes, `waits` if it may wait for something else, `target` if a step runs it for its own sake, and its device unless that is the first
//! CPU of this process.
//!
//! ```text
//! left = ConcatV2(x, h_prev, axis)
//! product = MatMul(left, cell:1, ^step) transpose_a=true @/cpu:1
//! ```
//!
//! `T` is the type of what a node computes, and is not written where that is float.

use std::collections::HashMap;
use std::fmt;

use super::{Attribute, Constant, DataType, Device, Graph, Node, NodeId, Output, Values, ops};

const FIRST_CPU: &str = "/cpu:0";
const TYPES: [(&str, DataType); 4] = [
    ("float", DataType::FLOAT),
    ("half", DataType::HALF),
    ("int32", DataType::INT32),
    ("int64", DataType::INT64),
];

/// Reads a graph. A node may take tensors of nodes in later lines, as loops do.
///
/// # Errors
///
/// What is wrong in which line.
pub fn parse(text: &str) -> Result<Graph, String> {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let name_of = |line: &&str| line.split('=').next().unwrap_or("").trim().to_owned();
    let numbers: HashMap<_, _> = lines.iter().map(name_of).zip((0..).map(NodeId)).collect();
    let nodes = lines.iter().map(|line| parse_line(line, &numbers));
    Ok(Graph::new(nodes.collect::<Result<_, _>>()?))
}

fn parse_line(line: &str, numbers: &HashMap<String, NodeId>) -> Result<Node, String> {
    let wrong = |what: &str| format!("{what} in {line:?}");
    let (name, rest) = line.split_once('=').ok_or_else(|| wrong("no `=`"))?;
    let (op, rest) = rest.split_once('(').ok_or_else(|| wrong("no `(`"))?;
    let (arguments, rest) = rest.split_once(')').ok_or_else(|| wrong("no `)`"))?;
    let mut node =
        Node { name: name.trim().to_owned(), op: op.trim().to_owned(), ..Node::default() };
    node.device = Device { name: FIRST_CPU.to_owned(), is_local_cpu: true };
    for argument in arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty()) {
        let (source, index) = argument.split_once(':').unwrap_or((argument, "0"));
        let find = |name: &str| numbers.get(name).copied().ok_or_else(|| wrong("unknown node"));
        if let Some(awaited) = source.strip_prefix('^') {
            node.control_inputs.push(find(awaited)?);
        } else {
            let index = index.parse().map_err(|_| wrong("no number of an output"))?;
            node.inputs.push(Output { node: find(source)?, index });
        }
    }
    for word in rest.split_whitespace() {
        if word == "target" {
            node.is_target = true;
        } else if word == "waits" {
            node.may_wait = true;
        } else if let Some(device) = word.strip_prefix('@') {
            node.device =
                Device { name: device.to_owned(), is_local_cpu: device.starts_with("/cpu") };
        } else {
            let (key, value) = word.split_once('=').ok_or_else(|| wrong("no attribute"))?;
            let value = parse_value(key, value).ok_or_else(|| wrong("a strange value"))?;
            node.attributes.push((key.to_owned(), value));
        }
    }
    complete(&mut node);
    Ok(node)
}

/// Adds the types of the outputs, and whether the node takes references. The attribute `T` remains where patterns read
/// it.
fn complete(node: &mut Node) {
    let data_type = written_type(node).unwrap_or(DataType::FLOAT);
    node.attributes.retain(|(name, _)| name != "T");
    if ops::reads(&node.op, "T") {
        node.attributes.insert(0, ("T".to_owned(), Attribute::Type(data_type)));
    }
    let is_variable = matches!(node.op.as_str(), "Variable" | "VariableV2");
    node.takes_references =
        matches!(node.op.as_str(), "Assign" | "AssignAdd") || node.op.starts_with("Ref");
    let is_reference = is_variable || node.takes_references;
    node.output_types = vec![if is_reference { data_type.reference() } else { data_type }];
}

fn written_type(node: &Node) -> Option<DataType> {
    node.attributes.iter().find(|(name, _)| name == "T")?.1.data_type()
}

fn parse_value(key: &str, value: &str) -> Option<Attribute> {
    if let Some((_, data_type)) = TYPES.iter().find(|(name, _)| *name == value) {
        return Some(Attribute::Type(*data_type));
    }
    let numbers = || -> Option<Vec<i64>> {
        let list = value.strip_prefix('[')?.strip_suffix(']')?;
        list.split(',').filter(|one| !one.is_empty()).map(|one| one.parse().ok()).collect()
    };
    Some(match (key, value) {
        ("shape" | "element_shape" | "_handle_shapes" | "_output_shapes", _) => {
            Attribute::Shape(if value == "?" { None } else { Some(numbers()?) })
        }
        ("value", "zeros") => {
            let (data_type, shape) = (DataType::FLOAT, vec![-1, -1]);
            Attribute::Constant(Constant { data_type, shape, values: Values::Zeros })
        }
        ("value", "true" | "false") => {
            let (shape, values) = (Vec::new(), Values::Bools(vec![value == "true"]));
            Attribute::Constant(Constant { data_type: DataType::BOOL, shape, values })
        }
        ("value", _) if value.contains('.') => {
            let values = Values::Floats(vec![value.parse().ok()?]);
            Attribute::Constant(Constant { data_type: DataType::FLOAT, shape: vec![], values })
        }
        ("value", _) => {
            let scalar = value.parse().ok().map(|number| vec![number]);
            let shape = if scalar.is_some() { vec![] } else { vec![numbers()?.len() as i64] };
            let values = Values::Ints(scalar.or_else(numbers)?);
            Attribute::Constant(Constant { data_type: DataType::INT32, shape, values })
        }
        (_, "true" | "false") => Attribute::Bool(value == "true"),
        (_, _) if value.starts_with("[\"") => {
            let list = value.strip_prefix('[')?.strip_suffix(']')?;
            Attribute::Texts(list.split(',').map(|one| one.trim_matches('"').to_owned()).collect())
        }
        (_, _) if value.starts_with('[') => Attribute::Ints(numbers()?),
        (_, _) if value.starts_with('"') => Attribute::Text(value.trim_matches('"').to_owned()),
        (_, _) if value.contains('.') => Attribute::Float(value.parse().ok()?),
        _ => Attribute::Int(value.parse().ok()?),
    })
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for id in self.ids() {
            let node = self.node(id);
            let name = |id: NodeId| &self.node(id).name;
            let inputs = node.inputs.iter().map(|input| match input.index {
                0 => name(input.node).clone(),
                index => format!("{}:{index}", name(input.node)),
            });
            let waits = node.control_inputs.iter().map(|&awaited| format!("^{}", name(awaited)));
            let arguments: Vec<_> = inputs.chain(waits).collect();
            write!(f, "{} = {}({})", node.name, node.op, arguments.join(", "))?;
            let first = node.output_types.first().map(|first| first.value());
            let data_type = written_type(node).or(first);
            if let Some(data_type) = data_type.filter(|one| *one != DataType::FLOAT) {
                write!(f, " T={}", Attribute::Type(data_type))?;
            }
            for (key, value) in node.attributes.iter().filter(|(key, _)| key != "T") {
                write!(f, " {key}={value}")?;
            }
            if node.may_wait {
                f.write_str(" waits")?;
            }
            if node.is_target {
                f.write_str(" target")?;
            }
            match node.device.name.as_str() {
                FIRST_CPU => writeln!(f)?,
                device => writeln!(f, " @{device}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attribute::Bool(value) => write!(f, "{value}"),
            Attribute::Int(value) => write!(f, "{value}"),
            Attribute::Float(value) => write!(f, "{value:?}"),
            Attribute::Text(value) => write!(f, "{value:?}"),
            Attribute::Type(value) => match TYPES.iter().find(|(_, known)| known == value) {
                Some((name, _)) => f.write_str(name),
                None => write!(f, "type{}", value.0),
            },
            Attribute::Ints(values) | Attribute::Shape(Some(values)) => f.write_str(&list(values)),
            Attribute::Texts(values) => f.write_str(&list(values)),
            Attribute::Types(types) => {
                f.write_str(&list(&types.iter().map(|one| one.0).collect::<Vec<_>>()))
            }
            Attribute::Function(name) => f.write_str(name),
            Attribute::Shape(None) | Attribute::Other => f.write_str("?"),
            Attribute::Constant(Constant { shape, values, .. }) => f.write_str(&match values {
                Values::Ints(values) => elements(shape, values),
                Values::Floats(values) => elements(shape, values),
                Values::Bools(values) => elements(shape, values),
                Values::Zeros => "zeros".to_owned(),
                Values::Unknown => format!("tensor{}", list(shape)),
            }),
        }
    }
}

fn elements<T: fmt::Debug>(shape: &[i64], values: &[T]) -> String {
    match values {
        [scalar] if shape.is_empty() => format!("{scalar:?}"),
        _ => list(values),
    }
}

fn list<T: fmt::Debug>(values: &[T]) -> String {
    let words: Vec<_> = values.iter().map(|one| format!("{one:?}")).collect();
    format!("[{}]", words.join(","))
}
