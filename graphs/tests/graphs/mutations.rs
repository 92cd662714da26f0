//! Near misses of all patterns: graphs in which one edge, constant or attribute is another one. Whatever becomes of such a
//! graph computes what the graph computed.

use std::collections::BTreeSet;

use blockcell_graphs::{Attribute, Constant, Graph, Node, NodeId, Output, Values, rewrite};

use crate::common::executor::hash;
use crate::common::floats::{Run, Value, are_close};
use crate::common::notation::graph;
use crate::gate_orders::in_order;
use crate::{
    cells, cells_gru, cells_parts, keras, keras_parts, layers, loop_outputs, two_products,
};

/// A graph that is rewritten, with a shape for each of its sources.
pub(super) struct Pattern {
    pub(super) text: String,
    /// The nodes whose values must stay.
    pub(super) observed: &'static [&'static str],
    /// What it becomes, among others.
    pub(super) becomes: &'static [&'static str],
    /// Of so many mutants, one is tried, unless `BLOCKCELL_WHOLE=1`.
    pub(super) stride: u64,
}

pub(super) fn placeholders(shapes: &[(&str, &str)]) -> String {
    let placeholder =
        |&(name, sizes)| format!("{name} = Placeholder() shape={sizes} sizes={sizes}\n");
    shapes.iter().map(placeholder).collect()
}

