//! Loops of `tf.while_loop` as TensorFlow 1 has them, and the gradients in them.

use crate::common::rewriting::rewriting;

/// A loop that adds a gradient of weights in each round to what enters with `initial`.
///
/// `added` is what a round adds up, of `accumulated` and the product `p`; `next` is what goes into
/// the next round.
fn accumulating(initial: &str, added: &str, next: &str) -> String {
    format!(
        "w_outside = VariableV2() shape=[5,12]
        {initial}
        w = Enter(w_outside) is_constant=true
        start = Enter(initial)
        round = Merge(start, further)
        more = LoopCond(condition)
        side = Switch(round, more)
        accumulated = Identity(side:1)
        x1 = StackPopV2(saved_x, ^accumulated)
        h1 = StackPopV2(saved_h, ^accumulated)
        cell1 = lstm(x1, h1, w, bias)
        left = concat(x1, h1)
        p = product(left, cell1)
        {added}
        further = NextIteration({next})
        result = Exit(side)
        out = Apply(result)"
    )
}

const ZEROS: &str = "size = Const() value=[5,12]
    initial = Fill(size, zero)";

#[test]
fn a_round_s_product_is_added_up_at_once() {
    let add = |op: &str| format!("sum = {op}(accumulated, p)");
    for op in ["Add", "AddV2", "AddN"] {
        rewriting(&accumulating(ZEROS, &add(op), "sum"))
            .reports("sum becomes BlockcellMatMulAddN (parts: 1)");
    }
    rewriting(&accumulating(ZEROS, &add("Add"), "sum")).becomes(
        "w_outside = VariableV2() shape=[5,12]
        initial = Fill(size, zero)
        w = Enter(w_outside) is_constant=true
        start = Enter(initial)
        round = Merge(start, further)
        more = LoopCond(condition)
        side = Switch(round, more)
        accumulated = Identity(side:1)
        x1 = StackPopV2(saved_x, ^accumulated)
        h1 = StackPopV2(saved_h, ^accumulated)
        sum = BlockcellMatMulAddN(x1, h1, cell1:1, accumulated) num_a=2 num_b=1 num_addends=1
        further = NextIteration(sum)
        result = Exit(side)
        out = Apply(result)",
    );
}

#[test]
fn zeros_of_unknown_size_may_grow_in_the_first_round() {
    let add = "sum = Add(accumulated, p)";
    for initial in [
        "initial = Fill(fed, zero)",
        "initial = Placeholder()",
        "size = Const() value=[1,12]\ninitial = Fill(size, zero)",
        "size = Const() value=[]\ninitial = Fill(size, zero)",
    ] {
        rewriting(&accumulating(initial, add, "sum"))
            .reports("p becomes BlockcellMatMulAddN (parts: 1)");
    }
}

/// What the next round begins with is another tensor than this round's sum.
#[test]
fn what_is_not_known_in_every_round_is_not_known() {
    let add = "sum = Add(accumulated, p)
        last = Apply(sum)";
    rewriting(&accumulating(ZEROS, add, "last"))
        .reports("p becomes BlockcellMatMulAddN (parts: 1)");
}

#[test]
fn what_is_known_of_two_loop_variables_goes_through_both() {
    let add = "sum = Add(accumulated, p)
        start2 = Enter(initial)
        round2 = Merge(start2, further2)
        side2 = Switch(round2, more)
        further2 = NextIteration(sum)";
    rewriting(&accumulating(ZEROS, add, "side2:1"))
        .reports("sum becomes BlockcellMatMulAddN (parts: 1)");
    let other = add.replace("Enter(initial)", "Enter(fed)");
    rewriting(&accumulating(ZEROS, &other, "side2:1"))
        .reports("p becomes BlockcellMatMulAddN (parts: 1)");
}

#[test]
fn what_leaves_a_loop_has_the_shape_of_its_rounds() {
    let outside = |initial: &str| {
        accumulating(initial, "sum = Add(accumulated, p)", "sum")
            + "
            cell2 = lstm(x2, h2, w_outside, bias)
            left2 = concat(x2, h2)
            p2 = product(left2, cell2)
            total = Add(p2, result)"
    };
    rewriting(&outside(ZEROS)).reports(
        "sum becomes BlockcellMatMulAddN (parts: 1)
        total becomes BlockcellMatMulAddN (parts: 1)",
    );
    rewriting(&outside("initial = Placeholder()")).reports(
        "p becomes BlockcellMatMulAddN (parts: 1)
        p2 becomes BlockcellMatMulAddN (parts: 1)",
    );
}

