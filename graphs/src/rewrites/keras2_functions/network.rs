//! The cuDNN network of a function for GPUs, and the order of its weights.

use std::collections::BTreeSet;

use super::function::{Function, FunctionEdit, FunctionNode, number_of, text};
use super::needed::Needed;
use crate::graph::{Attribute, DataType};

/// The cuDNN network of a function for GPUs.
pub(super) struct Network<'f> {
    /// Where its node is: that function, or what it does if a mask allows.
    function: &'f Function,
    pub(super) node: &'f FunctionNode,
    pub(super) is_masked: bool,
}

impl<'f> Network<'f> {
    pub(super) fn read(
        function: &'f Function,
        needed: &Needed<'f>,
    ) -> Result<Network<'f>, &'static str> {
        let branches =
            function.nodes.iter().filter(|node| matches!(&node.op[..], "If" | "StatelessIf"));
        let branches = branches.filter_map(|node| match node.attributes.get("then_branch") {
            Some(Attribute::Function(name)) => needed.function(name),
            _ => None,
        });
        let all: Vec<_> = [function].into_iter().chain(branches).collect();
        let is_network =
            |node: &&'f FunctionNode| matches!(&node.op[..], "CudnnRNN" | "CudnnRNNV3");
        let mut found = all
            .iter()
            .flat_map(|&one| one.nodes.iter().filter(is_network).map(move |node| (one, node)));
        let (place, node) = found.next().ok_or("its other implementation does not use cuDNN")?;
        let network = Network { function: place, node, is_masked: all.len() > 1 };
        if found.next().is_some() || !network.is_a_layer() {
            return Err("its other implementation is not a single layer of cuDNN");
        }
        Ok(network)
    }

    /// Whether it is one layer in one direction without dropout, of a type and mode that are known.
    fn is_a_layer(&self) -> bool {
        let attribute = |name| self.node.attributes.get(name);
        let has = |name, value| text(&self.node.attributes, name).is_none_or(|text| text == value);
        let is_zero = |name| matches!(attribute(name), None | Some(Attribute::Float(0.0)));
        let data_type = match attribute("T") {
            Some(&Attribute::Type(data_type)) => data_type,
            _ => return false,
        };
        has("input_mode", "linear_input")
            && has("direction", "unidirectional")
            && is_zero("dropout")
            && matches!(data_type, DataType::FLOAT | DataType::HALF)
            && self.order().is_some()
    }

    /// How many outputs Keras's function of such a layer has: the last step, all steps, the states, and which
    /// implementation has run.
    pub(super) fn outputs(&self) -> usize {
        if text(&self.node.attributes, "rnn_mode") == Some("gru") { 4 } else { 5 }
    }

    /// How many states one of Keras's functions of such a layer takes: after the inputs, and before the kernel, the
    /// recurrent kernel, the bias and the mask.
    pub(super) fn states(&self, function: &Function) -> Result<usize, &'static str> {
        let states = self.outputs() - 3;
        let is_known = function.inputs.len() >= states + 4;
        is_known.then_some(states).ok_or("its inputs are not those of Keras's functions")
    }

    /// In which places of cuDNN's buffer the blocks of Keras's kernel, recurrent kernel and biases stand. cuDNN
    /// has a GRU's reset gate first, Keras its update gate.
    fn order(&self) -> Option<&'static [usize]> {
        match text(&self.node.attributes, "rnn_mode") {
            None | Some("lstm") => Some(&[0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7]),
            Some("gru") => Some(&[1, 0, 2, 1, 0, 2, 1, 0, 2, 4, 3, 5]),
            _ => None,
        }
    }

    /// What has to change: the order of weights, and `is_training` if nothing is kept for a gradient.
    pub(super) fn edits(&self) -> Result<Vec<FunctionEdit>, &'static str> {
        let mut edits: Vec<_> = self.order_edit()?.into_iter().collect();
        let keeps = ["reserve_space", "host_reserved"]
            .iter()
            .any(|output| self.function.reads(&self.node.name, output));
        if !keeps {
            edits.push(self.edit(&self.node.name, Vec::new(), true));
        }
        Ok(edits)
    }

    fn edit(&self, node: &str, inputs: Vec<String>, infers: bool) -> FunctionEdit {
        let (function, node) = (self.function.name.clone(), node.to_owned());
        FunctionEdit { function, node, inputs, infers }
    }

    /// The blocks in cuDNN's order, if they are in another one.
    fn order_edit(&self) -> Result<Option<FunctionEdit>, &'static str> {
        let unknown = "the order of its weights is unknown";
        let order = self.order().ok_or(unknown)?;
        let buffer =
            self.node.inputs.get(3).and_then(|tensor| self.origin(tensor)).ok_or(unknown)?;
        let concat = self.function.node(buffer).filter(|node| node.op == "ConcatV2");
        let concat = concat.ok_or(unknown)?;
        let parts = concat.inputs.get(..order.len()).ok_or(unknown)?;
        if concat.inputs.get(order.len() + 1).is_some_and(|input| !input.starts_with('^')) {
            return Err(unknown);
        }
        let gates = order.len() / 4;
        let mut inputs = Vec::new();
        let mut sources = BTreeSet::new();
        for (part, wanted) in [0..gates, gates..2 * gates, 2 * gates..4 * gates]
            .into_iter()
            .map(|range| (&parts[range.clone()], &order[range]))
        {
            let blocks: Vec<_> = part
                .iter()
                .map(|tensor| self.block(tensor))
                .collect::<Option<_>>()
                .ok_or(unknown)?;
            let source = blocks[0].0;
            if blocks.iter().any(|block| block.0 != source) || !sources.insert(source) {
                return Err(unknown);
            }
            for number in wanted {
                let place = blocks.iter().position(|block| block.1 == *number).ok_or(unknown)?;
                inputs.push(part[place].clone());
            }
        }
        if inputs == parts {
            return Ok(None);
        }
        inputs.extend_from_slice(&concat.inputs[order.len()..]);
        Ok(Some(self.edit(&concat.name, inputs, false)))
    }

    /// The `Split` that a block of weights comes from, and its number.
    fn block(&self, tensor: &str) -> Option<(&'f str, usize)> {
        let tensor = self.origin(tensor)?;
        let split = self.function.node(tensor).filter(|node| node.op == "Split")?;
        Some((&split.name, number_of(tensor)?))
    }

    /// The tensor that one is, up to its layout.
    fn origin<'t>(&self, mut tensor: &'t str) -> Option<&'t str>
    where
        'f: 't,
    {
        loop {
            let node = self.function.node(tensor)?;
            if !matches!(&node.op[..], "Reshape" | "Transpose" | "Identity") {
                return Some(tensor);
            }
            tensor = node.inputs.first()?;
        }
    }
}
