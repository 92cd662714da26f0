//! Loops over a sequence whose rounds are steps of a cell, against loops of steps.

pub(crate) mod call;
mod errors;
mod projection;

use blockcell_kernels::{Context, Element, Isa};
use half::{bf16, f16};
use ndarray::{ArrayD, Axis, Slice};

use crate::common::Tensors;
use crate::common::compare::{Failures, close_to_scale, rows_of, same_bits, scale};
use crate::common::data::{Data, Sizes};
use crate::common::executors::{contexts, executors};
use crate::common::kernels::Attributes;
use crate::common::kernels::pairs;
use crate::common::kernels::tensors::round;
use crate::unfused::{ORDERS, columns, in_order};
use call::{Call, Cell};

const TIMES: [usize; 5] = [0, 1, 2, 9, 20];
const BATCHES: [usize; 5] = [0, 1, 3, 5, 64];
const CELL_SIZES: [usize; 9] = [0, 1, 7, 8, 9, 15, 16, 17, 33];

/// Largest errors, in terms of the largest number if that is not small.
const FLOAT: f64 = 2e-6;
const HALF: f64 = 2e-3;
const BFLOAT16: f64 = 2e-2;

/// All times, batches and sizes of cells, with some size of the input.
fn grid() -> impl Iterator<Item = Sizes> {
    let count = TIMES.len() * BATCHES.len() * CELL_SIZES.len();
    (0..count).map(|n| {
        let (time, rest) = (TIMES[n % 5], n / 5);
        let (batch, cell) = (BATCHES[rest % 5], rest / 5);
        Sizes::new(time, batch, CELL_SIZES[(n + cell) % 9], CELL_SIZES[cell])
    })
}

/// Calls on `sizes`: all rows in all steps, and fewer rounds, by `seed`, and rows that end.
fn calls<E: Element>(cell: Cell, sizes: Sizes, seed: u64) -> Vec<Call> {
    let whole = Call::new::<E>(cell, sizes, seed);
    let time = sizes.time as i32;
    let mut all = vec![whole.clone()];
    for rounds in [time, [(time - 1).max(0), time / 2, -2][seed as usize % 3]] {
        let mut ending = whole.clone();
        ending.end_rows(rounds);
        all.push(ending.clone());
        ending.steps.sequence_length = None;
        ending.know_elements();
        all.push(ending);
    }
    all
}

/// Whether all results are close to those wanted.
fn all_close(got: &Tensors, want: &Tensors, tolerance: f64) -> Result<(), String> {
    compare(got, want, |name, got, want| {
        close_to_scale(name, got, want, tolerance, scale(want).max(0.1))
    })
}

/// Compares all results.
fn compare(
    got: &Tensors,
    want: &Tensors,
    same: impl Fn(&str, &ArrayD<f64>, &ArrayD<f64>) -> Result<(), String>,
) -> Result<(), String> {
    assert_eq!(got.len(), want.len());
    let names = ["h", "h_last", "cs_last"];
    names.iter().zip(got.iter().zip(want)).try_for_each(|(name, (got, want))| same(name, got, want))
}

fn case<E>(call: &Call, sizes: Sizes, context: &Context<'_>) -> String {
    let (element, isa) = (std::any::type_name::<E>(), context.isa.name());
    format!("{:?} of {element}, {sizes:?}, {:?}, {isa}", call.cell, call.steps)
}

/// Zeros are where no step was made, whatever the tolerance.
fn has_zeros(call: &Call, h: &ArrayD<f64>) -> bool {
    h.axis_iter(Axis(0)).enumerate().all(|(t, step)| {
        let rows = step.axis_iter(Axis(0)).enumerate();
        let mut ended = rows.filter(|&(row, _)| t >= call.length(row));
        ended.all(|(_, values)| values.iter().all(|value| value.to_bits() == 0))
    })
}

