//! What a graph of small operations computes, with and without the operations that rewrites put into it.
//!
//! Nodes of one loop may be among them. Each tensor has one value in each round, and the loop ends where its condition
//! says. Nothing is dead or late here: the executor beside this module is for that.

mod cells;
mod norms;
mod tensor;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use blockcell_graphs::{Attribute, Constant, Graph, Node, NodeId, Output, Values};

use cells::{choose, sigmoid, tanh};
pub(crate) use tensor::{Tensor, broadcast};
use tensor::{concat, stack};

/// A loop with more rounds is an error.
const MOST_ROUNDS: usize = 12;

/// An output of a node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Tensor(Tensor),
    /// A list or an array, whose elements may be missing.
    List(Vec<Option<Tensor>>),
}

/// The values of a graph's nodes, as far as they were asked for.
pub(crate) struct Run<'g> {
    graph: &'g Graph,
    /// By node and round.
    known: HashMap<(NodeId, usize), Option<Vec<Value>>>,
}

impl<'g> Run<'g> {
    pub(crate) fn new(graph: &'g Graph) -> Run<'g> {
        Run { graph, known: HashMap::new() }
    }

    /// A tensor outside of loops, or in the first round of one. None if it cannot be computed.
    pub(crate) fn value(&mut self, tensor: Output) -> Option<Value> {
        self.in_round(tensor, 0)
    }

    fn in_round(&mut self, tensor: Output, round: usize) -> Option<Value> {
        let key = (tensor.node, round);
        if !self.known.contains_key(&key) {
            // A tensor that depends on itself has no value.
            self.known.insert(key, None);
            let outputs = self.outputs(tensor.node, round);
            self.known.insert(key, outputs);
        }
        self.known[&key].as_ref()?.get(tensor.index).cloned()
    }

    fn outputs(&mut self, id: NodeId, round: usize) -> Option<Vec<Value>> {
        let graph = self.graph;
        let node = graph.node(id);
        let first = *node.inputs.first().unwrap_or(&Output { node: id, index: 0 });
        match node.op.as_str() {
            "Enter" => Some(vec![self.in_round(first, 0)?]),
            "Merge" => {
                let next = graph.node(node.inputs[1].node);
                let is_later = next.op == "NextIteration" && round > 0;
                let value = match is_later {
                    true => self.in_round(next.inputs[0], round - 1)?,
                    false => self.in_round(first, round)?,
                };
                Some(vec![value])
            }
            "Switch" => Some(vec![self.in_round(first, round)?; 2]),
            "Exit" => {
                let switch = Some(graph.node(first.node)).filter(|node| node.op == "Switch")?;
                let last = self.rounds(switch.inputs[1])?;
                Some(vec![self.in_round(first, last)?])
            }
            "NextIteration" => None,
            _ => {
                let inputs = node.inputs.iter().map(|&input| self.in_round(input, round));
                let inputs = inputs.collect::<Option<Vec<_>>>()?;
                compute(node, &inputs)
            }
        }
    }

    /// How many rounds the loop with a condition has.
    fn rounds(&mut self, condition: Output) -> Option<usize> {
        (0..MOST_ROUNDS).find_map(|round| match self.in_round(condition, round) {
            Some(Value::Tensor(goes_on)) if goes_on.number()? != 0.0 => None,
            Some(Value::Tensor(_)) => Some(Some(round)),
            _ => Some(None),
        })?
    }
}

/// Whether two values are the same but for the last digits.
pub(crate) fn are_close(one: &Value, other: &Value) -> bool {
    let close = |(left, right): (&f64, &f64)| {
        left == right
            || (left.is_nan() && right.is_nan())
            || (left - right).abs() <= 1e-11 * (1.0 + left.abs())
    };
    let tensors = |left: &Tensor, right: &Tensor| {
        left.shape == right.shape && left.elements.iter().zip(&right.elements).all(close)
    };
    match (one, other) {
        (Value::Tensor(left), Value::Tensor(right)) => tensors(left, right),
        (Value::List(left), Value::List(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|pair| match pair {
                    (Some(left), Some(right)) => tensors(left, right),
                    (None, None) => true,
                    _ => false,
                })
        }
        _ => false,
    }
}

fn attribute<'n>(node: &'n Node, name: &str) -> Option<&'n Attribute> {
    node.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn int(node: &Node, name: &str) -> i64 {
    match attribute(node, name) {
        Some(Attribute::Int(value)) => *value,
        _ => 0,
    }
}

