//! Functions of Keras 2 that cuDNN's operations compute.

use std::collections::BTreeMap;

use blockcell_graphs::{
    Attribute, Choices, Constant, DataType, Function, FunctionNode, Values, choose,
};

pub(crate) fn text(value: &str) -> Attribute {
    Attribute::Text(value.to_owned())
}

pub(crate) fn node(
    name: &str,
    op: &str,
    inputs: &[&str],
    attributes: &[(&str, Attribute)],
) -> FunctionNode {
    FunctionNode {
        name: name.to_owned(),
        op: op.to_owned(),
        inputs: inputs.iter().map(|&input| input.to_owned()).collect(),
        attributes: attributes
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
    }
}

/// A function of six inputs and five outputs for a device.
fn half_of_a_pair(name: &str, device: &str, nodes: Vec<FunctionNode>) -> Function {
    let attributes = [("api_implements", "lstm_1"), ("api_preferred_device", device)];
    let names = ["last", "all", "h", "c", "runtime"];
    Function {
        name: name.to_owned(),
        attributes: attributes.map(|(name, value)| (name.to_owned(), text(value))).into(),
        inputs: (0..6).map(|number| (format!("in{number}"), DataType::FLOAT)).collect(),
        outputs: names.map(|name| (name.to_owned(), DataType::FLOAT)).into(),
        nodes,
        results: BTreeMap::new(),
    }
}

/// A cuDNN layer whose buffer has blocks in this order: numbers of kernel, recurrent kernel and biases.
pub(crate) fn layer(mode: &str, order: &[usize]) -> Vec<FunctionNode> {
    let gates = order.len() / 4;
    let mut nodes: Vec<_> =
        ["kernel", "recurrent", "bias"].map(|name| node(name, "Split", &["axis", "w"], &[])).into();
    let mut parts = Vec::new();
    for (place, number) in order.iter().enumerate() {
        let source = ["kernel", "recurrent", "bias", "bias"][place / gates];
        let (transposed, flat) = (format!("t{place}"), format!("r{place}"));
        let block = format!("{source}:output:{number}");
        nodes.push(node(&transposed, "Transpose", &[&block, "perm:output:0"], &[]));
        nodes.push(node(&flat, "Reshape", &[&format!("{transposed}:y:0"), "size:output:0"], &[]));
        parts.push(format!("{flat}:output:0"));
    }
    parts.push("axis:output:0".to_owned());
    nodes.push(node(
        "buffer",
        "ConcatV2",
        &parts.iter().map(|part| &part[..]).collect::<Vec<_>>(),
        &[],
    ));
    let attributes = [("T", Attribute::Type(DataType::FLOAT)), ("rnn_mode", text(mode))];
    let inputs = ["x", "h", "c", "buffer:output:0"];
    nodes.push(node("rnn", "CudnnRNN", &inputs, &attributes));
    nodes
}

pub(crate) const LSTM: [usize; 16] = [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7];
pub(crate) const GRU: [usize; 12] = [1, 0, 2, 1, 0, 2, 1, 0, 2, 4, 3, 5];

/// What is chosen where a graph calls a function that calls the loop and returns these outputs of it.
fn chosen(cudnn: Vec<FunctionNode>, read: &[usize]) -> Choices {
    let functions = pair(cudnn, read);
    choose(&functions, &called("outer"))
}

fn pair(cudnn: Vec<FunctionNode>, read: &[usize]) -> Vec<Function> {
    let f = Attribute::Function("loop".to_owned());
    let results =
        read.iter().map(|output| (format!("out{output}"), format!("call:output:{output}")));
    let outer = Function {
        name: "outer".to_owned(),
        nodes: vec![node("call", "PartitionedCall", &["x"], &[("f", f)])],
        results: results.collect(),
        ..Function::default()
    };
    vec![outer, half_of_a_pair("loop", "CPU", Vec::new()), half_of_a_pair("cudnn", "GPU", cudnn)]
}

/// The body of a function that calls another one.
pub(crate) fn called(function: &str) -> Function {
    let mut graph = session(function);
    graph.nodes.push(node("x", "_Arg", &[], &[]));
    graph
}

/// The graph of a session, which calls a function.
fn session(function: &str) -> Function {
    let f = Attribute::Function(function.to_owned());
    let nodes = vec![node("start", "StatefulPartitionedCall", &["x:0"], &[("f", f)])];
    Function { nodes, ..Function::default() }
}

pub(crate) fn stays(choices: &Choices, reason: &str) {
    assert!(choices.chosen.is_empty() && choices.bodies.is_empty(), "{choices}");
    assert!(choices.to_string().contains(reason), "{choices}");
}

