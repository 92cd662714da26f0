//! Loops over a sequence in which outputs are projected, or have the input added to them.

use crate::common::rewriting::{Rewriting, rewriting};
use crate::layers;
use crate::mutations::replaced;

const ENTERED: &str = "b_in = Enter(b) frame_name=\"loop\" is_constant=true";
const WEIGHTS: &str = "w = Const() value=zeros";

/// A loop whose cell has so wide weights, and outputs that are made by these nodes: `p` for the next round, `q` for the
/// array.
pub(super) fn with(w: &str, nodes: &str, [p, q]: [&str; 2]) -> String {
    let nodes =
        format!("{ENTERED}\nproj_in = Enter(proj) frame_name=\"loop\" is_constant=true\n{nodes}");
    let next = format!("Select(has_ended, h_switch:1, {p})");
    let written = format!("Select(has_ended, zeros_in, {q})");
    layers::with(&[
        (WEIGHTS, &format!("w = VariableV2() shape={w}\nproj = VariableV2() shape=[8,5]")),
        (ENTERED, &nodes),
        ("Select(has_ended, h_switch:1, cell:6)", &next),
        ("Select(has_ended, zeros_in, cell:6)", &written),
    ])
}

pub(super) const PROJECTED: &str = "p = MatMul(cell:6, proj_in)";
pub(super) const CLIPPED: &str = "raw = MatMul(cell:6, proj_in)
    most = Const(^t) value=0.25
    less_than = Const(^t) value=-0.25
    least = Minimum(raw, most)
    p = Maximum(least, less_than)";

fn has(after: &Rewriting, line: &str) {
    assert!(after.text().contains(line), "{line}\n{}", after.text());
    assert!(!after.has("t_merge"), "{}", after.text());
}

fn stays(text: &str) {
    let after = rewriting(text);
    assert!(after.has("t_merge") && !after.text().contains("Layer("), "{}", after.text());
}

const LAYER: &str = "cell = BlockcellLSTMLayer(time, time, lengths, x, h0, c0, w, b";

#[test]
fn outputs_are_projected() {
    let after = rewriting(&with("[12,32]", PROJECTED, ["p", "p"]));
    has(&after, &format!("{LAYER}, proj)"));
    has(&after, "num_projection=1 proj_clip=-1.0");
    let after = rewriting(&with("[12,32]", CLIPPED, ["p", "p"]));
    has(&after, "num_projection=1 proj_clip=0.25");
}

#[test]
fn other_projections_stay() {
    for (from, to) in [
        ("MatMul(cell:6, proj_in)", "MatMul(cell:6, proj_in) transpose_b=true"),
        ("MatMul(cell:6, proj_in)", "MatMul(cell:1, proj_in)"),
        ("MatMul(cell:6, proj_in)", "MatMul(proj_in, cell:6)"),
        ("MatMul(cell:6, proj_in)", "MatMul(cell:6, x_t)"),
        ("Minimum(raw, most)", "Minimum(raw, less_than)"),
        ("Maximum(least, less_than)", "Maximum(least, most)"),
        // More columns than the cell has, or perhaps so many.
        ("shape=[8,5]", "shape=[8,9]"),
        ("shape=[8,5]", "shape=?"),
        ("h_switch:1, p)", "h_switch:1, raw)"),
        ("zeros_in, p)", "zeros_in, cell:6)"),
    ] {
        stays(&replaced(&with("[12,32]", CLIPPED, ["p", "p"]), &[(from, to)]));
    }
}

/// What is added is as wide as the outputs for certain.
#[test]
fn outputs_have_the_input_added() {
    for sum in ["q = AddV2(x_t, cell:6)", "q = Add(cell:6, x_t)"] {
        let after = rewriting(&with("[16,32]", sum, ["cell:6", "q"]));
        has(&after, &format!("{LAYER})"));
        has(&after, "broadcasts=true adds_x=true");
    }
    let both = format!("{PROJECTED}\nq = AddV2(p, x_t)");
    let after = rewriting(&with("[10,32]", &both, ["p", "q"]));
    has(&after, "num_projection=1 proj_clip=-1.0 adds_x=true");
}

#[test]
fn other_sums_stay() {
    for (w, sum, [p, q]) in [
        ("[15,32]", "q = AddV2(x_t, cell:6)", ["cell:6", "q"]),
        ("[9,32]", "q = AddV2(x_t, cell:6)", ["cell:6", "q"]),
        ("?", "q = AddV2(x_t, cell:6)", ["cell:6", "q"]),
        ("[16,32]", "q = AddV2(x_t, x_t)", ["cell:6", "q"]),
        ("[16,32]", "q = AddV2(cell:6, cell:6)", ["cell:6", "q"]),
        ("[16,32]", "q = AddV2(h_switch:1, cell:6)", ["cell:6", "q"]),
        ("[16,32]", "q = Mul(x_t, cell:6)", ["cell:6", "q"]),
        ("[16,32]", "q = AddV2(x_t, cell:1)", ["cell:6", "q"]),
        ("[16,32]", "q = AddV2(x_t, cell:6)", ["q", "q"]),
        ("[16,32]", "q = AddV2(x_t, cell:6)", ["q", "cell:6"]),
    ] {
        stays(&with(w, sum, [p, q]));
    }
}

#[test]
fn gru_cells_have_the_input_added() {
    let changes = [
        &layers::GRU[..],
        &[
            ("w = Const() value=zeros", "w = VariableV2() shape=[16,16]"),
            ("zeros_in, cell:3)", "zeros_in, q)"),
            ("has_ended = ", "q = AddV2(cell:3, x_t)\nhas_ended = "),
        ],
    ]
    .concat();
    let after = rewriting(&layers::with(&changes));
    has(&after, "BlockcellGRULayer(time, time, lengths, x, h0, w, w, b, b)");
    has(&after, "adds_x=true");
}
