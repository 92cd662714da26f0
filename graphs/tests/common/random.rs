//! Random graphs of what rewrites look at: cells, products, slices, sums, switches and merges, variables
//! with assignments, and edges of control anywhere.
//!
//! A graph comes from lists of numbers, each of which is one choice, so that proptest finds smaller
//! lists. The choice 0 is always the simplest.

use std::collections::{BTreeMap, BTreeSet};

use super::executor::{Environment, Source, hash};

/// How large the cells are. All products of a cell have its weights' shape, [x + h, gates].
const ROWS: usize = 2;
const X: usize = 2;
const H: usize = 1;
const NARROW_X: usize = 1;

/// Assignments of one graph; with more, there are too many orders to follow.
const MOST_ASSIGNMENTS: usize = 2;

/// The choices of one step.
pub(crate) type Words = [u16; 40];

/// A random graph as text, and what can be fed in it.
pub(crate) struct RandomGraph {
    pub(crate) text: String,
    sources: Vec<String>,
}

/// A side of a switch.
type Side = (String, usize);

/// A tensor that a step can take.
#[derive(Clone)]
struct Tensor {
    name: String,
    shape: Vec<usize>,
    /// The sides of switches without which it is dead.
    sides: BTreeSet<Side>,
    is_memory: bool,
    is_used: bool,
}

/// A cell's gradient.
#[derive(Clone)]
struct Cell {
    dz: String,
    x: String,
    state: String,
    weights: String,
    width: usize,
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

/// The graph of some choices. Its lines are in the order that `order` leads to.
pub(crate) fn random_graph(steps: &[Words], order: u64) -> RandomGraph {
    let mut builder = Builder::default();
    for words in steps {
        builder.step(&mut Choices { words: words.iter() });
    }
    builder.finish(order)
}

/// What is fed: everything in the first one, and less in others.
pub(crate) fn environment(graph: &RandomGraph, number: u64, seed: u64) -> Environment {
    let state = |name: &String| match hash(&(name, number, seed)) % 12 {
        0 | 1 => Source::Dead,
        2 | 3 => Source::Withheld,
        _ => Source::Live,
    };
    let mut sources: BTreeMap<_, _> =
        graph.sources.iter().map(|name| (name.clone(), state(name))).collect();
    if number < 2 {
        sources.clear();
    }
    Environment { sources, seed: hash(&(number, seed)) }
}

impl Builder {
    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.pick(20) {
            0..=3 => (0..=choices.pick(3)).for_each(|_| self.weights_gradient(choices)),
            4..=8 => self.sum(choices),
            9..=11 => self.inputs_gradient(choices),
            12 | 13 => (0..=choices.pick(3)).for_each(|_| self.bias_gradient(choices)),
            14 => self.assignment(choices),
            15 => self.switch(choices),
            16 => self.merge(choices),
            17 => self.group(choices),
            _ => self.pass_on(choices),
        }
    }

    /// A new name.
    fn name(&mut self, of: &str) -> String {
        self.count += 1;
        format!("{of}{}", self.count)
    }

    /// Adds a node to wait for.
    fn node(&mut self, name: &str, call: String) {
        self.lines.push(format!("{name} = {}", without_repeated_waits(&call)));
        self.nodes.push(name.to_owned());
    }

    /// Adds a node, and its first output to what steps can take.
    fn tensor(&mut self, name: &str, call: String, shape: &[usize], from: &[&Tensor]) -> Tensor {
        self.node(name, call);
        let sides = from.iter().flat_map(|tensor| tensor.sides.iter().cloned()).collect();
        let name = name.to_owned();
        let tensor =
            Tensor { name, shape: shape.to_vec(), sides, is_memory: false, is_used: false };
        self.tensors.push(tensor.clone());
        tensor
    }

    fn placeholder(&mut self, name: &str, shape: &[usize]) -> Tensor {
        if let Some(known) = self.tensors.iter().find(|tensor| tensor.name == name) {
            return known.clone();
        }
        self.sources.push(name.to_owned());
        let call = format!("Placeholder() sizes={}", sizes(shape));
        self.tensor(name, call, shape, &[])
    }

