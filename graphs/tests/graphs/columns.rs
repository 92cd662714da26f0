//! Products whose columns are the gradients of a cell's inputs: which slices they compute.

use crate::common::rewriting::{Rewriting, rewriting};

fn sliced(slices: &str) -> Rewriting {
    rewriting(&format!(
        "cell1 = lstm(x1, h1)
        p = dx_dh(cell1)
        {slices}"
    ))
}

/// The product alone becomes a node, and its slices stay.
fn stays_whole(slices: &str, reason: &str) {
    sliced(slices)
        .becomes(&format!(
            "p = BlockcellMatMulSlice(cell1:1, w) num_parts=1 begins=[0] sizes=[-1] rows=-1
            {slices}"
        ))
        .reports(&format!(
            "p becomes BlockcellMatMulSlice (parts: 1); the rest is not rewritten: {reason}"
        ));
}

#[test]
fn a_product_computes_its_slices() {
    sliced(
        "dx = columns(p, 0, 2)
        dh = columns(p, 2, -1)
        out = Apply(dx, dh)
        later = NoOp(^dx)",
    )
    .becomes(
        "p = BlockcellMatMulSlice(cell1:1, w) num_parts=2 begins=[0,2] sizes=[2,-1] rows=-1
        out = Apply(p, p:1)
        later = NoOp(^p)",
    )
    .reports("p becomes BlockcellMatMulSlice (parts: 2)");
}

#[test]
fn slices_come_in_the_order_of_their_columns() {
    sliced(
        "dh = columns(p, 2, 3)
        dx = columns(p, 0, 2)
        out = Apply(dx, dh)",
    )
    .becomes(
        "p = BlockcellMatMulSlice(cell1:1, w) num_parts=2 begins=[0,2] sizes=[2,3] rows=-1
        out = Apply(p, p:1)",
    );
}

#[test]
fn constants_go_with_the_slices() {
    let rewriting = sliced("dx = columns(p, 0, 2)");
    assert!(!rewriting.has("dx_begin") && !rewriting.has("dx_size") && rewriting.has("w"));
}

#[test]
fn one_slice_with_a_gap_is_enough() {
    sliced(
        "dx = columns(p, 1, 2)
        out = Apply(dx)",
    )
    .becomes(
        "p = BlockcellMatMulSlice(cell1:1, w) num_parts=1 begins=[1] sizes=[2] rows=-1
        out = Apply(p)",
    );
}

#[test]
fn slices_may_take_the_same_first_rows() {
    rewriting(
        "cell1 = lstm(x1, h1)
        p = dx_dh(cell1)
        b1 = Const() value=[0,0]
        b2 = Const() value=[0,2]
        size = Const() value=[5,2]
        dx = Slice(p, b1, size)
        dh = Slice(p, b2, size)",
    )
    .becomes("p = BlockcellMatMulSlice(cell1:1, w) num_parts=2 begins=[0,2] sizes=[2,2] rows=5");
}

#[test]
fn slices_of_different_rows_stay() {
    let slices = "b1 = Const() value=[0,0]
        b2 = Const() value=[0,2]
        size1 = Const() value=[5,2]
        size2 = Const() value=[4,2]
        dx = Slice(p, b1, size1)
        dh = Slice(p, b2, size2)";
    stays_whole(slices, "dh is not a slice of its columns");
}

#[test]
fn slices_of_later_rows_stay() {
    let slices = "begin = Const() value=[1,0]
        size = Const() value=[-1,2]
        dx = Slice(p, begin, size)";
    stays_whole(slices, "dx is not a slice of its columns");
}

#[test]
fn slices_of_unknown_columns_stay() {
    let slices = "begin = Const() value=[0,0]
        dx = Slice(p, begin, fed)";
    stays_whole(slices, "dx is not a slice of its columns");
}

#[test]
fn slices_of_impossible_columns_stay() {
    for (begin, size) in [("-1", "2"), ("0", "-2"), ("0", "2147483648"), ("2147483648", "1")] {
        let slices = format!("dx = columns(p, {begin}, {size})");
        stays_whole(&slices, "dx is not a slice of its columns");
    }
}

#[test]
fn other_consumers_keep_the_product_whole() {
    let slices = "dx = columns(p, 0, 2)
        out = Apply(p)";
    stays_whole(slices, "out is not a slice of its columns");
}

#[test]
fn overlapping_slices_stay() {
    let overlapping =
        [("0, 3", "2, 2"), ("0, -1", "2, 2"), ("0, 2", "0, 2"), ("1, 2147483647", "2147483647, 1")];
    for (dx, dh) in overlapping {
        let slices = format!(
            "dx = columns(p, {dx})
            dh = columns(p, {dh})"
        );
        stays_whole(&slices, "its slices overlap");
    }
}

#[test]
fn slices_side_by_side_do_not_overlap() {
    sliced(
        "a = columns(p, 0, 2)
        b = columns(p, 2, 0)
        c = columns(p, 3, 1)
        d = columns(p, 7, -1)",
    )
    .becomes("p = BlockcellMatMulSlice(cell1:1, w) num_parts=4 begins=[0,2,3,7] sizes=[2,0,1,-1] rows=-1");
}

#[test]
fn a_product_without_slices_becomes_a_node() {
    stays_whole("out = NoOp(^p)", "replacing it alone saves nothing");
    stays_whole("", "replacing it alone saves nothing");
}

#[test]
fn products_that_transpose_otherwise_stay() {
    rewriting(
        "cell1 = lstm(x1, h1)
        p1 = MatMul(cell1:1, w)
        p2 = MatMul(cell1:1, w) transpose_a=true transpose_b=true
        p3 = dx_dh(cell1:0)
        dx = columns(p1, 0, 2)",
    )
    .stays()
    .reports("");
}

#[test]
fn a_slice_that_a_step_asks_for_is_an_output() {
    sliced("dx = columns(p, 0, 2) target").becomes(
        "p = BlockcellMatMulSlice(cell1:1, w) num_parts=1 begins=[0] sizes=[2] rows=-1 target",
    );
}

/// Its columns are the weights of another product.
#[test]
fn a_slice_can_be_a_factor_of_the_next_product() {
    rewriting(
        "cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        p1 = dx_dh(cell1)
        dx1 = columns(p1, 0, 2)
        p2 = dx_dh(cell2, dx1)
        dx2 = columns(p2, 0, 2, ^later)",
    )
    .becomes(
        "p1 = BlockcellMatMulSlice(cell1:1, w) num_parts=1 begins=[0] sizes=[2] rows=-1
        p2 = BlockcellMatMulSlice(cell2:1, p1, ^later) num_parts=1 begins=[0] sizes=[2] rows=-1",
    );
}
