//! What functions become.
//!
//! A function chooses when it runs: without steps or rows, the loop and cuDNN may give other shapes and errors. The loop
//! broadcasts states and masks of one row, and takes masks of more steps than there are.
//!
//! ```text
//! standard_lstm(x, ...) = if size(x) > 0 && shapes are cuDNN's { standard_lstm_cudnn(x, ...) } else { standard_lstm_loop(x, ...) }
//! ```
//!
//! A forward half keeps other tensors with cuDNN than with a loop, and its signature stays. So [`Slots::pack`] puts each
//! of them into a list of one tensor, in the place of a list that the loop keeps. The loop also keeps the number of its
//! rounds. An empty vector in that place tells the backward half that cuDNN has run.

use super::function::{Body, Function, FunctionNode};
use super::pairs::Halves;
use crate::graph::{Attribute, Constant, DataType, Values};

/// The constant by which Keras's functions tell which implementation has run, their last output.
pub(super) fn runtime(function: &Function) -> Option<Attribute> {
    constant(function, function.outputs.len().checked_sub(1)?)
}

/// An output of a function that is a known constant.
fn constant(function: &Function, output: usize) -> Option<Attribute> {
    let value = function.result(output)?.0;
    match value.attributes.get("value") {
        Some(Attribute::Constant(constant)) if value.op == "Const" => {
            let is_known = matches!(constant.values, Values::Ints(_) | Values::Floats(_));
            is_known.then(|| Attribute::Constant(constant.clone()))
        }
        _ => None,
    }
}

/// A function that calls `full` if its inputs are such as cuDNN takes, and else `empty`.
pub(super) fn inference(
    function: &Function,
    states: usize,
    full: &str,
    empty: &str,
    runtime: Option<Attribute>,
) -> Body {
    let mut body = Builder::of(function);
    body.choose_by_shapes(states, full, empty);
    if let (Some(value), Some(last)) = (runtime, function.outputs.len().checked_sub(1)) {
        body.body.results[last] = body.constant("runtime", value);
    }
    body.body
}

/// Where the two halves of a layer put what cuDNN keeps.
pub(super) struct Slots<'f> {
    halves: &'f Halves<'f>,
    outputs: usize,
    /// For each thing that cuDNN's forward half keeps: how its backward half gets it.
    kept: Vec<Kept>,
    /// The place of the number of rounds.
    mark: usize,
}

/// How the backward half gets a tensor.
enum Kept {
    Constant(Attribute),
    /// In the place of this output of the forward half.
    Slot(usize),
}

impl<'f> Slots<'f> {
    pub(super) fn of(halves: &'f Halves<'f>, outputs: usize) -> Result<Slots<'f>, &'static str> {
        let Halves { forward, forward_by, .. } = halves;
        let few = "its loop saves fewer tensors than cuDNN";
        let is_list = |&output: &usize| forward.outputs[output].1 == DataType::VARIANT;
        let known =
            [DataType::FLOAT, DataType::HALF, DataType::INT32, DataType::INT64, DataType::VARIANT];
        if forward.output_types().skip(outputs).any(|data_type| !known.contains(&data_type)) {
            return Err("its loop saves a tensor of another type");
        }
        let mut free = (outputs..forward.outputs.len()).filter(is_list);
        let kept = (outputs..forward_by.outputs.len()).map(|output| {
            let known = constant(forward_by, output).map(Kept::Constant);
            known.or_else(|| free.next().map(Kept::Slot)).ok_or(few)
        });
        let kept = kept.collect::<Result<_, _>>()?;
        let counts_rounds = |&output: &usize| {
            let made = forward.result(output);
            made.is_some_and(|(node, tensor)| {
                matches!(&node.op[..], "While" | "StatelessWhile")
                    && tensor.ends_with(":output:0")
                    && forward.outputs[output].1 == DataType::INT32
            })
        };
        let mark = (outputs..forward.outputs.len()).find(counts_rounds);
        let mark = mark.ok_or("its loop does not save the number of its iterations")?;
        Ok(Slots { halves, outputs, kept, mark })
    }

    pub(super) fn choose_forward(&self, states: usize, full: &str, empty: &str) -> Body {
        let mut body = Builder::of(self.halves.forward);
        body.choose_by_shapes(states, full, empty);
        body.body
    }

    pub(super) fn choose_backward(&self, full: &str, empty: &str) -> Body {
        let mut body = Builder::of(self.halves.backward);
        let has_run_loop = body.has_elements(self.mark);
        body.choose(has_run_loop, empty, full);
        body.body
    }

    /// The forward half `function`, which calls `inner`.
    pub(super) fn pack(&self, function: &str, inner: &str) -> Body {
        let Halves { forward, forward_by, .. } = self.halves;
        let mut body = Builder::of(forward);
        let inputs = forward.inputs.iter().map(|(name, _)| name.clone()).collect();
        body.call(inner, inputs, forward_by);
        let mut results: Vec<_> =
            (0..self.outputs).map(|output| format!("call:output:{output}")).collect();
        if let Some(value) = constant(forward, self.outputs - 1) {
            results[self.outputs - 1] = body.constant("runtime", value);
        }
        let slots = self.outputs..forward.outputs.len();
        results.extend(slots.map(|slot| body.slot(slot, self.kept_in(slot), forward)));
        body.body.results = results;
        body.named(function)
    }

