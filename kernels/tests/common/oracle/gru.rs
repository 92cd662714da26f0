//! Gated recurrent unit: ops `GRUBlockCell`, `BlockGRU` and their gradients.

use blockcell_kernels::Activations;
use ndarray::{Array1, Array2, Array3, Axis, s};

use super::{
    Matrix, Steps, Vector, before, beside, cut, function, gate, owned, picked, put, rows_of, slope,
    step, sum_over_batch,
};

/// Weights.
#[derive(Clone, Debug)]
pub(crate) struct Gru {
    pub(crate) w_ru: Matrix,
    pub(crate) w_c: Matrix,
    pub(crate) b_ru: Vector,
    pub(crate) b_c: Vector,
    /// The recurrent bias, where the reset gate is applied after the product with the weights.
    pub(crate) b_hc: Option<Vector>,
    pub(crate) activations: Activations,
}

/// What is computed from `T`: the matrix of a step, or those of all steps.
#[derive(Clone, Debug)]
pub(crate) struct GruActivations<T> {
    pub(crate) r: T,
    pub(crate) u: T,
    pub(crate) c: T,
    /// The state's part in the candidate, after whatever comes first of reset and product.
    pub(crate) hc: T,
    pub(crate) h: T,
}

/// The activations of a sequence.
pub(crate) type GruStates = GruActivations<Steps>;

impl<T> GruActivations<T> {
    /// In the order of the operations' outputs.
    pub(crate) fn in_order(self) -> [T; 5] {
        let GruActivations { r, u, c, hc, h } = self;
        [r, u, c, hc, h]
    }

    pub(crate) fn from_order([r, u, c, hc, h]: [T; 5]) -> Self {
        GruActivations { r, u, c, hc, h }
    }
}

/// Gradients of a loss through a step.
#[derive(Clone, Debug)]
pub(crate) struct GruGrad {
    pub(crate) d_x: Matrix,
    pub(crate) d_h_prev: Matrix,
    pub(crate) d_c_bar: Matrix,
    pub(crate) d_r_bar_u_bar: Matrix,
    pub(crate) d_hc: Matrix,
}

impl Gru {
    pub(crate) fn cell_size(&self) -> usize {
        self.b_c.len()
    }

    pub(crate) fn input_size(&self) -> usize {
        self.w_c.nrows() - self.cell_size()
    }

    /// The rows of w_c for x, and those for the state.
    fn w_c_parts(&self) -> (Matrix, Matrix) {
        let (input, state) = self.w_c.view().split_at(Axis(0), self.input_size());
        (owned(input), owned(state))
    }

    /// A step.
    pub(crate) fn forward(&self, x: &Matrix, h_prev: &Matrix) -> GruActivations<Matrix> {
        let Activations { state, gates } = self.activations;
        let gates = |x| function(gates, x);
        let ru_bar = beside(x, h_prev).dot(&self.w_ru) + &self.b_ru;
        let r = gate(&ru_bar, 0, self.cell_size()).mapv(gates);
        let u = gate(&ru_bar, 1, self.cell_size()).mapv(gates);
        let (w_input, w_state) = self.w_c_parts();
        let from_input = x.dot(&w_input) + &self.b_c;
        let (hc, c_bar) = match &self.b_hc {
            None => {
                let hc = &r * h_prev;
                let c_bar = from_input + hc.dot(&w_state);
                (hc, c_bar)
            }
            Some(b_hc) => {
                let hc = h_prev.dot(&w_state) + b_hc;
                let c_bar = from_input + &r * &hc;
                (hc, c_bar)
            }
        };
        let c = c_bar.mapv(|x| function(state, x));
        let h = &u * h_prev + (1.0 - &u) * &c;
        GruActivations { r, u, c, hc, h }
    }

    /// Of a loss whose gradient with respect to h is `d_h`, for the activations of `state`, of which h is not
    /// used, and hc only with a recurrent bias.
    pub(crate) fn grad(
        &self,
        h_prev: &Matrix,
        state: &GruActivations<Matrix>,
        d_h: &Matrix,
    ) -> GruGrad {
        let GruActivations { r, u, c, hc, h: _ } = state;
        let (w_input, w_state) = self.w_c_parts();
        let Activations { state, gates } = self.activations;
        let d_c_bar = d_h * (1.0 - u) * c.mapv(|y| slope(state, y));
        let d_u_bar = d_h * (h_prev - c) * u.mapv(|y| slope(gates, y));
        let (d_hc, d_r, direct) = if self.b_hc.is_some() {
            let d_hc = &d_c_bar * r;
            let direct = d_hc.dot(&w_state.t());
            (d_hc, &d_c_bar * hc, direct)
        } else {
            let d_hc = d_c_bar.dot(&w_state.t());
            let (d_r, direct) = (&d_hc * h_prev, &d_hc * r);
            (d_hc, d_r, direct)
        };
        let d_r_bar = d_r * r.mapv(|y| slope(gates, y));
        let d_r_bar_u_bar = beside(&d_r_bar, &d_u_bar);
        let (dx_ru, dh_ru) = cut(&d_r_bar_u_bar.dot(&self.w_ru.t()), self.input_size());
        let d_x = dx_ru + d_c_bar.dot(&w_input.t());
        let d_h_prev = dh_ru + direct + d_h * u;
        GruGrad { d_x, d_h_prev, d_c_bar, d_r_bar_u_bar, d_hc }
    }
}

