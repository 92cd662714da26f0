//! Devices, types, and nodes that others have claimed.

use crate::common::rewriting::rewriting;

const OTHERS: [&str; 3] = ["@/cpu:1", "@/gpu:0", "@/job:worker/cpu:0"];

#[test]
fn a_product_on_another_device_than_the_sum_stays() {
    for device in OTHERS {
        rewriting(&format!(
            "cell1 = lstm(x1, h1) {device}
            p = product(left, cell1) {device}
            sum = AddN(p, other)"
        ))
        .stays()
        .reports("p (MatMul) is not rewritten: p is on another device");
    }
}

#[test]
fn a_product_on_another_device_than_its_cell_stays() {
    rewriting(
        "cell1 = lstm(x1, h1) @/cpu:1
        p = product(left, cell1)
        b1 = bias_grad(cell1)
        sum = AddN(p, other)
        of_bias = AddN(b1, another)
        q = dx_dh(cell1)",
    )
    .stays()
    .reports(
        "p (MatMul) is not rewritten: cell1 is on another device
        b1 (BiasAddGrad) is not rewritten: cell1 is on another device
        q (MatMul) is not rewritten: cell1 is on another device",
    );
}

#[test]
fn a_left_factor_from_another_device_is_read_whole() {
    rewriting(
        "cell1 = lstm(x1, h1)
        left = concat(x1, h1) @/cpu:1
        p = product(left, cell1)
        sum = AddN(p, other)",
    )
    .becomes(
        "left = concat(x1, h1) @/cpu:1
        sum = BlockcellMatMulAddN(left, cell1:1, other) num_a=1 num_b=1 num_addends=1",
    );
}

#[test]
fn a_slice_on_another_device_stays() {
    rewriting(
        "cell1 = lstm(x1, h1)
        p = dx_dh(cell1)
        dx = columns(p, 0, 2) @/cpu:1",
    )
    .becomes(
        "p = BlockcellMatMulSlice(cell1:1, w) num_parts=1 begins=[0] sizes=[-1] rows=-1
        dx = columns(p, 0, 2) @/cpu:1",
    )
    .reports("p becomes BlockcellMatMulSlice (parts: 1); the rest is not rewritten: dx is on another device");
}

#[test]
fn another_cpu_of_this_process_will_do() {
    rewriting(
        "cell1 = lstm(x1, h1) @/cpu:1
        p = product(left, cell1) @/cpu:1
        sum = AddN(p, other) @/cpu:1",
    )
    .becomes(
        "sum = BlockcellMatMulAddN(left, cell1:1, other) num_a=1 num_b=1 num_addends=1 @/cpu:1",
    );
}

#[test]
fn other_processes_and_gpus_are_left_alone() {
    for device in ["@/gpu:0", "@/job:worker/cpu:0"] {
        rewriting(&format!(
            "cell1 = lstm(x1, h1) {device}
            left = concat(x1, h1) {device}
            p = product(left, cell1) {device}
            sum = AddN(p, other) {device}
            single = product(left, cell1) {device}
            q = dx_dh(cell1) {device}
            dx = columns(q, 0, 2) {device}"
        ))
        .stays()
        .reports(
            "p (MatMul) is not rewritten: p is on another device
            single (MatMul) is not rewritten: single is on another device
            q (MatMul) is not rewritten: q is on another device",
        );
    }
}

pub(super) const CLAIMS: [&str; 6] = [
    "_XlaCompile=true",
    "_XlaCluster=\"c\"",
    "_xla_compile_id=\"c\"",
    "_XlaMustCompile=true",
    "_tpu_replicate=\"c\"",
    "_kernel=\"eigen\"",
];

#[test]
fn what_others_have_claimed_stays() {
    for claim in CLAIMS {
        rewriting(&format!(
            "cell1 = lstm(x1, h1)
            left = concat(x1, h1)
            p = product(left, cell1) {claim}
            sum = AddN(p, other)
            q = dx_dh(cell1) {claim}"
        ))
        .stays()
        .reports(
            "p (MatMul) is not rewritten: p is compiled by XLA or selects another kernel
            q (MatMul) is not rewritten: q is compiled by XLA or selects another kernel",
        );
    }
}

#[test]
fn a_sum_that_others_have_claimed_stays() {
    for claim in CLAIMS {
        rewriting(&format!(
            "cell1 = lstm(x1, h1)
            p = product(left, cell1)
            sum = AddN(p, other) {claim}"
        ))
        .stays()
        .reports("p (MatMul) is not rewritten: sum is compiled by XLA or selects another kernel");
    }
}

#[test]
fn a_left_factor_that_others_have_claimed_is_not_taken_apart() {
    rewriting(
        "cell1 = lstm(x1, h1)
        left = concat(x1, h1) _XlaCluster=\"c\"
        p = product(left, cell1)",
    )
    .stays()
    .reports("p (MatMul) is not rewritten: left is compiled by XLA or selects another kernel");
}

#[test]
fn a_slice_that_others_have_claimed_stays() {
    rewriting(
        "cell1 = lstm(x1, h1)
        p = dx_dh(cell1)
        dx = columns(p, 0, 2) _kernel=\"eigen\"",
    )
    .reports(
        "p becomes BlockcellMatMulSlice (parts: 1); the rest is not rewritten: dx is compiled by XLA or selects another kernel",
    );
}

#[test]
fn halves_are_rewritten_as_halves() {
    rewriting(
        "cell1 = lstm(x1, h1) T=half
        left = concat(x1, h1) T=half
        p = product(left, cell1) T=half
        sum = AddN(p, other) T=half
        q = dx_dh(cell1) T=half
        dx = columns(q, 0, 2) T=half
        b1 = bias_grad(cell1) T=half
        of_bias = AddN(b1, another) T=half",
    )
    .becomes(
        "sum = BlockcellMatMulAddN(x1, h1, cell1:1, other) T=half num_a=2 num_b=1 num_addends=1
        q = BlockcellMatMulSlice(cell1:1, w) T=half num_parts=1 begins=[0] sizes=[2] rows=-1
        of_bias = BlockcellBiasAddGradAddN(cell1:1, another) T=half num_out_backprop=1 num_addends=1",
    );
}

#[test]
fn other_types_stay() {
    rewriting(
        "cell1 = lstm(x1, h1) T=int32
        p = product(left, cell1) T=int32
        sum = AddN(p, other) T=int32
        q = dx_dh(cell1) T=int32",
    )
    .stays()
    .reports(
        "p (MatMul) is not rewritten: its type is neither float nor half
        q (MatMul) is not rewritten: its type is neither float nor half",
    );
}