fn flag(node: &Node, name: &str) -> bool {
    matches!(attribute(node, name), Some(Attribute::Bool(true)))
}

/// Numbers that follow from a name, of the sizes that the attribute `sizes` or `shape` says.
fn source(node: &Node) -> Option<Tensor> {
    let sizes = match attribute(node, "sizes").or(attribute(node, "shape"))? {
        Attribute::Ints(sizes) | Attribute::Shape(Some(sizes)) => sizes,
        _ => return None,
    };
    let shape: Vec<_> =
        sizes.iter().map(|&size| usize::try_from(size).ok()).collect::<Option<_>>()?;
    let number = |place: usize| {
        let mut hasher = DefaultHasher::new();
        (&node.name, place).hash(&mut hasher);
        (hasher.finish() % 4001) as f64 / 2000.0 - 1.0
    };
    Some(Tensor::new(shape.clone(), (0..shape.iter().product()).map(number).collect()))
}

fn constant(value: &Constant) -> Option<Tensor> {
    let elements: Vec<_> = match &value.values {
        Values::Ints(values) => values.iter().map(|&one| one as f64).collect(),
        Values::Floats(values) => values.iter().map(|&one| f64::from(one)).collect(),
        Values::Bools(values) => values.iter().map(|&one| f64::from(u8::from(one))).collect(),
        // Of any shape, where a graph that was written down does not say which.
        Values::Zeros if value.shape.contains(&-1) => return Some(Tensor::scalar(0.0)),
        Values::Zeros => vec![0.0; value.shape.iter().product::<i64>() as usize],
        Values::Unknown => return None,
    };
    let shape = value.shape.iter().map(|&size| size as usize).collect();
    Some(Tensor::new(shape, elements))
}

fn compute(node: &Node, inputs: &[Value]) -> Option<Vec<Value>> {
    // The flow of an array has the elements, its handle nothing.
    if let ("TensorArrayV3", [Value::Tensor(size)]) = (node.op.as_str(), inputs) {
        let flow = vec![None; usize::try_from(size.number()? as i64).ok()?];
        return Some(vec![Value::Tensor(Tensor::scalar(0.0)), Value::List(flow)]);
    }
    if let Some(outputs) = of_lists(node, inputs) {
        return outputs.map(|output| vec![output]);
    }
    if matches!(node.op.as_str(), "Apply" | "Other" | "Pack" | "Identity" | "Snapshot") {
        return passed_on(node, inputs);
    }
    let tensors = inputs.iter().map(|input| match input {
        Value::Tensor(tensor) => Some(tensor.clone()),
        Value::List(_) => None,
    });
    let tensors = tensors.collect::<Option<Vec<_>>>()?;
    let own = cells::compute(node, &tensors).or_else(|| norms::compute(node, &tensors));
    let outputs = match own {
        Some(outputs) => outputs?,
        None => small(node, &tensors)?,
    };
    Some(outputs.into_iter().map(Value::Tensor).collect())
}

/// What nodes do that take anything. One that tests put at the end makes a list of all.
fn passed_on(node: &Node, inputs: &[Value]) -> Option<Vec<Value>> {
    if matches!(node.op.as_str(), "Identity" | "Snapshot") {
        return Some(vec![inputs[0].clone()]);
    }
    let all = inputs.iter().flat_map(|input| match input {
        Value::Tensor(tensor) => vec![Some(tensor.clone())],
        Value::List(elements) => elements.clone(),
    });
    Some(vec![Value::List(all.collect())])
}

