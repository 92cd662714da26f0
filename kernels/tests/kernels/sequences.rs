//! What sequences add to steps: lengths, the memory they need, and that steps do not depend on how
//! many there are.

use crate::common::Tensors;
use crate::common::compare::{Failures, same_bits};
use crate::common::data::Sizes;
use crate::common::kernels::{Kernel, filled, kernels, sequence_kernels};
use blockcell_kernels::{Context, Error, Isa, Serial, ops};
use ndarray::{ArrayD, ArrayViewMut1, Axis, Ix2, Slice};

const SIZES: [Sizes; 6] = [
    Sizes::new(4, 1, 1, 1),
    Sizes::new(5, 3, 2, 5),
    Sizes::new(3, 7, 17, 16),
    Sizes::new(6, 5, 0, 33),
    Sizes::new(4, 20, 3, 70),
    Sizes::new(12, 5, 3, 37),
];

fn contexts() -> impl Iterator<Item = Context<'static>> {
    Isa::available().into_iter().map(|isa| Context::new(isa, &Serial))
}

fn case(kernel: &dyn Kernel, sizes: Sizes, context: &Context<'_>) -> String {
    format!("{}, {sizes:?}, {}", kernel.name(), context.isa.name())
}

fn has_time(tensor: &ops::Tensor) -> bool {
    use ops::Dim::{Time, TimeOrNone, TimeOrOne};
    matches!(tensor.dims.first(), Some(Time | TimeOrOne | TimeOrNone))
}

/// Sets the numbers of steps of all rows, with some fewer in rows that have their own.
fn set_steps(inputs: &mut Tensors, steps: usize) {
    for (row, length) in inputs[0].iter_mut().enumerate() {
        *length = if row % 3 == 1 { steps / 2 } else { steps } as f64;
    }
}

/// Whether step `t` of row `row` is done.
fn is_done(inputs: &Tensors, t: usize, row: usize) -> bool {
    (t as f64) < if inputs[0].ndim() == 0 { inputs[0].sum() } else { inputs[0][row] }
}

/// The first steps of every tensor that has steps.
fn first_steps(tensors: &Tensors, table: &[ops::Tensor], steps: usize) -> Tensors {
    let cut = |(tensor, row): (&ArrayD<f64>, &ops::Tensor)| {
        if has_time(row) {
            let part = tensor.slice_axis(Axis(0), Slice::from(..steps));
            ArrayD::from_shape_vec(part.raw_dim(), part.iter().copied().collect())
                .expect("as many elements")
        } else {
            tensor.clone()
        }
    };
    tensors.iter().zip(table).map(cut).collect()
}

/// Outputs of steps that are not done are zeros, and nothing of them is read.
#[test]
fn steps_that_are_not_done_do_not_matter() {
    let mut failures = Failures::default();
    for kernel in sequence_kernels() {
        for sizes in SIZES {
            for steps in [0, 1, sizes.time - 1] {
                let mut inputs = kernel.inputs(sizes, 1);
                set_steps(&mut inputs, steps);
                let mut poisoned = inputs.clone();
                for (tensor, _) in
                    poisoned.iter_mut().zip(kernel.op().inputs).filter(|(_, row)| has_time(row))
                {
                    for ((t, row), mut values) in rows_mut(tensor) {
                        if !is_done(&inputs, t, row) {
                            values.fill(f64::NAN);
                        }
                    }
                }
                for context in contexts() {
                    let case = case(&*kernel, sizes, &context);
                    let want = kernel.outputs(&context, sizes, &inputs);
                    let mut got = kernel.outputs(&context, sizes, &poisoned);
                    failures.note(&case, kernel.compare(&got, &want, same_bits));
                    for (tensor, row) in
                        got.iter_mut().zip(kernel.op().outputs).filter(|(_, row)| has_time(row))
                    {
                        let zeros = rows_mut(tensor).all(|((t, row), values)| {
                            is_done(&inputs, t, row) || values.iter().all(|v| v.to_bits() == 0)
                        });
                        failures.check(&case, zeros, format!("{} is not zero", row.name));
                    }
                }
            }
        }
    }
    failures.finish();
}

/// All rows of a tensor of steps, with the numbers of step and row.
fn rows_mut(
    tensor: &mut ArrayD<f64>,
) -> impl Iterator<Item = ((usize, usize), ArrayViewMut1<'_, f64>)> {
    let steps = tensor.axis_iter_mut(Axis(0)).enumerate();
    steps.flat_map(|(t, step)| {
        let step = step.into_dimensionality::<Ix2>().expect("rows of a step");
        step.into_outer_iter_mut().enumerate().map(move |(row, values)| ((t, row), values))
    })
}

