//! Rewrite: all steps' gradients of weights, or of a bias, in one operation.
//!
//! | in the graph | becomes |
//! |---|---|
//! | `AddN`, or a tree of `Add`, of products `left^T @ dz` and other summands | `BlockcellMatMulAddN` |
//! | the same of sums over the rows of `dz` | `BlockcellBiasAddGradAddN` |
//!
//! Conditions, and where they are checked:
//!
//! * Nothing but the sum depends on a product or on an inner sum, by data or control, and all are on
//!   one CPU of this process: [`check_only_for`].
//! * What products and inner sums read is read later then. It must not change meanwhile:
//!   [`Terms::check`], [`Forest::stays`], [`Product::check_parts`].
//! * `Add` broadcasts. It counts as a sum only if its summands have the same shape for certain:
//!   [`LazyShapes`].
//! * The sum waits for what the products waited for, and it did before: [`Replacement`].

use std::collections::{BTreeSet, HashMap};

use crate::facts::memory::Memory;
use crate::facts::placement::{check_only_for, check_replaceable, check_same_device};
use crate::facts::shapes::LazyShapes;
use crate::graph::reason::Reason;
use crate::graph::report::Report;
use crate::graph::{Graph, NodeId, Output, ops};
use crate::reading::gradients::{cell_tensors, preactivation_grad};
use crate::reading::products::Product;
use crate::reading::terms::{Terms, is_shield};
use crate::rewrites::replacement::Replacement;

/// A sum may have so many summands that are no products for each that is one. A longer chain of
/// `Add` would have to keep all of them until its end.
const MOST_ADDENDS: usize = 8;

/// Rewrites all sums of a graph.
pub(crate) fn rewrite(graph: &mut Graph, report: &mut Report) {
    for sum in plan(graph, report) {
        sum.emit(graph, report);
    }
}

/// A sum to be replaced.
struct Sum {
    root: NodeId,
    terms: Terms,
    /// The nodes that become a part of the root's replacement.
    absorbed: Vec<NodeId>,
    /// Whether the left factors are given in parts.
    in_parts: bool,
}

/// Finds the sums that can be replaced.
fn plan(graph: &Graph, report: &mut Report) -> Vec<Sum> {
    let memory = Memory::of(graph);
    let shapes = LazyShapes::default();
    let mut forest = Forest::of(graph, &memory, &shapes, report);
    let mut sums = Vec::new();
    while let Some(root) = forest.roots.pop_first() {
        let root = forest.without_addends(root);
        if let Some(term) = forest.has_its_addends(root) {
            report.stays(term, Reason::NothingToSave);
            continue;
        }
        let (terms, absorbed) = forest.expand(root);
        if terms.len() == 0 {
            continue;
        }
        match in_parts(graph, &memory, &shapes, &terms) {
            Ok(in_parts) => sums.push(Sum { root, terms, absorbed, in_parts }),
            Err(reason) => absorbed.iter().for_each(|&id| report.stays(id, reason.clone())),
        }
    }
    sums
}

/// Sums, and the terms and inner sums that they are for alone.
struct Forest<'g> {
    graph: &'g Graph,
    memory: &'g Memory,
    /// By node: the sum that alone depends on it.
    parents: HashMap<NodeId, NodeId>,
    /// By sum: the nodes that have it as a parent.
    children: HashMap<NodeId, Vec<NodeId>>,
    /// Sums that are not to be a part of another one.
    roots: BTreeSet<NodeId>,
}

impl<'g> Forest<'g> {
    /// Climbs from each term through sums.
    fn of(graph: &'g Graph, memory: &'g Memory, shapes: &LazyShapes, report: &mut Report) -> Self {
        let (parents, children) = (HashMap::new(), HashMap::new());
        let mut forest = Forest { graph, memory, parents, children, roots: BTreeSet::new() };
        for term in graph.ids() {
            let Some(terms) = Terms::read(graph, term) else { continue };
            let climbed = terms
                .check(graph, memory, term)
                .and_then(|()| sum_of(graph, shapes, term))
                .map(|sum| forest.add(term, sum));
            if let Err(reason) = climbed {
                report.stays(term, reason);
                continue;
            }
            let mut sum = forest.parents[&term];
            while !forest.parents.contains_key(&sum) {
                let Ok(outer) = sum_of(graph, shapes, sum) else {
                    forest.roots.insert(sum);
                    break;
                };
                forest.add(sum, outer);
                sum = outer;
            }
        }
        forest
    }

    fn add(&mut self, child: NodeId, parent: NodeId) {
        self.parents.insert(child, parent);
        self.children.entry(parent).or_default().push(child);
    }

    fn children(&self, sum: NodeId) -> &[NodeId] {
        self.children.get(&sum).map_or(&[], Vec::as_slice)
    }

