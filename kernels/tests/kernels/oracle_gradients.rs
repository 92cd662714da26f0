//! The float64 oracles: gradients against central finite differences of the forward steps, and
//! sequences against loops of steps.

use crate::common::compare::{Failures, close};
use crate::common::data::Data;
use crate::common::kernels::pairs;
use crate::common::oracle::{Gru, GruSequence, ICFO, IFCO, Lstm, LstmActivations, LstmSequence};
use blockcell_kernels::Activations;
use ndarray::{Array, Array1, Array2, Array3, ArrayD, Axis, Dimension, IxDyn, concatenate, s};

/// The error of a central difference at this step is some 1e-10.
const STEP: f64 = 1e-5;
const TOLERANCE: f64 = 2e-8;

/// Batch, input and cell size. With one row and one step, the gradient with respect to a bias is that with respect to
/// the pre-activation itself.
const SIZES: [(usize, usize, usize); 6] =
    [(1, 1, 1), (1, 3, 4), (3, 2, 5), (4, 0, 3), (2, 7, 2), (1, 0, 1)];

/// Numbers of steps with the number of those that are done.
const STEPS: [(usize, usize); 4] = [(1, 1), (3, 3), (4, 2), (2, 0)];

fn data(seed: usize) -> Data {
    Data::new(seed as u64, |v| v)
}

fn tensor<D: Dimension>(data: &mut Data, shape: &[usize]) -> Array<f64, D> {
    data.uniform(shape, 1.0).into_dimensionality().expect("as many dimensions as the shape")
}

/// The gradient of `loss` with respect to `field` of `cell`, by central differences.
fn differences<C: Clone, D: Dimension>(
    cell: &C,
    field: impl Fn(&mut C) -> &mut Array<f64, D>,
    loss: impl Fn(&C) -> f64,
) -> ArrayD<f64> {
    let mut grad = field(&mut cell.clone()).clone();
    for (n, grad) in grad.iter_mut().enumerate() {
        let at = |delta: f64| {
            let mut moved = cell.clone();
            *field(&mut moved).iter_mut().nth(n).expect("an element") += delta;
            loss(&moved)
        };
        *grad = (at(STEP) - at(-STEP)) / (2.0 * STEP);
    }
    grad.into_dyn()
}

fn sum_over_batch(matrix: &Array2<f64>) -> ArrayD<f64> {
    matrix.sum_axis(Axis(0)).into_dyn()
}

/// `[x | h_prev]^T @ gradients`: how a gradient with respect to pre-activations becomes one with respect to weights.
fn by_weights(x: &Array2<f64>, h_prev: &Array2<f64>, gradients: &Array2<f64>) -> ArrayD<f64> {
    concatenate![Axis(1), *x, *h_prev].t().dot(gradients).into_dyn()
}

