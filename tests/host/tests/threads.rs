//! Results are the same bit for bit for any number of TensorFlow's threads.
//!
//! Alone in its process, because it counts the process's threads.

#[path = "../../../kernels/tests/common/mod.rs"]
mod common;
mod support;

use std::time::{Duration, Instant};

use blockcell_kernels::Context;
use blockcell_host::{Graph, Options, Session};
use common::Tensors;
use common::compare::{Failures, same_bits};
use common::data::{Data, Sizes};
use common::kernels::{Kernel, kernels};
use support::Node;

/// Random inputs, without the forward step that makes them consistent: that takes long at this size.
fn inputs(kernel: &dyn Kernel, sizes: Sizes) -> Tensors {
    let mut data = Data::new(1, kernel.round());
    let shapes = kernel.input_shapes(sizes);
    let tensor = |(n, shape): (usize, &Vec<usize>)| match kernel.steps() {
        Some(steps) if steps == n => data.steps(shape, sizes.time),
        _ => data.uniform(shape, 1.0),
    };
    shapes.iter().enumerate().map(tensor).collect()
}

/// The number of threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("a Linux with /proc").count()
}

/// Waits until threads of sessions that have ended are gone, which the system takes its time for.
fn wait_for(threads_before: usize) {
    let end = Instant::now() + Duration::from_secs(10);
    while threads() > threads_before && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    support::load();
    // What all sessions share is there from the first one on.
    let first = Graph::new();
    let _first = Session::new(&first, Options::default()).expect("a session");
    // Enough for TensorFlow to use more than one thread.
    let sizes = Sizes::new(2, 260, 8, 256);
    let mut failures = Failures::default();
    let shared = threads();
    for kernel in kernels() {
        let inputs = inputs(&*kernel, sizes);
        let want = kernel.outputs(&Context::default(), sizes, &inputs);
        for intra_op_threads in 1..=3 {
            let graph = Graph::new();
            let node = Node::add(&graph, &*kernel, None);
            wait_for(shared);
            let before = threads();
            let session = Session::new(&graph, Options { intra_op_threads }).expect("a session");
            let pool = threads() - before;
            let case = format!("{}, {intra_op_threads} threads", kernel.name());
            let message = format!("it has {pool}: set TF_OVERRIDE_GLOBAL_THREADPOOL=1");
            failures.check(&case, pool == usize::from(intra_op_threads), message);
            let got = node.run(&session, &inputs).expect("a good call");
            failures.note(&case, kernel.compare(&got, &want, same_bits));
        }
    }
    failures.finish();
}
