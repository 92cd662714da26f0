//! Properties that hold for all shapes and data, on random ones.

use crate::common::compare::{close, close_to_scale, same_bits, scale};
use crate::common::data::Sizes;
use crate::common::executors::executors;
use crate::common::kernels::{filled, kernels};
use blockcell_kernels::ops::Dim;
use blockcell_kernels::{Context, Isa, ops};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(20_151_107),
        ..ProptestConfig::default()
    }
}

fn any_sizes() -> impl Strategy<Value = Sizes> {
    (0..=6_usize, 0..=9_usize, 0..=20_usize, 0..=40_usize)
        .prop_map(|(t, b, d, c)| Sizes::new(t, b, d, c))
}

fn any_kernel() -> impl Strategy<Value = usize> {
    0..kernels().len()
}

/// A kernel of a gradient.
fn any_gradient() -> impl Strategy<Value = usize> {
    let gradients = kernels().into_iter().enumerate().filter(|(_, k)| !k.gradients().is_empty());
    select(gradients.map(|(n, _)| n).collect::<Vec<_>>())
}

fn any_isa() -> impl Strategy<Value = Isa> {
    select(Isa::available())
}

fn fail(result: Result<(), String>) -> Result<(), TestCaseError> {
    result.map_err(TestCaseError::fail)
}

/// The shape that the operation's table gives `tensor`.
fn shape(tensor: &ops::Tensor, sizes: &ops::Sizes) -> Vec<usize> {
    tensor.dims.iter().map(|&dim| sizes.of(dim)).collect()
}

/// One dimension of a tensor, at the edges of what there is.
fn any_dimension() -> impl Strategy<Value = usize> {
    prop_oneof![
        8 => 0..=6_usize,
        1 => select(vec![1 << 31, 1 << 32, 1 << 61, usize::MAX / 2, usize::MAX - 1, usize::MAX]),
    ]
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn outputs_are_close_to_the_oracle(
        sizes in any_sizes(),
        kernel in any_kernel(),
        isa in any_isa(),
        executor in 0..executors().len(),
        seed in 0..1_000_000_u64,
    ) {
        let kernel = &*kernels().swap_remove(kernel);
        let (_, executor) = &executors()[executor];
        let (inputs, want) = kernel.inputs_and_want(sizes, seed);
        let got = kernel.outputs(&Context::new(isa, &**executor), sizes, &inputs);
        let close = |name: &str, got: &_, want: &_| close(name, got, want, kernel.tolerance());
        fail(kernel.compare(&got, &want, close))?;
    }

    /// What is computed does not depend on who reads other gradients.
    #[test]
    fn gradients_that_nobody_reads_are_left_out(
        sizes in any_sizes(),
        kernel in any_gradient(),
        isa in any_isa(),
        executor in 0..executors().len(),
        seed in any::<u64>(),
        unread in any::<u8>(),
    ) {
        let kernel = &*kernels().swap_remove(kernel);
        let (_, executor) = &executors()[executor];
        let context = Context::new(isa, &**executor);
        let inputs = kernel.inputs(sizes, seed);
        let mut want = kernel.outputs(&context, sizes, &inputs);
        let mut shapes = kernel.output_shapes(sizes);
        let of_op = kernel.op().outputs.iter();
        let may_miss = [Dim::TimeOrNone, Dim::InputCellOrNone];
        let may_miss = of_op.enumerate().filter(|(_, tensor)| may_miss.contains(&tensor.dims[0]));
        for (place, (number, _)) in may_miss.enumerate() {
            if unread >> place & 1 == 1 {
                shapes[number][0] = 0;
                want[number] = filled(&shapes, 0.0).swap_remove(number);
            }
        }
        let mut got = filled(&shapes, f64::NAN);
        kernel.call(&context, &inputs, &mut got).expect("a call without some gradients");
        fail(kernel.compare(&got, &want, same_bits))?;
    }

    /// Twice the gradient of the loss is exactly twice every gradient, where numbers of 16 bits
    /// may be so small that they have fewer digits.
    #[test]
    fn doubling_the_gradients_doubles_the_outputs(
        sizes in any_sizes(),
        kernel in any_gradient(),
        isa in any_isa(),
        power in -3..=3_i32,
        seed in any::<u64>(),
    ) {
        let kernel = &*kernels().swap_remove(kernel);
        prop_assume!(!kernel.is_16_bit());
        let context = Context { isa, ..Context::default() };
        let mut inputs = kernel.inputs(sizes, seed);
        let mut want = kernel.outputs(&context, sizes, &inputs);
        want.iter_mut().for_each(|tensor| *tensor *= 2f64.powi(power));
        for name in kernel.gradients() {
            inputs[kernel.input(name)] *= 2f64.powi(power);
        }
        let got = kernel.outputs(&context, sizes, &inputs);
        fail(kernel.compare(&got, &want, same_bits))?;
    }

    #[test]
    fn outputs_of_a_sum_of_gradients_are_sums(
        sizes in any_sizes(),
        kernel in any_gradient(),
        isa in any_isa(),
        seed in any::<u64>(),
    ) {
        let kernel = &*kernels().swap_remove(kernel);
        let context = Context { isa, ..Context::default() };
        let mut parts = [kernel.inputs(sizes, seed), kernel.inputs(sizes, seed)];
        let other = kernel.inputs(sizes, !seed);
        let mut whole = parts[0].clone();
        for name in kernel.gradients() {
            let at = kernel.input(name);
            parts[1][at].clone_from(&other[at]);
            // On a grid on which sums are exact in every element type.
            parts.iter_mut().for_each(|part| part[at].mapv_inplace(|v| (v * 128.0).round() / 128.0));
            whole[at] = &parts[0][at] + &parts[1][at];
        }
        let [a, b] = parts.map(|part| kernel.outputs(&context, sizes, &part));
        let want: Vec<_> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let got = kernel.outputs(&context, sizes, &whole);
        // A single element may cancel; all outputs of a call do not.
        let largest = [&a, &b, &got].into_iter().flatten().map(scale).fold(0.0, f64::max);
        let close = |name: &str, got: &_, want: &_| {
            close_to_scale(name, got, want, 3.0 * kernel.tolerance(), largest)
        };
        fail(kernel.compare(&got, &want, close))?;
    }
}

