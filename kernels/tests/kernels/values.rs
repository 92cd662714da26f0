//! Which values matter and where they go: unread inputs, NaN and infinities, and the one
//! rounding of half.

use crate::common::Tensors;
use crate::common::compare::{Failures, close, close_to_scale, rows_of, same_bits};
use crate::common::data::Sizes;
use crate::common::kernels::{
    Attributes, BlockGru, BlockLstm, Kernel, LstmBlockCell, LstmBlockCellGrad, LstmByRow,
    batch_axis, kernels,
};
use blockcell_kernels::{Activations, Context, Isa, Serial};
use half::{bf16, f16};
use ndarray::{Dimension, IxDyn};

const SIZES: [Sizes; 5] = [
    Sizes::new(2, 1, 1, 1),
    Sizes::new(3, 3, 2, 5),
    Sizes::new(2, 4, 17, 16),
    Sizes::new(1, 7, 15, 33),
    Sizes::new(4, 20, 3, 70),
];

fn contexts() -> impl Iterator<Item = Context<'static>> {
    Isa::available().into_iter().map(|isa| Context::new(isa, &Serial))
}

fn case(kernel: &dyn Kernel, sizes: Sizes, context: &Context<'_>) -> String {
    format!("{}, {sizes:?}, {}", kernel.name(), context.isa.name())
}

#[test]
fn unread_inputs_do_not_matter() {
    let mut failures = Failures::default();
    for kernel in kernels() {
        for sizes in SIZES {
            let inputs = kernel.inputs(sizes, 1);
            let mut poisoned = inputs.clone();
            for name in kernel.unread() {
                poisoned[kernel.input(name)].fill(f64::NAN);
            }
            for context in contexts() {
                let want = kernel.outputs(&context, sizes, &inputs);
                let got = kernel.outputs(&context, sizes, &poisoned);
                let same = kernel.compare(&got, &want, same_bits);
                failures.note(case(&*kernel, sizes, &context), same);
            }
        }
    }
    failures.finish();
}

/// The counterpart: if this fails, the test above proves nothing for the input.
#[test]
fn all_other_inputs_matter() {
    let mut failures = Failures::default();
    let sizes = Sizes::new(3, 3, 2, 5);
    for kernel in kernels() {
        for (n, input) in kernel.op().inputs.iter().enumerate() {
            if kernel.unread().contains(&input.name) {
                continue;
            }
            let mut inputs = kernel.inputs(sizes, 1);
            if let Some(steps) = kernel.steps() {
                inputs[steps].fill(sizes.time as f64);
                if n == steps {
                    continue;
                }
            }
            inputs[n].fill(f64::NAN);
            let got = kernel.outputs(&Context::default(), sizes, &inputs);
            let any = got.iter().flatten().any(|value| value.is_nan());
            failures.check(kernel.name(), any, format!("{} is not read", input.name));
        }
    }
    failures.finish();
}

#[test]
fn nan_and_infinities_go_where_the_equations_send_them() {
    let mut failures = Failures::default();
    for kernel in kernels() {
        // The largest takes long in all those that there are of a sequence.
        let sizes = if kernel.is_sequence() { &SIZES[1..4] } else { &SIZES[..] };
        for &sizes in sizes {
            let (clean, _) = kernel.inputs_and_want(sizes, 3);
            let before: Vec<_> =
                contexts().map(|context| kernel.outputs(&context, sizes, &clean)).collect();
            for (n, input) in kernel.op().inputs.iter().enumerate() {
                if kernel.unread().contains(&input.name) || input.is_steps() {
                    continue;
                }
                for (at, value) in special_values(clean[n].shape()) {
                    let mut inputs = clean.clone();
                    inputs[n][&at] = value;
                    let want = kernel.want(&inputs);
                    let row = batch_axis(input).map(|axis| at[axis.index()]);
                    for (context, before) in contexts().zip(&before) {
                        let got = kernel.outputs(&context, sizes, &inputs);
                        let case = || {
                            let case = case(&*kernel, sizes, &context);
                            let at = at.as_array_view().to_vec();
                            format!("{case}, {value} in {}, at {at:?}", input.name)
                        };
                        failures.note_as(case, as_equations_say(&*kernel, &got, &want));
                        if let Some(row) = row {
                            failures.note_as(case, others_are_same(&*kernel, &got, before, row));
                        }
                    }
                }
            }
        }
    }
    failures.finish();
}

