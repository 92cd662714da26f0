//! Long short-term memory: ops `LSTMBlockCell`, `BlockLSTM`, `BlockLSTMV2`, `BlockcellLSTM` and their gradients.

use blockcell_kernels::Activations;
use ndarray::{Array1, Array2, Array3, Axis, concatenate, s};

use super::{
    Matrix, Steps, Vector, before, beside, function, gate, picked, put, rows_of, slope, step,
    sum_over_batch,
};

/// The places of the gates i, ci, f and o among the columns of the weights.
pub(crate) type Layout = [usize; 4];

/// Input, cell input, forget, output.
pub(crate) const ICFO: Layout = [0, 1, 2, 3];

/// Input, forget, cell input, output.
pub(crate) const IFCO: Layout = [0, 2, 1, 3];

/// Weights and attributes.
#[derive(Clone, Debug)]
pub(crate) struct Lstm {
    pub(crate) w: Matrix,
    /// wci, wcf and wco.
    pub(crate) peepholes: Option<[Vector; 3]>,
    pub(crate) b: Vector,
    pub(crate) forget_bias: f64,
    /// The largest magnitude of a cell state.
    pub(crate) clip: Option<f64>,
    pub(crate) layout: Layout,
    pub(crate) activations: Activations,
}

/// What is computed from `T`: the matrix of a step, or those of all steps.
#[derive(Clone, Debug)]
pub(crate) struct LstmActivations<T> {
    pub(crate) i: T,
    pub(crate) cs: T,
    pub(crate) f: T,
    pub(crate) o: T,
    pub(crate) ci: T,
    pub(crate) co: T,
    pub(crate) h: T,
}

/// The activations of a sequence.
pub(crate) type LstmStates = LstmActivations<Steps>;

impl<T> LstmActivations<T> {
    /// In the order of the operations' outputs.
    pub(crate) fn in_order(self) -> [T; 7] {
        let LstmActivations { i, cs, f, o, ci, co, h } = self;
        [i, cs, f, o, ci, co, h]
    }

    pub(crate) fn from_order([i, cs, f, o, ci, co, h]: [T; 7]) -> Self {
        LstmActivations { i, cs, f, o, ci, co, h }
    }
}

/// Gradients of a loss through a step.
#[derive(Clone, Debug)]
pub(crate) struct LstmGrad {
    pub(crate) cs_prev_grad: Matrix,
    /// With respect to the pre-activations, in the layout of the weights.
    pub(crate) gates_grad: Matrix,
    /// With respect to wci, wcf and wco, where there are peepholes.
    pub(crate) peephole_grads: Option<[Vector; 3]>,
}

impl Lstm {
    pub(crate) fn cell_size(&self) -> usize {
        self.b.len() / 4
    }

    /// A step.
    pub(crate) fn forward(
        &self,
        x: &Matrix,
        cs_prev: &Matrix,
        h_prev: &Matrix,
    ) -> LstmActivations<Matrix> {
        let Activations { state, gates } = self.activations;
        let [state, gates] = [state, gates].map(|of| move |x: f64| function(of, x));
        let bar = beside(x, h_prev).dot(&self.w) + &self.b;
        let [mut i_bar, ci_bar, f_bar, mut o_bar] =
            self.layout.map(|place| gate(&bar, place, self.cell_size()));
        let mut f_bar = f_bar + self.forget_bias;
        if let Some([wci, wcf, _]) = &self.peepholes {
            i_bar += &(cs_prev * wci);
            f_bar += &(cs_prev * wcf);
        }
        let i = i_bar.mapv(gates);
        let f = f_bar.mapv(gates);
        let ci = ci_bar.mapv(state);
        let mut cs = &i * &ci + &f * cs_prev;
        if let Some(clip) = self.clip {
            // `clamp` keeps NaN.
            cs.mapv_inplace(|cs| cs.clamp(-clip, clip));
        }
        if let Some([_, _, wco]) = &self.peepholes {
            o_bar += &(&cs * wco);
        }
        let o = o_bar.mapv(gates);
        let co = cs.mapv(state);
        let h = &o * &co;
        LstmActivations { i, cs, f, o, ci, co, h }
    }

    /// Of a loss whose gradients with respect to cs and h are `cs_grad` and `h_grad`, for the activations of
    /// `state`, of which h is not used. The clip counts as the identity.
    pub(crate) fn grad(
        &self,
        cs_prev: &Matrix,
        state: &LstmActivations<Matrix>,
        cs_grad: &Matrix,
        h_grad: &Matrix,
    ) -> LstmGrad {
        let LstmActivations { i, cs, f, o, ci, co, h: _ } = state;
        let Activations { state, gates } = self.activations;
        let [state, gates] = [state, gates].map(|of| move |y: &Matrix| y.mapv(|y| slope(of, y)));
        let d_o = h_grad * co * gates(o);
        let mut dcs = cs_grad + h_grad * o * state(co);
        if let Some([_, _, wco]) = &self.peepholes {
            dcs += &(&d_o * wco);
        }
        let di = &dcs * ci * gates(i);
        let dci = &dcs * i * state(ci);
        let df = &dcs * cs_prev * gates(f);
        let mut cs_prev_grad = &dcs * f;
        let peephole_grads = self.peepholes.as_ref().map(|[wci, wcf, _]| {
            cs_prev_grad += &(&di * wci + &df * wcf);
            [&di * cs_prev, &df * cs_prev, &d_o * cs].map(|terms| sum_over_batch(&terms))
        });
        let gates = [di, dci, df, d_o];
        let mut columns = [(); 4].map(|()| gates[0].view());
        for (gate, place) in gates.iter().zip(self.layout) {
            columns[place] = gate.view();
        }
        let gates_grad = concatenate(Axis(1), &columns).expect("gates of one size");
        LstmGrad { cs_prev_grad, gates_grad, peephole_grads }
    }
}