    /// The sum below `root` that has the same products, and at most one addition of other summands
    /// on top of them. Sums above it add nothing but others, and would only make these wait.
    fn without_addends(&self, root: NodeId) -> NodeId {
        let only_child = |sum| match self.children(sum) {
            &[child] if self.children.contains_key(&child) => Some(child),
            _ => None,
        };
        let (mut above, mut sum) = (root, root);
        while let Some(child) = only_child(sum) {
            (above, sum) = (sum, child);
        }
        if self.children(sum).len() == 1 { sum } else { above }
    }

    /// The only term of a sum, if it is an operation of this library that adds others already. More
    /// would have to wait, as above.
    fn has_its_addends(&self, sum: NodeId) -> Option<NodeId> {
        let &[child] = self.children(sum) else { return None };
        let terms = Terms::read(self.graph, child)?;
        (!terms.addends.is_empty()).then_some(child)
    }

    /// The terms of a sum in the order of its summands, and the nodes that become a part of it. Inner
    /// sums that have to stay are roots from now on.
    fn expand(&mut self, root: NodeId) -> (Terms, Vec<NodeId>) {
        let (mut terms, mut absorbed) = (Terms::default(), Vec::new());
        let summands = |sum| self.graph.node(sum).inputs.iter().rev().map(move |&one| (sum, one));
        let mut open: Vec<_> = summands(root).collect();
        while let Some((sum, summand)) = open.pop() {
            let node = summand.node;
            if self.parents.get(&node) != Some(&sum) {
                terms.addends.push(summand);
            } else if !self.children.contains_key(&node) {
                terms.append(Terms::read(self.graph, node).expect("it was read before"));
                absorbed.push(node);
            } else if self.stays(node) {
                terms.addends.push(summand);
                self.roots.insert(node);
            } else {
                open.extend(summands(node));
                absorbed.push(node);
            }
        }
        (terms, absorbed)
    }

    /// Whether an inner sum has to stay: it has a summand that may change until the outer sum would
    /// read it.
    fn stays(&self, sum: NodeId) -> bool {
        let summands = self.graph.node(sum).inputs.iter().copied();
        let others: Vec<_> =
            summands.filter(|one| self.parents.get(&one.node) != Some(&sum)).collect();
        self.memory.check_stable(self.graph, &others).is_err()
    }
}

/// The sum that alone depends on a node.
fn sum_of(graph: &Graph, shapes: &LazyShapes, id: NodeId) -> Result<NodeId, Reason> {
    let Some(sum) = graph.data_consumers(id).next() else { return Err(Reason::NothingToSave) };
    check_sum(graph, shapes, sum)?;
    check_only_for(graph, id, sum)?;
    Ok(sum)
}

/// Whether a node adds tensors of one shape.
fn check_sum(graph: &Graph, shapes: &LazyShapes, id: NodeId) -> Result<(), Reason> {
    let node = graph.node(id);
    match node.op.as_str() {
        "AddN" => {}
        "Add" | "AddV2" if shapes.of(graph).are_same(graph, node.inputs[0], node.inputs[1]) => {}
        "Add" | "AddV2" => return Err(Reason::Broadcast(node.name.clone())),
        _ if is_shield(graph, id) => {}
        _ => return Err(Reason::NothingToSave),
    }
    check_replaceable(node)
}

/// Whether the left factors of a sum's products are given in parts.
fn in_parts(
    graph: &Graph,
    memory: &Memory,
    shapes: &LazyShapes,
    terms: &Terms,
) -> Result<bool, Reason> {
    if !terms.products.is_empty() && !terms.row_sums.is_empty() {
        return Err(Reason::Kinds);
    }
    if terms.addends.len() > MOST_ADDENDS * terms.len() {
        return Err(Reason::Addends);
    }
    let Some(first) = terms.products.first() else { return Ok(false) };
    let mut stable = terms.products.iter().map(|product| product.check_parts(graph, memory));
    let reason = match stable.find(Result::is_err) {
        Some(Err(reason)) => reason,
        _ if have_equal_parts(graph, shapes, &terms.products, first) => return Ok(true),
        _ => Reason::Parts,
    };
    let all_whole = terms.products.iter().all(|product| product.whole.is_some());
    if all_whole { Ok(false) } else { Err(reason) }
}