/// Steps after the last one that is done cost only zeros: they change no other result.
#[test]
fn results_do_not_depend_on_the_steps_after_the_last() {
    let mut failures = Failures::default();
    for kernel in sequence_kernels() {
        for sizes in SIZES {
            let steps = sizes.time - 1;
            let mut inputs = kernel.inputs(sizes, 2);
            set_steps(&mut inputs, steps);
            let short = first_steps(&inputs, kernel.op().inputs, steps);
            for context in contexts() {
                let all = kernel.outputs(&context, sizes, &inputs);
                let want = first_steps(&all, kernel.op().outputs, steps);
                let got = kernel.outputs(&context, Sizes { time: steps, ..sizes }, &short);
                let same = kernel.compare(&got, &want, same_bits);
                failures.note(case(&*kernel, sizes, &context), same);
            }
        }
    }
    failures.finish();
}

/// A sequence is the same as one sequence after another, each of a single step, bit for bit: the
/// state that goes on is the one that is returned.
#[test]
fn steps_one_by_one_are_the_sequence() {
    let mut failures = Failures::default();
    for kernel in sequence_kernels() {
        if !kernel.gradients().is_empty() {
            continue;
        }
        let (op, x) = (kernel.op(), kernel.input("x"));
        for sizes in SIZES {
            let mut inputs = kernel.inputs(sizes, 3);
            inputs[0].fill(sizes.time as f64);
            for context in contexts() {
                let want = kernel.outputs(&context, sizes, &inputs);
                let mut step = inputs.clone();
                step[0].fill(1.0);
                for t in 0..sizes.time {
                    let only = |tensor: &ArrayD<f64>| tensor.select(Axis(0), &[t]);
                    step[x] = only(&inputs[x]);
                    let got = kernel.outputs(&context, Sizes { time: 1, ..sizes }, &step);
                    for ((row, got), want) in op.outputs.iter().zip(&got).zip(&want) {
                        if has_time(row) {
                            let case = format!("{}, step {t}", case(&*kernel, sizes, &context));
                            failures.note(case, same_bits(row.name, got, &only(want)));
                        }
                    }
                    for (state, output) in [("cs_prev", "cs"), ("h_prev", "h")] {
                        let at = op.inputs.iter().position(|tensor| tensor.name == state);
                        let from = op.outputs.iter().position(|tensor| tensor.name == output);
                        if let (Some(at), Some(from)) = (at, from) {
                            step[at] = got[from].index_axis(Axis(0), 0).to_owned();
                        }
                    }
                }
            }
        }
    }
    failures.finish();
}

/// The states are those after each row's last step.
#[test]
fn last_states_are_those_of_the_last_steps() {
    let mut failures = Failures::default();
    for kernel in sequence_kernels() {
        let place = |name| kernel.op().outputs.iter().position(|tensor| tensor.name == name);
        let (Some(h), Some(h_last)) = (place("h"), place("h_last")) else { continue };
        for sizes in SIZES {
            let mut inputs = kernel.inputs(sizes, 4);
            for (row, length) in inputs[0].iter_mut().enumerate() {
                *length = ((row + 2) % (sizes.time + 1)) as f64;
            }
            for context in contexts() {
                let got = kernel.outputs(&context, sizes, &inputs);
                for row in 0..sizes.batch {
                    let want = match inputs[0][row] as usize {
                        0 => inputs[kernel.input("h_prev")].index_axis(Axis(0), row),
                        n => got[h].index_axis(Axis(0), n - 1).index_axis_move(Axis(0), row),
                    };
                    let last = got[h_last].index_axis(Axis(0), row).to_owned();
                    let same = same_bits("h_last", &last, &want.to_owned());
                    failures.note(format!("{}, row {row}", case(&*kernel, sizes, &context)), same);
                }
            }
        }
    }
    failures.finish();
}

