//! `Add` broadcasts: it counts as a sum where its summands have one shape for certain.

use crate::common::rewriting::rewriting;

/// `Add(p, other)`, where the product is of a cell with weights `w`.
fn text(definitions: &str, other: &str, add: &str) -> String {
    format!(
        "{definitions}
        cell1 = lstm(x1, h1, w, bias)
        left = concat(x1, h1)
        p = product(left, cell1)
        sum = {add}(p, {other})"
    )
}

fn is_sum(definitions: &str, other: &str) {
    for add in ["Add", "AddV2"] {
        rewriting(&text(definitions, other, add))
            .reports("sum becomes BlockcellMatMulAddN (parts: 1)");
    }
}

fn may_broadcast(definitions: &str, other: &str) {
    for add in ["Add", "AddV2"] {
        let rewriting = rewriting(&text(definitions, other, add));
        assert!(rewriting.has("sum"));
        rewriting.reports("p becomes BlockcellMatMulAddN (parts: 1)");
    }
}

#[test]
fn any_tensor_may_have_another_shape() {
    may_broadcast("", "other");
}

#[test]
fn a_product_of_a_cell_has_the_shape_of_its_weights() {
    is_sum("", "w");
    is_sum("same = Identity(w)", "same");
    is_sum("zeros = ZerosLike(w)", "zeros");
    rewriting(&text(
        "cell2 = lstm(x2, h2)\nleft2 = concat(x2, h2)\nq = product(left2, cell2)",
        "q",
        "Add",
    ))
    .reports("sum becomes BlockcellMatMulAddN (parts: 2)");
}

#[test]
fn a_product_of_other_factors_may_have_another_shape() {
    for left in ["concat(x1, other)", "concat(other, h1)", "concat(x1, h1, h1)", "concat(h1, x1)"] {
        rewriting(&format!(
            "cell1 = lstm(x1, h1)
            left = {left}
            seen = Apply(left)
            p = product(left, cell1)
            sum = Add(p, w)"
        ))
        .stays();
    }
}

#[test]
fn weights_and_summand_may_have_known_shapes() {
    is_sum("w = VariableV2() shape=[5,12]\nv = VariableV2() shape=[5,12]", "v");
    is_sum("w = VariableV2() shape=[5,12]\nv = Variable() shape=[5,12]", "v");
    is_sum("size = Const() value=[5,12]\nw = VariableV2() shape=[5,12]\nv = Fill(size, zero)", "v");
    is_sum(
        "handle = VarHandleOp() shape=[5,12]\nw = ReadVariableOp(handle)\nhandle2 = VarHandleOp() shape=[5,12]\nv = ReadVariableOp(handle2)",
        "v",
    );
}

/// Weights in parts, of another type, or with other axes.
#[test]
fn shapes_follow_from_what_tensors_are_made_of() {
    let numbers = "minus = Const() value=-1\nnone = Const() value=0\nwhole = Const() value=[5,12]\nopen = Const() value=[5,-1]";
    let of = |made: &str| {
        format!(
            "{numbers}
            w = VariableV2() shape=[5,12]
            half = VariableV2() shape=[5,6]
            twice = VariableV2() shape=[5,24]
            all = VariableV2() shape=[3,5,12]
            row = VariableV2() shape=[5,1,12]
            rows = VariableV2() shape=[1,5,1,12]
            {made}"
        )
    };
    for made in [
        "v = Cast(w)",
        "v = Reshape(fed, whole)",
        "v = concat(half, half)",
        "v = ConcatV2(half, half, minus)",
        "v = Split(axis, twice) num_split=2",
        "parts = Split(minus, twice) num_split=2\nv = Identity(parts:1)",
        "v = Unpack(all) num=3 axis=0",
        "parts = Unpack(all) num=3 axis=-3\nv = Identity(parts:2)",
        "v = Squeeze(row)",
        "more = ExpandDims(w, none)\nv = Squeeze(more)",
    ] {
        is_sum(&of(made), "v");
    }
    for made in [
        "v = Reshape(fed, open)",
        "v = Reshape(fed, fed)",
        "v = concat(half, w)",
        "v = concat(half, fed)",
        "v = ConcatV2(half, half, none)",
        "v = ConcatV2(half, half, fed)",
        "v = Split(none, twice) num_split=2",
        "v = Split(axis, twice) num_split=4",
        "v = Split(fed, twice) num_split=2",
        "v = Unpack(all) num=5 axis=1",
        "v = Squeeze(rows)",
        "v = ExpandDims(w, none)",
        "v = ExpandDims(w, fed)",
    ] {
        may_broadcast(&of(made), "v");
    }
}

