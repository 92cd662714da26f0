//! TensorFlow's `NodeDef` and a node as plain data.
//!
//! The messages have the fields that rewrites look at, with the numbers of TensorFlow's `node_def.proto`,
//! `attr_value.proto`, `tensor.proto` and `tensor_shape.proto`. Others are skipped.

use std::collections::BTreeMap;

use blockcell_graphs::{
    Attribute, Constant, DataType, Device, Function, FunctionNode, Node, Values, ops,
};
use half::f16;
use prost::{Message, Oneof};

use super::ffi::GraphNode;

/// Patterns look at scalars and short vectors. Longer constants are weights, and the shim leaves their
/// elements out.
const MOST_VALUES: usize = 64;

/// The numbers of the steps of a sequence are a vector, too.
const MOST_INTEGERS: usize = 4096;

/// TensorFlow's `FunctionDef`, in `function.proto`.
#[derive(Clone, PartialEq, Message)]
struct FunctionDef {
    #[prost(message, optional, tag = "1")]
    signature: Option<OpDef>,
    #[prost(message, repeated, tag = "3")]
    node_def: Vec<NodeDef>,
    #[prost(btree_map = "string, string", tag = "4")]
    ret: BTreeMap<String, String>,
    #[prost(btree_map = "string, message", tag = "5")]
    attr: BTreeMap<String, AttrValue>,
}

/// TensorFlow's `OpDef`, in `op_def.proto`.
#[derive(Clone, PartialEq, Message)]
struct OpDef {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    input_arg: Vec<ArgDef>,
    #[prost(message, repeated, tag = "3")]
    output_arg: Vec<ArgDef>,
}

#[derive(Clone, PartialEq, Message)]
struct ArgDef {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int32, tag = "3")]
    r#type: i32,
}

#[derive(Clone, PartialEq, Message)]
struct NodeDef {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    op: String,
    #[prost(string, repeated, tag = "3")]
    input: Vec<String>,
    #[prost(string, tag = "4")]
    device: String,
    #[prost(btree_map = "string, message", tag = "5")]
    attr: BTreeMap<String, AttrValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AttrValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5, 6, 7, 8, 10")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Value {
    #[prost(message, tag = "1")]
    List(ListValue),
    #[prost(bytes, tag = "2")]
    S(Vec<u8>),
    #[prost(int64, tag = "3")]
    I(i64),
    #[prost(float, tag = "4")]
    F(f32),
    #[prost(bool, tag = "5")]
    B(bool),
    #[prost(int32, tag = "6")]
    Type(i32),
    #[prost(message, tag = "7")]
    Shape(TensorShapeProto),
    #[prost(message, tag = "8")]
    Tensor(TensorProto),
    #[prost(message, tag = "10")]
    Func(NameAttrList),
}

