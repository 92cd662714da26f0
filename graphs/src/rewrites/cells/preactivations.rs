//! The pre-activations of gates.
//!
//! ```text
//! z = BiasAdd(MatMul(ConcatV2(x, h_prev, 1), w), b)
//!     _FusedMatMul(ConcatV2(x, h_prev, 1), w, b)         if b is known to be a vector
//!     Add(MatMul(...), b)                                if it is known to be one for the columns of w
//!     MatMul(...)                                        what optimizers leave where b is zero
//!     Add(MatMul(x, w), MatMul(h_prev, w_h))             in any order, with such biases at any place
//! ```
//!
//! TensorFlow 2 fuses sums, too, also those with a matrix of one row. `Add` may broadcast one row of a product, and `AddN` does
//! not. Both weights are known to have as many columns.

use super::step::Taken;
use crate::facts::shapes::LazyShapes;
use crate::graph::reason::Reason;
use crate::graph::{Graph, NodeId, Output};
use crate::reading::constants::names_columns;
use crate::reading::neighbours::{
    factors, fuses, has_bias_of_columns, skip_identities, transposes, unary,
};

/// `z = [x | h_prev] @ w + b`, or `x @ w + h_prev @ w_h + b`
#[derive(Clone)]
pub(super) struct Preactivations {
    pub(super) x: Output,
    pub(super) h_prev: Output,
    pub(super) w: Output,
    /// The weights of `h_prev`, if they are a tensor of their own.
    pub(super) w_h: Option<Output>,
    /// Whether a sum of two products may broadcast one row of one of them.
    pub(super) broadcasts_rows: bool,
    biases: Vec<Bias>,
    /// The nodes from z back to the products. The first one is the activation's if it is fused.
    products: Vec<NodeId>,
    /// How many of these have as many rows as z.
    whole: usize,
    /// Those that have as many rows as x, and as `h_prev`, where these may differ.
    pub(super) sides: [Vec<NodeId>; 2],
    concat: Option<NodeId>,
}

/// What is added to a product.
#[derive(Clone, Copy)]
enum Bias {
    /// A vector, of as many numbers as the product has columns.
    OfColumns(Output),
    /// The same, or a tensor of that many numbers.
    Fused(Output),
    /// A tensor that the sum may broadcast in other ways.
    Summand(Output),
}

/// A sum of products and biases.
#[derive(Default)]
struct Sum {
    /// `[left, right]`
    products: Vec<[Output; 2]>,
    biases: Vec<Bias>,
    /// From the sum back to the products.
    nodes: Vec<NodeId>,
    /// How many of these have all rows, and whether the sum of two products may broadcast.
    whole: usize,
    broadcasts_rows: bool,
    /// What a sum that may broadcast adds.
    sides: [Vec<NodeId>; 2],
}

/// No cell's pre-activations are deeper.
const MOST_SUMS: usize = 4;

impl Sum {
    /// Reads a sum in which there is a product.
    fn read(graph: &Graph, sum: Output, most: usize) -> Option<Sum> {
        let node = graph.node(sum.node);
        let inner = |tensor| Sum::read(graph, tensor, most.checked_sub(1)?);
        match (node.op.as_str(), &node.inputs[..]) {
            ("MatMul", _) => Sum::of_product(graph, sum, None),
            ("BiasAdd", &[product, b]) if has_bias_of_columns(node, "BiasAdd") => {
                Some(inner(product)?.with(sum, Bias::OfColumns(b)))
            }
            ("Add" | "AddV2" | "AddN", &[left, right]) => match (inner(left), inner(right)) {
                (Some(left), Some(right)) => left.plus(sum, right, node.op != "AddN"),
                (Some(one), None) if node.op != "AddN" => Some(one.with(sum, Bias::Summand(right))),
                (None, Some(one)) if node.op != "AddN" => Some(one.with(sum, Bias::Summand(left))),
                _ => None,
            },
            _ => Sum::fused(graph, sum, &["BiasAdd"]),
        }
    }

