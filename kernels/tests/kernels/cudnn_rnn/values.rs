//! Outputs, and that they depend on nothing else.

use blockcell_kernels::cudnn_rnn::{Attributes, InputMode, Mode};
use blockcell_kernels::{Context, Isa};
use half::f16;
use ndarray::{Array3, s};

use super::{Case, Given, MODES, both, forward, oracle, to_float, to_half};
use crate::common::compare::{Failures, close, same_bits};
use crate::common::executors::{contexts, executors};

const SIZES: [[usize; 4]; 4] = [[1, 1, 1, 1], [4, 3, 2, 5], [5, 2, 17, 16], [3, 20, 6, 33]];

/// Networks of one and two layers in one and two directions, of rows of all lengths, in both orders of axes.
pub(crate) fn networks(mode: Mode, sizes: [usize; 4]) -> Vec<Case> {
    let [time, batch, input_size, num_units] = sizes;
    let mut all = Vec::new();
    for n in 0..8 {
        let bit = |k: usize| n >> k & 1 == 1;
        let mut case = Case::new(mode, sizes);
        case.num_layers = if bit(0) { 2 } else { 1 };
        case.attributes.bidirectional = bit(1);
        case.attributes.time_major = bit(0) || bit(2);
        // Rows of all lengths, the longest not the first.
        let lengths = (0..batch).map(|b| ((3 * b + 2) % (time + 1)) as i32);
        case.lengths = (bit(2)).then(|| lengths.collect());
        if input_size == num_units && bit(1) {
            case.attributes.input_mode = InputMode::AutoSelect;
        }
        all.push(case);
    }
    // The same with a projection, where there is one.
    let sizes = if mode == Mode::Lstm { [1, num_units.div_ceil(2)] } else { [0, 0] };
    let projected = all.clone().into_iter().zip(sizes.into_iter().cycle());
    let projected = projected.filter(|&(_, size)| size > 0 && size <= num_units);
    all.extend(projected.map(|(mut case, size)| {
        case.attributes.num_proj = size as i64;
        case
    }));
    all
}

/// What stands in steps that a row does not have, in tensors that have steps.
fn pad(case: &Case, given: &mut Given, value: f64) {
    for (b, &length) in case.all_lengths().iter().enumerate() {
        for tensor in [&mut given.input, &mut given.output_backprop] {
            let mut row = if case.attributes.time_major {
                tensor.slice_mut(s![length.., b, ..])
            } else {
                tensor.slice_mut(s![b, length.., ..])
            };
            row.fill(value);
        }
    }
}

#[test]
fn outputs_are_those_of_the_oracle() {
    let mut failures = Failures::default();
    for mode in MODES {
        for sizes in SIZES.into_iter().chain([[3, 2, 5, 5]]) {
            for (n, case) in networks(mode, sizes).iter().enumerate() {
                for (half, round) in [(false, to_float as fn(f64) -> f64), (true, to_half)] {
                    let given = case.tensors(n as u64, round);
                    let want = oracle::forward(case, &given, &[]);
                    for context in contexts() {
                        let got = if half {
                            forward::<f16>(&context, case, &given)
                        } else {
                            forward::<f32>(&context, case, &given)
                        };
                        let got = got.expect("a call without errors");
                        let got = [got.output].into_iter().chain(got.states);
                        let tolerance = if half { 3e-3 } else { 2e-6 };
                        let names = ["output", "output_h", "output_c"];
                        let states = if mode == Mode::Lstm { 3 } else { 2 };
                        for ((name, got), want) in names.iter().zip(got).zip(&want).take(states) {
                            let result =
                                close(name, &got.into_dyn(), &want.clone().into_dyn(), tolerance);
                            failures
                                .note_as(|| format!("{case:?}, {}", context.isa.name()), result);
                        }
                    }
                }
            }
        }
    }
    failures.finish();
}

/// Numbers of tensors of a forward and a backward pass.
fn everything(context: &Context<'_>, case: &Case, given: &Given) -> Vec<Array3<f64>> {
    let (forward, backward) = both::<f32>(context, case, given).expect("a call without errors");
    let params = backward.params.insert_axis(ndarray::Axis(0)).insert_axis(ndarray::Axis(0));
    let mut all = vec![forward.output, backward.input, params];
    let states = if case.attributes.rnn_mode == Mode::Lstm { 2 } else { 1 };
    all.extend(forward.states.into_iter().take(states));
    all.extend(backward.states.into_iter().take(states));
    all
}

#[test]
fn threads_do_not_matter() {
    let mut failures = Failures::default();
    for mode in MODES {
        for mut case in networks(mode, [3, 37, 18, 70]) {
            case.attributes.dropout = 0.3;
            let given = case.tensors(1, to_float);
            let isa = Isa::get();
            let mut want = None;
            for (name, executor) in executors() {
                let got = everything(&Context::new(isa, executor.as_ref()), &case, &given);
                let want = want.get_or_insert_with(|| got.clone());
                for (n, (got, want)) in got.into_iter().zip(want).enumerate() {
                    let result =
                        same_bits(&n.to_string(), &got.into_dyn(), &want.clone().into_dyn());
                    failures.note_as(|| format!("{case:?}, {name}"), result);
                }
            }
        }
    }
    failures.finish();
}

