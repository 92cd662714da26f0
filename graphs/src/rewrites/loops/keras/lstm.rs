//! The step of Keras's LSTM cell.
//!
//! ```text
//! i_bar, f_bar, ci_bar, o_bar = Split(1, MatMul(x, w_x) + MatMul(h_prev, w_h) + b)
//! cs = Sigmoid(f_bar) * cs_prev + Sigmoid(i_bar) * Tanh(ci_bar)          h = Sigmoid(o_bar) * Tanh(cs)
//! ```

use super::super::frame::Frame;
use super::step::{Step, Terms};
use crate::graph::{Graph, NodeId, Output, ops};
use crate::reading::constants::names_columns;
use crate::reading::neighbours::{factors, of, other_factor, takers, unary};

/// Reads the step that begins with a `Split` in four parts.
pub(super) fn read(graph: &Graph, frame: &Frame, split: NodeId) -> Option<Step> {
    let &[axis, z] = graph.node(split).inputs.first_chunk()?;
    let terms = Terms::read(graph, z).filter(|_| names_columns(graph, axis))?;
    let bar = |index| Output { node: split, index };
    let activated = |index, op| Some(of(takers(graph, bar(index), op).next()?));
    let (i, f) = (activated(0, "Sigmoid")?, activated(1, "Sigmoid")?);
    let (ci, o) = (activated(2, "Tanh")?, activated(3, "Sigmoid")?);
    let new =
        takers(graph, i, "Mul").map(of).find(|&new| other_factor(graph, new, i) == Some(ci))?;
    let sums = ["Add", "AddV2"].into_iter().flat_map(|op| takers(graph, new, op)).map(of);
    let (cs, kept, cs_prev) = sums.filter_map(|cs| kept(graph, cs, new, f)).next()?;
    let co = of(takers(graph, cs, "Tanh").next()?);
    let h = takers(graph, co, "Mul").map(of).find(|&h| other_factor(graph, h, co) == Some(o))?;
    let is_state = |[left, _]: &[Output; 2]| frame.variable(graph, *left).is_some();
    let (of_state, of_x): (Vec<_>, Vec<_>) = terms.products.iter().partition(|one| is_state(one));
    let (&[&[h_prev, w_h]], &[&[x, w_x]], &[b]) = (&of_state[..], &of_x[..], &terms.biases[..])
    else {
        return None;
    };
    let mut nodes = terms.nodes;
    nodes.extend([i, f, ci, o, new, kept, cs, co, h].map(|tensor| tensor.node));
    nodes.insert(split);
    Some(Step {
        root: split,
        op: ops::KERAS_LSTM,
        x,
        h,
        states: vec![[h_prev, h], [cs_prev, cs]],
        weights: vec![w_x, w_h, b],
        added: terms.added,
        needs_one_row: terms.needs_one_row,
        units: None,
        nodes,
    })
}

/// The sum of `new` and of `f * cs_prev`, that product, and `cs_prev`.
fn kept(graph: &Graph, cs: Output, new: Output, f: Output) -> Option<(Output, Output, Output)> {
    let &[left, right] = graph.node(cs.node).inputs.first_chunk()?;
    let kept = if left == new { right } else { left };
    factors(graph, kept)?;
    // The gate is a sigmoid itself, so that its square is no state.
    unary(graph, f, "Sigmoid")?;
    Some((cs, kept, other_factor(graph, kept, f)?))
}