    fn fused(graph: &Graph, tensor: Output, ops: &[&str]) -> Option<Sum> {
        let node = graph.node(tensor.node);
        let is_such = node.inputs.len() == 3 && fuses(node, ops);
        is_such.then(|| Sum::of_product(graph, tensor, Some(Bias::Fused(node.inputs[2]))))?
    }

    fn of_product(graph: &Graph, product: Output, bias: Option<Bias>) -> Option<Sum> {
        let node = graph.node(product.node);
        let &both = node.inputs.first_chunk().filter(|_| transposes(node) == Some([false; 2]))?;
        let (products, biases) = (vec![both], bias.into_iter().collect());
        Some(Sum { products, biases, nodes: vec![product.node], whole: 1, ..Sum::default() })
    }

    fn with(mut self, sum: Output, bias: Bias) -> Sum {
        self.nodes.insert(0, sum.node);
        self.whole += 1;
        self.biases.push(bias);
        self
    }

    /// The sum of two, unless they have a product in common, which would be computed twice then.
    fn plus(mut self, sum: Output, other: Sum, broadcasts: bool) -> Option<Sum> {
        if other.nodes.iter().any(|id| self.nodes.contains(id)) {
            return None;
        }
        if broadcasts {
            self.sides = [self.nodes.clone(), other.nodes.clone()];
        }
        self.nodes.insert(0, sum.node);
        self.nodes.extend(other.nodes);
        self.products.extend(other.products);
        self.biases.extend(other.biases);
        self.broadcasts_rows |= other.broadcasts_rows || broadcasts;
        self.whole = if self.broadcasts_rows { 1 } else { self.nodes.len() };
        Some(self)
    }
}

impl Preactivations {
    /// Reads `z`.
    pub(super) fn read(graph: &Graph, z: Output) -> Option<Preactivations> {
        Preactivations::of(graph, Sum::read(graph, z, MOST_SUMS)?)
    }

    /// Reads `z`, given `activation(z)`. TensorFlow fuses the two on some processors, where there is one product.
    pub(super) fn activated(
        graph: &Graph,
        tensor: Output,
        activation: &str,
    ) -> Option<Preactivations> {
        match unary(graph, tensor, activation) {
            Some(z) => Preactivations::read(graph, z),
            None => Preactivations::of(graph, Sum::fused(graph, tensor, &["BiasAdd", activation])?),
        }
    }

    fn of(graph: &Graph, sum: Sum) -> Option<Preactivations> {
        let Sum { products, biases, nodes, whole, broadcasts_rows, sides } = sum;
        let z = |[x, h_prev]: [Output; 2], w, w_h, concat| Preactivations {
            x,
            h_prev,
            w,
            w_h,
            broadcasts_rows,
            biases: biases.clone(),
            products: nodes.clone(),
            whole,
            sides: sides.clone(),
            concat,
        };
        match products[..] {
            [[left, w]] => {
                let concat = graph.node(left.node);
                let &[x, h_prev, axis] =
                    concat.inputs.first_chunk().filter(|_| concat.inputs.len() == 3)?;
                let is_concat = concat.op == "ConcatV2" && names_columns(graph, axis);
                is_concat.then(|| z([x, h_prev], w, None, Some(left.node)))
            }
            [[x, w], [h_prev, w_h]] => Some(z([x, h_prev], w, Some(w_h), None)),
            _ => None,
        }
    }

    /// The same with that factor of two as `h_prev` which has the state of the cell before, as far as that can be seen.
    pub(super) fn with_state(self, graph: &Graph, cs_prev: Option<Output>) -> Preactivations {
        let (Some(cs_prev), Some(w_h)) = (cs_prev, self.w_h) else { return self };
        let is_state = |h_prev| is_of_one_step(graph, h_prev, cs_prev);
        if is_state(self.h_prev) || !is_state(self.x) { self } else { self.swapped(w_h) }
    }

