//! What rows give and keep in steps that are masked.
//!
//! ```text
//! state    next = h, or SelectV2(mask[t], h, state)
//! output   h, or SelectV2(mask[t], h, the output before), or SelectV2(mask[t], h, what is always the same)
//! ```

use std::collections::BTreeSet;

use super::super::body::Counters;
use super::super::frame::Frame;
use super::super::lists::{Input, Written};
use crate::graph::{Graph, NodeId, Output};
use crate::reading::neighbours::skip_identities;

/// The mask of a loop.
#[derive(Debug)]
pub(super) struct Mask {
    pub(super) input: Input,
    /// The output before the first step.
    pub(super) before: Output,
    /// Whether a masked step gives the output before it.
    pub(super) repeats: bool,
}

/// Reads what leaves a round, which is all masked by one mask, or not at all.
pub(super) struct Reader<'r> {
    graph: &'r Graph,
    frame: &'r Frame,
    counters: &'r Counters<'r>,
    /// The masks of all that was read.
    masks: BTreeSet<Option<Output>>,
    pub(super) nodes: BTreeSet<NodeId>,
}

impl<'r> Reader<'r> {
    pub(super) fn new(graph: &'r Graph, frame: &'r Frame, counters: &'r Counters<'r>) -> Self {
        Reader { graph, frame, counters, masks: BTreeSet::new(), nodes: BTreeSet::new() }
    }

    /// What a tensor is in a step that counts, and in one that is masked.
    fn masked(&mut self, tensor: Output) -> Option<(Output, Option<Output>)> {
        let tensor = skip_identities(self.graph, tensor);
        let node = self.graph.node(tensor.node);
        let ("SelectV2", &[mask, value, kept]) = (node.op.as_str(), &node.inputs[..]) else {
            self.masks.insert(None);
            return Some((tensor, None));
        };
        self.nodes.insert(tensor.node);
        self.masks.insert(Some(skip_identities(self.graph, mask)));
        Some((skip_identities(self.graph, value), Some(kept)))
    }

    /// The first value of a state, and what leaves the loop: `[before, after]` a step.
    pub(super) fn state(
        &mut self,
        [before, after]: [Output; 2],
    ) -> Option<(Output, Option<NodeId>)> {
        let variable = self.frame.variable(self.graph, before)?;
        let (next, kept) = self.masked(variable.next)?;
        let is_kept = kept.is_none_or(|kept| variable.is(self.graph, kept));
        let is_state = next == after && is_kept && !self.counters.have(variable);
        is_state.then_some((variable.first, variable.exit))
    }

    /// The mask of the loop, given what h is. None if the list of outputs gets something else.
    pub(super) fn output(&mut self, written: &Written, h: Output) -> Option<Option<Mask>> {
        let (value, kept) = self.masked(written.value)?;
        let mut masks = self.masks.iter().copied();
        let mask = masks.next().filter(|_| masks.next().is_none() && value == h)?;
        let Some((mask, kept)) = mask.zip(kept) else { return Some(None) };
        let counts = |t| self.counters.is_count(self.graph, t);
        let input = Input::of_list(self.graph, self.frame, mask, counts)?;
        // A column serves all cells.
        let is_column = input.element.len() == 2 && input.element[1] == 1;
        let (before, repeats) = self.before(written, kept).filter(|_| is_column)?;
        self.nodes.extend(&input.inside);
        Some(Some(Mask { input, before, repeats }))
    }

    /// What a masked step gives: the output before, which is a variable of the loop, or always the same.
    fn before(&self, written: &Written, kept: Output) -> Option<(Output, bool)> {
        let (graph, frame) = (self.graph, self.frame);
        if let Some(always) = frame.same(graph, kept) {
            return Some((always, false));
        }
        let output = skip_identities(graph, written.value);
        let variable = frame.variable(graph, kept)?;
        let repeats = skip_identities(graph, variable.next) == output;
        repeats.then_some((variable.first, true))
    }
}