/// What to put where in a tensor of `shape`: first, last and in between, on both sides of the end
/// of the last full vector.
fn special_values(shape: &[usize]) -> Vec<(IxDyn, f64)> {
    let ends = |n: usize| {
        let mut all = vec![0, n / 2, n.saturating_sub(2), n - 1];
        all.dedup();
        all.into_iter()
    };
    let both = |m: usize, n: usize| {
        [m / 2, m - 1].into_iter().flat_map(move |i| ends(n).map(move |j| (i, j)))
    };
    let places: Vec<_> = match *shape {
        [n] => ends(n).map(|j| IxDyn(&[j])).collect(),
        [m, n] => both(m, n).map(|(i, j)| IxDyn(&[i, j])).collect(),
        // Every step, and rows in turn.
        [time, m, n] => (0..time)
            .flat_map(|t| both(m, n).skip(t % 2).step_by(2).map(move |(i, j)| IxDyn(&[t, i, j])))
            .collect(),
        _ => unreachable!("no tensor of rank {}", shape.len()),
    };
    let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    places.iter().flat_map(|at| values.map(|value| (at.clone(), value))).collect()
}

fn as_equations_say(kernel: &dyn Kernel, got: &Tensors, want: &Tensors) -> Result<(), String> {
    // The scale leaves out the infinite elements, and may be that of some small ones.
    let tolerance = 4.0 * kernel.tolerance();
    kernel.compare(got, want, |name, got, want| close(name, got, want, tolerance))
}

/// Whether all rows but `row` are those of `before`, bit for bit. Sums over rows are left out.
fn others_are_same(
    kernel: &dyn Kernel,
    got: &Tensors,
    before: &Tensors,
    row: usize,
) -> Result<(), String> {
    for (output, (got, before)) in kernel.op().outputs.iter().zip(got.iter().zip(before)) {
        if let Some(axis) = batch_axis(output) {
            let others: Vec<_> = (0..got.len_of(axis)).filter(|&other| other != row).collect();
            let [got, before] = [got, before].map(|tensor| rows_of(tensor, axis, &others));
            same_bits(output.name, &got, &before)?;
        }
    }
    Ok(())
}

/// The gradients of vectors that are not used are zeros.
#[test]
fn gradients_of_unused_vectors_are_zeros() {
    let mut failures = Failures::default();
    for kernel in kernels() {
        if kernel.uses_optional() || kernel.gradients().is_empty() {
            continue;
        }
        let is_optional =
            |row: &crate::common::kernels::Row| ["I", "F", "O", "H"].contains(&row.dims[0]);
        for sizes in SIZES {
            for context in contexts() {
                let got = kernel.outputs(&context, sizes, &kernel.inputs(sizes, 1));
                let rows = kernel.output_rows();
                for (row, got) in rows.iter().zip(got).filter(|(row, _)| is_optional(row)) {
                    let zeros = got.iter().all(|value| value.to_bits() == 0);
                    let message = format!("{} is not zero", row.name);
                    failures.check(case(&*kernel, sizes, &context), zeros, message);
                }
            }
        }
    }
    failures.finish();
}

/// Numbers of 16 bits are computed in `f32` and rounded once: a step is the rounded result of the `f32` kernel.
#[test]
fn half_and_bfloat16_are_rounded_float() {
    let mut failures = Failures::default();
    for (half, float) in halves_and_floats() {
        for sizes in SIZES {
            // Sequences round the states that go from step to step, gradients what they leave in
            // place of the activations.
            let sizes = Sizes { time: 1, ..sizes };
            let inputs = half.inputs(sizes, 5);
            for context in contexts() {
                let got = half.outputs(&context, sizes, &inputs);
                let mut want = float.outputs(&context, sizes, &inputs);
                want.iter_mut().for_each(|tensor| tensor.mapv_inplace(half.round()));
                let same = half.compare(&got, &want, same_bits);
                failures.note(case(&*half, sizes, &context), same);
            }
        }
    }
    failures.finish();
}

