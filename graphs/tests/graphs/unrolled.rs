//! Steps of a cell one after the other, without a loop.

use std::fmt::Write;

use crate::common::rewriting::{Rewriting, rewriting};

pub(super) const STEPS: usize = 5;
const ATTRIBUTES: &str = "num_peepholes=0 forget_bias=1.0 cell_clip=-1.0 gate_order=[0,1,2,3]";
pub(super) const LAYER: &str = "num_rounds=1 num_sequence_length=0 x_sizes=[] h_sizes=[] needs_h=true lists=false num_peepholes=0 forget_bias=1.0 cell_clip=-1.0 gate_order=[0,1,2,3] broadcasts=true";

/// Steps of an LSTM cell, as `cells` leaves those of `tf.nn.static_rnn`.
fn steps() -> String {
    let mut text = "w = Const() value=zeros\nb = Const() value=zeros
        parts = Unpack(x) num=5 axis=1
        gradient = lstm(any_x, any_h)\n"
        .to_owned();
    for t in 0..STEPS {
        let (h, cs) = match t.checked_sub(1) {
            None => ("h0".to_owned(), "cs0".to_owned()),
            Some(before) => (format!("step{before}:6"), format!("step{before}:1")),
        };
        writeln!(
            text,
            "step{t} = BlockcellLSTMCell(parts:{t}, {h}, w, b, {cs}) num_cs_prev=1 {ATTRIBUTES}"
        )
        .expect("text takes all");
    }
    text
}

pub(super) fn with(changes: &[(&str, &str)], more: &str) -> String {
    let mut text = steps();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text + more
}

fn stays(changes: &[(&str, &str)], more: &str) -> Rewriting {
    let after = rewriting(&with(changes, more));
    assert!(!after.text().contains("Layer("), "{}", after.text());
    after
}

#[test]
fn the_last_output_alone() {
    rewriting(&with(&[], "y = Apply(step4:6)")).becomes(&format!(
        "w = Const() value=zeros
        b = Const() value=zeros
        parts = Unpack(x) num=5 axis=1
        gradient = lstm(any_x, any_h)
        y = Apply(step4:1)
        step4/blockcell/Pack = Pack(parts, parts:1, parts:2, parts:3, parts:4) N=5 axis=0
        step4/blockcell/Const = Const(^step4/blockcell/Pack) dtype=int32 value=5
        step4 = BlockcellLSTMLayer(step4/blockcell/Const, step4/blockcell/Const, step4/blockcell/Pack, h0, cs0, w, b) {LAYER}"
    ));
}

/// The layer reads the weights themselves, but no sooner, and nowhere else, than the steps did.
#[test]
fn weights_that_are_passed_on_later() {
    let changes = [("step2:6, w, b", "step2:6, later, b")];
    let more = "later = Identity(w, ^before)\nbefore = Other(x)\ny = Apply(step4:6)";
    let after = rewriting(&with(&changes, more));
    let layer = "x, h0, cs0, w, b, ^before)";
    let text = after.text().replace("step4/blockcell/Pack, h0", "x, h0");
    assert!(text.contains(layer), "{text}");
}

