//! A layer: one node for all steps of a cell over a sequence.

use crate::graph::{Attribute, Graph, Node, NodeId, Output, Use, ops};

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
        let sizes = |sizes: &[i64]| Attribute::Ints(sizes.to_vec());
        let mut attributes =
            vec![("T", Attribute::Type(data_type)), ("R", Attribute::count(self.rounds.len()))];
        attributes.extend(before.iter().cloned());
        attributes.push(("x_sizes", sizes(&self.x_sizes)));
        attributes.push(("h_sizes", sizes(&self.h_sizes)));
        attributes.push(("needs_h", Attribute::Bool(self.needs_h)));
        attributes.extend(after.iter().cloned());
        let mut inputs = vec![self.time];
        inputs.extend(self.rounds.iter().copied().chain(self.lengths));
        inputs.push(self.x);
        inputs.extend(tensors);
        Node {
            name: step.name.clone(),
            op: op.to_owned(),
            device: step.device.clone(),
            attributes: Node::named(attributes),
            inputs,
            output_types: vec![data_type; outputs],
            ..Node::default()
        }
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
        match node.op.as_str() {
            ops::LSTM_CELL if node.int("C") == Some(1) => Some(Cell {
                op: ops::LSTM_LAYER,
                states: &[[1, 6], [4, 1]],
                weights: [2, 3].into_iter().chain(5..inputs).collect(),
                h: 6,
                attributes: &["P", "forget_bias", "cell_clip"],
            }),
            ops::GRU_CELL | ops::HALF_GRU_CELL if inputs == 6 => Some(Cell {
                op: ops::GRU_LAYER,
                states: &[[1, 3]],
                weights: (2..6).collect(),
                h: 3,
                attributes: &[],
            }),
            _ => None,
        }
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
        let after = [("lists", Attribute::Bool(is_list))].into_iter();
        let after = after.chain(self.attributes.iter().map(own)).collect();
        [vec![("L", Attribute::count(has_lengths.into()))], after]
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
