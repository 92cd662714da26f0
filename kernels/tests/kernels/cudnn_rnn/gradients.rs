//! The backward pass against finite differences of the oracle.

use blockcell_kernels::Context;
use blockcell_kernels::cudnn_rnn::Mode;
use half::f16;
use ndarray::{Array1, Array3};

use super::values::networks;
use super::{Case, Given, MODES, both, oracle, to_float, to_half};
use crate::common::compare::{Failures, close};
use crate::common::executors::contexts;

/// The loss whose gradients with respect to the outputs are those given.
pub(super) fn loss(case: &Case, given: &Given, masks: &[Array3<f64>]) -> f64 {
    let [output, h, c] = oracle::forward(case, given, masks);
    let [d_h, d_c] = &given.states_backprop;
    let of_c = if case.attributes.rnn_mode == Mode::Lstm { (c * d_c).sum() } else { 0.0 };
    (output * &given.output_backprop).sum() + (h * d_h).sum() + of_c
}

/// The derivatives with respect to all elements that `part` selects.
pub(super) fn derivatives(
    case: &Case,
    given: &Given,
    masks: &[Array3<f64>],
    len: usize,
    part: impl Fn(&mut Given) -> &mut [f64],
) -> Array1<f64> {
    const STEP: f64 = 1e-6;
    let mut given = given.clone();
    Array1::from_shape_fn(len, |n| {
        let mut at = |by: f64| {
            part(&mut given)[n] += by;
            let loss = loss(case, &given, masks);
            part(&mut given)[n] -= by;
            loss
        };
        (at(STEP) - at(-STEP)) / (2.0 * STEP)
    })
}

fn flat<D: ndarray::Dimension>(tensor: &ndarray::Array<f64, D>) -> ndarray::ArrayD<f64> {
    Array1::from_iter(tensor.iter().copied()).into_dyn()
}

pub(super) fn check(
    failures: &mut Failures,
    context: &Context<'_>,
    case: &Case,
    given: &Given,
    want: &[Array1<f64>; 4],
    half: bool,
) {
    let got =
        if half { both::<f16>(context, case, given) } else { both::<f32>(context, case, given) };
    let (_, got) = got.expect("a call without errors");
    let [h, c] = &got.states;
    let all = [flat(&got.input), flat(&got.params), flat(h), flat(c)];
    let names = ["input", "params", "input_h", "input_c"];
    let count = if case.attributes.rnn_mode == Mode::Lstm { 4 } else { 3 };
    let tolerance = if half { 5e-3 } else { 2e-5 };
    for ((name, got), want) in names.iter().zip(&all).zip(want).take(count) {
        let result = close(name, got, &want.clone().into_dyn(), tolerance);
        failures.note_as(|| format!("{case:?}, {}", context.isa.name()), result);
    }
}

/// The derivatives with respect to input, params, input_h and input_c.
pub(super) fn all_derivatives(
    case: &Case,
    given: &Given,
    masks: &[Array3<f64>],
) -> [Array1<f64>; 4] {
    let slice = |tensor: &Array3<f64>| tensor.len();
    [
        derivatives(case, given, masks, slice(&given.input), |given| {
            given.input.as_slice_mut().expect("without gaps")
        }),
        derivatives(case, given, masks, given.params.len(), |given| {
            given.params.as_slice_mut().expect("without gaps")
        }),
        derivatives(case, given, masks, slice(&given.states[0]), |given| {
            given.states[0].as_slice_mut().expect("without gaps")
        }),
        derivatives(case, given, masks, slice(&given.states[1]), |given| {
            given.states[1].as_slice_mut().expect("without gaps")
        }),
    ]
}

#[test]
fn gradients_are_those_of_the_oracle() {
    let mut failures = Failures::default();
    for mode in MODES {
        for sizes in [[3, 2, 3, 4], [2, 3, 5, 5]] {
            for (n, case) in networks(mode, sizes).iter().enumerate() {
                for (half, round) in [(false, to_float as fn(f64) -> f64), (true, to_half)] {
                    let given = case.tensors(n as u64, round);
                    let want = all_derivatives(case, &given, &[]);
                    for context in contexts() {
                        check(&mut failures, &context, case, &given, &want, half);
                    }
                }
            }
        }
    }
    failures.finish();
}
