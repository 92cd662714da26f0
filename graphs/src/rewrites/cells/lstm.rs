//! The forward step of `BasicLSTMCell` and `LSTMCell`.
//!
//! ```text
//! z = [x | h_prev] @ w [+ b]                              or x @ w + h_prev @ w_h [+ b], see `preactivations.rs`
//! i_bar, ci_bar, f_bar, o_bar = Split(1, z)               in any order
//! i  = Sigmoid(i_bar [+ wci * cs_prev])     f  = Sigmoid(f_bar [+ forget_bias] [+ wcf * cs_prev])
//! ci = Tanh(ci_bar)                         cs = i * ci + f * cs_prev [Minimum, Maximum]
//! o  = Sigmoid(o_bar [+ wco * cs])          co = Tanh(cs)          h = o * co
//! ```
//!
//! What a gate is multiplied by tells which one it is: i by `Tanh` of a pre-activation, f by the state before, o by `Tanh` of the
//! state after.
//!
//! `Relu` may stand in place of both `Tanh`, or nothing.
//!
//! Where `cs_prev` is known to be zero, TensorFlow's optimizers leave `f * cs_prev` out, or all of the sum, and the peepholes
//! of i and f.

use blockcell_kernels::Activation;

use super::broadcasts::Size;
use super::preactivations::Preactivations;
use super::step::{Step, Taken, check_computed_once, taken};
use crate::facts::shapes::LazyShapes;
use crate::graph::reason::Reason;
use crate::graph::{Attribute, Graph, NodeId, Output, ops};
use crate::reading::clips::Clipped;
use crate::reading::constants::{names_columns, scalar};
use crate::reading::functions::{self, Function};
use crate::reading::neighbours::{factors, of, other_factor, parts, summands, takers, unary};
use crate::reading::stacks::is_same_outside;

/// Whether a step may begin here: with the `Split` of the pre-activations of four gates. Other cells may look like one.
pub(super) fn is_place(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    if parts(node) != Some(4) || !names_columns(graph, node.inputs[0]) {
        return false;
    }
    let bars = || (0..4).map(|index| Output { node: id, index });
    let is_gate = |bar: &Output| {
        let sums = ["Add", "AddV2"].into_iter().flat_map(|op| takers(graph, *bar, op));
        let mut before = sums.map(of).chain([*bar]);
        before.any(|tensor| takers(graph, tensor, "Sigmoid").next().is_some())
    };
    let enters = |bar: Output| STATES.iter().any(|&of| enters_state(graph, bar, of));
    bars().any(enters) && bars().filter(is_gate).count() >= 2
}

/// The functions that what enters the state, and the state, may have.
const STATES: [Activation; 3] = [Activation::Tanh, Activation::Relu, Activation::Linear];

/// Whether a function of a pre-activation may enter the state.
fn enters_state(graph: &Graph, bar: Output, of: Activation) -> bool {
    let is_multiplied = |tensor| takers(graph, tensor, "Mul").next().is_some();
    Function::of(graph, bar, of).any(|one| of != Activation::Linear || is_multiplied(one.tensor))
}

/// The pre-activation of a gate: an output of the `Split` with what was added to it.
pub(super) struct Gate {
    /// The gate.
    pub(super) tensor: Output,
    bar: Output,
    nodes: Vec<NodeId>,
    bias: Option<f32>,
    /// `(weights, state)`
    peephole: Option<[Output; 2]>,
}

impl Gate {
    /// Reads `Sigmoid(bar [+ bias] [+ weights * state])` with one of these pre-activations.
    fn read(graph: &Graph, tensor: Output, bars: &[Output]) -> Option<Gate> {
        let (terms, mut nodes) = summands(graph, unary(graph, tensor, "Sigmoid")?);
        nodes.push(tensor.node);
        let bar = *bars.iter().find(|bar| terms.contains(bar))?;
        let mut gate = Gate { tensor, bar, nodes, bias: None, peephole: None };
        let mut has_bar = false;
        for term in terms {
            if term == bar && !has_bar {
                has_bar = true;
            } else if let (None, Some(bias)) = (gate.bias, scalar(graph, term)) {
                gate.bias = Some(bias);
            } else {
                let both = factors(graph, term).filter(|_| gate.peephole.is_none())?;
                gate.peephole = Some(both);
                gate.nodes.push(term.node);
            }
        }
        has_bar.then_some(gate)
    }

