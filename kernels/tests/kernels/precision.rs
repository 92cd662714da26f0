//! Products at lower precision: close to the float64 oracle, the same whatever runs them, and float32 where they do not
//! pay.

use crate::common::compare::{Failures, close, same_bits};
use crate::common::data::Sizes;
use crate::common::executors::executors;
use crate::common::kernels::{Attribute, Kernel, kernels};
use blockcell_kernels::{Context, Isa, Precision, Serial};

/// Few rows and many, group by group of cells and in tiles, with odd numbers of terms.
const SIZES: [Sizes; 11] = [
    Sizes::new(33, 1, 33, 65),
    Sizes::new(12, 3, 40, 47),
    Sizes::new(9, 6, 35, 130),
    Sizes::new(9, 7, 32, 33),
    Sizes::new(10, 8, 67, 257),
    Sizes::new(11, 23, 5, 70),
    Sizes::new(9, 67, 129, 40),
    Sizes::new(16, 67, 5, 33),
    Sizes::new(2, 65, 64, 130),
    Sizes::new(9, 120, 3, 261),
    Sizes::new(20, 20, 200, 200),
];

/// The largest error of *medium*, by the largest element of a tensor.
const MEDIUM: f64 = 1e-2;

/// A clip leaves errors as they are, but makes what they are measured by smaller.
fn limit(kernel: &dyn Kernel) -> f64 {
    let is_clip = |&(name, value): &(&str, Attribute)| {
        name == "cell_clip" && matches!(value, Attribute::Float(clip) if clip > 0.0)
    };
    if kernel.attributes().iter().any(is_clip) { 2.0 * MEDIUM } else { MEDIUM }
}

/// What computes with pairs of numbers in bfloat16. Large sizes would take the model minutes.
fn with_pairs(sizes: Sizes) -> impl Iterator<Item = Isa> {
    let small = sizes.time * sizes.batch * sizes.cell_size * sizes.cell_size < 1 << 20;
    let all = Isa::choices().into_iter().filter(|isa| isa.has_pairs());
    all.filter(move |&isa| small || isa != Isa::model())
}

fn at(precision: Precision, isa: Isa) -> Context<'static> {
    Context { precision, ..Context::new(isa, &Serial) }
}

fn case(kernel: &dyn Kernel, sizes: Sizes, isa: Isa) -> String {
    format!("{}, {sizes:?}, {}", kernel.name(), isa.name())
}

#[test]
fn medium_is_close_to_the_oracle() {
    let mut failures = Failures::default();
    for kernel in kernels() {
        for (seed, sizes) in SIZES.into_iter().enumerate() {
            let (inputs, want) = kernel.inputs_and_want(sizes, seed as u64);
            for isa in with_pairs(sizes) {
                let got = kernel.outputs(&at(Precision::Medium, isa), sizes, &inputs);
                let close = |name: &str, got: &_, want: &_| close(name, got, want, limit(&*kernel));
                failures.note(case(&*kernel, sizes, isa), kernel.compare(&got, &want, close));
            }
        }
    }
    failures.finish();
}

#[test]
fn executors_agree_at_medium() {
    let mut failures = Failures::default();
    for kernel in kernels() {
        for sizes in SIZES {
            let inputs = kernel.inputs(sizes, 1);
            for isa in with_pairs(sizes) {
                let context = at(Precision::Medium, isa);
                let want = kernel.outputs(&context, sizes, &inputs);
                let [_, backwards, .., most] = executors() else { unreachable!("executors") };
                for (name, executor) in [backwards, most] {
                    let context = Context { executor: &**executor, ..context };
                    let got = kernel.outputs(&context, sizes, &inputs);
                    let same = kernel.compare(&got, &want, same_bits);
                    failures.note(format!("{}, {name}", case(&*kernel, sizes, isa)), same);
                }
            }
        }
    }
    failures.finish();
}

/// Sequences of floats have other bits at *medium* than at *highest*: so it ran. *high* runs as *highest*, and so does
/// everything without the instructions, with half and in single steps.
#[test]
fn a_level_runs_where_it_can() {
    let mut failures = Failures::default();
    let sizes = Sizes::new(12, 9, 40, 48);
    for kernel in kernels() {
        let inputs = kernel.inputs(sizes, 1);
        for isa in Isa::choices() {
            let outputs = |precision| kernel.outputs(&at(precision, isa), sizes, &inputs);
            let highest = outputs(Precision::Highest);
            let same = |got: &_| kernel.compare(got, &highest, same_bits);
            let case = case(&*kernel, sizes, isa);
            failures.note(format!("{case}, high"), same(&outputs(Precision::High)));
            let is_medium = same(&outputs(Precision::Medium)).is_err();
            let can = isa.has_pairs() && kernel.is_sequence() && !kernel.is_half();
            failures.check(format!("{case}, medium"), is_medium == can, is_medium);
        }
    }
    failures.finish();
}