    /// A variable's own memory.
    fn variable(&mut self, name: &str, shape: &[usize], more: &str) -> Tensor {
        if let Some(known) = self.tensors.iter().find(|tensor| tensor.name == name) {
            return known.clone();
        }
        let call = format!("VariableV2() sizes={}{more}", sizes(shape));
        let tensor = self.tensor(name, call, shape, &[]);
        let last = self.tensors.last_mut().expect("it was just added");
        last.is_memory = true;
        Tensor { is_memory: true, ..tensor }
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
        let known: Vec<_> =
            self.tensors.iter().filter(|tensor| tensor.shape == shape).cloned().collect();
        let tensor = match choices.pick(6) {
            0 => self.placeholder(&named("feed", shape), shape),
            1 => self.placeholder(&named("other_feed", shape), shape),
            2 => self.any_variable(choices, shape),
            _ => match choices.one(&known) {
                Some(tensor) => tensor,
                None => self.placeholder(&named("feed", shape), shape),
            },
        };
        self.take(tensor)
    }

    fn any_variable(&mut self, choices: &mut Choices<'_>, shape: &[usize]) -> Tensor {
        let known = format!(" shape={}", sizes(shape));
        let (name, shared) = (named("variable", shape), named("same_variable", shape));
        match choices.pick(3) {
            0 => self.variable(&name, shape, ""),
            1 => self.variable(&named("known_variable", shape), shape, &known),
            _ => self.variable(&shared, shape, &format!(" shared_name=\"{name}\"")),
        }
    }

    /// Edges of control, seldom.
    fn waits(&mut self, choices: &mut Choices<'_>) -> String {
        let count = [0, 0, 0, 0, 0, 1, 1, 2][choices.pick(8)];
        (0..count).map(|_| self.wait(choices)).collect()
    }

    fn wait(&mut self, choices: &mut Choices<'_>) -> String {
        let awaited = match choices.pick(4) {
            0 => self.placeholder("signal", &[]).name,
            _ => choices.one(&self.nodes).unwrap_or_else(|| self.placeholder("signal", &[]).name),
        };
        format!(", ^{awaited}")
    }

    fn axis(&mut self, name: &str, choices: &mut Choices<'_>) -> String {
        if choices.chance(1, 8) {
            let waits = self.wait(choices);
            self.node(&format!("{name}_axis"), format!("Const({}) value=1", &waits[2..]));
            return format!("{name}_axis");
        }
        if !self.nodes.iter().any(|node| node == "axis") {
            self.node("axis", "Const() value=1".to_owned());
        }
        "axis".to_owned()
    }

    fn any_cell(&mut self, choices: &mut Choices<'_>) -> Cell {
        match choices.one(&self.cells.clone()) {
            Some(cell) if choices.chance(3, 4) => cell,
            _ => self.cell(choices),
        }
    }

    fn cell(&mut self, choices: &mut Choices<'_>) -> Cell {
        let (is_gru, is_narrow) = (choices.chance(1, 8), choices.chance(1, 12));
        let width = if is_narrow { NARROW_X } else { X };
        let (x, h) = (self.any(choices, &[ROWS, width]), self.any(choices, &[ROWS, H]));
        let saved = self.placeholder("saved", &[ROWS, H]);
        let name = self.name("cell");
        let grad = self.placeholder(&format!("grad_of_{name}"), &[ROWS, H]);
        let waits = self.waits(choices);
        let weights_shape = |gates: usize| [width + H, gates * H];
        let gates = if is_gru { 2 } else { 4 };
        let weights = match choices.pick(3) {
            0 => self.variable(
                &named("w", &weights_shape(gates)),
                &weights_shape(gates),
                &format!(" shape={}", sizes(&weights_shape(gates))),
            ),
            1 => self.placeholder(&named("fed_w", &weights_shape(gates)), &weights_shape(gates)),
            _ => self.any(choices, &weights_shape(gates)),
        };
        let bias = self.placeholder(&named("bias", &[gates * H]), &[gates * H]);
        let from = [&x, &h, &weights, &saved, &grad, &bias];
        let sides = from.iter().flat_map(|tensor| tensor.sides.iter().cloned()).collect();
        let (x, w) = (x.name, weights.name);
        let call = if is_gru {
            let w_c = self.placeholder(&named("w_c", &weights_shape(1)), &weights_shape(1));
            let b_c = self.placeholder("b_c", &[H]);
            let r = self.placeholder("r", &[ROWS, H]);
            let (h, b, w_c, b_c, r) = (&h.name, bias.name, w_c.name, b_c.name, r.name);
            format!(
                "GRUBlockCellGrad({x}, {h}, {w}, {w_c}, {b}, {b_c}, {r}, saved, saved, {}{waits})",
                grad.name
            )
        } else {
            let (h, b, s) = (&h.name, bias.name, "saved");
            format!(
                "LSTMBlockCellGrad({x}, {s}, {h}, {w}, {s}, {s}, {s}, {b}, {s}, {s}, {s}, {s}, {s}, {s}, {s}, {}{waits})",
                grad.name
            )
        };
        self.node(&name, call);
        let dz = format!("{name}:{}", if is_gru { 3 } else { 1 });
        let cell = Cell { dz, x, state: h.name, weights: w, width, gates: gates * H, sides };
        self.cells.push(cell.clone());
        cell
    }

