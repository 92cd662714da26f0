//! The backward step of `BasicLSTMCell` and `LSTMCell` without peepholes.
//!
//! ```text
//! do  = SigmoidGrad(o, dh * co)          dcs = TanhGrad(co, dh * o) + others, if there are any
//! di  = SigmoidGrad(i, dcs * ci)         dci = TanhGrad(ci, dcs * i)
//! df  = SigmoidGrad(f, dcs * cs_prev)    dcs_prev = dcs * f
//! dicfo = ConcatV2(di, dci, df, do, 1)
//! ```
//!
//! Where `cs_prev` is known to be zero, TensorFlow's optimizers put zeros in place of `dcs * cs_prev`.

use super::equations::{is_zero, names_columns, of, other_factor, takers};
use super::step::{Context, Step};
use crate::attribute::Attribute;
use crate::graph::{Graph, NodeId, Output};
use crate::ops;
use crate::reason::Reason;
use crate::report::Report;

/// Outputs of [`ops::LSTM_CELL`].
const I: usize = 0;
const F: usize = 2;
const O: usize = 3;
const CI: usize = 4;
const CO: usize = 5;

/// Which input of [`ops::LSTM_CELL`] is cs_prev, if there is one.
const CS_PREV: usize = 4;

/// Whether a step may end here: with the concatenation of the gradients of four pre-activations, the first
/// of which is that of an input gate.
pub(super) fn is_place(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    node.op == "ConcatV2"
        && node.inputs.len() == 5
        && names_columns(graph, node.inputs[4])
        && step_of(graph, node.inputs[0]).is_some()
}

/// Whether a node concatenates what could be the gradients of four pre-activations.
pub(super) fn looks_like_one(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    let is = |input: usize, op: &str| graph.op(node.inputs[input].node) == op;
    node.op == "ConcatV2" && node.inputs.len() == 5 && is(0, "SigmoidGrad") && is(1, "TanhGrad")
}

/// Replaces the step that ends with a concatenation.
pub(super) fn rewrite(graph: &mut Graph, context: &mut Context, id: NodeId, report: &mut Report) {
    match read(graph, id) {
        Ok(step) => step.replace(graph, context, report),
        Err(reason) => report.stays(id, reason),
    }
}

/// The forward step whose input gate this is the gradient of.
fn step_of(graph: &Graph, di: Output) -> Option<NodeId> {
    let node = graph.node(di.node);
    let gate = *node.inputs.first().filter(|_| node.op == "SigmoidGrad")?;
    (graph.op(gate.node) == ops::LSTM_CELL && gate.index == I).then_some(gate.node)
}

fn read(graph: &Graph, concat: NodeId) -> Result<Step, Reason> {
    let other = |part: &'static str| {
        let node = graph.node(concat).name.clone();
        Reason::Equation { part, node }
    };
    let &[di, dci, df, d_o] = graph.node(concat).inputs.first_chunk().expect("there are five");
    let cell = step_of(graph, di).ok_or_else(|| other("gradient of the input gate"))?;
    let saved = |index| Output { node: cell, index };
    let mut nodes = vec![concat];
    let mut product = |gradient: Output, op: &str, gate: usize| {
        let node = graph.node(gradient.node);
        let is_gradient = node.op == op && node.inputs[0] == saved(gate);
        nodes.push(gradient.node);
        is_gradient.then(|| node.inputs[1])
    };
    let (through_i, through_ci, through_f, through_o) = (|| {
        Some((
            product(di, "SigmoidGrad", I)?,
            product(dci, "TanhGrad", CI)?,
            product(df, "SigmoidGrad", F)?,
            product(d_o, "SigmoidGrad", O)?,
        ))
    })()
    .ok_or_else(|| other("gradients of the gates"))?;
    let dh = other_factor(graph, through_o, saved(CO))
        .ok_or_else(|| other("gradient of the output gate"))?;
    let dcs = other_factor(graph, through_i, saved(CI))
        .filter(|&dcs| other_factor(graph, through_ci, saved(I)) == Some(dcs))
        .ok_or_else(|| other("gradient of the cell state"))?;
    let cs_prev = graph
        .node(cell)
        .inputs
        .get(CS_PREV)
        .copied()
        .filter(|_| graph.node(cell).int("C") == Some(1));
    let is_of_state = match cs_prev {
        Some(cs_prev) => other_factor(graph, through_f, cs_prev) == Some(dcs),
        None => is_zero(graph, through_f),
    };
    if !is_of_state {
        return Err(other("gradient of the forget gate"));
    }
    let (through_h, cs_grad) =
        state_gradient(graph, dcs, saved(CO)).ok_or_else(|| other("gradient of the cell state"))?;
    let h_part = graph.input(through_h.node, 1);
    if other_factor(graph, h_part, saved(O)) != Some(dh) {
        return Err(other("gradient of the output"));
    }
    nodes.extend(
        [through_i, through_ci, through_f, through_o, dcs, through_h, h_part].map(|t| t.node),
    );
    let previous: Vec<_> = takers(graph, dcs, "Mul")
        .map(of)
        .filter(|&product| other_factor(graph, product, dcs) == Some(saved(F)))
        .collect();
    nodes.extend(previous.iter().map(|tensor| tensor.node));
    nodes.sort_unstable();
    nodes.dedup();
    nodes.retain(|&id| graph.op(id) != "Const");
    let mut inputs: Vec<_> = [I, F, O, CI, CO].map(saved).into();
    inputs.extend(cs_prev);
    inputs.extend(&cs_grad);
    inputs.push(dh);
    let count = |number: usize| Attribute::Int(i64::try_from(number).expect("a few"));
    let attributes = vec![
        ("C", count(usize::from(cs_prev.is_some()))),
        ("A", count(cs_grad.len())),
        ("H", count(1)),
    ];
    let outputs = vec![previous, vec![of(concat)]];
    Ok(Step { root: concat, nodes, op: ops::LSTM_CELL_GRAD, inputs, attributes, outputs })
}

/// What comes through the output, and the other summands of the gradient of the cell state.
fn state_gradient(graph: &Graph, dcs: Output, co: Output) -> Option<(Output, Vec<Output>)> {
    let is_through_h = |tensor: Output| {
        let node = graph.node(tensor.node);
        node.op == "TanhGrad" && node.inputs[0] == co
    };
    if is_through_h(dcs) {
        return Some((dcs, Vec::new()));
    }
    let node = graph.node(dcs.node);
    if !matches!(node.op.as_str(), "AddN" | "Add" | "AddV2") {
        return None;
    }
    let place = node.inputs.iter().position(|&summand| is_through_h(summand))?;
    let mut others = node.inputs.clone();
    let through_h = others.remove(place);
    Some((through_h, others))
}
