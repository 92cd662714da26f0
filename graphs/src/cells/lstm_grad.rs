//! The backward step of `BasicLSTMCell` and `LSTMCell` without peepholes.
//!
//! ```text
//! do  = SigmoidGrad(o, dh * co)          dcs = TanhGrad(co, dh * o) + others, if there are any
//! di  = SigmoidGrad(i, dcs * ci)         dci = TanhGrad(ci, dcs * i)
//! df  = SigmoidGrad(f, dcs * cs_prev)    dcs_prev = dcs * f
//! dicfo = ConcatV2(di, dci, df, do, 1)
//! ```
//!
//! In the loop of a gradient, what the step takes from the forward step comes from stacks. Where
//! TensorFlow does not know that shapes are equal, it adds up what was broadcast ([`Broadcasts`]).
//! Where `cs_prev` is known to be zero, its optimizers put zeros in place of `dcs * cs_prev`.

use super::broadcasts::{Broadcasts, Size};
use super::equations::{factors, names_columns, of, other_factor, takers};
use super::lstm::{Forward, Saved};
use super::step::{Context, Step};
use crate::attribute::Attribute;
use crate::constants::is_zero;
use crate::graph::{Graph, NodeId, Output};
use crate::ops;
use crate::reason::Reason;
use crate::report::Report;
use crate::stacks::pushed;

/// A forward step, and what a backward step takes from it.
pub(super) struct Known {
    forward: Forward,
    saved: Saved,
}

/// The forward steps that begin at some places, as far as backward steps may take from them.
pub(super) fn known(graph: &Graph, places: &[NodeId]) -> Vec<Known> {
    let known = |&split: &NodeId| {
        let forward = Forward::read(graph, split).ok()?;
        Some(Known { saved: forward.saved()?, forward })
    };
    places.iter().filter_map(known).collect()
}

/// Whether a node concatenates what could be the gradients of four pre-activations.
pub(super) fn looks_like_one(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    let is = |input: usize, op: &str| graph.op(node.inputs[input].node) == op;
    node.op == "ConcatV2"
        && node.inputs.len() == 5
        && is(0, "SigmoidGrad")
        && is(1, "TanhGrad")
        && names_columns(graph, node.inputs[4])
}

/// Replaces the step that ends with a concatenation. Returns whether it did.
pub(super) fn rewrite(
    graph: &mut Graph,
    context: &mut Context,
    known: &[Known],
    id: NodeId,
    report: &mut Report,
) -> bool {
    let i = pushed(graph, graph.input(graph.input(id, 0).node, 0));
    let Some(known) = known.iter().find(|known| known.saved.i == i) else { return false };
    match Reader::new(graph, known).read(id) {
        Ok(step) => step.replace(graph, context, report),
        Err(part) => {
            let node = graph.node(id).name.clone();
            report.stays(id, Reason::Equation { part, node });
            false
        }
    }
}

/// Reads a step from its end. An error is the part that has another equation.
struct Reader<'g> {
    graph: &'g Graph,
    known: &'g Known,
    /// The nodes that were read.
    nodes: Vec<NodeId>,
    /// Whether what gates take was added up to their shape wherever the state could be larger.
    sums_to_gates: bool,
}

/// The gradient of a pre-activation.
struct Slope {
    /// The gate, as this step takes it.
    gate: Output,
    /// The gradient of the gate.
    gradient: Output,
}

