//! Random graphs of what rewrites look at: cells, products, slices, sums, switches and merges, variables
//! with assignments, and edges of control anywhere.
//!
//! A graph comes from lists of numbers, each of which is one choice, so that proptest finds smaller
//! lists. The choice 0 is always the simplest.

mod steps;

use std::collections::{BTreeMap, BTreeSet};

use super::executor::{Environment, Source, hash};

/// How large the cells are, in rows and columns.
const ROWS: usize = 2;
const X: usize = 2;
const H: usize = 1;
const NARROW_X: usize = 1;

/// Assignments of one graph; with more, there are too many orders to follow.
const MOST_ASSIGNMENTS: usize = 2;

/// The choices of one step.
pub(crate) type Words = [u16; 40];

/// A random graph in the [notation](super::notation) of tests, and what can be fed in it.
pub(crate) struct RandomGraph {
    pub(crate) text: String,
    sources: Vec<String>,
}

/// The graph of some choices. Its lines are in the order that `order` leads to.
pub(crate) fn random_graph(steps: &[Words], order: u64) -> RandomGraph {
    let mut builder = Builder::default();
    for words in steps {
        builder.step(&mut Choices { words: words.iter() });
    }
    builder.finish(order)
}

/// What is fed: everything in the first two, and less in others.
pub(crate) fn environment(graph: &RandomGraph, number: u64, seed: u64) -> Environment {
    let state = |name: &String| match hash(&(name, number, seed)) % 12 {
        _ if number < 2 => Source::Live,
        0 | 1 => Source::Dead,
        2 | 3 => Source::Withheld,
        _ => Source::Live,
    };
    let sources: BTreeMap<_, _> =
        graph.sources.iter().map(|name| (name.clone(), state(name))).collect();
    Environment { sources, seed: hash(&(number, seed)) }
}

/// An output of a switch that has a value: its predicate, and which.
type Side = (String, usize);

/// A tensor that a step can take.
#[derive(Clone)]
struct Tensor {
    name: String,
    shape: Vec<usize>,
    /// The sides of switches without which it is dead.
    sides: BTreeSet<Side>,
    /// Whether it is a reference to a variable.
    is_memory: bool,
    is_used: bool,
}

/// A cell's gradient operation.
#[derive(Clone)]
struct Cell {
    dz: String,
    x: String,
    h: String,
    weights: String,
    /// Columns of x.
    width: usize,
    /// Columns of dz.
    gates: usize,
    sides: BTreeSet<Side>,
}

/// The choices of a step, one by one.
struct Choices<'w> {
    words: std::slice::Iter<'w, u16>,
}

impl Choices<'_> {
    /// One of the numbers below `count`.
    fn pick(&mut self, count: usize) -> usize {
        usize::from(self.words.next().copied().unwrap_or(0)) % count
    }

    /// True in `yes` of `of` cases.
    fn chance(&mut self, yes: usize, of: usize) -> bool {
        self.pick(of) >= of - yes
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        if of.is_empty() { None } else { Some(of[self.pick(of.len())].clone()) }
    }
}

#[derive(Default)]
struct Builder {
    lines: Vec<String>,
    /// Nodes that an edge of control can come from.
    nodes: Vec<String>,
    sources: Vec<String>,
    tensors: Vec<Tensor>,
    cells: Vec<Cell>,
    assignments: usize,
    count: usize,
}

impl Builder {
    /// A new name.
    fn name(&mut self, of: &str) -> String {
        self.count += 1;
        format!("{of}{}", self.count)
    }

    /// Adds a node.
    fn node(&mut self, name: &str, call: String) {
        self.lines.push(format!("{name} = {}", without_repeated_waits(&call)));
        self.nodes.push(name.to_owned());
    }

