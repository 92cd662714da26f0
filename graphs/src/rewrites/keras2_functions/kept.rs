//! What a forward half keeps reaches its backward half, and nobody else.
//!
//! What it keeps may pass through other functions: where a gradient is taken of a function that calls the layer, the
//! halves stand in the halves of that function.

use std::collections::{BTreeMap, BTreeSet};

use super::function::{Function, FunctionNode, node_of, number_of};
use super::needed::Needed;

const READ: &str = "a tensor that it saves for its gradient has other consumers";
const APART: &str = "some tensors that it saves do not reach its gradient in this graph";

/// A tensor of a function: the node or input, and the number of the output.
type Tensor<'f> = (&'f str, usize);

/// Whether all calls of `backward` take, after as many gradients as `forward` has `outputs`, what one call of
/// `forward` keeps, in the same order, and all that is kept goes there.
pub(super) fn only_reaches(
    forward: &Function,
    backward: &Function,
    outputs: usize,
    needed: &Needed<'_>,
) -> Result<(), &'static str> {
    needed.allows_calls(forward)?;
    if needed.has(backward) {
        needed.allows_calls(backward)?;
    }
    let mut flow = Flow { needed, backward, outputs, open: Vec::new(), reached: BTreeSet::new() };
    for (scope, node) in calls(needed, &forward.name) {
        if needed.may_be_asked_for_all(scope) {
            return Err(READ);
        }
        let kept = (outputs..forward.outputs.len()).map(|output| (&node.name[..], output));
        flow.open.push((scope, kept.collect()));
    }
    let mut seen = BTreeSet::new();
    while let Some((scope, kept)) = flow.open.pop() {
        if seen.insert((&scope.name[..], kept.clone())) {
            flow.follow(scope, &kept)?;
        }
    }
    let calls = calls(needed, &backward.name).into_iter();
    let mut calls = calls.map(|(scope, node)| (&scope.name[..], &node.name[..]));
    if calls.all(|call| flow.reached.contains(&call)) { Ok(()) } else { Err(APART) }
}

/// The calls of a function, and where they are.
fn calls<'f>(needed: &Needed<'f>, name: &str) -> Vec<(&'f Function, &'f FunctionNode)> {
    let nodes = needed.scopes().flat_map(|scope| scope.nodes.iter().map(move |node| (scope, node)));
    nodes.filter(|(_, node)| node.callee() == Some(name)).collect()
}

struct Flow<'f, 'n> {
    needed: &'n Needed<'f>,
    backward: &'n Function,
    outputs: usize,
    /// What is kept, under the names that it has in a function.
    open: Vec<(&'f Function, Vec<Tensor<'f>>)>,
    /// Calls of the backward half that take it: the function and the node.
    reached: BTreeSet<(&'f str, &'f str)>,
}

impl<'f> Flow<'f, '_> {
    /// Where what is kept goes in a function.
    fn follow(&mut self, scope: &'f Function, kept: &[Tensor<'f>]) -> Result<(), &'static str> {
        let places: BTreeMap<_, _> =
            kept.iter().zip(0..).map(|(tensor, place)| (*tensor, place)).collect();
        let place =
            |tensor: &str| places.get(&(node_of(tensor), number_of(tensor).unwrap_or(0))).copied();
        for node in &scope.nodes {
            let taken: Vec<_> = node.data().map(place).collect();
            if taken.iter().any(Option::is_some) {
                self.enter(scope, node, &taken, kept.len())?;
            }
        }
        let result = |name: &str| scope.results.get(name).and_then(|tensor| place(tensor));
        let given: Vec<_> = scope.outputs.iter().map(|(name, _)| result(name)).collect();
        if given.iter().any(Option::is_some) {
            self.leave(scope, &given, kept.len())?;
        }
        Ok(())
    }

    /// A node takes it: the backward half, or another function.
    fn enter(
        &mut self,
        scope: &'f Function,
        node: &'f FunctionNode,
        taken: &[Option<usize>],
        count: usize,
    ) -> Result<(), &'static str> {
        let callee = node.callee().and_then(|name| self.needed.function(name)).ok_or(READ)?;
        let order = once_each(taken, count).ok_or(APART)?;
        if callee.name == self.backward.name {
            let is_in_order = order.into_iter().eq(self.outputs..self.outputs + count);
            self.reached.insert((&scope.name, &node.name));
            return if is_in_order { Ok(()) } else { Err(APART) };
        }
        self.needed.allows_calls(callee)?;
        let inputs = order.iter().map(|&input| callee.inputs.get(input));
        let names = inputs.map(|input| input.map(|(name, _)| (&name[..], 0)));
        self.open.push((callee, names.collect::<Option<_>>().ok_or(APART)?));
        Ok(())
    }

    /// A function returns it to those that call it.
    fn leave(
        &mut self,
        scope: &'f Function,
        given: &[Option<usize>],
        count: usize,
    ) -> Result<(), &'static str> {
        self.needed.allows_calls(scope)?;
        let order = once_each(given, count).ok_or(APART)?;
        for (caller, node) in calls(self.needed, &scope.name) {
            let tensors = order.iter().map(|&output| (&node.name[..], output));
            self.open.push((caller, tensors.collect()));
        }
        Ok(())
    }
}

/// Where each of `count` things stands, if each stands in one place.
fn once_each(places: &[Option<usize>], count: usize) -> Option<Vec<usize>> {
    let mut order = vec![None; count];
    for (at, place) in places.iter().enumerate() {
        let Some(place) = *place else { continue };
        if order[place].replace(at).is_some() {
            return None;
        }
    }
    order.into_iter().collect()
}
