//! On what it depends whether a tensor gets a value, and when.
//!
//! Most nodes run as soon as their inputs have values. A value may be missing, or come late, for a few
//! reasons, which are called sources here:
//!
//! * A side of a switch, by the tensor that it switches by, unless that is a constant.
//! * A node that may wait for something that happens elsewhere: a queue, or a tensor that is fed later.
//! * A merge of tensors that depend on different things.
//!
//! A tensor has a value as soon as all its sources allow it. So if the sources of one tensor are among
//! those of another, then whoever waits for the other has waited for the one, too.
//!
//! The variables of a loop go together: each has a value in every round, if what comes from a round
//! depends on nothing else than the variables themselves and on the round taking place. This is an
//! induction over the rounds. A loop in which it does not hold counts as a source for each variable.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::graph::order::order;
use crate::graph::{Graph, NodeId, Output, ops};
use crate::reading::constants::truth;
use crate::reading::variables::frame_name;

/// A tensor with more sources counts as unknown.
const MOST_SOURCES: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Source {
    /// That a switch has a value on this side.
    Side(Output, usize),
    /// That this node has one.
    Node(NodeId),
}

/// A set of sources; None if there are too many.
type Sources = Option<BTreeSet<Source>>;

/// The sources of all nodes of a graph.
#[derive(Debug)]
pub(crate) struct Availability {
    sources: Vec<Sources>,
}

impl Availability {
    pub(crate) fn of(graph: &Graph) -> Availability {
        let order = order(graph);
        let mut doubtful = HashSet::new();
        loop {
            let (found, loops) = pass(graph, &order, &doubtful);
            let more: Vec<_> =
                loops.iter().filter(|(_, merges)| !holds(graph, &found, merges)).collect();
            let before = doubtful.len();
            doubtful.extend(more.iter().map(|(frame, _)| (*frame).clone()));
            if doubtful.len() == before {
                return found;
            }
        }
    }

    /// Whether a consumer of `tensor` runs only when all that is needed has a value.
    pub(crate) fn covers_consumer(
        &self,
        graph: &Graph,
        consumer: NodeId,
        tensor: Output,
        needed: &Needed,
    ) -> bool {
        needed.is_among(&self.of_tensor(graph, tensor))
            || !graph.is(consumer, ops::APART) && needed.is_among(&self.before(graph, consumer))
    }

    /// Whether a tensor has a value only when all that is needed has one.
    pub(crate) fn covers(&self, graph: &Graph, tensor: Output, needed: &Needed) -> bool {
        needed.is_among(&self.of_tensor(graph, tensor))
    }

    /// What a node needs that takes some tensors, and waits for some nodes.
    pub(crate) fn needed(&self, graph: &Graph, tensors: &[Output], waits: &[NodeId]) -> Needed {
        let tensors = tensors.iter().map(|&tensor| self.of_tensor(graph, tensor));
        let waits = waits.iter().map(|wait| self.sources[wait.0].clone());
        Needed(union(tensors.chain(waits)))
    }

    /// Whether a node runs as soon as another one has run.
    pub(crate) fn runs_with(&self, graph: &Graph, id: NodeId, other: NodeId) -> bool {
        let before = self.before(graph, id);
        let has = self.sources[other.0].as_ref();
        before.zip(has).is_some_and(|(before, has)| before.is_subset(has))
    }

    /// Whether two nodes run as soon as each other.
    pub(crate) fn is_same(&self, id: NodeId, other: NodeId) -> bool {
        let [one, other] = [id, other].map(|id| self.sources[id.0].as_ref());
        one.is_some() && one == other
    }

    /// Notes what a new node needs.
    pub(crate) fn add(&mut self, graph: &Graph, new: NodeId, needed: Needed) {
        self.sources.resize(graph.len(), None);
        self.sources[new.0] = needed.0;
    }

    fn of_tensor(&self, graph: &Graph, tensor: Output) -> Sources {
        let sources = self.sources[tensor.node.0].clone();
        if !graph.is(tensor.node, ops::SWITCH) {
            return sources;
        }
        let condition = graph.condition(tensor.node);
        let mut sources = sources?;
        // TensorFlow's optimizers leave switches by constants. The other side of these never has a value.
        if truth(graph, condition).map(usize::from) != Some(tensor.index) {
            sources.insert(side(graph, condition, tensor.index));
        }
        Some(sources)
    }

    /// The sources of all inputs of a node.
    fn before(&self, graph: &Graph, id: NodeId) -> Sources {
        let node = graph.node(id);
        let inputs = node.inputs.iter().map(|&input| self.of_tensor(graph, input));
        union(inputs.chain(node.control_inputs.iter().map(|wait| self.sources[wait.0].clone())))
    }
}

/// The side of a switch by `condition`. TensorFlow 1 switches by a tensor and by its `Identity` in one `cond`.
fn side(graph: &Graph, mut condition: Output, side: usize) -> Source {
    while graph.op(condition.node) == "Identity" {
        let input = graph.input(condition.node, 0);
        // What a variable holds may change before it is looked at again.
        let types = &graph.node(input.node).output_types;
        if types.get(input.index).is_none_or(|data_type| data_type.is_reference()) {
            break;
        }
        condition = input;
    }
    Source::Side(condition, side)
}

/// What a new node needs to run.
#[derive(Clone, Debug)]
pub(crate) struct Needed(Sources);

impl Needed {
    fn is_among(&self, sources: &Sources) -> bool {
        self.0.as_ref().zip(sources.as_ref()).is_some_and(|(needed, has)| needed.is_subset(has))
    }
}

/// By name of the frame: the merges of its variables.
type Loops = HashMap<String, Vec<NodeId>>;

