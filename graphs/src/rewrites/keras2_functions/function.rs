//! Functions of a graph's library as plain data, and changes of them.

use std::collections::BTreeMap;

use crate::graph::{Attribute, DataType};

/// A function of a graph's library, as far as the choice looks at it.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its attributes.
    pub attributes: BTreeMap<String, Attribute>,
    /// The names and types of its inputs.
    pub inputs: Vec<(String, DataType)>,
    /// The names and types of its outputs.
    pub outputs: Vec<(String, DataType)>,
    /// Its nodes.
    pub nodes: Vec<FunctionNode>,
    /// The tensors that are its outputs, by the names of these.
    pub results: BTreeMap<String, String>,
}

/// A node of a function.
#[derive(Clone, Debug, Default, PartialEq)]
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

/// The nodes of a function that keeps its name, its inputs and its outputs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body {
    /// Its name.
    pub function: String,
    /// Its nodes.
    pub nodes: Vec<FunctionNode>,
    /// The tensors that are its outputs, in their order.
    pub results: Vec<String>,
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

impl Function {
    /// An attribute that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        text(&self.attributes, name)
    }

    pub(super) fn node(&self, tensor: &str) -> Option<&FunctionNode> {
        let name = node_of(tensor);
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Whether somebody in the function reads an output of a node, by the output's name.
    pub(super) fn reads(&self, node: &str, output: &str) -> bool {
        let prefix = format!("{node}:{output}:");
        let inputs = self.nodes.iter().flat_map(|node| &node.inputs);
        inputs.chain(self.results.values()).any(|tensor| tensor.starts_with(&prefix))
    }

    pub(super) fn input_types(&self) -> impl Iterator<Item = DataType> + '_ {
        self.inputs.iter().map(|input| input.1)
    }

    pub(super) fn output_types(&self) -> impl Iterator<Item = DataType> + '_ {
        self.outputs.iter().map(|output| output.1)
    }

    /// The node that makes an output, past those that pass it on, and the tensor.
    pub(super) fn result(&self, output: usize) -> Option<(&FunctionNode, &str)> {
        let mut tensor = &self.results.get(&self.outputs.get(output)?.0)?[..];
        loop {
            let node = self.node(tensor)?;
            if node.op != "Identity" {
                return Some((node, tensor));
            }
            tensor = node.inputs.first()?;
        }
    }
}

impl FunctionNode {
    /// The function that it calls.
    pub(super) fn callee(&self) -> Option<&str> {
        let is_call = matches!(&self.op[..], "PartitionedCall" | "StatefulPartitionedCall");
        match self.attributes.get("f") {
            Some(Attribute::Function(name)) if is_call => Some(name),
            _ => None,
        }
    }

    /// What it takes, without what it waits for.
    pub(super) fn data(&self) -> impl Iterator<Item = &str> + '_ {
        self.inputs.iter().map(|input| &input[..]).filter(|input| !input.starts_with('^'))
    }
}

pub(super) fn text<'a>(attributes: &'a BTreeMap<String, Attribute>, name: &str) -> Option<&'a str> {
    match attributes.get(name) {
        Some(Attribute::Text(text)) => Some(text),
        _ => None,
    }
}

/// The node that a tensor of a function belongs to.
pub(super) fn node_of(tensor: &str) -> &str {
    tensor.trim_start_matches('^').split(':').next().unwrap_or_default()
}

/// The number of an output of a node in a function: `node:output:number`.
pub(super) fn number_of(tensor: &str) -> Option<usize> {
    tensor.rsplit_once(':')?.1.parse().ok()
}
