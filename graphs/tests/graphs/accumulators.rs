//! Lists by which a loop of TensorFlow 2 hands tensors to the loop of its gradient.

use super::cells::{SAVED, one_step, step_grad, summed};
use super::cells_gru::{BACKWARD, CELL, FORWARD};
use crate::common::rewriting::{Rewriting, rewriting};

/// A loop that counts.
fn counting(frame: &str) -> String {
    format!(
        "n_first_{frame} = Enter(zero) frame_name=\"{frame}\"
        n_now_{frame} = Merge(n_first_{frame}, n_next_{frame})
        goes_on_{frame} = Less(n_now_{frame}, n_now_{frame})
        cond_{frame} = LoopCond(goes_on_{frame})
        n_{frame} = Switch(n_now_{frame}, cond_{frame})
        round_{frame} = Identity(n_{frame}:1)
        n_next_{frame} = NextIteration(n_{frame}:1, ^round_{frame})
        n_last_{frame} = Exit(n_{frame})\n"
    )
}

/// A list as a variable of a loop.
fn list(name: &str, frame: &str, first: &str, next: &str) -> String {
    format!(
        "{name}_first_{frame} = Enter({first}) frame_name=\"{frame}\"
        {name}_now_{frame} = Merge({name}_first_{frame}, {name}_next_{frame})
        {name}_list_{frame} = Switch({name}_now_{frame}, cond_{frame})
        {name}_next_{frame} = NextIteration({next}, ^round_{frame})
        {name}_last_{frame} = Exit({name}_list_{frame})\n"
    )
}

/// A graph in which some tensors are kept on lists, for those who take them in `later`.
fn with_lists(before: &str, later: &str, kept: &[&str]) -> String {
    let mut text = before.to_owned() + &counting("f") + &counting("b");
    text += "empty = EmptyTensorList(any, most)\n";
    let mut later = later.to_owned();
    for name in kept {
        text += &list(name, "f", "empty", &format!("push_{name}"));
        text += &list(name, "b", &format!("{name}_last_f"), &format!("pop_{name}"));
        text += &format!(
            "push_{name} = TensorListPushBack({name}_list_f:1, {name})
            pop_{name} = TensorListPopBack({name}_list_b:1, any)\n"
        );
        for (before, after) in [("(", ","), ("(", ")"), (" ", ","), (" ", ")")] {
            let [from, to] =
                [*name, &format!("pop_{name}:1")].map(|tensor| [before, tensor, after].concat());
            later = later.replace(&from, &to);
        }
    }
    text + &later
}

/// An LSTM step and its backward step, with all that this takes on lists.
fn lstm() -> String {
    let grad = step_grad(0, "c", ["dh", "dcs"]);
    with_lists(&one_step("y = Neg(h0)\n"), &(grad + "z = Neg(dz0)\n"), &SAVED)
}

fn changed(text: &str, changes: &[(&str, &str)]) -> Rewriting {
    let mut text = text.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    rewriting(&text)
}

#[test]
fn what_a_backward_step_takes_may_come_from_lists() {
    let grad = "dz0 = BlockcellLSTMCellGrad(pop_i0:1, pop_f0:1, pop_o0:1, pop_ci0:1, pop_co0:1, pop_c:1, dcs, dh)";
    let copied = "push_copied = Identity(push_i0)";
    for changes in [
        &[][..],
        // TensorFlow puts copies between the parts of a loop.
        &[(
            "pop_i0 = TensorListPopBack(i0_list_b:1",
            "copy = Identity(i0_list_b:1)\npop_i0 = TensorListPopBack(copy",
        )],
        &[("Enter(i0_last_f)", "Enter(copy)"), ("empty =", "copy = Identity(i0_last_f)\nempty =")],
        &[
            ("NextIteration(push_i0,", "NextIteration(push_copied,"),
            ("empty =", &(copied.to_owned() + "\nempty =")),
        ],
    ] {
        let after = changed(&lstm(), changes);
        let text = after.text();
        assert!(text.contains(grad) && after.has("push_i0"), "{text}");
        assert!(!after.has("ci0"), "{text}");
    }
}

