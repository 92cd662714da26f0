//! The rule, on random graphs: every consumer gets the same values, at the latest when it would have got
//! them, whatever is fed, dead, fed later or assigned to.

use std::collections::BTreeSet;

use blockcell_graphs::{Graph, NodeId, Use, ops, rewrite, shield};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};

use crate::common::executor::{self, Environment, Outcome, outcomes};
use crate::common::notation::graph as graph_of;
use crate::common::random::{RandomGraph, Words, environment, random_graph};
use crate::common::replay::assert_replays;

const ENVIRONMENTS: u64 = 8;

/// So many cases, or with `BLOCKCELL_WHOLE=1` ten times as many.
pub(super) fn config(cases: u32) -> ProptestConfig {
    let is_whole = std::env::var("BLOCKCELL_WHOLE").is_ok_and(|value| value == "1");
    ProptestConfig {
        cases: if is_whole { 10 * cases } else { cases },
        failure_persistence: None,
        max_global_rejects: 100_000,
        rng_seed: RngSeed::Fixed(20_190_321),
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}

/// A random graph, and a number that its environments follow from.
#[derive(Clone, Debug)]
struct Case {
    steps: Vec<Words>,
    order: u64,
    seed: u64,
    is_shielded: bool,
}

fn any_case() -> impl Strategy<Value = Case> {
    let order = prop_oneof![Just(0), any::<u64>()];
    (vec(any::<Words>(), 2..=12), order, any::<u64>(), any::<bool>())
        .prop_map(|(steps, order, seed, is_shielded)| Case { steps, order, seed, is_shielded })
}

impl Case {
    fn graph(&self) -> RandomGraph {
        random_graph(&self.steps, self.order)
    }
}

/// The nodes of the one graph that are in the other one, too, or have a replacement there that computes
/// nothing else.
fn common(before: &Graph, after: &Graph) -> Vec<String> {
    let computes_one = |id: NodeId| after.op(id) != ops::MAT_MUL_SLICE;
    let names: BTreeSet<_> =
        after.ids().filter(|&id| computes_one(id)).map(|id| &after.node(id).name).collect();
    let names = before.ids().map(|id| &before.node(id).name).filter(|name| names.contains(name));
    names.cloned().collect()
}

/// Whether a graph is sound in itself.
fn check_graph(graph: &Graph) -> Result<(), String> {
    executor::order(graph).ok_or("there is a cycle")?;
    let mut names = BTreeSet::new();
    for id in graph.ids() {
        let node = graph.node(id);
        if !names.insert(&node.name) {
            return Err(format!("two nodes are called {}", node.name));
        }
        let of_data = |one: &Use, number: usize| match *one {
            Use::Data { consumer, input, output } => {
                consumer == id && input == number && output == node.inputs[number].index
            }
            Use::Control { .. } => false,
        };
        for (number, input) in node.inputs.iter().enumerate() {
            let uses = graph.uses(input.node).filter(|one| of_data(one, number));
            if uses.count() != 1 {
                return Err(format!("input {number} of {} is not noted once", node.name));
            }
        }
        for awaited in &node.control_inputs {
            if graph.waiting(*awaited).filter(|&other| other == id).count() != 1 {
                return Err(format!("a wait of {} is not noted once", node.name));
            }
        }
    }
    let edges = |id: NodeId| graph.node(id).inputs.len() + graph.node(id).control_inputs.len();
    let uses: usize = graph.ids().map(|id| graph.uses(id).count()).sum();
    let counted: usize = graph.ids().map(|id| graph.use_count(id)).sum();
    if uses != graph.ids().map(edges).sum() || uses != counted {
        return Err("there are uses without an edge".to_owned());
    }
    Ok(())
}

/// Whether one graph keeps the rule beside the other one, in one environment. It is given up if there
/// are too many orders.
fn check_rule(before: &Graph, after: &Graph, environment: &Environment) -> Result<(), String> {
    let names = common(before, after);
    let Some(allowed) = outcomes(before, environment, &names) else { return Ok(()) };
    let Some(got) = outcomes(after, environment, &names) else { return Ok(()) };
    let strange = got.iter().find(|outcome| !allowed.contains(outcome));
    strange.map_or(Ok(()), |strange| Err(difference(&names, &allowed, strange)))
}

/// What is different from all that is allowed, in words.
fn difference(names: &[String], allowed: &BTreeSet<Outcome>, strange: &Outcome) -> String {
    let Some(strange) = strange else { return "the step is an error".to_owned() };
    let Some(Some(one)) = allowed.iter().next_back() else {
        return "the step is no error".to_owned();
    };
    let all = names.iter().zip(one.iter().zip(strange));
    let different = all.filter(|(_, (one, other))| one != other);
    different.map(|(name, (one, other))| format!("{name}: {one:?} is now {other:?}\n")).collect()
}

fn check(case: &Case) -> Result<(), String> {
    let graph = case.graph();
    let (before, mut after) = (graph_of(&graph.text), graph_of(&graph.text));
    if case.is_shielded {
        shield(&mut after);
        check_graph(&after)?;
    }
    rewrite(&mut after);
    check_graph(&after)?;
    assert_replays(&before, &after);
    for number in 0..ENVIRONMENTS {
        let environment = environment(&graph, number, case.seed);
        check_rule(&before, &after, &environment)
            .map_err(|wrong| format!("{wrong}\n{before}\nbecomes\n\n{after}\n{environment:?}"))?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn every_consumer_gets_the_same_values_in_time(case in any_case()) {
        check(&case).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn rewriting_twice_is_rewriting_once(case in any_case()) {
        let mut graph = graph_of(&case.graph().text);
        let adds_one = |id| graph.op(id) == "AddN" && graph.node(id).inputs.len() == 1;
        prop_assume!(!graph.ids().any(adds_one), "sums of one are taken in one by one");
        rewrite(&mut graph);
        let once = graph.to_string();
        rewrite(&mut graph);
        let is_same = once == graph.to_string();
        prop_assert!(is_same, "\n{}\nbecomes\n\n{}\nand then\n\n{}", case.graph().text, once, graph);
    }
}

/// The property would say nothing otherwise.
#[test]
fn most_random_graphs_are_rewritten() {
    let mut runner = TestRunner::new(config(1));
    let products = [ops::BIAS_ADD_GRAD_ADD_N, ops::MAT_MUL_ADD_N, ops::MAT_MUL_SLICE];
    let (mut rewritten, mut of_each) = (0, [0; 3]);
    for _ in 0..1000 {
        let case = any_case().new_tree(&mut runner).expect("there is a case").current();
        let report = rewrite(&mut graph_of(&case.graph().text));
        rewritten += usize::from(!report.rewritten.is_empty());
        for one in report.rewritten {
            let place = products.iter().position(|op| *op == one.op);
            of_each[place.expect("it is a replacement")] += usize::from(one.parts > 1);
        }
    }
    println!("{rewritten} of 1000 graphs; {of_each:?}");
    assert!(rewritten > 600, "{rewritten}");
    assert!(of_each.iter().all(|&count| count > 50), "{of_each:?}");
}