fn check_grid<E: Element>(tolerance: f64) {
    let mut failures = Failures::default();
    for cell in Cell::all() {
        for (seed, sizes) in grid().enumerate() {
            for call in calls::<E>(cell, sizes, seed as u64) {
                let want = call.want::<E>();
                for context in contexts() {
                    let got = call.run::<E>(&context).expect("the shapes are right");
                    let case = || case::<E>(&call, sizes, &context);
                    failures.note_as(case, all_close(&got, &want, tolerance));
                    let zeros = has_zeros(&call, &got[0]).then_some(());
                    failures.note_as(case, zeros.ok_or("h is not zero".to_owned()));
                }
            }
        }
    }
    failures.finish();
}

#[test]
fn floats_are_close_to_the_oracle() {
    check_grid::<f32>(FLOAT);
}

#[test]
fn halves_are_close_to_the_oracle() {
    check_grid::<f16>(HALF);
}

#[test]
fn bfloat16_is_close_to_the_oracle() {
    check_grid::<bf16>(BFLOAT16);
}

/// Sizes for what does not depend on them much.
const SOME: [Sizes; 5] = [
    Sizes::new(3, 5, 7, 9),
    Sizes::new(20, 3, 16, 33),
    Sizes::new(9, 64, 17, 8),
    Sizes::new(2, 1, 1, 1),
    Sizes::new(20, 2, 33, 17),
];

fn check_cells<E: Element>(cells: impl Iterator<Item = Cell>, tolerance: f64) {
    let mut failures = Failures::default();
    for cell in cells {
        for (seed, sizes) in SOME.into_iter().enumerate() {
            for call in calls::<E>(cell, sizes, seed as u64) {
                for context in contexts() {
                    let got = call.run::<E>(&context).expect("the shapes are right");
                    let close = all_close(&got, &call.of_cells::<E>(&context), tolerance);
                    failures.note_as(|| case::<E>(&call, sizes, &context), close);
                }
            }
        }
    }
    failures.finish();
}

#[test]
fn floats_are_close_to_a_loop_of_cells() {
    check_cells::<f32>(Cell::all(), FLOAT);
}

#[test]
fn halves_are_close_to_a_loop_of_cells() {
    check_cells::<f16>(Cell::all().filter(|cell| matches!(cell, Cell::Lstm(_))), HALF);
}

#[test]
fn bfloat16_is_close_to_a_loop_of_cells() {
    check_cells::<bf16>(Cell::all().filter(|cell| matches!(cell, Cell::Lstm(_))), BFLOAT16);
}

#[test]
fn other_functions_are_those_of_the_cells() {
    let mut failures = Failures::default();
    let lstm: Vec<_> = Cell::all().filter(|cell| matches!(cell, Cell::Lstm(_))).collect();
    for ((number, activations), cell) in pairs().enumerate().zip(lstm.into_iter().cycle()) {
        for sizes in SOME {
            let mut call = Call::new::<f32>(cell, sizes, number as u64);
            call.end_rows(sizes.time as i32);
            call.kind.activations = activations;
            // Otherwise states grow from step to step where functions do.
            call.inputs[3..].iter_mut().for_each(|one| *one *= 0.2);
            for isa in Isa::available() {
                let context = Context { isa, ..Context::default() };
                let got = call.run::<f32>(&context).expect("the shapes are right");
                let close = all_close(&got, &call.of_cells::<f32>(&context), FLOAT);
                let case = || case::<f32>(&call, sizes, &context);
                failures.note_as(|| format!("{activations:?}: {}", case()), close);
            }
        }
    }
    failures.finish();
}

#[test]
fn gates_have_the_columns_that_the_order_says() {
    for (cell, sizes) in Cell::all().zip(SOME) {
        if matches!(cell, Cell::Gru) {
            continue;
        }
        for call in calls::<f32>(cell, sizes, 3) {
            for order in ORDERS {
                let mut other = call.clone();
                other.columns = columns(order);
                for weights in &mut other.inputs[3..5] {
                    *weights = in_order(weights, order);
                }
                for context in contexts() {
                    let [want, got] =
                        [&call, &other].map(|call| call.run::<f32>(&context).expect("right"));
                    compare(&got, &want, same_bits)
                        .unwrap_or_else(|why| panic!("{order:?}: {why}"));
                }
            }
        }
    }
}

