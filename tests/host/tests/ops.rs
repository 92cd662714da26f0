//! blockcell in TensorFlow, loaded by a program that has no Python: what the operations return is
//! what their Rust functions return, bit for bit, and what they refuse does no harm.

#[path = "../../../kernels/tests/common/mod.rs"]
mod common;
mod support;

use blockcell_kernels::{Context, Isa, ops};
use blockcell_host::{Graph, Options, Session};
use common::Tensors;
use common::compare::{Failures, same_bits};
use common::data::Sizes;
use common::kernels::{GruBlockCellGrad, Kernel, filled, kernels};
use ndarray::{ArrayD, IxDyn};
use support::{Node, OURS, is_refusal};

#[test]
fn info_says_that_the_operations_are_taken_over() {
    support::load();
    let graph = Graph::new();
    let node = graph.add("BlockcellInfo", "info", &[], &[]).expect("the library's own operation");
    let session = Session::new(&graph, Options::default()).expect("a session");
    let results = session.run(&[], &[node.output(0)]).expect("a description");

    let info: serde_json::Value = serde_json::from_str(results[0].string()).expect("JSON");
    let names: Vec<_> = ops::BLOCK.iter().map(|op| op.name).collect();
    let stock: Vec<_> = ops::BLOCK.iter().filter(|op| op.is_stock).map(|op| op.name).collect();
    assert_eq!(info["taken_over"], serde_json::json!(stock), "{info}");
    let all = info["ops"].as_array().expect("a list").iter();
    let all: Vec<_> = all.map(|op| op.as_str().expect("a name")).collect();
    let (of_table, of_cudnn) = all.split_at(names.len());
    assert_eq!(of_table, names, "{info}");
    assert!(!of_cudnn.is_empty(), "{info}");
    assert!(of_cudnn.iter().all(|op| op.starts_with("CudnnRNN")), "{info}");
    assert_eq!(info["override"], "priority", "{info}");
    assert_eq!(info["isa"], Isa::get().name(), "{info}");
    assert_eq!(info["tensorflow_running"], blockcell_host::version(), "{info}");
}

/// Empty tensors, less than a vector, and work for many tasks.
fn sizes() -> impl Iterator<Item = Sizes> {
    let sizes = [(0, 3, 4), (2, 0, 3), (1, 1, 1), (3, 5, 9), (7, 33, 64), (130, 150, 140)];
    sizes.into_iter().map(|(batch, input, cell)| Sizes::new(3, batch, input, cell))
}

#[test]
fn operations_return_the_bits_of_their_rust_functions() {
    support::load();
    let mut failures = Failures::default();
    for kernel in kernels() {
        for sizes in sizes() {
            let inputs = kernel.inputs(sizes, 1);
            let want = kernel.outputs(&Context::default(), sizes, &inputs);
            for label in [None, Some(OURS).filter(|_| kernel.op().is_stock)] {
                let got = support::run(&*kernel, label, Options::default(), &inputs);
                let case = format!("{}, {sizes:?}, label {label:?}", kernel.name());
                failures.note(case, kernel.compare(&got, &want, same_bits));
            }
        }
    }
    failures.finish();
}

/// `shape` without its first axis, with one more, and with more or less of each dimension.
fn wrong_shapes(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![[shape, &[1]].concat()];
    all.extend(shape.get(1..).map(<[usize]>::to_vec));
    for axis in 0..shape.len() {
        for other in [0, shape[axis] + 1] {
            let mut shape = shape.to_vec();
            shape[axis] = other;
            all.push(shape);
        }
    }
    all
}

/// What the Rust function says of inputs of these shapes.
fn complaint(kernel: &dyn Kernel, inputs: &Tensors) -> Option<String> {
    let shapes: Vec<_> = inputs.iter().map(ArrayD::shape).collect();
    kernel.op().check(kernel.uses_optional(), &shapes).err().map(|error| error.to_string())
}

#[test]
fn malformed_input_is_an_error_and_the_session_goes_on() {
    support::load();
    let mut failures = Failures::default();
    let sizes = Sizes::new(4, 3, 2, 5);
    for kernel in kernels() {
        let graph = Graph::new();
        let node = Node::add(&graph, &*kernel, None);
        let session = Session::new(&graph, Options::default()).expect("a session");
        let good = kernel.inputs(sizes, 1);
        let want = kernel.outputs(&Context::default(), sizes, &good);
        for (n, input) in kernel.op().inputs.iter().enumerate() {
            for wrong in wrong_shapes(good[n].shape()) {
                let mut bad = good.clone();
                bad[n] = ArrayD::zeros(IxDyn(&wrong));
                // Vectors that are not used may have any length.
                let Some(complaint) = complaint(&*kernel, &bad) else { continue };
                let case = format!("{}, {} of shape {wrong:?}", kernel.name(), input.name);
                failures.note(&case, is_refusal(node.run(&session, &bad), &complaint));
                let got = node.run(&session, &good).expect("a call after one that was refused");
                failures.note(&case, kernel.compare(&got, &want, same_bits));
            }
        }
    }
    failures.finish();
}

#[test]
fn an_error_names_tensor_and_shapes() {
    support::load();
    let kernel: &dyn Kernel = &GruBlockCellGrad;
    let (graph, sizes) = (Graph::new(), Sizes::new(1, 3, 2, 4));
    let node = Node::add(&graph, kernel, None);
    let session = Session::new(&graph, Options::default()).expect("a session");
    let mut shapes = kernel.input_shapes(sizes);
    shapes.last_mut().expect("d_h")[1] = 5;
    let result = node.run(&session, &filled(&shapes, 0.5));
    let complaint = "GRUBlockCellGrad: d_h must have shape [batch, cell_size] = [3, 4], got [3, 5]";
    assert_eq!(is_refusal(result, complaint), Ok(()));
}
