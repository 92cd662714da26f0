//! The gradient of a normalization, `y = x * inverse + (beta - mean * inverse)` with `inverse = scale * gamma`.
//!
//! ```text
//! dinverse = dy * x + -dy * mean             dgamma = Sum(dinverse * scale, 0)       dbeta = Sum(dy, 0)
//! dscale = Sum(dinverse * gamma, 1)          dvariance = RsqrtGrad(scale, dscale)
//! dmean = Sum(-dy * inverse, 1)
//! dx = dy * inverse + spread(dvariance) * 2 * (x - mean) + spread(dmean)
//! ```
//!
//! `spread` is the gradient of `Mean`: it repeats one number for each column, and divides it by how many there are. No gradient
//! comes through the mean that the variance takes. In the loop of a gradient, what is taken from the forward step comes from
//! stacks or lists. Where TensorFlow does not know that shapes are equal, it adds up what was broadcast, and computes how
//! often to repeat from shapes: `layer_norm_shapes.rs`.

use std::cell::Cell;

use super::layer_norm::{Norm, looks_like_gradient};
use super::step::{self, Context, Step, taken};
use crate::facts::shapes::LazyShapes;
use crate::graph::reason::Reason;
use crate::graph::report::Report;
use crate::graph::{Attribute, Graph, NodeId, Output, ops};
use crate::reading::constants::{integers, scalar};
use crate::reading::neighbours::{factors, of, summands, takers, unary};
use crate::reading::normalizations::{Inner, sums_of};
use crate::reading::stacks::{factors_with, is_same_outside, pushed};

/// The shapes of a normalization's tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Like {
    X,
    /// One number for each mean.
    Mean,
    /// What x and the scale broadcast to.
    Y,
    /// That of scale and offset.
    Vector,
}

/// What a graph knows of shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// All are known.
    Known { rows: i64, cells: i64 },
    /// Only that of scale and offset is, or TensorFlow's optimizers have put constants for the shapes.
    Open { cells: i64 },
}

impl Form {
    /// That of a graph in which a tensor is the gradient of the scale.
    fn of(graph: &Graph, dscale: Output, cells: i64) -> Form {
        let sizes = reshaped(graph, dscale).and_then(|(sum, shape)| {
            let axes = graph.node(sum.node).inputs.get(1).copied()?;
            integers(graph, axes).and(integers(graph, shape))
        });
        match sizes {
            Some(&[rows, 1]) if rows >= 0 => Form::Known { rows, cells },
            _ => Form::Open { cells },
        }
    }

    fn rows(self) -> Option<i64> {
        match self {
            Form::Known { rows, .. } => Some(rows),
            Form::Open { .. } => None,
        }
    }
}

/// Replaces all gradients of these normalizations. Returns those of which there was one.
pub(super) fn rewrite(
    graph: &mut Graph,
    context: &mut Context,
    (shapes, norms): (&LazyShapes, Vec<Norm>),
    report: &mut Report,
) -> Vec<Norm> {
    let places: Vec<_> = graph.ids().filter(|&id| looks_like_gradient(graph, id)).collect();
    let mut gradients: Vec<_> =
        places.iter().map(|&id| (id, pushed(graph, graph.input(id, 0)))).collect();
    gradients.sort_by_key(|&(_, scale)| scale);
    let mut rewritten = Vec::new();
    for norm in norms {
        let Some(inner) = &norm.norm.inner else { continue };
        let first = gradients.partition_point(|&(_, scale)| scale < inner.scale);
        let own = gradients[first..].iter().take_while(|&&(_, scale)| scale == inner.scale);
        let mut is_replaced = false;
        for &(id, _) in own {
            let step = read(graph, shapes, &norm, inner, id);
            let step = step.map_err(|part| Reason::equation(graph, id, part));
            is_replaced |= step::replace(graph, context, (id, step), report);
        }
        if is_replaced {
            rewritten.push(norm);
        }
    }
    rewritten
}

