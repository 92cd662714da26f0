//! Deep and large graphs, on a stack as small as any thread's.

use blockcell_graphs::{rewrite, shield};

use crate::common::large;
use crate::common::notation::graph;
use crate::common::rewriting::rewriting;

/// Threads of Java have 1 MiB, those of musl 128 KiB.
const STACK: usize = 128 << 10;

/// The report on a graph that was shielded and rewritten on a small stack.
fn reported(text: String) -> Vec<String> {
    let work = move || {
        let mut graph = graph(&text);
        shield(&mut graph);
        rewrite(&mut graph).lines().collect()
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work);
    thread.expect("a thread can start").join().expect("it ends without a panic")
}

#[test]
fn three_thousand_products_in_a_chain_of_sums() {
    let want = ["sum2999 becomes BlockcellMatMulAddN (parts: 3000)"];
    assert_eq!(reported(large::chain_of_sums(3000)), want);
}

#[test]
fn three_thousand_products_in_a_tree_of_sums() {
    let want = ["sum2999 becomes BlockcellMatMulAddN (parts: 3000)"];
    assert_eq!(reported(large::tree_of_sums(3000)), want);
}

#[test]
fn one_product_below_three_thousand_sums() {
    let want = ["sum0 becomes BlockcellMatMulAddN (parts: 1)"];
    assert_eq!(reported(large::product_below_sums(3000)), want);
}

#[test]
fn three_thousand_unrolled_steps() {
    for (text, op) in [
        (large::unrolled_lstm(3000, false), "BlockcellLSTMLayer"),
        (large::unrolled_gru(3000, false), "BlockcellGRULayer"),
    ] {
        assert_eq!(reported(text), [format!("h3000 becomes {op} (parts: 3000)")]);
    }
}

#[test]
fn the_training_of_three_thousand_unrolled_steps() {
    for (text, ops) in [
        (large::unrolled_lstm(3000, true), ["BlockcellLSTMCell", "BlockcellLSTMCellGrad"]),
        (large::unrolled_gru(3000, true), ["GRUBlockCell", "BlockcellGRUCellGradRU"]),
    ] {
        let reported = reported(text);
        for op in ops {
            let of_op = |line: &&String| line.ends_with(&format!(" becomes {op} (parts: 1)"));
            assert_eq!(reported.iter().filter(of_op).count(), 3000, "{op}");
        }
        assert!(reported.iter().any(|line| line.ends_with("BlockcellMatMulAddN (parts: 3000)")));
        assert!(
            reported.iter().any(|line| line.ends_with("BlockcellBiasAddGradAddN (parts: 3000)"))
        );
    }
}

#[test]
fn two_hundred_thousand_nodes_around_a_cell() {
    let reported = reported(large::one_cell_among(200_000));
    assert!(reported.contains(&"q0 becomes BlockcellMatMulSlice (parts: 2)".to_owned()));
}

/// TensorFlow refuses such a graph.
#[test]
fn a_circle_without_a_loop() {
    let text = "there = Add(x, back)
        back = Identity(there)
        cell = lstm(x, h)
        left = concat(x, h)
        p = product(left, cell)
        sum = AddN(p, there)";
    let kept = rewriting(text).stays();
    kept.reports("there (Add) is not rewritten: the graph has a cycle that is not a loop");
}

/// The gates of Keras's cells are looked for in the sum before a split.
#[test]
fn a_sum_that_depends_on_itself() {
    let text = "sum = BiasAdd(sum, b)
        gates = Split(axis, sum) num_split=3
        cell = lstm(x, h)";
    rewriting(text)
        .stays()
        .reports("sum (BiasAdd) is not rewritten: the graph has a cycle that is not a loop");
}

/// TensorFlow makes no such node.
#[test]
fn a_node_without_the_inputs_of_its_operation() {
    let text = "cell = lstm(x, h)
        left = concat(x, h)
        p = product(left, cell)
        q = MatMul(left)
        sum = AddN(p, q)";
    let kept = rewriting(text).stays();
    kept.reports(
        "q (MatMul) is not rewritten: it has too few inputs, so the whole graph is left unchanged",
    );
}
