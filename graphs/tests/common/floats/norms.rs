//! What the operations on normalizations compute, and operations of their gradients.

use blockcell_graphs::{Attribute, Node, ops};

use super::tensor::{Tensor, broadcast};

fn float(node: &Node, name: &str) -> f64 {
    match super::attribute(node, name) {
        Some(Attribute::Float(value)) => f64::from(*value),
        _ => 0.0,
    }
}

/// The outputs of a node, None for an error; the outer None if the operation is another one.
pub(crate) fn compute(node: &Node, inputs: &[Tensor]) -> Option<Option<Vec<Tensor>>> {
    Some(match node.op.as_str() {
        ops::LAYER_NORM => layer_norm(node, inputs),
        ops::LAYER_NORM_GRAD => layer_norm_grad(node, inputs),
        "RsqrtGrad" => rsqrt_grad(inputs),
        "Tile" => tile(inputs),
        "BroadcastTo" => broadcast_to(inputs),
        "Cast" => Some(vec![inputs[0].clone()]),
        "Prod" => product(inputs),
        "FloorDiv" => {
            let is_zero = inputs[1].elements.contains(&0.0);
            let quotient = inputs[0].zip(&inputs[1], |left, right| (left / right).floor());
            quotient.filter(|_| !is_zero).map(|quotient| vec![quotient])
        }
        "DynamicStitch" => stitch(inputs),
        _ => return None,
    })
}

/// `x`, normalized, and one divided by the deviations.
fn normalized(node: &Node, x: &Tensor, axis: i64) -> Option<[Tensor; 2]> {
    let ones = Tensor::filled(&x.shape, 1.0).sum(&[axis], true)?;
    let mean = |x: &Tensor| x.sum(&[axis], true)?.zip(&ones, |sum, count| sum / count);
    let centered = x.zip(&mean(x)?, |x, mean| x - mean)?;
    let epsilon = float(node, "epsilon");
    let scale = mean(&centered.times(&centered)?)?.map(|v| 1.0 / (v + epsilon).sqrt());
    Some([centered.times(&scale)?, scale])
}

fn layer_norm(node: &Node, inputs: &[Tensor]) -> Option<Vec<Tensor>> {
    let [x, gamma, beta] = inputs else { return None };
    if gamma.shape.len() != 1 || gamma.shape != beta.shape {
        return None;
    }
    let [normalized, _] = normalized(node, x, super::int(node, "axis"))?;
    let bias = float(node, "bias");
    Some(vec![normalized.times(gamma)?.plus(&beta.map(|b| b + bias))?])
}

fn layer_norm_grad(node: &Node, inputs: &[Tensor]) -> Option<Vec<Tensor>> {
    let [x, gamma, dy] = inputs else { return None };
    let rows = super::int(node, "rows");
    let y = broadcast(&x.shape, &gamma.shape)?;
    if x.shape.len() != 2 || gamma.shape.len() != 1 {
        return None;
    }
    let is_known = rows >= 0;
    if is_known && (y[0] != rows as usize || y[1] != gamma.shape[0] || x.shape[0] != y[0]) {
        return None;
    }
    let is_one_row = is_known && dy.shape == [1, y[1]];
    if dy.shape != y && !is_one_row {
        return None;
    }
    let [n, scale] = normalized(node, x, 1)?;
    let shape = if is_known { &y } else { &x.shape };
    let all = dy.spread(&y)?;
    let scaled = all.times(gamma)?;
    let count = shape[1] as f64;
    let mean = |tensor: &Tensor| Some(tensor.sum(&[1], true)?.map(|sum| sum / count));
    let of_both = mean(&scaled.times(&n)?)?;
    let through = scaled.sum_to(shape)?.plus(&mean(&scaled)?.map(|x| -x))?;
    let dx = through.plus(&n.times(&of_both)?.map(|x| -x))?.times(&scale)?;
    let dgamma = all.times(&n)?.sum_to(&gamma.shape)?;
    Some(vec![dx, dgamma, dy.sum_to(&gamma.shape)?])
}

fn rsqrt_grad(inputs: &[Tensor]) -> Option<Vec<Tensor>> {
    let [y, dy] = inputs else { return None };
    let gradient = y.zip(dy, |y, dy| -0.5 * dy * y * y * y)?;
    (y.shape == dy.shape).then_some(vec![gradient])
}

fn tile(inputs: &[Tensor]) -> Option<Vec<Tensor>> {
    let [tensor, times] = inputs else { return None };
    let times = times.sizes()?;
    let fits = times.len() == tensor.shape.len() && times.iter().all(|n| (1..9).contains(n));
    let mut all = tensor.clone();
    for (axis, &n) in times.iter().enumerate().filter(|_| fits) {
        all = super::tensor::concat(&vec![all; n as usize], axis as f64)?;
    }
    fits.then_some(vec![all])
}

fn broadcast_to(inputs: &[Tensor]) -> Option<Vec<Tensor>> {
    let sizes = inputs[1].sizes()?;
    let is_small = sizes.len() <= 4 && sizes.iter().all(|size| (0..=9).contains(size));
    let shape: Vec<_> = sizes.iter().map(|&size| size as usize).collect();
    is_small.then(|| inputs[0].spread(&shape))?.map(|all| vec![all])
}

/// The product of the elements of a vector.
fn product(inputs: &[Tensor]) -> Option<Vec<Tensor>> {
    let is_vector = inputs[0].shape.len() == 1 && inputs[1].sizes()? == [0];
    is_vector.then(|| vec![Tensor::scalar(inputs[0].elements.iter().product())])
}

/// `DynamicStitch` of two vectors.
fn stitch(inputs: &[Tensor]) -> Option<Vec<Tensor>> {
    let [first, second, one, other] = inputs else { return None };
    let mut all = Vec::new();
    for (places, values) in [(first, one), (second, other)] {
        if places.shape != values.shape {
            return None;
        }
        for (&place, &value) in places.elements.iter().zip(&values.elements) {
            let place = (0.0..9.0).contains(&place).then_some(place as usize)?;
            all.resize(all.len().max(place + 1), 0.0);
            all[place] = value;
        }
    }
    Some(vec![Tensor::vector(all)])
}