#[test]
fn all_outputs_and_both_states() {
    let more = "y = Apply(step0:6, step1:6, step3:6, step4:6)\nlast = Apply(step4:1)\nafter = NoOp(^step2)";
    let after = rewriting(&with(&[("axis=1", "axis=0")], more));
    let text = after.text();
    for line in [
        "step4 = BlockcellLSTMLayer(step4/blockcell/Const, step4/blockcell/Const, x, h0, cs0, w, b)",
        "step4/blockcell/Unpack = Unpack(step4) num=5 axis=0",
        "y = Apply(step4/blockcell/Unpack, step4/blockcell/Unpack:1, step4/blockcell/Unpack:3, step4/blockcell/Unpack:4)",
        "last = Apply(step4:2)",
        "after = NoOp(^step4)",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    assert!(!after.has("parts") && !after.has("step0"), "{text}");
}

#[test]
fn outputs_put_together() {
    let pack = "all = Pack(step0:6, step1:6, step2:6, step3:6, step4:6) N=5 axis=0\ny = Apply(all)";
    let after = rewriting(&with(&[], pack));
    assert!(after.text().contains("y = Apply(step4)") && !after.has("all"), "{}", after.text());
    let other = rewriting(&with(&[], &pack.replace("axis=0", "axis=1")));
    assert!(other.text().contains("y = Apply(all)"), "{}", other.text());
}

#[test]
fn layers_of_a_stack() {
    let second = steps()
        .lines()
        .filter(|line| line.contains("BlockcellLSTMCell"))
        .map(|line| line.replace("step", "other").replace("parts:", "h").replace("(h", "(step"))
        .map(|line| {
            let (before, after) = line.split_once(", ").expect("several inputs");
            format!("{before}:6, {after}").replace("h0", "h1").replace("cs0", "cs1")
        })
        .collect::<Vec<_>>()
        .join("\n");
    let after = rewriting(&with(&[("axis=1", "axis=0")], &(second + "\ny = Apply(other4:6)")));
    let text = after.text();
    assert_eq!(text.matches("BlockcellLSTMLayer(").count(), 2, "{text}");
    assert!(text.contains("other4/blockcell/Const, step4, h1, cs1, w, b)"), "{text}");
    assert!(!text.contains("Unpack"), "{text}");
}

/// The optimizers leave `f * cs_prev` out where cs_prev is zero.
#[test]
fn a_first_step_without_a_state() {
    let first = "step0 = BlockcellLSTMCell(parts:0, h0, w, b, cs0) num_cs_prev=1 num_peepholes=0 forget_bias=1.0";
    let short = "step0 = BlockcellLSTMCell(parts:0, h0, w, b) num_cs_prev=0 num_peepholes=0 forget_bias=0.0";
    let changes = [(first, short)];
    let more = "\nh0 = Const() value=zeros\ny = Apply(step4:6)";
    let after = rewriting(&with(&changes, more));
    assert!(after.text().contains("Pack, h0, h0, w, b)"), "{}", after.text());
    let more = "\nh0 = Placeholder()\ny = Apply(step4:6)";
    let after = rewriting(&with(&changes, more));
    assert!(after.text().contains("Pack, step0:6, step0:1, w, b)"), "{}", after.text());
}

#[test]
fn other_readers_cut() {
    // Steps 0 and 1 are too few.
    let after = rewriting(&with(&[], "y = Apply(step4:6)\nz = Apply(step0:1)"));
    assert!(after.text().contains("Pack, step0:6, step0:1, w, b)"), "{}", after.text());
    for inner in ["z = Apply(step2:1)", "z = Apply(step2:3)", "z = Apply(step1)"] {
        stays(&[], &format!("y = Apply(step4:6)\n{inner}"));
    }
}

#[test]
fn other_steps_stay() {
    let y = "y = Apply(step4:6)";
    let third = "step2 = BlockcellLSTMCell(parts:2, step1:6, w, b, step1:1) num_cs_prev=1 num_peepholes=0 forget_bias=1.0";
    for to in [
        third.replace("w, b", "w2, b"),
        third.replace("forget_bias=1.0", "forget_bias=0.0"),
        third.replace("step1:1)", "step0:1)"),
        third.replace("step1:6", "step0:6"),
    ] {
        stays(&[(third, &to)], y);
    }
}

#[test]
fn what_depends_on_a_step_before() {
    stays(&[("parts:3", "fed_back")], "fed_back = Apply(step2:6)\ny = Apply(step4:6)")
        .reports("step0 (BlockcellLSTMCell) is not rewritten: an input of step0 depends on a part of the same step");
}

#[test]
fn a_branch_that_may_be_dead() {
    stays(
        &[("parts:3", "side:1")],
        "side = Switch(x3, sometimes)\ny = Apply(step1:6, step4:6)\nz = Apply(step0:6)",
    )
    .reports(
        "step0 (BlockcellLSTMCell) is not rewritten: z consumes step0 and may run before all inputs of the step are available",
    );
}

#[test]
fn memory_that_may_change() {
    stays(
        &[("w = Const() value=zeros", "w = VariableV2() shape=[5,12]")],
        "write = Assign(w, new)\ny = Apply(step4:6)",
    )
    .reports("step0 (BlockcellLSTMCell) is not rewritten: w may be the memory of a variable that is written before the new node would read it");
}

#[test]
fn another_device() {
    stays(
        &[(
            "forget_bias=1.0 cell_clip=-1.0 gate_order=[0,1,2,3]\nstep3",
            "forget_bias=1.0 cell_clip=-1.0 gate_order=[0,1,2,3] @/cpu:1\nstep3",
        )],
        "y = Apply(step4:6)",
    )
    .reports("step0 (BlockcellLSTMCell) is not rewritten: step2 is on another device");
}
