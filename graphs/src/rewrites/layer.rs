//! A layer: one node for all steps of a cell over a sequence.

use blockcell_kernels::ops::{
    GRU_BLOCK_CELL, LSTM_BLOCK_CELL, NORMALIZED_LSTM_CELL, Op, UNFUSED_GRU_CELL, UNFUSED_LSTM_CELL,
};

use crate::graph::{Attribute, DataType, Graph, Node, NodeId, Output, Use, ops};
use crate::reading::constants::is_vector;

const LSTM: &Op = &UNFUSED_LSTM_CELL;
const BLOCK: &Op = &LSTM_BLOCK_CELL;
const NORMALIZED: &Op = &NORMALIZED_LSTM_CELL;
const GRU: &Op = &GRU_BLOCK_CELL;
const PLAIN_GRU: &Op = &UNFUSED_GRU_CELL;
const LSTM_STATES: &[[usize; 2]] =
    &[[LSTM.input("h_prev"), LSTM.output("h")], [LSTM.input("cs_prev"), LSTM.output("cs")]];
const BLOCK_STATES: &[[usize; 2]] =
    &[[BLOCK.input("h_prev"), BLOCK.output("h")], [BLOCK.input("cs_prev"), BLOCK.output("cs")]];
const NORMALIZED_STATES: &[[usize; 2]] = &[
    [NORMALIZED.input("h_prev"), NORMALIZED.output("h")],
    // After the lists of five gamma and five beta.
    [NORMALIZED.input("gamma") + 2 * NORMS, NORMALIZED.output("cs")],
];
const GRU_STATES: &[[usize; 2]] = &[[GRU.input("h_prev"), GRU.output("h")]];

/// What a GRU layer has of the attributes of a plain step.
const GRU_ATTRIBUTES: [&str; 5] =
    ["activation", "update_first", "u_weighs_c", "num_w_h", "broadcasts_rows"];

/// How many normalizations the cell has.
const NORMS: usize = 5;

/// What a layer computes its steps on.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// How many steps x has. Of lists, how many h has.
    pub(crate) time: Output,
    /// How many steps to compute, at most.
    pub(crate) rounds: Vec<Output>,
    /// How many each row has, if they differ.
    pub(crate) lengths: Option<Output>,
    pub(crate) x: Output,
    /// What the sizes of a step of x must be, -1 for any; empty if nothing is known.
    pub(crate) x_sizes: Vec<i64>,
    /// The same of a step of h.
    pub(crate) h_sizes: Vec<i64>,
    /// Whether somebody reads h where there is no step to compute.
    pub(crate) needs_h: bool,
}

impl Sequence {
    /// The node of a layer of an operation, with the name of one of its steps. It takes the first states, the weights and
    /// what else there is as `tensors`, and has so many outputs. `attributes` come before and after those that all have.
    pub(crate) fn node(
        &self,
        step: &Node,
        op: &str,
        [before, after]: &[Vec<(&str, Attribute)>; 2],
        tensors: Vec<Output>,
        outputs: usize,
    ) -> Node {
        let data_type = step.data_type().expect("it was found replaceable");
        let mut node = step.like(op, data_type).with("num_rounds", self.rounds.len());
        for (name, value) in before {
            node = node.with(name, value.clone());
        }
        node = node
            .with("x_sizes", self.x_sizes.clone())
            .with("h_sizes", self.h_sizes.clone())
            .with("needs_h", self.needs_h);
        for (name, value) in after {
            node = node.with(name, value.clone());
        }
        node.inputs.push(self.time);
        node.inputs.extend(self.rounds.iter().copied().chain(self.lengths));
        node.inputs.push(self.x);
        node.inputs.extend(tensors);
        node.output_types = vec![data_type; outputs];
        node
    }
}

/// Which inputs and outputs of a cell's step are what. Two steps with the same cell compute the same from the same
/// tensors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    /// The operation of the step.
    step: String,
    data_type: DataType,
    /// The operation of the layer.
    pub(crate) op: &'static str,
    /// The states: which input, and which output has the next one.
    pub(crate) states: &'static [[usize; 2]],
    /// Weights, biases and peepholes, as many as there are of them.
    pub(crate) weights: Vec<usize>,
    /// Inputs of which nothing but the rank matters.
    unread: Vec<usize>,
    /// The number of the output h.
    pub(crate) h: usize,
    /// What the layer has of the step's attributes.
    attributes: Vec<(&'static str, Attribute)>,
}

impl Cell {
    /// What is known of a step's node. None if it is no step of a cell with a state, or may be malformed in what no
    /// layer takes.
    pub(crate) fn of(graph: &Graph, id: NodeId) -> Option<Cell> {
        if !graph.is(id, ops::STEP) {
            return None;
        }
        let is_known = |&input: &usize| is_vector(graph, graph.input(id, input));
        Cell::of_node(graph.node(id)).filter(|cell| cell.unread.iter().all(is_known))
    }

