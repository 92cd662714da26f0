//! Slices that wait: all outputs of one node come at one time, or none.

use crate::common::rewriting::{Rewriting, rewriting};

/// The slices of `p`, of which `dh` waits for `awaited`.
fn with(before: &str, awaited: &str) -> Rewriting {
    rewriting(&format!(
        "{before}
        dx = columns(p, 0, 2)
        dh = columns(p, 2, 1, ^{awaited})
        out = Apply(dx, dh)"
    ))
}

fn is_implied(before: &str, awaited: &str) {
    with(before, awaited).reports("p becomes BlockcellMatMulSlice (parts: 2)");
}

fn is_not_implied(before: &str, awaited: &str) {
    with(before, awaited).reports(
        "p becomes BlockcellMatMulSlice (parts: 1); the rest is not rewritten: dh has a dependency that the product does not have",
    );
}

/// What comes before the product: `x` by `before1` and, as control, `before2`.
const PRODUCT: &str = "before1 = Apply(fed)
    before2 = NoOp(^fed)
    cell1 = lstm(before1, h1, w, bias, ^before2)
    p = dx_dh(cell1)";

#[test]
fn a_slice_may_wait_for_what_the_product_depends_on() {
    for awaited in ["cell1", "before1", "before2", "fed", "h1", "w"] {
        is_implied(PRODUCT, awaited);
    }
}

#[test]
fn the_new_node_waits_for_it_too() {
    with(PRODUCT, "before2").becomes(
        "before1 = Apply(fed)
        before2 = NoOp(^fed)
        p = BlockcellMatMulSlice(cell1:1, w, ^before2) num_parts=2 begins=[0,2] sizes=[2,1] rows=-1
        out = Apply(p, p:1)",
    );
}

#[test]
fn a_slice_may_not_wait_for_anything_else() {
    is_not_implied(PRODUCT, "other");
    is_not_implied(&format!("{PRODUCT}\nafter = Apply(before1)"), "after");
    is_not_implied(&format!("{PRODUCT}\nafter = Identity(other)"), "after");
}

#[test]
fn a_slice_may_not_wait_for_another_one() {
    is_not_implied(PRODUCT, "dx");
}

/// As soon as the product's inputs have a value, these have.
#[test]
fn a_slice_may_wait_for_what_follows_without_fail() {
    let group = format!(
        "{PRODUCT}
        one = Identity(before1)
        two = Const(^one) value=1
        three = NoOp(^two, ^h1)"
    );
    for awaited in ["one", "two", "three"] {
        is_implied(&group, awaited);
    }
    is_not_implied(&format!("{group}\nfour = NoOp(^three, ^other)"), "four");
}

#[test]
fn a_constant_s_wait_is_the_slice_s() {
    let text = |awaited: &str| {
        format!(
            "cell1 = lstm(x1, h1)
            p = dx_dh(cell1)
            begin = Const(^{awaited}) value=[0,0]
            size = Const() value=[-1,2]
            dx = Slice(p, begin, size)
            dh = columns(p, 2, 1)"
        )
    };
    rewriting(&text("x1")).reports("p becomes BlockcellMatMulSlice (parts: 2)");
    rewriting(&text("other")).reports(
        "p becomes BlockcellMatMulSlice (parts: 1); the rest is not rewritten: dx has a dependency that the product does not have",
    );
}

#[test]
fn a_switch_has_a_value_on_one_side() {
    let text = "side = Switch(data, predicate)
        x1 = Identity(side:1)
        cell1 = lstm(x1, h1)
        p = dx_dh(cell1)
        same = Identity(side:1)
        opposite = Identity(side)";
    is_implied(text, "same");
    is_implied(text, "side");
    is_not_implied(text, "opposite");
}

/// Of another tensor, by the same predicate: the pivot of a condition or loop.
#[test]
fn another_switch_of_the_same_predicate_has_its_value_on_the_same_side() {
    let text = "side = Switch(data, predicate)
        x1 = Identity(side:1)
        cell1 = lstm(x1, h1)
        p = dx_dh(cell1)
        pivots = Switch(predicate, predicate)
        same = Identity(pivots:1)
        opposite = Identity(pivots)
        strangers = Switch(predicate, another)
        stranger = Identity(strangers:1)";
    is_implied(text, "same");
    is_not_implied(text, "opposite");
    is_not_implied(text, "stranger");
}

#[test]
fn a_switch_of_references_has_a_value_on_one_side() {
    let text = "v = VariableV2()
        side = RefSwitch(v, predicate)
        x1 = Identity(side:1)
        cell1 = lstm(x1, h1)
        p = dx_dh(cell1)
        same = Identity(side:1)
        opposite = Identity(side)";
    is_implied(text, "same");
    is_not_implied(text, "opposite");
}

