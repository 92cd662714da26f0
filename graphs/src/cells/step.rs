//! A step that one new node takes the place of, and the conditions that all steps have in common.

use std::collections::BTreeSet;

use super::availability::{Availability, Needed};
use super::levels::Levels;
use super::writers::Writers;
use crate::attribute::Attribute;
use crate::graph::{Graph, Node, NodeId, Output, Use};
use crate::placement::{check_replaceable, check_same_device};
use crate::reason::Reason;
use crate::report::Report;
use crate::waits::waits_for;

/// What is known of a graph while its steps are replaced.
#[derive(Debug)]
pub(super) struct Context {
    levels: Levels,
    availability: Availability,
    writers: Writers,
}

impl Context {
    pub(super) fn of(graph: &Graph) -> Context {
        Context {
            levels: Levels::of(graph),
            availability: Availability::of(graph),
            writers: Writers::of(graph),
        }
    }
}

/// A step: nodes of a graph, and the node to put in their place.
#[derive(Debug)]
pub(super) struct Step {
    /// The node whose name the new one gets.
    pub(super) root: NodeId,
    /// The nodes whose tensors nobody else needs then. Others may take part, and stay if somebody needs them.
    pub(super) nodes: Vec<NodeId>,
    /// The operation of the new node.
    pub(super) op: &'static str,
    /// What it takes.
    pub(super) inputs: Vec<Output>,
    /// Its attributes beside T.
    pub(super) attributes: Vec<(&'static str, Attribute)>,
    /// The tensors whose place its outputs take, by number of the output.
    pub(super) outputs: Vec<Vec<Output>>,
}

impl Step {
    /// Puts the new node into the graph, or leaves the graph as it is.
    pub(super) fn replace(self, graph: &mut Graph, context: &mut Context, report: &mut Report) {
        match self.check(graph, context) {
            Ok((waits, needed)) => {
                let new = self.emit(graph, waits);
                context.levels.lift(graph, new, &self.nodes);
                context.availability.add(graph, new, needed);
                self.remove(graph, new);
                report.rewritten(graph, new, 1, None);
            }
            Err(reason) => report.stays(self.root, reason),
        }
    }

    fn check(
        &self,
        graph: &Graph,
        context: &mut Context,
    ) -> Result<(BTreeSet<NodeId>, Needed), Reason> {
        self.check_places(graph)?;
        let waits = self.waits(graph);
        let name = |id: NodeId| graph.node(id).name.clone();
        let before: Vec<_> =
            self.inputs.iter().map(|input| input.node).chain(waits.iter().copied()).collect();
        if !context.levels.are_independent(graph, &before, &self.nodes) {
            return Err(Reason::Circle(name(self.root)));
        }
        let last: Vec<_> = self.last_nodes(graph).into_iter().collect();
        if let Some(node) = context.writers.too_early(graph, &self.inputs, &last) {
            return Err(Reason::Memory(name(node)));
        }
        let awaited: Vec<_> = waits.iter().copied().collect();
        let needed = context.availability.needed(graph, &self.inputs, &awaited);
        self.check_consumers(graph, &context.availability, &needed)?;
        Ok((waits, needed))
    }

    fn check_places(&self, graph: &Graph) -> Result<(), Reason> {
        for &id in &self.nodes {
            check_replaceable(graph.node(id))?;
            check_same_device(graph, id, self.root)?;
        }
        Ok(())
    }

    /// What the nodes of the step wait for.
    fn waits(&self, graph: &Graph) -> BTreeSet<NodeId> {
        let mut waits: BTreeSet<_> =
            self.nodes.iter().flat_map(|&id| waits_for(graph, id)).collect();
        for id in self.nodes.iter().copied().chain(self.inputs.iter().map(|input| input.node)) {
            waits.remove(&id);
        }
        waits
    }

