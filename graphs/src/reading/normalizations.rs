//! Layer normalization, as `tf.nn.moments` and `tf.nn.batch_normalization` write it, or a program with its own sums.
//!
//! ```text
//! mean = Mean(x, 1)        variance = Mean(SquaredDifference(x, mean), 1)        scale = Rsqrt(variance + epsilon)
//! inverse = scale * gamma
//! y = x * inverse + (beta - mean * inverse) [+ bias]            the summands in any order
//! y = (x - mean) * scale * gamma + beta [+ bias]
//! ```
//!
//! TensorFlow 2 makes `_MklLayerNorm(x, gamma, beta)` of it on some processors, with the last axis.
//!
//! TensorFlow's optimizers put the summands in other orders, and a number that is added to y among them.

use super::constants::{integers, names_columns, scalar};
use super::neighbours::{of, other_factor, takers};
use crate::graph::{Attribute, Graph, NodeId, Output};

/// A normalized tensor.
#[derive(Clone, Debug)]
pub(crate) struct Normalization {
    /// What it becomes.
    pub(crate) y: Output,
    pub(crate) gamma: Output,
    pub(crate) beta: Output,
    pub(crate) epsilon: f32,
    /// The axis that means are taken over: 1 or -1.
    pub(crate) axis: i64,
    /// A number that is added to it.
    pub(crate) bias: Option<f32>,
    pub(crate) nodes: Vec<NodeId>,
    /// What it is computed by, if that is a sum with `mean * inverse`.
    pub(crate) inner: Option<Inner>,
}

/// The tensors between x and a normalized tensor.
#[derive(Clone, Debug)]
pub(crate) struct Inner {
    pub(crate) mean: Output,
    /// `Rsqrt(variance + epsilon)`
    pub(crate) scale: Output,
    /// `scale * gamma`
    pub(crate) inverse: Output,
    /// Of the shape of x.
    pub(crate) like_x: Vec<Output>,
    /// With one number for each mean.
    pub(crate) like_mean: Vec<Output>,
    /// Of the shape of y.
    pub(crate) like_y: Vec<Output>,
}

/// The operation that is a whole normalization.
pub(crate) const FUSED: &str = "_MklLayerNorm";

/// No sum of these has more nodes.
const MOST_SUMS: usize = 5;

/// What a normalization begins with.
struct Scale {
    mean: Output,
    axis: i64,
    epsilon: f32,
    scale: Output,
    /// The mean, what stands for it in `squares`, `squares`, the variance, its sum with epsilon, and `scale`.
    nodes: [NodeId; 6],
}

/// A summand: a tensor, or its negative.
type Term = (bool, Output);

impl Normalization {
    /// All that a graph computes of a tensor.
    pub(crate) fn all(graph: &Graph, x: Output) -> Vec<Normalization> {
        let scales = Scale::all(graph, x);
        let found = scales.iter().flat_map(|scale| {
            let products = takers(graph, scale.scale, "Mul").map(of);
            products.flat_map(|product| {
                let other = other_factor(graph, product, scale.scale);
                let of_sum =
                    other.and_then(|gamma| Normalization::of_sum(graph, x, scale, product, gamma));
                let centered = other.and_then(|centered| {
                    Normalization::of_centered(graph, x, scale, product, centered)
                });
                of_sum.into_iter().flatten().chain(centered.into_iter().flatten())
            })
        });
        found.chain(fused(graph, x)).collect()
    }