/// Operations on lists and arrays; the outer None if an operation is another one.
fn of_lists(node: &Node, inputs: &[Value]) -> Option<Option<Value>> {
    let tensor = |number: usize| match inputs.get(number)? {
        Value::Tensor(tensor) => Some(tensor),
        Value::List(_) => None,
    };
    let list = |number: usize| match inputs.get(number)? {
        Value::List(list) => Some(list),
        Value::Tensor(_) => None,
    };
    let place = |number: usize| {
        let place = tensor(number)?.number()?;
        (place >= 0.0).then_some(place as usize)
    };
    let apart = |whole: &Tensor| -> Option<Vec<_>> {
        (0..*whole.shape.first()?).map(|place| Some(whole.at(place))).collect()
    };
    let empty = |size: usize| Value::List(vec![None; size]);
    let together = |list: &[Option<Tensor>]| {
        stack(&list.iter().cloned().collect::<Option<Vec<_>>>()?).map(Value::Tensor)
    };
    let with = |list: &[Option<Tensor>], place: usize, value: &Tensor| {
        let mut list = list.to_vec();
        *list.get_mut(place)? = Some(value.clone());
        Some(Value::List(list))
    };
    let is_whole = |indices: &Tensor, size: usize| {
        indices.elements.iter().copied().eq((0..size).map(|place| place as f64))
    };
    Some(match node.op.as_str() {
        "TensorArrayScatterV3" => (|| {
            let (whole, size) = (tensor(2)?, list(3)?.len());
            let fits = is_whole(tensor(1)?, size) && whole.shape.first() == Some(&size);
            fits.then(|| apart(whole).map(Value::List))?
        })(),
        "TensorArrayReadV3" => (|| list(2)?.get(place(1)?)?.clone().map(Value::Tensor))(),
        "TensorArrayWriteV3" => (|| with(list(3)?, place(1)?, tensor(2)?))(),
        "TensorArraySizeV3" => (|| Some(Value::Tensor(Tensor::scalar(list(1)?.len() as f64))))(),
        "TensorArrayGatherV3" => (|| {
            let list = list(2)?;
            together(list).filter(|_| tensor(1).is_some_and(|all| is_whole(all, list.len())))
        })(),
        "TensorListFromTensor" => (|| apart(tensor(0)?).map(Value::List))(),
        "TensorListReserve" => place(1).map(empty),
        "TensorListGetItem" => (|| list(0)?.get(place(1)?)?.clone().map(Value::Tensor))(),
        "TensorListSetItem" => (|| with(list(0)?, place(1)?, tensor(2)?))(),
        "TensorListStack" => (|| together(list(0)?))(),
        _ => return None,
    })
}

