//! Sums of products, and of sums over rows: which become one node, and which conditions count.

use crate::common::rewriting::rewriting;

#[test]
fn products_of_two_steps_become_one_node() {
    rewriting(
        "cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        p1 = product(left1, cell1)
        p2 = product(left2, cell2)
        sum = AddN(p1, p2) N=2
        out = Apply(sum)",
    )
    .becomes(
        "sum = BlockcellMatMulAddN(left1, left2, cell1:1, cell2:1) num_a=2 num_b=2 num_addends=0
        out = Apply(sum)",
    )
    .reports("sum becomes BlockcellMatMulAddN (parts: 2)");
}

#[test]
fn left_factors_are_read_in_parts_where_all_are_of_their_cells() {
    rewriting(
        "cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        left1 = concat(x1, h1)
        left2 = concat(x2, h2)
        p1 = product(left1, cell1)
        p2 = product(left2, cell2)
        sum = AddN(p1, p2)",
    )
    .becomes(
        "sum = BlockcellMatMulAddN(x1, h1, x2, h2, cell1:1, cell2:1) num_a=4 num_b=2 num_addends=0",
    );
}

#[test]
fn left_factors_with_other_consumers_are_read_in_parts_too() {
    rewriting(
        "cell1 = lstm(x1, h1)
        left1 = concat(x1, h1)
        p1 = product(left1, cell1)
        sum = AddN(p1, other)
        out = Apply(left1, sum)",
    )
    .becomes(
        "left1 = concat(x1, h1)
        sum = BlockcellMatMulAddN(x1, h1, cell1:1, other) num_a=2 num_b=1 num_addends=1
        out = Apply(left1, sum)",
    );
}

#[test]
fn a_shared_concat_is_read_in_parts_by_both_sums() {
    rewriting(
        "cell1 = lstm(x1, h1)
        left1 = concat(x1, h1)
        p1 = product(left1, cell1)
        p2 = product(left1, cell1)
        sum1 = AddN(p1, other1)
        sum2 = AddN(p2, other2)",
    )
    .becomes(
        "sum1 = BlockcellMatMulAddN(x1, h1, cell1:1, other1) num_a=2 num_b=1 num_addends=1
        sum2 = BlockcellMatMulAddN(x1, h1, cell1:1, other2) num_a=2 num_b=1 num_addends=1",
    );
}

#[test]
fn left_factors_stay_whole_where_one_is() {
    rewriting(
        "cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        left1 = concat(x1, h1)
        p1 = product(left1, cell1)
        p2 = product(left2, cell2)
        sum = AddN(p1, p2)",
    )
    .becomes(
        "left1 = concat(x1, h1)
        sum = BlockcellMatMulAddN(left1, left2, cell1:1, cell2:1) num_a=2 num_b=2 num_addends=0",
    );
}

#[test]
fn left_factors_stay_whole_where_the_first_part_is_not_x() {
    rewriting(
        "cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        left1 = concat(x1, h1)
        left2 = concat(h2, x2)
        p1 = product(left1, cell1)
        p2 = product(left2, cell2)
        sum = AddN(p1, p2)",
    )
    .becomes(
        "left1 = concat(x1, h1)
        left2 = concat(h2, x2)
        sum = BlockcellMatMulAddN(left1, left2, cell1:1, cell2:1) num_a=2 num_b=2 num_addends=0",
    );
}

/// A first step's zeros, which an optimizer has found the state to be.
#[test]
fn another_state_than_the_cell_s_counts_where_the_weights_are_the_same() {
    let text = |w2: &str| {
        format!(
            "cell1 = lstm(x1, h1)
            cell2 = lstm(x2, h2, {w2}, bias)
            left1 = concat(x1, zeros)
            left2 = concat(x2, h2)
            p1 = product(left1, cell1)
            p2 = product(left2, cell2)
            sum = AddN(p1, p2)"
        )
    };
    rewriting(&text("w"))
        .becomes("sum = BlockcellMatMulAddN(x1, zeros, x2, h2, cell1:1, cell2:1) num_a=4 num_b=2 num_addends=0");
    rewriting(&text("w2")).becomes(
        "left1 = concat(x1, zeros)
        left2 = concat(x2, h2)
        sum = BlockcellMatMulAddN(left1, left2, cell1:1, cell2:1) num_a=2 num_b=2 num_addends=0",
    );
}

#[test]
fn both_products_of_a_gru_cell_are_recognised() {
    rewriting(
        "cell1 = gru(x1, h1, r1)
        cell2 = gru(x2, h2, r2)
        state1 = Mul(h1, r1)
        state2 = Mul(r2, h2)
        gates1 = concat(x1, h1)
        gates2 = concat(x2, h2)
        candidate1 = concat(x1, state1)
        candidate2 = concat(x2, state2)
        pg1 = product(gates1, cell1:3)
        pg2 = product(gates2, cell2:3)
        pc1 = product(candidate1, cell1:2)
        pc2 = product(candidate2, cell2:2)
        of_gates = AddN(pg1, pg2)
        of_candidate = AddN(pc1, pc2)",
    )
    .becomes(
        "state1 = Mul(h1, r1)
        state2 = Mul(r2, h2)
        of_gates = BlockcellMatMulAddN(x1, h1, x2, h2, cell1:3, cell2:3) num_a=4 num_b=2 num_addends=0
        of_candidate = BlockcellMatMulAddN(x1, state1, x2, state2, cell1:2, cell2:2) num_a=4 num_b=2 num_addends=0",
    );
}

