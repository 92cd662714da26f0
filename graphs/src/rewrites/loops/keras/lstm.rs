//! The step of Keras's LSTM cell.
//!
//! ```text
//! i_bar, f_bar, ci_bar, o_bar = Split(1, MatMul(x, w_x) + MatMul(h_prev, w_h) + b)
//! cs = Sigmoid(f_bar) * cs_prev + Sigmoid(i_bar) * Tanh(ci_bar)          h = Sigmoid(o_bar) * Tanh(cs)
//! ```
//!
//! Other functions may stand in place of all `Sigmoid`, and of both `Tanh`.

use blockcell_kernels::Activation;

use super::super::frame::Frame;
use super::step::{self, Step, Terms};
use crate::graph::{Graph, NodeId, Output, ops};
use crate::reading::constants::{names_columns, scalar};
use crate::reading::functions::Function;
use crate::reading::neighbours::{of, takers};

/// Reads the step that begins with a `Split` in four parts.
pub(super) fn read(graph: &Graph, frame: &Frame, split: NodeId) -> Option<Step> {
    let &[axis, z] = graph.node(split).inputs.first_chunk()?;
    let terms = Terms::read(graph, z).filter(|_| names_columns(graph, axis))?;
    let bar = |index| Output { node: split, index };
    let gate = |index| Gate::read(graph, bar(index));
    let (i, f, o) = (gate(0)?, gate(1)?, gate(3)?);
    let ci = Function::only(graph, bar(2))?;
    let of_gates = i.activation;
    if [&f, &o].iter().any(|gate| gate.activation != of_gates) {
        return None;
    }
    let mut products = i.products(graph, ci.tensor).into_iter();
    let new = products.next()?;
    let sums = ["Add", "AddV2"].into_iter().flat_map(|op| takers(graph, new.tensor, op)).map(of);
    let (cs, kept) = sums.filter_map(|cs| kept(graph, cs, new.tensor, &f)).next()?;
    let (co, h) = Function::of(graph, cs, ci.activation).find_map(|co| {
        let h = o.products(graph, co.tensor).into_iter().next()?;
        Some((co, h))
    })?;
    let gates = [&i, &f, &o].map(|gate| &gate.nodes[..]).concat();
    let products = [&new, &kept, &h].map(|product| &product.nodes[..]).concat();
    let inner = [&gates[..], &products, &ci.nodes, &co.nodes, &[cs.node]].concat();
    let (of_cell, cs_prev, h) = (ci.activation, kept.other, h.tensor);
    let is_state = |[left, _]: &[Output; 2]| frame.variable(graph, *left).is_some();
    let (of_state, of_x): (Vec<_>, Vec<_>) = terms.products.iter().partition(|one| is_state(one));
    let (&[&[h_prev, w_h]], &[&[x, w_x]]) = (&of_state[..], &of_x[..]) else { return None };
    let biases = vec![terms.bias()?];
    let mut nodes = terms.nodes;
    nodes.extend(inner);
    nodes.insert(split);
    Some(Step {
        root: split,
        op: ops::KERAS_LSTM,
        x,
        h,
        states: vec![[h_prev, h], [cs_prev, cs]],
        w_x,
        w_h,
        biases,
        needs_columns: false,
        added: terms.added,
        needs_one_row: terms.needs_one_row,
        functions: step::functions(of_cell, of_gates),
        units: None,
        nodes,
    })
}

/// The sum of `new` and of `f * cs_prev`, and that product.
fn kept(graph: &Graph, cs: Output, new: Output, f: &Gate) -> Option<(Output, Product)> {
    let &[left, right] = graph.node(cs.node).inputs.first_chunk()?;
    let kept = if left == new { right } else { left };
    Some((cs, Product::read(graph, kept, f, None)?))
}

/// A gate, as far as it is not multiplied by a number. TensorFlow's optimizers may put that elsewhere in a product.
struct Gate {
    activation: Activation,
    /// The gate, or what is that many times as large.
    tensor: Output,
    /// What it is to be multiplied by.
    scale: f32,
    nodes: Vec<NodeId>,
}

impl Gate {
    fn read(graph: &Graph, bar: Output) -> Option<Gate> {
        let of_six = takers(graph, bar, "AddV2").chain(takers(graph, bar, "Add")).find_map(|sum| {
            let inputs = &graph.node(sum).inputs;
            let is_three = inputs.iter().any(|&one| scalar(graph, one) == Some(3.0));
            let relu6 = takers(graph, of(sum), "Relu6").next().filter(|_| is_three)?;
            Some(vec![sum, relu6])
        });
        if let Some(nodes) = of_six {
            let (activation, tensor) = (Activation::HardSigmoid, of(nodes[1]));
            return Some(Gate { activation, tensor, scale: 1.0 / 6.0, nodes });
        }
        let Function { activation, tensor, nodes } = Function::only(graph, bar)?;
        Some(Gate { activation, tensor, scale: 1.0, nodes })
    }

    /// The products of the gate with another tensor.
    fn products(&self, graph: &Graph, other: Output) -> Vec<Product> {
        let (mut found, mut open) = (Vec::new(), vec![(self.tensor, 0)]);
        while let Some((tensor, depth)) = open.pop() {
            let product = Product::read(graph, tensor, self, Some(other));
            found.extend(product.filter(|product| product.other == other));
            let ops = ["Mul", "RealDiv"].into_iter().filter(|_| depth < MOST_PRODUCTS);
            let next = ops.flat_map(|op| takers(graph, tensor, op));
            open.extend(next.map(|id| (of(id), depth + 1)));
        }
        found
    }
}

/// A product of a gate and another tensor is made of no more products, some of them with numbers.
const MOST_PRODUCTS: usize = 3;

/// A product of a gate and another tensor.
struct Product {
    tensor: Output,
    other: Output,
    nodes: Vec<NodeId>,
}

impl Product {
    /// Reads a product of a gate with another tensor, which may be known.
    fn read(graph: &Graph, tensor: Output, gate: &Gate, other: Option<Output>) -> Option<Product> {
        let (mut leaves, mut number, mut nodes) = (Vec::new(), 1.0, Vec::new());
        let mut open = vec![tensor];
        while let Some(next) = open.pop() {
            let node = graph.node(next.node);
            let by = |place: usize| scalar(graph, *node.inputs.get(place)?);
            let is_known = next == gate.tensor || Some(next) == other;
            let is_inner = !is_known && nodes.len() < MOST_PRODUCTS;
            match node.op.as_str() {
                "Mul" if is_inner => {
                    for place in [0, 1] {
                        match by(place) {
                            Some(factor) => number *= factor,
                            None => open.push(node.inputs[place]),
                        }
                    }
                }
                "RealDiv" if is_inner && by(1).is_some() => {
                    number /= by(1)?;
                    open.push(node.inputs[0]);
                }
                _ => {
                    leaves.push(next);
                    continue;
                }
            }
            nodes.push(next.node);
        }
        let place = leaves.iter().position(|&leaf| leaf == gate.tensor)?;
        leaves.remove(place);
        let is_scaled = (number - gate.scale).abs() <= f32::EPSILON * gate.scale;
        match leaves[..] {
            [other] if is_scaled => Some(Product { tensor, other, nodes }),
            _ => None,
        }
    }
}