/// Operations on tensors.
fn small(node: &Node, inputs: &[Tensor]) -> Option<Vec<Tensor>> {
    let zip = |of: fn(f64, f64) -> f64| inputs[0].zip(&inputs[1], of);
    let same = |of: fn(f64, f64) -> f64| zip(of).filter(|_| inputs[0].shape == inputs[1].shape);
    let vector = |shape: &[usize]| Tensor::vector(shape.iter().map(|&size| size as f64).collect());
    Some(vec![match node.op.as_str() {
        "Placeholder" | "VariableV2" | "VarHandleOp" => source(node)?,
        "Const" => match attribute(node, "value")? {
            Attribute::Constant(value) => constant(value)?,
            _ => return None,
        },
        "ReadVariableOp" | "NoOp" | "LoopCond" => inputs[0].clone(),
        "Add" | "AddV2" => zip(|left, right| left + right)?,
        "Sub" => zip(|left, right| left - right)?,
        "Mul" => zip(|left, right| left * right)?,
        "Minimum" => zip(f64::min)?,
        "Maximum" => zip(f64::max)?,
        "Less" => zip(|left, right| f64::from(u8::from(left < right)))?,
        "LessEqual" => zip(|left, right| f64::from(u8::from(left <= right)))?,
        "GreaterEqual" => zip(|left, right| f64::from(u8::from(left >= right)))?,
        "LogicalAnd" => zip(|left, right| f64::from(u8::from(left != 0.0 && right != 0.0)))?,
        "Neg" => inputs[0].map(|x| -x),
        "Sigmoid" => sigmoid(&inputs[0]),
        "Tanh" => tanh(&inputs[0]),
        "SquaredDifference" => zip(|left, right| (left - right) * (left - right))?,
        "Rsqrt" => inputs[0].map(|x| 1.0 / x.sqrt()),
        "Mean" => {
            let axes = inputs[1].sizes()?;
            let sum = inputs[0].sum(&axes, flag(node, "keep_dims"))?;
            let counts =
                Tensor::filled(&inputs[0].shape, 1.0).sum(&axes, flag(node, "keep_dims"))?;
            sum.zip(&counts, |sum, count| sum / count)?
        }
        "_MklLayerNorm" => {
            let axes = [inputs[0].shape.len() as i64 - 1];
            let ones = Tensor::filled(&inputs[0].shape, 1.0).sum(&axes, true)?;
            let mean = |x: &Tensor| x.sum(&axes, true)?.zip(&ones, |sum, count| sum / count);
            let Attribute::Float(epsilon) = attribute(node, "epsilon")? else { return None };
            let centered = inputs[0].zip(&mean(&inputs[0])?, |x, mean| x - mean)?;
            let variance = mean(&centered.times(&centered)?)?;
            let scale = variance.map(|v| 1.0 / (v + f64::from(*epsilon)).sqrt());
            let cells = inputs[0].shape.last();
            let is_vector = |one: &Tensor| one.shape.len() == 1 && one.shape.last() == cells;
            inputs[1..].iter().all(is_vector).then_some(())?;
            centered.times(&scale)?.times(&inputs[1])?.plus(&inputs[2])?
        }
        "Relu" => inputs[0].map(|x| x.max(0.0)),
        "Relu6" => inputs[0].map(|x| x.clamp(0.0, 6.0)),
        "ReluGrad" => same(|dy, y| if y > 0.0 { dy } else { 0.0 })?,
        "RealDiv" => zip(|left, right| left / right)?,
        "SigmoidGrad" => same(|y, dy| dy * y * (1.0 - y))?,
        "TanhGrad" => same(|y, dy| dy * (1.0 - y * y))?,
        "AddN" => {
            let are_same = inputs.iter().all(|one| one.shape == inputs[0].shape);
            let sum = inputs[1..].iter().try_fold(inputs[0].clone(), |sum, one| sum.plus(one));
            sum.filter(|_| are_same)?
        }
        "Select" | "SelectV2" => select(node, inputs)?,
        "ZerosLike" => inputs[0].map(|_| 0.0),
        "Fill" => {
            let shape = inputs[0].sizes()?;
            let is_small = shape.len() <= 4 && shape.iter().all(|size| (0..=9).contains(size));
            let shape: Vec<_> = shape.iter().map(|&size| size as usize).collect();
            let value = inputs[1].number().filter(|_| is_small)?;
            Tensor::filled(&shape, value)
        }
        "Shape" => vector(&inputs[0].shape),
        "Range" => {
            let [first, limit, step] = [0, 1, 2].map(|number: usize| inputs[number].number());
            let (first, limit, step) = (first?, limit?, step.filter(|&step| step > 0.0)?);
            let numbers = (0..100).map(|number| first + f64::from(number) * step);
            Tensor::vector(numbers.take_while(|&number| number < limit).collect())
        }
        "BroadcastGradientArgs" => return axes_of_gradients(inputs),
        "Sum" => inputs[0].sum(&inputs[1].sizes()?, flag(node, "keep_dims"))?,
        "Reshape" => inputs[0].reshaped(&inputs[1].sizes()?)?,
        "Squeeze" => {
            let sizes = inputs[0].shape.iter().copied().filter(|&size| size != 1).collect();
            Tensor::new(sizes, inputs[0].elements.clone())
        }
        "Split" => {
            return inputs[1]
                .split(inputs[0].number()?, usize::try_from(int(node, "num_split")).ok()?);
        }
        "SplitV" => {
            let (sizes, axis) = (inputs[1].sizes()?, inputs[2].number()?);
            return inputs[0].split_sizes(axis, &sizes);
        }
        "ConcatV2" => {
            let (axis, parts) = inputs.split_last()?;
            concat(parts, axis.number()?)?
        }
        "Slice" => inputs[0].slice(&inputs[1].sizes()?, &inputs[2].sizes()?)?,
        "StridedSlice" => strided(node, inputs)?,
        "MatMul" | "_FusedMatMul" => {
            let turns = ["transpose_a", "transpose_b"].map(|name| flag(node, name));
            let product = inputs[0].product(&inputs[1], turns)?;
            match inputs.get(2) {
                Some(bias) => biased(&product, bias)?,
                None => product,
            }
        }
        "BiasAdd" => biased(&inputs[0], &inputs[1])?,
        "BiasAddGrad" => inputs[0].sum(&[0], false)?,
        _ => return None,
    }])
}

