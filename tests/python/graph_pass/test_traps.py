"""The graph pass on small graphs where it may do something, has to do less, or nothing.

Every graph of `rewrite_traps` runs in a process with the pass and in one without. The results have
to be the same, whatever the pass did; and what it did is counted.
"""

import numpy as np
import pytest

from blockcell.reference.inputs import scaled_error
from helpers import isolated

# Nodes BlockcellMatMulAddN, BlockcellMatMulSlice and BlockcellBiasAddGradAddN, and in some graphs
# those of other ops that stay.
WANT = {
    "sum_of_products": (1, 0, 0, {"MatMul": 0, "ConcatV2": 0}),
    "other_summands": (1, 0, 0, {"AddN": 0}),
    "sum_of_sums": (2, 0, 0, {"AddN": 0}),
    "fetched_product": (2, 0, 0, {"AddN": 0}),
    "product_with_a_second_consumer": (2, 0, 0, {"AddN": 0}),
    "product_twice_in_a_sum": (2, 0, 0, {"AddN": 0}),
    "fed_product": (1, 0, 0, {"AddN": 0}),
    "fed_sum": (0, 0, 0, {}),
    "fed_concat": (1, 0, 0, {}),
    "fed_axis": (0, 0, 0, {"MatMul": 1}),
    "waits_for_a_product": (2, 0, 0, {}),
    "product_waits": (1, 0, 0, {}),
    "only_the_axis_waits": (1, 0, 0, {"ConcatV2": 0}),
    "sum_waits": (1, 0, 0, {}),
    "product_waits_for_a_product": (2, 0, 0, {}),
    "another_device": (1, 0, 0, {"MatMul": 1}),
    "another_type": (2, 0, 0, {"AddN": 1}),
    "other_factors": (0, 0, 0, {}),
    "product_outside_of_the_loop": (1, 0, 0, {}),
    "added_to_a_loop_variable": (1, 0, 0, {"MatMul": 0, "ConcatV2": 0}),
    "broadcast_to_a_loop_variable": (1, 0, 0, {"MatMul": 0}),
    "loop_variable_of_unknown_shape": (1, 0, 0, {"MatMul": 0}),
    "tree_of_add": (1, 0, 0, {"MatMul": 0}),
    "broadcast_by_add": (2, 0, 0, {"MatMul": 1}),
    "broadcast_of_unlike_cells": (2, 0, 0, {}),
    "concat_of_rows": (1, 0, 0, {"MatMul": 0}),
    "concat_of_other_widths": (1, 0, 0, {"ConcatV2": 2}),
    "concat_of_three": (1, 0, 0, {"ConcatV2": 0}),
    "concat_for_others_too": (1, 0, 0, {"ConcatV2": 1}),
    "cells_of_two_kinds": (1, 0, 0, {"ConcatV2": 2}),
    "empty_batch": (1, 1, 0, {}),
    "biases": (0, 0, 1, {"BiasAddGrad": 2}),
    "bias_added_by_add": (0, 0, 0, {"BiasAddGrad": 1}),
    "slices": (0, 1, 0, {"Slice": 0}),
    "slices_of_odd_sizes": (0, 1, 0, {"Slice": 4}),
    "slices_of_different_rows": (0, 1, 0, {"Slice": 2}),
    "slice_of_later_rows": (0, 1, 0, {"Slice": 1}),
    "slice_of_unknown_size": (0, 1, 0, {"Slice": 1}),
    "slice_and_other_consumer": (0, 1, 0, {"Slice": 1}),
    "fed_slice": (0, 1, 0, {"Slice": 0}),
    "slice_waits_for_the_other": (0, 1, 0, {"Slice": 2}),
    "slice_waits": (0, 1, 0, {"Slice": 2}),
    "own_ops": (1, 0, 1, {"AddN": 0}),
    "target": (1, 0, 0, {}),
    "wrong_shape": (0, 0, 0, {}),
}
OPS = ("BlockcellMatMulAddN", "BlockcellMatMulSlice", "BlockcellBiasAddGradAddN")
NAMES = ["trap_" + name for name in WANT]


@pytest.fixture(scope="module")
def runs():
    return {
        rewrite: isolated.run("rewrite_traps", NAMES, {"BLOCKCELL_REWRITE": rewrite})
        for rewrite in ("0", "1")
    }


@pytest.mark.parametrize("optimized", [True, False])
@pytest.mark.parametrize("name", WANT)
def test_trap(runs, name, optimized):
    want, got = (
        isolated.value(runs[rewrite]["trap_" + name])[0 if optimized else 1]
        for rewrite in ("0", "1")
    )
    for k, value in enumerate(want["values"]):
        assert name == "empty_batch" or np.size(value) == 0 or np.abs(value).max() > 1e-3
        error = scaled_error(got["values"][k], value)
        assert error <= 2e-6, f"output {k}: scaled error {error:.3g}"

    *nodes, others = WANT[name]
    assert tuple(got["rewritten"][op] for op in OPS) == tuple(nodes)
    assert not any(want["rewritten"].values())
    for op, count in others.items():
        assert got["ops"].get(op, 0) == count, f"{op}: {got['ops']}"
