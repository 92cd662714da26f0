//! Steps of GRU cells whose input and state have weights of their own, with gates in any order.

use crate::common::rewriting::{Rewriting, rewriting};
use crate::layers;
use crate::mutations::{Pattern, check, placeholders, replaced};

const FORWARD: &str = "w_x = Placeholder() shape=[3,4] sizes=[3,4]
    w_h = Placeholder() shape=[2,4] sizes=[2,4]
    v_x = Placeholder() shape=[3,2] sizes=[3,2]
    v_h = Placeholder() shape=[2,2] sizes=[2,2]
    b = Placeholder() shape=[4] sizes=[4]
    b_c = Placeholder() shape=[2] sizes=[2]
    one = Const() value=1.0
    z_x = MatMul(x, w_x)
    z_h = MatMul(h, w_h)
    both = AddV2(z_x, z_h)
    z = AddV2(both, b)
    gates = Sigmoid(z)
    split = Split(axis, gates) num_split=2
    hr = Mul(split, h)
    c_x = MatMul(x, v_x)
    c_h = MatMul(hr, v_h)
    both_c = AddV2(c_x, c_h)
    z_c = AddV2(both_c, b_c)
    c = Tanh(z_c)
    rest = Sub(one, split:1)
    kept = Mul(split:1, h)
    new = Mul(rest, c)
    next = AddV2(kept, new)
    y = Neg(next)\n";

const CELL: &str = "next = BlockcellGRUCell(x, h, w_x, v_x, b, b_c, w_h, v_h)";
const TWO: &str = "num_w_h=1 broadcasts_rows=true";

/// The pre-activations are split, and each part gets its function.
const APART: [(&str, &str); 6] = [
    (
        "gates = Sigmoid(z)\n    split = Split(axis, gates) num_split=2",
        "bars = Split(axis, z) num_split=2
        r = Sigmoid(bars)
        u = Sigmoid(bars:1)",
    ),
    ("Mul(split, h)", "Mul(r, h)"),
    ("Sub(one, split:1)", "Sub(one, u)"),
    ("Mul(split:1, h)", "Mul(u, h)"),
    ("new = Mul(rest, c)", "new = Mul(c, rest)"),
    ("AddV2(kept, new)", "AddV2(new, kept)"),
];

/// The update gate comes first.
const UPDATE_FIRST: [(&str, &str); 3] = [
    ("Sub(one, split:1)", "Sub(one, split)"),
    ("kept = Mul(split:1, h)", "kept = Mul(split, h)"),
    ("hr = Mul(split, h)", "hr = Mul(split:1, h)"),
];

/// The update gate is the share of the candidate.
const OF_CANDIDATE: [(&str, &str); 2] = [
    ("kept = Mul(split:1, h)", "kept = Mul(rest, h)"),
    ("new = Mul(rest, c)", "new = Mul(split:1, c)"),
];

fn has(after: &Rewriting, line: &str) {
    assert!(after.text().contains(line), "{line}\n{}", after.text());
}

fn becomes(changes: &[(&str, &str)], line: &str) {
    let after = rewriting(&replaced(FORWARD, changes));
    has(&after, line);
    for gone in ["z", "z_x", "c_h", "both", "split", "gates", "bars", "hr", "rest", "kept"] {
        assert!(!after.has(gone), "{gone} {}", after.text());
    }
}