#[test]
fn a_layer_of_cudnn_takes_the_place_of_a_loop() {
    let choices = chosen(layer("lstm", &LSTM), &[0, 1, 2, 3]);
    assert_eq!(choices.to_string(), "loop becomes CudnnRNN (parts: 1), by function cudnn\n");
    let [edit] = &choices.edits[..] else { panic!("{:?}", choices.edits) };
    assert_eq!((&edit.node[..], edit.infers, edit.inputs.len()), ("rnn", true, 0));
}

#[test]
fn what_is_kept_for_a_gradient_is_kept() {
    let mut nodes = layer("gru", &GRU);
    nodes.push(node("kept", "Identity", &["rnn:reserve_space:0"], &[]));
    let choices = chosen(nodes, &[0]);
    assert_eq!((choices.chosen.len(), choices.edits.len()), (1, 0));
}

#[test]
fn weights_get_the_order_of_cudnn() {
    let choices = chosen(layer("gru", &[0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 4, 5]), &[0]);
    let edit =
        choices.edits.iter().find(|edit| edit.node == "buffer").expect("it has another order");
    let wanted = [1, 0, 2, 4, 3, 5, 7, 6, 8, 10, 9, 11];
    let mut inputs: Vec<_> = wanted.iter().map(|place| format!("r{place}:output:0")).collect();
    inputs.push("axis:output:0".to_owned());
    assert_eq!(edit.inputs, inputs);
    stays(
        &chosen(layer("gru", &[0, 0, 2, 1, 0, 2, 1, 0, 2, 4, 3, 5]), &[0]),
        "order of its weights",
    );
}

#[test]
fn outputs_in_which_they_differ_are_not_read() {
    stays(&chosen(layer("lstm", &LSTM), &[4]), "which implementation has run");
    let masked = |read: &[usize]| {
        let branch = Attribute::Function("branch".to_owned());
        let mut functions =
            pair(vec![node("cond", "If", &["allowed"], &[("then_branch", branch)])], read);
        functions.push(Function {
            name: "branch".to_owned(),
            nodes: layer("lstm", &LSTM),
            ..Function::default()
        });
        choose(&functions, &called("outer"))
    };
    assert_eq!(masked(&[0, 2, 3]).chosen.len(), 1);
    stays(&masked(&[0, 1]), "steps after a row's end");
}

#[test]
fn other_uses_and_other_layers_stay() {
    let mut functions = pair(layer("lstm", &LSTM), &[0]);
    let body = Attribute::Function("loop".to_owned());
    functions[0].nodes.push(node("while", "While", &["x"], &[("body", body)]));
    stays(&choose(&functions, &called("outer")), "other than by a call");
    let short = Function { nodes: vec![node("short", "loop", &["x"], &[])], ..Function::default() };
    stays(&choose(&pair(layer("lstm", &LSTM), &[0]), &short), "other than by a call");
    stays(&chosen(layer("rnn_tanh", &LSTM), &[0]), "not a single layer");
    let mut dropped = layer("lstm", &LSTM);
    let rnn = dropped.last_mut().expect("it is the layer");
    rnn.attributes.insert("dropout".to_owned(), Attribute::Float(0.5));
    stays(&chosen(dropped, &[0]), "not a single layer");
    stays(
        &chosen([layer("lstm", &LSTM), layer("lstm", &LSTM)].concat(), &[0]),
        "not a single layer",
    );
    stays(&chosen(Vec::new(), &[0]), "does not use cuDNN");
}

#[test]
fn what_no_graph_needs_and_what_has_a_gradient_is_no_place() {
    let nothing = |functions: &[Function], graph: &Function| {
        let choices = choose(functions, graph);
        assert!(choices.chosen.is_empty() && choices.kept.is_empty(), "{choices}");
    };
    nothing(&pair(layer("lstm", &LSTM), &[0]), &called("something"));
    for index in [1, 2] {
        let mut functions = pair(layer("lstm", &LSTM), &[0]);
        functions[index].attributes.insert("backward_function_name".to_owned(), text("backward"));
        nothing(&functions, &called("outer"));
        let mut functions = pair(layer("lstm", &LSTM), &[0]);
        functions[index].outputs.pop();
        nothing(&functions, &called("outer"));
    }
}