/// More scratch memory than needed changes nothing, less is an error that leaves outputs and inputs
/// as they were.
#[test]
fn scratch_memory_is_checked() {
    let mut failures = Failures::default();
    for kernel in kernels() {
        for sizes in SIZES {
            let shapes = kernel.input_shapes(sizes);
            let shapes: Vec<_> = shapes.iter().map(Vec::as_slice).collect();
            let known = kernel.op().check(kernel.uses_optional(), &shapes).expect("right shapes");
            let needed = kernel.scratch(&known, kernel.is_16_bit());
            let inputs = kernel.inputs(sizes, 5);
            let context = Context::default();
            let want = kernel.outputs(&context, sizes, &inputs);
            let mut outputs = filled(&kernel.output_shapes(sizes), f64::NAN);
            let mut scratch = vec![f32::INFINITY; needed + 100];
            let ran = kernel.run(&context, &inputs, &mut outputs, &mut scratch);
            let case = case(&*kernel, sizes, &context);
            failures.check(&case, ran.is_ok(), format!("{ran:?}"));
            failures.note(&case, kernel.compare(&outputs, &want, same_bits));
            let kept = scratch[needed..].iter().all(|&value| value == f32::INFINITY);
            failures.check(&case, kept, "more scratch memory is written than is needed");
            for got in [0, needed / 2, needed.saturating_sub(1)] {
                if got == needed {
                    continue;
                }
                let mut outputs = filled(&kernel.output_shapes(sizes), 7.0);
                let before = outputs.clone();
                let ran = kernel.run(&context, &inputs, &mut outputs, &mut scratch[..got]);
                let op = kernel.op().name;
                let error = Error::Scratch { op, needed, got };
                failures.check(&case, ran == Err(error.clone()), format!("{ran:?}"));
                let message = format!("{op}: scratch must have {needed} elements, got {got}");
                failures.check(&case, error.to_string() == message, error);
                failures.note(&case, kernel.compare(&outputs, &before, same_bits));
            }
        }
    }
    failures.finish();
}

/// Numbers of steps that there cannot be are errors that name the number; nothing is written.
#[test]
fn wrong_numbers_of_steps_are_errors() {
    let mut failures = Failures::default();
    for kernel in sequence_kernels() {
        let sizes = Sizes::new(5, 4, 2, 3);
        let (op, at) = (kernel.op(), kernel.steps().expect("a sequence"));
        let tensor = &op.inputs[at];
        // The Rust API takes a scalar as an unsigned number.
        let (least, place) = if tensor.dims.is_empty() { (6_i64, "") } else { (-1, "[2]") };
        for wrong in [least, 6, 7, 1 << 31, 1 << 32, 1_i64 << 52] {
            let mut inputs = kernel.inputs(sizes, 6);
            let last = inputs[at].len().min(3) - 1;
            *inputs[at].iter_mut().nth(last).expect("an element") = wrong as f64;
            let mut outputs = filled(&kernel.output_shapes(sizes), 7.0);
            let before = outputs.clone();
            let ran = kernel.call(&Context::default(), &inputs, &mut outputs);
            let (op, name) = (op.name, tensor.name);
            let want = format!("{op}: {name}{place} must be between 0 and time = 5, got {wrong}");
            let got = ran.map_err(|error| error.to_string());
            failures.check(kernel.name(), got == Err(want.clone()), format!("{got:?}, not {want}"));
            failures.note(kernel.name(), kernel.compare(&outputs, &before, same_bits));
        }
    }
    failures.finish();
}

/// Numbers as TensorFlow has them, which may be negative.
#[test]
fn wrong_numbers_of_steps_fail_the_check() {
    for kernel in sequence_kernels() {
        let shapes = kernel.input_shapes(Sizes::new(5, 4, 2, 3));
        let shapes: Vec<_> = shapes.iter().map(Vec::as_slice).collect();
        let sizes = kernel.op().check(kernel.uses_optional(), &shapes).expect("right shapes");
        let scalar = kernel.op().inputs[0].dims.is_empty();
        for right in [[0_i64; 4], [5; 4], [0, 1, 4, 5]] {
            let right = if scalar { &right[3..] } else { &right };
            let right = right.iter().map(|&steps| steps.into());
            assert_eq!(kernel.op().check_steps(&sizes, right), Ok(()));
        }
        for wrong in [i64::MIN, -1, 6, i64::MAX] {
            let all = [0, 5, wrong, wrong];
            let all = if scalar { &all[3..] } else { &all };
            let all = all.iter().map(|&steps| steps.into());
            let error = kernel.op().check_steps(&sizes, all).expect_err("wrong");
            let (op, tensor) = (kernel.op().name, kernel.op().inputs[0].name);
            let index = (!scalar).then_some(2);
            assert_eq!(error, Error::Value { op, tensor, index, time: 5, got: wrong.into() });
        }
    }
}