#[test]
fn a_step_becomes_one_node() {
    becomes(&[], &format!("{CELL} {TWO}"));
    becomes(&APART, &format!("{CELL} {TWO}"));
    becomes(&UPDATE_FIRST, &format!("{CELL} update_first=true {TWO}"));
    becomes(&OF_CANDIDATE, &format!("{CELL} u_weighs_c=true {TWO}"));
    let both = [
        &UPDATE_FIRST[..],
        &[
            ("kept = Mul(split, h)", "kept = Mul(rest, h)"),
            ("new = Mul(rest, c)", "new = Mul(split, c)"),
        ],
    ]
    .concat();
    becomes(&both, &format!("{CELL} update_first=true u_weighs_c=true {TWO}"));
    becomes(
        &[("AddV2(z_x, z_h)", "AddV2(z_h, z_x)"), ("AddV2(c_x, c_h)", "Add(c_h, c_x)")],
        &format!("{CELL} {TWO}"),
    );
    becomes(
        &[("AddV2(z_x, z_h)", "AddN(z_x, z_h) N=2"), ("AddV2(c_x, c_h)", "AddN(c_h, c_x) N=2")],
        &format!("{CELL} num_w_h=1 broadcasts_rows=false"),
    );
    becomes(
        &[
            ("both = AddV2(z_x, z_h)\n    z = AddV2(both, b)", "z = AddV2(z_x, z_h)"),
            ("MatMul(h, w_h)", "_FusedMatMul(h, w_h, b) fused_ops=[\"BiasAdd\"]"),
            ("both_c = AddV2(c_x, c_h)\n    z_c = AddV2(both_c, b_c)", "z_c = AddV2(c_x, c_h)"),
        ],
        &format!("BlockcellGRUCell(x, h, w_x, v_x, b, next/blockcell/Const_5, w_h, v_h) {TWO}"),
    );
}

/// The cell of one product has its gates in any order, too.
#[test]
fn one_product_may_have_other_forms() {
    let one = [
        (
            "z_x = MatMul(x, w_x)\n    z_h = MatMul(h, w_h)\n    both = AddV2(z_x, z_h)",
            "left = concat(x, h)\n both = MatMul(left, w)",
        ),
        (
            "c_x = MatMul(x, v_x)\n    c_h = MatMul(hr, v_h)\n    both_c = AddV2(c_x, c_h)",
            "left_c = concat(x, hr)\n both_c = MatMul(left_c, v)",
        ),
        ("w_x = Placeholder() shape=[3,4] sizes=[3,4]", "w = Placeholder() shape=[5,4]"),
        ("v_x = Placeholder() shape=[3,2] sizes=[3,2]", "v = Placeholder() shape=[5,2]"),
    ];
    let with = |changes: &[(&'static str, &'static str)]| {
        rewriting(&replaced(FORWARD, &[&one[..], changes].concat()))
    };
    has(&with(&APART), "next = GRUBlockCell(x, h, w, v, b, b_c)");
    has(&with(&UPDATE_FIRST), "next = BlockcellGRUCell(x, h, w, v, b, b_c) update_first=true");
    has(&with(&OF_CANDIDATE), "next = BlockcellGRUCell(x, h, w, v, b, b_c) u_weighs_c=true");
}

#[test]
fn other_steps_stay() {
    for (from, to) in [
        ("hr = Mul(split, h)", "hr = Mul(split:1, h)"),
        ("kept = Mul(split:1, h)", "kept = Mul(split, h)"),
        ("kept = Mul(split:1, h)", "kept = Mul(split:1, x)"),
        ("MatMul(hr, v_h)", "MatMul(h, v_h)"),
        ("MatMul(x, v_x)", "MatMul(x2, v_x)"),
        ("MatMul(x, v_x)", "MatMul(x, v_x) transpose_b=true"),
        ("MatMul(h, w_h)", "MatMul(h2, w_h)"),
        ("AddV2(both, b)", "AddV2(both, z_h)"),
        ("AddV2(c_x, c_h)", "AddN(c_x, c_h) N=2"),
        ("y = Neg(next)", "y = Neg(next)\nmore = Neg(z_h)"),
        ("y = Neg(next)", "y = Neg(next)\nmore = Neg(both_c)"),
        ("y = Neg(next)", "y = Neg(next)\nmore = Neg(gates)"),
        // The state may be broadcast.
        ("w_h = Placeholder() shape=[2,4]", "w_h = Placeholder() shape=[1,4]"),
        ("v_h = Placeholder() shape=[2,2]", "v_h = Placeholder() shape=?"),
        ("v_x = Placeholder() shape=[3,2]", "v_x = Placeholder() shape=[4,2]"),
        ("b_c = Placeholder() shape=[2]", "b_c = Placeholder() shape=[1]"),
    ] {
        let after = rewriting(&replaced(FORWARD, &[(from, to)]));
        assert!(!after.text().contains("BlockcellGRUCell("), "{from}: {}", after.text());
    }
    let bars = [("y = Neg(next)", "y = Neg(next)\nmore = Neg(bars)")];
    rewriting(&replaced(FORWARD, &[&APART[..], &bars].concat())).stays();
}

