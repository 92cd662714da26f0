//! Empty tensors: a sum over nothing is zero, and sizes that no element needs cost nothing.

mod common;

use blockcell::{Context, Isa, Serial};
use common::compare::Failures;
use common::data::Sizes;
use common::kernels::{filled, kernels};

#[test]
fn sums_over_nothing_are_zeros() {
    let mut failures = Failures::default();
    for kernel in kernels() {
        for (batch, input_size, cell_size) in
            [(0, 3, 4), (3, 0, 4), (3, 5, 0), (3, 0, 0), (0, 0, 0)]
        {
            let sizes = Sizes { batch, input_size, cell_size };
            for isa in Isa::available() {
                let context = Context { isa, executor: &Serial };
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
    failures.finish();
}

/// Tensors of, say, 2^55 rows and no columns are valid, and take neither time nor memory.
#[test]
fn huge_sizes_without_elements_are_nothing() {
    const HUGE: usize = 1 << 55;
    for kernel in kernels() {
        for (batch, input_size, cell_size) in [(0, HUGE, 0), (HUGE, 0, 0)] {
            let sizes = Sizes { batch, input_size, cell_size };
            let inputs = filled(&kernel.input_shapes(sizes), 0.5);
            let got = kernel.outputs(&Context::default(), sizes, &inputs);
            assert!(got.iter().flatten().all(|&value| value == 0.0), "{sizes:?}");
        }
    }
}
