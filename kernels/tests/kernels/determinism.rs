//! Results are the same bit for bit for all executors, from run to run, and for a row whatever the
//! others are.

use crate::common::compare::{Failures, rows_of, same_bits};
use crate::common::data::Sizes;
use crate::common::executors::executors;
use crate::common::kernels::{Kernel, batch_axis, kernels};
use blockcell_kernels::{Context, Isa, Serial};

/// Work for one task and for many, in blocks of all heights, with sums over few and many rows. With nine or more steps
/// sequences pack weights: for few rows in another order than for many.
const SIZES: [Sizes; 17] = [
    Sizes::new(2, 0, 3, 4),
    Sizes::new(3, 1, 16, 17),
    Sizes::new(4, 2, 5, 9),
    Sizes::new(2, 3, 5, 530),
    Sizes::new(5, 4, 64, 33),
    Sizes::new(3, 7, 33, 31),
    Sizes::new(1, 11, 1, 130),
    Sizes::new(2, 65, 64, 130),
    Sizes::new(1, 130, 1, 200),
    Sizes::new(2, 300, 1, 70),
    Sizes::new(10, 1, 3, 200),
    Sizes::new(11, 6, 5, 70),
    Sizes::new(9, 23, 4, 97),
    // Several threads, or tiles, have some cells of a few rows each.
    Sizes::new(9, 3, 4, 390),
    // Threads turn to other work between its steps.
    Sizes::new(30, 18, 2, 210),
    // The weights of x are packed once, and not where some rows are alone: in bands of rows, and in tiles of cells.
    Sizes::new(16, 67, 5, 33),
    Sizes::new(9, 120, 3, 261),
];

/// With the most threads, and in one other way, which takes turns.
#[test]
fn executors_and_runs_agree() {
    let mut failures = Failures::default();
    let [others @ .., most] = executors() else { unreachable!("executors") };
    let mut turns = others.iter().cycle();
    for kernel in kernels() {
        for (sizes, other) in SIZES.into_iter().zip(&mut turns) {
            let inputs = kernel.inputs(sizes, 1);
            for isa in Isa::available() {
                let want = kernel.outputs(&Context::new(isa, &Serial), sizes, &inputs);
                for (name, executor) in [other, most] {
                    let context = Context::new(isa, &**executor);
                    let got = kernel.outputs(&context, sizes, &inputs);
                    let case = format!("{}, {sizes:?}, {}", kernel.name(), isa.name());
                    let same = kernel.compare(&got, &want, same_bits);
                    failures.note(format!("{case}, {name}"), same);
                }
            }
        }
    }
    failures.finish();
}

#[test]
fn rows_do_not_depend_on_other_rows() {
    let mut failures = Failures::default();
    for kernel in kernels() {
        for sizes in SIZES.into_iter().filter(|sizes| sizes.batch > 0) {
            let inputs = kernel.inputs(sizes, 2);
            for isa in Isa::available() {
                let context = Context::new(isa, &Serial);
                let all = kernel.outputs(&context, sizes, &inputs);
                for rows in samples(kernel.op().name, sizes.batch) {
                    let alone = Sizes { batch: rows.len(), ..sizes };
                    let case = format!("{}, {sizes:?}, {}", kernel.name(), isa.name());
                    let same = rows_are_same(&*kernel, &context, alone, &rows, &inputs, &all);
                    failures.note(format!("{case}, rows {rows:?}"), same);
                }
            }
        }
    }
    failures.finish();
}

/// All rows in another order; and some rows by themselves, and some few together, but of the kernel
/// whose results depend on how many rows there are.
fn samples(kernel: &str, batch: usize) -> Vec<Vec<usize>> {
    let reversed = (0..batch).rev().collect();
    if kernel == "GRUBlockCellGrad" {
        return vec![reversed];
    }
    let picked = [0, 1, 4, batch / 2, batch.saturating_sub(2), batch - 1];
    let mut all: Vec<_> =
        picked.into_iter().filter(|&row| row < batch).map(|row| vec![row]).collect();
    all.dedup();
    all.push((0..batch).step_by(batch.div_ceil(6)).collect());
    all.push(reversed);
    all
}

/// Computes `rows` alone, and compares all outputs that have rows; the others are sums over them.
fn rows_are_same(
    kernel: &dyn Kernel,
    context: &Context<'_>,
    sizes: Sizes,
    rows: &[usize],
    inputs: &crate::common::Tensors,
    all: &crate::common::Tensors,
) -> Result<(), String> {
    let mut picked = inputs.clone();
    for (tensor, input) in picked.iter_mut().zip(kernel.op().inputs) {
        if let Some(axis) = batch_axis(input) {
            *tensor = rows_of(tensor, axis, rows);
        }
    }
    let got = kernel.outputs(context, sizes, &picked);
    for (output, (got, all)) in kernel.op().outputs.iter().zip(got.iter().zip(all)) {
        if let Some(axis) = batch_axis(output) {
            same_bits(output.name, got, &rows_of(all, axis, rows))?;
        }
    }
    Ok(())
}