fn biased(product: &Tensor, bias: &Tensor) -> Option<Tensor> {
    (Some(&bias.shape[..]) == product.shape.get(1..)).then(|| product.plus(bias))?
}

/// `Select` takes tensors of one shape, and a condition of that or one for each row. `SelectV2` broadcasts.
fn select(node: &Node, inputs: &[Tensor]) -> Option<Tensor> {
    let [condition, one, other] = inputs else { return None };
    if node.op == "SelectV2" {
        return choose(condition, one, other);
    }
    // Zeros of any shape are a scalar here.
    let shape = if one.shape.is_empty() { &other.shape } else { &one.shape };
    let fits = |tensor: &Tensor| tensor.shape == *shape || tensor.shape.is_empty();
    let is_row =
        condition.shape.len() == 1 && condition.shape[0] == *shape.first()? && shape.len() == 2;
    let condition = match is_row {
        true => condition.reshaped(&[-1, 1])?,
        false => condition.clone(),
    };
    let fits = fits(one)
        && fits(other)
        && (is_row || (condition.shape.is_empty() || condition.shape == *shape));
    choose(&condition.spread(shape)?, one, other).filter(|_| fits)
}

fn axes_of_gradients(inputs: &[Tensor]) -> Option<Vec<Tensor>> {
    let shapes = [0, 1].map(|number: usize| {
        let sizes = inputs[number].sizes()?;
        Some(sizes.iter().map(|&size| size as usize).collect::<Vec<_>>())
    });
    let [Some(left), Some(right)] = shapes else { return None };
    let both = broadcast(&left, &right)?;
    let axes = |shape: &[usize]| {
        let missing = both.len() - shape.len();
        let is_summed =
            |axis: &usize| *axis < missing || (shape[axis - missing] == 1 && both[*axis] != 1);
        Tensor::vector((0..both.len()).filter(is_summed).map(|axis| axis as f64).collect())
    };
    Some(vec![axes(&left), axes(&right)])
}

/// One element of a vector, or columns of a matrix.
fn strided(node: &Node, inputs: &[Tensor]) -> Option<Tensor> {
    let [tensor, begin, end, steps] = inputs else { return None };
    let (begin, end) = (begin.sizes()?, end.sizes()?);
    if steps.elements.iter().any(|&step| step != 1.0) {
        return None;
    }
    if int(node, "shrink_axis_mask") == 1 {
        return tensor.at(usize::try_from(*begin.first()?).ok()?);
    }
    let mut part = (Vec::new(), Vec::new());
    for (axis, &size) in tensor.shape.iter().enumerate() {
        let is_masked = |name| int(node, name) >> axis & 1 == 1;
        let begin = if is_masked("begin_mask") { 0 } else { *begin.get(axis)? };
        let end = if is_masked("end_mask") { size as i64 } else { *end.get(axis)? };
        part.0.push(begin);
        part.1.push((end.min(size as i64) - begin).max(0));
    }
    tensor.slice(&part.0, &part.1)
}