#[derive(Clone, PartialEq, Message)]
struct NameAttrList {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct ListValue {
    #[prost(bytes, repeated, tag = "2")]
    s: Vec<Vec<u8>>,
    #[prost(int64, repeated, tag = "3")]
    i: Vec<i64>,
    #[prost(int32, repeated, tag = "6")]
    r#type: Vec<i32>,
    #[prost(message, repeated, tag = "7")]
    shape: Vec<TensorShapeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorShapeProto {
    #[prost(message, repeated, tag = "2")]
    dim: Vec<Dim>,
    #[prost(bool, tag = "3")]
    unknown_rank: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Dim {
    #[prost(int64, tag = "1")]
    size: i64,
}

#[derive(Clone, PartialEq, Message)]
struct TensorProto {
    #[prost(int32, tag = "1")]
    dtype: i32,
    #[prost(message, optional, tag = "2")]
    tensor_shape: Option<TensorShapeProto>,
    #[prost(bytes, tag = "4")]
    tensor_content: Vec<u8>,
    #[prost(float, repeated, tag = "5")]
    float_val: Vec<f32>,
    #[prost(int32, repeated, tag = "7")]
    int_val: Vec<i32>,
    #[prost(int64, repeated, tag = "10")]
    int64_val: Vec<i64>,
    #[prost(bool, repeated, tag = "11")]
    bool_val: Vec<bool>,
    #[prost(int32, repeated, tag = "13")]
    half_val: Vec<i32>,
}

/// A node as plain data, without its inputs.
pub(super) fn describe(node: &GraphNode<'_>) -> Node {
    // A definition that cannot be read has no attributes, and so matches no pattern.
    let definition = NodeDef::decode(node.definition).unwrap_or_default();
    Node {
        name: node.name.to_owned(),
        op: node.op.to_owned(),
        device: Device { name: node.device.to_owned(), is_local_cpu: node.is_local_cpu },
        attributes: attributes_of(read_attributes(node.op, definition.attr)),
        output_types: node.output_types.iter().copied().map(DataType).collect(),
        takes_references: node.takes_references,
        may_wait: ops::may_wait(node.op, node.is_stateful),
        is_target: node.is_target,
        ..Node::default()
    }
}

/// The attributes that rewrites read of nodes of an operation.
fn read_attributes(
    op: &str,
    mut attributes: BTreeMap<String, AttrValue>,
) -> BTreeMap<String, AttrValue> {
    attributes.retain(|name, _| ops::reads(op, name));
    attributes
}

/// A function as plain data. None if its definition cannot be read.
pub(crate) fn describe_function(definition: &[u8]) -> Option<Function> {
    let FunctionDef { signature, node_def, ret, attr } = FunctionDef::decode(definition).ok()?;
    let signature = signature?;
    let arguments = |arguments: Vec<ArgDef>| {
        arguments.into_iter().map(|one| (one.name, DataType(one.r#type))).collect()
    };
    Some(Function {
        name: signature.name,
        attributes: attributes_of(attr),
        inputs: arguments(signature.input_arg),
        outputs: arguments(signature.output_arg),
        nodes: node_def.into_iter().map(function_node_of).collect(),
        results: ret,
    })
}

/// A node of a function as plain data. None if its definition cannot be read.
pub(crate) fn describe_function_node(definition: &[u8]) -> Option<FunctionNode> {
    NodeDef::decode(definition).ok().map(function_node_of)
}

fn function_node_of(node: NodeDef) -> FunctionNode {
    let attributes = attributes_of(node.attr);
    FunctionNode { name: node.name, op: node.op, inputs: node.input, attributes }
}

fn attributes_of<C: FromIterator<(String, Attribute)>>(
    attributes: BTreeMap<String, AttrValue>,
) -> C {
    attributes.into_iter().map(|(name, value)| (name, attribute_of(value))).collect()
}

/// The definition of a new node, without its inputs.
pub(super) fn encode(node: &Node) -> Vec<u8> {
    let (name, op) = (node.name.clone(), node.op.clone());
    let attributes = node.attributes.iter().map(|(name, value)| (name, value));
    let (device, attr) = (node.device.name.clone(), values_of_all(attributes));
    NodeDef { name, op, input: Vec::new(), device, attr }.encode_to_vec()
}

/// The definition of a new node of a function.
pub(crate) fn encode_function_node(node: FunctionNode) -> Vec<u8> {
    let attr = values_of_all(node.attributes.iter());
    let FunctionNode { name, op, inputs: input, .. } = node;
    NodeDef { name, op, input, device: String::new(), attr }.encode_to_vec()
}

fn values_of_all<'a>(
    attributes: impl Iterator<Item = (&'a String, &'a Attribute)>,
) -> BTreeMap<String, AttrValue> {
    let value = |attribute| AttrValue { value: Some(value_of(attribute)) };
    attributes.map(|(name, attribute)| (name.clone(), value(attribute))).collect()
}

fn attribute_of(value: AttrValue) -> Attribute {
    match value.value {
        Some(Value::List(ListValue { shape, .. })) if shape.len() == 1 => {
            Attribute::Shape(sizes_of(&shape[0]))
        }
        Some(Value::List(list)) if list.s.is_empty() => Attribute::Ints(list.i),
        Some(Value::List(list)) => {
            let texts = list.s.into_iter().map(String::from_utf8).collect::<Result<_, _>>();
            texts.map_or(Attribute::Other, Attribute::Texts)
        }
        Some(Value::S(text)) => String::from_utf8(text).map_or(Attribute::Other, Attribute::Text),
        Some(Value::I(number)) => Attribute::Int(number),
        Some(Value::F(number)) => Attribute::Float(number),
        Some(Value::B(flag)) => Attribute::Bool(flag),
        Some(Value::Type(number)) => Attribute::Type(DataType(number)),
        Some(Value::Shape(shape)) => Attribute::Shape(sizes_of(&shape)),
        Some(Value::Tensor(tensor)) => Attribute::Constant(constant_of(&tensor)),
        Some(Value::Func(function)) => Attribute::Function(function.name),
        None => Attribute::Other,
    }
}

/// # Panics
///
/// If no rewrite gives a node such an attribute.
fn value_of(attribute: &Attribute) -> Value {
    match attribute {
        Attribute::Bool(flag) => Value::B(*flag),
        Attribute::Int(number) => Value::I(*number),
        Attribute::Float(number) => Value::F(*number),
        Attribute::Text(text) => Value::S(text.clone().into_bytes()),
        Attribute::Type(data_type) => Value::Type(data_type.0),
        Attribute::Ints(numbers) => {
            Value::List(ListValue { i: numbers.clone(), ..ListValue::default() })
        }
        Attribute::Types(types) => {
            let r#type = types.iter().map(|one| one.0).collect();
            Value::List(ListValue { r#type, ..ListValue::default() })
        }
        Attribute::Function(name) => Value::Func(NameAttrList { name: name.clone() }),
        Attribute::Constant(constant) => Value::Tensor(tensor_of(constant)),
        Attribute::Texts(_) | Attribute::Shape(_) | Attribute::Other => {
            unreachable!("no rewrite gives a node the attribute {attribute:?}")
        }
    }
}

/// A constant of known elements: the inverse of [`constant_of`].
fn tensor_of(constant: &Constant) -> TensorProto {
    let dim = constant.shape.iter().map(|&size| Dim { size }).collect();
    let mut tensor = TensorProto {
        dtype: constant.data_type.0,
        tensor_shape: Some(TensorShapeProto { dim, unknown_rank: false }),
        ..TensorProto::default()
    };
    match &constant.values {
        Values::Ints(numbers) if constant.data_type == DataType::INT32 => {
            tensor.int_val = numbers.iter().map(|&number| number as i32).collect();
        }
        Values::Ints(numbers) => tensor.int64_val.clone_from(numbers),
        Values::Floats(numbers) if constant.data_type == DataType::HALF => {
            let bits = numbers.iter().map(|&number| f16::from_f32(number).to_bits().into());
            tensor.half_val = bits.collect();
        }
        Values::Floats(numbers) => tensor.float_val.clone_from(numbers),
        Values::Bools(values) => tensor.bool_val.clone_from(values),
        // One stands for all.
        Values::Zeros if constant.data_type == DataType::HALF => tensor.half_val.push(0),
        Values::Zeros => tensor.float_val.push(0.0),
        Values::Unknown => unreachable!("rewrites copy only known constants"),
    }
    tensor
}

fn sizes_of(shape: &TensorShapeProto) -> Option<Vec<i64>> {
    (!shape.unknown_rank).then(|| shape.dim.iter().map(|dim| dim.size).collect())
}

fn constant_of(tensor: &TensorProto) -> Constant {
    let shape = tensor.tensor_shape.as_ref().and_then(sizes_of).unwrap_or_default();
    let data_type = DataType(tensor.dtype);
    let has_values = !tensor.float_val.is_empty() || !tensor.half_val.is_empty();
    let is_zero = tensor.tensor_content.iter().all(|&byte| byte == 0)
        && tensor.float_val.iter().all(|&value| value == 0.0)
        && tensor.half_val.iter().all(|&bits| bits == 0);
    let has_content = has_values || !tensor.tensor_content.is_empty();
    let is_float = matches!(data_type, DataType::FLOAT | DataType::HALF);
    let long = if is_zero && has_content && is_float { Values::Zeros } else { Values::Unknown };
    let values = values_of(tensor, &shape).unwrap_or(long);
    Constant { data_type, shape, values }
}

/// The elements: as bytes, or as numbers, the last of which stands for all that follow. None if
/// they are of another type, or left out.
fn values_of(tensor: &TensorProto, shape: &[i64]) -> Option<Values> {
    let count = shape
        .iter()
        .try_fold(1usize, |count, &size| count.checked_mul(usize::try_from(size).ok()?))?;
    let content = &tensor.tensor_content[..];
    let floats = |values: Vec<f32>| filled(values, count, MOST_VALUES).map(Values::Floats);
    let ints = |values: Vec<i64>| filled(values, count, MOST_INTEGERS).map(Values::Ints);
    match DataType(tensor.dtype) {
        DataType::INT32 if content.is_empty() => {
            ints(tensor.int_val.iter().copied().map(i64::from).collect())
        }
        DataType::INT32 => ints(numbers(content, |bytes| i32::from_le_bytes(bytes).into())),
        DataType::INT64 if content.is_empty() => ints(tensor.int64_val.clone()),
        DataType::INT64 => ints(numbers(content, i64::from_le_bytes)),
        DataType::BOOL => {
            let content = content.iter().map(|&byte| byte != 0);
            let values = content.chain(tensor.bool_val.iter().copied()).collect();
            filled(values, count, MOST_INTEGERS).map(Values::Bools)
        }
        DataType::FLOAT if content.is_empty() => floats(tensor.float_val.clone()),
        DataType::FLOAT => floats(numbers(content, f32::from_le_bytes)),
        DataType::HALF if content.is_empty() => {
            let bits = tensor.half_val.iter().map(|&bits| f16::from_bits(bits as u16).to_f32());
            floats(bits.collect())
        }
        DataType::HALF => floats(numbers(content, |bytes| f16::from_le_bytes(bytes).to_f32())),
        _ => None,
    }
}

fn numbers<const N: usize, T>(content: &[u8], number: fn([u8; N]) -> T) -> Vec<T> {
    let chunks = content.chunks_exact(N);
    chunks.map(|bytes| number(bytes.try_into().expect("a chunk has this length"))).collect()
}

/// All `count` elements: TensorFlow leaves out those at the end that equal the last one, or zero if
/// it writes none at all.
fn filled<T: Copy + Default>(mut values: Vec<T>, count: usize, most: usize) -> Option<Vec<T>> {
    if count > most || values.len() > count {
        return None;
    }
    values.resize(count, values.last().copied().unwrap_or_default());
    Some(values)
}
