//! Single products whose left factor is put together for them alone.

use crate::common::rewriting::rewriting;

#[test]
fn a_product_reads_the_parts_of_its_left_factor() {
    rewriting(
        "cell1 = lstm(x1, h1)
        left = concat(x1, h1, ^a)
        p1 = product(left, cell1, ^b)
        out = Apply(p1)",
    )
    .becomes(
        "p1 = BlockcellMatMulAddN(x1, h1, cell1:1, ^a, ^b) num_a=2 num_b=1 num_addends=0
        out = Apply(p1)",
    )
    .reports("p1 becomes BlockcellMatMulAddN (parts: 1)");
}

#[test]
fn parts_may_be_any_tensors() {
    rewriting(
        "cell1 = lstm(x1, h1)
        left = concat(u, v, v)
        p1 = product(left, cell1)",
    )
    .becomes("p1 = BlockcellMatMulAddN(u, v, v, cell1:1) num_a=3 num_b=1 num_addends=0");
}

#[test]
fn the_axis_may_be_the_last_one_but_no_other() {
    let text = |axis: &str| {
        format!(
            "cell1 = lstm(x1, h1)
            dimension = {axis}
            left = ConcatV2(x1, h1, dimension)
            p1 = product(left, cell1)"
        )
    };
    for axis in ["Const() value=1", "Const() value=-1", "Const() value=[1]"] {
        rewriting(&text(axis))
            .becomes("p1 = BlockcellMatMulAddN(x1, h1, cell1:1) num_a=2 num_b=1 num_addends=0");
    }
    for axis in ["Const() value=0", "Const() value=[1,1]", "Placeholder()"] {
        rewriting(&text(axis))
            .stays()
            .reports("p1 (MatMul) is not rewritten: replacing it alone saves nothing");
    }
}

#[test]
fn a_left_factor_with_another_consumer_stays_whole() {
    for other in ["out = Apply(left)", "out = NoOp(^left)"] {
        rewriting(&format!(
            "cell1 = lstm(x1, h1)
            left = concat(x1, h1)
            p1 = product(left, cell1)
            {other}"
        ))
        .stays()
        .reports("p1 (MatMul) is not rewritten: out depends on left, too");
    }
}

#[test]
fn a_left_factor_that_a_step_asks_for_stays_whole() {
    rewriting(
        "cell1 = lstm(x1, h1)
        left = concat(x1, h1) target
        p1 = product(left, cell1)",
    )
    .stays()
    .reports("p1 (MatMul) is not rewritten: left is a fetch or a target of the step");
}

#[test]
fn a_product_that_a_step_asks_for_is_replaced_under_its_name() {
    rewriting(
        "cell1 = lstm(x1, h1)
        left = concat(x1, h1)
        p1 = product(left, cell1) target
        out = NoOp(^p1)",
    )
    .becomes(
        "p1 = BlockcellMatMulAddN(x1, h1, cell1:1) num_a=2 num_b=1 num_addends=0 target
        out = NoOp(^p1)",
    );
}

/// What comes of one product is a part of the next one's left factor.
#[test]
fn a_replaced_product_can_be_a_part_of_another_one() {
    rewriting(
        "cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        left1 = concat(x1, h1)
        p1 = product(left1, cell1)
        left2 = concat(p1, h2)
        p2 = product(left2, cell2)",
    )
    .becomes(
        "p1 = BlockcellMatMulAddN(x1, h1, cell1:1) num_a=2 num_b=1 num_addends=0
        p2 = BlockcellMatMulAddN(p1, h2, cell2:1) num_a=2 num_b=1 num_addends=0",
    );
}