    fn known(&self, name: &str) -> Tensor {
        self.tensors.iter().find(|tensor| tensor.name == name).expect("a cell takes it").clone()
    }

    /// `MatMul(left, dz)`, mostly of the cell's own inputs.
    fn weights_gradient(&mut self, choices: &mut Choices<'_>) {
        let cell = if choices.chance(1, 3) { self.any_cell(choices) } else { self.cell(choices) };
        let left = match choices.pick(8) {
            0..=4 => {
                let parts = [self.known(&cell.x), self.known(&cell.state)];
                self.left(choices, &parts)
            }
            5 => {
                let parts = [self.known(&cell.x), self.any(choices, &[ROWS, X + H - cell.width])];
                self.left(choices, &parts)
            }
            6 => {
                let first = 1 + choices.pick(2);
                let parts =
                    [first, X + H - first].map(|columns| self.any(choices, &[ROWS, columns]));
                self.left(choices, &parts)
            }
            _ => self.any(choices, &[ROWS, X + H]),
        };
        let (name, waits) = (self.name("product"), self.waits(choices));
        let call = format!("MatMul({}, {}{waits}) transpose_a=true", left.name, cell.dz);
        let from = Tensor { sides: cell.sides, ..left.clone() };
        self.tensor(&name, call, &[left.shape[1], cell.gates], &[&left, &from]);
    }

    fn left(&mut self, choices: &mut Choices<'_>, parts: &[Tensor; 2]) -> Tensor {
        let (name, waits) = (self.name("left"), self.waits(choices));
        let axis = self.axis(&name, choices);
        let columns = parts.iter().map(|part| part.shape[1]).sum();
        let call = format!("ConcatV2({}, {}, {axis}{waits})", parts[0].name, parts[1].name);
        let left = self.tensor(&name, call, &[ROWS, columns], &[&parts[0], &parts[1]]);
        self.take(left)
    }

    /// `BiasAddGrad(dz)`.
    fn bias_gradient(&mut self, choices: &mut Choices<'_>) {
        let cell = self.any_cell(choices);
        let (name, waits) = (self.name("bias_grad"), self.waits(choices));
        self.node(&name, format!("BiasAddGrad({}{waits})", cell.dz));
        let (shape, is_memory, is_used) = (vec![cell.gates], false, false);
        self.tensors.push(Tensor { name, shape, sides: cell.sides, is_memory, is_used });
    }

    /// A sum, mostly of what nobody else takes.
    fn sum(&mut self, choices: &mut Choices<'_>) {
        let is_gradient = |tensor: &&Tensor| {
            let is_new = !tensor.is_used && !tensor.is_memory;
            is_new && ["product", "bias_grad", "sum"].iter().any(|of| tensor.name.starts_with(of))
        };
        let open: Vec<_> = self.tensors.iter().filter(is_gradient).cloned().collect();
        let Some(first) = choices.one(&open) else { return self.weights_gradient(choices) };
        let mut summands = vec![self.take(first.clone())];
        let op = ["AddN", "AddN", "Add", "AddV2"][choices.pick(4)];
        let count = if op == "AddN" { [2, 2, 3, 4, 5, 1][choices.pick(6)] } else { 2 };
        while summands.len() < count {
            let is_like_it = |tensor: &&Tensor| {
                tensor.shape == first.shape && !summands.iter().any(|one| one.name == tensor.name)
            };
            let open: Vec<_> = open.iter().filter(is_like_it).cloned().collect();
            let next = match choices.one(&open) {
                Some(next) if choices.chance(4, 5) => self.take(next),
                _ if op != "AddN" && choices.chance(1, 4) => {
                    let shape: Vec<_> = first.shape.iter().map(|_| 1).collect();
                    self.any(choices, &shape)
                }
                _ => self.any(choices, &first.shape),
            };
            summands.push(next);
        }
        if choices.chance(1, 3) {
            summands.reverse();
        }
        let (name, waits) = (self.name("sum"), self.waits(choices));
        let names: Vec<_> = summands.iter().map(|one| one.name.as_str()).collect();
        let call = format!("{op}({}{waits})", names.join(", "));
        let from: Vec<_> = summands.iter().collect();
        self.tensor(&name, call, &first.shape, &from);
    }

