//! The forward step of `LayerNormBasicLSTMCell`.
//!
//! ```text
//! i_bar, ci_bar, f_bar, o_bar = Split(1, [x | h_prev] @ w)                   in any order
//! i  = Sigmoid(norm(i_bar))                 f  = Sigmoid(norm(f_bar) [+ forget_bias])
//! ci = Tanh(norm(ci_bar))                   cs = norm(i * ci + f * cs_prev)
//! o  = Sigmoid(norm(o_bar))                 h  = o * Tanh(cs)
//! ```
//!
//! What `norm` is made of is in [`Normalization`]. Each has a scale and an offset of its own. As with other cells, what a gate
//! is multiplied by tells which one it is. Gradients take tensors in between: then the step stays.

use blockcell_kernels::Activation;

use super::lstm::gate_order;
use super::preactivations::Preactivations;
use super::step::{Step, check_computed_once, taken};
use crate::facts::shapes::LazyShapes;
use crate::graph::reason::Reason;
use crate::graph::{DataType, Graph, NodeId, Output, ops};
use crate::reading::constants::names_columns;
use crate::reading::functions::{self, Function};
use crate::reading::neighbours::{of, other_factor, parts, takers};
use crate::reading::normalizations::{FUSED, Normalization};

/// Whether a step may begin here: with the `Split` of pre-activations that are normalized.
pub(super) fn is_place(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    let is_normalized = |index| {
        let bar = Output { node: id, index };
        ["Mean", FUSED].iter().any(|op| takers(graph, bar, op).next().is_some())
    };
    parts(node) == Some(4) && names_columns(graph, node.inputs[0]) && (0..4).all(is_normalized)
}

/// A function of a normalized tensor.
struct Normal {
    /// The place of the pre-activation among those of the step.
    place: usize,
    norm: Normalization,
    function: Function,
}

impl Normal {
    /// All of one pre-activation that are this function.
    fn all(graph: &Graph, split: NodeId, place: usize, of: &[Activation]) -> Vec<Normal> {
        let norms = Normalization::all(graph, Output { node: split, index: place });
        let normal = |norm: Normalization| {
            let functions = of.iter().flat_map(|&of| Function::of(graph, norm.y, of));
            let with = |function| Normal { place, norm: norm.clone(), function };
            functions.map(with).collect::<Vec<_>>()
        };
        norms.into_iter().flat_map(normal).collect()
    }
}

/// The step that begins with a `Split`.
pub(super) struct Forward {
    split: NodeId,
    z: Preactivations,
    /// i, ci, f and o.
    gates: [Normal; 4],
    cs_prev: Output,
    state: Normalization,
    co: Output,
    h: Output,
    /// The sum of what is new and what is kept, and these products.
    sums: Vec<NodeId>,
}

impl Forward {
    pub(super) fn read(
        graph: &Graph,
        shapes: &LazyShapes,
        split: NodeId,
    ) -> Result<Forward, Reason> {
        let other = |part| Reason::equation(graph, split, part);
        let z = Preactivations::read(graph, graph.input(split, 1))
            .filter(|z| z.has_no_bias() && z.w_h.is_none())
            .ok_or_else(|| other("pre-activations"))?;
        let forward =
            Forward::of_gates(graph, split, z).ok_or_else(|| other("normalized gates"))?;
        match forward.is_certain(graph, shapes) {
            true => Ok(forward),
            false => Err(other("shapes or numbers of the normalizations")),
        }
    }

    fn of_gates(graph: &Graph, split: NodeId, z: Preactivations) -> Option<Forward> {
        let gates =
            [0, 1, 2, 3].map(|place| Normal::all(graph, split, place, &[Activation::Sigmoid]));
        let states = [Activation::Tanh, Activation::Relu];
        let inputs = [0, 1, 2, 3].map(|place| Normal::all(graph, split, place, &states));
        let inputs = inputs.iter().flatten();
        let found = inputs.flat_map(|ci| {
            let products = takers(graph, ci.function.tensor, "Mul").map(of);
            products.filter_map(|new| {
                let other = other_factor(graph, new, ci.function.tensor)?;
                let i = gate_of(&gates, other).filter(|i| i.place != ci.place)?;
                Forward::of_state(graph, (split, z.clone()), &gates, (i, ci, new))
            })
        });
        found.into_iter().next()
    }

