//! The backward step of `GRUCell`, and of the other forms of `gru.rs`.
//!
//! ```text
//! d_c_bar = TanhGrad(c, dh * (1 - u))          d_h_u = dh * u
//! du = dh * h_prev + Neg(dh * c)
//! d_hr = Slice(MatMul(d_c_bar, w_c^T))         d_hr_r = d_hr * r
//! d_ru_bar = SigmoidGrad([r | u], ConcatV2(d_hr * h_prev, du, 1))
//!            or ConcatV2(SigmoidGrad(r, d_hr * h_prev), SigmoidGrad(u, du), 1)
//! ```
//!
//! The gates have the order of the forward step. Where u is the share of the candidate, u and `1 - u` change places, and
//! `h_prev` and c.
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
    End::read(graph, id).is_some()
}

/// The gradients with respect to two gates, in the order of their columns, and the first gate or both as one tensor.
struct End {
    gates: [Output; 2],
    gradients: [Output; 2],
    nodes: Vec<NodeId>,
}

impl End {
    /// Reads the gradient with respect to the pre-activations of two gates.
    fn read(graph: &Graph, id: NodeId) -> Option<End> {
        let node = graph.node(id);
        if node.op == "SigmoidGrad" {
            let concat = node.inputs[1].node;
            let gradients = both_columns(graph, concat)?;
            return Some(End { gates: [node.inputs[0]; 2], gradients, nodes: vec![id, concat] });
        }
        let is_through =
            |both: &[Output; 2]| both.iter().all(|one| graph.op(one.node) == "SigmoidGrad");
        let both = both_columns(graph, id).filter(is_through)?;
        let [gates, gradients] = [0, 1].map(|n| both.map(|one| graph.input(one.node, n)));
        let nodes = vec![id, both[0].node, both[1].node];
        Some(End { gates, gradients, nodes })
    }
}

