//! Kernels against the float64 oracle, on every instruction set and executor.

use crate::common::compare::{Failures, close};
use crate::common::data::Sizes;
use crate::common::executors::{Named, executors};
use crate::common::kernels::{Kernel, kernels, kernels_of_other_functions, sequence_kernels};
use blockcell_kernels::{Context, Isa};

const TIMES: [usize; 5] = [3, 1, 2, 0, 5];
const BATCHES: [usize; 11] = [0, 1, 2, 3, 5, 6, 7, 20, 64, 65, 129];
const INPUT_SIZES: [usize; 7] = [0, 1, 15, 16, 17, 33, 64];
const CELL_SIZES: [usize; 13] = [0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 130];

/// Every pair of two sizes occurs, with some third and fourth one.
fn grid() -> Vec<Sizes> {
    let mut all = Vec::new();
    for (b, &batch) in BATCHES.iter().enumerate() {
        for (c, &cell_size) in CELL_SIZES.iter().enumerate() {
            let input_size = INPUT_SIZES[(b + c) % INPUT_SIZES.len()];
            let time = TIMES[(2 * b + c) % TIMES.len()];
            all.push(Sizes { time, batch, input_size, cell_size });
        }
    }
    all
}

/// Work for several tasks: many columns, many rows, long sums.
const LARGE: [Sizes; 6] = [
    Sizes::new(2, 3, 5, 530),
    Sizes::new(3, 1, 700, 9),
    Sizes::new(1, 1, 2, 600),
    Sizes::new(2, 130, 1, 200),
    Sizes::new(2, 1000, 3, 5),
    Sizes::new(2, 300, 1, 70),
];

/// Many steps.
const LONG: [Sizes; 3] =
    [Sizes::new(2000, 2, 3, 5), Sizes::new(300, 1, 20, 17), Sizes::new(70, 9, 2, 33)];

/// `tolerance` is in terms of the kernel's own.
fn check(
    failures: &mut Failures,
    kernel: &dyn Kernel,
    sizes: Sizes,
    seed: u64,
    executors: &[&Named],
    tolerance: f64,
) {
    let tolerance = tolerance * kernel.tolerance();
    let (inputs, want) = kernel.inputs_and_want(sizes, seed);
    for isa in Isa::available() {
        for (name, executor) in executors {
            let context = Context::new(isa, &**executor);
            let got = kernel.outputs(&context, sizes, &inputs);
            let case = format!("{}, {sizes:?}, {}, {name}", kernel.name(), isa.name());
            let close = |name: &str, got: &_, want: &_| close(name, got, want, tolerance);
            failures.note(case, kernel.compare(&got, &want, close));
        }
    }
}

#[test]
fn grid_holds_every_pair_of_sizes() {
    let grid = grid();
    for &input_size in &INPUT_SIZES {
        for &batch in &BATCHES {
            assert!(grid.iter().any(|s| (s.batch, s.input_size) == (batch, input_size)));
        }
        for &cell_size in &CELL_SIZES {
            assert!(grid.iter().any(|s| (s.cell_size, s.input_size) == (cell_size, input_size)));
        }
    }
    for &time in &TIMES {
        for &batch in &BATCHES {
            assert!(grid.iter().any(|s| (s.time, s.batch) == (time, batch)));
        }
        for &cell_size in &CELL_SIZES {
            assert!(grid.iter().any(|s| (s.time, s.cell_size) == (time, cell_size)));
        }
        for &input_size in &INPUT_SIZES {
            assert!(grid.iter().any(|s| (s.time, s.input_size) == (time, input_size)));
        }
    }
}

/// On one thread and in one other way, which takes turns.
#[test]
fn every_output_is_close_to_the_oracle() {
    let mut failures = Failures::default();
    let (serial, others) = executors().split_first().expect("executors");
    for kernel in kernels() {
        for (seed, sizes) in grid().into_iter().enumerate() {
            let other = &others[seed % others.len()];
            check(&mut failures, &*kernel, sizes, seed as u64, &[serial, other], 1.0);
        }
    }
    failures.finish();
}

/// Of cells and sequences whose functions are not tanh and the logistic function.
#[test]
fn other_functions_are_close_to_the_oracle() {
    let mut failures = Failures::default();
    let (serial, others) = executors().split_first().expect("executors");
    for (n, kernel) in kernels_of_other_functions().into_iter().enumerate() {
        for (seed, sizes) in grid().into_iter().enumerate().skip(n % 5).step_by(5) {
            let other = &others[seed % others.len()];
            check(&mut failures, &*kernel, sizes, seed as u64, &[serial, other], 1.0);
        }
    }
    failures.finish();
}

#[test]
fn large_outputs_are_close_to_the_oracle() {
    let mut failures = Failures::default();
    let [serial, .., most] = executors() else { unreachable!("executors") };
    for kernel in kernels() {
        for (seed, sizes) in LARGE.into_iter().enumerate() {
            check(&mut failures, &*kernel, sizes, 1000 + seed as u64, &[serial, most], 1.0);
        }
    }
    failures.finish();
}

#[test]
fn long_sequences_are_close_to_the_oracle() {
    let mut failures = Failures::default();
    let serial = &executors()[0];
    for kernel in sequence_kernels() {
        for (seed, sizes) in LONG.into_iter().enumerate() {
            // Gradients with respect to weights are sums of thousands of terms, one after the other.
            check(&mut failures, &*kernel, sizes, 2000 + seed as u64, &[serial], 2.0);
        }
    }
    failures.finish();
}
