//! The backward step of `BasicLSTMCell` and `LSTMCell`.
//!
//! ```text
//! do  = SigmoidGrad(o, dh * co)
//! dcs = TanhGrad(co, dh * o) [+ do * wco] + others, if there are any
//! [dcs = Select(Minimum(state, k) >= -k, dcs, 0); dcs = Select(state <= k, dcs, 0)]
//! di  = SigmoidGrad(i, dcs * ci)         dci = TanhGrad(ci, dcs * i)
//! df  = SigmoidGrad(f, dcs * cs_prev)    dcs_prev = dcs * f [, di * wci, df * wcf]
//! dicfo = ConcatV2(di, dci, df, do, 1)                     in the order of the forward step
//! [dwci = Sum(di * cs_prev, 0)           dwcf = Sum(df * cs_prev, 0)      dwco = Sum(do * cs, 0)]
//! ```
//!
//! In the loop of a gradient, what the step takes from the forward step comes from stacks or lists. Where
//! TensorFlow does not know that shapes are equal, it adds up what was broadcast ([`Broadcasts`]).
//! Where `cs_prev` is known to be zero, its optimizers put zeros in place of `dcs * cs_prev`. Where nobody has
//! read the output, as may be in a last step, there are zeros in place of `do`, and `dcs` is the others.
//! What peepholes and a clip add, in brackets, is read in `lstm_grad_parts.rs`.

use std::collections::HashMap;

use blockcell_kernels::Activation;

use super::added_biases::AddedBias;
use super::broadcasts::{Broadcasts, Size};
use super::lstm::{Forward, gate_order};
use super::step::{Step, taken};
use crate::facts::shapes::LazyShapes;
use crate::graph::reason::Reason;
use crate::graph::{Graph, NodeId, Output, ops};
use crate::reading::constants::{has_zeros, is_zero, names_columns};
use crate::reading::functions;
use crate::reading::neighbours::{of, other_factor, takers};
use crate::reading::stacks::{factors_with, pushed};

/// Whether a node concatenates what could be the gradients of four pre-activations.
pub(super) fn looks_like_one(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    node.op == "ConcatV2"
        && node.inputs.len() == 5
        && (0..4).any(|place| gate(graph, id, place).is_some())
        && node.inputs[..4].iter().any(|slope| functions::is_grad_of_state(graph, slope.node))
        && names_columns(graph, node.inputs[4])
}

/// The gate at a place, as a part of a concatenation takes it: `SigmoidGrad`, or a sum of that.
fn gate(graph: &Graph, concat: NodeId, place: usize) -> Option<Output> {
    let mut node = graph.node(graph.input(concat, place).node);
    for op in ["Reshape", "Sum"] {
        if node.op == op {
            node = graph.node(node.inputs[0].node);
        }
    }
    (node.op == "SigmoidGrad").then(|| node.inputs[0])
}

/// The step that ends with a concatenation, if it belongs to one of the forward steps, which are known by their input
/// gates.
pub(super) fn read(
    graph: &Graph,
    shapes: &LazyShapes,
    known: &HashMap<Output, Forward>,
    id: NodeId,
) -> Option<Result<Step, Reason>> {
    let at = |place| {
        let forward = known.get(&pushed(graph, gate(graph, id, place)?))?;
        (forward.order[0] == place).then_some(forward)
    };
    let forward = (0..4).find_map(at)?;
    let added = AddedBias::read(graph, shapes, &forward.z, of(id));
    let step = Reader::new(graph, forward).read(id, added);
    Some(step.map_err(|part| Reason::equation(graph, id, part)))
}

/// Reads a step from its end. An error is the part that has another equation.
pub(super) struct Reader<'g> {
    pub(super) graph: &'g Graph,
    pub(super) forward: &'g Forward,
    /// The nodes that were read.
    pub(super) nodes: Vec<NodeId>,
    /// Whether what gates take was added up to their shape wherever the state could be larger.
    sums_to_gates: bool,
}

/// The gradient of a pre-activation.
pub(super) struct Slope {
    /// That gradient.
    pub(super) tensor: Output,
    /// The gate, as this step takes it.
    pub(super) gate: Output,
    /// The gradient of the gate.
    gradient: Output,
}

/// What a step takes beside the gates.
struct Inputs {
    co: Output,
    cs_prev: Option<Output>,
    cs_grad: Vec<Output>,
    h_grad: Option<Output>,
    peepholes: Option<Peepholes>,
}

/// What a step has to do with peepholes.
#[derive(Debug, Default)]
pub(super) struct Peepholes {
    /// The weights of the input, forget and output gate, or of that alone, as the step takes them.
    pub(super) weights: Vec<Output>,
    /// The cell state, if the gradient of the output gate's weights takes it.
    pub(super) cs: Option<Output>,
    /// `di * wci` and `df * wcf`.
    pub(super) through: Vec<Vec<Output>>,
    /// What these are added up to, if they are.
    pub(super) summed_to: Option<Size>,
    /// With respect to the weights.
    pub(super) gradients: Vec<Vec<Output>>,
}