    /// `x * inverse + beta - mean * inverse`, where `inverse` is `scale * gamma`.
    fn of_sum(
        graph: &Graph,
        x: Output,
        scale: &Scale,
        inverse: Output,
        gamma: Output,
    ) -> Option<Vec<Normalization>> {
        let product = |of_what: Output| {
            takers(graph, inverse, "Mul")
                .map(of)
                .find(|&product| other_factor(graph, product, inverse) == Some(of_what))
        };
        let (scaled, offset) = (product(x)?, product(scale.mean)?);
        let nodes = [inverse.node, scaled.node, offset.node];
        let [mean, copy, squares, variance, sum, _] = scale.nodes.map(of);
        let inner = Inner {
            mean: scale.mean,
            scale: scale.scale,
            inverse,
            like_x: vec![x, squares],
            like_mean: vec![mean, copy, variance, sum, scale.scale],
            like_y: nodes.map(of).into(),
        };
        let mut found =
            with_sums(graph, scale, gamma, (&[(false, scaled), (true, offset)], &nodes));
        for one in &mut found {
            let mut inner = inner.clone();
            // A sum with a summand that is as large as y is so, too.
            for &sum in (0..MOST_SUMS).flat_map(|_| &one.nodes) {
                let inputs = &graph.node(sum).inputs;
                if inputs.iter().any(|input| inner.like_y.contains(input)) {
                    inner.like_y.push(of(sum));
                }
            }
            one.inner = Some(inner);
        }
        Some(found)
    }

    /// `(x - mean) * scale * gamma + beta`, from its first product.
    fn of_centered(
        graph: &Graph,
        x: Output,
        scale: &Scale,
        product: Output,
        centered: Output,
    ) -> Option<Vec<Normalization>> {
        let node = graph.node(centered.node);
        let is_centered = node.op == "Sub" && node.inputs[..] == [x, scale.mean];
        let products = takers(graph, product, "Mul").map(of).filter(|_| is_centered);
        let found = products.flat_map(|scaled| {
            let gamma = other_factor(graph, scaled, product);
            let nodes = [centered.node, product.node, scaled.node];
            let all =
                gamma.map(|gamma| with_sums(graph, scale, gamma, (&[(false, scaled)], &nodes)));
            all.unwrap_or_default()
        });
        Some(found.collect())
    }
}

/// Those that TensorFlow has fused, with a number that may be added.
fn fused(graph: &Graph, x: Output) -> Vec<Normalization> {
    let of_node = |id: NodeId| {
        let node = graph.node(id);
        let &[input, gamma, beta] = &node.inputs[..] else { return Vec::new() };
        let Some(&Attribute::Float(epsilon)) = node.attribute("epsilon") else { return Vec::new() };
        if input != x {
            return Vec::new();
        }
        let (y, axis, bias, nodes) = (of(id), -1, None, vec![id]);
        let inner = None;
        let plain = Normalization { y, gamma, beta, epsilon, axis, bias, nodes, inner };
        let sums = ["Add", "AddV2"].into_iter().flat_map(|op| takers(graph, y, op));
        let with_bias = sums.filter_map(|sum| {
            let &[left, right] = &graph.node(sum).inputs[..] else { return None };
            let bias = scalar(graph, if left == y { right } else { left })?;
            let nodes = vec![id, sum];
            Some(Normalization { y: of(sum), bias: Some(bias), nodes, ..plain.clone() })
        });
        let with_bias: Vec<_> = with_bias.collect();
        [vec![plain], with_bias].concat()
    };
    takers(graph, x, FUSED).flat_map(of_node).collect()
}

/// The normalizations that are sums of these terms, one more, and perhaps a number.
fn with_sums(
    graph: &Graph,
    scale: &Scale,
    gamma: Output,
    (needed, nodes): (&[Term], &[NodeId]),
) -> Vec<Normalization> {
    let found = sums_of(graph, needed[0].1).into_iter().filter_map(|y| {
        let (mut terms, sums) = terms(graph, y)?;
        for one in needed {
            let place = terms.iter().position(|term| term == one)?;
            terms.remove(place);
        }
        let number = |&(is_negative, term): &Term| {
            scalar(graph, term).map(|number| if is_negative { -number } else { number })
        };
        let numbers: Vec<_> = terms.iter().filter_map(number).collect();
        terms.retain(|term| number(term).is_none());
        let (&[(false, beta)], true) = (&terms[..], numbers.len() < 2) else { return None };
        Some(Normalization {
            y,
            gamma,
            beta,
            epsilon: scale.epsilon,
            axis: scale.axis,
            bias: numbers.first().copied(),
            nodes: {
                let mut all = [&scale.nodes[..], nodes, &sums].concat();
                all.dedup();
                all
            },
            inner: None,
        })
    });
    found.collect()
}

