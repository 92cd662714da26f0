//! A step that one new node takes the place of, and the conditions that all steps have in common.

use std::collections::BTreeSet;

use crate::facts::availability::{Availability, Needed};
use crate::facts::levels::Levels;
use crate::facts::placement::check_beside;
use crate::facts::waits::waits_for;
use crate::facts::writers::Writers;
use crate::graph::reason::Reason;
use crate::graph::report::Report;
use crate::graph::{Attribute, DataType, Graph, NodeId, Output, Use};
use crate::reading::gradients::preactivation_grad;
use crate::reading::{accumulators, stacks};
use crate::rewrites::zeros;

/// What is known of a graph while its steps are replaced.
#[derive(Debug)]
pub(super) struct Context {
    levels: Levels,
    availability: Availability,
    writers: Writers,
    /// The nodes that popped from a list what somebody took.
    popped: BTreeSet<NodeId>,
}

impl Context {
    pub(super) fn of(graph: &Graph) -> Context {
        Context {
            levels: Levels::of(graph),
            availability: Availability::of(graph),
            writers: Writers::of(graph),
            popped: accumulators::read(graph),
        }
    }

    /// Removes stacks and lists from which steps that were replaced took tensors.
    pub(super) fn remove_unused_stacks(&mut self, graph: &mut Graph) {
        let availability = &self.availability;
        stacks::remove_unused(graph, |graph, awaited, id| {
            availability.runs_with(graph, id, awaited)
        });
        let is_same = |id, other| availability.is_same(id, other);
        for pivot in accumulators::remove_unused(graph, &self.popped, is_same) {
            self.levels.lift(graph, pivot, &[pivot]);
        }
    }
}

/// What a new node takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Taken {
    /// A tensor of the graph.
    Tensor(Output),
    /// A new constant: a vector of so many zeros.
    Zeros(i64),
    /// The sum of two vectors.
    Sum([Output; 2]),
}

impl Taken {
    /// What that is of the graph.
    fn tensors(self) -> impl Iterator<Item = Output> {
        let (one, other) = match self {
            Taken::Tensor(tensor) => (Some(tensor), None),
            Taken::Zeros(_) => (None, None),
            Taken::Sum([one, other]) => (Some(one), Some(other)),
        };
        one.into_iter().chain(other)
    }
}

impl From<Output> for Taken {
    fn from(tensor: Output) -> Taken {
        Taken::Tensor(tensor)
    }
}

/// Checks that nobody but the step takes its products with weights, which would be computed twice then.
pub(super) fn check_computed_once(
    graph: &Graph,
    products: Vec<NodeId>,
    nodes: &[NodeId],
) -> Result<(), Reason> {
    let other = |&id: &NodeId| graph.data_consumers(id).find(|id| !nodes.contains(id));
    match products.iter().find_map(|id| other(id).map(|more| (*id, more))) {
        Some((id, more)) => Err(Reason::consumer(graph, id, more)),
        None => Ok(()),
    }
}

