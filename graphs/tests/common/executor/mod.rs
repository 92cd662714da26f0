//! What a graph without loops computes, by the rules of TensorFlow's executor.
//!
//! A node runs when all that it takes and waits for has run. It is dead if any of that is, but for
//! `Merge` and `ControlTrigger`. A tensor can be the memory of a variable: whoever takes it reads what is
//! there when it runs. So the outcomes of all orders in which readers and writers can run are told.
//! Numbers are exact (modulo 2^64), so no order of additions changes them.

mod operations;
mod tensor;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use blockcell_graphs::{Attribute, Graph, Node, NodeId};

use tensor::Tensor;
pub(crate) use tensor::hash;

/// How many orders of readers and writers to follow.
const MOST_ORDERS: usize = 2000;

/// What a source of a graph does in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// It has a value.
    Live,
    /// It has none, and whoever depends on it knows.
    Dead,
    /// It is fed later, perhaps never.
    Withheld,
}

/// What is fed.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// Placeholders that are not live.
    pub(crate) sources: BTreeMap<String, Source>,
    /// The values of placeholders and variables follow from this and their names.
    pub(crate) seed: u64,
}

/// What a node did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Seen {
    /// It did not run, as something that it takes or waits for did not.
    Never,
    /// It was dead.
    Dead,
    /// It ran. The number tells outputs apart.
    Ran(u64),
}

/// What the nodes of a graph did in one order; None if one of them refused its inputs.
pub(crate) type Outcome = Option<Vec<Seen>>;

/// An output of a node.
#[derive(Clone, Debug)]
enum Data {
    Tensor(Rc<Tensor>),
    /// The memory of a variable.
    Memory(String),
}

/// A node's part of a step.
#[derive(Clone, Debug)]
enum Progress {
    Open,
    Dead,
    /// Outputs; those of a switch that are dead are None.
    Done(Vec<Option<Data>>),
}

/// A step, as far as it has come.
#[derive(Clone)]
struct Step<'g> {
    graph: &'g Graph,
    environment: &'g Environment,
    order: &'g [NodeId],
    progress: Vec<Progress>,
    memory: BTreeMap<String, Rc<Tensor>>,
}

/// The outcomes of all orders, for the nodes of these names. None if there are too many orders.
pub(crate) fn outcomes(
    graph: &Graph,
    environment: &Environment,
    names: &[String],
) -> Option<BTreeSet<Outcome>> {
    let order = order(graph).expect("no cycle");
    let by_name: BTreeMap<_, _> = graph.ids().map(|id| (&graph.node(id).name, id)).collect();
    let observed: Vec<_> = names.iter().map(|name| by_name[name]).collect();
    let progress = vec![Progress::Open; graph.len()];
    let start = Step { graph, environment, order: &order, progress, memory: BTreeMap::new() };
    let (mut open, mut outcomes, mut orders) = (vec![start], BTreeSet::new(), 0);
    while let Some(mut step) = open.pop() {
        let Ok(events) = step.proceed() else {
            outcomes.insert(None);
            continue;
        };
        if events.is_empty() {
            orders += 1;
            if orders > MOST_ORDERS {
                return None;
            }
            outcomes.insert(Some(observed.iter().map(|&id| step.seen(id)).collect()));
        }
        for event in events {
            let mut next = step.clone();
            match next.run(event) {
                Ok(()) => open.push(next),
                Err(Refused) => {
                    outcomes.insert(None);
                }
            }
        }
    }
    Some(outcomes)
}

/// All nodes, each after those that it depends on. None if there is a cycle.
pub(crate) fn order(graph: &Graph) -> Option<Vec<NodeId>> {
    let mut missing = vec![0; graph.len()];
    for id in graph.ids() {
        let node = graph.node(id);
        missing[id.0] = node.inputs.len() + node.control_inputs.len();
    }
    let mut order: Vec<_> = graph.ids().filter(|id| missing[id.0] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        for one in graph.uses(order[next]) {
            let consumer = one.consumer();
            missing[consumer.0] -= 1;
            if missing[consumer.0] == 0 {
                order.push(consumer);
            }
        }
        next += 1;
    }
    (order.len() == graph.ids().count()).then_some(order)
}