/// Different widths could meet: the sum says nothing of each.
#[test]
fn left_factors_of_different_kinds_stay_whole() {
    rewriting(
        "cell1 = gru(x1, h1, r1)
        cell2 = lstm(x2, h2)
        left1 = concat(x1, h1)
        left2 = concat(x2, h2)
        p1 = product(left1, cell1:3)
        p2 = product(left2, cell2)
        sum = AddN(p1, p2)",
    )
    .becomes(
        "left1 = concat(x1, h1)
        left2 = concat(x2, h2)
        sum = BlockcellMatMulAddN(left1, left2, cell1:3, cell2:1) num_a=2 num_b=2 num_addends=0",
    );
}

#[test]
fn sums_over_rows_become_one_node() {
    rewriting(
        "cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        b1 = bias_grad(cell1)
        b2 = bias_grad(cell2) data_format=\"NHWC\"
        sum = AddN(b1, other, b2)",
    )
    .becomes(
        "sum = BlockcellBiasAddGradAddN(cell1:1, cell2:1, other) num_out_backprop=2 num_addends=1",
    )
    .reports("sum becomes BlockcellBiasAddGradAddN (parts: 2)");
}

#[test]
fn sums_over_other_dimensions_stay() {
    rewriting(
        "cell1 = lstm(x1, h1)
        b1 = bias_grad(cell1) data_format=\"NCHW\"
        sum = AddN(b1, other)",
    )
    .stays()
    .reports("");
}

#[test]
fn another_output_of_a_cell_is_no_factor() {
    rewriting(
        "cell1 = lstm(x1, h1)
        p1 = product(left1, cell1:0)
        p2 = product(left1, cell1:2)
        sum = AddN(p1, p2)",
    )
    .stays()
    .reports("");
}

#[test]
fn products_that_transpose_otherwise_stay() {
    rewriting(
        "cell1 = lstm(x1, h1)
        p1 = MatMul(left1, cell1:1)
        p2 = MatMul(left2, cell1:1) transpose_a=true transpose_b=true
        sum = AddN(p1, p2)",
    )
    .stays()
    .reports("");
}

#[test]
fn inner_sums_are_a_part_of_the_outer_one() {
    rewriting(
        "cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        cell3 = lstm(x3, h3)
        p1 = product(left1, cell1)
        p2 = product(left2, cell2)
        p3 = product(left3, cell3)
        inner1 = AddN(p1, other1)
        inner2 = AddN(p2, other2, inner1)
        sum = AddN(inner2, p3, other3)",
    )
    .becomes(
        "sum = BlockcellMatMulAddN(left2, left1, left3, cell2:1, cell1:1, cell3:1, other2, other1, other3) num_a=3 num_b=3 num_addends=3",
    )
    .reports("sum becomes BlockcellMatMulAddN (parts: 3)");
}

#[test]
fn an_inner_sum_with_another_consumer_is_a_sum_of_its_own() {
    for (other, out) in [("out = Apply(inner)", "inner"), ("out = NoOp(^inner)", "^inner")] {
        let op = other.split(['=', '(']).nth(1).unwrap().trim();
        rewriting(&format!(
            "cell1 = lstm(x1, h1)
            cell2 = lstm(x2, h2)
            cell3 = lstm(x3, h3)
            p1 = product(left1, cell1)
            p2 = product(left2, cell2)
            p3 = product(left3, cell3)
            inner = AddN(p1, p2)
            sum = AddN(inner, p3)
            {other}"
        ))
        .becomes(&format!(
            "inner = BlockcellMatMulAddN(left1, left2, cell1:1, cell2:1) num_a=2 num_b=2 num_addends=0
            sum = BlockcellMatMulAddN(left3, cell3:1, inner) num_a=1 num_b=1 num_addends=1
            out = {op}({out})"
        ));
    }
}

#[test]
fn an_inner_sum_that_a_step_asks_for_is_a_sum_of_its_own() {
    rewriting(
        "cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        p1 = product(left1, cell1)
        p2 = product(left2, cell2)
        inner = AddN(p1, other) target
        sum = AddN(inner, p2)",
    )
    .becomes(
        "inner = BlockcellMatMulAddN(left1, cell1:1, other) num_a=1 num_b=1 num_addends=1 target
        sum = BlockcellMatMulAddN(left2, cell2:1, inner) num_a=1 num_b=1 num_addends=1",
    );
}

