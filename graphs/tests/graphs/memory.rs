//! Variables that hand out their own memory: what is not read later than before.

use crate::common::rewriting::rewriting;

/// A sum of two products with parts, of which `{}` is in the place of the second state.
fn sum_with_state(state: &str, more: &str) -> String {
    format!(
        "{more}
        cell1 = lstm(x1, h1)
        cell2 = lstm(x2, {state})
        left1 = concat(x1, h1)
        left2 = concat(x2, {state})
        p1 = product(left1, cell1)
        p2 = product(left2, cell2)
        sum = AddN(p1, p2)"
    )
}

fn reads_parts(state: &str, more: &str) {
    let rewriting = rewriting(&sum_with_state(state, more));
    assert!(!rewriting.has("left1") && !rewriting.has("left2"));
    rewriting.reports("sum becomes BlockcellMatMulAddN (parts: 2)");
}

/// The left factors are snapshots. They are read as they are.
fn reads_snapshots(state: &str, more: &str) {
    let rewriting = rewriting(&sum_with_state(state, more));
    assert!(rewriting.has("left1") && rewriting.has("left2"));
    rewriting.reports("sum becomes BlockcellMatMulAddN (parts: 2)");
}

#[test]
fn a_variable_that_is_written_is_no_part() {
    for write in ["Assign(v, fed)", "AssignAdd(v, fed)", "RefIdentity(v)", "RefSwitch(v, p)"] {
        reads_snapshots("v", &format!("v = VariableV2()\nwritten = {write}"));
    }
    reads_snapshots("v", "v = Variable()\nwritten = Assign(v, fed)");
}

#[test]
fn a_variable_that_is_only_read_is_a_part() {
    reads_parts("v", "v = VariableV2()\nread = Apply(v)");
}

#[test]
fn what_an_assignment_hands_out_is_no_part() {
    reads_snapshots("written", "v = VariableV2()\nwritten = Assign(v, fed)");
}

#[test]
fn two_nodes_may_share_a_variable_s_memory() {
    let shared = "v = VariableV2() shared_name=\"s\"
        other = VariableV2() shared_name=\"s\"
        written = Assign(other, fed)";
    reads_snapshots("v", shared);
    reads_parts(
        "v",
        &shared.replace("other = VariableV2() shared_name=\"s\"", "other = VariableV2()"),
    );
}

/// Without a `shared_name`, a variable's name is that of its memory.
#[test]
fn a_variable_s_name_may_be_that_of_another_one_s_memory() {
    reads_snapshots(
        "v",
        "v = VariableV2() shared_name=\"\"
        other = VariableV2() shared_name=\"v\"
        written = Assign(other, fed)",
    );
}

#[test]
fn others_pass_the_memory_on() {
    for passing in ["Identity(v)", "Reshape(v, shape)", "Switch(v, p)", "Merge(v, fed)", "AddN(v)"]
    {
        reads_snapshots(
            "passed",
            &format!(
                "v = VariableV2()
                written = Assign(v, fed)
                passed = {passing}"
            ),
        );
    }
    reads_snapshots(
        "last",
        "v = VariableV2()
        written = Assign(v, fed)
        first = Identity(v)
        last = Reshape(first, shape)",
    );
}

#[test]
fn what_is_computed_from_a_variable_has_memory_of_its_own() {
    reads_parts(
        "computed",
        "v = VariableV2()
        written = Assign(v, fed)
        passed = Identity(v)
        computed = Tanh(passed)",
    );
}

#[test]
fn a_resource_is_no_reference() {
    reads_parts(
        "read",
        "v = VarHandleOp()
        read = ReadVariableOp(v)
        written = AssignVariableOp(v, fed, ^read)",
    );
}

#[test]
fn a_single_product_does_not_read_a_variable_in_place_of_its_snapshot() {
    let text = |part: &str| {
        format!(
            "v = VariableV2()
            written = Assign(v, fed)
            cell1 = lstm(x1, h1)
            left = concat(x1, {part})
            p = product(left, cell1)"
        )
    };
    rewriting(&text("h1")).reports("p becomes BlockcellMatMulAddN (parts: 1)");
    rewriting(&text("v")).stays().reports(
        "p (MatMul) is not rewritten: v may be the memory of a variable that is written before the new node would read it",
    );
}

/// The product has read it when something else is already missing for the sum.
#[test]
fn a_product_of_a_variable_stays() {
    rewriting(
        "v = VariableV2()
        written = Assign(v, fed)
        cell1 = lstm(x1, h1)
        p = product(v, cell1)
        sum = AddN(p, other)",
    )
    .stays()
    .reports(
        "p (MatMul) is not rewritten: v may be the memory of a variable that is written before the new node would read it",
    );
}

#[test]
fn an_inner_sum_of_a_variable_stays() {
    rewriting(
        "v = VariableV2()
        written = Assign(v, fed)
        cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        p1 = product(left1, cell1)
        p2 = product(left2, cell2)
        inner = AddN(p1, v)
        sum = AddN(inner, p2)",
    )
    .becomes(
        "v = VariableV2()
        written = Assign(v, fed)
        inner = BlockcellMatMulAddN(left1, cell1:1, v) num_a=1 num_b=1 num_addends=1
        sum = BlockcellMatMulAddN(left2, cell2:1, inner) num_a=1 num_b=1 num_addends=1",
    );
}

/// It is read where it was read before.
#[test]
fn the_root_of_a_sum_may_add_a_variable() {
    rewriting(
        "v = VariableV2()
        written = Assign(v, fed)
        cell1 = lstm(x1, h1)
        p1 = product(left1, cell1)
        sum = AddN(p1, v)",
    )
    .becomes(
        "v = VariableV2()
        written = Assign(v, fed)
        sum = BlockcellMatMulAddN(left1, cell1:1, v) num_a=1 num_b=1 num_addends=1",
    );
}

#[test]
fn operations_that_write_into_their_inputs_stop_all_rewrites() {
    for op in ["InplaceUpdate", "AliasInplaceAdd", "_ParallelConcatUpdate"] {
        rewriting(&format!(
            "cell1 = lstm(x1, h1)
            left = concat(x1, h1)
            p = product(left, cell1)
            sum = AddN(p, other)
            single = product(left, cell1)
            b1 = bias_grad(cell1)
            q = dx_dh(cell1)
            dx = columns(q, 0, 2)
            elsewhere = {op}(fed, rows, values)"
        ))
        .stays()
        .reports(
            "p (MatMul) is not rewritten: the graph has an op that modifies its input in place
            single (MatMul) is not rewritten: the graph has an op that modifies its input in place
            b1 (BiasAddGrad) is not rewritten: the graph has an op that modifies its input in place
            q (MatMul) is not rewritten: the graph has an op that modifies its input in place",
        );
    }
}
