//! The level of a node: how many nodes lie before it.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::graph::order::{before, order};
use crate::graph::{Graph, NodeId};

/// How many nodes before the given ones to look at before giving up.
const MOST_VISITS: usize = 2000;

/// The level of a node is higher than those of all nodes that it depends on.
#[derive(Debug)]
pub(crate) struct Levels {
    levels: Vec<usize>,
}

impl Levels {
    pub(crate) fn of(graph: &Graph) -> Levels {
        let mut levels = vec![0; graph.len()];
        for id in order(graph) {
            levels[id.0] = 1 + before(graph, id).map(|node| levels[node.0]).max().unwrap_or(0);
        }
        Levels { levels }
    }

    /// The level of a node.
    pub(crate) fn of_node(&self, id: NodeId) -> usize {
        self.levels[id.0]
    }

    /// Whether no node of `from` depends on a node of `step`, none of which is in `from`.
    pub(crate) fn are_independent(&self, graph: &Graph, from: &[NodeId], step: &[NodeId]) -> bool {
        let step: HashSet<_> = step.iter().copied().collect();
        let lowest = step.iter().map(|id| self.levels[id.0]).min().unwrap_or(0);
        let mut seen: HashSet<NodeId> = from.iter().copied().collect();
        let mut open: Vec<_> = from.to_vec();
        while let Some(next) = open.pop() {
            if step.contains(&next) || seen.len() > from.len() + MOST_VISITS {
                return false;
            }
            if self.levels[next.0] > lowest {
                open.extend(before(graph, next).filter(|&id| seen.insert(id)));
            }
        }
        true
    }

    /// Gives a new node the level of the nodes that it takes the place of, and lifts what depends on it.
    pub(crate) fn lift(&mut self, graph: &Graph, new: NodeId, step: &[NodeId]) {
        let level = step.iter().map(|id| self.levels[id.0]).max().unwrap_or(0);
        self.levels.resize(graph.len(), 0);
        self.levels[new.0] = self.levels[new.0].max(level);
        // In the order of their levels so far: all that a node depends on comes before it, and it is looked at once.
        let mut open = BTreeSet::from([(0, new)]);
        let mut old = HashMap::new();
        while let Some((_, next)) = open.pop_first() {
            if graph.op(next) == "NextIteration" {
                continue;
            }
            let least = self.levels[next.0] + 1;
            for consumer in graph.uses(next).map(|one| one.consumer()) {
                let level = &mut self.levels[consumer.0];
                if *level < least {
                    let so_far = *old.entry(consumer).or_insert(*level);
                    *level = least;
                    open.insert((so_far, consumer));
                }
            }
        }
    }
}