#[test]
fn an_input_without_elements_takes_the_loop() {
    let choices = chosen(layer("lstm", &LSTM), &[0]);
    let copies: Vec<_> =
        choices.copies.iter().map(|copy| (&copy.function[..], &copy.copy[..])).collect();
    assert_eq!(copies, [("cudnn", "loop_cudnn"), ("loop", "loop_loop")]);
    let [body] = &choices.bodies[..] else { panic!("{:?}", choices.bodies) };
    assert_eq!(body.function, "loop");
    let size = body.nodes.iter().find(|node| node.op == "Size").expect("it asks for the size");
    assert_eq!(size.inputs, ["in0"]);
    let choice = body.nodes.iter().find(|node| node.op == "If").expect("it chooses");
    let branch = |name| choice.attributes.get(name).cloned();
    assert_eq!(branch("then_branch"), Some(Attribute::Function("loop_cudnn".to_owned())));
    assert_eq!(branch("else_branch"), Some(Attribute::Function("loop_loop".to_owned())));
    assert_eq!(body.results[4], "choice:output:4");
}

#[test]
fn what_broadcasts_takes_the_loop() {
    let inputs_of = |choices: &Choices, name: &str| {
        let node = choices.bodies[0].nodes.iter().find(|node| node.name == name);
        node.expect("it asks for shapes").inputs.clone()
    };
    let choices = chosen(layer("lstm", &LSTM), &[0]);
    assert_eq!(inputs_of(&choices, "both"), ["any:z:0", "fit:output:0"]);
    assert_eq!(inputs_of(&choices, "choice")[0], "both:z:0");
    assert_eq!(inputs_of(&choices, "got")[..2], ["shape_1:output:0", "shape_2:output:0"]);
    let rows_and_units = ["rows:output:0", "units:output:0"];
    assert_eq!(inputs_of(&choices, "wanted")[..4], rows_and_units.repeat(2));
    assert_eq!(inputs_of(&choices, "shape_4"), ["in4"], "the recurrent kernel");
    assert_eq!(inputs_of(&choices, "rows")[1], "axis_0:output:0");
    let mut functions = pair(layer("lstm", &LSTM), &[0]);
    for function in &mut functions[1..] {
        function.inputs.push(("mask".to_owned(), DataType::BOOL));
        function.attributes.insert("time_major".to_owned(), Attribute::Bool(true));
    }
    let choices = choose(&functions, &called("outer"));
    assert_eq!(inputs_of(&choices, "got")[2], "shape_6:output:0");
    assert_eq!(inputs_of(&choices, "wanted")[4], "rows_and_steps:output:0");
    assert_eq!(inputs_of(&choices, "rows")[1], "axis_1:output:0");
}

#[test]
fn functions_of_too_few_inputs_stay() {
    let mut functions = pair(layer("lstm", &LSTM), &[0]);
    functions[1..].iter_mut().for_each(|function| function.inputs.truncate(5));
    stays(&choose(&functions, &called("outer")), "its inputs are not those");
}

/// The constant by which a function tells which implementation has run.
fn runtime(functions: &mut [Function]) {
    let values = Values::Floats(vec![1.0]);
    let value = Constant { data_type: DataType::FLOAT, shape: Vec::new(), values };
    let value = [("value", Attribute::Constant(value))];
    functions[1].nodes.push(node("cpu", "Const", &[], &value));
    functions[1].nodes.push(node("passed", "Identity", &["cpu:output:0"], &[]));
    functions[1].results.insert("runtime".to_owned(), "passed:output:0".to_owned());
}

#[test]
fn it_tells_that_the_loop_has_run() {
    let mut functions = pair(layer("lstm", &LSTM), &[4]);
    runtime(&mut functions);
    let choices = choose(&functions, &called("outer"));
    assert_eq!(choices.bodies[0].results[4], "runtime:output:0");
}

#[test]
fn a_session_may_ask_for_any_output() {
    let functions = pair(layer("lstm", &LSTM), &[0]);
    stays(&choose(&functions, &session("loop")), "which implementation has run");
    assert_eq!(choose(&functions, &called("loop")).chosen.len(), 1);
    let mut functions = functions;
    runtime(&mut functions);
    assert_eq!(choose(&functions, &session("loop")).chosen.len(), 1);
}

#[test]
fn what_xla_compiles_stays() {
    for (place, name) in [(0, "_XlaMustCompile"), (1, "_XlaCompile")] {
        let mut functions = pair(layer("lstm", &LSTM), &[0]);
        functions[place].attributes.insert(name.to_owned(), Attribute::Bool(true));
        stays(&choose(&functions, &called("outer")), "XLA");
        let mut functions = pair(layer("lstm", &LSTM), &[0]);
        functions[0].nodes[0].attributes.insert(name.to_owned(), Attribute::Bool(true));
        stays(&choose(&functions, &called("outer")), "XLA");
    }
}
