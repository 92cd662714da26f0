//! Which values matter and where they go: unread inputs, NaN and infinities, and the one
//! rounding of half.

mod common;

use blockcell::ops::Dim;
use blockcell::{Context, Isa, Serial};
use common::Tensors;
use common::compare::{Failures, close, rows_of, same_bits};
use common::data::Sizes;
use common::kernels::{Kernel, LstmBlockCellGrad, kernels};
use half::f16;
use ndarray::IxDyn;

const SIZES: [(usize, usize, usize); 5] =
    [(1, 1, 1), (3, 2, 5), (4, 17, 16), (7, 15, 33), (20, 3, 70)];

fn sizes() -> impl Iterator<Item = Sizes> {
    SIZES.into_iter().map(|(batch, input_size, cell_size)| Sizes { batch, input_size, cell_size })
}

fn contexts() -> impl Iterator<Item = Context<'static>> {
    Isa::available().into_iter().map(|isa| Context { isa, executor: &Serial })
}

fn case(kernel: &dyn Kernel, sizes: Sizes, context: &Context<'_>) -> String {
    format!("{}, {sizes:?}, {}", kernel.name(), context.isa.name())
}

#[test]
fn unread_inputs_do_not_matter() {
    let mut failures = Failures::default();
    for kernel in kernels() {
        for sizes in sizes() {
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
    let sizes = Sizes::new(3, 2, 5);
    for kernel in kernels() {
        for (n, input) in kernel.op().inputs.iter().enumerate() {
            if kernel.unread().contains(&input.name) {
                continue;
            }
            let mut inputs = kernel.inputs(sizes, 1);
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
        for sizes in sizes() {
            let (clean, _) = kernel.inputs_and_want(sizes, 3);
            let before: Vec<_> =
                contexts().map(|context| kernel.outputs(&context, sizes, &clean)).collect();
            for (n, input) in kernel.op().inputs.iter().enumerate() {
                if kernel.unread().contains(&input.name) {
                    continue;
                }
                for (at, value) in special_values(clean[n].shape()) {
                    let mut inputs = clean.clone();
                    inputs[n][&at] = value;
                    let want = kernel.want(&inputs);
                    let row = (input.dims[0] == Dim::Batch).then(|| at[0]);
                    for (context, before) in contexts().zip(&before) {
                        let got = kernel.outputs(&context, sizes, &inputs);
                        let case = case(&*kernel, sizes, &context);
                        let case = format!("{case}, {value} in {}, row {row:?}", input.name);
                        failures.note(&case, as_equations_say(&*kernel, &got, &want));
                        if let Some(row) = row {
                            failures.note(&case, others_are_same(&*kernel, &got, before, row));
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
    let places: Vec<_> = match *shape {
        [n] => ends(n).map(|j| IxDyn(&[j])).collect(),
        [m, n] => {
            [m / 2, m - 1].into_iter().flat_map(|i| ends(n).map(move |j| IxDyn(&[i, j]))).collect()
        }
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
    kernel.compare(got, before, |name, got, before| {
        if got.ndim() < 2 {
            return Ok(());
        }
        let others: Vec<_> = (0..got.shape()[0]).filter(|&other| other != row).collect();
        same_bits(name, &rows_of(got, &others), &rows_of(before, &others))
    })
}

#[test]
fn peephole_gradients_are_zeros_without_peepholes() {
    let mut failures = Failures::default();
    let float: Box<dyn Kernel> = Box::new(LstmBlockCellGrad::<f32>::new(false));
    let half: Box<dyn Kernel> = Box::new(LstmBlockCellGrad::<f16>::new(false));
    for kernel in [float, half] {
        for sizes in sizes() {
            for context in contexts() {
                let got = kernel.outputs(&context, sizes, &kernel.inputs(sizes, 1));
                let zeros = got[2..].iter().flatten().all(|value| value.to_bits() == 0);
                failures.check(case(&*kernel, sizes, &context), zeros, "not zero");
            }
        }
    }
    failures.finish();
}

/// Half is computed in `f32` and rounded once: it is the rounded result of the `f32` kernel.
#[test]
fn half_is_rounded_float() {
    let mut failures = Failures::default();
    for use_peephole in [false, true] {
        let half: &dyn Kernel = &LstmBlockCellGrad::<f16>::new(use_peephole);
        let float: &dyn Kernel = &LstmBlockCellGrad::<f32>::new(use_peephole);
        for sizes in sizes() {
            let inputs = half.inputs(sizes, 5);
            for context in contexts() {
                let got = half.outputs(&context, sizes, &inputs);
                let mut want = float.outputs(&context, sizes, &inputs);
                want.iter_mut().for_each(|tensor| tensor.mapv_inplace(half.round()));
                let same = half.compare(&got, &want, same_bits);
                failures.note(case(half, sizes, &context), same);
            }
        }
    }
    failures.finish();
}