type Checks = Vec<(&'static str, ArrayD<f64>, ArrayD<f64>)>;

fn note(failures: &mut Failures, case: &str, checks: Checks) {
    for (name, got, want) in checks {
        failures.note(case, close(name, &got, &want, TOLERANCE));
    }
}

/// Some functions. None of the numbers here is at a corner of one.
fn activations(n: usize) -> Activations {
    pairs().nth(n % 6).expect("there are six")
}

/// A GRU of random weights; `reset_after` tells whether it has a recurrent bias.
fn gru(data: &mut Data, input_size: usize, cell_size: usize, reset_after: bool) -> Gru {
    Gru {
        w_ru: tensor(data, &[input_size + cell_size, 2 * cell_size]),
        w_c: tensor(data, &[input_size + cell_size, cell_size]),
        b_ru: tensor(data, &[2 * cell_size]),
        b_c: tensor(data, &[cell_size]),
        b_hc: reset_after.then(|| tensor(data, &[cell_size])),
        activations: activations(input_size + cell_size),
    }
}

/// A GRU sequence whose rows have lengths from `done` down.
fn gru_sequence(
    data: &mut Data,
    (batch, input_size, cell_size): (usize, usize, usize),
    (time, done): (usize, usize),
    reset_after: bool,
) -> GruSequence {
    GruSequence {
        gru: gru(data, input_size, cell_size, reset_after),
        sequence_length: (0..batch).map(|row| done.saturating_sub(row)).collect(),
        x: tensor(data, &[time, batch, input_size]),
        h_prev: tensor(data, &[batch, cell_size]),
    }
}

/// An LSTM of random weights.
fn lstm(data: &mut Data, input_size: usize, cell_size: usize, use_peephole: bool) -> Lstm {
    Lstm {
        w: tensor(data, &[input_size + cell_size, 4 * cell_size]),
        peepholes: use_peephole.then(|| [(); 3].map(|()| tensor(data, &[cell_size]))),
        b: tensor(data, &[4 * cell_size]),
        forget_bias: 0.5,
        clip: None,
        layout: ICFO,
        activations: activations(input_size + cell_size),
    }
}

fn lstm_sequence(
    data: &mut Data,
    (batch, input_size, cell_size): (usize, usize, usize),
    (time, done): (usize, usize),
    use_peephole: bool,
) -> LstmSequence {
    LstmSequence {
        lstm: lstm(data, input_size, cell_size, use_peephole),
        sequence_length: vec![done; batch],
        x: tensor(data, &[time, batch, input_size]),
        cs_prev: tensor(data, &[batch, cell_size]),
        h_prev: tensor(data, &[batch, cell_size]),
    }
}

fn peephole(lstm: &mut Lstm, gate: usize) -> &mut Array1<f64> {
    &mut lstm.peepholes.as_mut().expect("a cell with peepholes")[gate]
}

const PEEPHOLES: [&str; 3] = ["wci_grad", "wcf_grad", "wco_grad"];

/// A step that a loss is taken of: a cell with what goes into it.
#[derive(Clone)]
struct Step<C> {
    cell: C,
    x: Array2<f64>,
    cs_prev: Array2<f64>,
    h_prev: Array2<f64>,
}

fn step<C>(
    data: &mut Data,
    (batch, input_size, cell_size): (usize, usize, usize),
    cell: C,
) -> Step<C> {
    Step {
        cell,
        x: tensor(data, &[batch, input_size]),
        cs_prev: tensor(data, &[batch, cell_size]),
        h_prev: tensor(data, &[batch, cell_size]),
    }
}

#[test]
fn gru_grad_is_the_gradient() {
    let mut failures = Failures::default();
    for (seed, sizes) in SIZES.into_iter().enumerate() {
        let data = &mut data(seed);
        let cell = gru(data, sizes.1, sizes.2, false);
        let step = step(data, sizes, cell);
        let d_h: Array2<f64> = tensor(data, &[sizes.0, sizes.2]);
        let forward = |step: &Step<Gru>| step.cell.forward(&step.x, &step.h_prev);
        let loss = |step: &Step<Gru>| (forward(step).h * &d_h).sum();

        let state = forward(&step);
        let grad = step.cell.grad(&step.h_prev, &state, &d_h);
        let w_ru = by_weights(&step.x, &step.h_prev, &grad.d_r_bar_u_bar);
        let w_c = by_weights(&step.x, &(&state.r * &step.h_prev), &grad.d_c_bar);
        let b_ru = sum_over_batch(&grad.d_r_bar_u_bar);
        let b_c = sum_over_batch(&grad.d_c_bar);
        let checks = vec![
            ("d_x", grad.d_x.into_dyn(), differences(&step, |s| &mut s.x, loss)),
            ("d_h_prev", grad.d_h_prev.into_dyn(), differences(&step, |s| &mut s.h_prev, loss)),
            ("d_r_bar_u_bar, by b_ru", b_ru, differences(&step, |s| &mut s.cell.b_ru, loss)),
            ("d_r_bar_u_bar, by w_ru", w_ru, differences(&step, |s| &mut s.cell.w_ru, loss)),
            ("d_c_bar, by b_c", b_c, differences(&step, |s| &mut s.cell.b_c, loss)),
            ("d_c_bar, by w_c", w_c, differences(&step, |s| &mut s.cell.w_c, loss)),
        ];
        note(&mut failures, &format!("{sizes:?}"), checks);
    }
    failures.finish();
}

#[test]
fn lstm_grad_is_the_gradient() {
    let mut failures = Failures::default();
    let cases = SIZES.into_iter().flat_map(|sizes| [(sizes, false), (sizes, true)]);
    for (seed, (sizes, use_peephole)) in cases.enumerate() {
        let data = &mut data(seed);
        let cell = lstm(data, sizes.1, sizes.2, use_peephole);
        let step = step(data, sizes, cell);
        let cs_grad: Array2<f64> = tensor(data, &[sizes.0, sizes.2]);
        let h_grad: Array2<f64> = tensor(data, &[sizes.0, sizes.2]);
        let forward = |step: &Step<Lstm>| step.cell.forward(&step.x, &step.cs_prev, &step.h_prev);
        let loss = |step: &Step<Lstm>| {
            let state = forward(step);
            (state.cs * &cs_grad).sum() + (state.h * &h_grad).sum()
        };

        let grad = step.cell.grad(&step.cs_prev, &forward(&step), &cs_grad, &h_grad);
        let dicfo = grad.gates_grad;
        let w = by_weights(&step.x, &step.h_prev, &dicfo);
        let by_x = differences(&step, |s| &mut s.x, loss);
        let by_h_prev = differences(&step, |s| &mut s.h_prev, loss);
        let by_cs_prev = differences(&step, |s| &mut s.cs_prev, loss);
        let mut checks = vec![
            ("cs_prev_grad", grad.cs_prev_grad.into_dyn(), by_cs_prev),
            ("dicfo, by b", sum_over_batch(&dicfo), differences(&step, |s| &mut s.cell.b, loss)),
            ("dicfo, by w", w, differences(&step, |s| &mut s.cell.w, loss)),
            (
                "dicfo, by x and h_prev",
                dicfo.dot(&step.cell.w.t()).into_dyn(),
                concatenate![Axis(1), by_x, by_h_prev],
            ),
        ];
        for (n, grad) in grad.peephole_grads.into_iter().flatten().enumerate() {
            let want = differences(&step, |s| peephole(&mut s.cell, n), loss);
            checks.push((PEEPHOLES[n], grad.into_dyn(), want));
        }
        note(&mut failures, &format!("{sizes:?}, use_peephole {use_peephole}"), checks);
    }
    failures.finish();
}

/// Sizes, steps and a flag, with a seed for each combination.
fn sequences() -> impl Iterator<Item = (usize, (usize, usize, usize), (usize, usize), bool)> {
    let flags = |steps| [(steps, false), (steps, true)];
    let steps = STEPS.into_iter().flat_map(flags);
    let cases = steps.flat_map(|(steps, flag)| SIZES.map(|sizes| (sizes, steps, flag)));
    cases.enumerate().map(|(seed, (sizes, steps, flag))| (seed, sizes, steps, flag))
}

#[test]
fn gru_sequence_grad_is_the_gradient() {
    let mut failures = Failures::default();
    for (seed, sizes, steps, reset_after) in sequences() {
        let data = &mut data(seed);
        let sequence = gru_sequence(data, sizes, steps, reset_after);
        let h_grad: Array3<f64> = tensor(data, &[steps.0, sizes.0, sizes.2]);
        let h_last_grad: Array2<f64> = tensor(data, &[sizes.0, sizes.2]);
        let loss = |sequence: &GruSequence| {
            let (states, h_last) = sequence.forward();
            (states.h * &h_grad).sum() + (h_last * &h_last_grad).sum()
        };
        let grad = sequence.grad(&sequence.forward().0, &h_grad, &h_last_grad);
        let by_b_hc = if reset_after {
            differences(&sequence, |s| s.gru.b_hc.as_mut().expect("a recurrent bias"), loss)
        } else {
            ArrayD::zeros(IxDyn(&[sizes.2]))
        };
        let checks = vec![
            ("x_grad", grad.x_grad.into_dyn(), differences(&sequence, |s| &mut s.x, loss)),
            (
                "h_prev_grad",
                grad.h_prev_grad.into_dyn(),
                differences(&sequence, |s| &mut s.h_prev, loss),
            ),
            (
                "w_ru_grad",
                grad.w_ru_grad.into_dyn(),
                differences(&sequence, |s| &mut s.gru.w_ru, loss),
            ),
            (
                "w_c_grad",
                grad.w_c_grad.into_dyn(),
                differences(&sequence, |s| &mut s.gru.w_c, loss),
            ),
            (
                "b_ru_grad",
                grad.b_ru_grad.into_dyn(),
                differences(&sequence, |s| &mut s.gru.b_ru, loss),
            ),
            (
                "b_c_grad",
                grad.b_c_grad.into_dyn(),
                differences(&sequence, |s| &mut s.gru.b_c, loss),
            ),
            ("b_hc_grad", grad.b_hc_grad.into_dyn(), by_b_hc),
        ];
        let case = format!("{sizes:?}, {steps:?} steps, reset_after {reset_after}");
        note(&mut failures, &case, checks);
    }
    failures.finish();
}

#[test]
fn lstm_sequence_grad_is_the_gradient() {
    let mut failures = Failures::default();
    for (seed, sizes, steps, use_peephole) in sequences() {
        let data = &mut data(seed);
        let mut sequence = lstm_sequence(data, sizes, steps, use_peephole);
        sequence.lstm.layout = [ICFO, IFCO][seed % 2];
        let cs_grad: Array3<f64> = tensor(data, &[steps.0, sizes.0, sizes.2]);
        let h_grad: Array3<f64> = tensor(data, &[steps.0, sizes.0, sizes.2]);
        let loss = |sequence: &LstmSequence| {
            let states = sequence.forward();
            (states.cs * &cs_grad).sum() + (states.h * &h_grad).sum()
        };
        let grad = sequence.grad(&sequence.forward(), &cs_grad, &h_grad);
        let by_cs_prev = differences(&sequence, |s| &mut s.cs_prev, loss);
        let by_h_prev = differences(&sequence, |s| &mut s.h_prev, loss);
        let mut checks = vec![
            ("x_grad", grad.x_grad.into_dyn(), differences(&sequence, |s| &mut s.x, loss)),
            ("cs_prev_grad", grad.cs_prev_grad.into_dyn(), by_cs_prev),
            ("h_prev_grad", grad.h_prev_grad.into_dyn(), by_h_prev),
            ("w_grad", grad.w_grad.into_dyn(), differences(&sequence, |s| &mut s.lstm.w, loss)),
            ("b_grad", grad.b_grad.into_dyn(), differences(&sequence, |s| &mut s.lstm.b, loss)),
        ];
        for (n, grad) in grad.peephole_grads.into_iter().flatten().enumerate() {
            let want = differences(&sequence, |s| peephole(&mut s.lstm, n), loss);
            checks.push((PEEPHOLES[n], grad.into_dyn(), want));
        }
        let case = format!("{sizes:?}, {steps:?} steps, use_peephole {use_peephole}");
        note(&mut failures, &case, checks);
    }
    failures.finish();
}

/// Steps `from ..` as tensors, and zeros after `done` of them.
fn stacked<const N: usize>(
    steps: &[[Array2<f64>; N]],
    shape: (usize, usize, usize),
) -> [ArrayD<f64>; N] {
    let mut all = [(); N].map(|()| Array3::zeros(shape));
    for (t, step) in steps.iter().enumerate() {
        for (all, step) in all.iter_mut().zip(step) {
            all.slice_mut(s![t, .., ..]).assign(step);
        }
    }
    all.map(Array::into_dyn)
}

#[test]
fn lstm_sequence_is_a_loop_of_steps() {
    let mut failures = Failures::default();
    for (seed, sizes, steps, use_peephole) in sequences() {
        let mut sequence = lstm_sequence(&mut data(seed), sizes, steps, use_peephole);
        sequence.lstm.clip = [None, Some(0.3)][seed % 2];
        let (mut cs, mut h) = (sequence.cs_prev.clone(), sequence.h_prev.clone());
        let mut done = Vec::new();
        for t in 0..steps.1 {
            let x = sequence.x.index_axis(Axis(0), t).to_owned();
            let state = sequence.lstm.forward(&x, &cs, &h);
            assert!(sequence.lstm.clip.is_none_or(|k| state.cs.iter().all(|cs| cs.abs() <= k)));
            (cs, h) = (state.cs.clone(), state.h.clone());
            done.push(state.in_order());
        }
        let want = stacked(&done, (steps.0, sizes.0, sizes.2));
        let got = sequence.forward().in_order().map(Array::into_dyn);
        let names = ["i", "cs", "f", "o", "ci", "co", "h"];
        let checks = names.into_iter().zip(got).zip(want).map(|((n, got), want)| (n, got, want));
        note(&mut failures, &format!("{sizes:?}, {steps:?} steps"), checks.collect());
    }
    failures.finish();
}

/// Every row alone, and with no more steps than it has.
#[test]
fn gru_sequence_is_a_loop_of_steps_of_each_row() {
    let mut failures = Failures::default();
    for (seed, sizes, steps, reset_after) in sequences() {
        let sequence = gru_sequence(&mut data(seed), sizes, steps, reset_after);
        let (states, last) = sequence.forward();
        for (row, &length) in sequence.sequence_length.iter().enumerate() {
            let mut h = sequence.h_prev.select(Axis(0), &[row]);
            let mut done = Vec::new();
            for t in 0..length {
                let x = sequence.x.slice(s![t, row..=row, ..]).to_owned();
                let state = sequence.gru.forward(&x, &h);
                h = state.h.clone();
                done.push(state.in_order());
            }
            let want = stacked(&done, (steps.0, 1, sizes.2));
            let got = states.clone().in_order().map(|s| s.select(Axis(1), &[row]).into_dyn());
            let names = ["r", "u", "c", "hc", "h"];
            let checks =
                names.into_iter().zip(got).zip(want).map(|((n, got), want)| (n, got, want));
            let mut checks: Checks = checks.collect();
            checks.push(("h_last", last.select(Axis(0), &[row]).into_dyn(), h.into_dyn()));
            let case = format!("{sizes:?}, {steps:?} steps, reset_after {reset_after}, row {row}");
            note(&mut failures, &case, checks);
        }
    }
    failures.finish();
}

/// The layouts name the same gates by other columns.
#[test]
fn lstm_layouts_are_permutations() {
    let mut failures = Failures::default();
    for (seed, sizes, steps, use_peephole) in sequences() {
        let icfo = lstm_sequence(&mut data(seed), sizes, steps, use_peephole);
        let mut ifco = icfo.clone();
        ifco.lstm.layout = IFCO;
        let c = sizes.2;
        for (to, from) in [(1, 2), (2, 1)] {
            let columns = |gate: usize| gate * c..(gate + 1) * c;
            let w = icfo.lstm.w.slice(s![.., columns(from)]);
            ifco.lstm.w.slice_mut(s![.., columns(to)]).assign(&w);
            let b = icfo.lstm.b.slice(s![columns(from)]);
            ifco.lstm.b.slice_mut(s![columns(to)]).assign(&b);
        }
        let LstmActivations { h, cs, .. } = icfo.forward();
        let other = ifco.forward();
        let checks = vec![
            ("cs", other.cs.into_dyn(), cs.into_dyn()),
            ("h", other.h.into_dyn(), h.into_dyn()),
        ];
        note(&mut failures, &format!("{sizes:?}, {steps:?} steps"), checks);
    }
    failures.finish();
}

/// With a diagonal weight matrix and no recurrent bias it does not matter when the reset gate acts.
#[test]
fn reset_conventions_agree_on_diagonal_weights() {
    let mut failures = Failures::default();
    for (seed, sizes, steps, _) in sequences() {
        let mut before = gru_sequence(&mut data(seed), sizes, steps, false);
        let mut of_state = before.gru.w_c.slice_mut(s![sizes.1.., ..]);
        let diagonal = Array2::from_diag(&of_state.diag());
        of_state.assign(&diagonal);
        let mut after = before.clone();
        after.gru.b_hc = Some(Array1::zeros(sizes.2));
        let (got, want) = (after.forward(), before.forward());
        let checks = vec![
            ("h", got.0.h.into_dyn(), want.0.h.into_dyn()),
            ("h_last", got.1.into_dyn(), want.1.into_dyn()),
        ];
        note(&mut failures, &format!("{sizes:?}, {steps:?} steps"), checks);
    }
    failures.finish();
}