/// Whether all left factors are in two parts, of which the first ones are equally wide, and the
/// second ones.
///
/// Gates are, or the sum is an error, so cells of one kind have the same size. If both parts are the
/// cell's own inputs, the sum tells the width of x. If the second is another tensor, such as the
/// zeros that an optimizer found a state to be, the weights have to.
fn have_equal_parts(
    graph: &Graph,
    shapes: &LazyShapes,
    products: &[Product],
    first: &Product,
) -> bool {
    let kind = |product: &Product| preactivation_grad(graph, product.dz).expect("dz is such");
    let weights = |product: &Product| cell_tensors(graph, product.dz).map(|cell| cell.weights);
    let have_same = |product: &Product| {
        let both = weights(product).zip(weights(first));
        both.is_some_and(|(left, right)| shapes.of(graph).are_same(graph, left, right))
    };
    products
        .iter()
        .all(|product| product.starts_with_x(graph) && std::ptr::eq(kind(product), kind(first)))
        && (products.iter().all(|product| product.is_of_cell(graph))
            || products.iter().all(have_same))
}

impl Sum {
    /// Puts the replacement into the graph.
    fn emit(self, graph: &mut Graph, report: &mut Report) {
        let count = self.terms.len();
        let is_product = !self.terms.products.is_empty();
        let op = if is_product { ops::MAT_MUL_ADD_N } else { ops::BIAS_ADD_GRAD_ADD_N };
        let mut replacement = Replacement::of(graph, self.root, op);
        for &node in &self.absorbed {
            replacement.absorb(graph, node);
        }
        if is_product {
            let lefts = lefts(&self.terms.products, self.in_parts);
            replacement.set("num_a", lefts.len());
            replacement.take(lefts);
            replacement.take(self.terms.products.iter().map(|product| product.dz));
        } else {
            replacement.take(self.terms.row_sums);
        }
        if self.in_parts {
            let concats = self.terms.products.iter().filter_map(|product| product.concat);
            concats.for_each(|concat| replacement.absorb(graph, concat));
        }
        replacement.set(if is_product { "num_b" } else { "num_out_backprop" }, count);
        replacement.set("num_addends", self.terms.addends.len());
        replacement.take(self.terms.addends);
        let new = replacement.finish(graph);
        report.rewritten(graph, new, count, None);
    }
}

fn lefts(products: &[Product], in_parts: bool) -> Vec<Output> {
    let one = |product: &Product| match product.whole {
        Some(whole) if !in_parts => vec![whole],
        _ => product.parts.clone(),
    };
    products.iter().flat_map(one).collect()
}

impl Product {
    /// Whether the node of a product may be replaced.
    pub(crate) fn check(&self, graph: &Graph, id: NodeId) -> Result<(), Reason> {
        check_replaceable(graph.node(id))?;
        check_same_device(graph, self.dz.node, id)
    }

    /// Whether the parts keep their values until a later node reads them.
    pub(crate) fn check_parts(&self, graph: &Graph, memory: &Memory) -> Result<(), Reason> {
        memory.check_stable(graph, &self.parts)
    }

    /// Whether all that a later node would read of the left factor keeps its value: the whole, where
    /// there is one.
    pub(crate) fn check_left(&self, graph: &Graph, memory: &Memory) -> Result<(), Reason> {
        match self.whole {
            Some(whole) => memory.check_stable(graph, &[whole]),
            None => self.check_parts(graph, memory),
        }
    }
}

impl Terms {
    /// Whether the node that these terms were read from may become a part of a sum, which reads its
    /// inputs later than the node does.
    pub(crate) fn check(&self, graph: &Graph, memory: &Memory, id: NodeId) -> Result<(), Reason> {
        check_replaceable(graph.node(id))?;
        for product in &self.products {
            product.check(graph, id)?;
            product.check_left(graph, memory)?;
        }
        for dz in &self.row_sums {
            check_same_device(graph, dz.node, id)?;
        }
        memory.check_stable(graph, &self.addends)
    }
}

/// Rewrites single products whose left factor is put together for them alone:
/// `MatMul(ConcatV2(parts, 1), dz, transpose_a)` becomes `BlockcellMatMulAddN`, which reads the
/// parts.
///
/// Conditions: nothing but the product depends on the concatenation ([`check_only_for`]), and its
/// parts keep their values until the product reads them ([`Product::check_parts`]).
pub(crate) fn rewrite_products(graph: &mut Graph, report: &mut Report) {
    let memory = Memory::of(graph);
    let ids: Vec<_> = graph.ids().collect();
    for id in ids {
        let Some(product) = graph.get(id).and_then(|_| Product::read(graph, id)) else { continue };
        let Some(concat) = product.concat else { continue };
        let possible = product
            .check(graph, id)
            .and_then(|()| check_only_for(graph, concat, id))
            .and_then(|()| product.check_parts(graph, &memory));
        if let Err(reason) = possible {
            report.stays(id, reason);
            continue;
        }
        let terms = Terms { products: vec![product], ..Terms::default() };
        let sum = Sum { root: id, terms, absorbed: Vec::new(), in_parts: true };
        sum.emit(graph, report);
    }
}
