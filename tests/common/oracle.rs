//! Forward and backward steps in plain float64, straight from the equations.
//!
//! The forward steps are checked by their meaning alone, the backward ones against finite
//! differences of the forward steps (`tests/oracle.rs`).

use ndarray::{Array1, Array2, Axis, concatenate, s};

type Matrix = Array2<f64>;
type Vector = Array1<f64>;

fn logistic(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

/// `[a | b]`
fn beside(a: &Matrix, b: &Matrix) -> Matrix {
    concatenate![Axis(1), *a, *b]
}

/// Columns `gate * width .. (gate + 1) * width`.
fn gate(matrix: &Matrix, gate: usize, width: usize) -> Matrix {
    matrix.slice(s![.., gate * width..(gate + 1) * width]).to_owned()
}

/// What a GRU step starts from.
#[derive(Clone, Debug)]
pub(crate) struct GruCell {
    pub(crate) x: Matrix,
    pub(crate) h_prev: Matrix,
    pub(crate) w_ru: Matrix,
    pub(crate) w_c: Matrix,
    pub(crate) b_ru: Vector,
    pub(crate) b_c: Vector,
}

/// What a GRU step computes.
#[derive(Clone, Debug)]
pub(crate) struct GruState {
    pub(crate) r: Matrix,
    pub(crate) u: Matrix,
    pub(crate) c: Matrix,
    pub(crate) h: Matrix,
}

/// Gradients of a loss through a GRU step.
#[derive(Clone, Debug)]
pub(crate) struct GruGrad {
    pub(crate) d_x: Matrix,
    pub(crate) d_h_prev: Matrix,
    pub(crate) d_c_bar: Matrix,
    pub(crate) d_r_bar_u_bar: Matrix,
}

impl GruCell {
    pub(crate) fn forward(&self) -> GruState {
        let cell_size = self.h_prev.ncols();
        let ru_bar = beside(&self.x, &self.h_prev).dot(&self.w_ru) + &self.b_ru;
        let r = gate(&ru_bar, 0, cell_size).mapv(logistic);
        let u = gate(&ru_bar, 1, cell_size).mapv(logistic);
        let reset = &r * &self.h_prev;
        let c = (beside(&self.x, &reset).dot(&self.w_c) + &self.b_c).mapv(f64::tanh);
        let h = &u * &self.h_prev + (1.0 - &u) * &c;
        GruState { r, u, c, h }
    }

    /// Of a loss whose gradient by h is `d_h`, for the activations `r`, `u`, `c`.
    pub(crate) fn grad(&self, r: &Matrix, u: &Matrix, c: &Matrix, d_h: &Matrix) -> GruGrad {
        let input_size = self.x.ncols();
        let h_prev = &self.h_prev;
        let d_c_bar = d_h * (1.0 - u) * (1.0 - c * c);
        let d_u_bar = d_h * (h_prev - c) * u * (1.0 - u);
        let through_c = d_c_bar.dot(&self.w_c.t());
        let dx2 = through_c.slice(s![.., ..input_size]);
        let d_hr = through_c.slice(s![.., input_size..]);
        let d_r_bar = &d_hr * h_prev * r * (1.0 - r);
        let d_r_bar_u_bar = beside(&d_r_bar, &d_u_bar);
        let through_ru = d_r_bar_u_bar.dot(&self.w_ru.t());
        let dx1 = through_ru.slice(s![.., ..input_size]);
        let dh1 = through_ru.slice(s![.., input_size..]);
        let d_x = &dx1 + &dx2;
        let d_h_prev = &dh1 + &d_hr * r + d_h * u;
        GruGrad { d_x, d_h_prev, d_c_bar, d_r_bar_u_bar }
    }
}

/// What an LSTM step starts from.
#[derive(Clone, Debug)]
pub(crate) struct LstmCell {
    pub(crate) x: Matrix,
    pub(crate) cs_prev: Matrix,
    pub(crate) h_prev: Matrix,
    pub(crate) w: Matrix,
    /// wci, wcf and wco.
    pub(crate) peepholes: Option<[Vector; 3]>,
    pub(crate) b: Vector,
    pub(crate) forget_bias: f64,
}

/// What an LSTM step computes.
#[derive(Clone, Debug)]
pub(crate) struct LstmState {
    pub(crate) i: Matrix,
    pub(crate) cs: Matrix,
    pub(crate) f: Matrix,
    pub(crate) o: Matrix,
    pub(crate) ci: Matrix,
    pub(crate) co: Matrix,
    pub(crate) h: Matrix,
}

/// Gradients of a loss through an LSTM step.
#[derive(Clone, Debug)]
pub(crate) struct LstmGrad {
    pub(crate) cs_prev_grad: Matrix,
    pub(crate) dicfo: Matrix,
    /// By wci, wcf and wco, where there are peepholes.
    pub(crate) peephole_grads: Option<[Vector; 3]>,
}

impl LstmCell {
    /// The step without a clip of the cell state.
    pub(crate) fn forward(&self) -> LstmState {
        let cell_size = self.cs_prev.ncols();
        let bar = beside(&self.x, &self.h_prev).dot(&self.w) + &self.b;
        let [mut i_bar, ci_bar, f_bar, mut o_bar] = [0, 1, 2, 3].map(|n| gate(&bar, n, cell_size));
        let mut f_bar = f_bar + self.forget_bias;
        if let Some([wci, wcf, _]) = &self.peepholes {
            i_bar += &(&self.cs_prev * wci);
            f_bar += &(&self.cs_prev * wcf);
        }
        let i = i_bar.mapv(logistic);
        let f = f_bar.mapv(logistic);
        let ci = ci_bar.mapv(f64::tanh);
        let cs = &i * &ci + &f * &self.cs_prev;
        if let Some([_, _, wco]) = &self.peepholes {
            o_bar += &(&cs * wco);
        }
        let o = o_bar.mapv(logistic);
        let co = cs.mapv(f64::tanh);
        let h = &o * &co;
        LstmState { i, cs, f, o, ci, co, h }
    }

    /// Of a loss whose gradients by cs and h are `cs_grad` and `h_grad`, for the activations of
    /// `state`, of which h is not used.
    pub(crate) fn grad(&self, state: &LstmState, cs_grad: &Matrix, h_grad: &Matrix) -> LstmGrad {
        let LstmState { i, cs, f, o, ci, co, h: _ } = state;
        let cs_prev = &self.cs_prev;
        let d_o = h_grad * co * o * (1.0 - o);
        let mut dcs = cs_grad + h_grad * o * (1.0 - co * co);
        if let Some([_, _, wco]) = &self.peepholes {
            dcs += &(&d_o * wco);
        }
        let di = &dcs * ci * i * (1.0 - i);
        let dci = &dcs * i * (1.0 - ci * ci);
        let df = &dcs * cs_prev * f * (1.0 - f);
        let mut cs_prev_grad = &dcs * f;
        let peephole_grads = self.peepholes.as_ref().map(|[wci, wcf, _]| {
            cs_prev_grad += &(&di * wci + &df * wcf);
            [&di * cs_prev, &df * cs_prev, &d_o * cs].map(|terms| terms.sum_axis(Axis(0)))
        });
        let dicfo = concatenate![Axis(1), di, dci, df, d_o];
        LstmGrad { cs_prev_grad, dicfo, peephole_grads }
    }
}