#[test]
fn steps_that_a_row_does_not_have_do_not_matter() {
    let mut failures = Failures::default();
    for mode in MODES {
        for case in networks(mode, [4, 5, 3, 7]) {
            let context = Context::default();
            let mut given = case.tensors(2, to_float);
            pad(&case, &mut given, 0.5);
            let want = everything(&context, &case, &given);
            pad(&case, &mut given, f64::NAN);
            let got = everything(&context, &case, &given);
            for (n, (got, want)) in got.into_iter().zip(want).enumerate() {
                let result = same_bits(&n.to_string(), &got.into_dyn(), &want.into_dyn());
                failures.note_as(|| format!("{case:?}"), result);
            }
        }
    }
    failures.finish();
}

/// Rows of one length after rows of another give what each of them gives alone, also where a thread has rows of one length.
#[test]
fn rows_of_two_lengths_are_those_of_two_batches() {
    let mut failures = Failures::default();
    let (lengths, rows) = ([2, 5], [0..20, 20..40]);
    for (mode, units) in MODES.into_iter().flat_map(|mode| [7, 130].map(|units| (mode, units))) {
        let context = Context::default();
        let mut case = Case::new(mode, [5, 40, 3, units]);
        case.attributes.time_major = true;
        case.lengths = Some(lengths.iter().flat_map(|&length| [length; 20]).collect());
        let given = case.tensors(4, to_float);
        let got = both::<f32>(&context, &case, &given).expect("a call without errors").1;
        let parts = rows.clone().into_iter().zip(lengths).map(|(rows, length)| {
            let part = |tensor: &Array3<f64>| tensor.slice(s![.., rows.clone(), ..]).to_owned();
            let given = Given {
                input: part(&given.input),
                states: given.states.each_ref().map(part),
                params: given.params.clone(),
                output_backprop: part(&given.output_backprop),
                states_backprop: given.states_backprop.each_ref().map(part),
            };
            let case = Case { batch: 20, lengths: Some(vec![length; 20]), ..case.clone() };
            let part = both::<f32>(&context, &case, &given).expect("a call without errors").1;
            let input = got.input.slice(s![.., rows.clone(), ..]).to_owned();
            let result = close("input", &input.into_dyn(), &part.input.clone().into_dyn(), 2e-6);
            failures.note_as(|| format!("{case:?}"), result);
            part.params
        });
        let want = parts.reduce(|first, second| first + second).expect("two parts");
        let result = close("params", &got.params.into_dyn(), &want.into_dyn(), 2e-6);
        failures.note_as(|| format!("{case:?}"), result);
    }
    failures.finish();
}

/// Without training the outputs are the same, and there is no dropout.
#[test]
fn inference_gives_the_outputs_of_training() {
    let mut failures = Failures::default();
    for mode in MODES {
        for mut case in networks(mode, [4, 3, 2, 9]) {
            case.num_layers = 3;
            let context = Context::default();
            let given = case.tensors(3, to_float);
            let want = forward::<f32>(&context, &case, &given).expect("a call without errors");
            let Attributes { is_training, dropout, .. } = &mut case.attributes;
            (*is_training, *dropout) = (false, 0.5);
            let got = forward::<f32>(&context, &case, &given).expect("a call without errors");
            failures.check(format!("{case:?}"), got.reserve_space.is_empty(), "a reserve space");
            let result = same_bits("output", &got.output.into_dyn(), &want.output.into_dyn());
            failures.note_as(|| format!("{case:?}"), result);
        }
    }
    failures.finish();
}

/// Any size but the number of layers may be 0.
#[test]
fn empty_sizes() {
    let mut failures = Failures::default();
    for mode in MODES {
        for empty in 1..16 {
            let size = |k: usize, full| if empty >> k & 1 == 1 { 0 } else { full };
            for case in networks(mode, [size(0, 2), size(1, 3), size(2, 4), size(3, 5)]) {
                let given = case.tensors(4, to_float);
                let want = oracle::forward(&case, &given, &[]);
                let (got, backward) =
                    both::<f32>(&Context::default(), &case, &given).expect("a call without errors");
                let [output, h, _] = want.map(|want| want.into_dyn());
                let [got_h, _] = got.states;
                let results = [
                    close("output", &got.output.into_dyn(), &output, 1e-6),
                    close("output_h", &got_h.into_dyn(), &h, 1e-6),
                ];
                results
                    .into_iter()
                    .for_each(|result| failures.note_as(|| format!("{case:?}"), result));
                let finite = backward.params.iter().chain(&backward.input).all(|d| d.is_finite());
                failures.check(format!("{case:?}"), finite, "a gradient was not set");
                if case.time == 0 {
                    let d_h = backward.states[0] == given.states_backprop[0];
                    failures.check(
                        format!("{case:?}"),
                        d_h,
                        "the state's gradient is not passed on",
                    );
                }
            }
        }
    }
    failures.finish();
}