    fn of_state(
        graph: &Graph,
        (split, z): (NodeId, Preactivations),
        gates: &[Vec<Normal>; 4],
        (i, ci, new): (&Normal, &Normal, Output),
    ) -> Option<Forward> {
        let sums = ["Add", "AddV2", "AddN"].into_iter().flat_map(|op| takers(graph, new, op));
        let (sum, kept, f, cs_prev) = sums
            .filter_map(|sum| {
                let &[left, right] = &graph.node(sum).inputs[..] else { return None };
                let kept = if left == new { right } else { left };
                let (f, cs_prev) = gates
                    .iter()
                    .flatten()
                    .find_map(|f| Some((f, other_factor(graph, kept, f.function.tensor)?)))?;
                Some((sum, kept, f, cs_prev))
            })
            .next()?;
        let function = ci.function.activation;
        let (state, co, o, h) =
            Normalization::all(graph, of(sum)).into_iter().find_map(|state| {
                let (co, o, h) = Function::of(graph, state.y, function).find_map(|co| {
                    let mut products = takers(graph, co.tensor, "Mul").map(of);
                    products.find_map(|h| {
                        let o = gate_of(gates, other_factor(graph, h, co.tensor)?)?;
                        Some((co.tensor, o, h))
                    })
                })?;
                Some((state, co, o, h))
            })?;
        let all = [i, ci, f, o];
        let is_each = (0..4).all(|place| all.iter().any(|one| one.place == place));
        let copy = |normal: &Normal| Normal {
            place: normal.place,
            norm: normal.norm.clone(),
            function: normal.function.clone(),
        };
        is_each.then(|| Forward {
            split,
            z,
            gates: all.map(copy),
            cs_prev,
            state,
            co,
            h,
            sums: vec![sum, kept.node, new.node],
        })
    }

    /// Whether scales and offsets are certainly vectors of a number for each cell, and only the forget gate has a bias.
    fn is_certain(&self, graph: &Graph, shapes: &LazyShapes) -> bool {
        let shapes = shapes.of(graph);
        let is_float = graph.node(self.split).data_type() == Some(DataType::FLOAT);
        let Some(&[_, columns]) = shapes.sizes(graph, self.z.w).as_deref() else { return false };
        let norms = || self.norms();
        let is_vector = |tensor| matches!(shapes.sizes(graph, tensor).as_deref(), Some(&[cells]) if cells.checked_mul(4) == Some(columns));
        let first = self.gates[0].norm.epsilon;
        let [i, ci, _, o] = &self.gates;
        let biases = [i, ci, o].map(|gate| gate.norm.bias);
        is_float
            && norms().all(|norm| is_vector(norm.gamma) && is_vector(norm.beta))
            && norms().all(|norm| norm.epsilon.to_bits() == first.to_bits())
            && biases.iter().chain([&self.state.bias]).all(Option::is_none)
    }

    fn norms(&self) -> impl Iterator<Item = &Normalization> {
        self.gates.iter().map(|gate| &gate.norm).chain([&self.state])
    }

    /// The step, and what takes its place.
    pub(super) fn step(self, graph: &Graph) -> Result<Step, Reason> {
        let mut nodes =
            [&self.z.nodes()[..], &self.sums, &[self.split, self.co.node, self.h.node]].concat();
        nodes.extend(self.norms().flat_map(|norm| &norm.nodes));
        nodes.extend(self.gates.iter().flat_map(|gate| &gate.function.nodes));
        nodes.sort_unstable();
        nodes.dedup();
        nodes.retain(|&id| graph.op(id) != "Const");
        let cs = self.state.y;
        // All are computed in the new node, which has no outputs for them.
        let inner: Vec<_> =
            nodes.iter().copied().filter(|&id| id != cs.node && id != self.h.node).collect();
        check_computed_once(graph, inner, &nodes)?;
        let order = self.gates.each_ref().map(|gate| gate.place);
        let function = self.gates[1].function.activation;
        let mut attributes = vec![
            ("num_norms", self.norms().count().into()),
            ("num_cs_prev", 1usize.into()),
            ("forget_bias", self.gates[2].norm.bias.unwrap_or(0.0).into()),
            ("epsilon", self.state.epsilon.into()),
            ("gate_order", gate_order(order)),
            ("state_axis", crate::graph::Attribute::Int(self.state.axis)),
        ];
        attributes.extend(functions::attribute("activation", function, Activation::Tanh));
        let mut inputs = taken([self.z.x, self.z.h_prev, self.z.w]);
        inputs.extend(taken(self.norms().map(|norm| norm.gamma)));
        inputs.extend(taken(self.norms().map(|norm| norm.beta)));
        inputs.extend(taken([self.cs_prev]));
        let outputs = vec![vec![cs], vec![self.h]];
        let (root, op, row_sums) = (self.h.node, ops::NORMALIZED_LSTM_CELL, Vec::new());
        Ok(Step { root, nodes, op, inputs, attributes, outputs, row_sums })
    }
}

/// The gate that a tensor is.
fn gate_of(gates: &[Vec<Normal>; 4], tensor: Output) -> Option<&Normal> {
    gates.iter().flatten().find(|gate| gate.function.tensor == tensor)
}
