//! The conditions that all nodes have in common which become layers. Each is broken once in each kind of them.

use std::fmt::Write;

use crate::common::rewriting::rewriting;
use crate::{block_cells, keras, layers, unrolled};

/// A graph with a layer.
struct Kind {
    name: &'static str,
    text: String,
    /// What the report is about, if nothing is rewritten.
    place: &'static str,
    /// The node of the step from which the new one has its type and its device.
    root: &'static str,
    /// Another node that goes away.
    other: &'static str,
    /// Changes of the text, and the reason for which the graph stays then.
    breaks: Vec<(&'static str, &'static str, &'static str)>,
}

const PARTS: &str = "an input of step0 depends on a part of the same step";
const MEMORY: &str =
    "w may be the memory of a variable that is written before the new node would read it";
const STACK: &str = "all has a dependency that the product does not have";
const ZEROS: &str = "w = Const() value=zeros";
const WRITTEN: &str = "w = VariableV2() shape=[5,12]\n written = Assign(w, new)";

/// Five steps one after the other, of which the fourth has an x of its own.
fn unrolled(name: &'static str, place: &'static str, text: String) -> Kind {
    let late = "x3 = Switch(side, sometimes)\nz = ";
    let breaks = vec![
        ("(x3,", "(fed_back,", PARTS),
        (ZEROS, WRITTEN, MEMORY),
        ("z = ", late, "z consumes step0 and may run before all inputs of the step are available"),
    ];
    Kind { name, text, place, root: "step0", other: "step2", breaks }
}

fn unrolled_gru() -> String {
    let mut text = format!("{ZEROS}\nb = Const() value=zeros\ngradient = lstm(any_x, any_h)\n");
    let mut h = "h0".to_owned();
    for t in 0..5 {
        let _ = writeln!(text, "step{t} = GRUBlockCell(x{t}, {h}, w, w, b, b)");
        h = format!("step{t}:3");
    }
    text
}

/// A loop of `tf.while`, whose list or array of outputs becomes a tensor as `all`.
fn looping(
    name: &'static str,
    text: String,
    stack: (&'static str, &'static str, &'static str),
) -> Kind {
    let late = match stack.2 {
        STACK => "left consumes flow and may run before all inputs of the step are available",
        _ => "count consumes flow and may run before all inputs of the step are available",
    };
    let breaks = vec![(ZEROS, WRITTEN, MEMORY), (ZEROS, "w = Placeholder() waits", late), stack];
    Kind { name, text, place: "more (LoopCond)", root: "cell", other: "x_t", breaks }
}

fn of_keras(name: &'static str, step: &str) -> Kind {
    let breaks = vec![
        (
            "zeros = Fill(sizes, nothing)",
            "zeros = VariableV2() shape=[2,5]\n written = Assign(zeros, fresh)",
            "zeros may be the memory of a variable that is written before the new node would read it",
        ),
        (
            "x = Placeholder()",
            "x = Placeholder() waits",
            "end consumes count_exit and may run before all inputs of the step are available",
        ),
        ("Stack(y_exit, h_shape)", "Stack(y_exit, h_shape, ^other)", STACK),
    ];
    let text = keras::with(step, &[]);
    Kind { name, text, place: "more (LoopCond)", root: "split", other: "x_t", breaks }
}

fn kinds() -> Vec<Kind> {
    let readers = |h: usize| {
        format!("\nfed_back = Apply(step2:{h})\ny = Apply(step4:{h})\nz = Apply(step0:{h})")
    };
    let steps = unrolled::with(&[("parts:3", "x3")], &readers(6));
    let gathered = (
        "out_range, flow)",
        "out_range, flow, ^other)",
        "the output of the loop at more does not match a supported loop",
    );
    let stacked = ("Stack(left, h_sizes)", "Stack(left, h_sizes, ^other)", STACK);
    vec![
        unrolled("steps of an LSTM", "step0 (BlockcellLSTMCell)", steps),
        unrolled("steps of a GRU", "step0 (GRUBlockCell)", unrolled_gru() + &readers(3)),
        unrolled("steps of a block LSTM", "step0 (LSTMBlockCell)", block_cells::steps(&readers(6))),
        looping("a loop of an LSTM with arrays", layers::with(&[]), gathered),
        looping("a loop of a GRU with arrays", layers::with(&layers::GRU), gathered),
        looping("a loop of a block LSTM with arrays", layers::with(&block_cells::LSTM), gathered),
        looping("a loop of an LSTM with lists", layers::with_lists(&[]), stacked),
        looping("a loop of a GRU with lists", layers::with_lists(&layers::GRU), stacked),
        looping(
            "a loop of a block LSTM with lists",
            layers::with_lists(&block_cells::LSTM),
            stacked,
        ),
        of_keras("a loop of Keras's LSTM", keras::LSTM),
        of_keras("a loop of Keras's GRU", keras::GRU),
    ]
}

impl Kind {
    /// The text with something more behind the nodes of these names, or behind all.
    fn with(&self, nodes: Option<&[&str]>, more: &str) -> String {
        let is_one = |line: &str| {
            let name = line.split(" = ").next().unwrap_or_default().trim();
            !line.trim().is_empty() && nodes.is_none_or(|nodes| nodes.contains(&name))
        };
        let lines = self.text.lines().map(|line| match is_one(line) {
            true => format!("{line} {more}\n"),
            false => format!("{line}\n"),
        });
        lines.collect()
    }

    /// Nothing of a text becomes a layer, for this reason.
    fn stays(&self, text: &str, reason: &str) {
        let after = rewriting(text);
        let (name, place, text) = (self.name, self.place, after.text());
        let has_layer = text.contains("Layer(") || text.contains("BlockcellKeras");
        assert!(!has_layer, "{name}, {reason}:\n{text}");
        let line = format!("{place} is not rewritten: {reason}");
        assert!(after.lines().contains(&line), "{name}: no {line:?} in {:#?}", after.lines());
    }
}

#[test]
fn each_kind_becomes_a_layer() {
    for Kind { name, text, .. } in kinds() {
        let text = rewriting(&text).text();
        let has_layer = text.contains("Layer(") || text.contains("BlockcellKeras");
        assert!(has_layer, "{name}:\n{text}");
    }
}

#[test]
fn another_device() {
    for kind in kinds() {
        let reason = |node| format!("{node} is on another device");
        kind.stays(&kind.with(Some(&[kind.other]), "@/cpu:1"), &reason(kind.other));
        for device in ["@/gpu:0", "@/job:worker/cpu:0"] {
            kind.stays(&kind.with(None, device), &reason(kind.root));
        }
    }
}

#[test]
fn a_claim_of_somebody_else() {
    for claim in crate::devices::CLAIMS {
        for kind in kinds() {
            for node in [kind.root, kind.other] {
                let reason = format!("{node} is compiled by XLA or selects another kernel");
                kind.stays(&kind.with(Some(&[node]), claim), &reason);
            }
        }
    }
}

#[test]
fn another_type() {
    for kind in kinds() {
        let steps = ["step0", "step1", "step2", "step3", "step4", kind.root];
        kind.stays(&kind.with(Some(&steps), "T=int32"), "its type is neither float nor half");
    }
}

/// A step of those without a loop may be asked for: the new node has all its outputs.
#[test]
fn a_target_that_is_no_output() {
    for kind in kinds() {
        let asked = kind.with(Some(&[kind.other]), "target");
        match kind.root {
            "step0" => assert!(rewriting(&asked).text().contains(" target\n"), "{}", kind.name),
            _ => kind.stays(&asked, &format!("{} is a fetch or a target of the step", kind.other)),
        }
    }
}

/// The order of nodes, memory that changes, and readers that come too early.
#[test]
fn what_nodes_take_and_who_takes_them() {
    for kind in kinds() {
        for (from, to, reason) in &kind.breaks {
            assert!(kind.text.contains(from), "{}: {from}", kind.name);
            kind.stays(&kind.text.replace(from, to), reason);
        }
    }
}