fn check_broadcast<E: Element>(sizes: Sizes, tolerance: f64) {
    let attributes = Attributes { use_peephole: false, forget_bias: 0.7, cell_clip: 0.9 };
    let Sizes { time, batch, cell_size, .. } = sizes;
    let mut failures = Failures::default();
    for shape in [&[1, cell_size][..], &[cell_size], &[], &[1], &[batch, 1], &[1, 1]] {
        for rounds in [time as i32, 1, 0] {
            let mut call = Call::new::<E>(Cell::Lstm(attributes), sizes, 7);
            call.inputs[2] = Data::new(8, round::<E>).uniform(shape, 1.0);
            call.steps.rounds = rounds;
            let want = call.want::<E>();
            for context in contexts() {
                let got = call.run::<E>(&context).expect("it broadcasts");
                let case = || format!("{shape:?}, {}", case::<E>(&call, sizes, &context));
                failures.note_as(case, all_close(&got, &want, tolerance));
            }
        }
    }
    failures.finish();
}

#[test]
fn a_state_broadcasts() {
    for sizes in [
        Sizes::new(3, 5, 7, 9),
        Sizes::new(9, 1, 3, 17),
        Sizes::new(9, 3, 8, 1),
        Sizes::new(1, 64, 2, 33),
        Sizes::new(2, 0, 3, 8),
        Sizes::new(2, 3, 4, 0),
    ] {
        check_broadcast::<f32>(sizes, FLOAT);
        check_broadcast::<f16>(sizes, HALF);
        check_broadcast::<bf16>(sizes, BFLOAT16);
    }
}

fn check_two_products<E: Element>(sizes: Sizes, tolerance: f64) {
    let attributes = Attributes { use_peephole: false, forget_bias: 0.7, cell_clip: 0.9 };
    for (seed, call) in calls::<E>(Cell::Lstm(attributes), sizes, 5).into_iter().enumerate() {
        let call = &call;
        for context in contexts() {
            let want = call.run::<E>(&context).expect("it is right");
            let got = call.of_two_products(&[]).run::<E>(&context).expect("it is right, too");
            compare(&got, &want, same_bits).unwrap_or_else(|why| panic!("{sizes:?}: {why}"));
            if sizes.batch < 2 {
                continue;
            }
            // Rows that end need states of full size.
            let has_lengths = call.steps.sequence_length.is_some();
            for rows in [&[0][..], &[1], &[1, 2], &[0, 1], &[0, 2]] {
                let one = call.of_two_products(rows);
                if has_lengths && rows != [0] {
                    one.run::<E>(&context).expect_err("rows end");
                    continue;
                }
                let got = one.run::<E>(&context).expect("rows broadcast");
                all_close(&got, &one.want::<E>(), tolerance)
                    .unwrap_or_else(|why| panic!("{seed} {rows:?} {sizes:?}: {why}"));
                let mut strict = one.clone();
                strict.kind.broadcasts_rows = false;
                strict.run::<E>(&context).expect_err("they do not");
            }
        }
    }
}

#[test]
fn the_state_may_have_weights_of_its_own() {
    for sizes in SOME {
        check_two_products::<f32>(sizes, FLOAT);
        check_two_products::<f16>(sizes, HALF);
        check_two_products::<bf16>(sizes, BFLOAT16);
    }
    check_two_products::<f32>(Sizes::new(3, 0, 4, 5), FLOAT);
    check_two_products::<f32>(Sizes::new(3, 2, 0, 5), FLOAT);
}

fn check_ended<E: Element>(cell: Cell, sizes: Sizes, seed: u64) {
    for call in calls::<E>(cell, sizes, seed) {
        let mut poisoned = call.clone();
        for (row, mut x) in poisoned.inputs[0].axis_iter_mut(Axis(1)).enumerate() {
            x.slice_axis_mut(Axis(0), Slice::from(call.length(row)..)).fill(f64::NAN);
        }
        for context in contexts() {
            let [want, got] =
                [&call, &poisoned].map(|call| call.run::<E>(&context).expect("it is right"));
            let same = compare(&got, &want, same_bits);
            same.unwrap_or_else(|why| panic!("{}: {why}", case::<E>(&call, sizes, &context)));
        }
    }
}

