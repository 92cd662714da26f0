//! Empty tensors: a sum over nothing is zero, and sizes that no element needs cost nothing.

use crate::common::Tensors;
use crate::common::compare::{Failures, close};
use crate::common::data::Sizes;
use crate::common::kernels::{Kernel, filled, kernels, sequence_kernels};
use blockcell_kernels::{Context, Isa, Serial};

#[test]
fn sums_over_nothing_are_zeros() {
    let mut failures = Failures::default();
    for kernel in kernels() {
        for (batch, input_size, cell_size) in
            [(0, 3, 4), (3, 0, 4), (3, 5, 0), (3, 0, 0), (0, 0, 0)]
        {
            for time in [0, 1, 3] {
                let sizes = Sizes { time, batch, input_size, cell_size };
                for isa in Isa::available() {
                    let context = Context::new(isa, &Serial);
                    let got = kernel.outputs(&context, sizes, &kernel.inputs(sizes, 1));
                    let mut values = got.iter().flatten();
                    let right = if batch == 0 || cell_size == 0 {
                        values.all(|value| value.to_bits() == 0)
                    } else {
                        values.all(|value| value.is_finite())
                    };
                    let case = format!("{}, {sizes:?}, {}", kernel.name(), isa.name());
                    failures.check(case, right, format!("{got:?}"));
                }
            }
        }
    }
    failures.finish();
}

/// Without steps states and their gradients pass unchanged, or are zero where the equations say
/// so; all else is a sum over nothing.
#[test]
fn nothing_happens_in_no_steps() {
    let mut failures = Failures::default();
    for kernel in sequence_kernels() {
        for time in [0, 1, 4] {
            let sizes = Sizes::new(time, 3, 5, 17);
            let mut inputs = kernel.inputs(sizes, 1);
            inputs[0].fill(0.0);
            let want = kernel.want(&inputs);
            for isa in Isa::available() {
                let context = Context::new(isa, &Serial);
                let got = kernel.outputs(&context, sizes, &inputs);
                let exact = |name: &str, got: &_, want: &_| close(name, got, want, 0.0);
                let case = format!("{}, {sizes:?}, {}", kernel.name(), isa.name());
                failures.note(case, kernel.compare(&got, &want, exact));
            }
        }
    }
    failures.finish();
}

/// Inputs of odd values, with as many steps done as there are.
fn inputs(kernel: &dyn Kernel, sizes: Sizes) -> Tensors {
    let mut inputs = filled(&kernel.input_shapes(sizes), 0.5);
    if let Some(steps) = kernel.steps() {
        inputs[steps].fill(sizes.time as f64);
    }
    inputs
}

/// Tensors of, say, 2^55 rows and no columns are valid, and take neither time nor memory.
#[test]
fn huge_sizes_without_elements_are_nothing() {
    const HUGE: usize = 1 << 55;
    const LONG: usize = 1 << 40;
    for kernel in kernels() {
        let mut all = vec![Sizes::new(3, 0, HUGE, 0)];
        if !kernel.is_sequence() {
            all.push(Sizes::new(0, HUGE, 0, 0));
        } else {
            all.push(Sizes::new(LONG, 0, 3, 4));
            all.push(Sizes::new(LONG, 0, 0, 4));
            all.push(Sizes::new(LONG, 0, 3, 0));
            all.push(Sizes::new(LONG, 3, 0, 0));
        }
        for sizes in all {
            let inputs = inputs(&*kernel, sizes);
            let got = kernel.outputs(&Context::default(), sizes, &inputs);
            let zeros = got.iter().flatten().all(|&value| value == 0.0);
            assert!(zeros, "{}, {sizes:?}", kernel.name());
        }
    }
}