/// The loop of `layers`, with two products.
#[test]
fn a_loop_becomes_a_layer() {
    let step = "cell = GRUBlockCell(x_t, h_switch:1, w_in, w_in, b_in, b_in)";
    let two = "cell = BlockcellGRUCell(x_t, h_switch:1, w_in, w_in, b_in, b_in, w_h_in, w_h_in) update_first=true u_weighs_c=true num_w_h=1 broadcasts_rows=true";
    let mut changes =
        layers::GRU.map(|(from, to)| (from, if to == step { two } else { to })).to_vec();
    changes.push((
        "b_in = Enter(b) frame_name=\"loop\" is_constant=true",
        "b_in = Enter(b) frame_name=\"loop\" is_constant=true
        w_h_in = Enter(w_h) frame_name=\"loop\" is_constant=true",
    ));
    let after = rewriting(&layers::with(&changes));
    has(&after, "cell = BlockcellGRULayer(time, time, lengths, x, h0, w, w, b, b, w_h, w_h)");
    has(&after, "lists=false update_first=true u_weighs_c=true num_w_h=1 broadcasts_rows=true");
    assert!(!after.has("t_merge"));
}

/// The backward step.
const BACKWARD: &str = "d_c = Mul(dh, rest)
    d_c_bar = TanhGrad(c, d_c)
    d_hr = MatMul(d_c_bar, v_h) transpose_b=true
    du_kept = Mul(dh, h)
    du_new = Mul(dh, c)
    negative = Neg(du_new)
    du = AddN(du_kept, negative) N=2
    dh_u = Mul(dh, split:1)
    dr = Mul(d_hr, h)
    dhr_r = Mul(d_hr, split)
    pair = ConcatV2(dr, du, axis)
    dz = SigmoidGrad(gates, pair)
    dx = MatMul(dz, w_x) transpose_b=true
    dh_z = MatMul(dz, w_h) transpose_b=true
    dw_x = MatMul(x, dz) transpose_a=true
    dw_h = MatMul(h, dz) transpose_a=true
    dv_x = MatMul(x, d_c_bar) transpose_a=true
    dv_h = MatMul(hr, d_c_bar) transpose_a=true
    rows = Const() value=[0]
    db = Sum(dz, rows) keep_dims=false
    out = Apply(dh_u, dhr_r, dx, dh_z, dw_x, dw_h, dv_x, dv_h, db)\n";

/// The same where nobody knows whether a row of one product stands for all.
const GRAD_OF_ROWS: [(&str, &str); 3] = [
    (
        "dx = MatMul(dz, w_x) transpose_b=true",
        "shape_x = Shape(z_x) T=int32
        shape_h = Shape(z_h) T=int32
        args = BroadcastGradientArgs(shape_x, shape_h)
        sum_x = Sum(dz, args)
        sum_h = Sum(dz, args:1)
        dz_x = Reshape(sum_x, shape_x)
        dz_h = Reshape(sum_h, shape_h)
        dx = MatMul(dz_x, w_x) transpose_b=true",
    ),
    ("dw_h = MatMul(h, dz)", "dw_h = MatMul(h, dz_h)"),
    (
        "du = AddN(du_kept, negative) N=2",
        "shape_u = Shape(split:1) T=int32
        shape_state = Shape(h) T=int32
        args_u = BroadcastGradientArgs(shape_u, shape_state)
        sum_u = Sum(du_kept, args_u)
        kept_u = Reshape(sum_u, shape_u)
        du = AddN(kept_u, negative) N=2",
    ),
];

const GRAD_APART: [(&str, &str); 3] = [
    (
        "pair = ConcatV2(dr, du, axis)\n    dz = SigmoidGrad(gates, pair)",
        "d_r_bar = SigmoidGrad(r, dr)
        d_u_bar = SigmoidGrad(u, du)
        dz = ConcatV2(d_r_bar, d_u_bar, axis)",
    ),
    ("dhr_r = Mul(d_hr, split)", "dhr_r = Mul(d_hr, r)"),
    ("dh_u = Mul(dh, split:1)", "dh_u = Mul(dh, u)"),
];