/// A sequence of steps, of a length of its own in every row.
#[derive(Clone, Debug)]
pub(crate) struct LstmSequence {
    pub(crate) lstm: Lstm,
    /// Steps of each row that are computed, at most those of x.
    pub(crate) sequence_length: Vec<usize>,
    pub(crate) x: Steps,
    pub(crate) cs_prev: Matrix,
    pub(crate) h_prev: Matrix,
}

/// Gradients of a loss through a sequence.
#[derive(Clone, Debug)]
pub(crate) struct LstmSequenceGrad {
    pub(crate) x_grad: Steps,
    pub(crate) cs_prev_grad: Matrix,
    pub(crate) h_prev_grad: Matrix,
    pub(crate) w_grad: Matrix,
    /// With respect to wci, wcf and wco, where there are peepholes.
    pub(crate) peephole_grads: Option<[Vector; 3]>,
    pub(crate) b_grad: Vector,
}

impl LstmSequence {
    /// All steps after a row's last one are zeros.
    pub(crate) fn forward(&self) -> LstmStates {
        let (time, batch, _) = self.x.dim();
        let shape = (time, batch, self.lstm.cell_size());
        let mut all = [(); 7].map(|()| Array3::zeros(shape));
        let (mut cs, mut h) = (self.cs_prev.clone(), self.h_prev.clone());
        for t in 0..time {
            let rows = rows_of(&self.sequence_length, t);
            let [x, cs_prev, h_prev] = [&step(&self.x, t), &cs, &h].map(|all| picked(all, &rows));
            let state = self.lstm.forward(&x, &cs_prev, &h_prev);
            put(&mut cs, &rows, &state.cs);
            put(&mut h, &rows, &state.h);
            for (steps, matrix) in all.iter_mut().zip(state.in_order()) {
                for (from, &row) in rows.iter().enumerate() {
                    steps.slice_mut(s![t, row, ..]).assign(&matrix.row(from));
                }
            }
        }
        LstmActivations::from_order(all)
    }

    /// Of a loss whose gradients with respect to cs and h are `cs_grad` and `h_grad`, for the activations
    /// `states`.
    pub(crate) fn grad(
        &self,
        states: &LstmStates,
        cs_grad: &Steps,
        h_grad: &Steps,
    ) -> LstmSequenceGrad {
        let mut grad = self.zeros();
        for t in (0..self.x.dim().0).rev() {
            let rows = rows_of(&self.sequence_length, t);
            let at = |steps: &Steps| picked(&step(steps, t), &rows);
            let cs_prev = picked(&before(&self.cs_prev, &states.cs, t), &rows);
            let h_prev = picked(&before(&self.h_prev, &states.h, t), &rows);
            let LstmActivations { i, cs, f, o, ci, co, h } = states;
            let state = LstmActivations::from_order([i, cs, f, o, ci, co, h].map(at));
            let cs_grad = at(cs_grad) + picked(&grad.cs_prev_grad, &rows);
            let h_grad = at(h_grad) + picked(&grad.h_prev_grad, &rows);
            let back = self.lstm.grad(&cs_prev, &state, &cs_grad, &h_grad);

            let x = at(&self.x);
            let xh_grad = back.gates_grad.dot(&self.lstm.w.t());
            let (x_grad, h_prev_grad) = super::cut(&xh_grad, x.ncols());
            for (from, &row) in rows.iter().enumerate() {
                grad.x_grad.slice_mut(s![t, row, ..]).assign(&x_grad.row(from));
            }
            put(&mut grad.h_prev_grad, &rows, &h_prev_grad);
            put(&mut grad.cs_prev_grad, &rows, &back.cs_prev_grad);
            grad.w_grad += &beside(&x, &h_prev).t().dot(&back.gates_grad);
            grad.b_grad += &sum_over_batch(&back.gates_grad);
            let sums = grad.peephole_grads.iter_mut().flatten();
            for (sum, terms) in sums.zip(back.peephole_grads.iter().flatten()) {
                *sum += terms;
            }
        }
        grad
    }

    /// The gradients of a sequence without steps.
    fn zeros(&self) -> LstmSequenceGrad {
        let state = self.cs_prev.raw_dim();
        LstmSequenceGrad {
            x_grad: Array3::zeros(self.x.raw_dim()),
            cs_prev_grad: Array2::zeros(state),
            h_prev_grad: Array2::zeros(state),
            w_grad: Array2::zeros(self.lstm.w.raw_dim()),
            peephole_grads: self
                .lstm
                .peepholes
                .as_ref()
                .map(|all| all.clone().map(|weights| Array1::zeros(weights.len()))),
            b_grad: Array1::zeros(self.lstm.b.len()),
        }
    }
}