/// The product of one round and the sum of the next one are in different rounds.
#[test]
fn a_sum_of_the_next_round_s_stays() {
    rewriting(&accumulating(
        ZEROS,
        "later = NextIteration(p)
        carried = Merge(start, later)
        sum = AddN(accumulated, carried)",
        "sum",
    ))
    .reports("p becomes BlockcellMatMulAddN (parts: 1)");
}

#[test]
fn a_sum_after_the_loop_stays() {
    rewriting(
        "cell1 = lstm(x1, h1)
        p = product(left, cell1)
        end = Exit(p)
        sum = AddN(end, other)",
    )
    .stays()
    .reports("p (MatMul) is not rewritten: replacing it alone saves nothing");
}

/// The concatenation's axis is a constant from outside of the loop.
#[test]
fn constants_may_come_into_a_loop() {
    let text = |is_constant: &str| {
        format!(
            "one = Const() value=1
            in_loop = Enter(one){is_constant}
            cell1 = lstm(x1, h1)
            left = ConcatV2(x1, h1, in_loop)
            p = product(left, cell1)"
        )
    };
    rewriting(&text(" is_constant=true")).becomes(
        "in_loop = Enter(one) is_constant=true
            p = BlockcellMatMulAddN(x1, h1, cell1:1, ^in_loop) num_a=2 num_b=1 num_addends=0",
    );
    rewriting(&text("")).stays();
    rewriting(&text(" is_constant=false")).stays();
}

#[test]
fn slices_may_wait_for_the_round_and_for_constants_that_come_into_it() {
    let text = |wait: &str, is_constant: &str, source: &str| {
        format!(
            "counter = Merge(zero, counted)
            condition = Less(counter, limit)
            more = LoopCond(condition)
            round = Merge(start, further)
            side = Switch(round, more)
            count = Switch(counter, more)
            counted = NextIteration(pivot)
            pivot = Identity(count:1)
            end = Identity(count)
            begin = Const(^{wait}) value=[0,0]
            two = {source}
            size = Enter(two){is_constant}
            x1 = Apply(side:1)
            cell1 = lstm(x1, h1)
            p = dx_dh(cell1)
            dx = Slice(p, begin, size)
            dh = columns(p, 2, 1)
            further = NextIteration(dx)"
        )
    };
    let two = "Const() value=[-1,2]";
    let becomes = |text: &str, number: usize, why: &str| {
        rewriting(text).reports(&format!("p becomes BlockcellMatMulSlice (parts: {number}){why}"));
    };
    becomes(&text("pivot", " is_constant=true", two), 2, "");
    let waits = "; the rest is not rewritten: dx has a dependency that the product does not have";
    becomes(&text("end", " is_constant=true", two), 1, waits);
    becomes(&text("pivot", " is_constant=true", "Const(^other) value=[-1,2]"), 1, waits);
    let unknown = "; the rest is not rewritten: dx is not a slice of its columns";
    becomes(&text("pivot", "", two), 1, unknown);
    becomes(&text("pivot", " is_constant=true", "Placeholder()"), 1, unknown);
}

#[test]
fn a_product_in_the_loop_knows_nothing_of_the_round_before() {
    let text = |awaited: &str| {
        format!(
            "start = Enter(fed)
            round = Merge(start, further)
            x1 = Apply(round)
            cell1 = lstm(x1, h1)
            p = dx_dh(cell1)
            dx = columns(p, 0, 2, ^{awaited})
            dh = columns(p, 2, 1)
            further = NextIteration(dx)"
        )
    };
    rewriting(&text("round")).reports("p becomes BlockcellMatMulSlice (parts: 2)");
    rewriting(&text("start")).reports(
        "p becomes BlockcellMatMulSlice (parts: 1); the rest is not rewritten: dx has a dependency that the product does not have",
    );
}
