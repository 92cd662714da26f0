//! Patterns whose tensors have any shapes that broadcast: what a graph becomes computes what it computed, and is no error
//! where it was none.

use proptest::prelude::*;
use proptest::sample::select;

use crate::common::notation::graph;
use crate::mutations::{
    Pattern, gru, loop_of_cells, loop_of_keras, lstm, lstm_of_two_products,
    lstm_of_two_products_of_rows, lstm_with_all_parts, nodes_of, replaced, wrong,
};
use crate::properties::config;
use crate::{keras, layers};

/// Shapes beside matrices of one or two rows, and two columns.
const SHAPES: [&str; 11] = [
    "[2,2]", "[2]", "[]", "[1]", "[1,1]", "[1,2]", "[2,1]", "[3,2]", "[3,1]", "[1,2,2]", "[2,1,2]",
];

/// Mostly the first one, so that much of a graph is as it was.
fn shape() -> impl Strategy<Value = &'static str> {
    prop_oneof![2 => Just(SHAPES[0]), 1 => select(&SHAPES[..])]
}

fn vector() -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => Just("[2]"), 1 => select(&SHAPES[..])]
}

fn check(text: &str, pattern: &Pattern) -> Result<bool, TestCaseError> {
    let nodes = nodes_of(&graph(text));
    match wrong(nodes, pattern.observed) {
        Some(Err(wrong)) => Err(TestCaseError::fail(format!("{wrong}\nof\n{text}"))),
        Some(Ok(is_changed)) => Ok(is_changed),
        None => Ok(false),
    }
}