const GRAD_UPDATE_FIRST: [(&str, &str); 3] = [
    ("dh_u = Mul(dh, split:1)", "dh_u = Mul(dh, split)"),
    ("dhr_r = Mul(d_hr, split)", "dhr_r = Mul(d_hr, split:1)"),
    ("ConcatV2(dr, du, axis)", "ConcatV2(du, dr, axis)"),
];

const GRAD_OF_CANDIDATE: [(&str, &str); 4] = [
    ("d_c = Mul(dh, rest)", "d_c = Mul(dh, split:1)"),
    ("du_kept = Mul(dh, h)", "du_kept = Mul(dh, c)"),
    ("du_new = Mul(dh, c)", "du_new = Mul(dh, h)"),
    ("dh_u = Mul(dh, split:1)", "dh_u = Mul(dh, rest)"),
];

fn pattern(forward: &[(&str, &str)], backward: Option<&[(&str, &str)]>) -> Pattern {
    let sources = placeholders(&[("x", "[2,3]"), ("h", "[2,2]"), ("dh", "[2,2]")]);
    let grad = backward.map(|changes| replaced(BACKWARD, changes)).unwrap_or_default();
    const STEPS: &[&str] =
        &["BlockcellGRUCell(", "BlockcellGRUCellGradC(", "BlockcellGRUCellGradRU("];
    Pattern {
        text: replaced(FORWARD, forward) + &grad + &sources,
        observed: if backward.is_some() { &["y", "out"] } else { &["y"] },
        becomes: if backward.is_some() { STEPS } else { &STEPS[..1] },
        stride: 1,
    }
}

#[test]
fn near_misses_of_a_step() {
    check(&pattern(&[], None));
}

#[test]
fn near_misses_of_gates_apart() {
    check(&pattern(&APART, None));
}

#[test]
fn near_misses_of_another_order_and_share() {
    check(&pattern(&UPDATE_FIRST, None));
    check(&pattern(&OF_CANDIDATE, None));
}

#[test]
fn near_misses_of_a_backward_step() {
    check(&pattern(&[], Some(&[])));
    check(&pattern(&[], Some(&GRAD_OF_ROWS)));
}

#[test]
fn near_misses_of_a_backward_step_of_gates_apart() {
    check(&pattern(&APART, Some(&GRAD_APART)));
}

#[test]
fn near_misses_of_a_backward_step_in_another_order() {
    check(&pattern(&UPDATE_FIRST, Some(&GRAD_UPDATE_FIRST)));
}

#[test]
fn near_misses_of_a_backward_step_of_another_share() {
    check(&pattern(&OF_CANDIDATE, Some(&GRAD_OF_CANDIDATE)));
}

#[test]
fn a_backward_step_has_the_form_of_its_forward_step() {
    let after = |forward: &[(&str, &str)], backward: &[(&str, &str)]| {
        rewriting(&pattern(forward, Some(backward)).text)
    };
    let plain = after(&[], &[]);
    has(&plain, "d_c_bar = BlockcellGRUCellGradC(next:1, h, next:2, dh)");
    has(&plain, "dz = BlockcellGRUCellGradRU(next, h, d_c_bar:1, d_hr)");
    has(&plain, "dz/blockcell/BiasAddGrad = BiasAddGrad(dz)");
    let order = after(&UPDATE_FIRST, &GRAD_UPDATE_FIRST);
    has(&order, "BlockcellGRUCellGradRU(next, h, d_c_bar:1, d_hr) update_first=true");
    let share = after(&OF_CANDIDATE, &GRAD_OF_CANDIDATE);
    has(&share, "BlockcellGRUCellGradC(next:1, h, next:2, dh) u_weighs_c=true");
    let apart = after(&APART, &GRAD_APART);
    has(&apart, "dz = BlockcellGRUCellGradRU(next, h, d_c_bar:1, d_hr)");
    // One order is not the other.
    let other = after(&UPDATE_FIRST, &[]);
    assert!(!other.text().contains("GRUCellGrad"), "{}", other.text());
    let other = after(&OF_CANDIDATE, &[]);
    assert!(!other.text().contains("GRUCellGrad"), "{}", other.text());
}
