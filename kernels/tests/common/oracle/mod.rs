//! Forward and backward steps and sequences in plain float64, straight from the equations.
//!
//! The forward steps are checked by their meaning alone; everything else in `tests/oracle.rs`: the
//! backward steps and sequences against finite differences, the sequences against loops of steps.

mod gru;
mod lstm;

pub(crate) use gru::{Gru, GruActivations, GruSequence};
pub(crate) use lstm::{ICFO, IFCO, Lstm, LstmActivations, LstmSequence};
use ndarray::{Array1, Array2, Array3, ArrayView2, Axis, concatenate, s};

type Matrix = Array2<f64>;
type Vector = Array1<f64>;
type Steps = Array3<f64>;

fn logistic(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
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