proptest! {
    #![proptest_config(config(5000))]

    /// Whatever the shapes, the check returns; and what it accepts fits the sizes it returns.
    #[test]
    fn any_shapes_are_checked(
        kernel in any_kernel(),
        shapes in prop::collection::vec(prop::collection::vec(any_dimension(), 0..=4), 18),
        base in (0..=3_usize, 0..=3_usize, 0..=3_usize, 0..=3_usize),
        // Which tensors keep the shape that fits `base`.
        keep in prop::collection::vec(prop::bool::weighted(0.95), 18),
    ) {
        let kernel = &*kernels().swap_remove(kernel);
        let mut right = kernel.input_shapes(Sizes::new(base.0, base.1, base.2, base.3));
        for ((shape, other), keep) in right.iter_mut().zip(shapes).zip(keep) {
            if !keep {
                *shape = other;
            }
        }
        let views: Vec<&[usize]> = right.iter().map(Vec::as_slice).collect();
        match kernel.op().check(kernel.uses_optional(), &views) {
            Ok(sizes) => {
                let fits = |(tensor, &got): (&ops::Tensor, &&[usize])| shape(tensor, &sizes) == got;
                prop_assert!(kernel.op().inputs.iter().zip(&views).all(fits));
            }
            Err(error) => prop_assert!(error.to_string().starts_with(kernel.op().name)),
        }
    }
}

proptest! {
    #![proptest_config(config(1000))]

    /// Calls with wrong dimensions fail, write nothing and do not panic.
    #[test]
    fn wrong_dimensions_are_refused(
        kernel in any_kernel(),
        base in (0..=3_usize, 0..=3_usize, 0..=3_usize, 0..=3_usize),
        changes in prop::collection::vec((0..26_usize, 0..3_usize, 0..=40_usize), 1..=3),
    ) {
        let kernel = &*kernels().swap_remove(kernel);
        let sizes = Sizes::new(base.0, base.1, base.2, base.3);
        let mut inputs = kernel.input_shapes(sizes);
        let mut outputs = kernel.output_shapes(sizes);
        let right = (inputs.clone(), outputs.clone());
        for (tensor, dim, size) in changes {
            let count = inputs.len() + outputs.len();
            let shape = match tensor % count {
                n if n < inputs.len() => &mut inputs[n],
                n => &mut outputs[n - inputs.len()],
            };
            // seq_len_max has no dimension.
            let dim = dim % shape.len().max(1);
            if let Some(dim) = shape.get_mut(dim) {
                *dim = size;
            }
        }
        let changed = (&inputs, &outputs) != (&right.0, &right.1);
        let mut results = filled(&outputs, 7.0);
        let before = results.clone();
        let ran = kernel.call(&Context::default(), &filled(&inputs, 0.5), &mut results);
        if ran.is_err() {
            prop_assert!(changed);
            fail(kernel.compare(&results, &before, same_bits))?;
        } else {
            // Several changes may fit each other, and vectors that are not used.
            let checked = kernel.op().check(
                kernel.uses_optional(),
                &inputs.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            );
            let sizes = checked.expect("a call that ran");
            for (tensor, got) in kernel.op().outputs.iter().zip(&outputs) {
                let unread: Vec<_> = tensor.dims.iter().map(|&dim| sizes.of_unread(dim)).collect();
                prop_assert!(shape(tensor, &sizes) == *got || unread == *got);
            }
        }
    }
}