/// The gradient that a `RsqrtGrad` is a part of. An error is the part that has another equation.
fn read(
    graph: &Graph,
    shapes: &LazyShapes,
    norm: &Norm,
    inner: &Inner,
    place: NodeId,
) -> Result<Step, &'static str> {
    let shapes = shapes.of(graph);
    let vector = |tensor| match shapes.sizes(graph, tensor).as_deref() {
        Some(&[cells]) => Some(cells),
        _ => None,
    };
    let cells = vector(norm.norm.gamma)
        .filter(|&cells| vector(norm.norm.beta) == Some(cells))
        .ok_or("shapes of scale and offset")?;
    let vectors = [norm.norm.gamma, norm.norm.beta];
    let like = |tensor: Output| match () {
        () if tensor == norm.x || inner.like_x.contains(&tensor) => Some(Like::X),
        () if inner.like_mean.contains(&tensor) => Some(Like::Mean),
        () if norm.inner().any(|one| one.like_y.contains(&tensor)) => Some(Like::Y),
        () if vectors.iter().any(|&one| is_same_outside(graph, one, tensor)) => Some(Like::Vector),
        () => None,
    };
    let form = Form::of(graph, graph.input(place, 1), cells);
    let rows = Cell::new(form.rows());
    Reader { graph, norm, inner, like: &like, form, rows, nodes: vec![place] }.read(place)
}

pub(super) struct Reader<'g> {
    pub(super) graph: &'g Graph,
    norm: &'g Norm,
    inner: &'g Inner,
    /// The shape of a tensor of the normalization.
    pub(super) like: &'g dyn Fn(Output) -> Option<Like>,
    pub(super) form: Form,
    /// How many rows there are, if constants name them, and -1 if not.
    pub(super) rows: Cell<Option<i64>>,
    /// The nodes that were read.
    pub(super) nodes: Vec<NodeId>,
}

/// What comes through `inverse`.
struct ThroughInverse {
    /// The gradient with respect to it.
    gradient: Output,
    x: Output,
    gamma: Output,
    dy: Output,
    /// `dy`, as the product with x takes it.
    scaled: Output,
    /// `dy`, as it is added up for beta.
    offset: Output,
    /// `-dy`, as the product with the mean takes it.
    negative: Output,
}