/// Kernels of 16 bits with those of float of the same attributes.
fn halves_and_floats() -> Vec<(Box<dyn Kernel>, Box<dyn Kernel>)> {
    let mut all: Vec<(Box<dyn Kernel>, Box<dyn Kernel>)> = Vec::new();
    for cell_clip in [0.0, 0.5] {
        for use_peephole in [false, true] {
            // Numbers of both types, so that rounding does not matter to them.
            let attributes = Attributes { use_peephole, forget_bias: 0.75, cell_clip };
            all.push((
                Box::new(LstmBlockCell::<f16>::new(attributes)),
                Box::new(LstmBlockCell::<f32>::new(attributes)),
            ));
            all.push((
                Box::new(BlockLstm::<f16>::v1(attributes)),
                Box::new(BlockLstm::<f32>::v1(attributes)),
            ));
            all.push((
                Box::new(BlockLstm::<f16>::v2(attributes)),
                Box::new(BlockLstm::<f32>::v2(attributes)),
            ));
        }
    }
    for flag in [false, true] {
        all.push((
            Box::new(LstmBlockCellGrad::<f16>::new(flag)),
            Box::new(LstmBlockCellGrad::<f32>::new(flag)),
        ));
    }
    // Where the reset comes before the product, c and h are computed from hc and u as they are stored.
    all.push((Box::new(BlockGru::<f16>::new(true)), Box::new(BlockGru::<f32>::new(true))));
    all.push((Box::new(BlockGru::<bf16>::new(true)), Box::new(BlockGru::<f32>::new(true))));
    let activations = Activations::default();
    all.push((
        Box::new(LstmByRow::<bf16>::new(activations)),
        Box::new(LstmByRow::<f32>::new(activations)),
    ));
    all
}

/// Which numbers clip, and where to. `None` is no clip.
#[test]
fn clips_are_those_of_the_element_type() {
    const TINY: f32 = 1e-9;
    const HUGE: f32 = 1e6;
    let mut failures = Failures::default();
    let of = |cell_clip| Attributes { use_peephole: false, forget_bias: 1.0, cell_clip };
    let cases: [(f32, Option<f64>, Option<f64>); 10] = [
        (0.0, None, None),
        (-0.0, None, None),
        (-0.3, None, None),
        (f32::NEG_INFINITY, None, None),
        (f32::NAN, None, None),
        (f32::INFINITY, None, None),
        (0.3, Some(0.3_f32.into()), Some(f16::from_f32(0.3).into())),
        (1.0, Some(1.0), Some(1.0)),
        (TINY, Some(TINY.into()), Some(0.0)),
        (HUGE, Some(HUGE.into()), None),
    ];
    for (cell_clip, in_float, in_half) in cases {
        type Pair = [Box<dyn Kernel>; 2];
        let floats: Pair = [
            Box::new(LstmBlockCell::<f32>::new(of(cell_clip))),
            Box::new(BlockLstm::<f32>::v2(of(cell_clip))),
        ];
        let halves: Pair = [
            Box::new(LstmBlockCell::<f16>::new(of(cell_clip))),
            Box::new(BlockLstm::<f16>::v1(of(cell_clip))),
        ];
        for (kernels, limit) in [(floats, in_float), (halves, in_half)] {
            for kernel in kernels {
                let sizes = Sizes::new(1, 5, 3, 33);
                let mut inputs = kernel.inputs(sizes, 7);
                if let Some(steps) = kernel.steps() {
                    inputs[steps].fill(1.0);
                }
                let cs_prev = kernel.input("cs_prev");
                inputs[cs_prev][[0, 0]] = f64::NAN;
                inputs[cs_prev][[1, 1]] = f64::INFINITY;
                inputs[cs_prev][[2, 32]] = f64::NEG_INFINITY;
                inputs[cs_prev][[3, 3]] = 60000.0;
                for context in contexts() {
                    let got = kernel.outputs(&context, sizes, &inputs);
                    let cs = got[1].clone().into_shape_with_order((5, 33)).expect("a state");
                    let case = case(&*kernel, sizes, &context);
                    let largest =
                        cs.iter().filter(|v| !v.is_nan()).fold(0.0_f64, |max, v| v.abs().max(max));
                    let want = limit.unwrap_or(f64::INFINITY);
                    failures.check(
                        &case,
                        largest == want,
                        format!("largest {largest}, not {want}"),
                    );
                    let nans = cs.iter().filter(|v| v.is_nan()).count();
                    failures.check(&case, nans == 1 && cs[[0, 0]].is_nan(), format!("{nans} NaN"));
                    let right =
                        [(1, 1, want), (2, 32, -want)].iter().all(|&(i, j, v)| cs[[i, j]] == v);
                    failures.check(&case, right, "infinite states");
                }
            }
        }
    }
    failures.finish();
}