    /// The output of cuDNN's forward half that goes into a slot, and its type.
    fn kept_in(&self, slot: usize) -> Option<(usize, DataType)> {
        let is_in = |kept: &Kept| matches!(kept, Kept::Slot(one) if *one == slot);
        let output = self.outputs + self.kept.iter().position(is_in)?;
        Some((output, self.halves.forward_by.outputs[output].1))
    }

    /// The backward half `function`, which calls `inner`.
    pub(super) fn unpack(&self, function: &str, inner: &str) -> Body {
        let Halves { backward, backward_by, .. } = self.halves;
        let mut body = Builder::of(backward);
        let name = |input: usize| backward.inputs[input].0.clone();
        let mut inputs: Vec<_> = (0..self.outputs).map(name).collect();
        for (number, kept) in self.kept.iter().enumerate() {
            inputs.push(match kept {
                Kept::Constant(value) => {
                    body.constant(&format!("constant_{number}"), value.clone())
                }
                Kept::Slot(slot) => {
                    let data_type = backward_by.inputs[self.outputs + number].1;
                    body.taken(*slot, name(*slot), data_type)
                }
            });
        }
        body.call(inner, inputs, backward_by);
        body.named(function)
    }
}

/// The nodes of a body, one after the other.
struct Builder<'f> {
    function: &'f Function,
    body: Body,
}

