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
    let why = "split0 (Split) is not rewritten: the shape of w is unknown, or not that of a cell's weights and bias";
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
            "split0 (Split) is not rewritten: the shape of {name} is unknown, or not that of a cell's weights and bias"
        )
    };
    for shape in ["[1]", "[]", "[1,8]", "[3,8]", "[4]", "[-1]", "?"] {
        stays(z, &format!("{W}b = VariableV2() shape={shape}\n")).reports(&why("b"));
    }
    stays(z, &format!("{W}b = Placeholder()\n")).reports(&why("b"));
    for shape in ["[5,-1]", "[5,1]", "[5,4]", "?"] {
        let known = if ["[5,1]", "[5,4]"].contains(&shape) { "b" } else { "w" };
        stays(z, &format!("{B}w = VariableV2() shape={shape}\n")).reports(&why(known));
    }
}

/// TensorFlow 2 fuses a sum with a matrix of one row, too.
#[test]
fn a_fused_bias_that_may_be_no_vector_stays() {
    for (b, is_vector) in [
        ("VariableV2() shape=[8]", true),
        ("_Arg() _output_shapes=[8]", true),
        ("VariableV2() shape=[1,8]", false),
        ("VariableV2() shape=[]", false),
        ("VariableV2() shape=?", false),
        ("_Arg() _output_shapes=[1,8]", false),
        ("_Arg()", false),
    ] {
        let after = rewriting(&step(FUSED, &format!("b = {b}\n")));
        assert_eq!(!after.has("split0"), is_vector, "{b}");
        if !is_vector {
            after.stays().reports(
                "split0 (Split) is not rewritten: the shape of b is unknown, or not that of a cell's weights and bias",
            );
        }
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
    stays(z, &(W.to_owned() + B))
        .reports("split0 (Split) is not rewritten: more depends on z, too");
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
    let text = text.replace("b_ru = Placeholder() shape=[8]\n", "");
    let after = rewriting(&(text.clone() + "b_ru = VariableV2() shape=[8]\n"));
    has(&after, "next = GRUBlockCell(x, h, read_ru, read_c, b_ru, next/blockcell/Const_5)");
    rewriting(&(text + "b_ru = VariableV2() shape=[1,8]\n")).stays();
}

/// The constant of a round leaves the loop.
#[test]
fn a_loop_without_a_bias_becomes_a_layer() {
    let cell = "cell = BlockcellLSTMCell(x_t, h_switch:1, w_in, b_in, c_switch:1) num_cs_prev=1 num_peepholes=0 forget_bias=1.0 cell_clip=-1.0 gate_order=[0,1,2,3]";
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

/// One matrix for x and one for h, which each round puts together.
#[test]
fn weights_that_are_put_together_in_a_round_leave_the_loop() {
    let entered = "w_in = Enter(w) frame_name=\"loop\" is_constant=true";
    let both = "w_x_in = Enter(w_x) frame_name=\"loop\" is_constant=true
        w_h_in = Enter(w_h) frame_name=\"loop\" is_constant=true
        rows = Const(^t) T=int32 value=0
        w_in = ConcatV2(w_x_in, w_h_in, rows)";
    let after = rewriting(&layers::with(&[(entered, both)]));
    has(&after, "cell = BlockcellLSTMLayer(time, time, lengths, x, h0, c0, ");
    has(&after, "w_in = ConcatV2(");
    assert!(!after.has("t_merge") && !after.has("w_x_in"), "{}", after.text());
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

/// The gradients of a bias that a sum added, and of the product, as TensorFlow 1.15 has them where it does not know the
/// number of rows.
const ADDED_GRAD: &str = "shape_z = Shape(z)
    shape_b = Const() value=[8]
    args = BroadcastGradientArgs(shape_z, shape_b)
    sum_z = Sum(dz0, args)
    sum_b = Sum(dz0, args:1)
    product_grad = Reshape(sum_z, shape_z)
    b_grad = Reshape(sum_b, shape_b)
    w_grad = MatMul(concat0, product_grad) transpose_a=true
    y_b = Neg(b_grad)\n";

fn added_grad(changes: &[(&str, &str)]) -> Rewriting {
    let grad = cells::step_grad(0, "c", ["dh", "dcs"]) + ADDED_GRAD;
    let mut text = step("z = MatMul(concat0, w)\nz0 = AddV2(z, b)", &(W.to_owned() + B + &grad));
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    rewriting(&text)
}

#[test]
fn gradients_of_an_added_bias_go_with_the_backward_step() {
    for changes in [
        vec![],
        vec![("shape_b = Const() value=[8]", "shape_b = Shape(b)")],
        vec![("shape_z = Shape(z)", "shape_z = Const() value=[3,8]")],
        vec![
            ("BroadcastGradientArgs(shape_z, shape_b)", "BroadcastGradientArgs(shape_b, shape_z)"),
            ("Sum(dz0, args:1)", "Sum(dz0, args:2)"),
            ("Sum(dz0, args)", "Sum(dz0, args:1)"),
            ("Sum(dz0, args:2)", "Sum(dz0, args)"),
        ],
    ] {
        let after = added_grad(&changes);
        has(&after, "w_grad = BlockcellMatMulAddN(x, h, dz0:1) num_a=2 num_b=1 num_addends=0");
        has(&after, "dz0/blockcell/BiasAddGrad = BiasAddGrad(dz0:1) data_format=\"NHWC\"");
        has(&after, "y_b = Neg(dz0/blockcell/BiasAddGrad)");
        has(&after, "h0 = BlockcellLSTMCell(x, h, w, b, c)");
        for gone in ["args", "shape_z", "sum_z", "sum_b", "b_grad", "z", "split0"] {
            assert!(!after.has(gone), "{gone} {}", after.text());
        }
    }
}

/// TensorFlow 2 knows that the bias alone is broadcast.
#[test]
fn sums_over_rows_are_gradients_of_an_added_bias() {
    let rows = ("Sum(dz0, args:1)", "Sum(dz0, rows) keep_dims=true\nrows = Const() value=[0]");
    let whole = ("MatMul(concat0, product_grad)", "MatMul(concat0, dz0)");
    let text = [
        whole,
        rows,
        ("sum_z = Sum(dz0, args)\n", ""),
        ("product_grad = Reshape(sum_z, shape_z)\n", ""),
        ("args = BroadcastGradientArgs(shape_z, shape_b)\n", ""),
        ("shape_z = Shape(z)\n", ""),
    ];
    let after = added_grad(&text);
    has(&after, "y_b = Neg(dz0/blockcell/BiasAddGrad)");
    assert!(!after.has("sum_b") && !after.has("b_grad"), "{}", after.text());
    let mut alone = text.to_vec();
    alone[1] = ("Sum(dz0, args:1)", "Sum(dz0, rows) keep_dims=false\nrows = Const() value=[0]");
    alone.push(("Reshape(sum_b, shape_b)", "Identity(sum_b)"));
    has(&added_grad(&alone), "b_grad = Identity(dz0/blockcell/BiasAddGrad)");
}

#[test]
fn other_sums_of_a_backward_step_stay() {
    for changes in [
        ("Sum(dz0, args)", "Sum(dz0, other)"),
        ("Sum(dz0, args)", "Sum(dz0, args:1)"),
        ("Reshape(sum_z, shape_z)", "Reshape(sum_z, shape_b)"),
        ("Reshape(sum_z, shape_z)", "Reshape(sum_z, other)"),
        ("shape_z = Shape(z)", "shape_z = Shape(x)"),
        ("shape_z = Shape(z)", "shape_z = Const() value=[3,4]"),
        ("shape_z = Shape(z)", "shape_z = Const() value=[1,3,8]"),
        ("shape_b = Const() value=[8]", "shape_b = Const() value=[1,8]"),
        ("shape_b = Const() value=[8]", "shape_b = Shape(c)"),
    ] {
        let after = added_grad(&[changes]);
        assert!(after.has("sum_z") && after.has("product_grad"), "{changes:?} {}", after.text());
        assert!(after.has("dz0") && !after.has("di0"));
    }
    for sum in
        ["Sum(dz0, rows)\nrows = Const() value=[1]", "Sum(dz0, rows)\nrows = Const() value=[0,1]"]
    {
        assert!(added_grad(&[("Sum(dz0, args:1)", sum)]).has("sum_b"), "{sum}");
    }
}

/// Whatever looks like a cell is in the report.
#[test]
fn other_cells_say_why_they_stay() {
    let why = |part: &str| {
        format!(
            "split0 (Split) is not rewritten: the {part} of the step at split0 does not match a supported cell"
        )
    };
    let three_products = "z_x = MatMul(x, w_x)
        z_h = MatMul(h, w_h)
        z = AddV2(z_x, z_h)
        z_u = MatMul(u, w_u)
        z0 = AddV2(z, z_u)";
    stays(three_products, B).reports(&why("pre-activations"));
    let same_twice = step(FUSED, "").replace("Sigmoid(split0:3)", "Sigmoid(split0:2)");
    rewriting(&same_twice).stays().reports(&why("output"));
}
