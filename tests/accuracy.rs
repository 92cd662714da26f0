//! Kernels against the float64 oracle, on every instruction set and executor.

mod common;

use blockcell::{Context, Isa};
use common::compare::{Failures, close};
use common::data::Sizes;
use common::executors::executors;
use common::kernels::{Kernel, kernels};

const BATCHES: [usize; 11] = [0, 1, 2, 3, 5, 6, 7, 20, 64, 65, 129];
const INPUT_SIZES: [usize; 7] = [0, 1, 15, 16, 17, 33, 64];
const CELL_SIZES: [usize; 13] = [0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 130];

/// Every pair of two sizes occurs, with some third one.
fn grid() -> Vec<Sizes> {
    let mut all = Vec::new();
    for (b, &batch) in BATCHES.iter().enumerate() {
        for (c, &cell_size) in CELL_SIZES.iter().enumerate() {
            let input_size = INPUT_SIZES[(b + c) % INPUT_SIZES.len()];
            all.push(Sizes { batch, input_size, cell_size });
        }
    }
    all
}

/// Work for several tasks: many columns, many rows, long sums.
fn large() -> Vec<Sizes> {
    [(3, 5, 600), (1, 700, 9), (1, 2, 1030), (130, 1, 300), (2000, 3, 5), (300, 1, 70)]
        .map(|(batch, input_size, cell_size)| Sizes { batch, input_size, cell_size })
        .to_vec()
}

fn check(failures: &mut Failures, kernel: &dyn Kernel, sizes: Sizes, seed: u64) {
    let (inputs, want) = kernel.inputs_and_want(sizes, seed);
    for isa in Isa::available() {
        for (name, executor) in &executors() {
            let context = Context { isa, executor: &**executor };
            let got = kernel.outputs(&context, sizes, &inputs);
            let case = format!("{}, {sizes:?}, {}, {name}", kernel.name(), isa.name());
            let close = |name: &str, got: &_, want: &_| close(name, got, want, kernel.tolerance());
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
}

#[test]
fn every_output_is_close_to_the_oracle() {
    let mut failures = Failures::default();
    for kernel in kernels() {
        for (seed, sizes) in grid().into_iter().enumerate() {
            check(&mut failures, &*kernel, sizes, seed as u64);
        }
    }
    failures.finish();
}

#[test]
fn large_outputs_are_close_to_the_oracle() {
    let mut failures = Failures::default();
    for kernel in kernels() {
        for (seed, sizes) in large().into_iter().enumerate() {
            check(&mut failures, &*kernel, sizes, 1000 + seed as u64);
        }
    }
    failures.finish();
}
