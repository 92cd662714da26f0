//! Steps of plain cells without a bias, and with one that a sum adds, which may broadcast.

use super::cells::{self, one_step};
use super::{cells_gru, layers};
use crate::common::rewriting::{Rewriting, rewriting};

const FUSED: &str = "z0 = _FusedMatMul(concat0, w, b) fused_ops=[\"BiasAdd\"]";
const W: &str = "w = VariableV2() shape=[5,8]\n";
const B: &str = "b = VariableV2() shape=[8]\n";

/// A forward step whose pre-activations are these.
fn step(z: &str, more: &str) -> String {
    let text = one_step("y = Neg(h0)\n");
    assert!(text.contains(FUSED));
    text.replace(FUSED, z) + more
}

fn stays(z: &str, more: &str) -> Rewriting {
    rewriting(&step(z, more)).stays()
}

fn has(after: &Rewriting, line: &str) {
    assert!(after.text().contains(line), "{line}\n{}", after.text());
}

#[test]
fn no_bias_is_one_of_zeros() {
    let after = rewriting(&step("z0 = MatMul(concat0, w)", W));
    has(&after, "h0/blockcell/Const_3 = Const(^x) dtype=float value=zeros");
    has(&after, "h0 = BlockcellLSTMCell(x, h, w, h0/blockcell/Const_3, c) num_cs_prev=1");
    assert!(!after.has("z0") && !after.has("split0"));
}

/// How many zeros there are, nobody knows.
#[test]
fn no_bias_beside_weights_of_unknown_shape_stays() {
    let why = "split0 (Split) stays: the shape of w is not known, or not that of a cell's weights and bias";
    stays("z0 = MatMul(concat0, w)", "").reports(why);
    stays("z0 = MatMul(concat0, w)", "w = VariableV2() shape=[-1,-1]").reports(why);
    stays("z0 = MatMul(concat0, w)", "w = VariableV2() shape=[8]").reports(why);
}

#[test]
fn a_sum_adds_a_bias() {
    for sum in ["Add(z, b)", "Add(b, z)", "AddV2(z, b)", "AddV2(b, z)"] {
        let z = format!("z = MatMul(concat0, w)\nz0 = {sum}");
        let after = rewriting(&step(&z, &(W.to_owned() + B)));
        has(&after, "h0 = BlockcellLSTMCell(x, h, w, b, c) num_cs_prev=1");
        assert!(!after.has("z0") && !after.has("z"));
    }
}

/// `BiasAdd` takes a vector of as many numbers as there are columns; a sum takes others, too.
#[test]
fn a_sum_that_may_broadcast_stays() {
    let z = "z = MatMul(concat0, w)\nz0 = AddV2(z, b)";
    let why = |name: &str| {
        format!(
            "split0 (Split) stays: the shape of {name} is not known, or not that of a cell's weights and bias"
        )
    };
    for shape in ["[1]", "[]", "[1,8]", "[3,8]", "[4]", "[-1]", "?"] {
        stays(z, &format!("{W}b = VariableV2() shape={shape}\n")).reports(&why("b"));
    }
    stays(z, W).reports(&why("b"));
    for shape in ["[5,-1]", "[5,1]", "[5,4]", "?"] {
        let known = if ["[5,1]", "[5,4]"].contains(&shape) { "b" } else { "w" };
        stays(z, &format!("{B}w = VariableV2() shape={shape}\n")).reports(&why(known));
    }
}

#[test]
fn other_sums_stay() {
    let product = "z = MatMul(concat0, w)\n";
    for sum in ["Sub(z, b)", "Mul(z, b)", "AddN(z, b) N=2", "AddV2(z, z)", "AddV2(b, b)"] {
        stays(&format!("{product}z0 = {sum}"), &(W.to_owned() + B));
    }
    for product in [
        "MatMul(concat0, w) transpose_b=true",
        "MatMul(concat0, w) transpose_a=true",
        "MatMul(w, concat0)",
        "MatMul(x, w)",
    ] {
        stays(&format!("z = {product}\nz0 = AddV2(z, b)"), &(W.to_owned() + B));
        stays(&format!("z0 = {product}"), W);
    }
}