/// What is added to the forget gate is the attribute, rounded to the element type; V2 has none.
#[test]
fn forget_bias_is_that_of_the_element_type() {
    let mut failures = Failures::default();
    let of = |forget_bias| Attributes { use_peephole: false, forget_bias, cell_clip: 0.0 };
    // In half, -8.003 is -8, which is 3e-3 of the gate.
    for forget_bias in [-8.003, -3.0, 0.0, 0.1, 30.0] {
        let kernels: [(Box<dyn Kernel>, f32); 5] = [
            (Box::new(LstmBlockCell::<f32>::new(of(forget_bias))), forget_bias),
            (Box::new(LstmBlockCell::<f16>::new(of(forget_bias))), forget_bias),
            (Box::new(BlockLstm::<f32>::v1(of(forget_bias))), forget_bias),
            (Box::new(BlockLstm::<f32>::v2(of(forget_bias))), 0.0),
            (Box::new(BlockLstm::<f16>::v2(of(forget_bias))), 0.0),
        ];
        for (kernel, bias) in kernels {
            let sizes = Sizes::new(1, 1, 1, 1);
            let mut inputs = kernel.inputs(sizes, 1);
            inputs.iter_mut().for_each(|input| input.fill(0.0));
            if let Some(steps) = kernel.steps() {
                inputs[steps].fill(1.0);
            }
            let want = 1.0 / (1.0 + (-kernel.round()(bias.into())).exp());
            for context in contexts() {
                let got = kernel.outputs(&context, sizes, &inputs)[2].sum();
                let tolerance = if kernel.is_16_bit() { 1e-3 } else { 2e-6 };
                let right = (got - want).abs() <= tolerance * want;
                failures.check(
                    case(&*kernel, sizes, &context),
                    right,
                    format!("{got}, not {want}"),
                );
            }
        }
    }
    failures.finish();
}

/// Pre-activations far out saturate the gates and leave nothing undefined.
#[test]
fn saturated_gates_are_exact() {
    let mut failures = Failures::default();
    for kernel in kernels().into_iter().filter(|kernel| kernel.gradients().is_empty()) {
        for sizes in SIZES {
            for bias in [-200.0, 200.0] {
                let mut inputs = kernel.inputs(sizes, 8);
                for (input, row) in inputs.iter_mut().zip(kernel.input_rows()) {
                    if ["b", "b_ru", "b_c"].contains(&row.name) {
                        input.fill(bias);
                    }
                }
                let want = kernel.want(&inputs);
                // Gates that are shut are 1e-87 in the oracle.
                let close = |name: &str, got: &_, want: &_| {
                    close_to_scale(name, got, want, kernel.tolerance(), 1.0)
                };
                for context in contexts() {
                    let got = kernel.outputs(&context, sizes, &inputs);
                    let case = case(&*kernel, sizes, &context);
                    failures.note(case, kernel.compare(&got, &want, close));
                }
            }
        }
    }
    failures.finish();
}