    /// The shape of one of the gate's tensors, where `seen` is that of the product of a state with its weights.
    fn size(&self, graph: &Graph, tensor: Output, seen: Size) -> Option<Size> {
        let is_own = |tensor: &Output| self.nodes.contains(&tensor.node);
        let is_product = |tensor: &Output| factors(graph, *tensor) == self.peephole;
        if !is_own(&tensor) || self.peephole.is_none() {
            return is_own(&tensor).then_some(Size::Gate);
        }
        if is_product(&tensor) {
            return Some(seen);
        }
        // What is computed from that product is as large as the state.
        let mut open = vec![tensor];
        while let Some(next) = open.pop() {
            if is_product(&next) {
                return Some(Size::State);
            }
            open.extend(graph.node(next.node).inputs.iter().filter(|input| is_own(input)));
        }
        Some(Size::Gate)
    }

    /// The peephole weights, if this gate looks at that state. None if it looks at another one.
    fn weights(&self, state: Option<Output>) -> Option<Option<Output>> {
        let Some([left, right]) = self.peephole else { return Some(None) };
        let state = state?;
        if left == state { Some(Some(right)) } else { (right == state).then_some(Some(left)) }
    }
}

/// The gates that a tensor is multiplied by, each with the product.
fn gates_beside<'g>(
    graph: &'g Graph,
    tensor: Output,
    bars: &'g [Output],
) -> impl Iterator<Item = (Gate, Output)> + 'g {
    takers(graph, tensor, "Mul").filter_map(move |product| {
        let gate = Gate::read(graph, other_factor(graph, of(product), tensor)?, bars)?;
        Some((gate, of(product)))
    })
}

/// What a state begins with.
struct New {
    ci_bar: Output,
    ci: Function,
    i: Gate,
    /// `i * ci`
    product: Output,
}

impl New {
    /// All that there are among the pre-activations of a step.
    fn all(graph: &Graph, bars: &[Output]) -> Vec<New> {
        let with = |ci_bar: Output| {
            let inputs = STATES.iter().flat_map(move |&of| Function::of(graph, ci_bar, of));
            let rest = without(bars, &[ci_bar]);
            let of_input = |ci: Function| {
                let found = gates_beside(graph, ci.tensor, &rest);
                let new = |(i, product)| New { ci_bar, ci: ci.clone(), i, product };
                found.map(new).collect::<Vec<_>>()
            };
            inputs.flat_map(of_input).collect::<Vec<_>>()
        };
        bars.iter().copied().flat_map(with).collect()
    }
}

/// The tensors of a list that are not in another one.
fn without(tensors: &[Output], others: &[Output]) -> Vec<Output> {
    tensors.iter().copied().filter(|tensor| !others.contains(tensor)).collect()
}

/// The state before it is clipped.
struct State {
    tensor: Output,
    nodes: Vec<NodeId>,
    f: Option<Gate>,
    cs_prev: Option<Output>,
}

impl State {
    /// What `i * ci` becomes.
    fn read(graph: &Graph, product: Output, bars: &[Output]) -> State {
        let sums = ["Add", "AddV2", "AddN"].into_iter().flat_map(|op| takers(graph, product, op));
        let mut states = sums.filter_map(|sum| State::of_sum(graph, sum, product, bars));
        states.next().unwrap_or_else(|| State::without_product(graph, product))
    }