/// Tensors of the graph, as a new node takes them.
pub(super) fn taken(tensors: impl IntoIterator<Item = Output>) -> Vec<Taken> {
    tensors.into_iter().map(Taken::from).collect()
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
    /// What it takes, first a tensor of the graph.
    pub(super) inputs: Vec<Taken>,
    /// Its attributes beside T.
    pub(super) attributes: Vec<(&'static str, Attribute)>,
    /// The tensors whose place its outputs take, by number of the output.
    pub(super) outputs: Vec<Vec<Output>>,
    /// Tensors that are the sums over the rows of the output that is the gradient of pre-activations.
    pub(super) row_sums: Vec<Output>,
}

/// Puts the new node of the step at a place into the graph, if there is one. Returns whether it is there.
pub(super) fn replace(
    graph: &mut Graph,
    context: &mut Context,
    (place, step): (NodeId, Result<Step, Reason>),
    report: &mut Report,
) -> bool {
    match step {
        Ok(step) => step.replace(graph, context, report),
        Err(reason) => {
            report.stays(place, reason);
            false
        }
    }
}

impl Step {
    /// Puts the new node into the graph, or leaves the graph as it is. Returns whether it is there.
    pub(super) fn replace(
        self,
        graph: &mut Graph,
        context: &mut Context,
        report: &mut Report,
    ) -> bool {
        let roles = Roles::of(graph, &self);
        match self.check(graph, context, &roles) {
            Ok((waits, needed)) => {
                let before = graph.len();
                let new = self.emit(graph, waits);
                for id in (before..graph.len()).map(NodeId) {
                    context.levels.lift(graph, id, &self.nodes);
                    context.availability.add(graph, id, needed.clone());
                }
                self.remove(graph, new, &roles);
                report.rewritten(graph, new, 1, None);
                true
            }
            Err(reason) => {
                report.stays(self.root, reason);
                false
            }
        }
    }

    fn check(
        &self,
        graph: &Graph,
        context: &mut Context,
        roles: &Roles,
    ) -> Result<(BTreeSet<NodeId>, Needed), Reason> {
        self.nodes.iter().try_for_each(|&id| check_beside(graph, id, self.root))?;
        let mut waits = self.waits(graph);
        let name = |id: NodeId| graph.node(id).name.clone();
        let tensors: Vec<_> = self.tensors().collect();
        let before: Vec<_> =
            tensors.iter().map(|input| input.node).chain(waits.iter().copied()).collect();
        if !context.levels.are_independent(graph, &before, &self.nodes) {
            return Err(Reason::Circle(name(self.root)));
        }
        waits.extend(self.check_memory(graph, &mut context.writers, &tensors, roles)?);
        let awaited: Vec<_> = waits.iter().copied().collect();
        let needed = context.availability.needed(graph, &tensors, &awaited);
        self.check_consumers(graph, &context.availability, &needed, roles)?;
        Ok((waits, needed))
    }

    /// Whether all memory of variables is read before it is written to. Returns what the new node has to
    /// wait for, so that it is.
    ///
    /// Who depended on a node that goes away depends on the new one only. So nodes that stay and read such
    /// memory have to come before it.
    fn check_memory(
        &self,
        graph: &Graph,
        writers: &mut Writers,
        tensors: &[Output],
        roles: &Roles,
    ) -> Result<Vec<NodeId>, Reason> {
        let memory = |node: NodeId| Reason::Memory(graph.node(node).name.clone());
        if let Some(node) = writers.too_early(graph, tensors, &roles.last()) {
            return Err(memory(node));
        }
        let mut awaited = Vec::new();
        for &id in &roles.staying {
            match writers.unstable(&graph.node(id).inputs) {
                Some(node) if roles.after.contains(&id) => return Err(memory(node)),
                Some(_) => awaited.push(id),
                None => {}
            }
        }
        Ok(awaited)
    }

    /// What the nodes of the step wait for. What waits for nothing but them waits for the new node.
    fn waits(&self, graph: &Graph) -> BTreeSet<NodeId> {
        let is_own = |id: &NodeId| {
            let node = graph.node(*id);
            node.op == "NoOp" && node.sources().all(|before| self.nodes.contains(&before))
        };
        let mut waits: BTreeSet<_> =
            self.nodes.iter().flat_map(|&id| waits_for(graph, id)).collect();
        waits.retain(|id| !is_own(id));
        for id in self.nodes.iter().copied().chain(self.tensors().map(|input| input.node)) {
            waits.remove(&id);
        }
        waits
    }

    /// What it takes of the graph.
    fn tensors(&self) -> impl Iterator<Item = Output> + '_ {
        self.inputs.iter().flat_map(|input| input.tensors())
    }

    /// Whether everybody who depends on a node of the step waits for all that the step needs.
    fn check_consumers(
        &self,
        graph: &Graph,
        availability: &Availability,
        needed: &Needed,
        roles: &Roles,
    ) -> Result<(), Reason> {
        for &id in &self.nodes {
            for one in graph.uses(id) {
                let consumer = one.consumer();
                let (tensor, is_moved) = match one {
                    Use::Data { output, .. } => {
                        let tensor = Output { node: id, index: output };
                        (tensor, roles.taken.contains(&tensor) || roles.after.contains(&id))
                    }
                    Use::Control { .. } => (Output { node: id, index: 0 }, true),
                };
                let is_fine = self.nodes.contains(&consumer)
                    || !is_moved
                    || availability.covers_consumer(graph, consumer, tensor, needed);
                if !is_fine {
                    return Err(Reason::early(graph, id, consumer));
                }
            }
        }
        Ok(())
    }

    fn emit(&self, graph: &mut Graph, waits: BTreeSet<NodeId>) -> NodeId {
        let root = graph.node(self.root);
        let data_type = root.data_type().expect("it was found replaceable");
        let mut new = root.like(self.op, data_type);
        for (name, value) in &self.attributes {
            new = new.with(name, value.clone());
        }
        new.inputs = (0..self.inputs.len()).map(|n| self.input(graph, n, data_type)).collect();
        new.control_inputs = waits.into_iter().collect();
        new.output_types = vec![data_type; self.outputs.len()];
        new.is_target = self.nodes.iter().any(|&id| graph.node(id).is_target);
        let new = graph.add(new);
        for (index, tensors) in self.outputs.iter().enumerate() {
            for &tensor in tensors {
                graph.redirect(tensor, Output { node: new, index });
            }
        }
        if !self.row_sums.is_empty() {
            self.emit_row_sum(graph, new, data_type);
        }
        new
    }

    /// Adds the node that takes the place of sums over rows.
    fn emit_row_sum(&self, graph: &mut Graph, new: NodeId, data_type: DataType) {
        let root = graph.node(new);
        let is_gradient =
            |&index: &usize| preactivation_grad(graph, Output { node: new, index }).is_some();
        let index = (0..self.outputs.len()).find(is_gradient).expect("it has a gradient");
        let mut sum = root.like("BiasAddGrad", data_type);
        sum = sum.with("data_format", Attribute::Text("NHWC".to_owned()));
        sum.name = format!("{}/blockcell/BiasAddGrad", root.name);
        sum.inputs = vec![Output { node: new, index }];
        sum.output_types = vec![data_type];
        let sum = graph.add(sum);
        for &tensor in &self.row_sums {
            graph.redirect(tensor, Output { node: sum, index: 0 });
        }
    }

    /// What the new node takes as an input. A constant is added to the graph, in the round of a loop in which the first
    /// input is.
    fn input(&self, graph: &mut Graph, number: usize, data_type: DataType) -> Output {
        let count = match self.inputs[number] {
            Taken::Tensor(tensor) => return tensor,
            Taken::Sum(both) => return self.sum(graph, number, data_type, both),
            Taken::Zeros(count) => count,
        };
        let first = self.tensors().next().map(|first| first.node);
        zeros::add(graph, self.root, (number, count), first)
    }

    /// Adds the node that adds two tensors.
    fn sum(
        &self,
        graph: &mut Graph,
        number: usize,
        data_type: DataType,
        both: [Output; 2],
    ) -> Output {
        let mut sum = graph.node(self.root).like("AddV2", data_type);
        sum.name = format!("{}/blockcell/AddV2_{number}", sum.name);
        sum.inputs = both.to_vec();
        sum.output_types = vec![data_type];
        Output { node: graph.add(sum), index: 0 }
    }

    /// Removes what nobody needs any more. Who waited for it waits for the new node then.
    fn remove(&self, graph: &mut Graph, new: NodeId, roles: &Roles) {
        let removed: Vec<_> =
            self.nodes.iter().copied().filter(|id| !roles.staying.contains(id)).collect();
        for &id in &removed {
            graph.redirect_control(id, new);
        }
        for id in removed {
            if graph.get(id).is_some() {
                graph.remove_unused(id);
            }
        }
    }
}

