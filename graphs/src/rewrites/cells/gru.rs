//! The forward step of `GRUCell`.
//!
//! ```text
//! z = [x | h_prev] @ w_ru [+ b_ru]         r, u = Split(1, Sigmoid(z))
//! c = Tanh([x | r * h_prev] @ w_c [+ b_c])
//! h = u * h_prev + (1 - u) * c
//! ```
//!
//! `Relu` may stand in place of `Tanh`.
//!
//! Where `h_prev` is known to be zero, TensorFlow's optimizers put zeros in place of `r * h_prev`, and leave
//! `u * h_prev` out.
//!
//! TensorFlow 2 has the product, the sum and the activation in one `_FusedMatMul` on processors with AVX-512.
//!
//! All of r, u, c, `h_prev` and h have one shape if `w_ru` is `[rows, 2 * cell]` and `w_c` is `[rows, cell]` with
//! at least two cells: the concatenations have the same number of columns then, so `h_prev` is as wide as
//! `r * h_prev`, and not of one column.

use blockcell_kernels::Activation;

use super::preactivations::Preactivations;
use super::step::{Step, Taken, check_computed_once, taken};
use crate::facts::shapes::LazyShapes;
use crate::graph::reason::Reason;
use crate::graph::{Attribute, DataType, Graph, NodeId, Output, ops};
use crate::reading::constants::{has_zeros, names_columns, scalar};
use crate::reading::functions;
use crate::reading::neighbours::{factors, of, other_factor, parts, takers, unary};

/// Whether a step may begin here: with the `Split` of two gates. Other cells may look like one.
pub(super) fn is_place(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    parts(node) == Some(2)
        && names_columns(graph, node.inputs[0])
        && (unary(graph, node.inputs[1], "Sigmoid").is_some()
            || Preactivations::activated(graph, node.inputs[1], "Sigmoid").is_some())
        && [0, 1]
            .iter()
            .any(|&index| takers(graph, Output { node: id, index }, "Sub").next().is_some())
}

/// The step that begins with a `Split`.
pub(super) struct Forward {
    split: NodeId,
    /// `[r | u]`
    pub(super) gates: Output,
    pub(super) z: Preactivations,
    pub(super) r: Output,
    pub(super) u: Output,
    /// `r * h_prev`, or zeros.
    hr: Output,
    /// `1 - u`
    pub(super) rest: Output,
    pub(super) z_c: Preactivations,
    pub(super) c: Output,
    /// The function that the candidate is.
    pub(super) function: Activation,
    /// `u * h_prev`; None where `h_prev` is known to be zero, and nothing is added to `new`.
    kept: Option<Output>,
    /// `(1 - u) * c`
    new: Output,
    h: Output,
    /// b_ru and b_c.
    biases: [Taken; 2],
}

impl Forward {
    pub(super) fn read(
        graph: &Graph,
        shapes: &LazyShapes,
        split: NodeId,
    ) -> Result<Forward, Reason> {
        let other = |part| Reason::equation(graph, split, part);
        let gates = graph.input(split, 1);
        let z = Preactivations::activated(graph, gates, "Sigmoid");
        let z = z.ok_or_else(|| other("gates"))?;
        let [r, u] = [0, 1].map(|index| Output { node: split, index });
        let (rest, new, c) = takers(graph, u, "Sub")
            .filter(|&rest| scalar(graph, graph.input(rest, 0)) == Some(1.0))
            .find_map(|rest| candidate_beside(graph, of(rest)))
            .ok_or_else(|| other("candidate"))?;
        let (function, z_c) = candidate(graph, c)
            .filter(|(_, z_c)| z_c.x == z.x)
            .ok_or_else(|| other("candidate"))?;
        let hr = z_c.h_prev;
        let starts_with_zeros = has_zeros(graph, z.h_prev) && has_zeros(graph, hr);
        if other_factor(graph, hr, r) != Some(z.h_prev) && !starts_with_zeros {
            return Err(other("reset gate"));
        }
        let sum = ["Add", "AddV2", "AddN"]
            .into_iter()
            .flat_map(|op| takers(graph, new, op))
            .find_map(|sum| {
                let &[left, right] = &graph.node(sum).inputs[..] else { return None };
                let kept = if left == new { right } else { left };
                (other_factor(graph, kept, u) == Some(z.h_prev)).then_some((of(sum), Some(kept)))
            });
        let (h, kept) = sum
            .or_else(|| starts_with_zeros.then_some((new, None)))
            .ok_or_else(|| other("state"))?;
        let biases = [z.b(graph, shapes)?, z_c.b(graph, shapes)?];
        let forward =
            Forward { split, gates, z, r, u, hr, rest, z_c, c, function, kept, new, h, biases };
        if forward.has_one_shape(graph, shapes) { Ok(forward) } else { Err(other("shapes")) }
    }

