//! What peepholes and a clip of the cell state add to a backward step.

use super::broadcasts::Size;
use super::lstm::Clip;
use super::lstm_grad::{Peepholes, Reader, Slope};
use crate::graph::{Graph, NodeId, Output};
use crate::reading::constants::{has_zeros, integers, scalar};
use crate::reading::neighbours::{of, other_factor, takers};
use crate::reading::stacks::{is_same_outside, pushed};

/// What one gate's peephole adds.
#[derive(Default)]
struct Peephole {
    /// The weights, as the step takes them.
    weights: Option<Output>,
    /// The state that the gate looks at.
    state: Option<Output>,
    /// The products of the gate's gradient with the weights.
    through: Vec<Output>,
    /// What these are added up to, if there are any.
    summed_to: Option<Option<Size>>,
    /// With respect to the weights.
    gradients: Vec<Output>,
}

impl Reader<'_> {
    /// The gradient of a gate's pre-activation before it was added up for the summand beside the peephole.
    pub(super) fn before_peephole(&mut self, slope: Output, seen: Size) -> Output {
        match self.forward.peepholes.is_empty() {
            true => slope,
            false => self.before_sum(slope, Size::Gate, Some(seen)),
        }
    }

    /// Reads the two `Select` that stop the gradient of what was clipped.
    pub(super) fn before_clip(&mut self, gradient: Output) -> Option<Output> {
        let Some(Clip { bound, state, least }) = self.forward.clip else {
            return Some(gradient);
        };
        let passed = self.before_sum(gradient, Size::State, None);
        let passed = self.selected(passed, "LessEqual", (state, bound))?;
        let passed = self.before_sum(passed, Size::State, None);
        self.selected(passed, "GreaterEqual", (least, -bound))
    }

    /// Reads `Select(compare(tensor, bound), gradient, zeros)`.
    fn selected(
        &mut self,
        tensor: Output,
        compare: &str,
        (compared, bound): (Output, f32),
    ) -> Option<Output> {
        let node = self.graph.node(tensor.node);
        let is_select = matches!(node.op.as_str(), "Select" | "SelectV2");
        let &[mask, gradient, zeros] = node.inputs.first_chunk().filter(|_| is_select)?;
        let comparison = self.graph.node(mask.node);
        let is_such = comparison.op == compare
            && pushed(self.graph, comparison.inputs[0]) == compared
            && scalar(self.graph, comparison.inputs[1]) == Some(bound)
            && (has_zeros(self.graph, zeros) || self.graph.op(zeros.node) == "ZerosLike");
        self.nodes.extend([tensor.node, mask.node]);
        self.nodes.extend(nodes_of_zeros(self.graph, zeros));
        is_such.then_some(gradient)
    }

    /// Reads what peepholes add, and takes that of the output gate from the gradient of the state.
    pub(super) fn peepholes(
        &mut self,
        [i, f, o]: [&Slope; 3],
        cs_grad: &mut Vec<Output>,
    ) -> Option<Peepholes> {
        let forward = self.forward;
        let (&wco, others) = forward.peepholes.split_last()?;
        let o = self.peephole(o, wco, (forward.cs, [Size::State; 2]), forward.o.tensor)?;
        let place = cs_grad.iter().position(|summand| o.through.contains(summand))?;
        cs_grad.remove(place);
        let mut found = Peepholes { cs: o.state, ..Peepholes::default() };
        if let &[wci, wcf] = others {
            let seen = (forward.cs_prev?, [Size::Previous, Size::Seen]);
            let both = [
                self.peephole(i, wci, seen, forward.i.tensor)?,
                self.peephole(f, wcf, seen, forward.f()?)?,
            ];
            let mut summed = both.iter().filter_map(|one| one.summed_to);
            found.summed_to = summed.next().flatten();
            if summed.any(|size| size != found.summed_to) {
                return None;
            }
            for one in both {
                found.weights.push(one.weights?);
                found.through.push(one.through);
                found.gradients.push(one.gradients);
            }
        }
        found.weights.push(o.weights?);
        found.gradients.push(o.gradients);
        Some(found)
    }

    /// Reads what follows from the gradient of a gate's pre-activation, beside that of the products. The sizes are those of
    /// the state, and of its product with the weights. None if it is added up in several ways.
    fn peephole(
        &mut self,
        slope: &Slope,
        weights: Output,
        (state, [own, seen]): (Output, [Size; 2]),
        gate: Output,
    ) -> Option<Peephole> {
        // Without a product with the weights, the forward step has them, if the two are in one frame.
        let near = (slope.gate == gate).then_some(weights);
        let mut found = Peephole { weights: near, ..Peephole::default() };
        for (gradient, is_summed) in self.with_sums(slope.tensor, seen, Size::Gate) {
            for product in takers(self.graph, gradient, "Mul").map(of) {
                let Some(other) = other_factor(self.graph, product, gradient) else { continue };
                if pushed(self.graph, other) == state && found.state.is_none_or(|one| one == other)
                {
                    found.state = Some(other);
                    found.gradients.extend(self.sums_of_rows(product, own));
                    self.nodes.push(product.node);
                } else if is_same_outside(self.graph, other, weights) {
                    found.weights = Some(other);
                    let mut all = self.with_sums(product, own, Size::Weights);
                    // The operation has the sums alone, which may have fewer rows than the product.
                    for (through, ends) in all.drain(usize::from(all.len() > 1)..) {
                        // TensorFlow leaves out a sum where it knows that it would add nothing.
                        let size = ends.then_some(own).or(is_summed.then_some(seen));
                        if found.summed_to.is_some_and(|one| one != size) {
                            return None;
                        }
                        found.summed_to = Some(size);
                        found.through.push(through);
                    }
                    self.nodes.push(product.node);
                }
            }
        }
        if found.gradients.is_empty() {
            found.state = None;
        }
        Some(found)
    }

    /// A tensor, and what it is added up to for an operand of this size beside another one. True for the latter.
    fn with_sums(&mut self, tensor: Output, own: Size, other: Size) -> Vec<(Output, bool)> {
        let mut all = vec![(tensor, false)];
        for sum in reshaped_sums(self.graph, tensor) {
            match self.sum(sum, own, Some(other)) {
                Some((inner, nodes)) if inner == tensor => {
                    self.nodes.extend(nodes);
                    all.push((sum, true));
                }
                _ => {}
            }
        }
        all
    }

    /// The sums of the rows of a product, of the shape of the weights.
    fn sums_of_rows(&mut self, product: Output, state: Size) -> Vec<Output> {
        let mut all = Vec::new();
        for sum in takers(self.graph, product, "Sum") {
            let node = self.graph.node(sum);
            if !matches!(integers(self.graph, node.inputs[1]), Some([0])) {
                continue;
            }
            let sums = match node.flag("keep_dims") {
                false => vec![of(sum)],
                true => takers(self.graph, of(sum), "Reshape")
                    .filter(|&id| names_vector(self.graph, self.graph.input(id, 1)))
                    .map(of)
                    .collect(),
            };
            self.nodes.push(sum);
            self.nodes.extend(sums.iter().map(|sum| sum.node));
            all.extend(sums);
        }
        for sum in reshaped_sums(self.graph, product) {
            match self.sum(sum, Size::Weights, Some(state)) {
                Some((inner, nodes)) if inner == product && !all.contains(&of(nodes[1])) => {
                    self.nodes.extend(nodes);
                    all.push(sum);
                }
                _ => {}
            }
        }
        all
    }
}

/// Whether a constant is the shape of a vector.
fn names_vector(graph: &Graph, shape: Output) -> bool {
    integers(graph, shape).is_some_and(|sizes| sizes.len() == 1)
}

/// The tensors `Reshape(Sum(tensor))`.
fn reshaped_sums(graph: &Graph, tensor: Output) -> Vec<Output> {
    let sums = takers(graph, tensor, "Sum").map(of);
    sums.flat_map(|sum| takers(graph, sum, "Reshape")).map(of).collect()
}

/// The nodes that compute zeros, as far as a step would be their only reader.
fn nodes_of_zeros(graph: &Graph, zeros: Output) -> Vec<NodeId> {
    match graph.op(zeros.node) {
        "ZerosLike" => vec![zeros.node],
        "Fill" => {
            let shape = graph.input(zeros.node, 0).node;
            let shape = (graph.op(shape) == "Shape").then_some(shape);
            shape.into_iter().chain([zeros.node]).collect()
        }
        _ => Vec::new(),
    }
}