#[test]
fn a_switch_of_many_sides_has_a_value_on_one() {
    let text = "side = _SwitchN(data, which)
        x1 = Identity(side:1)
        cell1 = lstm(x1, h1)
        p = dx_dh(cell1)
        same = Identity(side:1)
        opposite = Identity(side:2)";
    is_implied(text, "same");
    is_not_implied(text, "opposite");
}

/// A `Merge` has a value where one of its inputs has.
#[test]
fn what_comes_before_a_merge_does_not_count() {
    let text = "side = Switch(data, predicate)
        left = Identity(side)
        right = Identity(side:1)
        x1 = Merge(left, right)
        cell1 = lstm(x1, h1)
        p = dx_dh(cell1)";
    is_implied(text, "x1");
    is_not_implied(text, "left");
    is_not_implied(text, "side");
}

/// It runs, and has a value, even where what it waits for has none.
#[test]
fn what_comes_before_a_control_trigger_does_not_count() {
    let text = "side = Switch(data, predicate)
        left = Identity(side)
        trigger = ControlTrigger(^left)
        cell1 = lstm(x1, h1, w, bias, ^trigger)
        p = dx_dh(cell1)";
    is_implied(text, "trigger");
    is_not_implied(text, "left");
}

#[test]
fn what_was_received_does_not_tell_of_the_other_side() {
    let text = "x1 = _Recv(^other)
        cell1 = lstm(x1, h1)
        p = dx_dh(cell1)";
    is_implied(text, "x1");
    is_not_implied(text, "other");
}

/// All slices wait for the same, and nobody sees the product before them.
#[test]
fn all_slices_may_wait_for_the_same() {
    let text = |more: &str| {
        format!(
            "cell1 = lstm(x1, h1)
            p = dx_dh(cell1)
            dx = columns(p, 0, 2, ^other, ^another)
            dh = columns(p, 2, 1, ^another, ^other, ^x1)
            out = Apply(dx, dh)
            {more}"
        )
    };
    rewriting(&text("")).becomes(
        "p = BlockcellMatMulSlice(cell1:1, w, ^another, ^other, ^x1) num_parts=2 begins=[0,2] sizes=[2,1] rows=-1
        out = Apply(p, p:1)",
    );
    rewriting(&text("waiting = NoOp(^p)")).reports(
        "p becomes BlockcellMatMulSlice (parts: 1); the rest is not rewritten: dx has a dependency that the product does not have",
    );
}

#[test]
fn some_slices_may_not_wait_for_less() {
    for waits in ["", ", ^other", ", ^another", ", ^other, ^another, ^third"] {
        rewriting(&format!(
            "cell1 = lstm(x1, h1)
            p = dx_dh(cell1)
            dx = columns(p, 0, 2{waits})
            dh = columns(p, 2, 1, ^other, ^another)"
        ))
        .reports(&format!(
            "p becomes BlockcellMatMulSlice (parts: 1); the rest is not rewritten: {} has a dependency that the product does not have",
            if waits.is_empty() { "dh" } else { "dx" }
        ));
    }
}

/// The product would be computed later than before.
#[test]
fn a_factor_that_may_change_does_not_wait_with_all_slices() {
    let text = |w: &str, slice: &str| {
        format!(
            "v = VariableV2()
            assigned = Assign(v, fed)
            cell1 = lstm(x1, h1)
            p = dx_dh(cell1, {w})
            dx = columns(p, 0, 2{slice})"
        )
    };
    rewriting(&text("v", "")).reports("p becomes BlockcellMatMulSlice (parts: 1)");
    rewriting(&text("w", ", ^later")).reports("p becomes BlockcellMatMulSlice (parts: 1)");
    rewriting(&text("v", ", ^later")).reports(
        "p becomes BlockcellMatMulSlice (parts: 1); the rest is not rewritten: v may be the memory of a variable that is written before the new node would read it",
    );
}

#[test]
fn what_lies_very_far_back_counts_as_not_before() {
    let chain = |length: usize| {
        let mut text = "n0 = Apply(start)\n".to_owned();
        for number in 1..length {
            text += &format!("n{number} = Apply(n{})\n", number - 1);
        }
        format!(
            "{text}x1 = Apply(n{})
            cell1 = lstm(x1, h1)
            p = dx_dh(cell1)",
            length - 1
        )
    };
    is_implied(&chain(900), "start");
    is_not_implied(&chain(1100), "start");
}
