"""The graph pass on small graphs where it may do something, has to do less, or nothing.

Every graph of the package `traps` runs in a process with the pass and in one without. The results
have to be the same, whatever the pass did. What it did is counted where it is certain that it must
do it, or must not.
"""

import re

import numpy as np
import pytest

from blockcell_tools.reference.inputs import scaled_error
from helpers import isolated
from rewrite_traps import TRAPS

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
    "slices_of_odd_sizes": (0, 1, 0, {"Slice": 0}),
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
    "peepholes_vector": ({"BlockcellLSTMCell": 2, "Split": 0},),
    "a_state_of_one_row": ({"BlockcellLSTMCell": 2, "Split": 0},),
    "a_state_of_one_row_and_peepholes": ({"BlockcellLSTMCell": 1, "Split": 0},),
    "many_states_and_peepholes": ({"BlockcellLSTMCell": 1, "Split": 0},),
    "gradients_of_a_state_and_peepholes_row": ({"BlockcellLSTMCell": 2, "Split": 0},),
    "one_round": ({"BlockcellLSTMLayer": 1, "Split": 0},),
    "one_round_of_a_narrow_output": ({"BlockcellLSTMLayer": 1, "Split": 0},),
    "one_round_of_many_states": ({"BlockcellLSTMLayer": 1, "Split": 0},),
    "forget_gate_plus_one": ({"BlockcellLSTMCell": 2, "Split": 0},),
    "state_bound_even": ({"BlockcellLSTMCell": 2, "Split": 0},),
}
OPS = ("BlockcellMatMulAddN", "BlockcellMatMulSlice", "BlockcellBiasAddGradAddN")

# The least number of nodes that stay, by the graph. What is not said here may be rewritten in any
# way that is right.
STAY = {
    # One op for all slices would compute columns more than once,
    "many_slices_that_overlap": {"Slice": 50},
    "two_slices_that_overlap": {"Slice": 2},
    "one_slice_inside_another": {"Slice": 2},
    "equal_slices": {"Slice": 2},
    "open_slice_that_overlaps": {"Slice": 2},
    "two_open_slices": {"Slice": 2},
    # or make one slice wait for what the other waits for,
    "slices_wait_for_other_things": {"Slice": 2},
    "only_a_constant_waits": {"Slice": 2},
    "one_slice": {"Slice": 2},
    "one_slice_by_its_constant": {"Slice": 2},
    "slices_of_both_sides": {"Slice": 2},
    # or make those who wait for the product wait for that, too.
    "slices_wait_for_the_product": {"Slice": 2},
    "something_waits_for_the_product": {"Slice": 2},
    "both_slices_while_something_waits_for_the_product": {"Slice": 2},
    "weights_change_between_slices": {"Slice": 2},
    "weights_change_before_both_slices": {"Slice": 2},
    # The product itself is waited for.
    "product_then_the_sum_waits": {"MatMul": 1},
    # Its op takes a vector for each peephole.
    **{
        "peepholes_" + kind: {"Split": 2}
        for kind in ("row", "number", "one", "column", "matrix", "that_are_fed")
    },
    "forget_gate_scaled": {"Split": 2},
    "forget_gate_less_one": {"Split": 2},
    # The concat is a copy of what changes.
    "snapshot_for_one_product": {"ConcatV2": 1, "MatMul": 1},
}

# Ops of which none stays: training needs these.
GO = {
    "slices_wait_for_what_the_product_waits_for": ["MatMul", "Slice"],
    "empty_slice_inside_another": ["MatMul", "Slice"],
    "weights_change_directly_assign": ["AddN", "MatMul", "Slice"],
    "weights_change_through_identity_assign_add": ["AddN", "MatMul", "Slice"],
    "product_and_slices": ["MatMul", "Slice"],
}


@pytest.fixture(scope="module")
def runs():
    return {
        rewrite: isolated.run("rewrite_traps", sorted(TRAPS), {"BLOCKCELL_REWRITE": rewrite})
        for rewrite in ("0", "1")
    }


# TensorFlow rounds after each of thousands of additions, the library once.
LIMITS = {"chain_of_products": 1e-4, "tree_of_products": 1e-4}


def plain(name):
    """The name of a graph, without the side of a branch and `trap_`."""
    return re.sub("^trap_|_(live|dead)$", "", name)


def test_tables_name_graphs():
    assert set(WANT) | set(STAY) | set(GO) <= set(map(plain, TRAPS))


@pytest.mark.parametrize("name", TRAPS)
def test_trap(runs, name):
    """With TensorFlow's optimizers and without them."""
    stock, ours = (isolated.value(runs[rewrite][name]) for rewrite in ("0", "1"))
    for want, got in zip(stock, ours):
        assert not any(want["rewritten"].values())
        for k, value in enumerate(want["values"]):
            assert plain(name) == "empty_batch" or np.size(value) == 0 or np.abs(value).max() > 1e-3
            error = scaled_error(got["values"][k], value)
            limit = LIMITS.get(plain(name), 2e-6)
            assert error <= limit, f"output {k}: scaled error {error:.3g}"

        *nodes, others = WANT.get(plain(name), ({},))
        if nodes:
            assert tuple(got["rewritten"][op] for op in OPS) == tuple(nodes)
        for op, count in others.items():
            assert got["ops"].get(op, 0) == count, f"{op}: {got['ops']}"
        for op, count in STAY.get(plain(name), {}).items():
            assert got["ops"].get(op, 0) >= count, f"{op}: {got['ops']}"
        for op in GO.get(plain(name), []):
            assert got["ops"].get(op, 0) == 0, f"{op}: {got['ops']}"