#[test]
fn other_lists_stay() {
    for (from, to) in [
        // Another tensor is on the list.
        ("TensorListPushBack(f0_list_f:1, f0)", "TensorListPushBack(f0_list_f:1, i0)"),
        // It does not begin empty.
        ("i0_first_f = Enter(empty)", "i0_first_f = Enter(filled)"),
        // Two tensors are pushed in a round, or popped.
        (
            "i0_next_f = NextIteration(push_i0,",
            "twice = TensorListPushBack(push_i0, x)\ni0_next_f = NextIteration(twice,",
        ),
        (
            "i0_next_b = NextIteration(pop_i0,",
            "twice = TensorListPopBack(pop_i0, any)\ni0_next_b = NextIteration(twice,",
        ),
        ("TensorListPopBack(i0_list_b:1,", "TensorListPopBack(less,"),
        ("push_i0 = TensorListPushBack(", "push_i0 = TensorListConcatLists("),
        // The tensor is another output, or the list is not that of a round.
        ("pop_i0:1", "pop_i0"),
        ("TensorListPopBack(i0_list_b:1,", "TensorListPopBack(i0_list_b,"),
        // The rest is not what the next round begins with.
        ("i0_next_b = NextIteration(pop_i0,", "i0_next_b = NextIteration(i0_list_b:1,"),
        ("TensorListPushBack(i0_list_f:1,", "TensorListPushBack(f0_list_f:1,"),
        // The other loop begins with another list than the first one ends with.
        ("Enter(i0_last_f)", "Enter(other_list)"),
        ("i0_last_f = Exit(i0_list_f)", "i0_last_f = Exit(i0_list_f:1)"),
        ("Enter(i0_last_f)", "Enter(f0_last_f)"),
        // Rounds take place by another condition.
        ("i0_list_b = Switch(i0_now_b, cond_b)", "i0_list_b = Switch(i0_now_b, flag)"),
        ("i0_list_f = Switch(i0_now_f, cond_f)", "i0_list_f = Switch(i0_now_f, flag)"),
    ] {
        let more = "less = TensorListPopBack(i0_list_b:1, any)\nempty =";
        let after = changed(&lstm(), &[(from, to), ("empty =", more)]);
        assert!(after.has("di0"), "{to}: {}", after.text());
    }
}

/// A GRU step and its backward step, whose list of gates nobody reads afterwards.
fn gru() -> String {
    with_lists(FORWARD, BACKWARD, &["gates", "h", "c"])
}

const GATES: [&str; 10] = [
    "gates_first_f",
    "gates_now_f",
    "gates_list_f",
    "push_gates",
    "gates_last_f",
    "gates_first_b",
    "gates_now_b",
    "gates_list_b",
    "pop_gates",
    "gates_next_b",
];

#[test]
fn lists_that_nobody_reads_go() {
    let copy = "copy = Identity(gates_list_b:1)\npop_gates = TensorListPopBack(copy,";
    let copied = [("pop_gates = TensorListPopBack(gates_list_b:1,", copy)];
    for changes in [&[][..], &copied] {
        let after = changed(&gru(), changes);
        let text = after.text();
        assert!(text.contains(CELL.trim()), "{text}");
        assert!(!after.has("copy") && GATES.iter().all(|name| !after.has(name)), "{text}");
        assert!(after.has("push_h") && after.has("pop_c") && after.has("empty"), "{text}");
    }
}

