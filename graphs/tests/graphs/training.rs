//! Halves of Keras 2's functions with gradients.

use blockcell_graphs::{Attribute, Body, Choices, DataType, Function, FunctionNode, choose};

use crate::keras2_functions::{GRU, LSTM, layer, node, stays, text};

const FLOAT: DataType = DataType::FLOAT;
const OUTPUTS: [&str; 5] = ["last", "all", "h", "c", "runtime"];

/// A half of a function.
fn half(name: &str, device: &str, other: (&str, &str), nodes: Vec<FunctionNode>) -> Function {
    let attributes =
        [("api_implements", "lstm_1"), ("api_preferred_device", device), (other.0, other.1)];
    let attributes = attributes.map(|(name, value)| (name.to_owned(), text(value))).into();
    Function { name: name.to_owned(), attributes, nodes, ..Function::default() }
}

fn arguments(arguments: &[(&str, DataType)]) -> Vec<(String, DataType)> {
    arguments.iter().map(|(name, data_type)| ((*name).to_owned(), *data_type)).collect()
}

/// Both halves. The forward one keeps tensors of these names and types.
fn halves(
    name: &str,
    device: &str,
    nodes: Vec<FunctionNode>,
    kept: &[(&str, DataType)],
) -> [Function; 2] {
    let names = [format!("{name}_forward"), format!("{name}_backward")];
    let mut forward = half(&names[0], device, ("backward_function_name", &names[1]), nodes);
    let mut backward = half(&names[1], device, ("forward_function_name", &names[0]), Vec::new());
    let inputs = ["x", "h0", "c0", "kernel", "recurrent", "bias"].map(|name| (name, FLOAT));
    forward.inputs = arguments(&inputs);
    let outputs: Vec<_> =
        OUTPUTS.map(|name| (name, FLOAT)).into_iter().chain(kept.iter().copied()).collect();
    forward.outputs = arguments(&outputs);
    for (output, _) in &outputs {
        forward.results.insert((*output).to_owned(), format!("{output}:output:0"));
    }
    backward.inputs = arguments(&outputs);
    backward.outputs = arguments(&inputs);
    [forward, backward]
}

/// A loop, which counts its rounds, and cuDNN's layer, which keeps a constant and two tensors.
fn functions() -> Vec<Function> {
    let rounds = vec![node("rounds", "StatelessWhile", &[], &[])];
    let lists = ["list0", "list1", "list2"].map(|name| (name, DataType::VARIANT));
    let kept = [&[("all_steps", FLOAT), ("rounds", DataType::INT32)], &lists[..]].concat();
    let by_loop = halves("loop", "CPU", rounds, &kept);
    let mut nodes = layer("lstm", &LSTM);
    let value = blockcell_graphs::Constant {
        data_type: DataType::INT32,
        shape: vec![3],
        values: blockcell_graphs::Values::Ints(vec![1, 0, 2]),
    };
    nodes.push(node("order", "Const", &[], &[("value", Attribute::Constant(value))]));
    let kept = [("order", DataType::INT32), ("reserve", FLOAT), ("buffer", FLOAT)];
    let by_cudnn = halves("cudnn", "GPU", nodes, &kept);
    [by_loop, by_cudnn].into_iter().flatten().collect()
}

fn call(name: &str, function: &str, inputs: &[&str]) -> FunctionNode {
    node(name, "PartitionedCall", inputs, &[("f", Attribute::Function(function.to_owned()))])
}

/// What a call of the backward half takes, if a call of this name has kept it.
fn gradients_and_kept(forward: &str) -> Vec<String> {
    let gradients = (0..5).map(|number| format!("dy{number}:0"));
    gradients.chain((5..10).map(|number| format!("{forward}:{number}"))).collect()
}

/// The body of a function that trains.
fn training() -> Function {
    let inputs = gradients_and_kept("forward");
    let inputs: Vec<_> = inputs.iter().map(|input| &input[..]).collect();
    let nodes = vec![
        node("x", "_Arg", &[], &[]),
        call("forward", "loop_forward", &["x:0"]),
        call("backward", "loop_backward", &inputs),
        node("dx", "_Retval", &["backward:0"], &[]),
    ];
    Function { nodes, ..Function::default() }
}

fn body<'c>(choices: &'c Choices, function: &str) -> &'c Body {
    choices.bodies.iter().find(|body| body.function == function).expect("it has a body")
}