    /// Reads `i * ci + f * cs_prev`.
    fn of_sum(graph: &Graph, sum: NodeId, product: Output, bars: &[Output]) -> Option<State> {
        let &[left, right] = graph.node(sum).inputs.first_chunk()?;
        let other = if left == product { right } else { left };
        let [left, right] = factors(graph, other).filter(|_| graph.node(sum).inputs.len() == 2)?;
        let (f, cs_prev) = match Gate::read(graph, left, bars) {
            Some(f) => (f, right),
            None => (Gate::read(graph, right, bars)?, left),
        };
        let nodes = vec![sum, other.node];
        Some(State { tensor: of(sum), nodes, f: Some(f), cs_prev: Some(cs_prev) })
    }

    /// The optimizers left `f * cs_prev` out: the state is the product, or a copy of it that waits for the gate.
    fn without_product(graph: &Graph, product: Output) -> State {
        let waits = |copy: &NodeId| !graph.node(*copy).control_inputs.is_empty();
        let copy = ["Identity", "Snapshot"]
            .iter()
            .find_map(|op| takers(graph, product, op).next())
            .filter(waits);
        let nodes = Vec::from_iter(copy);
        State { tensor: copy.map_or(product, of), nodes, f: None, cs_prev: None }
    }

    /// `Maximum(Minimum(state, k), -k)`: the state becomes the clipped one.
    fn clipped(&mut self, graph: &Graph) -> Option<Clip> {
        let Clipped { bound, least, tensor } = Clipped::read(graph, self.tensor)?;
        self.nodes.extend([least.node, tensor.node]);
        let state = std::mem::replace(&mut self.tensor, tensor);
        Some(Clip { bound, state, least })
    }
}

/// How the cell state was clipped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clip {
    /// k
    pub(super) bound: f32,
    /// The state before it was clipped.
    pub(super) state: Output,
    /// `Minimum(state, k)`
    pub(super) least: Output,
}

/// The step that begins with a `Split`.
pub(super) struct Forward {
    split: NodeId,
    /// How many gates stand before i, ci, f and o.
    pub(super) order: [usize; 4],
    pub(super) z: Preactivations,
    b: Taken,
    pub(super) i: Gate,
    /// None if nobody reads it, which may be where there is no cs_prev.
    f: Option<Gate>,
    pub(super) o: Gate,
    pub(super) ci: Output,
    /// The function of the cell input and of the state.
    pub(super) function: Activation,
    /// `i * ci`
    new: Output,
    /// None if it is known to be zero.
    pub(super) cs_prev: Option<Output>,
    /// The nodes from the sum of `new` and what is kept to the clipped state.
    state: Vec<NodeId>,
    pub(super) cs: Output,
    pub(super) clip: Option<Clip>,
    pub(super) co: Output,
    h: Output,
    /// None, or the weights of the input, forget and output gate; without cs_prev of the output gate alone.
    pub(super) peepholes: Vec<Output>,
}

impl Forward {
    pub(super) fn read(
        graph: &Graph,
        shapes: &LazyShapes,
        split: NodeId,
    ) -> Result<Forward, Reason> {
        let other = |part| Reason::equation(graph, split, part);
        let z = Preactivations::read(graph, graph.input(split, 1))
            .ok_or_else(|| other("pre-activations"))?;
        let bars = [0, 1, 2, 3].map(|index| Output { node: split, index });
        let mut found = New::all(graph, &bars)
            .into_iter()
            .map(|new| Forward::with(graph, shapes, (split, &z), (&bars, new)));
        let first = found.next().unwrap_or_else(|| Err(other("input gate")));
        first.or_else(|reason| found.find_map(Result::ok).ok_or(reason))
    }