impl Scale {
    /// All that are computed of a tensor.
    fn all(graph: &Graph, x: Output) -> Vec<Scale> {
        let means = takers(graph, x, "Mean").filter_map(|mean| Some((mean, axis(graph, mean)?)));
        let found = means.flat_map(|(mean, axis)| {
            let mean = of(mean);
            // The gradient stops there, which is nothing but a copy.
            let copies = ["Identity", "StopGradient"].into_iter();
            let copies = copies.flat_map(move |op| takers(graph, mean, op)).map(of);
            let squares = copies.chain([mean]).flat_map(move |mean| {
                let is_of_both = move |&id: &NodeId| {
                    let inputs = &graph.node(id).inputs[..];
                    inputs == [x, mean] || inputs == [mean, x]
                };
                let squares = takers(graph, mean, "SquaredDifference").filter(is_of_both);
                squares.map(move |id| (id, mean.node)).collect::<Vec<_>>()
            });
            squares.flat_map(move |(squares, copy)| {
                let own = move |&id: &NodeId| self::axis(graph, id) == Some(axis);
                let variances = takers(graph, of(squares), "Mean").filter(own);
                variances
                    .filter_map(move |variance| {
                        let nodes = [mean.node, copy, squares, variance];
                        Scale::of_variance(graph, (mean, axis), of(variance), nodes)
                    })
                    .collect::<Vec<_>>()
            })
        });
        found.collect()
    }

    fn of_variance(
        graph: &Graph,
        (mean, axis): (Output, i64),
        variance: Output,
        [mean_node, copy, squares, variance_node]: [NodeId; 4],
    ) -> Option<Scale> {
        let sums = ["Add", "AddV2"].into_iter().flat_map(|op| takers(graph, variance, op));
        let (sum, epsilon) = sums
            .filter_map(|sum| {
                let &[left, right] = &graph.node(sum).inputs[..] else { return None };
                let other = if left == variance { right } else { left };
                Some((sum, scalar(graph, other)?))
            })
            .next()?;
        let root = takers(graph, of(sum), "Rsqrt").next()?;
        let nodes = [mean_node, copy, squares, variance_node, sum, root];
        Some(Scale { mean, axis, epsilon, scale: of(root), nodes })
    }
}

/// The axis of a mean that keeps the number of axes, if that is the second or the last one.
fn axis(graph: &Graph, mean: NodeId) -> Option<i64> {
    let node = graph.node(mean);
    let keeps = node.flag("keep_dims") && names_columns(graph, node.inputs[1]);
    integers(graph, node.inputs[1])?.first().copied().filter(|_| keeps)
}

/// All sums that a tensor is part of, as far as there are no more nodes than a normalization has.
pub(crate) fn sums_of(graph: &Graph, tensor: Output) -> Vec<Output> {
    let (mut found, mut open) = (Vec::new(), vec![(tensor, 0)]);
    while let Some((next, depth)) = open.pop() {
        if depth == MOST_SUMS {
            continue;
        }
        for op in ["Add", "AddV2", "AddN", "Sub"] {
            let sums = takers(graph, next, op).map(of);
            for sum in sums {
                found.push(sum);
                open.push((sum, depth + 1));
            }
        }
    }
    found
}

/// The summands of a tensor with their signs, and the nodes that add them up.
fn terms(graph: &Graph, tensor: Output) -> Option<(Vec<Term>, Vec<NodeId>)> {
    let (mut found, mut nodes, mut open) = (Vec::new(), Vec::new(), vec![(false, tensor)]);
    while let Some((is_negative, next)) = open.pop() {
        let node = graph.node(next.node);
        match (node.op.as_str(), &node.inputs[..]) {
            ("Add" | "AddV2" | "AddN", inputs) => {
                open.extend(inputs.iter().map(|&one| (is_negative, one)));
            }
            ("Sub", &[left, right]) => open.extend([(is_negative, left), (!is_negative, right)]),
            _ => {
                found.push((is_negative, next));
                continue;
            }
        }
        nodes.push(next.node);
        if nodes.len() > MOST_SUMS {
            return None;
        }
    }
    Some((found, nodes))
}
