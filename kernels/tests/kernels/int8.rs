//! Sequences whose weights are constants in int8: close to those in float32, the same whatever runs them and whatever else is
//! in the batch, and float32 where int8 is not asked for or does not pay.

use blockcell_kernels::{Context, Copies, Isa, Ran, Serial, Weights};
use half::f16;
use ndarray::{Array3, Axis};

use crate::common::data::Sizes;
use crate::common::executors::executors;
use crate::constants::{Number, Sequence};

/// Few rows and many, group by group of cells and in tiles, with gates that begin within a unit of columns.
const SIZES: [Sizes; 8] = [
    Sizes::new(20, 1, 33, 65),
    Sizes::new(12, 3, 40, 48),
    Sizes::new(9, 6, 35, 130),
    Sizes::new(10, 8, 67, 257),
    Sizes::new(11, 23, 5, 70),
    Sizes::new(9, 67, 129, 40),
    Sizes::new(20, 20, 200, 200),
    Sizes::new(9, 2, 513, 520),
];

/// The largest error by the largest element. ONNX Runtime's is larger: `docs/int8.md`.
const LIMIT: f32 = 2e-2;

fn int8(isa: Isa, weights: Weights) -> Context<'static> {
    Context { weights, ..Context::new(isa, &Serial) }
}

fn float(number: f64) -> f32 {
    number as f32
}

/// Weights as layers begin with, which leave sums that gates are sensitive to.
fn sequence(is_lstm: bool, sizes: Sizes) -> Sequence<f32> {
    let mut sequence = Sequence::new(is_lstm, sizes, float);
    let factor = 2.0 * (3.0 / sizes.cell_size as f32).sqrt();
    sequence.weights.iter_mut().for_each(|weights| *weights *= factor);
    sequence
}

fn scaled_error(got: &Array3<f32>, want: &Array3<f32>) -> f32 {
    let scale = want.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    let differences = got.iter().zip(want).map(|(got, want)| (got - want).abs());
    differences.fold(0.0, f32::max) / scale
}

fn sequences() -> impl Iterator<Item = (Sizes, bool)> {
    SIZES.into_iter().flat_map(|sizes| [true, false].map(|is_lstm| (sizes, is_lstm)))
}

#[test]
fn int8_is_close_to_float32_and_runs() {
    for (sizes, is_lstm) in sequences() {
        let sequence = sequence(is_lstm, sizes);
        let want = sequence.h(&Context::default());
        for isa in Isa::choices() {
            let ran = Ran::default();
            let context = Context { ran: Some(&ran), ..int8(isa, Weights::Int8) };
            let got = sequence.h_of_constants(&context, &Default::default());
            let (error, case) = (scaled_error(&got, &want), format!("{sizes:?}, {}", isa.name()));
            assert!(error < LIMIT && error > 1e-5, "{case}: {error:e}");
            assert!(ran.in_int8(), "{case}");
            // Where x stays float32 the error is smaller, and not that of float32.
            let kept = int8(isa, Weights::Int8ExceptX);
            let error = scaled_error(&sequence.h_of_constants(&kept, &Default::default()), &want);
            assert!(error < LIMIT && error > 1e-5, "{case}, except x: {error:e}");
        }
    }
}

#[test]
fn executors_agree_in_int8() {
    for (sizes, is_lstm) in sequences() {
        let sequence = sequence(is_lstm, sizes);
        for isa in Isa::choices() {
            let copies = Default::default();
            let context = int8(isa, Weights::Int8);
            let want = sequence.h_of_constants(&context, &copies);
            for (name, executor) in executors() {
                let context = Context { executor: &**executor, ..context };
                for copies in [&copies, &Default::default()] {
                    let got = sequence.h_of_constants(&context, copies);
                    assert_eq!(got, want, "{sizes:?}, {}, {name}", isa.name());
                }
            }
        }
    }
}

/// Copies are those of all batches, and a row does not depend on the others.
#[test]
fn a_row_is_the_same_in_every_batch() {
    for (sizes, is_lstm) in sequences() {
        let all = sequence(is_lstm, sizes);
        let (copies, context) = (Default::default(), int8(Isa::get(), Weights::Int8));
        let want = all.h_of_constants(&context, &copies);
        let kept: usize = copies.iter().map(Copies::bytes).sum();
        for rows in [1, 2, 5, 7, 19].into_iter().filter(|&rows| rows < sizes.batch) {
            let mut some = sequence(is_lstm, sizes);
            some.x =
                some.x.slice_axis_move(Axis(1), (..rows).into()).as_standard_layout().into_owned();
            some.state = some.state.slice_axis_move(Axis(0), (..rows).into());
            some.state = some.state.as_standard_layout().into_owned();
            let got = some.h_of_constants(&context, &copies);
            let want = want.view().slice_axis_move(Axis(1), (..rows).into());
            assert_eq!(got, want, "{sizes:?}, {rows} rows");
        }
        let after: usize = copies.iter().map(Copies::bytes).sum();
        assert!(after <= 2 * kept, "{sizes:?}: {kept} bytes, then {after}");
    }
}

/// Packed weights take a third of their bytes at most, and there is no other copy.
#[test]
fn packed_weights_are_small() {
    for is_lstm in [true, false] {
        for sizes in [Sizes::new(50, 8, 256, 256), Sizes::new(20, 20, 200, 200)] {
            let sequence = sequence(is_lstm, sizes);
            let copies = Default::default();
            sequence.h_of_constants(&int8(Isa::get(), Weights::Int8), &copies);
            let kept: usize = copies.iter().map(Copies::bytes).sum();
            let weights: usize = sequence.weights.iter().map(|w| size_of::<f32>() * w.len()).sum();
            assert!(kept > 0 && 10 * kept <= 3 * weights, "{sizes:?}: {kept} of {weights}");
        }
    }
}

/// Half, weights that are no constants, few steps and few terms.
#[test]
fn all_else_is_as_in_float32() {
    fn check<E: Number>(sizes: Sizes, number: fn(f64) -> E, constants: bool) {
        for is_lstm in [true, false] {
            let sequence = Sequence::new(is_lstm, sizes, number);
            let ran = Ran::default();
            let context = Context { ran: Some(&ran), ..int8(Isa::get(), Weights::Int8) };
            let got = if constants {
                sequence.h_of_constants(&context, &Default::default())
            } else {
                sequence.h(&context)
            };
            assert_eq!(got, sequence.h(&Context::default()), "{sizes:?}");
            assert!(!ran.in_int8(), "{sizes:?}");
        }
    }
    check(SIZES[0], f16::from_f64, true);
    check(SIZES[0], float, false);
    check(Sizes::new(20, 7, 5, 9), float, true);
}