    /// The state before the step.
    pub(super) fn h_prev(&self) -> Output {
        self.z.h_prev
    }

    /// Whether the state before it is zero, and nothing is left of the products with it.
    pub(super) fn starts_with_zeros(&self) -> bool {
        self.kept.is_none()
    }

    /// Whether a tensor is one of those of the step that all have the shape of the state.
    pub(super) fn is_of_state(&self, tensor: Output) -> bool {
        let all = [self.r, self.u, self.hr, self.rest, self.c, self.new, self.h, self.z.h_prev];
        all.contains(&tensor) || self.kept == Some(tensor)
    }

    /// See the module's documentation. Zeros in place of `r * h_prev` tell nothing of `h_prev`.
    fn has_one_shape(&self, graph: &Graph, shapes: &LazyShapes) -> bool {
        let shapes = shapes.of(graph);
        let gates = shapes.sizes(graph, self.z.w);
        let candidate = shapes.sizes(graph, self.z_c.w);
        let state = shapes.sizes(graph, self.z.h_prev);
        match (gates.as_deref(), candidate.as_deref()) {
            (Some(&[rows, columns]), Some(&[same, cells])) => {
                let fits = state.is_none_or(|sizes| sizes.last() == Some(&cells));
                rows == same && cells >= 2 && columns == 2 * cells && fits
            }
            _ => false,
        }
    }

    /// The step, and what takes its place.
    pub(super) fn step(self, graph: &Graph) -> Result<Step, Reason> {
        let inner = [self.hr, self.rest, self.c, self.new, self.h].map(|tensor| tensor.node);
        let mut nodes = [self.z.nodes(), self.z_c.nodes(), inner.to_vec()].concat();
        nodes.extend([self.gates.node, self.split]);
        nodes.extend(self.kept.map(|kept| kept.node));
        nodes.sort_unstable();
        nodes.dedup();
        nodes.retain(|&id| graph.op(id) != "Const");
        // The candidate is an output of the new node, where it is its own product.
        let mut products = [self.z.products(), &[self.gates.node], self.z_c.products()].concat();
        products.retain(|&id| id != self.c.node);
        check_computed_once(graph, products, &nodes)?;
        let mut inputs = taken([self.z.x, self.z.h_prev, self.z.w, self.z_c.w]);
        inputs.extend(self.biases);
        let outputs = vec![vec![self.r], vec![self.u], vec![self.c], vec![self.h]];
        let is_half = graph.node(self.h.node).data_type() == Some(DataType::HALF);
        let function = functions::attribute("activation", self.function, Activation::Tanh);
        let (op, attributes) = match is_half || function.is_some() {
            true => (ops::HALF_GRU_CELL, function.into_iter().collect()),
            false => (ops::GRU_CELL, vec![("_kernel", Attribute::Text("blockcell".to_owned()))]),
        };
        let (root, row_sums) = (self.h.node, Vec::new());
        Ok(Step { root, nodes, op, inputs, attributes, outputs, row_sums })
    }
}

/// `1 - u`, its product with a candidate, and that candidate.
fn candidate_beside(graph: &Graph, rest: Output) -> Option<(Output, Output, Output)> {
    takers(graph, rest, "Mul").map(of).find_map(|new| {
        let c = factors(graph, new).and_then(|_| other_factor(graph, new, rest))?;
        candidate(graph, c).is_some().then_some((rest, new, c))
    })
}

/// The function that a candidate is, and what it is that of.
fn candidate(graph: &Graph, c: Output) -> Option<(Activation, Preactivations)> {
    let of = |(function, op)| Some((function, Preactivations::activated(graph, c, op)?));
    [(Activation::Tanh, "Tanh"), (Activation::Relu, "Relu")].into_iter().find_map(of)
}