    fn of_node(node: &Node) -> Option<Cell> {
        let (step, data_type) = (node.op.clone(), node.data_type()?);
        let cell = |op, states, weights, h| {
            let (unread, attributes) = (Vec::new(), Vec::new());
            Cell { step, data_type, op, states, weights, unread, h, attributes }
        };
        match node.op.as_str() {
            ops::LSTM_CELL if node.int("num_cs_prev") == Some(1) => {
                let count = |name| usize::try_from(node.int(name).unwrap_or(0)).unwrap_or(0);
                let [peepholes, w_h] =
                    ["peepholes", "w_h"].map(|name| LSTM.input_range(name, count));
                let attributes = lstm_attributes(node, [peepholes.len(), w_h.len()], true)?;
                let is_whole = w_h.end == node.inputs.len();
                let weights = [LSTM.input("w"), LSTM.input("b")].into_iter();
                let weights = weights.chain(peepholes).chain(w_h);
                let cell = cell(ops::LSTM_LAYER, LSTM_STATES, weights.collect(), LSTM.output("h"));
                is_whole.then_some(Cell { attributes, ..cell })
            }
            ops::LSTM_BLOCK_CELL if node.inputs.len() == BLOCK.inputs.len() => {
                let mut weights = ["w", "b"].map(|name| BLOCK.input(name)).to_vec();
                let mut unread = ["wci", "wcf", "wco"].map(|name| BLOCK.input(name)).to_vec();
                if node.flag("use_peephole") {
                    weights.append(&mut unread);
                }
                let attributes = lstm_attributes(node, [weights.len() - 2, 0], false)?;
                let cell = cell(ops::LSTM_LAYER, BLOCK_STATES, weights, BLOCK.output("h"));
                Some(Cell { unread, attributes, ..cell })
            }
            ops::NORMALIZED_LSTM_CELL if node.int("num_cs_prev") == Some(1) => {
                let first = NORMALIZED.input("w");
                let norms = node.int("num_norms").and_then(|count| usize::try_from(count).ok());
                let is_whole = node.inputs.len() == first + 2 + 2 * NORMS;
                let names = ["forget_bias", "epsilon", "gate_order"];
                let own = |name| Some((name, node.attribute(name)?.clone()));
                let mut attributes = names.map(own).into_iter().collect::<Option<Vec<_>>>()?;
                attributes.extend(own("activation"));
                attributes.push(("num_norms", NORMS.into()));
                let weights = (first..=first + 2 * NORMS).collect();
                let h = NORMALIZED.output("h");
                let cell = cell(ops::NORMALIZED_LSTM_LAYER, NORMALIZED_STATES, weights, h);
                (is_whole && norms == Some(NORMS)).then_some(Cell { attributes, ..cell })
            }
            // The two have the same outputs, and the same first inputs.
            ops::GRU_CELL | ops::HALF_GRU_CELL => {
                let is_plain = node.op == ops::HALF_GRU_CELL;
                let count = |name| match is_plain {
                    true => usize::try_from(node.int(name).unwrap_or(0)).unwrap_or(0),
                    false => 0,
                };
                let of_state = ["w_ru_h", "w_c_h"].map(|name| PLAIN_GRU.input_range(name, count));
                let is_whole = of_state[1].end == node.inputs.len();
                let weights = ["w_ru", "w_c", "b_ru", "b_c"].map(|name| GRU.input(name));
                let weights = weights.into_iter().chain(of_state.into_iter().flatten()).collect();
                let cell = cell(ops::GRU_LAYER, GRU_STATES, weights, GRU.output("h"));
                let own = |name| Some((name, node.attribute(name)?.clone()));
                let attributes = GRU_ATTRIBUTES.into_iter().filter(|_| is_plain).filter_map(own);
                is_whole.then(|| Cell { attributes: attributes.collect(), ..cell })
            }
            _ => None,
        }
    }

    /// The attributes of the layer, before and after those of its [`Sequence`]. `is_list` tells whether x comes from a
    /// list, which may have another size than that of the outputs.
    pub(crate) fn attributes(
        &self,
        has_lengths: bool,
        is_list: bool,
    ) -> [Vec<(&'static str, Attribute)>; 2] {
        let after = [("lists", is_list.into())].into_iter();
        let after = after.chain(self.attributes.iter().cloned()).collect();
        [vec![("num_sequence_length", usize::from(has_lengths).into())], after]
    }

    /// How many times as many columns as the state the first weights have.
    pub(crate) fn gates(&self) -> i64 {
        if self.op == ops::GRU_LAYER { 2 } else { 4 }
    }

    /// The nodes that a step takes tensors of, and a layer does not.
    pub(crate) fn unread(&self, graph: &Graph, step: NodeId) -> impl Iterator<Item = NodeId> {
        self.unread.iter().map(move |&input| graph.input(step, input).node)
    }

    /// Whether a step takes all states of another one.
    pub(crate) fn takes_states(&self, graph: &Graph, step: NodeId, before: NodeId) -> bool {
        let takes = |&[input, index]: &[usize; 2]| {
            graph.input(step, input) == Output { node: before, index }
        };
        self.states.iter().all(takes)
    }

    /// Whether each state of a step but h has a single reader.
    pub(crate) fn keeps(&self, graph: &Graph, step: NodeId) -> bool {
        let readers = |index: usize| {
            let reads = |one: &Use| matches!(*one, Use::Data { output, .. } if output == index);
            graph.uses(step).filter(reads).count()
        };
        self.states.iter().all(|&[_, output]| output == self.h || readers(output) == 1)
    }
}

/// What the layer of an LSTM has of the attributes of a step, and what follows from it. Only plain cells broadcast, and have
/// their gates in any order.
fn lstm_attributes(
    step: &Node,
    [num_peepholes, num_w_h]: [usize; 2],
    is_plain: bool,
) -> Option<Vec<(&'static str, Attribute)>> {
    let own = |name| Some((name, step.attribute(name)?.clone()));
    let peepholes = ("num_peepholes", num_peepholes.into());
    let order = match is_plain {
        true => own("gate_order")?,
        false => ("gate_order", Attribute::Ints(vec![0, 1, 2, 3])),
    };
    let broadcasts = ("broadcasts", is_plain.into());
    let mut all = vec![peepholes, own("forget_bias")?, own("cell_clip")?, order, broadcasts];
    if num_w_h > 0 {
        all.extend([("num_w_h", num_w_h.into()), own("broadcasts_rows")?]);
    }
    if is_plain {
        all.extend(own("activation"));
    }
    Some(all)
}
