//! The operations of `tests/common` as nodes of a TensorFlow graph.

// Each test crate uses a part of it.
#![allow(dead_code)]

use std::path::Path;

use blockcell_host::{
    Attribute, Code, DataType, Element, Error, Graph, Library, Options, Output, Session, Tensor,
};
use half::f16;
use ndarray::{ArrayD, IxDyn};

use crate::common::Tensors;
use crate::common::kernels::Kernel;

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
    inputs: Vec<Output<'g>>,
    outputs: Vec<Output<'g>>,
}

impl<'g> Node<'g> {
    /// Adds the node to `graph`, for TensorFlow's choice of kernel or for those of a label.
    pub(crate) fn add(graph: &'g Graph, kernel: &dyn Kernel, label: Option<&str>) -> Self {
        let (op, data_type) = (kernel.op(), data_type(kernel));
        let placeholder = |name| graph.placeholder(name, data_type).expect("a placeholder");
        let inputs: Vec<_> = op.inputs.iter().map(|input| placeholder(input.name)).collect();
        let mut attributes = Vec::new();
        // An operation that can have peepholes has no default for whether it has.
        if op.inputs.iter().any(|input| input.name == "wci") {
            attributes.push(("use_peephole", Attribute::Bool(kernel.use_peephole())));
        }
        attributes.extend(label.map(|label| ("_kernel", Attribute::String(label))));
        let node = graph.add(op.name, "node", &inputs, &attributes);
        let node = node.unwrap_or_else(|error| panic!("{}: {error}", kernel.name()));
        let outputs = (0..op.outputs.len()).map(|index| node.output(index)).collect();
        Node { data_type, inputs, outputs }
    }

    /// Runs the node.
    pub(crate) fn run(&self, session: &Session<'_>, inputs: &Tensors) -> Result<Tensors, Error> {
        match self.data_type {
            DataType::TF_FLOAT => self.run_as::<f32>(session, inputs),
            DataType::TF_HALF => self.run_as::<f16>(session, inputs),
            other => unreachable!("no kernel is of {other:?}"),
        }
    }

    fn run_as<T: Element + blockcell::Element>(
        &self,
        session: &Session<'_>,
        inputs: &Tensors,
    ) -> Result<Tensors, Error> {
        let inputs: Vec<_> = inputs.iter().map(to_tensorflow::<T>).collect();
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

/// The element type of a kernel, told by how it rounds.
fn data_type(kernel: &dyn Kernel) -> DataType {
    let third = 1.0 / 3.0_f64;
    if (kernel.round())(third) == f64::from(third as f32) {
        DataType::TF_FLOAT
    } else {
        DataType::TF_HALF
    }
}

/// The values as elements of type `T`, which they have been rounded to.
fn to_tensorflow<T: Element + blockcell::Element>(tensor: &ArrayD<f64>) -> Tensor {
    let data: Vec<_> = tensor.iter().map(|&value| T::from_f32(value as f32)).collect();
    Tensor::new(tensor.shape(), &data)
}

fn from_tensorflow<T: Element + blockcell::Element>(tensor: &Tensor) -> ArrayD<f64> {
    let data = tensor.data::<T>().iter().map(|value| value.to_f32().into()).collect();
    ArrayD::from_shape_vec(IxDyn(&tensor.shape()), data).expect("as large as its shape")
}