fn ops(body: &Body) -> Vec<&str> {
    body.nodes.iter().map(|node| &node.op[..]).collect()
}

#[test]
fn both_halves_become_those_of_cudnn() {
    let choices = choose(&functions(), &training());
    assert_eq!(
        choices.to_string(),
        "loop_forward becomes CudnnRNN (parts: 1), by function cudnn_forward\n\
         loop_backward becomes CudnnRNNBackprop (parts: 1), by function cudnn_backward\n"
    );
    let names: Vec<_> = choices.bodies.iter().map(|body| &body.function[..]).collect();
    assert_eq!(
        names,
        ["loop_forward", "loop_forward_cudnn", "loop_backward", "loop_backward_cudnn"]
    );
    assert_eq!(choices.copies.len(), 6);
}

#[test]
fn what_cudnn_keeps_travels_in_lists() {
    let choices = choose(&functions(), &training());
    let pack = body(&choices, "loop_forward_cudnn");
    let results: Vec<_> = pack.results.iter().skip(5).map(|result| &result[..]).collect();
    let wanted = [
        "nothing_1:output:0",
        "nothing_3:output:0",
        "full_7:output_handle:0",
        "full_8:output_handle:0",
        "list_9:handle:0",
    ];
    assert_eq!(results, wanted);
    let full = |name: &str| pack.nodes.iter().find(|node| node.name == name).expect("it is packed");
    assert_eq!(full("full_7").inputs[2], "call:output:6");
    assert_eq!(full("full_8").inputs[2], "call:output:7");
    let unpack = body(&choices, "loop_backward_cudnn");
    let call = unpack.nodes.iter().find(|node| node.name == "call").expect("it calls cuDNN's half");
    assert_eq!(
        call.inputs[4..],
        ["runtime", "constant_0:output:0", "kept_7:item:0", "kept_8:item:0"]
    );
    assert_eq!(ops(unpack).iter().filter(|op| **op == "TensorListGetItem").count(), 2);
}

#[test]
fn the_backward_half_asks_which_implementation_has_run() {
    let choices = choose(&functions(), &training());
    let backward = body(&choices, "loop_backward");
    let size = backward.nodes.iter().find(|node| node.op == "Size").expect("it asks");
    assert_eq!(size.inputs, ["rounds"]);
    let choice = backward.nodes.iter().find(|node| node.op == "If").expect("it chooses");
    let full = Attribute::Function("loop_backward_cudnn".to_owned());
    assert_eq!(choice.attributes.get("else_branch"), Some(&full));
}

#[test]
fn it_may_pass_through_functions() {
    let mut all = functions();
    let outputs: Vec<_> = (5..10).map(|number| format!("out{number}")).collect();
    let outer = Function {
        name: "outer_forward".to_owned(),
        outputs: arguments(&outputs.iter().map(|name| (&name[..], FLOAT)).collect::<Vec<_>>()),
        results: (5..10)
            .map(|number| (format!("out{number}"), format!("inner:output:{number}")))
            .collect(),
        nodes: vec![call("inner", "loop_forward", &["x"])],
        ..Function::default()
    };
    let gradients = ["g0", "g1", "g2", "g3", "g4"];
    let names: Vec<_> = gradients.into_iter().chain(["k5", "k6", "k7", "k8", "k9"]).collect();
    let back = Function {
        name: "outer_backward".to_owned(),
        inputs: arguments(&names.iter().map(|name| (*name, FLOAT)).collect::<Vec<_>>()),
        nodes: vec![call("inner", "loop_backward", &names)],
        ..Function::default()
    };
    all.extend([outer, back]);
    let mut inputs: Vec<_> = (0..5).map(|number| format!("dy{number}:0")).collect();
    inputs.extend((0..5).map(|number| format!("forward:{number}")));
    let mut graph = training();
    graph.nodes[1] = call("forward", "outer_forward", &["x:0"]);
    graph.nodes[2] =
        call("backward", "outer_backward", &inputs.iter().map(|one| &one[..]).collect::<Vec<_>>());
    assert_eq!(choose(&all, &graph).chosen.len(), 2);

    // A list is swapped with another one on the way.
    let mut swapped = all.clone();
    let outer = &mut swapped[4].results;
    outer.insert("out8".to_owned(), "inner:output:9".to_owned());
    outer.insert("out9".to_owned(), "inner:output:8".to_owned());
    stays(&choose(&swapped, &graph), "do not reach its gradient");
    // One is lost.
    let mut lost = all.clone();
    lost[4].results.insert("out8".to_owned(), "other:output:0".to_owned());
    stays(&choose(&lost, &graph), "do not reach its gradient");
    // The outer function is the body of a loop.
    let mut looped = graph.clone();
    let body = [("body", Attribute::Function("outer_forward".to_owned()))];
    looped.nodes.push(node("while", "While", &[], &body));
    stays(&choose(&all, &looped), "other than by a call");
}

