//! The functions that a graph needs, and what is read of them.

use std::collections::{BTreeMap, BTreeSet};

use super::function::{Function, FunctionNode, node_of, number_of};
use crate::graph::Attribute;

/// Attributes by which XLA compiles a function as it is written: it has no kernels of ours.
const COMPILED: [&str; 2] = ["_XlaMustCompile", "_XlaCompile"];

/// The functions that a graph needs.
pub(super) struct Needed<'f> {
    all: BTreeMap<&'f str, &'f Function>,
    graph: &'f Function,
    uses: BTreeMap<&'f str, Uses>,
}

/// What is done with a function.
#[derive(Clone, Default, PartialEq)]
struct Uses {
    /// Which outputs of its calls are read.
    read: BTreeSet<usize>,
    /// It is used in another way than by a call.
    otherwise: bool,
    /// XLA compiles it.
    is_compiled: bool,
}

/// A way to use a function.
enum Use {
    Call,
    Read(usize),
    Other,
}

impl<'f> Needed<'f> {
    pub(super) fn by(graph: &'f Function, functions: &'f [Function]) -> Needed<'f> {
        let all = functions.iter().map(|one| (&one.name[..], one)).collect();
        let mut needed = Needed { all, graph, uses: BTreeMap::new() };
        let mut open = vec![(graph, false)];
        while let Some((scope, is_compiled)) = open.pop() {
            for node in &scope.nodes {
                let is_compiled = is_compiled || is_compiled_by(&node.attributes);
                for (name, how) in needed.uses_in(scope, node) {
                    let Some(&function) = needed.all.get(name) else { continue };
                    let is_compiled = is_compiled || is_compiled_by(&function.attributes);
                    if needed.note(&function.name, how, is_compiled) {
                        open.push((function, is_compiled));
                    }
                }
            }
        }
        needed
    }

    /// What a node does with functions.
    fn uses_in(&self, scope: &'f Function, node: &'f FunctionNode) -> Vec<(&'f str, Use)> {
        // TensorFlow's short form of a call has the function's name as its operation.
        let mut uses = vec![(&node.op[..], Use::Other)];
        for (attribute, value) in &node.attributes {
            let Attribute::Function(name) = value else { continue };
            let is_call = attribute == "f" && node.callee().is_some();
            uses.push((name, if is_call { Use::Call } else { Use::Other }));
        }
        for tensor in scope.nodes.iter().flat_map(FunctionNode::data).chain(scope.results()) {
            if node_of(tensor) == node.name
                && let Some(callee) = node.callee()
            {
                uses.push((callee, number_of(tensor).map_or(Use::Other, Use::Read)));
            }
        }
        if let Some(callee) = node.callee().filter(|_| self.may_be_asked_for_all(scope)) {
            let outputs = self.all.get(callee).map_or(0, |function| function.outputs.len());
            uses.extend((0..outputs).map(|output| (callee, Use::Read(output))));
        }
        uses
    }

    /// Whether this is the graph of a session, which may be asked for any tensor by name. The body of a function has
    /// nodes for what it takes and returns.
    pub(super) fn may_be_asked_for_all(&self, scope: &Function) -> bool {
        std::ptr::eq(scope, self.graph)
            && !scope.nodes.iter().any(|node| matches!(&node.op[..], "_Arg" | "_Retval"))
    }

    /// Notes a use. Tells whether the functions that it uses are to be noted, too.
    fn note(&mut self, function: &'f str, how: Use, is_compiled: bool) -> bool {
        let is_new = !self.uses.contains_key(function);
        let uses = self.uses.entry(function).or_default();
        match how {
            Use::Call => {}
            Use::Read(output) => {
                uses.read.insert(output);
            }
            Use::Other => uses.otherwise = true,
        }
        let compiled_now = is_compiled && !uses.is_compiled;
        uses.is_compiled |= is_compiled;
        is_new || compiled_now
    }

    pub(super) fn function(&self, name: &str) -> Option<&'f Function> {
        self.all.get(name).copied()
    }

    pub(super) fn has(&self, function: &Function) -> bool {
        self.uses.contains_key(&function.name[..])
    }

    /// The graph and the functions that it needs.
    pub(super) fn scopes(&self) -> impl Iterator<Item = &'f Function> + '_ {
        let functions = self.uses.keys().filter_map(|name| self.function(name));
        std::iter::once(self.graph).chain(functions)
    }

    /// Whether a function is called, and does nothing else.
    pub(super) fn allows_calls(&self, function: &Function) -> Result<(), &'static str> {
        match self.uses.get(&function.name[..]) {
            Some(uses) if uses.is_compiled => Err("XLA compiles it"),
            Some(uses) if !uses.otherwise => Ok(()),
            _ => Err("it is used other than by a call"),
        }
    }

    /// Whether nobody reads an output of a function in which the loop and cuDNN differ.
    pub(super) fn allows_outputs(
        &self,
        function: &Function,
        has_runtime: bool,
        is_masked: bool,
    ) -> Result<(), &'static str> {
        let reads = |output| {
            self.uses.get(&function.name[..]).is_none_or(|uses| uses.read.contains(&output))
        };
        if !has_runtime && reads(function.outputs.len().saturating_sub(1)) {
            return Err("the output that tells which implementation has run is read");
        }
        if is_masked && reads(1) {
            return Err("all steps of its output are read, and steps after a row's end differ");
        }
        Ok(())
    }
}

impl Function {
    fn results(&self) -> impl Iterator<Item = &str> + '_ {
        self.results.values().map(|tensor| &tensor[..])
    }
}

fn is_compiled_by(attributes: &BTreeMap<String, Attribute>) -> bool {
    COMPILED.iter().any(|name| attributes.get(*name) == Some(&Attribute::Bool(true)))
}
