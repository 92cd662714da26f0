//! What a step adds to a random graph.

use std::collections::BTreeSet;

use super::{Builder, Cell, Choices, H, MOST_ASSIGNMENTS, NARROW_X, ROWS, Side, Tensor, X};
use super::{named, shape_of};

impl Builder {
    pub(super) fn step(&mut self, choices: &mut Choices<'_>) {
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

    fn any_cell(&mut self, choices: &mut Choices<'_>) -> Cell {
        match choices.one(&self.cells) {
            Some(cell) if choices.chance(3, 4) => cell,
            _ => self.cell(choices),
        }
    }

    fn cell(&mut self, choices: &mut Choices<'_>) -> Cell {
        let cell = if choices.chance(1, 8) { self.gru(choices) } else { self.lstm(choices) };
        self.cells.push(cell.clone());
        cell
    }

    fn lstm(&mut self, choices: &mut Choices<'_>) -> Cell {
        let width = if choices.chance(1, 12) { NARROW_X } else { X };
        let (x, h) = (self.any(choices, &[ROWS, width]), self.any(choices, &[ROWS, H]));
        let shape = [width + H, 4 * H];
        let weights = match choices.pick(3) {
            0 => {
                self.variable(&named("w", &shape), &shape, &format!(" shape={}", shape_of(&shape)))
            }
            1 => self.placeholder(&named("fed_w", &shape), &shape),
            _ => self.any(choices, &shape),
        };
        let bias = self.placeholder("bias", &[4 * H]);
        let name = self.name("cell");
        let sides = self.sides_of_cell(&name, [&x, &h, &weights]);
        let (x, h, w, waits) = (x.name, h.name, weights.name, self.waits(choices));
        self.node(&name, format!("lstm({x}, {h}, {w}, {}{waits})", bias.name));
        Cell { dz: format!("{name}:1"), x, h, weights: w, width, gates: 4 * H, sides }
    }

    fn gru(&mut self, choices: &mut Choices<'_>) -> Cell {
        let (x, h) = (self.any(choices, &[ROWS, X]), self.any(choices, &[ROWS, H]));
        let weights = self.variable("w_ru", &[X + H, 2 * H], "");
        for (name, shape) in [("w_c", vec![X + H, H]), ("b_ru", vec![2 * H]), ("b_c", vec![H])] {
            self.placeholder(name, &shape);
        }
        let r = self.placeholder("r", &[ROWS, H]);
        let name = self.name("cell");
        let sides = self.sides_of_cell(&name, [&x, &h, &weights]);
        let (x, h, waits) = (x.name, h.name, self.waits(choices));
        self.node(&name, format!("gru({x}, {h}, {}{waits})", r.name));
        let (dz, weights) = (format!("{name}:3"), weights.name);
        Cell { dz, x, h, weights, width: X, gates: 2 * H, sides }
    }

    /// The sides that a cell is on, with what all cells take.
    fn sides_of_cell(&mut self, name: &str, inputs: [&Tensor; 3]) -> BTreeSet<Side> {
        self.placeholder("saved", &[ROWS, H]);
        self.placeholder(&format!("{name}_grad"), &[ROWS, H]);
        inputs.iter().flat_map(|input| input.sides.iter().cloned()).collect()
    }

    /// Products with `dz`, mostly of the cell's own inputs.
    fn weights_gradient(&mut self, choices: &mut Choices<'_>) {
        let cell = if choices.chance(1, 3) { self.any_cell(choices) } else { self.cell(choices) };
        let x = self.known(&cell.x);
        let parts = match choices.pick(8) {
            0..=4 => Some([x, self.known(&cell.h)]),
            5 => Some([x, self.any(choices, &[ROWS, X + H - cell.width])]),
            6 => {
                let first = 1 + choices.pick(2);
                Some([first, X + H - first].map(|columns| self.any(choices, &[ROWS, columns])))
            }
            _ => None,
        };
        let left = match parts {
            Some(parts) => self.left(choices, &parts),
            None => self.any(choices, &[ROWS, X + H]),
        };
        let (name, waits) = (self.name("product"), self.waits(choices));
        let call = format!("product({}, {}{waits})", left.name, cell.dz);
        self.tensor(&name, call, &[left.shape[1], cell.gates], [&left.sides, &cell.sides]);
    }

    fn left(&mut self, choices: &mut Choices<'_>, [first, second]: &[Tensor; 2]) -> Tensor {
        let (name, waits) = (self.name("left"), self.waits(choices));
        let columns = first.shape[1] + second.shape[1];
        let parts = format!("{}, {}", first.name, second.name);
        let call = if choices.chance(1, 8) {
            let axis = format!("{name}_axis");
            let late = self.wait(choices);
            self.node(&axis, format!("Const({late}) value=1"));
            format!("ConcatV2({parts}, {axis}{waits})")
        } else {
            format!("concat({parts}{waits})")
        };
        let left = self.tensor(&name, call, &[ROWS, columns], [&first.sides, &second.sides]);
        self.take(left)
    }

    fn bias_gradient(&mut self, choices: &mut Choices<'_>) {
        let cell = self.any_cell(choices);
        let (name, waits) = (self.name("bias_grad"), self.waits(choices));
        let call = format!("bias_grad({}{waits})", cell.dz);
        self.tensor(&name, call, &[cell.gates], [&cell.sides]);
    }

    /// A sum, mostly of what nobody else takes.
    fn sum(&mut self, choices: &mut Choices<'_>) {
        let is_gradient = |tensor: &&Tensor| {
            let is_new = !tensor.is_used && !tensor.is_memory;
            is_new && ["product", "bias_grad", "sum"].iter().any(|of| tensor.name.starts_with(of))
        };
        let open: Vec<_> = self.tensors.iter().filter(is_gradient).cloned().collect();
        let Some(first) = choices.one(&open) else { return self.weights_gradient(choices) };
        let shape = first.shape.clone();
        let mut summands = vec![self.take(first)];
        let op = ["AddN", "AddN", "Add", "AddV2"][choices.pick(4)];
        let count = if op == "AddN" { [2, 2, 3, 4, 5, 1][choices.pick(6)] } else { 2 };
        while summands.len() < count {
            let is_taken = |tensor: &Tensor| summands.iter().any(|one| one.name == tensor.name);
            let fits = |tensor: &&Tensor| tensor.shape == shape && !is_taken(tensor);
            let open: Vec<_> = open.iter().filter(fits).cloned().collect();
            let next = match choices.one(&open) {
                Some(next) if choices.chance(4, 5) => self.take(next),
                _ if op != "AddN" && choices.chance(1, 4) => {
                    self.any(choices, &vec![1; shape.len()])
                }
                _ => self.any(choices, &shape),
            };
            summands.push(next);
        }
        if choices.chance(1, 3) {
            summands.reverse();
        }
        let (name, waits) = (self.name("sum"), self.waits(choices));
        let names: Vec<_> = summands.iter().map(|one| one.name.as_str()).collect();
        let call = format!("{op}({}{waits})", names.join(", "));
        self.tensor(&name, call, &shape, summands.iter().map(|one| &one.sides));
    }

    /// `dz @ w^T`, and slices of it.
    fn inputs_gradient(&mut self, choices: &mut Choices<'_>) {
        let cell = self.any_cell(choices);
        let weights = match choices.pick(3) {
            0 | 1 => self.known(&cell.weights),
            _ => self.any(choices, &[cell.width + H, cell.gates]),
        };
        let (name, waits) = (self.name("inputs"), self.waits(choices));
        let call = format!("dx_dh({}, {}{waits})", cell.dz, weights.name);
        let sides = [&weights.sides, &cell.sides];
        let mut product = self.tensor(&name, call, &[ROWS, cell.width + H], sides);
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
            let waits = same_waits.clone().unwrap_or_else(|| self.waits(choices));
            self.slice(choices, &product, number, &waits);
        }
    }

