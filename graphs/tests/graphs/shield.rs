//! What keeps sums of products from TensorFlow's optimizers.

use crate::common::notation::{graph, lines};
use blockcell_graphs::{Graph, rewrite, shield};

fn shielded(text: &str) -> Graph {
    let mut graph = graph(text);
    shield(&mut graph);
    graph
}

/// The graph has this line.
fn has(graph: &Graph, line: &str) {
    let (line, text) = (&lines(line)[0], graph.to_string());
    assert!(text.lines().any(|one| one == line), "no {line} in\n{text}");
}

fn stays(text: &str) {
    assert_eq!(shielded(text).to_string(), graph(text).to_string());
}

const PRODUCTS: &str = "cell1 = lstm(x1, h1)
    p1 = product(left1, cell1)
    b1 = bias_grad(cell1)";

#[test]
fn sums_of_products_are_shielded() {
    let graph = shielded(&format!("{PRODUCTS}\nsum = AddN(a, p1, b, ^c)\nout = Apply(sum)"));
    has(&graph, "sum = BlockcellMatMulAddN(a, p1, b, ^c) num_a=0 num_b=0 num_addends=3");
    has(&graph, "out = Apply(sum)");
}

#[test]
fn sums_of_sums_over_rows_are_shielded() {
    let graph = shielded(&format!("{PRODUCTS}\nsum = AddN(a, b1, b)"));
    has(&graph, "sum = BlockcellBiasAddGradAddN(a, b1, b) num_out_backprop=0 num_addends=3");
}

#[test]
fn halves_are_shielded_as_halves() {
    let graph = shielded(
        "cell1 = lstm(x1, h1) T=half
        p1 = product(left1, cell1) T=half
        sum = AddN(a, p1, b) T=half",
    );
    has(&graph, "sum = BlockcellMatMulAddN(a, p1, b) T=half num_a=0 num_b=0 num_addends=3");
}

#[test]
fn a_sum_that_a_step_asks_for_is_shielded_under_its_name() {
    let graph = shielded(&format!("{PRODUCTS}\nsum = AddN(a, p1, b) target"));
    has(&graph, "sum = BlockcellMatMulAddN(a, p1, b) num_a=0 num_b=0 num_addends=3 target");
}

#[test]
fn other_sums_are_not_shielded() {
    for sum in [
        "AddN(a, b, c)",
        "AddN(a, p1)",
        "Add(a, p1)",
        "AddN(a, p1, b) @/gpu:0",
        "AddN(a, p1, b) @/job:worker/cpu:0",
        "AddN(a, p1, b) T=int32",
        "AddN(a, p1, b) _XlaCompile=true",
    ] {
        stays(&format!("{PRODUCTS}\nsum = {sum}"));
    }
}

#[test]
fn a_shielded_sum_is_rewritten_as_the_sum_is() {
    let text = format!("{PRODUCTS}\ninner = AddN(a, p1, b)\nsum = AddN(inner, c, d)");
    let (mut with, mut without) = (shielded(&text), graph(&text));
    rewrite(&mut with);
    rewrite(&mut without);
    let sum = "inner = BlockcellMatMulAddN(left1, cell1:1, a, b) num_a=1 num_b=1 num_addends=2";
    for graph in [with, without] {
        has(&graph, sum);
        has(&graph, "sum = AddN(inner, c, d)");
    }
}

#[test]
fn a_shield_that_is_not_used_goes() {
    for (product, addends) in [("p1", 3), ("b1", 3), ("p1", 20)] {
        let addends: Vec<_> = (1..addends).map(|number| format!("a{number}")).collect();
        let text = format!(
            "{PRODUCTS}
            sum = AddN({product}, {}, ^c)
            out1 = Apply(sum)
            out2 = NoOp(^sum)
            seen = Apply({product})",
            addends.join(", ")
        );
        let mut graph = shielded(&text);
        rewrite(&mut graph);
        has(
            &graph,
            &format!("sum = AddN({product}, {}, ^c) N={}", addends.join(", "), addends.len() + 1),
        );
        has(&graph, "out1 = Apply(sum)");
        has(&graph, "out2 = NoOp(^sum)");
    }
}

/// It was put there, and everything goes back to where the library is.
#[test]
fn a_shield_on_another_device_stays() {
    let text = "sum = BlockcellMatMulAddN(a, b) num_a=0 num_b=0 num_addends=2 @/gpu:0";
    let mut graph = graph(text);
    rewrite(&mut graph);
    has(&graph, text);
}

#[test]
fn a_shield_goes_where_operations_write_into_their_inputs() {
    let mut graph = shielded(&format!(
        "{PRODUCTS}
        sum = AddN(a, p1, b)
        elsewhere = InplaceUpdate(fed, rows, values)"
    ));
    has(&graph, "sum = BlockcellMatMulAddN(a, p1, b) num_a=0 num_b=0 num_addends=3");
    rewrite(&mut graph);
    has(&graph, "sum = AddN(a, p1, b) N=3");
}

#[test]
fn shielding_twice_is_shielding_once() {
    let mut graph = shielded(&format!("{PRODUCTS}\nsum = AddN(a, p1, b)"));
    let once = graph.to_string();
    shield(&mut graph);
    assert_eq!(graph.to_string(), once);
}
