//! The backward step of `GRUCell`.
//!
//! ```text
//! d_c_bar = TanhGrad(c, dh * (1 - u))          d_h_u = dh * u
//! du = dh * h_prev + Neg(dh * c)
//! d_hr = Slice(MatMul(d_c_bar, w_c^T))         d_hr_r = d_hr * r
//! d_ru_bar = SigmoidGrad([r | u], ConcatV2(d_hr * h_prev, du, 1))
//! ```
//!
//! One new node computes what comes before the product, and one what comes after it. As with LSTM cells,
//! tensors may come from stacks, and gradients may be added up ([`Broadcasts`]): all have one shape, so
//! nothing is added up in truth. Where `h_prev` is known to be zero, TensorFlow's optimizers put zeros in place of
//! the products with it.

use std::collections::HashMap;

use blockcell_kernels::Activation;

use super::added_biases::AddedBias;
use super::broadcasts::{Broadcasts, Size};
use super::gru::Forward;
use super::step::{Context, Step, taken};
use crate::facts::shapes::LazyShapes;
use crate::graph::reason::Reason;
use crate::graph::report::Report;
use crate::graph::{Attribute, Graph, NodeId, Output, ops};
use crate::reading::constants::{is_zero, names_columns};
use crate::reading::functions;
use crate::reading::neighbours::{of, other_factor, takers, unary};
use crate::reading::stacks::{factors_with, pushed};

/// Whether a node could be the gradient of two gates' pre-activations.
pub(super) fn looks_like_one(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    let is_of_two = |id: NodeId| {
        let concat = graph.node(id);
        concat.op == "ConcatV2"
            && concat.inputs.len() == 3
            && names_columns(graph, concat.inputs[2])
    };
    node.op == "SigmoidGrad" && is_of_two(node.inputs[1].node)
}

/// The functions that a candidate may be.
const CANDIDATES: [Activation; 2] = [Activation::Tanh, Activation::Relu];

/// Whether a node could be the gradient of a candidate's pre-activation.
pub(super) fn looks_like_candidate(graph: &Graph, id: NodeId) -> bool {
    let is_rest = |product: NodeId| {
        graph.node(product).inputs.iter().any(|factor| graph.op(factor.node) == "Sub")
    };
    let is_such = |of| {
        let value = functions::through(graph, Output { node: id, index: 0 }, of);
        value.is_some_and(|[value, _]| takers(graph, value, "Mul").any(is_rest))
    };
    CANDIDATES.into_iter().any(is_such)
}

/// Replaces the step that ends with a `SigmoidGrad`. Returns whether it did.
pub(super) fn rewrite(
    graph: &mut Graph,
    context: &mut Context,
    (shapes, known): (&LazyShapes, &HashMap<Output, Forward>),
    id: NodeId,
    report: &mut Report,
) -> bool {
    let gates = pushed(graph, graph.input(id, 0));
    let Some(forward) = known.get(&gates) else { return false };
    match Backward::read(graph, forward, id) {
        Ok(backward) => {
            let added = [(&forward.z_c, backward.d_c_bar), (&forward.z, of(id))]
                .map(|(z, dz)| AddedBias::read(graph, shapes, z, dz));
            backward.replace(graph, context, added, report)
        }
        Err(part) => {
            report.stays(id, Reason::equation(graph, id, part));
            false
        }
    }
}