/// Two tensors that a node puts side by side.
fn both_columns(graph: &Graph, concat: NodeId) -> Option<[Output; 2]> {
    let node = graph.node(concat);
    let is_such = node.op == "ConcatV2" && node.inputs.len() == 3;
    let &[left, right, axis] = node.inputs.first_chunk().filter(|_| is_such)?;
    names_columns(graph, axis).then_some([left, right])
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
    let Some(end) = End::read(graph, id) else { return false };
    let gates = end.gates.map(|gates| pushed(graph, gates));
    let Some(forward) = known.get(&gates[0]).filter(|forward| forward.is_of(gates)) else {
        return false;
    };
    match Backward::read(graph, forward, id, end) {
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
    /// The attributes of both nodes, where they are not what most cells have.
    attributes: [Vec<(&'static str, Attribute)>; 2],
    /// The nodes before the product, and those after it.
    nodes: [Vec<NodeId>; 2],
}

impl Backward {
    /// Reads a step from its end. An error is the part that has another equation.
    fn read(
        graph: &Graph,
        forward: &Forward,
        id: NodeId,
        end: End,
    ) -> Result<Backward, &'static str> {
        let reader = Reader { graph, forward };
        let [first, second] = end.gradients;
        let (dr, du) = if forward.update_first { (second, first) } else { (first, second) };
        let mut after = end.nodes;
        let Update { h_prev, c, dh, through_kept, nodes } =
            reader.update_gate(du).ok_or("gradient of the update gate")?;
        after.extend(nodes);
        let mut before = Vec::new();
        let (d_c_bar, of_c) =
            reader.candidate(c, dh, &mut before).ok_or("gradient of the candidate")?;
        let (d_h_u, of_h) = reader.through(through_kept, forward.shares()[0], c);
        let u = if forward.u_weighs_c { Some(of_c) } else { of_h };
        let d_hr = reader.reset_gate(dr, h_prev, &mut after).ok_or("gradient of the reset gate")?;
        let (d_hr_r, r) = reader.through(d_hr, forward.r, c);
        before.extend(d_h_u.iter().map(|tensor| tensor.node));
        after.extend(d_hr_r.iter().map(|tensor| tensor.node));
        let (u, r) = u.zip(r).ok_or("gradient of the state")?;
        let nodes = [before, after];
        let function = functions::attribute("activation", forward.function, Activation::Tanh);
        let share = forward.u_weighs_c.then(|| ("u_weighs_c", true.into()));
        let order = forward.update_first.then(|| ("update_first", true.into()));
        let attributes = [function.into_iter().chain(share).collect(), Vec::from_iter(order)];
        let end = id;
        Ok(Backward { end, r, u, c, h_prev, dh, d_hr, d_c_bar, d_h_u, d_hr_r, attributes, nodes })
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
        let [of_c, of_ru] = self.attributes;
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
            attributes: of_c,
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
            attributes: of_ru,
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
        let (graph, forward) = (self.graph, self.forward);
        let size = |tensor| forward.size(tensor);
        // Where one row of a state may stand for all, the sum over rows is no copy.
        let takes_axes_of_one = !forward.z.broadcasts_rows;
        let broadcasts = Broadcasts { graph, size: &size, takes_axes_of_one };
        let others = [other, other.map(|_| Size::Previous)];
        let mut found = others.iter().filter_map(|&other| {
            // Nothing is larger than a gate, so nothing is added up to that.
            broadcasts.before_sum(tensor, Size::Gate, other)
        });
        let Some((inner, more)) = found.next() else { return tensor };
        nodes.extend(more);
        inner
    }

    /// Reads `dh * h_prev + Neg(dh * c)`, or with u as the share of c `dh * c + Neg(dh * h_prev)`.
    fn update_gate(&self, du: Output) -> Option<Update> {
        let sum = self.graph.node(du.node);
        let is_sum = matches!(sum.op.as_str(), "AddN" | "Add" | "AddV2");
        let &[left, right] =
            sum.inputs.first_chunk().filter(|_| is_sum && sum.inputs.len() == 2)?;
        let read = |kept: Output, new: Output| {
            let mut nodes = vec![du.node];
            let (h_prev, c) = (self.forward.h_prev(), self.forward.c);
            let zeros = self.forward.starts_with_zeros() && !self.forward.u_weighs_c;
            if zeros && is_zero(self.graph, kept) {
                let (through_kept, c) = self.negative(new, c, &mut nodes)?;
                let dh = self.before_sum(through_kept, &mut nodes);
                return Some(Update { h_prev, c, dh, through_kept: dh, nodes });
            }
            let u_weighs_c = self.forward.u_weighs_c;
            let (plain, negated) = if u_weighs_c { (c, h_prev) } else { (h_prev, c) };
            let kept = self.before_sum(kept, &mut nodes);
            let (through_plain, plain) = factors_with(self.graph, kept, plain)?;
            nodes.push(kept.node);
            let (through_negated, negated) = self.negative(new, negated, &mut nodes)?;
            let dh = self.before_sum(through_plain, &mut nodes);
            let is_same = self.before_sum(through_negated, &mut nodes) == dh;
            let (h_prev, c, through_kept) = match u_weighs_c {
                true => (negated, plain, through_negated),
                false => (plain, negated, through_plain),
            };
            is_same.then_some(Update { h_prev, c, dh, through_kept, nodes })
        };
        read(left, right).or_else(|| read(right, left))
    }

    /// Reads `Neg(dh * factor)`: `dh` as the product takes it, and the factor.
    fn negative(
        &self,
        new: Output,
        factor: Output,
        nodes: &mut Vec<NodeId>,
    ) -> Option<(Output, Output)> {
        let negative = self.before(new, None, nodes);
        let new = self.before_sum(unary(self.graph, negative, "Neg")?, nodes);
        nodes.extend([negative.node, new.node]);
        factors_with(self.graph, new, factor)
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

    /// Reads `TanhGrad(c, dh * share)`: that, and the share of the candidate.
    fn candidate(
        &self,
        c: Output,
        dh: Output,
        nodes: &mut Vec<NodeId>,
    ) -> Option<(Output, Output)> {
        let uses = self.graph.data_consumers(c.node).map(of);
        let through = uses.filter_map(|d_c_bar| {
            let [value, d] = functions::through(self.graph, d_c_bar, self.forward.function)?;
            (value == c).then_some((d_c_bar, d))
        });
        through.into_iter().find_map(|(d_c_bar, d)| {
            let mut more = vec![d_c_bar.node];
            let product = self.before_sum(d, &mut more);
            let (through, share) = factors_with(self.graph, product, self.forward.shares()[1])?;
            more.push(product.node);
            let is_such = self.before_sum(through, &mut more) == dh;
            is_such.then(|| {
                nodes.extend(more);
                (d_c_bar, share)
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