#[test]
fn what_is_read_by_others_stays() {
    let with = |nodes: &[FunctionNode]| {
        let mut graph = training();
        graph.nodes.extend_from_slice(nodes);
        choose(&functions(), &graph)
    };
    for kept in 5..10 {
        let reader = node("reader", "Identity", &[&format!("forward:{kept}")], &[]);
        stays(&with(&[reader]), "has other consumers");
        let returned = node("kept", "_Retval", &[&format!("forward:{kept}")], &[]);
        stays(&with(&[returned]), "has other consumers");
    }
    assert_eq!(with(&[node("y", "Identity", &["forward:1"], &[])]).chosen.len(), 2);
    assert_eq!(with(&[node("after", "NoOp", &["^forward"], &[])]).chosen.len(), 2);
    // The graph of a session may be asked for it.
    let mut session = training();
    session.nodes.retain(|node| !matches!(&node.op[..], "_Arg" | "_Retval"));
    stays(&choose(&functions(), &session), "has other consumers");
}

#[test]
fn a_backward_half_takes_what_one_call_has_kept() {
    let mut graph = training();
    graph.nodes.push(call("second", "loop_forward", &["x:0"]));
    assert_eq!(choose(&functions(), &graph).chosen.len(), 2);
    graph.nodes[2].inputs[9] = "second:9".to_owned();
    stays(&choose(&functions(), &graph), "do not reach its gradient");
    // It takes what no call has kept.
    let mut graph = training();
    graph.nodes.remove(1);
    graph.nodes.push(call("alone", "loop_forward", &["x:0"]));
    stays(&choose(&functions(), &graph), "do not reach its gradient");
    // A part of it is the gradient of something, too.
    let mut graph = training();
    graph.nodes[2].inputs[0] = "forward:5".to_owned();
    stays(&choose(&functions(), &graph), "do not reach its gradient");
}

#[test]
fn other_halves_stay() {
    let changed = |change: &dyn Fn(&mut Vec<Function>)| {
        let mut all = functions();
        change(&mut all);
        choose(&all, &training())
    };
    stays(&changed(&|all| all[0].nodes.clear()), "number of its iterations");
    stays(&changed(&|all| all[0].nodes[0].op = "Shape".to_owned()), "number of its iterations");
    stays(
        &changed(&|all| {
            for (function, at) in [(0, 9), (1, 9), (0, 8), (1, 8)] {
                let list = if function == 0 { &mut all[0].outputs } else { &mut all[1].inputs };
                list[at].1 = FLOAT;
            }
        }),
        "fewer tensors",
    );
    stays(&changed(&|all| all[3].outputs[0].1 = DataType::HALF), "another signature");
    // A GRU has four outputs, so that what is kept begins one earlier.
    stays(&changed(&|all| all[2].nodes = layer("gru", &GRU)), "do not reach its gradient");
    let masked = |all: &mut Vec<Function>| {
        let branch = Attribute::Function("branch".to_owned());
        let nodes = std::mem::replace(
            &mut all[2].nodes,
            vec![node("cond", "If", &["allowed"], &[("then_branch", branch)])],
        );
        all.push(Function { name: "branch".to_owned(), nodes, ..Function::default() });
    };
    stays(&changed(&masked), "a mask is supported in inference only");
    let nothing = changed(&|all| {
        all.remove(3);
    });
    assert!(nothing.chosen.is_empty() && nothing.kept.is_empty(), "{nothing}");
}

#[test]
fn halves_from_a_file_have_other_names() {
    let mut all = functions();
    for function in &mut all[2..] {
        function.name = format!("__inference_{}_77", function.name);
    }
    assert_eq!(choose(&all, &training()).chosen.len(), 2);
    // Two that the old name may mean.
    let mut copy = all[3].clone();
    copy.name.push('8');
    all.push(copy);
    assert!(choose(&all, &training()).chosen.is_empty());
}