/// What the two new nodes take and take the place of.
struct Backward {
    end: NodeId,
    r: Output,
    u: Output,
    c: Output,
    h_prev: Output,
    dh: Output,
    d_hr: Output,
    d_c_bar: Output,
    d_h_u: Vec<Output>,
    d_hr_r: Vec<Output>,
    /// The attribute for the candidate's function, if it is not tanh.
    function: Option<(&'static str, Attribute)>,
    /// The nodes before the product, and those after it.
    nodes: [Vec<NodeId>; 2],
}

impl Backward {
    /// Reads a step from its end. An error is the part that has another equation.
    fn read(graph: &Graph, forward: &Forward, end: NodeId) -> Result<Backward, &'static str> {
        let reader = Reader { graph, forward };
        let concat = graph.input(end, 1).node;
        let (dr, du) = (graph.input(concat, 0), graph.input(concat, 1));
        let mut after = vec![end, concat];
        let Update { h_prev, c, dh, through_kept, nodes } =
            reader.update_gate(du).ok_or("gradient of the update gate")?;
        after.extend(nodes);
        let mut before = Vec::new();
        let d_c_bar = reader.candidate(c, dh, &mut before).ok_or("gradient of the candidate")?;
        let (d_h_u, u) = reader.through(through_kept, forward.u, c);
        let d_hr = reader.reset_gate(dr, h_prev, &mut after).ok_or("gradient of the reset gate")?;
        let (d_hr_r, r) = reader.through(d_hr, forward.r, c);
        before.extend(d_h_u.iter().map(|tensor| tensor.node));
        after.extend(d_hr_r.iter().map(|tensor| tensor.node));
        let (u, r) = u.zip(r).ok_or("gradient of the state")?;
        let nodes = [before, after];
        let function = functions::attribute("activation", forward.function, Activation::Tanh);
        Ok(Backward { end, r, u, c, h_prev, dh, d_hr, d_c_bar, d_h_u, d_hr_r, function, nodes })
    }

    fn replace(
        self,
        graph: &mut Graph,
        context: &mut Context,
        added: [AddedBias; 2],
        report: &mut Report,
    ) -> bool {
        let [mut before, mut after] = self.nodes;
        before.extend(&added[0].nodes);
        after.extend(&added[1].nodes);
        let [of_candidate, of_gates] = added;
        let [before, after] = [before, after].map(|mut nodes| {
            nodes.sort_unstable();
            nodes.dedup();
            nodes
        });
        let first = Step {
            root: self.d_c_bar.node,
            nodes: before,
            op: ops::GRU_CELL_GRAD_C,
            inputs: taken([self.u, self.h_prev, self.c, self.dh]),
            attributes: self.function.into_iter().collect(),
            outputs: vec![[vec![self.d_c_bar], of_candidate.same].concat(), Vec::new(), self.d_h_u],
            row_sums: of_candidate.sums,
        };
        if !first.replace(graph, context, report) {
            return false;
        }
        let d_u_bar = Output { node: graph.current(self.d_c_bar).node, index: 1 };
        let inputs = [self.r, self.h_prev, d_u_bar, self.d_hr].map(|input| graph.current(input));
        let inputs = taken(inputs);
        let second = Step {
            root: self.end,
            nodes: after.into_iter().filter(|&id| graph.get(id).is_some()).collect(),
            op: ops::GRU_CELL_GRAD_RU,
            inputs,
            attributes: Vec::new(),
            outputs: vec![[vec![of(self.end)], of_gates.same].concat(), self.d_hr_r],
            row_sums: of_gates.sums,
        };
        second.replace(graph, context, report);
        true
    }
}

struct Reader<'g> {
    graph: &'g Graph,
    forward: &'g Forward,
}

/// The gradient of the update gate.
struct Update {
    h_prev: Output,
    c: Output,
    dh: Output,
    /// `dh`, as the product with `h_prev` takes it.
    through_kept: Output,
    nodes: Vec<NodeId>,
}

