//! A layer: one node for all steps of a cell over a sequence.

use blockcell_kernels::ops::{GRU_BLOCK_CELL, Op, UNFUSED_LSTM_CELL};

use crate::graph::{Attribute, Graph, Node, NodeId, Output, Use, ops};

const LSTM: &Op = &UNFUSED_LSTM_CELL;
const GRU: &Op = &GRU_BLOCK_CELL;
const LSTM_STATES: &[[usize; 2]] =
    &[[LSTM.input("h_prev"), LSTM.output("h")], [LSTM.input("cs_prev"), LSTM.output("cs")]];
const GRU_STATES: &[[usize; 2]] = &[[GRU.input("h_prev"), GRU.output("h")]];

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

/// Which inputs and outputs of a cell's step are what.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// The operation of the layer.
    pub(crate) op: &'static str,
    /// The states: which input, and which output has the next one.
    pub(crate) states: &'static [[usize; 2]],
    /// Weights, biases and peepholes, as many as there are of them.
    pub(crate) weights: Vec<usize>,
    /// The number of the output h.
    pub(crate) h: usize,
    /// The attributes that the layer has, too.
    attributes: &'static [&'static str],
}

impl Cell {
    /// What is known of a step's node. None if it is no step of a cell with a state.
    pub(crate) fn of(graph: &Graph, id: NodeId) -> Option<Cell> {
        let node = graph.node(id);
        let inputs = node.inputs.len();
        let count = |name| usize::try_from(node.int(name).unwrap_or(0)).unwrap_or(0);
        let cell = match node.op.as_str() {
            ops::LSTM_CELL if node.int("num_cs_prev") == Some(1) => {
                let peepholes = LSTM.input_range("peepholes", count);
                let end = peepholes.end;
                let weights = [LSTM.input("w"), LSTM.input("b")].into_iter().chain(peepholes);
                (end == inputs).then(|| Cell {
                    op: ops::LSTM_LAYER,
                    states: LSTM_STATES,
                    weights: weights.collect(),
                    h: LSTM.output("h"),
                    attributes: &["num_peepholes", "forget_bias", "cell_clip"],
                })
            }
            // The two have the same inputs and outputs.
            ops::GRU_CELL | ops::HALF_GRU_CELL if inputs == GRU.inputs.len() => Some(Cell {
                op: ops::GRU_LAYER,
                states: GRU_STATES,
                weights: ["w_ru", "w_c", "b_ru", "b_c"].map(|name| GRU.input(name)).into(),
                h: GRU.output("h"),
                attributes: &[],
            }),
            _ => None,
        }?;
        let has = |name: &&str| node.attribute(name).is_some();
        (node.data_type().is_some() && cell.attributes.iter().all(has)).then_some(cell)
    }

    /// The attributes of the layer whose steps are like `step`, before and after those of its [`Sequence`]. `is_list`
    /// tells whether x comes from a list, which may have another size than that of the outputs.
    pub(crate) fn attributes(
        &self,
        step: &Node,
        has_lengths: bool,
        is_list: bool,
    ) -> [Vec<(&'static str, Attribute)>; 2] {
        let own =
            |&name: &&'static str| (name, step.attribute(name).expect("the step has it").clone());
        let after = [("lists", is_list.into())].into_iter();
        let after = after.chain(self.attributes.iter().map(own)).collect();
        [vec![("num_sequence_length", usize::from(has_lengths).into())], after]
    }

    /// Whether two steps compute the same from the same tensors.
    pub(crate) fn is_same(&self, left: &Node, right: &Node) -> bool {
        let is_same = |name: &&str| left.attribute(name) == right.attribute(name);
        left.op == right.op
            && left.data_type() == right.data_type()
            && self.attributes.iter().all(is_same)
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
