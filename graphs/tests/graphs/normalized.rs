//! Steps of LSTM cells with layer normalization.

use crate::common::rewriting::rewriting;
use crate::mutations::{Pattern, check, replaced};

/// `tf.nn.batch_normalization` of a tensor, as `y`.
pub(super) fn norm(y: &str, x: &str) -> String {
    format!(
        "{y}_mean = Mean({x}, axes) keep_dims=true
        {y}_squares = SquaredDifference({x}, {y}_mean)
        {y}_variance = Mean({y}_squares, axes) keep_dims=true
        {y}_sum = AddV2({y}_variance, epsilon)
        {y}_scale = Rsqrt({y}_sum)
        {y}_inverse = Mul({y}_scale, {y}_gamma)
        {y}_scaled = Mul({x}, {y}_inverse)
        {y}_moved = Mul({y}_mean, {y}_inverse)
        {y}_offset = Sub({y}_beta, {y}_moved)
        {y} = AddV2({y}_scaled, {y}_offset)
        {y}_gamma = Placeholder() shape=[2] sizes=[2]
        {y}_beta = Placeholder() shape=[2] sizes=[2]\n"
    )
}

fn step() -> String {
    let norms = [("n_i", "split"), ("n_ci", "split:1"), ("n_f", "split:2"), ("n_o", "split:3")];
    let norms: String = norms.map(|(y, x)| norm(y, x)).concat();
    "axes = Const() T=int32 value=[1]
    axis = Const() T=int32 value=1
    epsilon = Const() value=0.001
    forget_bias = Const() value=1.0
    x = Placeholder() shape=[2,3] sizes=[2,3]
    h_prev = Placeholder() shape=[2,2] sizes=[2,2]
    c = Placeholder() shape=[2,2] sizes=[2,2]
    w = Placeholder() shape=[5,8] sizes=[5,8]
    concat = ConcatV2(x, h_prev, axis)
    z = MatMul(concat, w)
    split = Split(axis, z) num_split=4\n"
        .to_owned()
        + &norms
        + "i = Sigmoid(n_i)
    ci = Tanh(n_ci)
    biased = AddV2(n_f, forget_bias)
    f = Sigmoid(biased)
    o = Sigmoid(n_o)
    kept = Mul(c, f)
    new = Mul(i, ci)
    sum = AddV2(kept, new)\n"
        + &norm("cs", "sum")
        + "co = Tanh(cs)
    h = Mul(co, o)
    y = Apply(h, cs)\n"
}

fn pattern(text: String) -> Pattern {
    Pattern { text, observed: &["y"], becomes: &["BlockcellLayerNormLSTMCell("], stride: 4 }
}

#[test]
fn a_forward_step_becomes_one_node() {
    let text = rewriting(&step()).text();
    let node = text.lines().find(|line| line.contains("LayerNorm")).expect(&text);
    let want = "h = BlockcellLayerNormLSTMCell(x, h_prev, w, n_i_gamma, n_ci_gamma, n_f_gamma, n_o_gamma, cs_gamma, n_i_beta, n_ci_beta, n_f_beta, n_o_beta, cs_beta, c) num_norms=5 num_cs_prev=1 forget_bias=1.0 epsilon=0.001 gate_order=[0,1,2,3] state_axis=1";
    assert!(node.contains(want), "{node}");
    assert!(!text.contains("Rsqrt") && !text.contains("Split"), "{text}");
}

#[test]
fn near_misses_of_a_step() {
    check(&pattern(step()));
}

/// TensorFlow's optimizers add the forget bias to other summands of the normalized gate.
#[test]
fn summands_may_have_another_order() {
    let text = replaced(
        &step(),
        &[
            ("n_f_offset = Sub(n_f_beta, n_f_moved)", "n_f_offset = Sub(forget_bias, n_f_moved)"),
            ("n_f = AddV2(n_f_scaled, n_f_offset)", "n_f = AddN(n_f_scaled, n_f_offset)"),
            ("biased = AddV2(n_f, forget_bias)", "biased = Add(n_f, n_f_beta)"),
            ("kept = Mul(c, f)", "kept = Mul(f, c)"),
        ],
    );
    let after = rewriting(&text).text();
    assert!(after.contains("forget_bias=1.0 epsilon=0.001"), "{after}");
    check(&Pattern { stride: 16, ..pattern(text) });
}