impl Reader<'_> {
    /// What is added up, if something is.
    fn before_sum(&self, tensor: Output, nodes: &mut Vec<NodeId>) -> Output {
        self.before(tensor, Some(Size::Gate), nodes)
    }

    fn before(&self, tensor: Output, other: Option<Size>, nodes: &mut Vec<NodeId>) -> Output {
        let size = |tensor| self.forward.is_of_state(tensor).then_some(Size::Gate);
        let broadcasts = Broadcasts { graph: self.graph, size: &size, takes_axes_of_one: true };
        let Some((inner, more)) = broadcasts.before_sum(tensor, Size::Gate, other) else {
            return tensor;
        };
        nodes.extend(more);
        inner
    }

    /// Reads `dh * h_prev + Neg(dh * c)`.
    fn update_gate(&self, du: Output) -> Option<Update> {
        let sum = self.graph.node(du.node);
        let is_sum = matches!(sum.op.as_str(), "AddN" | "Add" | "AddV2");
        let &[left, right] =
            sum.inputs.first_chunk().filter(|_| is_sum && sum.inputs.len() == 2)?;
        let read = |kept: Output, new: Output| {
            let mut nodes = vec![du.node];
            if self.forward.starts_with_zeros() && is_zero(self.graph, kept) {
                let (dh, c) = self.through_new(new, &mut nodes)?;
                let (h_prev, through_kept) = (self.forward.h_prev(), dh);
                return Some(Update { h_prev, c, dh, through_kept, nodes });
            }
            let kept = self.before_sum(kept, &mut nodes);
            let (through_kept, h_prev) = factors_with(self.graph, kept, self.forward.h_prev())?;
            nodes.push(kept.node);
            let dh = self.before_sum(through_kept, &mut nodes);
            let (through_new, c) = self.through_new(new, &mut nodes)?;
            (through_new == dh).then_some(Update { h_prev, c, dh, through_kept, nodes })
        };
        read(left, right).or_else(|| read(right, left))
    }

    /// Reads `Neg(dh * c)`: `dh` and `c`.
    fn through_new(&self, new: Output, nodes: &mut Vec<NodeId>) -> Option<(Output, Output)> {
        let negative = self.before(new, None, nodes);
        let new = self.before_sum(unary(self.graph, negative, "Neg")?, nodes);
        let (through_new, c) = factors_with(self.graph, new, self.forward.c)?;
        nodes.extend([negative.node, new.node]);
        Some((self.before_sum(through_new, nodes), c))
    }

    /// Reads `d_hr * h_prev`: `d_hr`. Zeros stand for both.
    fn reset_gate(&self, dr: Output, h_prev: Output, nodes: &mut Vec<NodeId>) -> Option<Output> {
        if self.forward.starts_with_zeros() && is_zero(self.graph, dr) {
            return Some(dr);
        }
        let product = self.before_sum(dr, nodes);
        nodes.push(product.node);
        other_factor(self.graph, product, h_prev)
    }

    /// Reads `TanhGrad(c, dh * (1 - u))`.
    fn candidate(&self, c: Output, dh: Output, nodes: &mut Vec<NodeId>) -> Option<Output> {
        let uses = self.graph.data_consumers(c.node).map(of);
        let through = uses.filter_map(|d_c_bar| {
            let [value, d] = functions::through(self.graph, d_c_bar, self.forward.function)?;
            (value == c).then_some((d_c_bar, d))
        });
        through.into_iter().find_map(|(d_c_bar, d)| {
            let mut more = vec![d_c_bar.node];
            let product = self.before_sum(d, &mut more);
            let (through, _) = factors_with(self.graph, product, self.forward.rest)?;
            more.push(product.node);
            let is_such = self.before_sum(through, &mut more) == dh;
            is_such.then(|| {
                nodes.extend(more);
                d_c_bar
            })
        })
    }

    /// The products of a gradient with a gate, and the gate as they take it. Without a product it can be
    /// taken from the forward step, if the two are in one frame, as they are where c is.
    fn through(&self, gradient: Output, gate: Output, c: Output) -> (Vec<Output>, Option<Output>) {
        let read = |id: NodeId| {
            let other = other_factor(self.graph, of(id), gradient)?;
            (pushed(self.graph, other) == gate).then_some((of(id), other))
        };
        let found: Vec<_> = takers(self.graph, gradient, "Mul").filter_map(read).collect();
        let known = found.first().map(|&(_, gate)| gate);
        let known = known.or_else(|| (c == self.forward.c).then_some(gate));
        let is_same = |&(_, other): &(Output, Output)| Some(other) == known;
        (found.iter().copied().filter(is_same).map(|(product, _)| product).collect(), known)
    }
}
