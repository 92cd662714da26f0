//! The frame of a loop: its nodes and its variables.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::memory::Memory;
use crate::graph::reason::Reason;
use crate::graph::{Graph, NodeId, Output};
use crate::reading::neighbours::skip_identities;
use crate::reading::variables::{Variable, frame_name};

/// A loop with more nodes is not looked at.
const MOST_NODES: usize = 400;

/// A loop.
#[derive(Debug)]
pub(super) struct Frame {
    /// Its `LoopCond`.
    pub(super) condition: NodeId,
    pub(super) variables: Vec<Variable>,
    /// All nodes from those that enter to those that leave.
    pub(super) nodes: BTreeSet<NodeId>,
}

/// The loops that some nodes are in, without those that are nested in others or have others nested in them.
pub(super) fn with(graph: &Graph, steps: impl Iterator<Item = NodeId>) -> Vec<Frame> {
    let mut enters: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
    for id in graph.ids() {
        if let Some(name) = frame_name(graph, id) {
            enters.entry(name).or_default().push(id);
        }
    }
    let steps: BTreeSet<_> = if enters.is_empty() { BTreeSet::new() } else { steps.collect() };
    let frames = enters.values().filter_map(|enters| Frame::of(graph, enters));
    frames.filter(|frame| frame.nodes.iter().any(|id| steps.contains(id))).collect()
}

impl Frame {
    fn of(graph: &Graph, enters: &[NodeId]) -> Option<Frame> {
        let mut nodes: BTreeSet<_> = enters.iter().copied().collect();
        let mut open = enters.to_vec();
        while let Some(next) = open.pop() {
            if nodes.len() > MOST_NODES {
                return None;
            }
            if graph.op(next) == "Exit" {
                continue;
            }
            let consumers = graph.uses(next).map(|one| one.consumer());
            open.extend(consumers.filter(|&id| nodes.insert(id)));
        }
        let mut conditions = nodes.iter().copied().filter(|&id| graph.op(id) == "LoopCond");
        let condition = conditions.next().filter(|_| conditions.next().is_none())?;
        let merges = nodes.iter().copied().filter(|&id| graph.op(id) == "Merge");
        let variables =
            merges.map(|merge| Variable::read(graph, merge, condition)).collect::<Option<_>>()?;
        Some(Frame { condition, variables, nodes })
    }

    /// The loop as it is now: what enters may have moved, and what leaves may have gone, with a loop beside it.
    pub(super) fn current(&self, graph: &Graph) -> Option<Frame> {
        let is_enter = |id: &NodeId| graph.get(*id).is_some_and(|node| node.op == "Enter");
        let enters: Vec<_> = self.nodes.iter().copied().filter(is_enter).collect();
        Frame::of(graph, &enters)
    }

    /// The variable whose value in a round a tensor is.
    pub(super) fn variable(&self, graph: &Graph, tensor: Output) -> Option<&Variable> {
        self.variables.iter().find(|variable| variable.is(graph, tensor))
    }

    /// The nodes of the variables and of the condition.
    pub(super) fn nodes_of_variables(&self) -> impl Iterator<Item = NodeId> + '_ {
        let nodes = self.variables.iter().flat_map(|variable| variable.nodes.iter().copied());
        nodes.chain([self.condition])
    }

    /// The tensor outside of the loop that is the same in every round: one that enters as a constant, or a constant
    /// in the loop, which leaves it then.
    pub(super) fn outside(&self, graph: &Graph, tensor: Output) -> Option<Output> {
        let tensor = skip_identities(graph, tensor);
        let node = graph.node(tensor.node);
        match node.op.as_str() {
            "Enter" if node.flag("is_constant") => Some(node.inputs[0]),
            "Const" => Some(tensor),
            _ => None,
        }
    }

    /// What a tensor is outside of the loop, if this is where it comes in: as a constant, or as a variable that keeps
    /// its value.
    pub(super) fn entry(&self, graph: &Graph, tensor: Output) -> Option<Output> {
        let node = graph.node(tensor.node);
        if node.op == "Enter" && node.flag("is_constant") {
            return Some(node.inputs[0]);
        }
        let switched = |one: &&Variable| tensor == Output { node: one.switch, index: 1 };
        let variable = self.variables.iter().find(switched);
        variable.filter(|variable| variable.stays(graph)).map(|variable| variable.first)
    }

    /// The same, or the first value of a variable that keeps it.
    pub(super) fn same(&self, graph: &Graph, tensor: Output) -> Option<Output> {
        let kept = self.variable(graph, tensor).filter(|variable| variable.stays(graph));
        kept.map(|variable| variable.first).or_else(|| self.outside(graph, tensor))
    }

    /// The same of a tensor in the condition.
    pub(super) fn same_in_condition(&self, graph: &Graph, tensor: Output) -> Option<Output> {
        let mut all = self.variables.iter();
        let kept = all.find(|one| one.is_in_condition(graph, tensor) && one.stays(graph));
        kept.map(|variable| variable.first).or_else(|| self.outside(graph, tensor))
    }

    /// Whether each node of the loop is one of these, or does nothing in a round.
    pub(super) fn check_nodes(
        &self,
        graph: &Graph,
        known: &BTreeSet<NodeId>,
    ) -> Result<(), Reason> {
        let is_harmless = |id: NodeId| match graph.op(id) {
            "Identity" | "Const" | "NoOp" => true,
            "Enter" => graph.node(id).flag("is_constant"),
            _ => false,
        };
        let mut more = self.nodes.iter().filter(|&&id| !known.contains(&id) && !is_harmless(id));
        more.next().map_or(Ok(()), |&id| Err(Reason::InLoop(graph.node(id).name.clone())))
    }

    /// What leaves the loop.
    pub(super) fn exits(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.variables.iter().filter_map(|variable| variable.exit)
    }

    /// Whether all that somebody takes of what leaves the loop is known, or the same in every round.
    pub(super) fn check_exits(
        &self,
        graph: &Graph,
        memory: &Memory,
        is_known: impl Fn(&Variable) -> bool,
    ) -> Result<(), Reason> {
        for variable in &self.variables {
            let stays = variable.stays(graph) && memory.unstable(&[variable.first]).is_none();
            let Some(exit) = variable.exit.filter(|_| !stays && !is_known(variable)) else {
                continue;
            };
            if let Some(reader) = graph.data_consumers(exit).next() {
                return Err(Reason::consumer(graph, exit, reader));
            }
        }
        Ok(())
    }

    /// Lets who waits for what leaves the loop wait for the node in its place, and gives those what is the same in
    /// every round who take that.
    pub(super) fn redirect_exits(&self, graph: &mut Graph, new: NodeId) {
        for variable in &self.variables {
            let Some(node) = variable.exit else { continue };
            graph.redirect_control(node, new);
            if variable.stays(graph) {
                graph.redirect(Output { node, index: 0 }, variable.first);
            }
        }
    }
}