/// Sources of other shapes.
fn with(text: &str, sources: &[(&str, &str)]) -> String {
    let lines = text.lines().map(|line| {
        let found = sources.iter().find(|(name, _)| line.trim().starts_with(&format!("{name} = ")));
        match (found, line.split_once("sizes=").or_else(|| line.split_once("shape="))) {
            (Some((_, shape)), Some((before, _))) => {
                let attribute = if line.contains("sizes=") { "sizes" } else { "shape" };
                format!("{before}{attribute}={shape}\n")
            }
            _ => format!("{line}\n"),
        }
    });
    lines.collect()
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn a_step_of_an_lstm([c, dh, dc] in [shape(), shape(), shape()], rows in 1..3) {
        let (x, h) = (format!("[{rows},3]"), format!("[{rows},2]"));
        let pattern = lstm();
        let text = with(&pattern.text, &[("x", &x), ("h", &h), ("c", c), ("dh", dh), ("dc", dc)]);
        check(&text, &pattern)?;
    }

    #[test]
    fn a_step_of_two_products(
        [c, dh, dc] in [shape(), shape(), shape()],
        [of_x, of_h] in [1..3, 1..3],
        [w_x, w_h, b] in [
            select(&["[3,8]", "[3,8]", "[3,1]"][..]),
            select(&["[2,8]", "[2,8]", "[2,1]"][..]),
            select(&["[8]", "[8]", "[1]", "[1,8]", "[2,1]", "[]"][..]),
        ],
        is_strict in any::<bool>(),
    ) {
        let (x, h) = (format!("[{of_x},3]"), format!("[{of_h},2]"));
        let pattern = if is_strict { lstm_of_two_products() } else { lstm_of_two_products_of_rows() };
        let sum = if is_strict { "AddN(z_x0, z_h0) N=2" } else { "AddV2(z_x0, z_h0)" };
        let text = replaced(&pattern.text, &[
            ("AddV2(z_x0, z_h0)", sum),
            ("shape=[3,8]", &format!("shape={w_x}")),
            ("shape=[2,8]", &format!("shape={w_h}")),
            ("shape=[8]", &format!("shape={b}")),
        ]);
        let sources = [("x", &x[..]), ("h", &h), ("c", c), ("dh", dh), ("dc", dc), ("w_x", w_x), ("w_h", w_h), ("b", b)];
        check(&with(&text, &sources), &pattern)?;
    }

    #[test]
    fn peepholes(
        [wci, wcf, wco] in [vector(), vector(), vector()],
        [c, dh, dc] in [shape(), shape(), shape()],
        rows in 1..3,
        has_one_cell in any::<bool>(),
    ) {
        let cells = if has_one_cell { 1 } else { 2 };
        let (x, h) = (format!("[{rows},3]"), format!("[{rows},2]"));
        let (w, b) = (format!("[5,{}]", 4 * cells), format!("[{}]", 4 * cells));
        let pattern = lstm_with_all_parts();
        let sources = [("x", &x[..]), ("h", &h), ("w", &w), ("b", &b), ("c", c), ("dh", dh), ("dc", dc),
            ("wci", wci), ("wcf", wcf), ("wco", wco)];
        check(&with(&pattern.text, &sources), &pattern)?;
    }

    #[test]
    fn a_step_of_a_gru([dh, h] in [shape(), shape()], rows in 1..3) {
        let x = format!("[{rows},3]");
        let pattern = gru();
        check(&with(&pattern.text, &[("x", &x), ("h", h), ("dh", dh)]), &pattern)?;
    }

    #[test]
    fn a_loop_of_cells([c0, h0] in [shape(), shape()], lengths in select(&["[1,3]", "2", "[2]"][..]), rows in 1..3) {
        let pattern = loop_of_cells();
        let text = replaced(&pattern.text, &[("T=int32 value=[1,3]", &format!("T=int32 value={lengths}"))]);
        let x = format!("[3,{rows},3]");
        check(&with(&text, &[("x", &x), ("h0", h0), ("c0", c0)]), &pattern)?;
    }

    #[test]
    fn loops_of_keras(
        bias in select(&["[20]", "[1,20]", "[2,20]", "[1]", "[]", "[5]", "[2,1]"][..]),
        states in select(&["[2,5]", "[1,5]", "[5]", "[2,1]", "[3,5]", "[1,1]", "[1,2,5]"][..]),
        rows in 1..4,
    ) {
        let pattern = loop_of_keras(keras::LSTM, ["[3,20]", "[5,20]", bias], &[]);
        let text = replaced(&pattern.text, &[
            ("biased = BiasAdd(sum, b)", "biased = AddV2(sum, b)"),
            ("sizes = Const() T=int32 value=[2,5]", &format!("sizes = Const() T=int32 value={states}")),
        ]);
        check(&with(&text, &[("x", &format!("[3,{rows},3]"))]), &pattern)?;
        let pattern = loop_of_keras(keras::GRU, ["[3,15]", "[5,15]", "[2,15]"], &[]);
        let text = replaced(&pattern.text, &[
            ("sizes = Const() T=int32 value=[2,5]", &format!("sizes = Const() T=int32 value={states}")),
        ]);
        check(&with(&text, &[("x", &format!("[3,{rows},3]"))]), &pattern)?;
    }
}

/// A state before the only round may have another shape than that after it.
#[test]
fn a_loop_of_one_round() {
    let whole = layers::without_lengths();
    let text = replaced(&loop_of_cells().text, &whole);
    let (mut changed, pattern) = (0, loop_of_cells());
    for (rows, width) in [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)] {
        for c0 in SHAPES
            .into_iter()
            .filter(|&shape| !shape.starts_with("[1,2,") && !shape.starts_with("[2,1,"))
        {
            let (x, h0) = (format!("[1,{rows},3]"), format!("[{rows},{width}]"));
            let w = format!("[{},8]", 3 + width);
            let text = with(&text, &[("x", &x), ("h0", &h0), ("c0", c0), ("w", &w)]);
            changed += usize::from(check(&text, &pattern).expect("it computes the same"));
        }
    }
    assert!(changed > 20, "{changed}");
}

/// Without lengths, a state may have one row for all.
#[test]
fn a_loop_without_lengths() {
    let pattern = loop_of_cells();
    let whole = layers::without_lengths();
    let text = replaced(&pattern.text, &whole);
    let mut changed = 0;
    for c0 in SHAPES {
        for rows in 1..3 {
            let x = format!("[3,{rows},3]");
            let h0 = format!("[{rows},2]");
            let text = with(&text, &[("x", &x), ("h0", &h0), ("c0", c0)]);
            changed += usize::from(check(&text, &pattern).expect("it computes the same"));
        }
    }
    assert!(changed > 5, "{changed}");
}