    /// The nodes that depend on the new node afterwards, or are it. What only comes before them may stay
    /// for others, who do not wait for the new node then.
    fn last_nodes(&self, graph: &Graph) -> BTreeSet<NodeId> {
        let taken: BTreeSet<_> = self.outputs.iter().flatten().copied().collect();
        let mut last = self.after_outputs(graph, &taken);
        last.extend(taken.iter().map(|tensor| tensor.node));
        last
    }

    /// The nodes of the step that compute something from what the new node's outputs take the place of.
    /// If somebody else needs them they stay, and then wait for the new node.
    fn after_outputs(&self, graph: &Graph, taken: &BTreeSet<Output>) -> BTreeSet<NodeId> {
        let mut after = BTreeSet::new();
        loop {
            let before = after.len();
            for &id in &self.nodes {
                let inputs = &graph.node(id).inputs;
                if inputs.iter().any(|input| taken.contains(input) || after.contains(&input.node)) {
                    after.insert(id);
                }
            }
            if after.len() == before {
                return after;
            }
        }
    }

    /// Whether everybody who depends on a node of the step waits for all that the step needs.
    fn check_consumers(
        &self,
        graph: &Graph,
        availability: &Availability,
        needed: &Needed,
    ) -> Result<(), Reason> {
        let taken: BTreeSet<_> = self.outputs.iter().flatten().copied().collect();
        let after = self.after_outputs(graph, &taken);
        for &id in &self.nodes {
            for one in graph.uses(id) {
                let consumer = one.consumer();
                let (tensor, is_moved) = match *one {
                    Use::Data { output, .. } => {
                        let tensor = Output { node: id, index: output };
                        (tensor, taken.contains(&tensor) || after.contains(&id))
                    }
                    Use::Control { .. } => (Output { node: id, index: 0 }, true),
                };
                let is_fine = self.nodes.contains(&consumer)
                    || !is_moved
                    || availability.covers(graph, tensor, needed)
                    || availability.implies(graph, consumer, tensor, needed);
                if !is_fine {
                    let name = |id| graph.node(id).name.clone();
                    return Err(Reason::Early { node: name(id), consumer: name(consumer) });
                }
            }
        }
        Ok(())
    }

    fn emit(&self, graph: &mut Graph, waits: BTreeSet<NodeId>) -> NodeId {
        let root = graph.node(self.root);
        let data_type = root.data_type().expect("it was found replaceable");
        let mut attributes = vec![("T".to_owned(), Attribute::Type(data_type))];
        let more = self.attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        attributes.extend(more);
        let new = Node {
            name: root.name.clone(),
            op: self.op.to_owned(),
            device: root.device.clone(),
            attributes,
            inputs: self.inputs.clone(),
            control_inputs: waits.into_iter().collect(),
            output_types: vec![data_type; self.outputs.len()],
            is_target: self.nodes.iter().any(|&id| graph.node(id).is_target),
            ..Node::default()
        };
        let new = graph.add(new);
        for (index, tensors) in self.outputs.iter().enumerate() {
            for &tensor in tensors {
                graph.redirect(tensor, Output { node: new, index });
            }
        }
        new
    }

    /// Removes what nobody needs any more. Who waited for it waits for the new node then. Nodes that stay
    /// may run later than the new one, so whoever waits for them still does.
    fn remove(&self, graph: &mut Graph, new: NodeId) {
        let mut unused: BTreeSet<_> = self.nodes.iter().copied().collect();
        loop {
            let is_needed = |id: &NodeId| {
                let takes = |one: &Use| {
                    matches!(one, Use::Data { .. }) && !unused.contains(&one.consumer())
                };
                graph.uses(*id).iter().any(takes)
            };
            let Some(stays) = unused.iter().copied().find(is_needed) else { break };
            unused.remove(&stays);
        }
        for &id in &unused {
            graph.redirect_control(id, new);
        }
        for &id in &unused {
            if graph.get(id).is_some() {
                graph.remove_unused(id);
            }
        }
    }
}
