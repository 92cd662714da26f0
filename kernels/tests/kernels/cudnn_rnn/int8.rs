//! Networks that infer with constant parameters in int8.

use blockcell_kernels::cudnn_rnn::{InputMode, Mode};
use blockcell_kernels::{Context, Copies, Isa, Ran, Serial, Weights};
use half::f16;
use ndarray::Array3;

use super::values::networks;
use super::{Case, Given, MODES, forward, forward_of, oracle, to_float, to_half};
use crate::common::executors::executors;

/// Few rows and many, with gates that begin within a unit of columns.
const SIZES: [[usize; 4]; 3] = [[12, 5, 40, 96], [20, 1, 45, 81], [9, 23, 41, 80]];

/// The largest error by the largest element. Units that are not bounded have larger ones.
const LIMIT: f64 = 2e-2;
const LIMIT_OF_RELU: f64 = 6e-2;

fn int8<'r>(isa: Isa, ran: &'r Ran) -> Context<'r> {
    Context { weights: Weights::Int8, ran: Some(ran), ..Context::new(isa, &Serial) }
}

/// Networks that infer, with inputs for each.
fn cases(mode: Mode, sizes: [usize; 4], round: fn(f64) -> f64) -> Vec<(Case, Given)> {
    let with_inputs = |(n, mut case): (usize, Case)| {
        case.attributes.is_training = false;
        let given = case.tensors(n as u64, round);
        (case, given)
    };
    // Errors are relative to the largest of all outputs, which tells little of a single column.
    let networks = networks(mode, sizes).into_iter().filter(|case| case.output_size() > 1);
    networks.enumerate().map(with_inputs).collect()
}

fn scaled_error(got: &Array3<f64>, want: &Array3<f64>) -> f64 {
    let scale = want.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    let differences = got.iter().zip(want).map(|(got, want)| (got - want).abs());
    differences.fold(0.0, f64::max) / scale
}

#[test]
fn int8_is_close_to_the_oracle() {
    for mode in MODES {
        for sizes in SIZES {
            for (case, given) in cases(mode, sizes, to_float) {
                let [want, ..] = oracle::forward(&case, &given, &[]);
                // All instruction sets, at one of the sizes.
                let is_tried = |isa: &Isa| sizes == SIZES[0] || *isa == Isa::get();
                for isa in Isa::choices().into_iter().filter(is_tried) {
                    let (ran, copies) = (Ran::default(), Copies::default());
                    let got = forward_of::<f32>(&int8(isa, &ran), &case, &given, Some(&copies));
                    let error = scaled_error(&got.expect("a right call").output, &want);
                    let limit = if mode == Mode::RnnRelu { LIMIT_OF_RELU } else { LIMIT };
                    assert!(error < limit && error > 1e-5, "{case:?}, {}: {error:e}", isa.name());
                    assert!(ran.in_int8(), "{case:?}");
                }
            }
        }
    }
}

#[test]
fn executors_and_copies_do_not_change_results() {
    for mode in MODES {
        for (case, given) in cases(mode, SIZES[0], to_float) {
            let (ran, copies) = (Ran::default(), Copies::default());
            let context = int8(Isa::get(), &ran);
            let want = forward_of::<f32>(&context, &case, &given, Some(&copies));
            let want = want.expect("a right call");
            for (name, executor) in executors() {
                let context = Context { executor: &**executor, ..context };
                for copies in [&copies, &Copies::default()] {
                    let got = forward_of::<f32>(&context, &case, &given, Some(copies));
                    let got = got.expect("a right call");
                    assert_eq!(got.output, want.output, "{case:?}, {name}");
                }
            }
        }
    }
}

/// Also with the inputs of the first layer as they are, and several layers and directions.
#[test]
fn packed_parameters_are_small() {
    for mode in MODES {
        for skips in [false, true] {
            let mut case = Case::new(mode, [20, 8, 128, 128]);
            case.attributes.is_training = false;
            case.attributes.bidirectional = true;
            case.num_layers = 2;
            if skips {
                case.attributes.input_mode = InputMode::SkipInput;
            }
            let given = case.tensors(1, to_float);
            let (ran, copies) = (Ran::default(), Copies::default());
            let context = int8(Isa::get(), &ran);
            forward_of::<f32>(&context, &case, &given, Some(&copies)).expect("a right call");
            let (kept, all) = (copies.bytes(), size_of::<f32>() * case.params_size());
            assert!(kept > 0 && 10 * kept <= 3 * all, "{case:?}: {kept} of {all} bytes");
        }
    }
}

/// Training, half, parameters that are no constant, and few steps and terms.
#[test]
fn all_else_is_as_in_float32() {
    let ran = Ran::default();
    let context = int8(Isa::get(), &ran);
    for mode in MODES {
        for (mut case, given) in cases(mode, SIZES[0], to_half) {
            let copies = Copies::default();
            let want = forward::<f32>(&Context::default(), &case, &given).expect("a right call");
            let got = forward::<f32>(&context, &case, &given).expect("a right call");
            assert_eq!(got.output, want.output, "{case:?}");
            let want = forward::<f16>(&Context::default(), &case, &given).expect("a right call");
            let got = forward_of::<f16>(&context, &case, &given, Some(&Copies::default()));
            assert_eq!(got.expect("a right call").output, want.output, "{case:?}");
            case.attributes.is_training = true;
            let want = forward::<f32>(&Context::default(), &case, &given).expect("a right call");
            let got = forward_of::<f32>(&context, &case, &given, Some(&copies));
            assert_eq!(got.expect("a right call").output, want.output, "{case:?}");
        }
        for (case, given) in cases(mode, [20, 7, 5, 9], to_float) {
            let want = forward::<f32>(&Context::default(), &case, &given).expect("a right call");
            let got = forward_of::<f32>(&context, &case, &given, Some(&Copies::default()));
            assert_eq!(got.expect("a right call").output, want.output, "{case:?}");
        }
    }
    assert!(!ran.in_int8());
}