/// What becomes of the nodes of a step.
#[derive(Debug)]
struct Roles {
    /// The tensors whose place the outputs of the new node take.
    taken: BTreeSet<Output>,
    /// The nodes that compute something from these. If they stay, they wait for the new node.
    after: BTreeSet<NodeId>,
    /// The nodes that others need besides. Those that are not in `after` do not wait for the new node.
    staying: BTreeSet<NodeId>,
}

impl Roles {
    fn of(graph: &Graph, step: &Step) -> Roles {
        let taken = step.outputs.iter().flatten().chain(&step.row_sums);
        let taken: BTreeSet<_> = taken.copied().collect();
        let is_after = |after: &BTreeSet<NodeId>, id: NodeId| {
            let mut inputs = graph.node(id).inputs.iter();
            inputs.any(|input| taken.contains(input) || after.contains(&input.node))
        };
        let stays = |staying: &BTreeSet<NodeId>, id: NodeId| {
            graph.uses(id).any(|one| match one {
                Use::Data { consumer, output, .. } => {
                    let is_left = !step.nodes.contains(&consumer) || staying.contains(&consumer);
                    is_left && !taken.contains(&Output { node: id, index: output })
                }
                Use::Control { .. } => false,
            })
        };
        let after = closure(&step.nodes, is_after);
        let staying = closure(&step.nodes, stays);
        Roles { taken, after, staying }
    }

    /// The nodes that depend on the new node afterwards, or are it.
    fn last(&self) -> Vec<NodeId> {
        self.after.iter().copied().chain(self.taken.iter().map(|tensor| tensor.node)).collect()
    }
}

/// The nodes that belong to a set because of others that do.
fn closure(
    nodes: &[NodeId],
    belongs: impl Fn(&BTreeSet<NodeId>, NodeId) -> bool,
) -> BTreeSet<NodeId> {
    let mut found = BTreeSet::new();
    loop {
        let more: Vec<_> = nodes
            .iter()
            .copied()
            .filter(|&id| !found.contains(&id) && belongs(&found, id))
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}
