//! Steps of LSTM cells whose input and output before have weights of their own.

use crate::common::rewriting::{Rewriting, rewriting};
use crate::mutations::replaced;
use crate::{cells, layers};

/// What stands in place of the one product of `cells::step`.
const TWO: &str = "z_x0 = MatMul(x, w_x)
    z_h0 = MatMul(h, w_h)
    both0 = AddV2(z_x0, z_h0)
    z0 = AddV2(both0, b)";
const ONE: &str = "concat0 = concat(x, h)
        z0 = _FusedMatMul(concat0, w, b) fused_ops=[\"BiasAdd\"]";
const WEIGHTS: &str = "w_x = VariableV2() shape=[3,8]
    w_h = VariableV2() shape=[2,8]
    b = VariableV2() shape=[8]\n";

/// A forward step whose pre-activations are these, and perhaps more.
fn step(z: &str, more: &str) -> String {
    replaced(&cells::one_step(more), &[(ONE, z)])
}

/// The same with its weights.
pub(super) fn with_weights(more: &str) -> String {
    step(TWO, more) + WEIGHTS
}

fn stays(changes: &[(&str, &str)]) -> Rewriting {
    rewriting(&replaced(&with_weights("y = Neg(h0)\n"), changes)).stays()
}

fn has(after: &Rewriting, line: &str) {
    assert!(after.text().contains(line), "{line}\n{}", after.text());
}

const ATTRIBUTES: &str =
    "num_cs_prev=1 num_peepholes=0 forget_bias=1.0 cell_clip=-1.0 gate_order=[0,1,2,3] num_w_h=1";

#[test]
fn two_products_become_one_node() {
    for z in [
        TWO,
        "z_x0 = MatMul(x, w_x)\nz_h0 = MatMul(h, w_h)\nboth0 = Add(z_x0, z_h0)\nz0 = BiasAdd(both0, b)",
        "z_x0 = MatMul(x, w_x)\nz_h0 = MatMul(h, w_h)\nboth0 = AddV2(b, z_x0)\nz0 = AddV2(both0, z_h0)",
        "z_x0 = MatMul(x, w_x)\nz_h0 = _FusedMatMul(h, w_h, b) fused_ops=[\"BiasAdd\"]\nz0 = AddV2(z_x0, z_h0)",
    ] {
        let after = rewriting(&(step(z, "y = Neg(h0)\n") + WEIGHTS));
        let node = format!(
            "h0 = BlockcellLSTMCell(x, h, w_x, b, c, w_h) {ATTRIBUTES} broadcasts_rows=true"
        );
        has(&after, &node);
        for gone in ["z0", "z_x0", "z_h0", "both0", "split0"] {
            assert!(!after.has(gone), "{gone} {}", after.text());
        }
    }
}

/// `AddN` refuses tensors of other shapes, and so does the new node then.
#[test]
fn a_strict_sum_stays_strict() {
    let z = replaced(TWO, &[("AddV2(z_x0, z_h0)", "AddN(z_x0, z_h0) N=2")]);
    let after = rewriting(&(step(&z, "y = Neg(h0)\n") + WEIGHTS));
    has(&after, &format!("{ATTRIBUTES} broadcasts_rows=false"));
    let with_bias = replaced(TWO, &[("AddV2(both0, b)", "AddN(both0, b) N=2")]);
    rewriting(&(step(&with_bias, "y = Neg(h0)\n") + WEIGHTS)).stays();
}

#[test]
fn each_product_may_have_a_bias_or_none() {
    let none = stays_with(&[("\n    z0 = AddV2(both0, b)", ""), ("both0", "z0")]);
    has(&none, "BlockcellLSTMCell(x, h, w_x, h0/blockcell/Const_3, c, w_h)");
    let both = stays_with(&[
        ("both0 = AddV2(z_x0, z_h0)", "z_b0 = BiasAdd(z_x0, b_x)\nboth0 = AddV2(z_b0, z_h0)"),
        ("w_x = ", "b_x = VariableV2() shape=[8]\nw_x = "),
    ]);
    has(&both, "h0/blockcell/AddV2_3 = AddV2(b_x, b)");
    has(&both, "BlockcellLSTMCell(x, h, w_x, h0/blockcell/AddV2_3, c, w_h)");
}

/// What becomes of a step that is changed.
fn stays_with(changes: &[(&str, &str)]) -> Rewriting {
    rewriting(&replaced(&with_weights("y = Neg(h0)\n"), changes))
}

/// The weights tell how many columns the products have, which a sum would broadcast.
#[test]
fn weights_of_unknown_columns_stay() {
    let why = |name: &str| {
        format!(
            "split0 (Split) is not rewritten: the shape of {name} is unknown, or not that of a cell's weights and bias"
        )
    };
    for (from, to, name) in [
        ("w_x = VariableV2() shape=[3,8]", "w_x = VariableV2() shape=[3,1]", "w_h"),
        ("w_h = VariableV2() shape=[2,8]", "w_h = VariableV2() shape=[2,1]", "w_h"),
        ("w_h = VariableV2() shape=[2,8]", "w_h = VariableV2() shape=?", "w_h"),
        ("w_x = VariableV2() shape=[3,8]", "w_x = VariableV2() shape=[3,-1]", "w_x"),
        ("b = VariableV2() shape=[8]", "b = VariableV2() shape=[1,8]", "b"),
        ("b = VariableV2() shape=[8]", "b = VariableV2() shape=[1]", "b"),
    ] {
        stays(&[(from, to)]).reports(&why(name));
    }
}

#[test]
fn other_products_stay() {
    for (from, to) in [
        ("MatMul(x, w_x)", "MatMul(x, w_x) transpose_b=true"),
        ("MatMul(h, w_h)", "MatMul(h, w_h) transpose_a=true"),
        ("AddV2(z_x0, z_h0)", "Sub(z_x0, z_h0)"),
        ("AddV2(z_x0, z_h0)", "Mul(z_x0, z_h0)"),
        ("AddV2(z_x0, z_h0)", "AddN(z_x0, z_h0, z_h0) N=3"),
        ("AddV2(z_x0, z_h0)", "AddV2(z_h0, z_h0)"),
        ("AddV2(both0, b)", "AddV2(both0, z_h0)"),
        ("y = Neg(h0)", "y = Neg(h0)\nmore = Neg(z_h0)"),
        ("y = Neg(h0)", "y = Neg(h0)\nmore = Neg(both0)"),
    ] {
        stays(&[(from, to)]);
    }
}

/// The factor that has the state of the step before is `h_prev`, in whatever order they are added.
#[test]
fn the_state_is_that_of_the_step_before() {
    for swapped in [false, true] {
        let mut text = "forget_bias = Const() value=1.0\n".to_owned() + WEIGHTS;
        text += "parts = Unpack(x) num=4 axis=0\n";
        for t in 0..4usize {
            let x = format!("parts:{t}");
            let states = match t.checked_sub(1) {
                None => ["h", "c"].map(str::to_owned),
                Some(before) => ["h", "cs"].map(|name| format!("{name}{before}")),
            };
            let one = format!(
                "concat{t} = concat({x}, {})
        z{t} = _FusedMatMul(concat{t}, w, b) fused_ops=[\"BiasAdd\"]",
                states[0]
            );
            let mut products = [format!("MatMul({x}, w_x)"), format!("MatMul({}, w_h)", states[0])];
            // The first step does not tell.
            if swapped && t > 0 {
                products.reverse();
            }
            let [left, right] = products;
            let two = format!(
                "left{t} = {left}\nright{t} = {right}\nboth{t} = AddV2(left{t}, right{t})\nz{t} = AddV2(both{t}, b)"
            );
            text += &replaced(&cells::step(t, [&x, &states[0], &states[1]]), &[(&one, &two)]);
        }
        text += "y = Neg(h3)\n";
        let after = rewriting(&text);
        has(&after, "BlockcellLSTMLayer(");
        has(&after, "x, h, c, w_x, b, w_h) num_rounds=1");
        assert!(!after.text().contains("BlockcellLSTMCell("), "{}", after.text());
    }
}

pub(super) const GRAD: &str = "dx = MatMul(dz0, w_x) transpose_b=true
    dh_prev = MatMul(dz0, w_h) transpose_b=true
    dw_x = MatMul(x, dz0) transpose_a=true
    dw_h = MatMul(h, dz0) transpose_a=true
    rows = Const() value=[0]
    db = Sum(dz0, rows) keep_dims=false
    y = Apply(h0, cs0)
    out = Apply(dc0, dx, dh_prev, dw_x, dw_h, db)\n";

/// The same where nobody knows whether a row of one product stands for all.
pub(super) const GRAD_OF_ROWS: [(&str, &str); 2] = [
    (
        "dx = MatMul(dz0, w_x) transpose_b=true",
        "shape_x = Shape(z_x0) T=int32
        shape_h = Shape(z_h0) T=int32
        args = BroadcastGradientArgs(shape_x, shape_h)
        sum_x = Sum(dz0, args)
        sum_h = Sum(dz0, args:1)
        dz_x = Reshape(sum_x, shape_x)
        dz_h = Reshape(sum_h, shape_h)
        dx = MatMul(dz_x, w_x) transpose_b=true",
    ),
    ("dw_h = MatMul(h, dz0)", "dw_h = MatMul(h, dz_h)"),
];

#[test]
fn the_backward_step_becomes_one_node() {
    let text = with_weights(&(cells::step_grad(0, "c", ["dh", "dc"]) + GRAD));
    let after = rewriting(&text);
    has(&after, "dz0 = BlockcellLSTMCellGrad(h0, h0:2, h0:3, h0:4, h0:5, c, dc, dh)");
    has(&after, "dx = BlockcellMatMulSlice(dz0:1, w_x)");
    has(&after, "dh_prev = BlockcellMatMulSlice(dz0:1, w_h)");
    has(&after, "dz0/blockcell/BiasAddGrad = BiasAddGrad(dz0:1)");
    assert!(!after.has("split0") && !after.has("db"), "{}", after.text());
}

/// Trees of `Add` may have to add gradients of weights, whose shapes are those of the weights.
#[test]
fn gradients_of_weights_have_their_shapes() {
    let text = with_weights(&(cells::step_grad(0, "c", ["dh", "dc"]) + GRAD));
    for (w, sum, found) in [
        ("w_x", "AddV2(dw_x, w_x)", true),
        ("w_x", "AddV2(dw_x, w_h)", false),
        ("w_h", "AddV2(dw_h, w_h)", true),
        ("w_h", "AddV2(dw_h, w_x)", false),
    ] {
        let one = format!("d{w}, ");
        let text =
            replaced(&text, &[(&one[..], "")]) + &format!("more = {sum}\nlast = Neg(more)\n");
        let after = rewriting(&text).text();
        assert_eq!(after.contains("more = BlockcellMatMulAddN("), found, "{sum} {after}");
    }
}

/// Sums of what was broadcast stay, as somebody has to add up. The shapes are those of x and h, with other columns.
#[test]
fn gradients_of_broadcast_rows_stay_sums() {
    let more = "shape_x = Shape(z_x0) T=int32
        shape_h = Shape(z_h0) T=int32
        args = BroadcastGradientArgs(shape_x, shape_h)
        sum_x = Sum(dz0, args)
        dz_x = Reshape(sum_x, shape_x)
        dx = MatMul(dz_x, w_x) transpose_b=true
        y = Apply(h0, dx, dc0)\n";
    let after = rewriting(&with_weights(&(cells::step_grad(0, "c", ["dh", "dc"]) + more)));
    has(&after, "dz0 = BlockcellLSTMCellGrad(");
    has(&after, "sum_x = Sum(dz0:1, args)");
    has(&after, "h0 = BlockcellLSTMCell(x, h, w_x, b, c, w_h)");
    for (name, left, w, more) in [("shape_x", "x", "w_x", 5), ("shape_h", "h", "w_h", 6)] {
        has(&after, &format!("{name}/blockcell/Shape = Shape({left}, ^{w}) T=int32"));
        has(
            &after,
            &format!(
                "{name}/blockcell/Const = Const(^{name}/blockcell/Shape) T=int32 dtype=int32 value=[0,{more}]"
            ),
        );
        has(
            &after,
            &format!(
                "{name}/blockcell/AddV2 = AddV2({name}/blockcell/Shape, {name}/blockcell/Const)"
            ),
        );
    }
    has(&after, "args = BroadcastGradientArgs(shape_x/blockcell/AddV2, shape_h/blockcell/AddV2)");
}

/// What asks for the shape of a sum asks for all rows, which x alone does not tell.
#[test]
fn a_step_whose_sum_is_asked_for_its_shape_stays() {
    stays(&[("y = Neg(h0)", "y = Neg(h0)\nshape = Shape(both0)\nmore = Neg(shape)")]);
    // A sum that broadcasts nothing has the rows of all.
    stays(&[
        ("AddV2(z_x0, z_h0)", "AddN(z_x0, z_h0) N=2"),
        ("y = Neg(h0)", "y = Neg(h0)\nshape = Shape(z_x0)\nmore = Neg(shape)"),
    ]);
}

/// The loop of `layers`, with two products.
pub(super) fn of_loop() -> String {
    let cell = "cell = BlockcellLSTMCell(x_t, h_switch:1, w_in, b_in, c_switch:1) num_cs_prev=1 num_peepholes=0 forget_bias=1.0 cell_clip=-1.0 gate_order=[0,1,2,3]";
    let two = "cell = BlockcellLSTMCell(x_t, h_switch:1, w_in, b_in, c_switch:1, w_h_in) num_cs_prev=1 num_peepholes=0 forget_bias=1.0 cell_clip=-1.0 gate_order=[0,1,2,3] num_w_h=1 broadcasts_rows=true";
    let entered = "b_in = Enter(b) frame_name=\"loop\" is_constant=true";
    let both = "b_in = Enter(b) frame_name=\"loop\" is_constant=true
        w_h_in = Enter(w_h) frame_name=\"loop\" is_constant=true";
    layers::with(&[(cell, two), (entered, both)])
}

#[test]
fn a_loop_becomes_a_layer() {
    let after = rewriting(&of_loop());
    has(&after, "cell = BlockcellLSTMLayer(time, time, lengths, x, h0, c0, w, b, w_h)");
    has(&after, "broadcasts=true num_w_h=1 broadcasts_rows=true");
    assert!(!after.has("t_merge"));
}