#[test]
fn different_or_unknown_sizes_may_broadcast() {
    let w = "w = VariableV2() shape=[5,12]";
    may_broadcast(&format!("{w}\nv = VariableV2() shape=[1,12]"), "v");
    may_broadcast(&format!("{w}\nv = VariableV2() shape=[12]"), "v");
    may_broadcast(&format!("{w}\nv = VariableV2() shape=?"), "v");
    may_broadcast(&format!("{w}\nv = VariableV2() shape=[5,-1]"), "v");
    may_broadcast("w = VariableV2() shape=[-1,12]\nv = VariableV2() shape=[-1,12]", "v");
    may_broadcast("w = VariableV2() shape=?\nv = VariableV2() shape=?", "v");
    may_broadcast(&format!("{w}\nv = Fill(fed, zero)"), "v");
}

/// Old graphs say "no dimensions" for "not known".
#[test]
fn an_old_variable_without_dimensions_may_have_any() {
    let row_sum = |variable: &str| {
        format!(
            "bias = {variable}() shape=[]
            v = {variable}() shape=[]
            cell1 = lstm(x1, h1)
            b1 = bias_grad(cell1)
            sum = Add(b1, v)"
        )
    };
    rewriting(&row_sum("VariableV2")).reports("sum becomes BlockcellBiasAddGradAddN (parts: 1)");
    rewriting(&row_sum("Variable")).stays().reports(
        "b1 (BiasAddGrad) is not rewritten: the inputs of the sum sum may have different shapes",
    );
}

#[test]
fn a_sum_over_rows_has_the_shape_of_the_bias() {
    rewriting(
        "cell1 = lstm(x1, h1)
        b1 = bias_grad(cell1)
        sum = Add(bias, b1)",
    )
    .becomes("sum = BlockcellBiasAddGradAddN(cell1:1, bias) num_out_backprop=1 num_addends=1");
    rewriting(
        "cell1 = lstm(x1, h1)
        b1 = bias_grad(cell1)
        sum = Add(b1, w)",
    )
    .stays()
    .reports(
        "b1 (BiasAddGrad) is not rewritten: the inputs of the sum sum may have different shapes",
    );
}

#[test]
fn a_gru_cell_has_two_weights_and_two_biases() {
    let text = |weights: &str, bias: &str| {
        format!(
            "cell1 = gru(x1, h1, r1)
            state = Mul(h1, r1)
            left = concat(x1, state)
            p = product(left, cell1:2)
            sum = Add(p, {weights})
            b1 = bias_grad(cell1:3)
            of_bias = Add(b1, {bias})"
        )
    };
    rewriting(&text("w_c", "b_ru")).reports(
        "sum becomes BlockcellMatMulAddN (parts: 1)
        of_bias becomes BlockcellBiasAddGradAddN (parts: 1)",
    );
    rewriting(&text("w_ru", "b_c")).reports(
        "p becomes BlockcellMatMulAddN (parts: 1)
        b1 (BiasAddGrad) is not rewritten: the inputs of the sum of_bias may have different shapes",
    );
}

#[test]
fn sums_have_the_shape_of_their_summands() {
    is_sum("other = Add(w, w)", "other");
    is_sum("other = AddN(w, fed)", "other");
    is_sum("w = VariableV2() shape=[5,12]\nother = AddN(fed, w)", "other");
    may_broadcast("other = Add(w, fed)", "other");
}

#[test]
fn a_tree_of_additions_counts_as_far_as_shapes_are_known() {
    rewriting(
        "cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        left1 = concat(x1, h1)
        left2 = concat(x2, h2)
        p1 = product(left1, cell1)
        p2 = product(left2, cell2)
        inner = Add(p1, p2)
        outer = Add(inner, other)
        out = Apply(outer)",
    )
    .becomes(
        "inner = BlockcellMatMulAddN(x1, h1, x2, h2, cell1:1, cell2:1) num_a=4 num_b=2 num_addends=0
        outer = Add(inner, other)
        out = Apply(outer)",
    );
}

/// Of different cells: the weights of both are variables of one shape.
#[test]
fn a_second_state_counts_where_weights_have_known_shapes() {
    let text = |shape: &str| {
        format!(
            "w1 = VariableV2() shape=[5,12]
            w2 = VariableV2() shape={shape}
            cell1 = lstm(x1, h1, w1, bias)
            cell2 = lstm(x2, h2, w2, bias)
            left1 = concat(x1, zeros)
            left2 = concat(x2, h2)
            p1 = product(left1, cell1)
            p2 = product(left2, cell2)
            sum = AddN(p1, p2)"
        )
    };
    assert!(!rewriting(&text("[5,12]")).has("left1"));
    assert!(rewriting(&text("[6,12]")).has("left1"));
}

#[test]
fn both_sides_of_a_switch_have_the_shape_of_its_data() {
    is_sum("side = Switch(data, predicate)\nw = Identity(side:1)", "side:1");
    is_sum("side = Switch(data, predicate)\nw = Identity(side)", "side:1");
}

#[test]
fn a_merge_has_a_shape_that_all_its_inputs_have() {
    let text = |inputs: &str| {
        format!(
            "w = VariableV2() shape=[5,12]
            side = Switch(w, predicate)
            one = Merge({inputs})"
        )
    };
    is_sum(&text("side, side:1"), "one");
    may_broadcast(&text("side, fed"), "one");
    may_broadcast(&text("side, side:1"), "one:1");
}
