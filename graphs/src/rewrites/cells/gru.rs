//! The forward step of `GRUCell`, and of GRU cells that people write themselves.
//!
//! ```text
//! z = [x | h_prev] @ w_ru [+ b_ru]         r, u = Split(1, Sigmoid(z)), or the Sigmoids of Split(1, z), in any order
//! c = Tanh([x | r * h_prev] @ w_c [+ b_c])
//! h = u * h_prev + (1 - u) * c             or (1 - u) * h_prev + u * c
//! ```
//!
//! Both may be sums of two products: `x @ w_ru + h_prev @ w_ru_h` and `x @ w_c + (r * h_prev) @ w_c_h`, see
//! `preactivations.rs`. What a gate is multiplied by tells which one it is.
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
//! `r * h_prev`, and not of one column. Weights of its own tell its width: `[cell, 2 * cell]` and `[cell, cell]`.

use blockcell_kernels::Activation;

use super::broadcasts::Size;
use super::preactivations::Preactivations;
use super::step::{Step, Taken, check_computed_once, taken};
use crate::facts::shapes::LazyShapes;
use crate::graph::reason::Reason;
use crate::graph::{Attribute, DataType, Graph, NodeId, Output, ops};
use crate::reading::constants::{has_zeros, names_columns, scalar};
use crate::reading::functions;
use crate::reading::neighbours::{of, other_factor, parts, takers};

/// Whether a step may begin here: with the `Split` of two gates. Other cells may look like one.
pub(super) fn is_place(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    if parts(node) != Some(2) || !names_columns(graph, node.inputs[0]) {
        return false;
    }
    let is_share = |gate: &Output| takers(graph, *gate, "Sub").next().is_some();
    Gates::read(graph, id).is_some_and(|gates| gates.each.iter().any(is_share))
}

/// Two gates, in the order of the columns of their weights.
struct Gates {
    split: NodeId,
    z: Preactivations,
    /// Both as one tensor, unless it is the pre-activations that are split.
    whole: Option<Output>,
    each: [Output; 2],
}

impl Gates {
    /// Reads `Split(1, Sigmoid(z))`, or `Split(1, z)` with a `Sigmoid` of each part.
    fn read(graph: &Graph, split: NodeId) -> Option<Gates> {
        let input = graph.input(split, 1);
        let halves = [0, 1].map(|index| Output { node: split, index });
        if let Some(z) = Preactivations::activated(graph, input, "Sigmoid") {
            return Some(Gates { split, z, whole: Some(input), each: halves });
        }
        let [Some(first), Some(second)] =
            halves.map(|bar| takers(graph, bar, "Sigmoid").next().map(of))
        else {
            return None;
        };
        let z = Preactivations::read(graph, input)?;
        Some(Gates { split, z, whole: None, each: [first, second] })
    }

    /// The nodes from the pre-activations to the gates.
    fn nodes(&self) -> Vec<NodeId> {
        let ends = self.each.map(|gate| gate.node);
        [self.split].into_iter().chain(self.whole.map(|both| both.node)).chain(ends).collect()
    }
}

/// The new state: `of_h * h_prev + of_c * c`, where the two shares are u and `1 - u`.
struct State {
    /// `1 - u`
    rest: Output,
    u_weighs_c: bool,
    /// The product with c.
    new: Output,
    c: Output,
    function: Activation,
    z_c: Preactivations,
    /// The product with `h_prev`, and that; None where nothing is added to `new`.
    kept: Option<[Output; 2]>,
    h: Output,
}

impl State {
    /// All that there may be with an update gate.
    fn all(graph: &Graph, u: Output) -> Vec<State> {
        let rests = takers(graph, u, "Sub").map(of);
        let rests = rests.filter(|&rest| scalar(graph, graph.input(rest.node, 0)) == Some(1.0));
        let shares = rests.flat_map(|rest| [(rest, rest, u, false), (rest, u, rest, true)]);
        let with = |(rest, of_c, of_h, u_weighs_c): (Output, Output, Output, bool)| {
            let news = takers(graph, of_c, "Mul").map(of);
            news.flat_map(move |new| {
                let c = other_factor(graph, new, of_c);
                let of_c = c.and_then(|c| Some((c, candidate(graph, c)?)));
                let ends = of_c.map(|one| (one, sums_with(graph, new, of_h)));
                ends.into_iter().flat_map(move |((c, (function, z_c)), ends)| {
                    let state = move |(h, kept)| {
                        let z_c = z_c.clone();
                        State { rest, u_weighs_c, new, c, function, z_c, kept, h }
                    };
                    ends.into_iter().map(state)
                })
            })
        };
        shares.flat_map(with).collect()
    }
}