    /// Adds a node, and its first output to what steps can take. It is on all sides that its inputs are
    /// on.
    fn tensor<'s>(
        &mut self,
        name: &str,
        call: String,
        shape: &[usize],
        sides: impl IntoIterator<Item = &'s BTreeSet<Side>>,
    ) -> Tensor {
        self.node(name, call);
        let sides = sides.into_iter().flatten().cloned().collect();
        let (name, shape) = (name.to_owned(), shape.to_vec());
        let tensor = Tensor { name, shape, sides, is_memory: false, is_used: false };
        self.tensors.push(tensor.clone());
        tensor
    }

    fn placeholder(&mut self, name: &str, shape: &[usize]) -> Tensor {
        if let Some(known) = self.tensors.iter().find(|tensor| tensor.name == name) {
            return known.clone();
        }
        self.sources.push(name.to_owned());
        self.tensor(name, format!("Placeholder() sizes={}", shape_of(shape)), shape, [])
    }

    /// A variable's own memory.
    fn variable(&mut self, name: &str, shape: &[usize], attributes: &str) -> Tensor {
        if !self.tensors.iter().any(|tensor| tensor.name == name) {
            let call = format!("VariableV2() sizes={}{attributes}", shape_of(shape));
            self.tensor(name, call, shape, []);
            self.is_memory(name);
        }
        self.known(name)
    }

    /// Notes that a tensor is a reference.
    fn is_memory(&mut self, name: &str) {
        let mut tensors = self.tensors.iter_mut();
        tensors.find(|tensor| tensor.name == name).expect("it is known").is_memory = true;
    }

    fn known(&self, name: &str) -> Tensor {
        let mut tensors = self.tensors.iter();
        tensors.find(|tensor| tensor.name == name).expect("it is known").clone()
    }

    /// Notes that a tensor has a consumer, and returns it.
    fn take(&mut self, tensor: Tensor) -> Tensor {
        for known in &mut self.tensors {
            known.is_used |= known.name == tensor.name;
        }
        tensor
    }

    /// A tensor of a shape: a placeholder, a variable, or what a step has made.
    fn any(&mut self, choices: &mut Choices<'_>, shape: &[usize]) -> Tensor {
        let has_shape = |tensor: &&Tensor| tensor.shape == shape;
        let tensor = match choices.pick(6) {
            0 => None,
            1 => Some(self.placeholder(&named("other_feed", shape), shape)),
            2 => Some(self.any_variable(choices, shape)),
            _ => choices.one(&self.tensors.iter().filter(has_shape).cloned().collect::<Vec<_>>()),
        };
        let tensor = tensor.unwrap_or_else(|| self.placeholder(&named("feed", shape), shape));
        self.take(tensor)
    }

    fn any_variable(&mut self, choices: &mut Choices<'_>, shape: &[usize]) -> Tensor {
        let name = named("variable", shape);
        let shared = format!(" shared_name=\"{name}\"");
        match choices.pick(3) {
            0 => self.variable(&name, shape, ""),
            1 => {
                self.variable(&named("known", shape), shape, &format!(" shape={}", shape_of(shape)))
            }
            _ => self.variable(&named("same_variable", shape), shape, &shared),
        }
    }

    /// Edges of control, seldom.
    fn waits(&mut self, choices: &mut Choices<'_>) -> String {
        let count = [0, 0, 0, 0, 0, 1, 1, 2][choices.pick(8)];
        (0..count).map(|_| self.wait(choices)).collect()
    }

    fn wait(&mut self, choices: &mut Choices<'_>) -> String {
        let node = if choices.chance(3, 4) { choices.one(&self.nodes) } else { None };
        format!(", ^{}", node.unwrap_or_else(|| self.placeholder("signal", &[]).name))
    }

    /// Lets somebody see what nobody takes.
    fn finish(mut self, order: u64) -> RandomGraph {
        let is_fed = |tensor: &Tensor| self.sources.contains(&tensor.name);
        let is_open = |one: &&Tensor| !one.is_used && !one.is_memory && !is_fed(one);
        let open: Vec<_> = self.tensors.iter().filter(is_open).cloned().collect();
        for (number, Tensor { name, .. }) in open.iter().enumerate() {
            let line = self.lines.iter_mut().find(|line| line.starts_with(&format!("{name} = ")));
            match line {
                Some(line) if hash(&(order, name)) % 8 == 0 => line.push_str(" target"),
                _ => self.lines.push(format!("sink{number} = Sink({name}) target")),
            }
        }
        if order != 0 {
            self.lines.sort_by_key(|line| hash(&(order, line)));
        }
        RandomGraph { text: self.lines.join("\n"), sources: self.sources }
    }
}

/// A node waits for another one once.
fn without_repeated_waits(call: &str) -> String {
    let (op, rest) = call.split_once('(').expect("it is a call");
    let (arguments, attributes) = rest.split_once(')').expect("it is a call");
    let mut kept = Vec::new();
    for argument in arguments.split(", ").filter(|one| !one.is_empty()) {
        if !(argument.starts_with('^') && kept.contains(&argument)) {
            kept.push(argument);
        }
    }
    format!("{op}({}){attributes}", kept.join(", "))
}

fn shape_of(shape: &[usize]) -> String {
    let sizes: Vec<_> = shape.iter().map(usize::to_string).collect();
    format!("[{}]", sizes.join(","))
}

fn named(of: &str, shape: &[usize]) -> String {
    let sizes: Vec<_> = shape.iter().map(usize::to_string).collect();
    format!("{of}_{}", sizes.join("x"))
}