/// The product would be computed twice.
#[test]
fn a_product_that_somebody_reads_stays() {
    let z = "z = MatMul(concat0, w)\nz0 = AddV2(z, b)\nmore = Neg(z)";
    stays(z, &(W.to_owned() + B)).reports("split0 (Split) stays: more depends on z, too");
}

#[test]
fn gru_cells_have_no_bias_either() {
    let text = cells_gru::FORWARD.replace(
        "z_c = _FusedMatMul(concat_c, read_c, b_c) fused_ops=[\"BiasAdd\"]",
        "z_c = MatMul(concat_c, read_c)",
    );
    let after = rewriting(&text);
    has(&after, "next = GRUBlockCell(x, h, read_ru, read_c, b_ru, next/blockcell/Const_5)");
    let text = text.replace(
        "z = _FusedMatMul(concat_ru, read_ru, b_ru) fused_ops=[\"BiasAdd\"]",
        "product = MatMul(concat_ru, read_ru)\nz = AddV2(product, b_ru)",
    );
    let after = rewriting(&(text.clone() + "b_ru = VariableV2() shape=[8]\n"));
    has(&after, "next = GRUBlockCell(x, h, read_ru, read_c, b_ru, next/blockcell/Const_5)");
    rewriting(&(text + "b_ru = VariableV2() shape=[1,8]\n")).stays();
}

/// The constant of a round leaves the loop.
#[test]
fn a_loop_without_a_bias_becomes_a_layer() {
    let cell = "cell = BlockcellLSTMCell(x_t, h_switch:1, w_in, b_in, c_switch:1) num_cs_prev=1 num_peepholes=0 forget_bias=1.0 cell_clip=-1.0";
    let small = "concat = concat(x_t, h_switch:1)
        z = MatMul(concat, w_in)
        split = Split(axis_in, z) num_split=4
        i = Sigmoid(split)
        ci = Tanh(split:1)
        f = Sigmoid(split:2)
        o = Sigmoid(split:3)
        kept = Mul(c_switch:1, f)
        new = Mul(i, ci)
        cs = AddV2(kept, new)
        co = Tanh(cs)
        cell = Mul(co, o)";
    let small = small.replace("concat(x_t, h_switch:1)", "ConcatV2(x_t, h_switch:1, axis_in)");
    let text = layers::with(&[
        (cell, &small),
        ("w = Const() value=zeros", "w = VariableV2() shape=[15,32]"),
        ("b_in = Enter(b)", "axis_in = Enter(axis)"),
        ("b = Const() value=zeros\n", ""),
        ("cell:1", "cs"),
        ("cell:6", "cell"),
    ]);
    let after = rewriting(&text);
    has(
        &after,
        "cell = BlockcellLSTMLayer(time, time, lengths, x, h0, c0, w, cell/blockcell/Const_3)",
    );
    assert!(!after.has("t_merge"), "{}", after.text());
}

/// Each step has a constant of its own.
#[test]
fn steps_without_a_bias_become_a_layer() {
    let mut text = W.to_owned() + "parts = Unpack(x) num=4 axis=0\n";
    for t in 0..4usize {
        let x = format!("parts:{t}");
        let states = match t.checked_sub(1) {
            None => ["h", "c"].map(str::to_owned),
            Some(before) => ["h", "cs"].map(|name| format!("{name}{before}")),
        };
        let step = cells::step(t, [&x, &states[0], &states[1]]);
        text += &step
            .replace(", w, b) fused_ops=[\"BiasAdd\"]", ", w)")
            .replace("_FusedMatMul", "MatMul");
    }
    text += "forget_bias = Const() value=1.0\ny = Neg(h3)\n";
    let after = rewriting(&text);
    has(&after, "BlockcellLSTMLayer(");
    assert!(!after.text().contains("BlockcellLSTMCell("), "{}", after.text());
}