/// TensorFlow's optimizers let a constant in place of a shape wait for what the shape was of.
#[test]
fn who_waits_for_a_list_waits_for_the_round() {
    let more = "waiting_f = Const(^push_gates) value=1
        waiting_b = Const(^pop_gates) value=2
        copy = Identity(gates_list_b:1)
        waiting_too = Const(^copy) value=3
        all = NoOp(^n_last_f, ^gates_last_f, ^h_last_f)
        y2 = Pack(waiting_f, waiting_b, waiting_too)
        z2 = Neg(y2, ^all)\n";
    let after = rewriting(&(gru() + more));
    let text = after.text();
    assert!(GATES.iter().all(|name| !after.has(name)), "{text}");
    for line in [
        "waiting_f = Const(^round_f)",
        "waiting_b = Const(^round_b)",
        "waiting_too = Const(^round_b)",
        "all = NoOp(^n_last_f, ^h_last_f)",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn lists_that_somebody_needs_stay() {
    for more in [
        "length = TensorListLength(gates_list_b:1)",
        "length = TensorListLength(gates_now_b)",
        "length = TensorListLength(pop_gates)",
        "length = TensorListLength(gates_last_b)",
        "more = Neg(pop_gates:1)",
        "late = Neg(x, ^gates_now_b)",
        "after = Identity(gates_list_b)\nlate = Neg(x, ^after)",
        "late = Neg(x, ^gates_next_b)",
        "late = Neg(x, ^gates_last_b)",
        "all = NoOp(^gates_last_b)",
        "late = Neg(x, ^gates_last_b, ^n_last_b)",
        "all = NoOp(^gates_last_b, ^n_last_f)",
    ] {
        let after = rewriting(&(gru() + more));
        assert!(GATES.iter().all(|name| after.has(name)), "{more}: {}", after.text());
        assert!(!after.has("du"), "{}", after.text());
    }
    for target in ["pop_gates", "gates_last_b", "gates_now_b"] {
        let (from, to) = (format!("{target} = "), format!("{target} = "));
        let line = gru().lines().find(|line| line.trim().starts_with(&from)).map(str::to_owned);
        let line = line.expect("there is such a node");
        let after = changed(&gru(), &[(&line, &format!("{line} target"))]);
        assert!(after.has(to.trim_end_matches(" = ")) && after.has("push_gates"));
    }
}

#[test]
fn an_entry_for_several_lists_stays() {
    let after = changed(&gru(), &[("Merge(gates_first_f,", "Merge(h_first_f,")]);
    assert!(!after.has("gates_now_f") && after.has("h_first_f"), "{}", after.text());
}

/// If there were more rounds than tensors, the loop would be an error with the list only.
#[test]
fn the_only_list_between_two_loops_stays() {
    let more = counting("g")
        + &list("only", "f", "empty", "push_only")
        + &list("only", "g", "only_last_f", "pop_only")
        + "push_only = TensorListPushBack(only_list_f:1, x)
        pop_only = TensorListPopBack(only_list_g:1, any)\n";
    let after = rewriting(&(gru() + &more));
    assert!(after.has("pop_only") && after.has("push_only"), "{}", after.text());
    assert!(!after.has("pop_gates"), "{}", after.text());
}

/// A program's own list may be too small, or hold tensors of another shape.
#[test]
fn a_list_that_nobody_read_before_stays() {
    let own = with_lists("own = Neg(x)\n", "", &["own"]);
    let own = own.split("empty =").nth(1).and_then(|lists| lists.split_once('\n'));
    let own = "own = Neg(x)\n".to_owned() + own.expect("what is on the list").1;
    let after = rewriting(&(gru() + &own));
    assert!(after.has("push_own") && after.has("pop_own"), "{}", after.text());
    assert!(!after.has("pop_gates"), "{}", after.text());
}

/// The loop may be followed by two others, or its list may be read as a whole.
#[test]
fn a_list_stays_in_the_first_loop_only() {
    let after = rewriting(&(gru() + "length = TensorListLength(gates_last_f)"));
    let text = after.text();
    assert!(after.has("push_gates") && after.has("gates_last_f"), "{text}");
    assert!(!after.has("pop_gates") && !after.has("gates_now_b"), "{text}");
    // Then the gates are needed, too.
    assert!(after.has("gates") && !text.contains(CELL.trim()), "{text}");
}

#[test]
fn who_waits_for_more_than_the_round_goes_on_waiting() {
    for (wait, stays) in [("^slow", true), ("^x", false)] {
        let more = format!(
            "slow = Dequeue(x) waits
            copy = Identity(gates_list_b:1, {wait})
            late = Const(^copy) value=1
            z2 = Neg(late)"
        );
        let after = rewriting(&(gru() + &more));
        assert_eq!(after.has("pop_gates"), stays, "{}", after.text());
    }
}

/// What is only known to be a shape, because it was pushed, goes with the list.
#[test]
fn lists_of_shapes_go_with_the_sums() {
    let sums = summed(["o0", "co0"]);
    let is_shape = |line: &&str| line.trim().starts_with("shape_");
    let (shapes, grad): (Vec<_>, Vec<_>) = sums.lines().partition(is_shape);
    let before = one_step("y = Neg(h0)\n") + &shapes.join("\n") + "\n";
    let kept = [&SAVED[..], &["shape_own", "shape_other"]].concat();
    let after = rewriting(&with_lists(&before, &(grad.join("\n") + "\nz = Neg(dz0)\n"), &kept));
    for gone in ["sum", "args", "shape_own", "push_shape_own", "shape_own_now_b", "ci0"] {
        assert!(!after.has(gone), "{gone}: {}", after.text());
    }
}
