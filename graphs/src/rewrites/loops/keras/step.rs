//! A step of one of Keras's cells, in the round of a loop.

use std::collections::BTreeSet;

use blockcell_kernels::Activation;

use crate::graph::{Attribute, Graph, NodeId, Output};
use crate::reading::functions;
use crate::reading::neighbours::{fuses, has_bias_of_columns, transposes, unary};

/// A step that one node of a layer stands for.
#[derive(Debug)]
pub(super) struct Step {
    /// The node whose name the new one gets.
    pub(super) root: NodeId,
    /// The operation of the layer.
    pub(super) op: &'static str,
    pub(super) x: Output,
    pub(super) h: Output,
    /// Each state, before the step and after it.
    pub(super) states: Vec<[Output; 2]>,
    pub(super) w_x: Output,
    pub(super) w_h: Output,
    /// The biases that the operation takes, as far as there are any.
    pub(super) biases: Vec<Option<Output>>,
    /// Whether the step does not tell that `w_h` has no more columns.
    pub(super) needs_columns: bool,
    /// Those of the biases that may have the shape of something else than one number for each column.
    pub(super) added: Vec<Output>,
    /// As in [`Terms`].
    pub(super) needs_one_row: bool,
    /// The attributes for functions that are not the usual ones.
    pub(super) functions: Vec<(&'static str, Attribute)>,
    /// The number of cells, where the step says it.
    pub(super) units: Option<i64>,
    pub(super) nodes: BTreeSet<NodeId>,
}

/// The attributes for the function of what enters the state and that of the gates, as far as they are not the usual ones.
pub(super) fn functions(
    of_state: Activation,
    of_gates: Activation,
) -> Vec<(&'static str, Attribute)> {
    let of_state = functions::attribute("activation", of_state, Activation::Tanh);
    let of_gates = functions::attribute("recurrent_activation", of_gates, Activation::Sigmoid);
    of_state.into_iter().chain(of_gates).collect()
}

/// The summands of pre-activations: products of matrices, and others.
#[derive(Debug, Default)]
pub(super) struct Terms {
    /// `[left, right]`
    pub(super) products: Vec<[Output; 2]>,
    pub(super) biases: Vec<Output>,
    /// Those of the biases that `Add` adds, which broadcasts, or that are fused.
    pub(super) added: Vec<Output>,
    /// Whether one of the products is a bias in the graph, without its axis of rows: the batch is one row.
    pub(super) needs_one_row: bool,
    pub(super) nodes: BTreeSet<NodeId>,
}

/// No cell's pre-activations are longer.
const MOST_NODES: usize = 8;

impl Terms {
    /// Reads a sum. None if that is more than any cell has.
    pub(super) fn read(graph: &Graph, sum: Output) -> Option<Terms> {
        let (mut terms, mut open) = (Terms::default(), vec![sum]);
        while let Some(next) = open.pop() {
            let node = graph.node(next.node);
            let inputs = &node.inputs[..];
            let is_product = transposes(node) == Some([false; 2]);
            match (node.op.as_str(), inputs) {
                ("MatMul", &[left, right]) if is_product => terms.products.push([left, right]),
                ("_FusedMatMul", &[left, right, bias])
                    if is_product && fuses(node, &["BiasAdd"]) =>
                {
                    terms.products.push([left, right]);
                    match terms.add_bias(graph, bias) {
                        Some(product) => open.push(product),
                        // TensorFlow 2 fuses sums with one row, too.
                        None => terms.added.push(bias),
                    }
                }
                ("BiasAdd", &[sum, bias]) if has_bias_of_columns(node, "BiasAdd") => {
                    open.push(sum);
                    open.extend(terms.add_bias(graph, bias));
                }
                ("Add" | "AddV2", &[left, right]) => open.extend([right, left]),
                _ => {
                    terms.biases.push(next);
                    terms.added.push(next);
                    continue;
                }
            }
            terms.nodes.insert(next.node);
            if terms.nodes.len() > MOST_NODES {
                return None;
            }
        }
        Some(terms)
    }

    /// The bias, or that there is none. The outer None stands for several.
    pub(super) fn bias(&self) -> Option<Option<Output>> {
        match self.biases[..] {
            [] => Some(None),
            [bias] => Some(Some(bias)),
            _ => None,
        }
    }

    /// Adds what is a bias of columns in the graph. Keras 3 makes one of the product of a state that has one row; then
    /// this returns the product.
    fn add_bias(&mut self, graph: &Graph, bias: Output) -> Option<Output> {
        let row = unary(graph, bias, "Squeeze");
        let Some(product) = row.filter(|row| graph.op(row.node) == "MatMul") else {
            self.biases.push(bias);
            return None;
        };
        self.needs_one_row = true;
        self.nodes.insert(bias.node);
        Some(product)
    }
}
