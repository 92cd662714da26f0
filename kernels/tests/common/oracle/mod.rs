//! Forward and backward steps and sequences in plain float64, straight from the equations.
//!
//! The forward steps are checked by their meaning alone; everything else in `tests/oracle.rs`: the
//! backward steps and sequences against finite differences, the sequences against loops of steps.

mod gru;
mod lstm;

use blockcell_kernels::Activation;
pub(crate) use gru::{Gru, GruActivations, GruSequence};
pub(crate) use lstm::{ICFO, IFCO, Lstm, LstmActivations, LstmSequence};
use ndarray::{Array1, Array2, Array3, ArrayView2, Axis, concatenate, s};

type Matrix = Array2<f64>;
type Vector = Array1<f64>;
type Steps = Array3<f64>;

/// The scale of the function selu, and its alpha.
const SELU: [f64; 2] = [1.050_700_987_355_480_5, 1.673_263_242_354_377_2];

/// A function of a number.
pub(crate) fn function(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Tanh => x.tanh(),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Activation::Relu => x.max(0.0),
        Activation::Linear => x,
        Activation::HardSigmoid => (x / 6.0 + 0.5).clamp(0.0, 1.0),
        Activation::HardSigmoidKeras2 => (x / 5.0 + 0.5).clamp(0.0, 1.0),
        Activation::Softsign => x / (1.0 + x.abs()),
        Activation::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        Activation::Elu => x.max(0.0) + x.min(0.0).exp_m1(),
        Activation::Selu => SELU[0] * (x.max(0.0) + SELU[1] * x.min(0.0).exp_m1()),
    }
}

/// The derivative of a function where it has the value `y`.
fn slope(activation: Activation, y: f64) -> f64 {
    let is_inside = if 0.0 < y && y < 1.0 { 1.0 } else { 0.0 };
    match activation {
        Activation::Tanh => 1.0 - y * y,
        Activation::Sigmoid => y * (1.0 - y),
        Activation::Relu => {
            if y > 0.0 {
                1.0
            } else {
                0.0
            }
        }
        Activation::Linear => 1.0,
        Activation::HardSigmoid => is_inside / 6.0,
        Activation::HardSigmoidKeras2 => is_inside / 5.0,
        Activation::Softsign => (1.0 - y.abs()).powi(2),
        Activation::Softplus => -(-y).exp_m1(),
        Activation::Elu => 1.0 + y.min(0.0),
        Activation::Selu if y < 0.0 => y + SELU[0] * SELU[1],
        Activation::Selu => SELU[0],
    }
}

/// The rows of a matrix.
fn picked(matrix: &Matrix, rows: &[usize]) -> Matrix {
    matrix.select(Axis(0), rows)
}

/// The counterpart of [`picked`].
fn put(matrix: &mut Matrix, rows: &[usize], values: &Matrix) {
    for (from, &row) in rows.iter().enumerate() {
        matrix.row_mut(row).assign(&values.row(from));
    }
}

/// The rows that have step `t`.
fn rows_of(sequence_length: &[usize], t: usize) -> Vec<usize> {
    (0..sequence_length.len()).filter(|&row| t < sequence_length[row]).collect()
}

/// `[a | b]`
fn beside(a: &Matrix, b: &Matrix) -> Matrix {
    concatenate![Axis(1), *a, *b]
}

/// Columns `gate * width .. (gate + 1) * width`.
fn gate(matrix: &Matrix, gate: usize, width: usize) -> Matrix {
    owned(matrix.slice(s![.., gate * width..(gate + 1) * width]))
}

/// `matrix`, cut after the first `columns`.
fn cut(matrix: &Matrix, columns: usize) -> (Matrix, Matrix) {
    let (left, right) = matrix.view().split_at(Axis(1), columns);
    (owned(left), owned(right))
}

/// A copy of a part of a matrix, which may be empty: `to_owned` does not expect that of a part that
/// has strides.
fn owned(part: ArrayView2<'_, f64>) -> Matrix {
    Matrix::from_shape_vec(part.dim(), part.iter().copied().collect()).expect("as many elements")
}

fn sum_over_batch(matrix: &Matrix) -> Vector {
    matrix.sum_axis(Axis(0))
}

/// Step `t` of a sequence.
fn step(steps: &Steps, t: usize) -> Matrix {
    steps.index_axis(Axis(0), t).to_owned()
}

/// The state before step `t` of a sequence that starts from `first`.
fn before(first: &Matrix, steps: &Steps, t: usize) -> Matrix {
    if t == 0 { first.clone() } else { step(steps, t - 1) }
}