    /// The same with that factor as `h_prev` for which this holds. None if there is none.
    pub(super) fn with_factor(self, is_state: impl Fn(Output) -> bool) -> Option<Preactivations> {
        match self.w_h {
            _ if is_state(self.h_prev) => Some(self),
            Some(w_h) if is_state(self.x) => Some(self.swapped(w_h)),
            _ => None,
        }
    }

    fn swapped(self, w_h: Output) -> Preactivations {
        let [of_x, of_h] = self.sides;
        let (x, h_prev, sides) = (self.h_prev, self.x, [of_h, of_x]);
        Preactivations { x, h_prev, w: w_h, w_h: Some(self.w), sides, ..self }
    }

    /// The bias of the cell: a vector of as many numbers as w has columns, or zeros. An error is a tensor that may have
    /// another shape.
    pub(super) fn b(&self, graph: &Graph, shapes: &LazyShapes) -> Result<Taken, Reason> {
        let sizes = |tensor| shapes.of(graph).sizes(graph, tensor);
        let other = |tensor: Output| Reason::Shape(graph.node(tensor.node).name.clone());
        let columns_of = |w| match sizes(w).as_deref() {
            Some(&[_, columns]) => Ok(columns),
            _ => Err(other(w)),
        };
        let columns = || columns_of(self.w);
        if let Some(w_h) = self.w_h
            && columns_of(w_h)? != columns()?
        {
            return Err(other(w_h));
        }
        let vector = |&bias: &Bias| match bias {
            Bias::OfColumns(b) => Ok(b),
            Bias::Fused(b) => match sizes(b).as_deref() {
                Some([_]) => Ok(b),
                _ => Err(other(b)),
            },
            Bias::Summand(b) => {
                let columns = columns()?;
                let is_vector = sizes(b).is_some_and(|sizes| sizes == [columns]);
                if is_vector { Ok(b) } else { Err(other(b)) }
            }
        };
        match self.biases.iter().map(vector).collect::<Result<Vec<_>, _>>()?[..] {
            [] => columns().map(Taken::Zeros),
            [b] => Ok(b.into()),
            [one, two] => Ok(Taken::Sum([one, two])),
            [_, _, more, ..] => Err(other(more)),
        }
    }

    /// The biases that a sum may have added.
    pub(super) fn added_biases(&self) -> impl Iterator<Item = Output> + '_ {
        self.biases.iter().filter_map(|&bias| match bias {
            Bias::Fused(b) | Bias::Summand(b) => Some(b),
            Bias::OfColumns(_) => None,
        })
    }

    /// Whether nothing is added to the products.
    pub(super) fn has_no_bias(&self) -> bool {
        self.biases.is_empty()
    }

    /// The nodes from z back to the products, which would be computed twice if others took what is in them.
    pub(super) fn products(&self) -> &[NodeId] {
        &self.products
    }

    /// Those among them that have as many rows as z.
    pub(super) fn whole(&self) -> &[NodeId] {
        &self.products[..self.whole]
    }

    /// The nodes from z back to what nobody but the cell may need.
    pub(super) fn nodes(&self) -> Vec<NodeId> {
        self.products.iter().copied().chain(self.concat).collect()
    }
}

/// Whether two tensors look like the output and the state of one step.
fn is_of_one_step(graph: &Graph, h: Output, cs: Output) -> bool {
    let [h, cs] = [h, cs].map(|tensor| skip_identities(graph, tensor));
    let is_variable = |tensor: Output| graph.op(tensor.node) == "Switch";
    let activated = |factor| unary(graph, factor, "Tanh").map(|cs| skip_identities(graph, cs));
    h.node == cs.node
        || (is_variable(h) && is_variable(cs))
        || factors(graph, h).is_some_and(|both| both.map(activated).contains(&Some(cs)))
}