#[test]
fn inputs_after_a_rows_end_do_not_matter() {
    for cell in Cell::all() {
        for (seed, sizes) in SOME.into_iter().enumerate() {
            check_ended::<f32>(cell, sizes, seed as u64);
            check_ended::<f16>(cell, sizes, seed as u64);
            check_ended::<bf16>(cell, sizes, seed as u64);
        }
    }
}

/// Sets x of `row` to NaN in the first step.
fn check_poisoned<E: Element>(call: &Call, row: usize) {
    let mut poisoned = call.clone();
    poisoned.inputs[0].index_axis_mut(Axis(1), row).index_axis_mut(Axis(0), 0).fill(f64::NAN);
    let others: Vec<_> = (0..call.outputs[1].shape()[0]).filter(|&other| other != row).collect();
    for context in contexts() {
        let [want, got] =
            [call, &poisoned].map(|call| call.run::<E>(&context).expect("it is right"));
        for (at, (got, want)) in got.iter().zip(&want).enumerate() {
            let axis = Axis(usize::from(at == 0));
            let [of_others, wanted] = [got, want].map(|tensor| rows_of(tensor, axis, &others));
            same_bits("another row", &of_others, &wanted).expect("the same");
            let of_row = rows_of(got, axis, &[row]);
            let reached = if at == 0 { call.length(row) } else { 1 };
            let (reached, after) = of_row.view().split_at(Axis(0), reached);
            assert!(reached.iter().all(|value| value.is_nan()), "{call:?}");
            assert!(after.iter().all(|value| *value == 0.0), "{call:?}");
        }
    }
}

#[test]
fn a_nan_stays_in_its_row() {
    for cell in Cell::all() {
        for sizes in SOME {
            for row in [0, sizes.batch / 2, sizes.batch - 1] {
                let mut call = Call::new::<f32>(cell, sizes, 1);
                check_poisoned::<f32>(&call, row);
                check_poisoned::<f16>(&call, row);
                call.end_rows(sizes.time as i32);
                if call.length(row) > 0 {
                    check_poisoned::<f32>(&call, row);
                    check_poisoned::<f16>(&call, row);
                    check_poisoned::<bf16>(&call, row);
                }
            }
        }
    }
}

fn check_executors<E: Element>(call: &Call, sizes: Sizes) {
    for serial in contexts() {
        let want = call.run::<E>(&serial).expect("it is right");
        for (name, executor) in executors() {
            let context = Context { executor: &**executor, ..serial };
            let same = compare(&call.run::<E>(&context).expect("it is right"), &want, same_bits);
            let case = || case::<E>(call, sizes, &context);
            same.unwrap_or_else(|why| panic!("{}, {name}: {why}", case()));
        }
    }
}

/// Work for one task and for many.
#[test]
fn executors_agree() {
    for cell in Cell::all() {
        for sizes in [
            Sizes::new(10, 7, 33, 31),
            Sizes::new(3, 65, 64, 130),
            Sizes::new(2, 3, 5, 530),
            Sizes::new(9, 130, 1, 100),
        ] {
            let mut call = Call::new::<f16>(cell, sizes, 3);
            check_executors::<f32>(&call, sizes);
            call.end_rows(sizes.time as i32 - 1);
            check_executors::<f32>(&call, sizes);
            check_executors::<f16>(&call, sizes);
            check_executors::<bf16>(&call, sizes);
        }
    }
}

/// They take neither time nor memory.
#[test]
fn huge_sizes_without_elements_are_nothing() {
    const HUGE: usize = 1 << 55;
    const LONG: usize = i32::MAX as usize;
    let sizes = [[3, 0, HUGE, 0], [0, HUGE, 0, 0], [3, HUGE, 0, 0]];
    let long = [[LONG, 0, 3, 4], [LONG, 0, 0, 4], [LONG, 3, 0, 0]];
    for [time, batch, input_size, cell_size] in sizes.into_iter().chain(long) {
        for cell in Cell::all() {
            let call = Call::new::<f32>(cell, Sizes { time, batch, input_size, cell_size }, 1);
            let outputs = call.run::<f32>(&Context::default()).expect("it is right");
            assert!(outputs.iter().all(|output| output.is_empty() || output.sum() == 0.0));
        }
    }
}