#[test]
fn a_product_with_another_consumer_stays() {
    for (other, name) in
        [("out = Apply(p1)", "out"), ("out = NoOp(^p1)", "out"), ("out = AddN(p1, other)", "out")]
    {
        rewriting(&format!(
            "cell1 = lstm(x1, h1)
            p1 = product(left1, cell1)
            sum = AddN(p1, other)
            {other}"
        ))
        .stays()
        .reports(&format!("p1 (MatMul) is not rewritten: {name} depends on p1, too"));
    }
}

#[test]
fn a_product_that_the_sum_takes_twice_stays() {
    rewriting(
        "cell1 = lstm(x1, h1)
        p1 = product(left1, cell1)
        sum = AddN(p1, p1)",
    )
    .stays()
    .reports("p1 (MatMul) is not rewritten: sum depends on p1, too");
    rewriting(
        "cell1 = lstm(x1, h1)
        p1 = product(left1, cell1)
        sum = AddN(p1, other, ^p1)",
    )
    .stays()
    .reports("p1 (MatMul) is not rewritten: sum depends on p1, too");
}

#[test]
fn a_product_that_a_step_asks_for_stays() {
    rewriting(
        "cell1 = lstm(x1, h1)
        p1 = product(left1, cell1) target
        sum = AddN(p1, other)",
    )
    .stays()
    .reports("p1 (MatMul) is not rewritten: p1 is a fetch or a target of the step");
}

#[test]
fn products_that_stay_are_other_summands() {
    rewriting(
        "cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        p1 = product(left1, cell1)
        p2 = product(left2, cell2)
        sum = AddN(p1, p2)
        out = Apply(p1)",
    )
    .becomes(
        "p1 = product(left1, cell1)
        sum = BlockcellMatMulAddN(left2, cell2:1, p1) num_a=1 num_b=1 num_addends=1
        out = Apply(p1)",
    )
    .reports(
        "sum becomes BlockcellMatMulAddN (parts: 1)
        p1 (MatMul) is not rewritten: out depends on p1, too",
    );
}

#[test]
fn a_sum_that_a_step_asks_for_is_replaced_under_its_name() {
    rewriting(
        "cell1 = lstm(x1, h1)
        p1 = product(left1, cell1)
        sum = AddN(p1, other) target",
    )
    .becomes(
        "sum = BlockcellMatMulAddN(left1, cell1:1, other) num_a=1 num_b=1 num_addends=1 target",
    );
}

#[test]
fn products_and_sums_over_rows_in_one_sum_stay() {
    rewriting(
        "cell1 = lstm(x1, h1)
        p1 = product(left1, cell1)
        b1 = bias_grad(cell1)
        sum = AddN(p1, b1)",
    )
    .stays()
    .reports(
        "p1 (MatMul) is not rewritten: the sum has both products and sums over rows
        b1 (BiasAddGrad) is not rewritten: the sum has both products and sums over rows",
    );
}

#[test]
fn a_product_that_nobody_adds_up_stays() {
    rewriting(
        "cell1 = lstm(x1, h1)
        p1 = product(left1, cell1)
        p2 = product(left2, cell1)
        out = Apply(p1)",
    )
    .stays()
    .reports(
        "p1 (MatMul) is not rewritten: replacing it alone saves nothing
        p2 (MatMul) is not rewritten: replacing it alone saves nothing",
    );
}

#[test]
fn a_sum_waits_for_what_its_parts_waited_for() {
    rewriting(
        "cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        later = Const(^e) value=1
        left1 = ConcatV2(x1, h1, later, ^a)
        left2 = concat(x2, h2)
        p1 = product(left1, cell1, ^b)
        p2 = product(left2, cell2)
        inner = AddN(p1, p2, ^c)
        sum = AddN(inner, other, ^d, ^x1)",
    )
    .becomes(
        "sum = BlockcellMatMulAddN(x1, h1, x2, h2, cell1:1, cell2:1, other, ^a, ^b, ^c, ^d, ^e) num_a=4 num_b=2 num_addends=1",
    );
}

#[test]
fn the_consumers_of_a_sum_take_its_replacement() {
    rewriting(
        "cell1 = lstm(x1, h1)
        p1 = product(left1, cell1)
        sum = AddN(p1, other)
        out1 = Apply(sum, sum)
        out2 = NoOp(^sum)",
    )
    .becomes(
        "sum = BlockcellMatMulAddN(left1, cell1:1, other) num_a=1 num_b=1 num_addends=1
        out1 = Apply(sum, sum)
        out2 = NoOp(^sum)",
    );
}

/// The gradients of a weight that is tied to another cell's input.
#[test]
fn a_replaced_sum_can_be_a_part_of_another_one() {
    rewriting(
        "cell1 = lstm(x1, h1)
        p1 = product(left1, cell1)
        first = AddN(p1, other)
        left2 = concat(first, h2)
        cell2 = lstm(first, h2, w2, b2)
        p2 = product(left2, cell2)
        second = AddN(p2, another)",
    )
    .becomes(
        "first = BlockcellMatMulAddN(left1, cell1:1, other) num_a=1 num_b=1 num_addends=1
        second = BlockcellMatMulAddN(first, h2, cell2:1, another) num_a=2 num_b=1 num_addends=1",
    );
}
