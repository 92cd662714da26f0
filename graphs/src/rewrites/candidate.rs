//! Nodes that new ones may take the place of, and the conditions that all such have in common.
//!
//! Steps that follow each other and loops become layers, whose outputs all have a value at the same time. So:
//!
//! * All nodes are on one CPU of this process, float or half, and nobody has claimed one by an attribute.
//! * A step asks for none of them but for those whose place an output of the new nodes takes.
//! * Nothing that the new nodes take or wait for depends on one of them.
//! * What the new nodes take keeps its value: no memory of a variable that the graph writes to.
//! * Whoever depends on one of them waits for all that the new nodes need.

use std::collections::BTreeSet;

use crate::facts::availability::{Availability, Needed};
use crate::facts::levels::Levels;
use crate::facts::memory::Memory;
use crate::facts::placement::{check_replaceable, is_claimed};
use crate::facts::waits::waits_for;
use crate::graph::reason::Reason;
use crate::graph::{Graph, NodeId, Output, Use};

/// What is known of a graph while candidates are replaced.
pub(crate) struct Facts {
    pub(crate) levels: Levels,
    pub(crate) memory: Memory,
    availability: Availability,
}

impl Facts {
    pub(crate) fn of(graph: &Graph) -> Facts {
        let (levels, memory) = (Levels::of(graph), Memory::of(graph));
        Facts { levels, memory, availability: Availability::of(graph) }
    }
}

/// Nodes that new ones may take the place of.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// One of them, which computes floats or halves. The new nodes have its device.
    pub(crate) root: NodeId,
    pub(crate) nodes: BTreeSet<NodeId>,
    /// What the new nodes take. Among the nodes are at most constants of it, which stay.
    pub(crate) inputs: Vec<Output>,
    /// The nodes whose outputs the new nodes have.
    pub(crate) outputs: BTreeSet<NodeId>,
    /// What the new nodes have to wait for beside the inputs.
    pub(crate) waits: BTreeSet<NodeId>,
    pub(crate) order: Order,
    /// The nodes that others may depend on.
    pub(crate) read: BTreeSet<NodeId>,
    pub(crate) readers: Readers,
}

/// How nodes lie between others.
#[derive(Debug)]
pub(crate) enum Order {
    /// What one takes may depend on another.
    Apart,
    /// They are a loop, and all that goes into it comes before it. Only what makes a tensor of its list comes after it.
    Loop { stack: Option<NodeId> },
}

/// Who waits for all that the new nodes need.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Whoever takes a tensor that waits for that.
    OfLateTensors,
    /// These as well, and whoever waits for it because of something else.
    Late,
}

impl Candidate {
    /// What is left of what some nodes wait for: neither they themselves nor what new nodes take.
    pub(crate) fn waits(
        awaited: impl Iterator<Item = NodeId>,
        nodes: &BTreeSet<NodeId>,
        inputs: &[Output],
    ) -> BTreeSet<NodeId> {
        let mut waits: BTreeSet<_> = awaited.filter(|id| !nodes.contains(id)).collect();
        for input in inputs {
            waits.remove(&input.node);
        }
        waits
    }

    /// Checks all conditions. Returns what the new nodes need to run.
    pub(crate) fn check(&self, graph: &Graph, facts: &Facts) -> Result<Needed, Reason> {
        self.check_places(graph)?;
        self.check_order(graph, &facts.levels)?;
        let is_outside = |input: &Output| !self.nodes.contains(&input.node);
        let inputs: Vec<_> = self.inputs.iter().copied().filter(is_outside).collect();
        facts.memory.check_stable(graph, &inputs)?;
        let waits: Vec<_> = self.waits.iter().copied().collect();
        let needed = facts.availability.needed(graph, &inputs, &waits);
        self.check_readers(graph, &facts.availability, &needed)?;
        Ok(needed)
    }

    fn check_places(&self, graph: &Graph) -> Result<(), Reason> {
        let root = graph.node(self.root);
        check_replaceable(root)?;
        for &id in &self.nodes {
            let node = graph.node(id);
            if node.is_target && !self.outputs.contains(&id) {
                return Err(Reason::Target(node.name.clone()));
            }
            if node.device != root.device {
                return Err(Reason::Device(node.name.clone()));
            }
            if is_claimed(node) {
                return Err(Reason::Kernel(node.name.clone()));
            }
        }
        Ok(())
    }

    fn check_order(&self, graph: &Graph, levels: &Levels) -> Result<(), Reason> {
        let name = |id: NodeId| graph.node(id).name.clone();
        match self.order {
            Order::Apart => {
                let inputs = self.inputs.iter().map(|input| input.node);
                let before: Vec<_> = inputs.chain(self.waits.iter().copied()).collect();
                let nodes: Vec<_> = self.nodes.iter().copied().collect();
                let is_free = levels.are_independent(graph, &before, &nodes);
                if is_free { Ok(()) } else { Err(Reason::Circle(name(self.root))) }
            }
            Order::Loop { stack: Some(stack) } => {
                let known = [&self.nodes, &self.waits, &self.read];
                let is_known = |id: &NodeId| known.iter().any(|set| set.contains(id));
                match waits_for(graph, stack).iter().all(is_known) {
                    true => Ok(()),
                    false => Err(Reason::Waits { slice: name(stack) }),
                }
            }
            Order::Loop { stack: None } => Ok(()),
        }
    }

    fn check_readers(
        &self,
        graph: &Graph,
        availability: &Availability,
        needed: &Needed,
    ) -> Result<(), Reason> {
        for &node in &self.read {
            for one in graph.uses(node) {
                let consumer = one.consumer();
                let index = if let Use::Data { output, .. } = one { output } else { 0 };
                let tensor = Output { node, index };
                let is_late = match self.readers {
                    Readers::OfLateTensors => availability.covers(graph, tensor, needed),
                    Readers::Late => {
                        self.is_own(consumer)
                            || availability.covers_consumer(graph, consumer, tensor, needed)
                    }
                };
                if !is_late {
                    return Err(Reason::early(graph, node, consumer));
                }
            }
        }
        Ok(())
    }

    /// Whether a node may take tensors of the others at any time, as it goes away, too.
    fn is_own(&self, id: NodeId) -> bool {
        match self.order {
            Order::Apart => self.nodes.contains(&id),
            Order::Loop { stack } => stack == Some(id),
        }
    }

    /// Lets `put` put new nodes, which it returns, in the place of these, and notes them.
    pub(crate) fn replace(
        &self,
        graph: &mut Graph,
        facts: &mut Facts,
        needed: &Needed,
        put: impl FnOnce(&mut Graph) -> Vec<NodeId>,
    ) {
        let nodes: Vec<_> = self.nodes.iter().copied().collect();
        for new in put(graph) {
            if let Order::Apart = self.order {
                facts.levels.lift(graph, new, &nodes);
            }
            facts.availability.add(graph, new, needed.clone());
        }
    }
}
