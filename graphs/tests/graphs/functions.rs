//! Cells with other functions than `Tanh` and `Sigmoid`.

use crate::common::rewriting::rewriting;
use crate::mutations::{self, Pattern, check, replaced};
use crate::{cells, keras, layers};

/// A cell whose `Tanh` are `Relu`, with its gradient.
fn with_relu(pattern: Pattern, more: &[(&str, &str)]) -> Pattern {
    let text = replaced(&pattern.text, &[("Tanh(", "Relu(")]);
    Pattern { text: replaced(&text, more), ..pattern }
}

#[test]
fn an_lstm_step_with_relu() {
    let grads = [
        ("TanhGrad(co0, through_h0)", "ReluGrad(through_h0, co0)"),
        ("TanhGrad(ci0, to_ci0)", "ReluGrad(to_ci0, ci0)"),
    ];
    let pattern = with_relu(mutations::lstm(), &grads);
    let text = rewriting(&pattern.text).text();
    for op in ["BlockcellLSTMCell(", "BlockcellLSTMCellGrad("] {
        let node = text.lines().find(|line| line.contains(op)).expect(&text);
        assert!(node.contains("activation=\"relu\""), "{node}");
    }
    check(&pattern);
}

#[test]
fn an_lstm_step_of_which_one_function_is_another_one_stays() {
    let step = cells::one_step("y = Neg(h0)");
    for (from, to) in [
        ("ci0 = Tanh(", "ci0 = Relu("),
        ("co0 = Tanh(", "co0 = Relu("),
        ("i0 = Sigmoid(", "i0 = Relu("),
        ("co0 = Tanh(", "co0 = Identity("),
    ] {
        rewriting(&replaced(&step, &[(from, to)])).stays();
    }
}

#[test]
fn an_lstm_step_without_functions_of_the_state() {
    let changes = [
        ("ci0 = Tanh(split0:1)\n", ""),
        ("co0 = Tanh(cs0)\n", ""),
        ("Mul(i0, ci0)", "Mul(i0, split0:1)"),
        ("Mul(co0, o0)", "Mul(cs0, o0)"),
    ];
    let forward = cells::one_step("y = Apply(h0, cs0)\n");
    let lstm = mutations::lstm();
    let sources = lstm.text.lines().filter(|line| line.contains("Placeholder()"));
    let sources = sources.map(|line| format!("{}\n", line.trim())).collect::<String>();
    let text = replaced(&forward, &changes) + &sources;
    let after = rewriting(&text).text();
    assert!(after.contains("activation=\"linear\""), "{after}");
    check(&Pattern { text, observed: &["y"], becomes: &["BlockcellLSTMCell("], stride: 1 });
}

#[test]
fn a_gru_step_with_relu() {
    let gru = mutations::gru();
    let line = gru.text.lines().find(|line| line.contains("TanhGrad(")).expect("a gradient");
    let (before, inputs) = line.split_once("TanhGrad(").expect("it is there");
    let (value, gradient) = inputs.trim_end_matches(')').split_once(", ").expect("two");
    let other = format!("{before}ReluGrad({gradient}, {value})");
    let line = line.to_owned();
    let becomes = &["BlockcellGRUCell(", "BlockcellGRUCellGradC(", "BlockcellGRUCellGradRU("];
    let pattern = Pattern { becomes, ..with_relu(gru, &[(&line, &other)]) };
    let text = rewriting(&pattern.text).text();
    for op in ["BlockcellGRUCell(", "BlockcellGRUCellGradC("] {
        let node = text.lines().find(|line| line.contains(op)).expect(&text);
        assert!(node.contains("activation=\"relu\""), "{node}");
    }
    check(&pattern);
}

#[test]
fn a_loop_has_the_functions_of_its_steps() {
    let of_cell = ("gate_order=[0,1,2,3]", "gate_order=[0,1,2,3] activation=\"relu\"");
    let text = rewriting(&layers::with(&[of_cell])).text();
    let node = text.lines().find(|line| line.contains("BlockcellLSTMLayer(")).expect(&text);
    assert!(node.contains("activation=\"relu\""), "{node}");
}

#[test]
fn a_loop_of_a_gru_has_the_functions_of_its_steps() {
    let step = "cell = GRUBlockCell(x_t, h_switch:1, w_in, w_in, b_in, b_in)";
    let other = step.replace("GRUBlockCell", "BlockcellGRUCell") + " activation=\"relu\"";
    let changes = layers::GRU.map(|(from, to)| (from, if to == step { &other[..] } else { to }));
    let text = rewriting(&layers::with(&changes)).text();
    let node = text.lines().find(|line| line.contains("BlockcellGRULayer(")).expect(&text);
    assert!(node.contains("activation=\"relu\""), "{node}");
}

/// Constants of a round.
const NUMBERS: &str = "three = Const(^pivot) value=3.0
    six = Const(^pivot) value=6.0
    sixth = Const(^pivot) value=0.16666667
    fifth = Const(^pivot) value=0.2
    half = Const(^pivot) value=0.5
    at_most = Const(^pivot) value=1.0
    at_least = Const(^pivot) value=0.0\n";