impl<'g> Reader<'g> {
    fn new(graph: &'g Graph, known: &'g Known) -> Reader<'g> {
        Reader { graph, known, nodes: Vec::new(), sums_to_gates: true }
    }

    fn read(mut self, concat: NodeId) -> Result<Step, &'static str> {
        let (graph, saved) = (self.graph, &self.known.saved);
        let &[di, dci, df, d_o] = graph.node(concat).inputs.first_chunk().expect("there are five");
        let df = self.before_sum(df, Size::Gate, None);
        let i = self.slope(di, "SigmoidGrad", Some(saved.i))?;
        let ci = self.slope(dci, "TanhGrad", Some(saved.ci))?;
        let f = self.slope(df, "SigmoidGrad", saved.f)?;
        let o = self.slope(d_o, "SigmoidGrad", Some(saved.o))?;
        let through_o = self.before_sum(o.gradient, Size::Gate, Some(Size::State));
        let (dh, co) =
            self.factors(through_o, Some(saved.co)).ok_or("gradient of the output gate")?;
        let through_i = self.before_sum(i.gradient, Size::Gate, Some(Size::Gate));
        let through_ci = self.before_sum(ci.gradient, Size::Gate, Some(Size::Gate));
        let dnew = other_factor(graph, through_i, ci.gate)
            .filter(|&dnew| other_factor(graph, through_ci, i.gate) == Some(dnew))
            .ok_or("gradient of the cell state")?;
        let dcs = self.before_sum(dnew, Size::Gate, Some(Size::State));
        let (dkept, cs_prev) = self.kept(f.gradient, dcs).ok_or("gradient of the forget gate")?;
        let (through_h, cs_grad) =
            state_gradient(graph, dcs, co).ok_or("gradient of the cell state")?;
        let through_co = graph.input(through_h.node, 1);
        let through_co = self.before_sum(through_co, Size::State, Some(Size::Gate));
        if other_factor(graph, through_co, o.gate) != Some(dh) {
            return Err("gradient of the output");
        }
        let previous: Vec<_> = takers(graph, dkept, "Mul")
            .map(of)
            .filter(|&product| other_factor(graph, product, dkept) == Some(f.gate))
            .collect();
        let tensors = [through_o, through_i, through_ci, dcs, through_h, through_co, of(concat)];
        self.nodes.extend(tensors.iter().chain(&previous).map(|tensor| tensor.node));
        let gates = [i.gate, f.gate, o.gate, ci.gate];
        let outputs = vec![previous, vec![of(concat)]];
        Ok(self.step(concat, [&gates, &[co]], cs_prev, [cs_grad, vec![dh]], outputs))
    }

    fn step(
        mut self,
        concat: NodeId,
        saved: [&[Output]; 2],
        cs_prev: Option<Output>,
        [cs_grad, h_grad]: [Vec<Output>; 2],
        outputs: Vec<Vec<Output>>,
    ) -> Step {
        self.nodes.sort_unstable();
        self.nodes.dedup();
        self.nodes.retain(|&id| self.graph.op(id) != "Const");
        let count = |number: usize| Attribute::Int(i64::try_from(number).expect("a few"));
        let attributes = vec![
            ("C", count(usize::from(cs_prev.is_some()))),
            ("A", count(cs_grad.len())),
            ("H", count(h_grad.len())),
            ("sums_to_gates", Attribute::Bool(self.sums_to_gates)),
        ];
        let mut inputs = saved.concat();
        inputs.extend(cs_prev);
        inputs.extend(cs_grad);
        inputs.extend(h_grad);
        let op = ops::LSTM_CELL_GRAD;
        Step { root: concat, nodes: self.nodes, op, inputs, attributes, outputs }
    }

    /// Reads `SigmoidGrad(gate, gradient)` or `TanhGrad(gate, gradient)`.
    fn slope(
        &mut self,
        tensor: Output,
        op: &str,
        gate: Option<Output>,
    ) -> Result<Slope, &'static str> {
        let node = self.graph.node(tensor.node);
        self.nodes.push(tensor.node);
        match node.inputs[..] {
            [value, gradient] if node.op == op && Some(pushed(self.graph, value)) == gate => {
                Ok(Slope { gate: value, gradient })
            }
            _ => Err("gradients of the gates"),
        }
    }

    /// The gradient of what the forget gate keeps, and `cs_prev`, from the gradient of that gate.
    fn kept(&mut self, gradient: Output, dcs: Output) -> Option<(Output, Option<Output>)> {
        let Some(cs_prev) = self.known.saved.cs_prev else {
            return is_zero(self.graph, gradient).then_some((dcs, None));
        };
        let product = self.before_sum(gradient, Size::Gate, Some(Size::Previous));
        self.nodes.push(product.node);
        let (dkept, cs_prev) = self.factors(product, Some(cs_prev))?;
        let is_of_state = self.before_sum(dkept, Size::State, Some(Size::Gate)) == dcs;
        is_of_state.then_some((dkept, Some(cs_prev)))
    }

    /// The factors of a product. The second is the one that the forward step computed.
    fn factors(&self, product: Output, saved: Option<Output>) -> Option<(Output, Output)> {
        let [left, right] = factors(self.graph, product)?;
        let is_saved = |tensor| Some(pushed(self.graph, tensor)) == saved;
        let in_order = is_saved(right).then_some((left, right));
        in_order.or_else(|| is_saved(left).then_some((right, left)))
    }

    /// [`Broadcasts::before_sum`], where there is such a sum.
    fn before_sum(&mut self, tensor: Output, own: Size, other: Option<Size>) -> Output {
        let size = |tensor| self.known.forward.size(tensor);
        let broadcasts = Broadcasts { graph: self.graph, size: &size };
        if let Some((inner, nodes)) = broadcasts.before_sum(tensor, own, other) {
            self.nodes.extend(nodes);
            return inner;
        }
        let may_be_larger = matches!(other, Some(Size::State | Size::Previous));
        self.sums_to_gates &= !(own == Size::Gate && may_be_larger);
        tensor
    }
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
