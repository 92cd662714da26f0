//! The operations of `tests/common` as nodes of a TensorFlow graph.

// Each test crate uses a part of it.
#![allow(dead_code)]

use std::path::Path;

use blockcell_kernels::ops;
use blockcell_host::{
    Attribute, Code, DataType, Element, Error, Graph, Library, Options, Output, Session, Tensor,
};
use half::{bf16, f16};
use ndarray::{ArrayD, IxDyn};

use crate::common::Tensors;
use crate::common::kernels::{self, Kernel};

/// The label of blockcell's kernels.
pub(crate) const OURS: &str = "blockcell";

/// Loads the library that `scripts/test_host.sh` names.
pub(crate) fn load() {
    let path = std::env::var_os("BLOCKCELL_LIBRARY")
        .expect("BLOCKCELL_LIBRARY must name libblockcell.so: run scripts/test_host.sh");
    if let Err(error) = Library::load(Path::new(&path)) {
        panic!("cannot load {}: {error}", path.display());
    }
}

/// A node that runs a kernel's operation on placeholders.
pub(crate) struct Node<'g> {
    data_type: DataType,
    /// The place of the input that has numbers of time steps.
    steps: Option<usize>,
    inputs: Vec<Output<'g>>,
    outputs: Vec<Output<'g>>,
}

impl<'g> Node<'g> {
    /// Adds the node to `graph`, for TensorFlow's choice of kernel or for those of a label.
    pub(crate) fn add(graph: &'g Graph, kernel: &dyn Kernel, label: Option<&str>) -> Self {
        let (op, data_type) = (kernel.op(), data_type(kernel));
        let placeholder = |input: &ops::Tensor| {
            let data_type = if input.is_steps() { DataType::TF_INT64 } else { data_type };
            graph.placeholder(input.name, data_type).expect("a placeholder")
        };
        let inputs: Vec<_> = op.inputs.iter().map(placeholder).collect();
        let of_node = |(name, value)| match value {
            kernels::Attribute::Bool(value) => (name, Attribute::Bool(value)),
            kernels::Attribute::Float(value) => (name, Attribute::Float(value)),
            kernels::Attribute::Text(value) => (name, Attribute::String(value)),
        };
        let mut attributes: Vec<_> = kernel.attributes().into_iter().map(of_node).collect();
        attributes.extend(label.map(|label| ("_kernel", Attribute::String(label))));
        let node = graph.add(op.name, "node", &inputs, &attributes);
        let node = node.unwrap_or_else(|error| panic!("{}: {error}", kernel.name()));
        let outputs = (0..op.outputs.len()).map(|index| node.output(index)).collect();
        Node { data_type, steps: kernel.steps(), inputs, outputs }
    }

    /// Runs the node.
    pub(crate) fn run(&self, session: &Session<'_>, inputs: &Tensors) -> Result<Tensors, Error> {
        match self.data_type {
            DataType::TF_FLOAT => self.run_as::<f32>(session, inputs),
            DataType::TF_HALF => self.run_as::<f16>(session, inputs),
            DataType::TF_BFLOAT16 => self.run_as::<bf16>(session, inputs),
            other => unreachable!("no kernel is of {other:?}"),
        }
    }

    fn run_as<T: Element + blockcell_kernels::Element>(
        &self,
        session: &Session<'_>,
        inputs: &Tensors,
    ) -> Result<Tensors, Error> {
        let tensor = |(n, tensor)| {
            if Some(n) == self.steps { to_steps(tensor) } else { to_tensorflow::<T>(tensor) }
        };
        let inputs: Vec<_> = inputs.iter().enumerate().map(tensor).collect();
        let feeds: Vec<_> = self.inputs.iter().copied().zip(&inputs).collect();
        Ok(session.run(&feeds, &self.outputs)?.iter().map(from_tensorflow::<T>).collect())
    }
}

/// Runs a kernel's operation in a graph of its own.
pub(crate) fn run(
    kernel: &dyn Kernel,
    label: Option<&str>,
    options: Options,
    inputs: &Tensors,
) -> Tensors {
    let graph = Graph::new();
    let node = Node::add(&graph, kernel, label);
    let session = Session::new(&graph, options).expect("a session");
    node.run(&session, inputs).unwrap_or_else(|error| panic!("{}: {error}", kernel.name()))
}

/// Whether `result` is TensorFlow's report of an argument that `complaint` is about.
pub(crate) fn is_refusal<T>(result: Result<T, Error>, complaint: &str) -> Result<(), String> {
    match result {
        Ok(_) => Err("no error".to_owned()),
        Err(error)
            if error.code == Code::TF_INVALID_ARGUMENT && error.message.contains(complaint) =>
        {
            Ok(())
        }
        Err(error) => Err(format!("expected an error with {complaint:?}, got {error}")),
    }
}

fn data_type(kernel: &dyn Kernel) -> DataType {
    match kernel.element() {
        ops::DataType::BFloat16 => DataType::TF_BFLOAT16,
        ops::DataType::Half => DataType::TF_HALF,
        _ => DataType::TF_FLOAT,
    }
}

/// The values as numbers of time steps.
fn to_steps(tensor: &ArrayD<f64>) -> Tensor {
    let data: Vec<_> = tensor.iter().map(|&value| value as i64).collect();
    Tensor::new(tensor.shape(), &data)
}

/// The values as elements of type `T`, which they have been rounded to.
fn to_tensorflow<T: Element + blockcell_kernels::Element>(tensor: &ArrayD<f64>) -> Tensor {
    let data: Vec<_> = tensor.iter().map(|&value| T::from_f32(value as f32)).collect();
    Tensor::new(tensor.shape(), &data)
}

fn from_tensorflow<T: Element + blockcell_kernels::Element>(tensor: &Tensor) -> ArrayD<f64> {
    let data = tensor.data::<T>().iter().map(|value| value.to_f32().into()).collect();
    ArrayD::from_shape_vec(IxDyn(&tensor.shape()), data).expect("as large as its shape")
}