/// A sequence of steps, of a length of its own in every row.
#[derive(Clone, Debug)]
pub(crate) struct GruSequence {
    pub(crate) gru: Gru,
    pub(crate) sequence_length: Vec<usize>,
    pub(crate) x: Steps,
    pub(crate) h_prev: Matrix,
}

/// Gradients of a loss through a sequence.
#[derive(Clone, Debug)]
pub(crate) struct GruSequenceGrad {
    pub(crate) x_grad: Steps,
    pub(crate) h_prev_grad: Matrix,
    pub(crate) w_ru_grad: Matrix,
    pub(crate) w_c_grad: Matrix,
    pub(crate) b_ru_grad: Vector,
    pub(crate) b_c_grad: Vector,
    /// Zeros, as many as there are cells, without a recurrent bias.
    pub(crate) b_hc_grad: Vector,
}

impl GruSequence {
    /// The rows that step `t` belongs to.
    fn rows(&self, t: usize) -> Vec<usize> {
        rows_of(&self.sequence_length, t)
    }

    /// The activations, zero after a row's last step, and the last states.
    pub(crate) fn forward(&self) -> (GruStates, Matrix) {
        let (time, batch, _) = self.x.dim();
        let mut all = [(); 5].map(|()| Array3::zeros((time, batch, self.gru.cell_size())));
        let mut last = self.h_prev.clone();
        for t in 0..time {
            let rows = self.rows(t);
            let state = self.gru.forward(&picked(&step(&self.x, t), &rows), &picked(&last, &rows));
            put(&mut last, &rows, &state.h);
            for (steps, matrix) in all.iter_mut().zip(state.in_order()) {
                for (from, &row) in rows.iter().enumerate() {
                    steps.slice_mut(s![t, row, ..]).assign(&matrix.row(from));
                }
            }
        }
        (GruActivations::from_order(all), last)
    }

    /// Of a loss whose gradients with respect to h and h_last are `h_grad` and `h_last_grad`, for the
    /// activations `states`.
    pub(crate) fn grad(
        &self,
        states: &GruStates,
        h_grad: &Steps,
        h_last_grad: &Matrix,
    ) -> GruSequenceGrad {
        let mut grad = self.zeros(h_last_grad);
        let input_size = self.gru.input_size();
        for t in (0..self.x.dim().0).rev() {
            let rows = self.rows(t);
            let at = |steps: &Steps| picked(&step(steps, t), &rows);
            let h_prev = picked(&before(&self.h_prev, &states.h, t), &rows);
            let GruActivations { r, u, c, hc, h } = states;
            let state = GruActivations::from_order([r, u, c, hc, h].map(at));
            let d_h = at(h_grad) + picked(&grad.h_prev_grad, &rows);
            let back = self.gru.grad(&h_prev, &state, &d_h);

            put(&mut grad.h_prev_grad, &rows, &back.d_h_prev);
            for (from, &row) in rows.iter().enumerate() {
                grad.x_grad.slice_mut(s![t, row, ..]).assign(&back.d_x.row(from));
            }
            let x = at(&self.x);
            grad.w_ru_grad += &beside(&x, &h_prev).t().dot(&back.d_r_bar_u_bar);
            grad.b_ru_grad += &sum_over_batch(&back.d_r_bar_u_bar);
            grad.b_c_grad += &sum_over_batch(&back.d_c_bar);
            let (mut of_input, mut of_state) =
                grad.w_c_grad.view_mut().split_at(Axis(0), input_size);
            of_input += &x.t().dot(&back.d_c_bar);
            if self.gru.b_hc.is_some() {
                of_state += &h_prev.t().dot(&back.d_hc);
                grad.b_hc_grad += &sum_over_batch(&back.d_hc);
            } else {
                of_state += &state.hc.t().dot(&back.d_c_bar);
            }
        }
        grad
    }

    /// The gradients of a sequence without steps.
    fn zeros(&self, h_last_grad: &Matrix) -> GruSequenceGrad {
        let Gru { w_ru, w_c, b_ru, b_c, .. } = &self.gru;
        GruSequenceGrad {
            x_grad: Array3::zeros(self.x.raw_dim()),
            h_prev_grad: h_last_grad.clone(),
            w_ru_grad: Array2::zeros(w_ru.raw_dim()),
            w_c_grad: Array2::zeros(w_c.raw_dim()),
            b_ru_grad: Array1::zeros(b_ru.len()),
            b_c_grad: Array1::zeros(b_c.len()),
            b_hc_grad: Array1::zeros(b_c.len()),
        }
    }
}
