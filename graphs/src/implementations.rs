//! Choice: functions that Keras 2 wrote twice run by cuDNN's operations instead of a loop.
//!
//! For each LSTM and GRU layer, Keras of TensorFlow 2.0 to 2.15 makes two functions of one signature and lets
//! TensorFlow choose one by device. In a SavedModel they look like this:
//!
//! ```text
//! standard_lstm            api_implements="lstm_1f26..." api_preferred_device="CPU"    a while loop
//! gpu_lstm_with_fallback   api_implements="lstm_1f26..." api_preferred_device="GPU"    CudnnRNN
//! ```
//!
//! This library has kernels of cuDNN's operations for CPUs, so the first can be what the second is. Conditions:
//!
//! * The two have the same types of inputs and outputs, and are for inference: [`Pairs::of`]. What is made for
//!   gradients has other outputs.
//! * The second is one layer of cuDNN's LSTM or GRU without dropout: [`Network::read`].
//! * Its weights are in cuDNN's order of gates; builds of TensorFlow without CUDA write GRUs in Keras's order, and
//!   get a [`FunctionEdit`]: [`Network::edits`].
//! * Nobody reads an output in which they differ: which of the two has run (the last output), and behind a mask the
//!   sequence of outputs (the second), which is zero after a row's end with cuDNN and keeps its value in the loop.
//!   [`Calls::read`] sees who reads what.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::attribute::{Attribute, DataType};

/// A function of a graph's library, as far as the choice looks at it.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its attributes.
    pub attributes: BTreeMap<String, Attribute>,
    /// The types of its inputs.
    pub inputs: Vec<DataType>,
    /// The names and types of its outputs.
    pub outputs: Vec<(String, DataType)>,
    /// Its nodes.
    pub nodes: Vec<FunctionNode>,
    /// The tensors that are its outputs, by the names of these.
    pub results: BTreeMap<String, String>,
}

/// A node of a function.
#[derive(Clone, Debug, Default)]
pub struct FunctionNode {
    /// Its name.
    pub name: String,
    /// The operation.
    pub op: String,
    /// What it takes: an input of the function, `node:output:number` or `^node`.
    pub inputs: Vec<String>,
    /// Its attributes.
    pub attributes: BTreeMap<String, Attribute>,
}

/// What the graph itself does with a function.
#[derive(Clone, Debug)]
pub struct Used {
    /// Its name.
    pub function: String,
    /// What it does with it.
    pub how: Use,
}

/// A way to use a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Call it.
    Call,
    /// Read this output of a call.
    Read(usize),
    /// Something else, which may do anything with its outputs.
    Other,
}

/// What to do with a library of functions: first the edits, then the choices.
#[derive(Debug, Default)]
pub struct Choices {
    /// Functions that become what others are.
    pub chosen: Vec<Choice>,
    /// Changes of nodes.
    pub edits: Vec<FunctionEdit>,
    /// Functions that stay, and why.
    pub kept: Vec<(String, &'static str)>,
}

/// A function that becomes what another one is, under its own name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its name.
    pub function: String,
    /// The other one.
    pub by: String,
    /// The operation that computes it then.
    pub op: String,
}

/// A change of a node of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionEdit {
    /// The function.
    pub function: String,
    /// The node.
    pub node: String,
    /// What it takes; empty if that stays as it is.
    pub inputs: Vec<String>,
    /// Whether `is_training` becomes false: nobody takes a gradient.
    pub infers: bool,
}

impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Choice { function, by, op } in &self.chosen {
            writeln!(f, "{function} becomes {by}, which has {op}")?;
        }
        for (function, reason) in &self.kept {
            writeln!(f, "{function} stays: {reason}")?;
        }
        Ok(())
    }
}

/// Chooses among the functions of a library that a graph needs.
#[must_use]
pub fn choose(functions: &[Function], graph: &[Used]) -> Choices {
    let by_name: BTreeMap<_, _> = functions.iter().map(|one| (&one.name[..], one)).collect();
    let pairs = Pairs::of(functions);
    let mut choices = Choices::default();
    if pairs.0.is_empty() {
        return choices;
    }
    let calls = Calls::read(&by_name, graph);
    for (standard, other) in pairs.0 {
        if !calls.0.contains_key(&standard.name[..]) {
            continue;
        }
        match Network::read(other, &by_name).and_then(|network| {
            calls.allow(standard, network.is_masked)?;
            Ok((network.edits()?, network.node.op.clone()))
        }) {
            Ok((edits, op)) => {
                choices.edits.extend(edits);
                let (function, by) = (standard.name.clone(), other.name.clone());
                choices.chosen.push(Choice { function, by, op });
            }
            Err(reason) => choices.kept.push((standard.name.clone(), reason)),
        }
    }
    choices
}

impl Function {
    /// An attribute that is a text.
    fn text(&self, name: &str) -> Option<&str> {
        text(&self.attributes, name)
    }

    /// Whether it is the forward or backward half of a function with a gradient.
    fn has_a_gradient(&self) -> bool {
        ["forward_function_name", "backward_function_name"]
            .iter()
            .any(|name| self.attributes.contains_key(*name))
    }

    fn node(&self, tensor: &str) -> Option<&FunctionNode> {
        let name = node_of(tensor);
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Whether somebody in the function reads an output of a node, by the output's name.
    fn reads(&self, node: &str, output: &str) -> bool {
        let prefix = format!("{node}:{output}:");
        let inputs = self.nodes.iter().flat_map(|node| &node.inputs);
        inputs.chain(self.results.values()).any(|tensor| tensor.starts_with(&prefix))
    }
}

fn text<'a>(attributes: &'a BTreeMap<String, Attribute>, name: &str) -> Option<&'a str> {
    match attributes.get(name) {
        Some(Attribute::Text(text)) => Some(text),
        _ => None,
    }
}

