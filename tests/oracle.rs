//! The float64 oracles against central finite differences of the forward steps.

mod common;

use common::compare::{Failures, close};
use common::data::{Data, Sizes};
use common::oracle::{GruCell, LstmCell, LstmGrad};
use ndarray::{Array, Array1, Array2, ArrayD, Axis, Dimension, concatenate};

/// The error of a central difference at this step is some 1e-10.
const STEP: f64 = 1e-5;
const TOLERANCE: f64 = 1e-8;

/// With one row, the gradient by a bias is the gradient by the pre-activation itself.
const SIZES: [(usize, usize, usize); 6] =
    [(1, 1, 1), (1, 3, 4), (3, 2, 5), (4, 0, 3), (2, 7, 2), (1, 0, 1)];

fn sizes() -> impl Iterator<Item = Sizes> {
    SIZES.into_iter().map(|(batch, input_size, cell_size)| Sizes { batch, input_size, cell_size })
}

fn matrix(data: &mut Data, rows: usize, columns: usize, limit: f64) -> Array2<f64> {
    data.uniform(&[rows, columns], limit).into_dimensionality().expect("a matrix")
}

fn vector(data: &mut Data, len: usize, limit: f64) -> Array1<f64> {
    data.uniform(&[len], limit).into_dimensionality().expect("a vector")
}

/// The gradient of `loss` by `field` of `cell`, by central differences.
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

/// `[x | h_prev]^T @ gradients`: how a gradient by pre-activations becomes one by weights.
fn by_weights(x: &Array2<f64>, h_prev: &Array2<f64>, gradients: &Array2<f64>) -> ArrayD<f64> {
    concatenate![Axis(1), *x, *h_prev].t().dot(gradients).into_dyn()
}

#[test]
fn gru_grad_is_the_gradient() {
    let mut failures = Failures::default();
    for (seed, sizes) in sizes().enumerate() {
        let Sizes { batch, input_size, cell_size } = sizes;
        let data = &mut Data::new(seed as u64, |v| v);
        let cell = GruCell {
            x: matrix(data, batch, input_size, 1.0),
            h_prev: matrix(data, batch, cell_size, 1.0),
            w_ru: matrix(data, input_size + cell_size, 2 * cell_size, 1.0),
            w_c: matrix(data, input_size + cell_size, cell_size, 1.0),
            b_ru: vector(data, 2 * cell_size, 1.0),
            b_c: vector(data, cell_size, 1.0),
        };
        let d_h = matrix(data, batch, cell_size, 1.0);
        let loss = |cell: &GruCell| (cell.forward().h * &d_h).sum();

        let state = cell.forward();
        let grad = cell.grad(&state.r, &state.u, &state.c, &d_h);
        let reset = &state.r * &cell.h_prev;
        let w_ru = by_weights(&cell.x, &cell.h_prev, &grad.d_r_bar_u_bar);
        let w_c = by_weights(&cell.x, &reset, &grad.d_c_bar);
        let b_ru = sum_over_batch(&grad.d_r_bar_u_bar);
        let b_c = sum_over_batch(&grad.d_c_bar);
        for (name, got, want) in [
            ("d_x", grad.d_x.into_dyn(), differences(&cell, |c| &mut c.x, loss)),
            ("d_h_prev", grad.d_h_prev.into_dyn(), differences(&cell, |c| &mut c.h_prev, loss)),
            ("d_r_bar_u_bar, by b_ru", b_ru, differences(&cell, |c| &mut c.b_ru, loss)),
            ("d_r_bar_u_bar, by w_ru", w_ru, differences(&cell, |c| &mut c.w_ru, loss)),
            ("d_c_bar, by b_c", b_c, differences(&cell, |c| &mut c.b_c, loss)),
            ("d_c_bar, by w_c", w_c, differences(&cell, |c| &mut c.w_c, loss)),
        ] {
            failures.note(format!("{sizes:?}"), close(name, &got, &want, TOLERANCE));
        }
    }
    failures.finish();
}

#[test]
fn lstm_grad_is_the_gradient() {
    let mut failures = Failures::default();
    let cases = sizes().flat_map(|sizes| [(sizes, false), (sizes, true)]);
    for (seed, (sizes, use_peephole)) in cases.enumerate() {
        let Sizes { batch, input_size, cell_size } = sizes;
        let data = &mut Data::new(seed as u64, |v| v);
        let cell = LstmCell {
            x: matrix(data, batch, input_size, 1.0),
            cs_prev: matrix(data, batch, cell_size, 1.0),
            h_prev: matrix(data, batch, cell_size, 1.0),
            w: matrix(data, input_size + cell_size, 4 * cell_size, 1.0),
            peepholes: use_peephole.then(|| [(); 3].map(|()| vector(data, cell_size, 1.0))),
            b: vector(data, 4 * cell_size, 1.0),
            forget_bias: 0.5,
        };
        let cs_grad = matrix(data, batch, cell_size, 1.0);
        let h_grad = matrix(data, batch, cell_size, 1.0);
        let loss = |cell: &LstmCell| {
            let state = cell.forward();
            (state.cs * &cs_grad).sum() + (state.h * &h_grad).sum()
        };

        let LstmGrad { cs_prev_grad, dicfo, peephole_grads } =
            cell.grad(&cell.forward(), &cs_grad, &h_grad);
        let w = by_weights(&cell.x, &cell.h_prev, &dicfo);
        let by_x = differences(&cell, |c| &mut c.x, loss);
        let by_h_prev = differences(&cell, |c| &mut c.h_prev, loss);
        let mut checks = vec![
            ("cs_prev_grad", cs_prev_grad.into_dyn(), differences(&cell, |c| &mut c.cs_prev, loss)),
            ("dicfo, by b", sum_over_batch(&dicfo), differences(&cell, |c| &mut c.b, loss)),
            ("dicfo, by w", w, differences(&cell, |c| &mut c.w, loss)),
            (
                "dicfo, by x and h_prev",
                dicfo.dot(&cell.w.t()).into_dyn(),
                concatenate![Axis(1), by_x, by_h_prev],
            ),
        ];
        let names = ["wci_grad", "wcf_grad", "wco_grad"];
        for (n, grad) in peephole_grads.into_iter().flatten().enumerate() {
            let want = differences(&cell, |c| peephole(c, n), loss);
            checks.push((names[n], grad.into_dyn(), want));
        }
        for (name, got, want) in checks {
            let case = format!("{sizes:?}, use_peephole {use_peephole}");
            failures.note(case, close(name, &got, &want, TOLERANCE));
        }
    }
    failures.finish();
}

fn peephole(cell: &mut LstmCell, gate: usize) -> &mut Array1<f64> {
    &mut cell.peepholes.as_mut().expect("a cell with peepholes")[gate]
}