/// The ways to write a function of `x` as `y`, and its name.
fn ways(y: &str, x: &str) -> Vec<(String, &'static str)> {
    let relu6 = format!("{y}_a = AddV2({x}, three)\n{y}_b = Relu6({y}_a)\n");
    let keras2 = format!(
        "{y}_a = Mul({x}, fifth)\n{y}_b = AddV2({y}_a, half)\n{y}_c = Minimum({y}_b, at_most)\n\
         {y} = Maximum({y}_c, at_least)\n"
    );
    vec![
        (format!("{y} = Relu({x})\n"), "relu"),
        (format!("{y} = Tanh({x})\n"), "tanh"),
        (format!("{y} = Sigmoid({x})\n"), "sigmoid"),
        (format!("{relu6}{y} = RealDiv({y}_b, six)\n"), "hard_sigmoid"),
        (format!("{relu6}{y} = Mul({y}_b, sixth)\n"), "hard_sigmoid"),
        (keras2, "hard_sigmoid_keras2"),
    ]
}

/// A step of a layer with the functions of some number, and their names.
fn step_of_keras(step: &str, of_gates: usize, of_state: usize) -> (String, [&'static str; 2]) {
    let mut names = ["", ""];
    let lines = step.lines().map(|line| {
        let line = line.trim();
        let mut parts = line.trim_end_matches(')').splitn(2, " = ");
        let (Some(y), Some(rest)) = (parts.next(), parts.next()) else { return line.to_owned() };
        let function = |op: &str, way: usize, name: &mut &'static str| {
            let x = rest.strip_prefix(op)?;
            let (text, found) = ways(y, x).swap_remove(way);
            *name = found;
            Some(text)
        };
        let [state, gates] = &mut names;
        let found = function("Tanh(", of_state, state);
        found.or_else(|| function("Sigmoid(", of_gates, gates)).unwrap_or(line.to_owned())
    });
    let text = lines.map(|line| line + "\n").collect::<String>();
    (NUMBERS.to_owned() + &text, names)
}

fn check_keras(step: &str, variables: [&str; 3], becomes: &'static [&'static str]) {
    for (of_gates, of_state) in [(3, 0), (4, 1), (5, 5), (0, 3), (1, 2)] {
        let (step, [state, gates]) = step_of_keras(step, of_gates, of_state);
        let pattern = mutations::loop_of_keras(&step, variables, becomes);
        let text = rewriting(&pattern.text).text();
        let node = text.lines().find(|line| line.contains(becomes[0])).expect(&text);
        assert_eq!(node.contains(&format!(" activation=\"{state}\"")), state != "tanh", "{node}");
        let gates = format!("recurrent_activation=\"{gates}\"");
        assert!(node.contains(&gates), "{node}");
        // A sixth is rounded to a float there, and not in the operation.
        if of_gates != 4 {
            check(&Pattern { stride: 29, ..pattern });
        }
    }
}

#[test]
fn a_loop_of_keras_lstm() {
    let variables = ["[3,20]", "[5,20]", "[20]"];
    check_keras(keras::LSTM, variables, &["BlockcellKerasLSTM("]);
}

/// TensorFlow's optimizers multiply by a sixth elsewhere in a product.
#[test]
fn a_number_may_be_anywhere_in_a_product() {
    let changes = [
        ("i = Sigmoid(split)", "i_sum = AddV2(three, split)\ni = Relu6(i_sum)"),
        ("f = Sigmoid(split:1)", "f_sum = AddV2(split:1, three)\nf = Relu6(f_sum)"),
        ("o = Sigmoid(split:3)", "o_sum = AddV2(split:3, three)\no = Relu6(o_sum)"),
        ("new = Mul(i, ci)", "sixth_of_ci = Mul(sixth, ci)\nnew = Mul(i, sixth_of_ci)"),
        (
            "kept = Mul(c_switch:1, f)",
            "sixth_of_f = RealDiv(f, six)\nkept = Mul(sixth_of_f, c_switch:1)",
        ),
        ("h = Mul(o, co)", "h_6 = Mul(o, co)\nh = Mul(sixth, h_6)"),
    ];
    let step = NUMBERS.to_owned() + &replaced(keras::LSTM, &changes);
    let text = rewriting(&keras::with(&step, &[])).text();
    assert!(text.contains("recurrent_activation=\"hard_sigmoid\""), "{text}");
    for (from, to) in [
        ("sixth_of_ci = Mul(sixth, ci)", "sixth_of_ci = Mul(fifth, ci)"),
        ("h = Mul(sixth, h_6)", "h = Mul(sixth, co)"),
        ("h = Mul(sixth, h_6)", "h = Mul(sixth, o)"),
        ("i_sum = AddV2(three, split)", "i_sum = AddV2(six, split)"),
        ("kept = Mul(sixth_of_f, c_switch:1)", "kept = Mul(f, c_switch:1)"),
    ] {
        let other = replaced(&step, &[(from, to)]);
        let text = rewriting(&keras::with(&other, &[])).text();
        assert!(!text.contains("BlockcellKeras"), "{text}");
    }
}

#[test]
fn a_loop_of_keras_gru() {
    check_keras(keras::GRU, ["[3,15]", "[5,15]", "[2,15]"], &["BlockcellKerasGRU("]);
}

#[test]
fn a_loop_whose_gates_have_several_functions_stays() {
    let step = replaced(keras::LSTM, &[("i = Sigmoid(", "i = Relu(")]);
    let text = rewriting(&keras::with(&step, &[])).text();
    assert!(!text.contains("BlockcellKeras"), "{text}");
}