pub(super) fn replaced(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

/// Two rows, three inputs and two cells.
const OF_CELL: [(&str, &str); 6] = [
    ("x", "[2,3]"),
    ("h", "[2,2]"),
    ("c", "[2,2]"),
    ("w", "[5,8]"),
    ("dh", "[2,2]"),
    ("dc", "[2,2]"),
];

pub(super) fn lstm() -> Pattern {
    let around = "dxh = MatMul(dz0, w) transpose_b=true
        dx = columns(dxh, 0, 3)
        dh_prev = columns(dxh, 3, 2)
        dw = MatMul(concat0, dz0) transpose_a=true
        db = BiasAddGrad(dz0)
        y = Apply(h0, cs0)
        out = Apply(dc0, dx, dh_prev, dw, db)\n";
    let text = cells::one_step(&cells::step_grad(0, "c", ["dh", "dc"])) + around;
    Pattern {
        text: text + &placeholders(&OF_CELL) + &placeholders(&[("b", "[8]")]),
        observed: &["y", "out"],
        becomes: &["BlockcellLSTMCell(", "BlockcellLSTMCellGrad(", "BlockcellMatMulSlice("],
        stride: 1,
    }
}

pub(super) fn lstm_in_another_order() -> Pattern {
    let lstm = lstm();
    Pattern { text: in_order(&lstm.text, [0, 3, 1, 2]), ..lstm }
}

pub(super) fn lstm_of_two_products() -> Pattern {
    let text =
        two_products::with_weights(&(cells::step_grad(0, "c", ["dh", "dc"]) + two_products::GRAD));
    let variables = [
        ("w_x = VariableV2() shape=[3,8]", "w_x = Placeholder() shape=[3,8] sizes=[3,8]"),
        ("w_h = VariableV2() shape=[2,8]", "w_h = Placeholder() shape=[2,8] sizes=[2,8]"),
        ("b = VariableV2() shape=[8]", "b = Placeholder() shape=[8] sizes=[8]"),
    ];
    let sources: Vec<_> = OF_CELL.into_iter().filter(|(name, _)| *name != "w").collect();
    Pattern {
        text: replaced(&text, &variables) + &placeholders(&sources),
        observed: &["y", "out"],
        becomes: &["BlockcellLSTMCell(", "BlockcellLSTMCellGrad(", "BlockcellMatMulSlice("],
        stride: 1,
    }
}

pub(super) fn lstm_of_two_products_of_rows() -> Pattern {
    let pattern = lstm_of_two_products();
    let text = replaced(&pattern.text, &two_products::GRAD_OF_ROWS);
    Pattern { text, becomes: &["BlockcellLSTMCell(", "BlockcellLSTMCellGrad("], ..pattern }
}

pub(super) fn lstm_with_all_parts() -> Pattern {
    let text = replaced(&cells_parts::changed(&[]), &[("[7]", "[2]"), ("[28]", "[8]")]);
    Pattern {
        text: text + &placeholders(&OF_CELL),
        observed: &["y", "out"],
        becomes: &["BlockcellLSTMCell(", "BlockcellLSTMCellGrad("],
        stride: 1,
    }
}

pub(super) fn gru() -> Pattern {
    let product = "dxhr = MatMul(d_c_bar, read_c) transpose_b=true\nd_hr = columns(dxhr, 3, 2)";
    let text = replaced(
        &(cells_gru::FORWARD.to_owned() + cells_gru::BACKWARD),
        &[
            ("[7,8]", "[5,4]"),
            ("[7,4]", "[5,2]"),
            ("b_ru = Placeholder() shape=[8]\n", ""),
            ("b_c = Placeholder() shape=[4]\n", ""),
            ("d_hr = Other(d_c_bar)", product),
        ],
    );
    let around = "dw_ru = MatMul(concat_ru, d_ru_bar) transpose_a=true
        dw_c = MatMul(concat_c, d_c_bar) transpose_a=true
        more = Apply(dw_ru, dw_c, dxhr)\n";
    let sources =
        [("x", "[2,3]"), ("h", "[2,2]"), ("dh", "[2,2]"), ("b_ru", "[4]"), ("b_c", "[2]")];
    Pattern {
        text: text + around + &placeholders(&sources),
        observed: &["y", "out", "more"],
        becomes: &["GRUBlockCell(", "BlockcellGRUCellGradC(", "BlockcellGRUCellGradRU("],
        stride: 1,
    }
}

pub(super) fn loop_of_cells() -> Pattern {
    let text = replaced(
        &layers::with(&[]),
        &[
            ("[-1,7]", "[-1,3]"),
            ("[-1,8]", "[-1,2]"),
            ("sizes = Other(x) T=int32", "sizes = Const() T=int32 value=[2,2]"),
            ("w = Const() value=zeros\n", ""),
            ("b = Const() value=zeros\n", ""),
            ("gradient = lstm(any_x, any_h)\n", ""),
            ("lengths = Placeholder() T=int32", "lengths = Const() T=int32 value=[1,3]"),
        ],
    );
    let sources =
        [("x", "[3,2,3]"), ("h0", "[2,2]"), ("c0", "[2,2]"), ("w", "[5,8]"), ("b", "[8]")];
    Pattern {
        text: text + &placeholders(&sources),
        observed: &["result"],
        becomes: &["BlockcellLSTMLayer("],
        stride: 3,
    }
}

/// A projection with a clip, and x added to what that gives.
pub(super) fn loop_with_outputs() -> Pattern {
    let sum = format!("{}\nq = AddV2(x_t, p)", loop_outputs::CLIPPED);
    let text = replaced(
        &loop_outputs::with("[6,8]", &sum, ["p", "q"]),
        &[
            ("[-1,7]", "[-1,3]"),
            ("[-1,8]", "[-1,3]"),
            ("sizes = Other(x) T=int32", "sizes = Const() T=int32 value=[2,3]"),
            ("w = VariableV2()", "w = Placeholder()"),
            ("proj = VariableV2() shape=[8,5]", "proj = Placeholder() shape=[3,3] sizes=[3,3]"),
            ("shape=[6,8]", "shape=[6,12] sizes=[6,12]"),
            ("b = Const() value=zeros\n", ""),
            ("gradient = lstm(any_x, any_h)\n", ""),
            ("lengths = Placeholder() T=int32", "lengths = Const() T=int32 value=[1,3]"),
        ],
    );
    let sources = [("x", "[3,2,3]"), ("h0", "[2,3]"), ("c0", "[2,3]"), ("b", "[12]")];
    Pattern {
        text: text + &placeholders(&sources),
        observed: &["result"],
        becomes: &["BlockcellLSTMLayer(", "adds_x=true", "proj_clip=0.25"],
        stride: 3,
    }
}

pub(super) fn loop_of_keras(
    step: &str,
    variables: [&str; 3],
    becomes: &'static [&'static str],
) -> Pattern {
    let masked: Vec<_> =
        keras::masked().into_iter().filter(|change| step.contains(change.0)).collect();
    let text = keras::with(step, &masked) + keras::MASK;
    let variable = |name: &str, shape: &str| {
        [format!("{name} = VarHandleOp()"), format!("{name} = VarHandleOp() shape={shape}")]
    };
    let [kernel, recurrent, bias] = [
        variable("kernel", variables[0]),
        variable("recurrent", variables[1]),
        variable("bias", variables[2]),
    ];
    let mut changes: Vec<_> =
        [&kernel, &recurrent, &bias].map(|[from, to]| (&from[..], &to[..])).into();
    changes.extend([
        ("sizes = Other(x) T=int32", "sizes = Const() T=int32 value=[2,5]"),
        ("x = Placeholder()\n", "x = Placeholder() sizes=[3,2,3]\n"),
        (
            "valid = Placeholder()",
            "chance = Placeholder() sizes=[3,2,1]\nvalid = GreaterEqual(chance, nothing)",
        ),
    ]);
    Pattern { text: replaced(&text, &changes), observed: &["result"], becomes, stride: 5 }
}