/// The node that a tensor of a function belongs to.
fn node_of(tensor: &str) -> &str {
    tensor.trim_start_matches('^').split(':').next().unwrap_or_default()
}

/// The number of an output of a node in a function: `node:output:number`.
fn number_of(tensor: &str) -> Option<usize> {
    tensor.rsplit_once(':')?.1.parse().ok()
}

/// Functions for CPUs, and those for GPUs that compute the same.
struct Pairs<'f>(Vec<(&'f Function, &'f Function)>);

impl<'f> Pairs<'f> {
    fn of(functions: &'f [Function]) -> Pairs<'f> {
        let mut for_gpus: BTreeMap<&str, Vec<&Function>> = BTreeMap::new();
        let is_for = |function: &&Function, device| {
            function.text("api_preferred_device") == Some(device) && !function.has_a_gradient()
        };
        for function in functions.iter().filter(|one| is_for(one, "GPU")) {
            if let Some(interface) = function.text("api_implements") {
                for_gpus.entry(interface).or_default().push(function);
            }
        }
        let types = |one: &Function| one.outputs.iter().map(|output| output.1).collect::<Vec<_>>();
        let pair = |standard: &'f Function| {
            let others = for_gpus.get(standard.text("api_implements")?)?;
            let same = |other: &&Function| {
                other.inputs == standard.inputs && types(other) == types(standard)
            };
            let mut same = others.iter().copied().filter(same);
            let other = same.next().filter(|_| same.next().is_none())?;
            Some((standard, other))
        };
        Pairs(functions.iter().filter(|one| is_for(one, "CPU")).filter_map(pair).collect())
    }
}

/// Which outputs of the functions that a graph needs are read; None for those that are used in another way than
/// by a call.
struct Calls<'f>(BTreeMap<&'f str, Option<BTreeSet<usize>>>);

impl<'f> Calls<'f> {
    fn read(functions: &BTreeMap<&str, &'f Function>, graph: &'f [Used]) -> Calls<'f> {
        let mut calls = Calls(BTreeMap::new());
        let mut open = Vec::new();
        let note = |calls: &mut Calls<'f>, open: &mut Vec<&'f str>, name: &'f str, how| {
            if functions.contains_key(name) && calls.note(name, how) {
                open.push(name);
            }
        };
        for used in graph {
            note(&mut calls, &mut open, &used.function, used.how);
        }
        while let Some(name) = open.pop() {
            for (used, how) in Self::uses(functions[name]) {
                note(&mut calls, &mut open, used, how);
            }
        }
        calls
    }

    /// What a function does with others.
    fn uses(function: &'f Function) -> Vec<(&'f str, Use)> {
        let mut uses = Vec::new();
        let mut called: BTreeMap<&str, &str> = BTreeMap::new();
        for node in &function.nodes {
            // TensorFlow's short form of a call has the function's name as its operation.
            uses.push((&node.op[..], Use::Other));
            for (attribute, value) in &node.attributes {
                let Attribute::Function(name) = value else { continue };
                let is_call =
                    matches!(node.op.as_str(), "PartitionedCall" | "StatefulPartitionedCall");
                let is_call = is_call && attribute == "f";
                if is_call {
                    called.insert(&node.name, name);
                }
                uses.push((name, if is_call { Use::Call } else { Use::Other }));
            }
        }
        let inputs = function.nodes.iter().flat_map(|node| &node.inputs);
        for tensor in inputs.chain(function.results.values()) {
            if let Some(callee) = called.get(node_of(tensor)).filter(|_| !tensor.starts_with('^')) {
                uses.push((callee, number_of(tensor).map_or(Use::Other, Use::Read)));
            }
        }
        uses
    }

    /// Notes a use. Tells whether it is the first one of its function.
    fn note(&mut self, function: &'f str, how: Use) -> bool {
        let is_first = !self.0.contains_key(function);
        let read = self.0.entry(function).or_insert_with(|| Some(BTreeSet::new()));
        match (how, read) {
            (Use::Read(output), Some(outputs)) => {
                outputs.insert(output);
            }
            (Use::Other, read) => *read = None,
            _ => {}
        }
        is_first
    }

    /// Whether nobody reads an output of a function in which the loop and cuDNN differ.
    fn allow(&self, function: &Function, is_masked: bool) -> Result<(), &'static str> {
        let read = self.0.get(&function.name[..]).and_then(Option::as_ref);
        let read = read.ok_or("it is used in another way than by a call")?;
        if read.contains(&(function.outputs.len().saturating_sub(1))) {
            return Err("somebody reads which implementation has run");
        }
        if is_masked && read.contains(&1) {
            return Err("its whole output is read, in which steps after a row's end differ");
        }
        Ok(())
    }
}

/// The cuDNN network of a function for GPUs.
struct Network<'f> {
    /// Where its node is: that function, or what it does if a mask allows.
    function: &'f Function,
    node: &'f FunctionNode,
    is_masked: bool,
}

impl<'f> Network<'f> {
    fn read(
        function: &'f Function,
        functions: &BTreeMap<&str, &'f Function>,
    ) -> Result<Network<'f>, &'static str> {
        let branches =
            function.nodes.iter().filter(|node| matches!(&node.op[..], "If" | "StatelessIf"));
        let branches = branches.filter_map(|node| match node.attributes.get("then_branch") {
            Some(Attribute::Function(name)) => functions.get(&name[..]).copied(),
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
            return Err("its other implementation is not one layer of cuDNN's");
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
    fn edits(&self) -> Result<Vec<FunctionEdit>, &'static str> {
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
        let unknown = "the order of its weights is not known";
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
