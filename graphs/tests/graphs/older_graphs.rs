//! Graphs that were saved with operations of this library in them.

use crate::common::rewriting::rewriting;

#[test]
fn a_sum_of_products_is_a_part_of_the_next_one() {
    rewriting(
        "cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        one = BlockcellMatMulAddN(left1, cell1:1, a) num_b=1 num_a=1 num_addends=1
        p2 = product(left2, cell2)
        sum = AddN(one, p2, b)",
    )
    .becomes("sum = BlockcellMatMulAddN(left1, left2, cell1:1, cell2:1, a, b) num_a=2 num_b=2 num_addends=2");
}

#[test]
fn parts_are_read_where_they_begin_with_x() {
    let text = |first: &str| {
        format!(
            "cell1 = lstm(x1, h1)
            cell2 = lstm(x2, h2)
            left2 = concat(x2, h2)
            one = BlockcellMatMulAddN({first}, h1, cell1:1) num_b=1 num_a=2 num_addends=0
            p2 = product(left2, cell2)
            sum = AddN(one, p2)"
        )
    };
    rewriting(&text("x1")).becomes(
        "sum = BlockcellMatMulAddN(x1, h1, x2, h2, cell1:1, cell2:1) num_a=4 num_b=2 num_addends=0",
    );
    rewriting(&text("other")).becomes(
        "one = BlockcellMatMulAddN(other, h1, cell1:1) num_b=1 num_a=2 num_addends=0
        sum = BlockcellMatMulAddN(x2, h2, cell2:1, one) num_a=2 num_b=1 num_addends=1",
    );
}

/// As of [sums that are rewritten now](super::trimming).
#[test]
fn only_one_addition_of_others_is_taken_in() {
    rewriting(
        "cell1 = lstm(x1, h1)
        one = BlockcellMatMulAddN(left1, cell1:1) num_b=1 num_a=1 num_addends=0
        sum = AddN(one, a)",
    )
    .becomes("sum = BlockcellMatMulAddN(left1, cell1:1, a) num_a=1 num_b=1 num_addends=1");
    rewriting(
        "cell1 = lstm(x1, h1)
        one = BlockcellMatMulAddN(left1, cell1:1, a) num_b=1 num_a=1 num_addends=1
        sum = AddN(one, b)",
    )
    .stays()
    .reports("one (BlockcellMatMulAddN) is not rewritten: replacing it alone saves nothing");
}

/// There is no tensor that has both parts.
#[test]
fn parts_and_whole_factors_do_not_meet() {
    rewriting(
        "cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        one = BlockcellMatMulAddN(x1, h1, cell1:1) num_b=1 num_a=2 num_addends=0
        p2 = product(left2, cell2)
        sum = AddN(one, p2)",
    )
    .stays()
    .reports(
        "one (BlockcellMatMulAddN) is not rewritten: the left factors are concatenated in different ways
        p2 (MatMul) is not rewritten: the left factors are concatenated in different ways",
    );
}

#[test]
fn a_sum_of_other_factors_is_any_tensor() {
    rewriting(
        "cell1 = lstm(x1, h1)
        one = BlockcellMatMulAddN(left1, other) num_b=1 num_a=1 num_addends=0
        two = BlockcellBiasAddGradAddN(other) num_out_backprop=1 num_addends=0
        sum1 = AddN(one, a)
        sum2 = AddN(two, a)",
    )
    .stays()
    .reports("");
}

#[test]
fn sums_over_rows_are_a_part_of_the_next_one() {
    rewriting(
        "cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        one = BlockcellBiasAddGradAddN(cell1:1, a) num_out_backprop=1 num_addends=1
        b2 = bias_grad(cell2)
        sum = AddN(one, b2)",
    )
    .becomes(
        "sum = BlockcellBiasAddGradAddN(cell1:1, cell2:1, a) num_out_backprop=2 num_addends=1",
    );
}

#[test]
fn addends_and_parts_that_may_change_are_read_where_they_were() {
    let text = |part: &str, addend: &str| {
        format!(
            "v = VariableV2()
            written = Assign(v, fed)
            cell1 = lstm(x1, {part})
            one = BlockcellMatMulAddN(x1, {part}, cell1:1, {addend}) num_b=1 num_a=2 num_addends=1
            two = BlockcellMatMulAddN(x1, h1, cell1:1) num_b=1 num_a=2 num_addends=0
            sum = AddN(one, two)"
        )
    };
    rewriting(&text("h1", "a")).reports("sum becomes BlockcellMatMulAddN (parts: 2)");
    for text in [text("v", "a"), text("h1", "v")] {
        rewriting(&text).reports(
            "sum becomes BlockcellMatMulAddN (parts: 1)
            one (BlockcellMatMulAddN) is not rewritten: v may be the memory of a variable that is written before the new node would read it",
        );
    }
}