impl<'f> Builder<'f> {
    fn of(function: &'f Function) -> Builder<'f> {
        Builder { function, body: Body { function: function.name.clone(), ..Body::default() } }
    }

    fn named(self, name: &str) -> Body {
        Body { function: name.to_owned(), ..self.body }
    }

    fn add<const N: usize>(
        &mut self,
        name: &str,
        op: &str,
        inputs: Vec<String>,
        attributes: [(&str, Attribute); N],
    ) {
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value)).into();
        let (name, op) = (name.to_owned(), op.to_owned());
        self.body.nodes.push(FunctionNode { name, op, inputs, attributes });
    }

    fn constant(&mut self, name: &str, value: Attribute) -> String {
        if self.body.nodes.iter().all(|node| node.name != name) {
            let data_type = match &value {
                Attribute::Constant(constant) => constant.data_type,
                _ => DataType::INT32,
            };
            self.add(name, "Const", Vec::new(), [("dtype", data_type.into()), ("value", value)]);
        }
        format!("{name}:output:0")
    }

    fn integer(&mut self, name: &str, number: i64) -> String {
        self.integers(name, Vec::new(), number)
    }

    /// A constant with one number, of a shape of as many elements.
    fn integers(&mut self, name: &str, shape: Vec<i64>, number: i64) -> String {
        let values = Values::Ints(vec![number]);
        let value = Constant { data_type: DataType::INT32, shape, values };
        self.constant(name, Attribute::Constant(value))
    }

    fn types(types: impl Iterator<Item = DataType>) -> Attribute {
        Attribute::Types(types.collect())
    }

    /// Whether an input has elements.
    fn has_elements(&mut self, input: usize) -> String {
        let (first, data_type) = self.function.inputs[input].clone();
        let int32: Attribute = DataType::INT32.into();
        let types = [("T", data_type.into()), ("out_type", int32.clone())];
        self.add("size", "Size", vec![first], types);
        let zero = self.integer("zero", 0);
        self.add("any", "Greater", vec!["size:output:0".to_owned(), zero], [("T", int32)]);
        "any:z:0".to_owned()
    }

    fn shape(&mut self, input: usize) -> String {
        let (tensor, data_type) = self.function.inputs[input].clone();
        let name = format!("shape_{input}");
        let types = [("T", data_type.into()), ("out_type", DataType::INT32.into())];
        self.add(&name, "Shape", vec![tensor], types);
        format!("{name}:output:0")
    }

    /// Some sizes of a shape.
    fn sizes(&mut self, name: &str, shape: &str, first: i64, count: i64) -> String {
        let begin = self.integers(&format!("axis_{first}"), vec![1], first);
        let size = self.integers(&format!("sizes_{count}"), vec![1], count);
        let int32: Attribute = DataType::INT32.into();
        let types = [("T", int32.clone()), ("Index", int32)];
        self.add(name, "Slice", vec![shape.to_owned(), begin, size], types);
        format!("{name}:output:0")
    }

    fn joined(&mut self, name: &str, mut parts: Vec<String>) -> String {
        let Ok(count @ 2..) = i64::try_from(parts.len()) else { return parts.swap_remove(0) };
        parts.push(self.integer("zero", 0));
        let int32: Attribute = DataType::INT32.into();
        let attributes =
            [("N", Attribute::Int(count)), ("T", int32.clone()), ("Tidx", int32.clone())];
        self.add(name, "ConcatV2", parts, attributes);
        format!("{name}:output:0")
    }

    /// Whether states have a row for each of the first input and as many columns as the recurrent kernel has rows, and
    /// the mask, if there is one, has the first input's rows and steps.
    fn has_shapes(&mut self, states: usize) -> String {
        let x = self.shape(0);
        let batch = i64::from(self.function.attributes.get("time_major") == Some(&true.into()));
        let rows = self.sizes("rows", &x, batch, 1);
        let recurrent = self.shape(states + 2);
        let units = self.sizes("units", &recurrent, 0, 1);
        let mut got: Vec<_> = (1..=states).map(|state| self.shape(state)).collect();
        let mut wanted = vec![[rows, units]; states].concat();
        let mask = self.function.input_types().position(|data_type| data_type == DataType::BOOL);
        if let Some(mask) = mask {
            got.push(self.shape(mask));
            wanted.push(self.sizes("rows_and_steps", &x, 0, 2));
        }
        let (got, wanted) = (self.joined("got", got), self.joined("wanted", wanted));
        let int32: Attribute = DataType::INT32.into();
        self.add("equal", "Equal", vec![got, wanted], [("T", int32.clone())]);
        let zero = self.integer("zero", 0);
        self.add("fit", "All", vec!["equal:z:0".to_owned(), zero], [("Tidx", int32)]);
        "fit:output:0".to_owned()
    }

    /// All outputs are those of `full` if the inputs are such as cuDNN takes, and else of `empty`.
    fn choose_by_shapes(&mut self, states: usize, full: &str, empty: &str) {
        let both = vec![self.has_elements(0), self.has_shapes(states)];
        self.add("both", "LogicalAnd", both, []);
        self.choose("both:z:0".to_owned(), full, empty);
    }

    /// All outputs are those of `full` if a condition holds, and else of `empty`.
    fn choose(&mut self, condition: String, full: &str, empty: &str) {
        let mut inputs = vec![condition];
        inputs.extend(self.function.inputs.iter().map(|(name, _)| name.clone()));
        let attributes = [
            ("Tcond", DataType::BOOL.into()),
            ("Tin", Self::types(self.function.input_types())),
            ("Tout", Self::types(self.function.output_types())),
            ("then_branch", Attribute::Function(full.to_owned())),
            ("else_branch", Attribute::Function(empty.to_owned())),
            ("_lower_using_switch_merge", true.into()),
        ];
        self.add("choice", "If", inputs, attributes);
        let outputs = 0..self.function.outputs.len();
        self.body.results = outputs.map(|output| format!("choice:output:{output}")).collect();
    }

    /// All outputs are those of a call of `callee`, which has the signature of `like`.
    fn call(&mut self, callee: &str, inputs: Vec<String>, like: &Function) {
        let attributes = [
            ("Tin", Self::types(like.input_types())),
            ("Tout", Self::types(like.output_types())),
            ("f", Attribute::Function(callee.to_owned())),
        ];
        self.add("call", "PartitionedCall", inputs, attributes);
        let outputs = 0..like.outputs.len();
        self.body.results = outputs.map(|output| format!("call:output:{output}")).collect();
    }

    /// What a forward half returns in a slot: a list with an output of the call, or nothing.
    fn slot(&mut self, slot: usize, kept: Option<(usize, DataType)>, forward: &Function) -> String {
        let data_type = forward.outputs[slot].1;
        if data_type != DataType::VARIANT {
            let is_integer = matches!(data_type, DataType::INT32 | DataType::INT64);
            let values =
                if is_integer { Values::Ints(Vec::new()) } else { Values::Floats(Vec::new()) };
            let value = Constant { data_type, shape: vec![0], values };
            return self.constant(&format!("nothing_{}", data_type.0), Attribute::Constant(value));
        }
        let data_type = kept.map_or(DataType::FLOAT, |(_, data_type)| data_type);
        let any_shape = self.integer("any_shape", -1);
        let zero = self.integer("zero", 0);
        let count = if kept.is_some() { self.integer("one", 1) } else { zero.clone() };
        let list = format!("list_{slot}");
        let element = ("element_dtype", data_type.into());
        let shape = ("shape_type", DataType::INT32.into());
        self.add(&list, "TensorListReserve", vec![any_shape, count], [element.clone(), shape]);
        let handle = format!("{list}:handle:0");
        let Some((output, _)) = kept else { return handle };
        let full = format!("full_{slot}");
        self.add(
            &full,
            "TensorListSetItem",
            vec![handle, zero, format!("call:output:{output}")],
            [element],
        );
        format!("{full}:output_handle:0")
    }

    /// The tensor in the list of a slot.
    fn taken(&mut self, slot: usize, list: String, data_type: DataType) -> String {
        let inputs = vec![list, self.integer("zero", 0), self.integer("any_shape", -1)];
        let name = format!("kept_{slot}");
        self.add(&name, "TensorListGetItem", inputs, [("element_dtype", data_type.into())]);
        format!("{name}:item:0")
    }
}