    /// `MatMul(dz, w)` and slices of it.
    fn inputs_gradient(&mut self, choices: &mut Choices<'_>) {
        let cell = self.any_cell(choices);
        let shape = [cell.width + H, cell.gates];
        let weights = match choices.pick(3) {
            0 | 1 => self.known(&cell.weights),
            _ => self.any(choices, &shape),
        };
        let (name, waits) = (self.name("inputs"), self.waits(choices));
        let call = format!("MatMul({}, {}{waits}) transpose_b=true", cell.dz, weights.name);
        let from = Tensor { sides: cell.sides, ..weights.clone() };
        let mut product = self.tensor(&name, call, &[ROWS, shape[0]], &[&weights, &from]);
        let count = [2, 2, 2, 1, 3, 0][choices.pick(6)];
        if count > 0 && choices.chance(7, 8) {
            product = self.take(product);
        }
        let same_waits = match choices.pick(6) {
            0..=2 => None,
            3 => Some(String::new()),
            _ => Some(self.wait(choices)),
        };
        for number in 0..count {
            self.slice(choices, &product, number, same_waits.clone());
        }
    }

    fn slice(
        &mut self,
        choices: &mut Choices<'_>,
        product: &Tensor,
        number: usize,
        waits: Option<String>,
    ) {
        let (begin, size) = if choices.chance(1, 12) {
            (choices.pick(product.shape[1]), 1)
        } else {
            [(0, product.shape[1] - H), (product.shape[1] - H, H), (0, 0)][number]
        };
        let rows = if choices.chance(1, 16) { 1 } else { -1 };
        let name = self.name("slice");
        let constant = |part: &str, value: String, waits: &str| {
            (format!("{name}_{part}"), format!("Const({waits}) value={value}"))
        };
        let late =
            if choices.chance(1, 10) { self.wait(choices)[2..].to_owned() } else { String::new() };
        for (constant, call) in [
            constant("begin", format!("[0,{begin}]"), &late),
            constant("size", format!("[{rows},{size}]"), ""),
        ] {
            self.node(&constant, call);
        }
        let waits = waits.unwrap_or_else(|| self.waits(choices));
        let call = format!("Slice({}, {name}_begin, {name}_size{waits})", product.name);
        let rows = if rows < 0 { ROWS } else { 1 };
        self.tensor(&name, call, &[rows, size], &[product]);
    }

    fn assignment(&mut self, choices: &mut Choices<'_>) {
        let memory: Vec<_> = self.tensors.iter().filter(|one| one.is_memory).cloned().collect();
        let Some(variable) = choices.one(&memory) else { return self.pass_on(choices) };
        if self.assignments == MOST_ASSIGNMENTS {
            return self.pass_on(choices);
        }
        self.assignments += 1;
        let op = ["AssignAdd", "Assign"][choices.pick(2)];
        let value = self.placeholder(&named("assigned", &variable.shape), &variable.shape);
        let waits = if choices.chance(1, 4) { self.waits(choices) } else { self.wait(choices) };
        let name = self.name("assign");
        let call = format!("{op}({}, {}{waits})", variable.name, value.name);
        self.tensor(&name, call, &variable.shape, &[&variable, &value]);
        self.tensors.last_mut().expect("it was just added").is_memory = true;
    }

    fn any_known(&mut self, choices: &mut Choices<'_>) -> Tensor {
        let known = choices.one(&self.tensors.clone());
        let tensor = known.unwrap_or_else(|| self.placeholder("feed_2x2", &[ROWS, X]));
        self.take(tensor)
    }