/// A kernel found that its inputs do not fit together: the step is an error.
struct Refused;

/// Whether a node can run, and how.
enum Readiness {
    NotYet,
    Dead,
    Live,
}

impl Step<'_> {
    /// Runs what can run in any order, and finds the nodes of which the order matters.
    fn proceed(&mut self) -> Result<Vec<NodeId>, Refused> {
        let mut events = Vec::new();
        for &id in self.order {
            if !matches!(self.progress[id.0], Progress::Open) {
                continue;
            }
            match self.readiness(id) {
                Readiness::NotYet => {}
                Readiness::Dead => self.progress[id.0] = Progress::Dead,
                Readiness::Live if self.is_event(id) => events.push(id),
                Readiness::Live => self.run(id)?,
            }
        }
        Ok(events)
    }

    fn readiness(&self, id: NodeId) -> Readiness {
        let node = self.graph.node(id);
        if node.op == "Placeholder" {
            match self.environment.sources.get(&node.name) {
                Some(Source::Withheld) => return Readiness::NotYet,
                Some(Source::Dead) => return Readiness::Dead,
                Some(Source::Live) | None => {}
            }
        }
        let controls = node.control_inputs.iter().map(|id| &self.progress[id.0]);
        let (mut is_dead, mut live) = (false, 0_usize);
        for control in controls {
            match control {
                Progress::Open => return Readiness::NotYet,
                Progress::Dead => is_dead = true,
                Progress::Done(_) => {}
            }
        }
        let (mut open, mut dead) = (0_usize, 0_usize);
        for input in &node.inputs {
            match &self.progress[input.node.0] {
                Progress::Open => open += 1,
                Progress::Done(outputs) if outputs[input.index].is_some() => live += 1,
                Progress::Dead | Progress::Done(_) => dead += 1,
            }
        }
        if node.op == "Merge" {
            return match (live, open) {
                (1.., _) => Readiness::Live,
                (0, 0) => Readiness::Dead,
                (0, _) => Readiness::NotYet,
            };
        }
        match (open, is_dead || dead > 0) {
            (1.., _) => Readiness::NotYet,
            (0, true) if node.op != "ControlTrigger" => Readiness::Dead,
            (0, _) => Readiness::Live,
        }
    }

    /// Whether it matters when a live node runs: it writes to a variable, or reads one that may still be
    /// written to.
    fn is_event(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        let writes = |node: &Node| matches!(node.op.as_str(), "Assign" | "AssignAdd");
        if writes(node) {
            return true;
        }
        let is_open = |id: &NodeId| matches!(self.progress[id.0], Progress::Open);
        self.read_inputs(id).iter().any(|data| matches!(data, Data::Memory(_)))
            && self.order.iter().any(|other| is_open(other) && writes(self.graph.node(*other)))
    }

    /// The inputs whose elements a node reads.
    fn read_inputs(&self, id: NodeId) -> Vec<Data> {
        let node = self.graph.node(id);
        let numbers = operations::reads(node);
        numbers.into_iter().filter_map(|number| self.data(node, number)).collect()
    }

    /// An input, if it is live.
    fn data(&self, node: &Node, input: usize) -> Option<Data> {
        let input = node.inputs[input];
        match &self.progress[input.node.0] {
            Progress::Done(outputs) => outputs[input.index].clone(),
            Progress::Open | Progress::Dead => None,
        }
    }

    /// What is in a tensor now.
    fn read(&mut self, data: &Data) -> Rc<Tensor> {
        match data {
            Data::Tensor(tensor) => tensor.clone(),
            Data::Memory(name) => self.memory[name].clone(),
        }
    }

    fn run(&mut self, id: NodeId) -> Result<(), Refused> {
        let node = self.graph.node(id);
        let inputs: Vec<_> = (0..node.inputs.len()).map(|input| self.data(node, input)).collect();
        let outputs = self.outputs(node, &inputs)?;
        self.progress[id.0] = Progress::Done(outputs);
        Ok(())
    }

    fn outputs(
        &mut self,
        node: &Node,
        inputs: &[Option<Data>],
    ) -> Result<Vec<Option<Data>>, Refused> {
        let first = || inputs[0].clone();
        Ok(match node.op.as_str() {
            "Placeholder" => vec![Some(Data::Tensor(Rc::new(self.initial(node, &node.name))))],
            "VariableV2" => {
                let name = match node.attribute("shared_name") {
                    Some(Attribute::Text(name)) => name.clone(),
                    _ => node.name.clone(),
                };
                if !self.memory.contains_key(&name) {
                    let initial = self.initial(node, &name);
                    self.memory.insert(name.clone(), Rc::new(initial));
                }
                vec![Some(Data::Memory(name))]
            }
            "Identity" | "RefIdentity" | "Enter" => vec![first()],
            "AddN" if inputs.len() == 1 => vec![first()],
            "Switch" | "RefSwitch" => {
                let predicate = self.read(inputs[1].as_ref().expect("it is live"));
                if predicate.elements[0] & 1 == 1 {
                    vec![None, first()]
                } else {
                    vec![first(), None]
                }
            }
            "Merge" => {
                let place = inputs.iter().position(Option::is_some).expect("one is live");
                let index = Data::Tensor(Rc::new(Tensor::scalar(place as u64)));
                vec![inputs[place].clone(), Some(index)]
            }
            "Assign" | "AssignAdd" => self.assign(node, inputs)?,
            "NoOp" | "ControlTrigger" => Vec::new(),
            _ => {
                let live = inputs.iter().flatten();
                let tensors: Vec<_> = live.map(|data| self.read(data)).collect();
                let outputs = operations::compute(node, &tensors).ok_or(Refused)?;
                outputs.into_iter().map(|tensor| Some(Data::Tensor(Rc::new(tensor)))).collect()
            }
        })
    }

    /// The value of a placeholder or of a variable before the step, of the sizes that its attribute
    /// `sizes` says.
    fn initial(&self, node: &Node, name: &str) -> Tensor {
        let Some(Attribute::Ints(sizes)) = operations::attribute(node, "sizes") else {
            panic!("{} has no sizes", node.name);
        };
        Tensor::random(sizes, &(name, self.environment.seed))
    }

    fn assign(
        &mut self,
        node: &Node,
        inputs: &[Option<Data>],
    ) -> Result<Vec<Option<Data>>, Refused> {
        let (Some(Data::Memory(name)), Some(value)) = (&inputs[0], &inputs[1]) else {
            panic!("{} assigns to no variable", node.name);
        };
        let (old, value) = (self.memory[name].clone(), self.read(value));
        if old.shape != value.shape {
            return Err(Refused);
        }
        let new =
            if node.op == "Assign" { value } else { Rc::new(old.plus(&value).ok_or(Refused)?) };
        self.memory.insert(name.clone(), new);
        Ok(vec![inputs[0].clone()])
    }

    /// What a node did in the end.
    fn seen(&self, id: NodeId) -> Seen {
        match &self.progress[id.0] {
            Progress::Open => Seen::Never,
            Progress::Dead => Seen::Dead,
            Progress::Done(outputs) => {
                let tell = |data: &Data| match data {
                    Data::Tensor(tensor) => tensor::hash(&**tensor),
                    Data::Memory(name) => tensor::hash(name),
                };
                let told: Vec<_> = outputs.iter().map(|one| one.as_ref().map(tell)).collect();
                Seen::Ran(tensor::hash(&told))
            }
        }
    }
}
