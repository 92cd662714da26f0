//! Products at lower precision: close to the float64 oracle, the same whatever runs them, and float32 where they do not
//! pay.

use crate::common::compare::{Failures, close, same_bits};
use crate::common::data::Sizes;
use crate::common::executors::executors;
use crate::common::kernels::{Attribute, Kernel, kernels};
use blockcell_kernels::{Context, Isa, Precision, Ran, Serial};

/// Few rows and many, group by group of cells and in tiles, with odd numbers of terms.
const SIZES: [Sizes; 13] = [
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
    // Large weights of few rows.
    Sizes::new(9, 1, 5, 333),
    Sizes::new(10, 2, 3, 335),
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

/// What has numbers in bfloat16. Large sizes would take the model minutes.
fn with_medium(sizes: Sizes) -> impl Iterator<Item = Isa> {
    let small = sizes.time * sizes.batch * sizes.cell_size * sizes.cell_size < 1 << 20;
    let all = Isa::choices().into_iter().filter(|&isa| has_medium(isa));
    all.filter(move |&isa| small || isa != Isa::model())
}

fn has_medium(isa: Isa) -> bool {
    Precision::Medium.on(isa) == Precision::Medium
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
            for isa in with_medium(sizes) {
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
            for isa in with_medium(sizes) {
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

/// Sequences of floats have other bits at *medium* than at *highest*: so it ran, and says so. *high* runs as *highest*,
/// and so does everything with half and in single steps. Without the instructions large weights of few rows are rounded,
/// and nothing else.
#[test]
fn a_level_runs_where_it_can() {
    let mut failures = Failures::default();
    for (sizes, is_large) in [(Sizes::new(12, 9, 40, 48), false), (Sizes::new(9, 1, 3, 333), true)]
    {
        for kernel in kernels() {
            let inputs = kernel.inputs(sizes, 1);
            for isa in Isa::choices() {
                let takes_long = isa == Isa::model() || !has_medium(isa);
                if is_large && (takes_long || !kernel.name().starts_with("BlockLSTM")) {
                    continue;
                }
                let (medium, ran) = (Precision::Medium, Ran::default());
                let outputs = |context: &_| kernel.outputs(context, sizes, &inputs);
                let highest = outputs(&at(Precision::Highest, isa));
                let same = |got: &_| kernel.compare(got, &highest, same_bits);
                let case = case(&*kernel, sizes, isa);
                failures.note(format!("{case}, high"), same(&outputs(&at(Precision::High, isa))));
                let got = outputs(&Context { ran: Some(&ran), ..at(medium, isa) });
                let is_medium = same(&got).is_err();
                let can = isa.has_pairs() || is_large && has_medium(isa);
                let wanted = can && kernel.is_sequence() && !kernel.is_16_bit();
                failures.check(format!("{case}, medium"), is_medium == wanted, is_medium);
                let says = ran.in_bfloat16();
                failures.check(format!("{case}, says"), says == wanted, says);
            }
        }
    }
    failures.finish();
}