impl Reader<'_> {
    fn read(mut self, place: NodeId) -> Result<Step, &'static str> {
        let graph = self.graph;
        let through = self.inverse(graph.input(place, 1)).ok_or("gradient of the scale")?;
        let dgamma = self.sums_of_product(through.gradient, self.inner.scale);
        let dbeta = self.column_sums(through.offset);
        if dgamma.is_empty() && dbeta.is_empty() {
            return Err("gradients of scale and offset");
        }
        let dx = self.x(place, &through).ok_or("gradient of what is normalized")?;
        let mut nodes = self.nodes;
        nodes.sort_unstable();
        nodes.dedup();
        nodes.retain(|&id| graph.op(id) != "Const");
        let attributes = vec![
            ("epsilon", self.norm.norm.epsilon.into()),
            ("rows", Attribute::Int(self.rows.get().unwrap_or(-1))),
        ];
        Ok(Step {
            root: dx.node,
            nodes,
            op: ops::LAYER_NORM_GRAD,
            inputs: taken([through.x, through.gamma, through.dy]),
            attributes,
            outputs: vec![vec![dx], dgamma, dbeta],
            row_sums: Vec::new(),
        })
    }

    /// Reads `Sum((dy * x + -dy * mean) * gamma)`.
    fn inverse(&mut self, dscale: Output) -> Option<ThroughInverse> {
        let graph = self.graph;
        if graph.op(dscale.node) != "Reshape" {
            return None;
        }
        let product = self.row_sum(dscale, Some(Like::Vector))?;
        let [left, right] = factors(graph, product)?;
        let is_gamma = |tensor| is_same_outside(graph, tensor, self.norm.norm.gamma);
        let (gradient, gamma) = match (is_gamma(left), is_gamma(right)) {
            (_, true) => (left, right),
            (true, false) => (right, left),
            (false, false) => return None,
        };
        self.nodes.extend([product.node, gradient.node]);
        let node = graph.node(gradient.node);
        let is_sum = matches!(node.op.as_str(), "AddN" | "Add" | "AddV2");
        let &[one, other] = &node.inputs[..] else { return None };
        let read = |reader: &mut Self, with_x: Output, with_mean: Output| {
            let with_x = reader.sum(with_x, Like::Y, Like::X)?;
            let (scaled, x) = factors_with(graph, with_x, reader.norm.x)?;
            let with_mean = reader.sum(with_mean, Like::Y, Like::Mean)?;
            let (negative, _) = factors_with(graph, with_mean, reader.inner.mean)?;
            let inner = reader.sum(negative, Like::Y, Like::Vector)?;
            let offset = unary(graph, inner, "Neg")?;
            let dy = reader.sum(scaled, Like::Y, Like::Y)?;
            let is_same = reader.sum(offset, Like::Y, Like::Y)? == dy;
            reader.nodes.extend([with_x.node, with_mean.node, inner.node]);
            is_same.then_some(ThroughInverse { gradient, x, gamma, dy, scaled, offset, negative })
        };
        let nodes = self.nodes.clone();
        let found = is_sum.then(|| read(self, one, other)).flatten();
        found.or_else(|| {
            self.nodes = nodes;
            is_sum.then(|| read(self, other, one)).flatten()
        })
    }

    /// The sums over the rows of the products of a tensor with one of the forward step.
    fn sums_of_product(&mut self, one: Output, other: Output) -> Vec<Output> {
        let graph = self.graph;
        let is_such = |product: &Output| {
            factors_with(graph, *product, other).is_some_and(|(factor, _)| factor == one)
        };
        let products: Vec<_> = takers(graph, one, "Mul").map(of).filter(is_such).collect();
        let mut all = Vec::new();
        for product in products {
            let sums = self.column_sums(product);
            if !sums.is_empty() {
                self.nodes.push(product.node);
                all.extend(sums);
            }
        }
        all
    }

    /// The gradient with respect to x: a sum of what comes through the product with it, the variance and the mean.
    fn x(&mut self, place: NodeId, through: &ThroughInverse) -> Option<Output> {
        let graph = self.graph;
        let products: Vec<_> = takers(graph, through.scaled, "Mul").map(of).collect();
        for product in products {
            let Some((_, inverse)) = factors_with(graph, product, self.inner.inverse) else {
                continue;
            };
            if inverse == through.scaled {
                continue;
            }
            for own in self.results(product, Like::X, Like::Y) {
                for dx in sums_of(graph, own) {
                    let nodes = self.nodes.clone();
                    if self.is_sum(dx, (own, product), place, through).is_some() {
                        return Some(dx);
                    }
                    self.nodes = nodes;
                }
            }
        }
        None
    }

    /// Whether a tensor is the sum of this one, and of what comes through the variance and the mean.
    fn is_sum(
        &mut self,
        dx: Output,
        (own, product): (Output, Output),
        place: NodeId,
        through: &ThroughInverse,
    ) -> Option<()> {
        let (mut terms, sums) = summands(self.graph, dx);
        terms.remove(terms.iter().position(|&term| term == own)?);
        let &[one, other] = &terms[..] else { return None };
        self.nodes.extend(sums);
        let inner = self.sum(own, Like::X, Like::Y)?;
        self.nodes.extend([product.node, inner.node]);
        let nodes = self.nodes.clone();
        let mut read = |of_variance, of_mean| {
            self.nodes.clone_from(&nodes);
            self.variance(of_variance, place)?;
            self.mean(of_mean, through.negative)
        };
        read(one, other).or_else(|| read(other, one))
    }

    /// Reads `spread(dvariance) * 2 * (x - mean)`.
    fn variance(&mut self, tensor: Output, place: NodeId) -> Option<()> {
        let graph = self.graph;
        let product = self.sum(tensor, Like::X, Like::Mean)?;
        let [left, right] = factors(graph, product)?;
        let is_centered = |tensor: Output| {
            let node = graph.node(tensor.node);
            node.op == "Sub"
                && pushed(graph, node.inputs[0]) == self.norm.x
                && self.inner.like_mean[..2].contains(&pushed(graph, node.inputs[1]))
        };
        let (twice, centered) = match (is_centered(left), is_centered(right)) {
            (_, true) => (left, right),
            (true, false) => (right, left),
            (false, false) => return None,
        };
        let both = factors(graph, twice)?;
        let two = both.iter().position(|&tensor| scalar(graph, tensor) == Some(2.0))?;
        self.nodes.extend([product.node, twice.node, centered.node]);
        let variance = self.before_spread(both[1 - two])?;
        (self.number_sum(variance)? == of(place)).then_some(())
    }

    /// Reads `spread(Sum(-dy * inverse))`.
    fn mean(&mut self, tensor: Output, negative: Output) -> Option<()> {
        let sum = self.before_spread(tensor)?;
        let product = self.row_sum(sum, Some(Like::Y))?;
        self.nodes.push(product.node);
        let (factor, _) = factors_with(self.graph, product, self.inner.inverse)?;
        (factor == negative).then_some(())
    }
}

/// What is reshaped, and the shape.
pub(super) fn reshaped(graph: &Graph, tensor: Output) -> Option<(Output, Output)> {
    let node = graph.node(tensor.node);
    (node.op == "Reshape").then(|| (node.inputs[0], node.inputs[1]))
}