    /// The step with pre-activations and a state that begins with some product.
    fn with(
        graph: &Graph,
        shapes: &LazyShapes,
        (split, z): (NodeId, &Preactivations),
        (bars, new): (&[Output], New),
    ) -> Result<Forward, Reason> {
        let other = |part| Reason::equation(graph, split, part);
        let New { ci_bar, ci: Function { tensor: ci, activation: function, .. }, i, product: new } =
            new;
        let rest = without(bars, &[ci_bar, i.bar]);
        let mut state = State::read(graph, new, &rest);
        let clip = state.clipped(graph);
        let State { tensor: cs, nodes, f, cs_prev } = state;
        let rest = without(&rest, f.as_ref().map(|f| f.bar).as_slice());
        let (co, o, h) = Function::of(graph, cs, function)
            .map(|co| co.tensor)
            .find_map(|co| gates_beside(graph, co, &rest).next().map(|(o, h)| (co, o, h)))
            .ok_or_else(|| other("output"))?;
        let f_bar = f.as_ref().map_or_else(|| without(&rest, &[o.bar])[0], |f| f.bar);
        let f = f.or_else(|| lone_gate(graph, f_bar));
        let order = [i.bar, ci_bar, f_bar, o.bar].map(|bar| bar.index);
        let peepholes =
            peepholes(&i, f.as_ref(), &o, cs_prev, cs).ok_or_else(|| other("peepholes"))?;
        if i.bias.is_some() || o.bias.is_some() {
            return Err(other("bias of a gate"));
        }
        let b = z.b(graph, shapes)?;
        let forward = Forward {
            split,
            order,
            z: z.clone().with_state(graph, cs_prev),
            b,
            i,
            f,
            o,
            ci,
            function,
            new,
            cs_prev,
            state: nodes,
            cs,
            clip,
            co,
            h,
            peepholes,
        };
        forward.with_known_shapes(graph, shapes)
    }

    /// The step, if the weights of its peepholes are certainly vectors of one number for each cell. The graph broadcasts
    /// others, and may make gates of them that are larger than their pre-activations.
    fn with_known_shapes(self, graph: &Graph, shapes: &LazyShapes) -> Result<Forward, Reason> {
        if self.peepholes.is_empty() {
            return Ok(self);
        }
        let shapes = shapes.of(graph);
        let columns = |tensor| shapes.sizes(graph, tensor)?.last().copied();
        let of_bias = match self.b {
            Taken::Tensor(b) | Taken::Sum([b, _]) => columns(b),
            Taken::Zeros(columns) => Some(columns),
        };
        let gates = of_bias.or_else(|| columns(self.z.w));
        let is_vector = |&weights: &Output| match shapes.sizes(graph, weights).as_deref() {
            Some(&[cells]) => gates == cells.checked_mul(4),
            _ => false,
        };
        match self.peepholes.iter().all(is_vector) {
            true => Ok(self),
            false => Err(Reason::equation(graph, self.split, "shape of the peepholes")),
        }
    }

    /// The forget gate.
    pub(super) fn f(&self) -> Option<Output> {
        self.f.as_ref().map(|f| f.tensor)
    }

    /// The attribute for the function of the state, if it is not tanh.
    pub(super) fn function_attribute(&self) -> Option<(&'static str, Attribute)> {
        functions::attribute("activation", self.function, Activation::Tanh)
    }

    /// The shape of one of the step's tensors.
    pub(super) fn size(&self, graph: &Graph, tensor: Output) -> Option<Size> {
        if self.peepholes.iter().any(|&weights| is_same_outside(graph, weights, tensor)) {
            return Some(Size::Weights);
        }
        let gates = [
            (Some(&self.i), Size::Seen),
            (self.f.as_ref(), Size::Seen),
            (Some(&self.o), Size::State),
        ];
        let of_gate = |(gate, seen): (Option<&Gate>, Size)| gate?.size(graph, tensor, seen);
        if let Some(size) = gates.into_iter().find_map(of_gate) {
            return Some(size);
        }
        let is_state = |id: &NodeId| tensor == of(*id);
        if tensor.node == self.split || tensor == self.ci {
            return Some(Size::Gate);
        }
        if tensor == self.new {
            return Some(self.gate_size());
        }
        if Some(tensor) == self.cs_prev {
            return Some(Size::Previous);
        }
        let is_state = self.state.iter().any(is_state) || [self.co, self.h].contains(&tensor);
        is_state.then_some(Size::State)
    }