    fn slice(&mut self, choices: &mut Choices<'_>, from: &Tensor, number: usize, waits: &str) {
        let columns = from.shape[1];
        let (begin, size) = match choices.pick(12) {
            11 => (choices.pick(columns), 1),
            _ => [(0, columns - H), (columns - H, H), (0, 0)][number],
        };
        let rows = if choices.chance(1, 16) { 1 } else { ROWS };
        let wanted = if rows == ROWS { "-1".to_owned() } else { rows.to_string() };
        let late = if choices.chance(1, 10) { self.wait(choices) } else { String::new() };
        let name = self.name("slice");
        self.node(&format!("{name}_begin"), format!("Const({late}) value=[0,{begin}]"));
        self.node(&format!("{name}_size"), format!("Const() value=[{wanted},{size}]"));
        let call = format!("Slice({}, {name}_begin, {name}_size{waits})", from.name);
        self.tensor(&name, call, &[rows, size], [&from.sides]);
    }

    fn assignment(&mut self, choices: &mut Choices<'_>) {
        let memory: Vec<_> = self.tensors.iter().filter(|one| one.is_memory).cloned().collect();
        let variable = choices.one(&memory).filter(|_| self.assignments < MOST_ASSIGNMENTS);
        let Some(variable) = variable else { return self.pass_on(choices) };
        self.assignments += 1;
        let op = ["AssignAdd", "Assign"][choices.pick(2)];
        let value = self.placeholder(&named("assigned", &variable.shape), &variable.shape);
        let waits = if choices.chance(1, 4) { self.waits(choices) } else { self.wait(choices) };
        let name = self.name("assign");
        let call = format!("{op}({}, {}{waits})", variable.name, value.name);
        self.tensor(&name, call, &variable.shape, [&variable.sides]);
        self.is_memory(&name);
    }