/// Centered first: `(x - mean) * scale * gamma + beta`.
#[test]
fn a_normalization_may_begin_with_a_difference() {
    let mut text = step();
    for (y, x) in [("n_i", "split"), ("n_o", "split:3"), ("cs", "sum")] {
        let own = norm(y, x);
        let centered = replaced(
            &own,
            &[
                (
                    &format!("{y}_inverse = Mul({y}_scale, {y}_gamma)"),
                    &format!("{y}_centered = Sub({x}, {y}_mean)"),
                ),
                (
                    &format!("{y}_scaled = Mul({x}, {y}_inverse)"),
                    &format!("{y}_inverse = Mul({y}_centered, {y}_scale)"),
                ),
                (&format!("{y}_moved = Mul({y}_mean, {y}_inverse)\n"), ""),
                (
                    &format!("{y}_offset = Sub({y}_beta, {y}_moved)"),
                    &format!("{y}_scaled = Mul({y}_inverse, {y}_gamma)"),
                ),
                (
                    &format!("AddV2({y}_scaled, {y}_offset)"),
                    &format!("AddV2({y}_scaled, {y}_beta)"),
                ),
            ],
        );
        text = replaced(&text, &[(&own, &centered)]);
    }
    check(&Pattern { stride: 16, ..pattern(text) });
}

/// TensorFlow 2 fuses a normalization on some processors.
#[test]
fn a_normalization_may_be_fused() {
    let mut text = step();
    for (y, x) in [("n_i", "split"), ("n_ci", "split:1"), ("n_f", "split:2"), ("cs", "sum")] {
        let own = norm(y, x);
        let (start, end) = (own.find(&format!("{y}_mean")), own.find(&format!("{y}_gamma =")));
        let inner = &own[start.expect("first")..end.expect("last")];
        let fused = format!("{y} = _MklLayerNorm({x}, {y}_gamma, {y}_beta) epsilon=0.001\n");
        text = replaced(&text, &[(inner, &fused)]);
    }
    let after = rewriting(&text).text();
    assert!(after.contains("forget_bias=1.0 epsilon=0.001"), "{after}");
    check(&Pattern { stride: 4, ..pattern(text) });
}

#[test]
fn relu_may_stand_in_place_of_tanh() {
    let text = replaced(&step(), &[("Tanh(", "Relu(")]);
    let after = rewriting(&text).text();
    assert!(after.contains("activation=\"relu\""), "{after}");
    check(&Pattern { stride: 16, ..pattern(text) });
}

#[test]
fn other_steps_stay() {
    for (from, to) in [
        ("y = Apply(h, cs)", "y = Apply(h, cs, n_i_scale)"),
        ("y = Apply(h, cs)", "y = Apply(h, cs, i)"),
        ("y = Apply(h, cs)", "y = Apply(h, cs, sum)"),
        ("n_i_gamma = Placeholder() shape=[2]", "n_i_gamma = Placeholder()"),
        ("cs_beta = Placeholder() shape=[2]", "cs_beta = Placeholder() shape=[1,2]"),
        ("z = MatMul(concat, w)", "product = MatMul(concat, w)\nz = BiasAdd(product, bias)"),
        ("keep_dims=true", "keep_dims=false"),
        ("axes = Const() T=int32 value=[1]", "axes = Const() T=int32 value=[0]"),
        ("i = Sigmoid(n_i)", "i_biased = AddV2(n_i, forget_bias)\ni = Sigmoid(i_biased)"),
    ] {
        rewriting(&replaced(&step(), &[(from, to)])).stays();
    }
    let other_epsilon = "half = Const() value=0.5\ncs_sum = AddV2(cs_variance, half)";
    let changes = [("cs_sum = AddV2(cs_variance, epsilon)", other_epsilon)];
    rewriting(&replaced(&step(), &changes)).stays();
}