    /// The shape of the gates.
    pub(super) fn gate_size(&self) -> Size {
        if self.peepholes.is_empty() { Size::Gate } else { Size::State }
    }

    /// The step, and what takes its place.
    pub(super) fn step(self, graph: &Graph) -> Result<Step, Reason> {
        let function = self.function_attribute();
        let products = [self.z.products(), &[self.split]].concat();
        let mut nodes = self.z.nodes();
        nodes.extend([self.split, self.ci.node, self.new.node, self.co.node, self.h.node]);
        nodes.extend(self.i.nodes.iter().chain(&self.o.nodes).chain(&self.state));
        nodes.extend(self.f.iter().flat_map(|f| &f.nodes));
        check_computed_once(graph, products, &nodes)?;
        let outputs = vec![
            vec![self.i.tensor],
            vec![self.cs],
            self.f.iter().map(|f| f.tensor).collect(),
            vec![self.o.tensor],
            vec![self.ci],
            vec![self.co],
            vec![self.h],
        ];
        let forget_bias = self.f.as_ref().and_then(|f| f.bias).unwrap_or(0.0);
        let mut attributes = vec![
            ("num_cs_prev", usize::from(self.cs_prev.is_some()).into()),
            ("num_peepholes", self.peepholes.len().into()),
            ("forget_bias", forget_bias.into()),
            ("cell_clip", self.clip.map_or(-1.0, |clip| clip.bound).into()),
            ("gate_order", gate_order(self.order)),
        ];
        if self.z.w_h.is_some() {
            attributes.push(("num_w_h", 1_usize.into()));
            attributes.push(("broadcasts_rows", self.z.broadcasts_rows.into()));
        }
        attributes.extend(function);
        let mut inputs = taken([self.z.x, self.z.h_prev, self.z.w]);
        inputs.push(self.b);
        inputs.extend(taken(self.cs_prev.into_iter().chain(self.peepholes).chain(self.z.w_h)));
        let (root, row_sums) = (self.h.node, Vec::new());
        Ok(Step { root, nodes, op: ops::LSTM_CELL, inputs, attributes, outputs, row_sums })
    }
}

/// The peephole weights of the three gates: none, or one for each. The optimizers leave only that of the output gate where
/// the others look at a state of zeros.
fn peepholes(
    i: &Gate,
    f: Option<&Gate>,
    o: &Gate,
    cs_prev: Option<Output>,
    cs: Output,
) -> Option<Vec<Output>> {
    let f = f.map_or(Some(None), |f| f.weights(cs_prev))?;
    match (i.weights(cs_prev)?, f, o.weights(Some(cs))?) {
        (None, None, None) => Some(Vec::new()),
        (Some(wci), Some(wcf), Some(wco)) => Some(vec![wci, wcf, wco]),
        (None, None, Some(wco)) if cs_prev.is_none() => Some(vec![wco]),
        _ => None,
    }
}

/// The forget gate, which a backward step may read though the forward step does not.
fn lone_gate(graph: &Graph, bar: Output) -> Option<Gate> {
    let sums = ["Add", "AddV2", "Identity", "Snapshot"]
        .into_iter()
        .flat_map(|op| takers(graph, bar, op))
        .map(of);
    let before = sums.chain([bar]);
    let mut gates = before.flat_map(|tensor| takers(graph, tensor, "Sigmoid"));
    gates.find_map(|gate| Gate::read(graph, of(gate), &[bar]))
}

/// The attribute that tells the order of gates.
pub(super) fn gate_order(order: [usize; 4]) -> Attribute {
    let place = |place| i64::try_from(place).expect("there are four");
    Attribute::Ints(order.map(place).to_vec())
}