    fn any_known(&mut self, choices: &mut Choices<'_>) -> Tensor {
        match choices.one(&self.tensors) {
            Some(tensor) => self.take(tensor),
            None => self.any(choices, &[ROWS, X]),
        }
    }

    fn switch(&mut self, choices: &mut Choices<'_>) {
        let data = self.any_known(choices);
        let predicate = ["predicate", "other_predicate"][choices.pick(2)];
        self.placeholder(predicate, &[]);
        let (name, waits) = (self.name("switch"), self.waits(choices));
        let op = if data.is_memory { "RefSwitch" } else { "Switch" };
        self.node(&name, format!("{op}({}, {predicate}{waits})", data.name));
        for index in 0..2 {
            let mut side =
                Tensor { name: format!("{name}:{index}"), is_used: false, ..data.clone() };
            side.sides.insert((predicate.to_owned(), index));
            self.tensors.push(side.clone());
            if choices.chance(2, 3) {
                let (pivot, side) = (self.name("pivot"), self.take(side));
                self.tensor(&pivot, format!("Identity({})", side.name), &side.shape, [&side.sides]);
            }
        }
    }

    /// Of two tensors on different sides of one predicate.
    fn merge(&mut self, choices: &mut Choices<'_>) {
        let mut pairs = Vec::new();
        for left in &self.tensors {
            let other_sides = left.sides.iter().map(|(predicate, side)| (predicate, 1 - side));
            let other_sides: Vec<Side> =
                other_sides.map(|(predicate, side)| (predicate.clone(), side)).collect();
            let is_opposite =
                |right: &&Tensor| other_sides.iter().any(|side| right.sides.contains(side));
            let rights = self.tensors.iter().filter(|right| right.shape == left.shape);
            pairs.extend(rights.filter(is_opposite).map(|right| [left.clone(), right.clone()]));
        }
        let Some(pair) = choices.one(&pairs) else { return self.switch(choices) };
        let [left, right] = pair.map(|tensor| self.take(tensor));
        let (name, waits) = (self.name("merge"), self.waits(choices));
        let sides = left.sides.intersection(&right.sides).cloned().collect();
        let call = format!("Merge({}, {}{waits})", left.name, right.name);
        self.tensor(&name, call, &left.shape, [&sides]);
    }

    /// Something that others can wait for.
    fn group(&mut self, choices: &mut Choices<'_>) {
        let (op, value) =
            [("NoOp", ""), ("ControlTrigger", ""), ("Const", " value=1")][choices.pick(3)];
        let waits = self.wait(choices) + &self.waits(choices);
        let name = self.name("group");
        self.node(&name, format!("{op}({waits}){value}"));
    }

    /// The same tensor by another node, or one that is computed from it.
    fn pass_on(&mut self, choices: &mut Choices<'_>) {
        let tensor = self.any_known(choices);
        let op = ["Identity", "Identity", "Tanh"][choices.pick(3)];
        let (name, waits) = (self.name("passed"), self.waits(choices));
        self.tensor(&name, format!("{op}({}{waits})", tensor.name), &tensor.shape, [&tensor.sides]);
    }
}