/// A graph with another node of a number, and perhaps more nodes.
struct Mutant {
    what: String,
    nodes: Vec<Node>,
}

/// The mutants of a graph.
struct Mutator<'g> {
    graph: &'g Graph,
    nodes: Vec<Node>,
    /// The nodes of loops.
    inside: BTreeSet<NodeId>,
    /// Those that depend on what leaves a loop, and that.
    beyond: BTreeSet<NodeId>,
    /// All tensors that somebody takes.
    tensors: BTreeSet<Output>,
}

impl<'g> Mutator<'g> {
    fn new(graph: &'g Graph) -> Mutator<'g> {
        let enters = graph.ids().filter(|&id| graph.op(id) == "Enter");
        let inside = after(graph, enters.collect(), "Exit");
        let exits = graph.ids().filter(|&id| graph.op(id) == "Exit");
        let beyond = after(graph, exits.collect(), "Enter");
        let nodes = nodes_of(graph);
        let tensors = nodes.iter().flat_map(|node| node.inputs.iter().copied()).collect();
        Mutator { graph, nodes, inside, beyond, tensors }
    }

    fn all(&self, mut take: impl FnMut(Mutant)) {
        for id in self.graph.ids() {
            self.edges(id, &mut take);
            for attributes in self.attributes(id) {
                let mut nodes = self.nodes.clone();
                let what = format!("{} with {attributes:?}", nodes[id.0].name);
                nodes[id.0].attributes = attributes;
                take(Mutant { what, nodes });
            }
        }
    }

    /// Each edge of a node: from another tensor, and with an operation in between.
    fn edges(&self, id: NodeId, take: &mut impl FnMut(Mutant)) {
        let node = self.graph.node(id);
        let later = after(self.graph, vec![id], "NextIteration");
        // No loop begins with what it ends with.
        let is_before = later.iter().any(|&id| self.graph.op(id) == "Enter");
        let is_inside = |tensor: Output| {
            self.inside.contains(&tensor.node) && self.graph.op(tensor.node) != "Exit"
        };
        for (number, &input) in node.inputs.iter().enumerate() {
            let name =
                |tensor: Output| format!("{}:{}", self.graph.node(tensor.node).name, tensor.index);
            let mut take_with = |what: &str, inputs: Vec<Output>, more: Vec<Node>| {
                let mut nodes = self.nodes.clone();
                nodes[id.0].inputs = inputs;
                nodes.extend(more);
                let what = format!("{what} at input {number} ({}) of {}", name(input), node.name);
                take(Mutant { what, nodes });
            };
            let with = |tensor: Output| {
                let mut inputs = node.inputs.clone();
                inputs[number] = tensor;
                inputs
            };
            let others = self.tensors.iter().copied().filter(|&other| {
                other != input
                    && is_inside(other) == is_inside(input)
                    && !later.contains(&other.node)
                    && !(is_before && self.beyond.contains(&other.node))
            });
            for other in others {
                take_with(&name(other), with(other), Vec::new());
            }
            if number > 0 {
                let mut inputs = node.inputs.clone();
                inputs.swap(number, number - 1);
                take_with("swapped with the one before", inputs, Vec::new());
            }
            if node.op == "AddN" {
                for copies in [1, 2] {
                    let inputs = [&node.inputs[..], &vec![input; copies]].concat();
                    take_with("once more", inputs, Vec::new());
                }
            }
            let new = Output { node: NodeId(self.nodes.len()), index: 0 };
            let half = Output { node: NodeId(self.nodes.len() + 1), index: 0 };
            for (op, inputs) in [
                ("Neg", vec![input]),
                ("Sigmoid", vec![input]),
                ("AddV2", vec![input; 2]),
                ("AddN", vec![input; 3]),
                ("Mul", vec![input; 2]),
                ("Mul", vec![input, half]),
                ("AddV2", vec![input, half]),
            ] {
                let between =
                    Node { name: "between".to_owned(), op: op.to_owned(), inputs, ..self.like(id) };
                let value = Constant {
                    data_type: blockcell_graphs::DataType::FLOAT,
                    shape: Vec::new(),
                    values: Values::Floats(vec![0.5]),
                };
                let attributes = vec![("value".to_owned(), Attribute::Constant(value))];
                // In a loop, a constant waits for the round.
                let control_inputs = if is_inside(input) { vec![input.node] } else { Vec::new() };
                let half = Node {
                    name: "half".to_owned(),
                    op: "Const".to_owned(),
                    attributes,
                    control_inputs,
                    ..self.like(id)
                };
                take_with(op, with(new), vec![between, half]);
            }
        }
    }

    /// A node of floats on the device of another one.
    fn like(&self, id: NodeId) -> Node {
        let data_type = blockcell_graphs::DataType::FLOAT;
        Node {
            device: self.graph.node(id).device.clone(),
            attributes: vec![("T".to_owned(), Attribute::Type(data_type))],
            output_types: vec![data_type],
            ..Node::default()
        }
    }

    /// The attributes of a node, of which one is another one that is nearly right.
    fn attributes(&self, id: NodeId) -> Vec<Vec<(String, Attribute)>> {
        let Node { op, attributes, .. } = self.graph.node(id);
        // Without as many inputs, TensorFlow makes no node.
        let is_count = |name: &str| op.starts_with("Blockcell") && name.starts_with("num_");
        let mut all = Vec::new();
        for (number, (name, value)) in attributes.iter().enumerate() {
            if is_count(name) {
                continue;
            }
            for value in near(value) {
                let mut changed = attributes.clone();
                changed[number].1 = value;
                all.push(changed);
            }
        }
        all
    }
}

/// All nodes that depend on some, up to those of an operation.
fn after(graph: &Graph, mut open: Vec<NodeId>, last: &str) -> BTreeSet<NodeId> {
    let mut found: BTreeSet<_> = open.iter().copied().collect();
    while let Some(next) = open.pop() {
        if graph.op(next) != last {
            let consumers = graph.uses(next).map(|one| one.consumer());
            open.extend(consumers.filter(|&id| found.insert(id)));
        }
    }
    found
}

/// Other values than this one.
fn near(value: &Attribute) -> Vec<Attribute> {
    match value {
        Attribute::Bool(value) => vec![Attribute::Bool(!value)],
        Attribute::Int(value) => [-1, 1].map(|more| Attribute::Int(value + more)).into(),
        Attribute::Float(value) => floats(*value).map(Attribute::Float).into(),
        Attribute::Constant(constant) => {
            let with = |values| Attribute::Constant(Constant { values, ..constant.clone() });
            match &constant.values {
                Values::Ints(values) => {
                    let places = 0..values.len();
                    let changed = |place: usize, more: i64| {
                        let mut values = values.clone();
                        values[place] += more;
                        with(Values::Ints(values))
                    };
                    places.flat_map(|place| [-1, 1].map(|more| changed(place, more))).collect()
                }
                Values::Floats(values) if values.len() == 1 => {
                    floats(values[0]).map(|value| with(Values::Floats(vec![value]))).into()
                }
                Values::Bools(values) => {
                    vec![with(Values::Bools(values.iter().map(|value| !value).collect()))]
                }
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

fn floats(value: f32) -> [f32; 5] {
    let next = f32::from_bits(value.to_bits() + 1);
    [next, -value, value + 1.0, 2.0 * value, 0.25]
}

/// What nodes of these names compute.
fn values(graph: &Graph, names: &[&str]) -> Option<Vec<Value>> {
    let mut run = Run::new(graph);
    let node = |name: &&str| graph.ids().find(|&id| graph.node(id).name == *name);
    names.iter().map(|name| run.value(Output { node: node(name)?, index: 0 })).collect()
}

/// What is wrong with what becomes of a graph, if anything is. None if the graph is an error itself.
pub(super) fn wrong(nodes: Vec<Node>, observed: &[&str]) -> Option<Result<bool, String>> {
    let mut graph = Graph::new(nodes);
    let before = values(&graph, observed)?;
    rewrite(&mut graph);
    let is_changed = !graph.edits().is_empty();
    let Some(after) = values(&graph, observed) else {
        return Some(Err(format!("is an error now\n{graph}")));
    };
    let is_same = before.iter().zip(&after).all(|(before, after)| are_close(before, after));
    Some(if is_same { Ok(is_changed) } else { Err(format!("{before:?}\n{after:?}\n{graph}")) })
}

/// The nodes of a graph, in their order.
pub(super) fn nodes_of(graph: &Graph) -> Vec<Node> {
    graph.ids().map(|id| graph.node(id).clone()).collect()
}

pub(super) fn check(pattern: &Pattern) {
    let graph = graph(&pattern.text);
    let nodes = nodes_of(&graph);
    let mut after = Graph::new(nodes.clone());
    rewrite(&mut after);
    for op in pattern.becomes {
        assert!(after.to_string().contains(op), "no {op}\n{after}");
    }
    assert_eq!(wrong(nodes, pattern.observed), Some(Ok(true)));
    let is_whole = std::env::var("BLOCKCELL_WHOLE").is_ok_and(|value| value == "1");
    let (mut refused, mut kept, mut changed) = (0, 0, 0);
    Mutator::new(&graph).all(|mutant| {
        if !is_whole && hash(&mutant.what) % pattern.stride != 0 {
            return;
        }
        match wrong(mutant.nodes, pattern.observed) {
            None => refused += 1,
            Some(Ok(false)) => kept += 1,
            Some(Ok(true)) => changed += 1,
            Some(Err(wrong)) => panic!("{}: {wrong}\nof\n{graph}", mutant.what),
        }
    });
    println!("{refused} errors, {kept} stay, {changed} are rewritten");
    assert!(kept + changed > 100 && changed > 10);
}

#[test]
fn an_lstm_step() {
    check(&lstm());
}

#[test]
fn an_lstm_step_in_another_order() {
    check(&lstm_in_another_order());
}

#[test]
fn an_lstm_step_of_two_products() {
    check(&lstm_of_two_products());
}

#[test]
fn an_lstm_step_of_two_products_of_rows() {
    check(&lstm_of_two_products_of_rows());
}

#[test]
fn an_lstm_step_with_peepholes_and_a_clip() {
    check(&lstm_with_all_parts());
}

#[test]
fn a_gru_step() {
    check(&gru());
}

#[test]
fn a_loop_of_an_lstm() {
    check(&loop_of_cells());
}

#[test]
fn a_loop_whose_outputs_are_projected_and_added() {
    check(&loop_with_outputs());
}

#[test]
fn a_loop_of_keras_lstm() {
    check(&loop_of_keras(keras::LSTM, ["[3,20]", "[5,20]", "[20]"], &["BlockcellKerasLSTM("]));
}

#[test]
fn a_loop_of_keras_gru() {
    check(&loop_of_keras(keras::GRU, ["[3,15]", "[5,15]", "[2,15]"], &["BlockcellKerasGRU("]));
}

#[test]
fn a_loop_of_keras_gru_that_resets_before() {
    let step = replaced(&keras_parts::reset_before(), &keras_parts::HARD_GATES);
    // A sixth as a float is not as exact as these numbers are.
    let step = replaced(&step, &[("Mul(z_relu, sixth)", "RealDiv(z_relu, six)")]);
    check(&loop_of_keras(&step, ["[3,15]", "[5,15]", "[15]"], &["BlockcellKerasGRU("]));
}
