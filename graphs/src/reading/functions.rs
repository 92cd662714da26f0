//! Functions of pre-activations and of states, as graphs write them.
//!
//! ```text
//! tanh, sigmoid, relu      Tanh(x), Sigmoid(x), Relu(x)
//! hard_sigmoid             Relu6(x + 3) / 6, or times 1 / 6
//! hard_sigmoid_keras2      Maximum(Minimum(x * 0.2 + 0.5, 1), 0)
//! linear                   x
//! ```

use blockcell_kernels::Activation;

use super::constants::scalar;
use super::neighbours::{of, takers};
use crate::graph::{Attribute, Graph, NodeId, Output};

/// A function of a tensor.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) activation: Activation,
    /// The function of the tensor.
    pub(crate) tensor: Output,
    /// The nodes that compute it.
    pub(crate) nodes: Vec<NodeId>,
}

impl Function {
    /// All functions of a tensor that a graph computes, but for the tensor itself.
    pub(crate) fn all(graph: &Graph, x: Output) -> Vec<Function> {
        Activation::ALL.into_iter().flat_map(|activation| of_kind(graph, x, activation)).collect()
    }

    /// The one function of a tensor that a graph computes; if there is none, the tensor itself.
    pub(crate) fn only(graph: &Graph, x: Output) -> Option<Function> {
        let mut all = Function::all(graph, x);
        match all.len() {
            0 => Some(Function::linear(x)),
            1 => all.pop(),
            _ => None,
        }
    }

    /// A tensor as a function of itself.
    pub(crate) fn linear(x: Output) -> Function {
        Function { activation: Activation::Linear, tensor: x, nodes: Vec::new() }
    }

    /// A function of a tensor.
    pub(crate) fn of(
        graph: &Graph,
        x: Output,
        activation: Activation,
    ) -> impl Iterator<Item = Function> {
        let itself = (activation == Activation::Linear).then(|| Function::linear(x));
        of_kind(graph, x, activation).into_iter().chain(itself)
    }
}

/// The operation of a function that is one, and of its gradient.
fn op(activation: Activation) -> Option<[&'static str; 2]> {
    match activation {
        Activation::Tanh => Some(["Tanh", "TanhGrad"]),
        Activation::Sigmoid => Some(["Sigmoid", "SigmoidGrad"]),
        Activation::Relu => Some(["Relu", "ReluGrad"]),
        _ => None,
    }
}

fn of_kind(graph: &Graph, x: Output, activation: Activation) -> Vec<Function> {
    if let Some([op, _]) = op(activation) {
        let function = |id| Function { activation, tensor: of(id), nodes: vec![id] };
        return takers(graph, x, op).map(function).collect();
    }
    let steps: &[&[(&str, f32)]] = match activation {
        Activation::HardSigmoid => {
            &[&[("Add", 3.0)], &[("Relu6", 0.0)], &[("RealDiv", 6.0), ("Mul", 1.0 / 6.0)]]
        }
        Activation::HardSigmoidKeras2 => {
            &[&[("Mul", 0.2)], &[("Add", 0.5)], &[("Minimum", 1.0)], &[("Maximum", 0.0)]]
        }
        _ => &[],
    };
    let none = Function { activation, tensor: x, nodes: Vec::new() };
    let found = steps.iter().try_fold(vec![none], |before, step| {
        let next = |one: &Function| {
            let after = step.iter().flat_map(|&(op, by)| results(graph, one.tensor, op, by));
            let one = one.clone();
            let more = after.map(move |id| Function {
                tensor: of(id),
                nodes: [&one.nodes[..], &[id]].concat(),
                activation,
            });
            more.collect::<Vec<_>>()
        };
        let all: Vec<_> = before.iter().flat_map(next).collect();
        (!all.is_empty()).then_some(all)
    });
    found.filter(|_| !steps.is_empty()).unwrap_or_default()
}

/// The nodes that compute something of a tensor and a number. `Add` stands for `AddV2`, too, and `Relu6` takes no number.
fn results(graph: &Graph, x: Output, op: &str, by: f32) -> Vec<NodeId> {
    let ops = match op {
        "Add" => &["Add", "AddV2"][..],
        "RealDiv" => &["RealDiv"],
        "Mul" => &["Mul"],
        "Minimum" => &["Minimum"],
        "Maximum" => &["Maximum"],
        _ => return takers(graph, x, op).collect(),
    };
    let is_such = |id: &NodeId| {
        let inputs = &graph.node(*id).inputs;
        let &[left, right] = &inputs[..] else { return false };
        let is_number = |tensor| scalar(graph, tensor) == Some(by);
        (left == x && is_number(right)) || (op != "RealDiv" && right == x && is_number(left))
    };
    ops.iter().flat_map(|&op| takers(graph, x, op)).filter(is_such).collect()
}

/// The value of a function and the gradient with respect to it, if a tensor is the gradient through that function.
pub(crate) fn through(
    graph: &Graph,
    tensor: Output,
    activation: Activation,
) -> Option<[Output; 2]> {
    let node = graph.node(tensor.node);
    let [_, grad] = op(activation)?;
    let &[first, second] = &node.inputs[..] else { return None };
    let both = if grad == "ReluGrad" { [second, first] } else { [first, second] };
    (node.op == grad).then_some(both)
}

/// Whether a node is the gradient of a function that what enters a state, or the state, may have.
pub(crate) fn is_grad_of_state(graph: &Graph, id: NodeId) -> bool {
    matches!(graph.op(id), "TanhGrad" | "ReluGrad")
}

/// The attribute for a function, if it is another one than that which operations have without it.
pub(crate) fn attribute(
    name: &'static str,
    activation: Activation,
    usual: Activation,
) -> Option<(&'static str, Attribute)> {
    (activation != usual).then(|| (name, Attribute::Text(activation.name().to_owned())))
}