fn pass(graph: &Graph, order: &[NodeId], doubtful: &HashSet<String>) -> (Availability, Loops) {
    let mut found = Availability { sources: vec![None; graph.len()] };
    let mut loops = Loops::new();
    for &id in order {
        let op = graph.op(id);
        let sources = match op {
            "Merge" | "RefMerge" => match frame(graph, id) {
                Some((frame, _)) if doubtful.contains(frame) => one(id),
                Some((frame, enter)) => {
                    loops.entry(frame.to_owned()).or_default().push(id);
                    found.sources[enter.0].clone()
                }
                None => of_merge(graph, &found, id),
            },
            "Exit" | "RefExit" => of_exit(graph, &found, id),
            // It runs whether what it waits for has values or not.
            "ControlTrigger" => found.before(graph, id).map(|sources| {
                sources.into_iter().filter(|one| matches!(one, Source::Node(_))).collect()
            }),
            _ if graph.node(id).may_wait || !known_to_run(op) => {
                found.before(graph, id).and_then(|sources| {
                    limited(sources.into_iter().chain([Source::Node(id)]).collect())
                })
            }
            _ => found.before(graph, id),
        };
        found.sources[id.0] = sources;
    }
    (found, loops)
}

/// Whether a node runs once its inputs have values, or is one of those that [`pass`] knows.
fn known_to_run(op: &str) -> bool {
    !ops::is(op, ops::APART)
        || matches!(op, "Enter" | "RefEnter" | "NextIteration" | "RefNextIteration")
}

/// The frame of a loop that a merge begins, and the node by which the first round gets its value.
fn frame(graph: &Graph, merge: NodeId) -> Option<(&str, NodeId)> {
    let [enter, next] = graph.node(merge).inputs[..] else { return None };
    let is_next = matches!(graph.op(next.node), "NextIteration" | "RefNextIteration");
    Some((frame_name(graph, enter.node).filter(|_| is_next)?, enter.node))
}

/// Where both sides of one switch meet again.
///
/// A merge also waits for nodes on one side, which TensorFlow 2 has where a branch has effects. If these are dead, it
/// runs all the same.
fn of_merge(graph: &Graph, found: &Availability, id: NodeId) -> Sources {
    let node = graph.node(id);
    let [left, right] = node.inputs[..] else { return one(id) };
    let known = found.of_tensor(graph, left).zip(found.of_tensor(graph, right));
    let Some((left, right)) = known else { return one(id) };
    let [only_left, only_right] =
        [left.difference(&right), right.difference(&left)].map(Iterator::collect::<Vec<_>>);
    match (&only_left[..], &only_right[..]) {
        ([Source::Side(by, one_side)], [Source::Side(same, other_side)])
            if by == same && one_side != other_side =>
        {
            let is_on_a_side = |wait: &NodeId| {
                let sources = found.sources[wait.0].as_ref();
                sources.is_some_and(|all| all.is_subset(&left) || all.is_subset(&right))
            };
            let ends = node.control_inputs.iter().all(is_on_a_side);
            if ends { Some(left.intersection(&right).copied().collect()) } else { one(id) }
        }
        _ => one(id),
    }
}

/// What leaves a loop has a value when the loop has ended, if the loop is one that [`holds`].
fn of_exit(graph: &Graph, found: &Availability, id: NodeId) -> Sources {
    let switch = graph.input(id, 0);
    if !graph.is(switch.node, ops::SWITCH) || switch.index != 0 {
        return one(id);
    }
    let merge = graph.input(switch.node, 0).node;
    let is_of_loop = frame(graph, merge).is_some();
    if is_of_loop { found.sources[merge.0].clone() } else { one(id) }
}

/// Whether the variables of a loop all have values in every round that takes place, and the loop ends
/// by itself.
fn holds(graph: &Graph, found: &Availability, merges: &[NodeId]) -> bool {
    let first = &found.sources[merges[0].0];
    let Some(outside) = first else { return false };
    let condition = |merge: NodeId| {
        let switch = graph.data_consumers(merge).find(|&id| graph.is(id, ops::SWITCH));
        switch.map(|id| graph.condition(id))
    };
    let Some(condition) = merges.iter().find_map(|&merge| condition(merge)) else { return false };
    if graph.op(condition.node) != "LoopCond" || !is_pure(graph, condition.node) {
        return false;
    }
    let mut allowed = outside.clone();
    allowed.insert(side(graph, condition, 1));
    merges.iter().all(|&merge| {
        let next = graph.input(merge, 1);
        let from_round = found.before(graph, next.node);
        found.sources[merge.0] == *first && from_round.is_some_and(|has| has.is_subset(&allowed))
    })
}

/// Whether a condition is computed from the loop's variables, and from nothing that others change.
fn is_pure(graph: &Graph, condition: NodeId) -> bool {
    let mut seen = HashSet::from([condition]);
    let mut open = vec![condition];
    while let Some(next) = open.pop() {
        let node = graph.node(next);
        let reads = matches!(node.op.as_str(), "ReadVariableOp" | "VariableShape" | "RefEnter");
        if node.may_wait || reads || seen.len() > MOST_SOURCES {
            return false;
        }
        if !matches!(node.op.as_str(), "Merge" | "Enter") {
            open.extend(node.inputs.iter().map(|input| input.node).filter(|&id| seen.insert(id)));
        }
    }
    true
}

fn one(id: NodeId) -> Sources {
    Some(BTreeSet::from([Source::Node(id)]))
}

fn union(all: impl Iterator<Item = Sources>) -> Sources {
    let mut sum = BTreeSet::new();
    for sources in all {
        sum.extend(sources?);
    }
    limited(sum)
}

fn limited(sources: BTreeSet<Source>) -> Sources {
    (sources.len() <= MOST_SOURCES).then_some(sources)
}
