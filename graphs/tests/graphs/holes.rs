//! Graphs that were once rewritten to something else than they mean.

use crate::common::rewriting::rewriting;

/// The product reads a snapshot of the variable, and the assignment waits for the snapshot only.
#[test]
fn a_variable_is_not_read_after_its_assignment() {
    rewriting(
        "s = VariableV2()
        concat = ConcatV2(x, s, axis)
        assigned = AssignAdd(s, hundred, ^concat)
        cell = lstm(x, s)
        cell2 = lstm(x2, h2, w, bias, ^assigned)
        p1 = product(concat, cell)
        left2 = concat(x2, h2)
        p2 = product(left2, cell2)
        sum = AddN(p1, p2)
        out = Apply(sum)",
    )
    .becomes(
        "s = VariableV2()
        concat = ConcatV2(x, s, axis)
        assigned = AssignAdd(s, hundred, ^concat)
        left2 = concat(x2, h2)
        sum = BlockcellMatMulAddN(concat, left2, cell:1, cell2:1) num_a=2 num_b=2 num_addends=0
        out = Apply(sum)",
    );
}

/// One slice has a value on one side of a condition only, the other one always.
#[test]
fn a_slice_on_the_dead_side_does_not_take_the_others_with_it() {
    rewriting(
        "cell1 = lstm(x1, h1)
        p = dx_dh(cell1)
        side = Switch(data, predicate)
        no = Identity(side)
        yes = Identity(side:1)
        a = columns(p, 0, 2)
        b = columns(p, 2, 1, ^no)
        c = Identity(yes)
        either = Merge(b, c)
        out = Apply(a, either)",
    )
    .becomes(
        "p = BlockcellMatMulSlice(cell1:1, w) num_parts=1 begins=[0] sizes=[-1] rows=-1
        side = Switch(data, predicate)
        no = Identity(side)
        yes = Identity(side:1)
        a = columns(p, 0, 2)
        b = columns(p, 2, 1, ^no)
        c = Identity(yes)
        either = Merge(b, c)
        out = Apply(a, either)",
    );
}

/// What `b` waits for is fed when `a` has been fetched.
#[test]
fn a_slice_that_is_fed_later_does_not_keep_the_others_waiting() {
    rewriting(
        "cell1 = lstm(x1, h1)
        p = dx_dh(cell1)
        later = _Recv()
        a = columns(p, 0, 2)
        b = columns(p, 2, 1, ^later)
        first = _Send(a)
        second = _Send(b)",
    )
    .reports(
        "p becomes BlockcellMatMulSlice (parts: 1); the rest is not rewritten: b has a dependency that the product does not have",
    );
}

/// Each of them would have computed the product again.
#[test]
fn fifty_overlapping_slices_of_one_product_stay() {
    let mut text = "cell1 = lstm(x1, h1)\np = dx_dh(cell1)\n".to_owned();
    for number in 0..50 {
        text += &format!("s{number} = columns(p, {number}, 50)\n");
    }
    rewriting(&text).reports(
        "p becomes BlockcellMatMulSlice (parts: 1); the rest is not rewritten: its slices overlap",
    );
}