    fn switch(&mut self, choices: &mut Choices<'_>) {
        let data = self.any_known(choices);
        let predicate = self.placeholder(["predicate", "other_predicate"][choices.pick(2)], &[]);
        let (name, waits) = (self.name("switch"), self.waits(choices));
        let op = if data.is_memory { "RefSwitch" } else { "Switch" };
        self.node(&name, format!("{op}({}, {}{waits})", data.name, predicate.name));
        for index in 0..2 {
            let mut sides = data.sides.clone();
            sides.insert((predicate.name.clone(), index));
            let name = if index == 0 { name.clone() } else { format!("{name}:1") };
            let is_memory = data.is_memory;
            let shape = data.shape.clone();
            self.tensors.push(Tensor {
                name: name.clone(),
                shape,
                sides,
                is_memory,
                is_used: false,
            });
            if choices.chance(2, 3) {
                let taken = self.known(&name);
                let pivot = self.name("pivot");
                let taken = self.take(taken);
                self.tensor(&pivot, format!("Identity({name})"), &taken.shape, &[&taken]);
            }
        }
    }

    /// Of two tensors on different sides of one predicate.
    fn merge(&mut self, choices: &mut Choices<'_>) {
        let mut pairs = Vec::new();
        for left in &self.tensors {
            for right in self.tensors.iter().filter(|right| right.shape == left.shape) {
                let is_opposite = |(predicate, index): &Side| {
                    right.sides.contains(&(predicate.clone(), 1 - index))
                };
                if left.sides.iter().any(is_opposite) {
                    pairs.push([left.clone(), right.clone()]);
                }
            }
        }
        let Some(pair) = choices.one(&pairs) else { return self.switch(choices) };
        let [left, right] = pair.map(|tensor| self.take(tensor));
        let (name, waits) = (self.name("merge"), self.waits(choices));
        let sides: BTreeSet<_> = left.sides.intersection(&right.sides).cloned().collect();
        self.node(&name, format!("Merge({}, {}{waits})", left.name, right.name));
        self.tensors.push(Tensor { name, sides, is_used: false, is_memory: false, ..left });
    }

    /// Something that others can wait for.
    fn group(&mut self, choices: &mut Choices<'_>) {
        let op = ["NoOp", "ControlTrigger", "Const"][choices.pick(3)];
        let waits = self.wait(choices) + &self.waits(choices);
        let name = self.name("group");
        let value = if op == "Const" { " value=1" } else { "" };
        self.node(&name, format!("{op}({}){value}", &waits[2..]));
    }

    /// The same tensor by another node, or one that is computed from it.
    fn pass_on(&mut self, choices: &mut Choices<'_>) {
        let tensor = self.any_known(choices);
        let op = ["Identity", "Identity", "Tanh"][choices.pick(3)];
        let (name, waits) = (self.name("passed"), self.waits(choices));
        self.tensor(&name, format!("{op}({}{waits})", tensor.name), &tensor.shape, &[&tensor]);
    }

    /// Lets somebody see what nobody takes.
    fn finish(mut self, order: u64) -> RandomGraph {
        let open: Vec<_> = self.tensors.iter().filter(|one| !one.is_used).cloned().collect();
        for (number, tensor) in open.iter().enumerate() {
            let is_source = tensor.is_memory || self.sources.contains(&tensor.name);
            match hash(&(order, &tensor.name)) % 8 {
                0 if !tensor.name.contains(':') => {
                    let prefix = format!("{} = ", tensor.name);
                    let line = self.lines.iter_mut().find(|line| line.starts_with(&prefix));
                    line.expect("it has a line").push_str(" target");
                }
                _ if is_source => {}
                _ => self.lines.push(format!("sink{number} = Sink({}) target", tensor.name)),
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
    for argument in arguments.split(", ") {
        if !(argument.starts_with('^') && kept.contains(&argument)) {
            kept.push(argument);
        }
    }
    format!("{op}({}){attributes}", kept.join(", "))
}

fn sizes(shape: &[usize]) -> String {
    let sizes: Vec<_> = shape.iter().map(usize::to_string).collect();
    format!("[{}]", sizes.join(","))
}

fn named(of: &str, shape: &[usize]) -> String {
    let sizes: Vec<_> = shape.iter().map(usize::to_string).collect();
    format!("{of}_{}", sizes.join("x"))
}