/// The sums of a product with those of a share and another tensor: each with that product and that tensor. At last the
/// product itself, with nothing added.
fn sums_with(graph: &Graph, new: Output, share: Output) -> Vec<(Output, Option<[Output; 2]>)> {
    let sums = ["Add", "AddV2", "AddN"].into_iter().flat_map(|op| takers(graph, new, op));
    let found = sums.filter_map(|sum| {
        let &[left, right] = &graph.node(sum).inputs[..] else { return None };
        let kept = if left == new { right } else { left };
        Some((of(sum), Some([kept, other_factor(graph, kept, share)?])))
    });
    found.chain([(new, None)]).collect()
}

/// The step that begins with a `Split`.
pub(super) struct Forward {
    nodes_of_gates: Vec<NodeId>,
    /// Both gates in the order of their columns, or twice `[r | u]` where that is one tensor.
    gates: [Output; 2],
    /// Whether the columns of u come first.
    pub(super) update_first: bool,
    /// Whether u is the share of the candidate.
    pub(super) u_weighs_c: bool,
    pub(super) z: Preactivations,
    pub(super) r: Output,
    u: Output,
    /// `r * h_prev`, or zeros.
    hr: Output,
    /// `1 - u`
    rest: Output,
    pub(super) z_c: Preactivations,
    pub(super) c: Output,
    /// The function that the candidate is.
    pub(super) function: Activation,
    /// The product with `h_prev`; None where that is known to be zero, and nothing is added to `new`.
    kept: Option<Output>,
    /// The product with c.
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
        let gates = Gates::read(graph, split);
        let gates = gates.ok_or_else(|| Reason::equation(graph, split, "gates"))?;
        let mut found = [false, true].into_iter().flat_map(|update_first| {
            let u = gates.each[usize::from(!update_first)];
            let states = State::all(graph, u).into_iter();
            states.map(move |state| (update_first, state))
        });
        let with =
            |(update_first, state)| Forward::with(graph, shapes, &gates, update_first, state);
        let first = found.next().ok_or_else(|| Reason::equation(graph, split, "candidate"))?;
        with(first).or_else(|reason| found.find_map(|next| with(next).ok()).ok_or(reason))
    }

    /// The step with gates in some order, and a state.
    fn with(
        graph: &Graph,
        shapes: &LazyShapes,
        gates: &Gates,
        update_first: bool,
        state: State,
    ) -> Result<Forward, Reason> {
        let other = |part| Reason::equation(graph, gates.split, part);
        let State { rest, u_weighs_c, new, c, function, z_c, kept, h } = state;
        let [u, r] = [!update_first, update_first].map(|second| gates.each[usize::from(second)]);
        let h_prev = kept.map(|[_, h_prev]| h_prev);
        let z = gates.z.clone();
        let z = h_prev.map_or(Some(z.clone()), |h_prev| z.with_factor(|factor| factor == h_prev));
        let z = z.ok_or_else(|| other("state"))?;
        let is_reset = |factor| other_factor(graph, factor, r) == Some(z.h_prev);
        let starts_with_zeros =
            z.w_h.is_none() && has_zeros(graph, z.h_prev) && has_zeros(graph, z_c.h_prev);
        if kept.is_none() && !starts_with_zeros {
            return Err(other("state"));
        }
        let z_c = z_c.with_factor(|factor| is_reset(factor) || starts_with_zeros);
        let z_c = z_c.ok_or_else(|| other("reset gate"))?;
        if z_c.x != z.x || z_c.w_h.is_some() != z.w_h.is_some() {
            return Err(other("candidate"));
        }
        if z_c.broadcasts_rows != z.broadcasts_rows {
            return Err(other("shapes"));
        }
        let forward = Forward {
            nodes_of_gates: gates.nodes(),
            gates: gates.whole.map_or(gates.each, |whole| [whole; 2]),
            update_first,
            u_weighs_c,
            biases: [z.b(graph, shapes)?, z_c.b(graph, shapes)?],
            z,
            r,
            u,
            hr: z_c.h_prev,
            rest,
            z_c,
            c,
            function,
            kept: kept.map(|[kept, _]| kept),
            new,
            h,
        };
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

    /// The first of the gates, or both as one tensor.
    pub(super) fn gates(&self) -> Output {
        self.gates[0]
    }

    /// Whether these are the gates of the step, in their order.
    pub(super) fn is_of(&self, gates: [Output; 2]) -> bool {
        self.gates == gates
    }

    /// The shares of the state before and of the candidate.
    pub(super) fn shares(&self) -> [Output; 2] {
        if self.u_weighs_c { [self.rest, self.u] } else { [self.u, self.rest] }
    }

    /// The shape of one of the step's tensors: all have that of the gates, unless `h_prev` has one row that stands for all.
    pub(super) fn size(&self, tensor: Output) -> Option<Size> {
        let all = [self.r, self.u, self.hr, self.rest, self.c, self.new, self.h];
        if all.contains(&tensor) || self.kept == Some(tensor) {
            return Some(Size::Gate);
        }
        let state = if self.z.broadcasts_rows { Size::Previous } else { Size::Gate };
        (tensor == self.z.h_prev).then_some(state)
    }

    /// See the module's documentation. Zeros in place of `r * h_prev` tell nothing of `h_prev`.
    fn has_one_shape(&self, graph: &Graph, shapes: &LazyShapes) -> bool {
        let shapes = shapes.of(graph);
        let sizes = |tensor| shapes.sizes(graph, tensor);
        let matrix = |tensor| match sizes(tensor).as_deref() {
            Some(&[rows, columns]) => Some((rows, columns)),
            _ => None,
        };
        let (Some(gates), Some(candidate)) = (matrix(self.z.w), matrix(self.z_c.w)) else {
            return false;
        };
        let cells = candidate.1;
        let is_such = gates.0 == candidate.0 && gates.1 == 2 * cells;
        match (self.z.w_h, self.z_c.w_h) {
            (Some(of_gates), Some(of_candidate)) => {
                let own = [of_gates, of_candidate].map(matrix);
                is_such && own == [Some((cells, 2 * cells)), Some((cells, cells))]
            }
            _ => {
                let state = sizes(self.z.h_prev);
                is_such && cells >= 2 && state.is_none_or(|sizes| sizes.last() == Some(&cells))
            }
        }
    }

    /// The attributes of an operation whose function is not tanh, and in which the gates have other places.
    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        let function = functions::attribute("activation", self.function, Activation::Tanh);
        let mut attributes = Vec::from_iter(function);
        let flags = [("update_first", self.update_first), ("u_weighs_c", self.u_weighs_c)];
        attributes
            .extend(flags.into_iter().filter(|one| one.1).map(|(name, _)| (name, true.into())));
        if self.z.w_h.is_some() {
            attributes.push(("num_w_h", 1_usize.into()));
            attributes.push(("broadcasts_rows", self.z.broadcasts_rows.into()));
        }
        attributes
    }

    /// The step, and what takes its place.
    pub(super) fn step(self, graph: &Graph) -> Result<Step, Reason> {
        let inner = [self.hr, self.rest, self.c, self.new, self.h].map(|tensor| tensor.node);
        let mut nodes = [self.z.nodes(), self.z_c.nodes(), inner.to_vec()].concat();
        nodes.extend(&self.nodes_of_gates);
        nodes.extend(self.kept.map(|kept| kept.node));
        nodes.sort_unstable();
        nodes.dedup();
        nodes.retain(|&id| graph.op(id) != "Const");
        // Gates and the candidate are outputs of the new node, though the candidate may be its own product.
        let own = [self.r, self.u, self.c].map(|tensor| tensor.node);
        let mut products = [self.z.products(), &self.nodes_of_gates, self.z_c.products()].concat();
        products.retain(|id| !own.contains(id));
        check_computed_once(graph, products, &nodes)?;
        let attributes = self.attributes();
        let mut inputs = taken([self.z.x, self.z.h_prev, self.z.w, self.z_c.w]);
        inputs.extend(self.biases);
        inputs.extend(taken(self.z.w_h.into_iter().chain(self.z_c.w_h)));
        let outputs = vec![vec![self.r], vec![self.u], vec![self.c], vec![self.h]];
        let is_half = graph.node(self.h.node).data_type() == Some(DataType::HALF);
        let (op, attributes) = match is_half || !attributes.is_empty() {
            true => (ops::HALF_GRU_CELL, attributes),
            false => (ops::GRU_CELL, vec![("_kernel", Attribute::Text("blockcell".to_owned()))]),
        };
        let (root, row_sums) = (self.h.node, Vec::new());
        Ok(Step { root, nodes, op, inputs, attributes, outputs, row_sums })
    }
}

/// The function that a candidate is, and what it is that of.
fn candidate(graph: &Graph, c: Output) -> Option<(Activation, Preactivations)> {
    let of = |(function, op)| Some((function, Preactivations::activated(graph, c, op)?));
    [(Activation::Tanh, "Tanh"), (Activation::Relu, "Relu")].into_iter().find_map(of)
}