/// What comes through the output of a step.
struct ThroughOutput {
    o: Output,
    co: Output,
    /// None if nobody has read the output.
    dh: Option<Output>,
    /// The other summands of the gradient of the cell state.
    cs_grad: Vec<Output>,
}

impl<'g> Reader<'g> {
    fn new(graph: &'g Graph, forward: &'g Forward) -> Reader<'g> {
        Reader { graph, forward, nodes: Vec::new(), sums_to_gates: true }
    }

    fn read(mut self, concat: NodeId, added: AddedBias) -> Result<Step, &'static str> {
        let (graph, forward) = (self.graph, self.forward);
        let ([i, f, ci], o) = self.slopes(concat)?;
        let gate = forward.gate_size();
        let through_i = self.before_sum(i.gradient, gate, Some(Size::Gate));
        let through_ci = self.before_sum(ci.gradient, Size::Gate, Some(gate));
        let dnew = other_factor(graph, through_i, ci.gate)
            .filter(|&dnew| other_factor(graph, through_ci, i.gate) == Some(dnew))
            .ok_or("gradient of the cell state")?;
        let dstate = self.before_sum(dnew, gate, Some(Size::State));
        let (dkept, cs_prev) =
            self.kept(f.gradient, dstate).ok_or("gradient of the forget gate")?;
        let dcs = self.before_clip(dstate).ok_or("gradient of the clipped state")?;
        let mut through = self.output(o.as_ref(), dcs, &i)?;
        let peepholes = match (forward.peepholes.is_empty(), &o) {
            (true, _) => None,
            (false, None) => return Err("peepholes"),
            (false, Some(o)) => {
                let found = self.peepholes([&i, &f, o], &mut through.cs_grad);
                Some(found.ok_or("peepholes")?)
            }
        };
        let previous: Vec<_> = takers(graph, dkept, "Mul")
            .map(of)
            .filter(|&product| other_factor(graph, product, dkept) == Some(f.gate))
            .collect();
        let tensors = [through_i, through_ci, of(concat)];
        self.nodes.extend(tensors.iter().chain(&previous).map(|tensor| tensor.node));
        let ThroughOutput { o, co, dh, cs_grad } = through;
        let gates = [i.gate, f.gate, o, ci.gate];
        self.nodes.extend(added.nodes);
        let outputs = vec![previous, [vec![of(concat)], added.same].concat()];
        let inputs = Inputs { co, cs_prev, cs_grad, h_grad: dh, peepholes };
        Ok(Step { row_sums: added.sums, ..self.step(gates, inputs, outputs) })
    }

    /// Reads the gradients of the output gate and the cell state, as far as they come through the output.
    fn output(
        &mut self,
        o: Option<&Slope>,
        dcs: Output,
        i: &Slope,
    ) -> Result<ThroughOutput, &'static str> {
        let (graph, forward) = (self.graph, self.forward);
        let Some(o) = o else {
            // The forward step has what is missing, if the two are in one frame.
            let is_near = i.gate == forward.i.tensor;
            let (o, co, cs_grad) = (forward.o.tensor, forward.co, vec![dcs]);
            let through = is_near.then_some(ThroughOutput { o, co, dh: None, cs_grad });
            return through.ok_or("gradient of the output gate");
        };
        let gate = forward.gate_size();
        let through_o = self.before_sum(o.gradient, gate, Some(Size::State));
        let (dh, co) =
            factors_with(graph, through_o, forward.co).ok_or("gradient of the output gate")?;
        let (through_h, cs_grad) =
            state_gradient(graph, dcs, co, forward.function).ok_or("gradient of the cell state")?;
        let [_, through_co] = functions::through(graph, through_h, forward.function)
            .ok_or("gradient of the output")?;
        let through_co = self.before_sum(through_co, Size::State, Some(gate));
        if other_factor(graph, through_co, o.gate) != Some(dh) {
            return Err("gradient of the output");
        }
        let tensors = [through_o, dcs, through_h, through_co];
        self.nodes.extend(tensors.map(|tensor| tensor.node));
        Ok(ThroughOutput { o: o.gate, co, dh: Some(dh), cs_grad })
    }

    fn step(mut self, gates: [Output; 4], from: Inputs, mut outputs: Vec<Vec<Output>>) -> Step {
        self.nodes.sort_unstable();
        self.nodes.dedup();
        self.nodes.retain(|&id| self.graph.op(id) != "Const");
        let clip = self.forward.clip.map_or(-1.0, |clip| clip.bound);
        let root = outputs[1][0].node;
        let Peepholes { weights, cs, through, summed_to, gradients } =
            from.peepholes.unwrap_or_default();
        let mut attributes = vec![
            ("num_cs_prev", from.cs_prev.iter().len().into()),
            ("num_cs_grad", from.cs_grad.len().into()),
            ("num_h_grad", from.h_grad.iter().len().into()),
            ("num_peepholes", weights.len().into()),
            ("num_through_peepholes", through.len().into()),
            ("num_cs", cs.iter().len().into()),
            ("sums_to_gates", self.sums_to_gates.into()),
            ("cell_clip", clip.into()),
            ("gate_order", gate_order(self.forward.order)),
        ];
        attributes.extend(self.forward.function_attribute());
        attributes.extend(summed_to.map(|size| match size {
            Size::Previous => ("sums_to_cs_prev", true.into()),
            _ => ("sums_to_product", true.into()),
        }));
        let mut inputs = [&gates[..], &[from.co]].concat();
        inputs.extend(from.cs_prev);
        inputs.extend(from.cs_grad);
        inputs.extend(from.h_grad);
        inputs.extend(weights);
        inputs.extend(cs);
        outputs.extend(through.into_iter().chain(gradients));
        let inputs = taken(inputs);
        let (nodes, op) = (self.nodes, ops::LSTM_CELL_GRAD);
        Step { root, nodes, op, inputs, attributes, outputs, row_sums: Vec::new() }
    }

    /// The gradients of the pre-activations of i, f and ci, and of o. That one is zero where nobody has read
    /// the output.
    fn slopes(&mut self, concat: NodeId) -> Result<([Slope; 3], Option<Slope>), &'static str> {
        let forward = self.forward;
        let [di, dci, df, d_o] = forward.order.map(|place| self.graph.input(concat, place));
        let df = self.before_sum(df, Size::Gate, None);
        let [di, df] = [di, df].map(|slope| self.before_peephole(slope, Size::Seen));
        let slopes = [
            self.slope(di, Activation::Sigmoid, Some(forward.i.tensor))?,
            self.slope(df, Activation::Sigmoid, forward.f())?,
            self.slope(dci, forward.function, Some(forward.ci))?,
        ];
        if has_zeros(self.graph, d_o) || self.graph.op(d_o.node) == "ZerosLike" {
            return Ok((slopes, None));
        }
        let d_o = self.before_peephole(d_o, Size::State);
        Ok((slopes, Some(self.slope(d_o, Activation::Sigmoid, Some(forward.o.tensor))?)))
    }

    /// Reads `SigmoidGrad(gate, gradient)`, or the same of another function.
    fn slope(
        &mut self,
        tensor: Output,
        function: Activation,
        gate: Option<Output>,
    ) -> Result<Slope, &'static str> {
        self.nodes.push(tensor.node);
        match functions::through(self.graph, tensor, function) {
            Some([value, gradient]) if Some(pushed(self.graph, value)) == gate => {
                Ok(Slope { tensor, gate: value, gradient })
            }
            _ => Err("gradients of the gates"),
        }
    }

    /// The gradient of what the forget gate keeps, and `cs_prev`, from the gradient of that gate.
    fn kept(&mut self, gradient: Output, dstate: Output) -> Option<(Output, Option<Output>)> {
        let Some(cs_prev) = self.forward.cs_prev else {
            return is_zero(self.graph, gradient).then_some((dstate, None));
        };
        let gate = self.forward.gate_size();
        let product = self.before_sum(gradient, gate, Some(Size::Previous));
        self.nodes.push(product.node);
        let (dkept, cs_prev) = factors_with(self.graph, product, cs_prev)?;
        let is_of_state = self.before_sum(dkept, Size::State, Some(gate)) == dstate;
        is_of_state.then_some((dkept, Some(cs_prev)))
    }

    /// [`Self::sum`], where there is such a sum, and the tensor itself elsewhere.
    pub(super) fn before_sum(&mut self, tensor: Output, own: Size, other: Option<Size>) -> Output {
        if let Some((inner, nodes)) = self.sum(tensor, own, other) {
            self.nodes.extend(nodes);
            return inner;
        }
        let may_be_larger = matches!(other, Some(Size::State | Size::Previous | Size::Seen));
        self.sums_to_gates &= !(own == Size::Gate && may_be_larger);
        tensor
    }

    /// [`Broadcasts::before_sum`]. Without a state before it, all sizes of a step are one.
    pub(super) fn sum(
        &self,
        tensor: Output,
        own: Size,
        other: Option<Size>,
    ) -> Option<(Output, [NodeId; 2])> {
        let forward = self.forward;
        let of_step = |size| match size {
            Size::Previous | Size::State | Size::Seen if forward.cs_prev.is_none() => Size::Gate,
            size => size,
        };
        let takes_axes_of_one = forward.peepholes.is_empty();
        let size = |tensor| self.forward.size(self.graph, tensor).map(of_step);
        let broadcasts = Broadcasts { graph: self.graph, size: &size, takes_axes_of_one };
        broadcasts.before_sum(tensor, of_step(own), other.map(of_step))
    }
}

/// What comes through the output, and the other summands of the gradient of the cell state.
fn state_gradient(
    graph: &Graph,
    dcs: Output,
    co: Output,
    function: Activation,
) -> Option<(Output, Vec<Output>)> {
    let is_through_h = |tensor: Output| {
        functions::through(graph, tensor, function).is_some_and(|[value, _]| value == co)
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
