//! Steps of cells with other functions than tanh and the logistic function, against sums in float64 and finite
//! differences.

use blockcell_kernels::lstm::Attributes;
use blockcell_kernels::unfused::{
    GateColumns, GruAttributes, GruCellGradCInputs, GruCellGradCOutputs, GruCellInputs,
    GruCellOutputs, LstmCellGradAttributes, LstmCellGradInputs, LstmCellGradOutputs,
    LstmCellInputs, LstmCellOutputs, gru_cell, gru_cell_grad_c, gru_cell_scratch, lstm_cell,
    lstm_cell_grad, lstm_cell_grad_scratch, lstm_cell_scratch,
};
use blockcell_kernels::{Activations, Context};
use ndarray::{Array1, Array2, ArrayD, Axis, IxDyn, concatenate, s};

use crate::common::executors::contexts;
use crate::common::kernels::pairs;
use crate::common::oracle::function;
use crate::unfused_numbers::{assert_close, matrix, numbers, wide};

const SIZES: [[usize; 3]; 5] = [[1, 1, 1], [3, 5, 7], [2, 3, 16], [4, 2, 33], [0, 3, 4]];

/// The pre-activations are large enough for all parts of functions, and none is near a corner of one.
fn weights(seed: u32, size: [usize; 2]) -> Array2<f32> {
    matrix(seed, size[0], size[1]).mapv(|value| 2.5 * value)
}

fn vector(seed: u32, len: usize) -> Array1<f32> {
    matrix(seed, 1, len).remove_axis(Axis(0))
}

/// `[i, cs, f, o, ci, co, h]` of pre-activations, in float64.
fn lstm_in_float64(
    activations: Activations,
    z: &Array2<f64>,
    cs_prev: &ArrayD<f64>,
) -> [ArrayD<f64>; 7] {
    let cell = z.ncols() / 4;
    let gate = |n: usize, of| {
        let bar = z.slice(s![.., n * cell..(n + 1) * cell]).to_owned().into_dyn();
        bar.mapv(|x| function(of, x))
    };
    let Activations { state, gates } = activations;
    let [i, ci, f, o] = [gate(0, gates), gate(1, state), gate(2, gates), gate(3, gates)];
    let cs = &f * cs_prev + &i * &ci;
    let co = cs.mapv(|x| function(state, x));
    let h = &co * &o;
    [i, cs, f, o, ci, co, h]
}

struct Lstm {
    x: Array2<f32>,
    h_prev: Array2<f32>,
    w: Array2<f32>,
    b: Array1<f32>,
    cs_prev: ArrayD<f32>,
}

impl Lstm {
    fn new([batch, input, cell]: [usize; 3], cs_prev: &[usize]) -> Lstm {
        Lstm {
            x: matrix(1, batch, input),
            h_prev: matrix(2, batch, cell),
            w: weights(3, [input + cell, 4 * cell]),
            b: vector(4, 4 * cell),
            cs_prev: numbers(5, cs_prev),
        }
    }

    fn z(&self) -> Array2<f64> {
        concatenate![Axis(1), wide(&self.x), wide(&self.h_prev)].dot(&wide(&self.w)) + wide(&self.b)
    }

    fn run(&self, context: &Context<'_>, activations: Activations) -> [ArrayD<f32>; 7] {
        let attributes = Attributes { use_peephole: false, forget_bias: 0.0, cell_clip: -1.0 };
        let gate = [self.x.nrows(), self.b.len() / 4];
        let state = (ArrayD::<f32>::zeros(&gate[..]) + &self.cs_prev).shape().to_vec();
        let mut states = [(); 3].map(|()| ArrayD::from_elem(IxDyn(&state), f32::NAN));
        let needed = lstm_cell_scratch(
            [self.x.dim(), self.h_prev.dim()],
            gate[1],
            Some(self.cs_prev.shape()),
        );
        let mut scratch = vec![f32::NAN; needed];
        let mut gates = [(); 3].map(|()| ArrayD::from_elem(IxDyn(&gate), f32::NAN));
        let mut new = Array2::from_elem(gate, f32::NAN);
        let [i, f, o] = gates.each_mut().map(|gate| gate.view_mut());
        let [cs, co, h] = states.each_mut().map(|state| state.view_mut());
        let inputs = LstmCellInputs {
            x: self.x.view(),
            h_prev: self.h_prev.view(),
            w: self.w.view(),
            b: self.b.view(),
            cs_prev: Some(self.cs_prev.view()),
            peepholes: Vec::new(),
            w_h: None,
        };
        let outputs = LstmCellOutputs { i, cs, f, o, ci: new.view_mut(), co, h };
        let call = (&attributes, GateColumns::default(), activations);
        lstm_cell(context, call, false, inputs, outputs, &mut scratch).expect("it is right");
        let ([i, f, o], [cs, co, h]) = (gates, states);
        [i, cs, f, o, new.into_dyn(), co, h]
    }
}

/// Shapes of the cell state, which may broadcast.
fn states([batch, _, cell]: [usize; 3]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![batch, cell], vec![1, cell], vec![]];
    all.extend((batch == 1).then(|| vec![3, cell]));
    all
}

#[test]
fn forward_steps_of_an_lstm() {
    for activations in pairs() {
        for sizes in SIZES {
            for state in states(sizes) {
                let step = Lstm::new(sizes, &state);
                let want = lstm_in_float64(activations, &step.z(), &wide(&step.cs_prev));
                for context in contexts() {
                    let got = step.run(&context, activations);
                    for (got, want) in got.iter().zip(&want) {
                        let largest = want.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
                        assert_close(got, want, 4e-6 * largest, &format!("{activations:?}"));
                    }
                }
            }
        }
    }
}

/// The gradients of `sum(dh * h) + sum(dcs * cs)` with respect to pre-activations and the state before.
#[test]
fn backward_steps_of_an_lstm_agree_with_finite_differences() {
    const STEP: f64 = 1e-6;
    for activations in pairs() {
        for sizes in SIZES {
            for state in states(sizes) {
                let step = Lstm::new(sizes, &state);
                let (z, cs_prev) = (step.z(), wide(&step.cs_prev));
                let all = lstm_in_float64(activations, &z, &cs_prev);
                let shape = all[1].shape().to_vec();
                let (dh, dcs) = (numbers(8, &shape), numbers(9, &shape));
                let loss = |z: &Array2<f64>, cs_prev: &ArrayD<f64>| {
                    let all = lstm_in_float64(activations, z, cs_prev);
                    (&all[6] * &wide(&dh)).sum() + (&all[1] * &wide(&dcs)).sum()
                };
                let want_z = Array2::from_shape_fn(z.dim(), |at| {
                    let moved = |by: f64| {
                        let mut z = z.clone();
                        z[at] += by;
                        loss(&z, &cs_prev)
                    };
                    (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
                });
                // With respect to a state of the shape of the new one, before it is added up.
                let whole = cs_prev.broadcast(IxDyn(&shape)).expect("it broadcasts").to_owned();
                let want_state = ArrayD::from_shape_fn(IxDyn(&shape), |at| {
                    let moved = |by: f64| {
                        let mut whole = whole.clone();
                        whole[&at] += by;
                        loss(&z, &whole)
                    };
                    (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
                });
                for context in contexts() {
                    let narrow = all.each_ref().map(|tensor| tensor.mapv(|x| x as f32));
                    let got = grad(&context, activations, &narrow, &step.cs_prev, [&dcs, &dh]);
                    let most = want_z.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
                    assert_close(&got.1, &want_z, 2e-5 * most, &format!("{activations:?} dz"));
                    assert_close(&got.0, &want_state, 2e-5 * most, &format!("{activations:?}"));
                }
            }
        }
    }
}

/// `cs_prev_grad` and `dicfo`.
fn grad(
    context: &Context<'_>,
    activations: Activations,
    [i, _, f, o, ci, co, _]: &[ArrayD<f32>; 7],
    cs_prev: &ArrayD<f32>,
    [dcs, dh]: [&ArrayD<f32>; 2],
) -> (ArrayD<f32>, Array2<f32>) {
    let ci: Array2<f32> = ci.clone().into_dimensionality().expect("a matrix");
    let size = ci.dim();
    let mut cs_prev_grad = ArrayD::from_elem(co.raw_dim(), f32::NAN);
    let mut dicfo = Array2::from_elem((size.0, 4 * size.1), f32::NAN);
    let inputs = LstmCellGradInputs {
        i: i.view(),
        f: f.view(),
        o: o.view(),
        ci: ci.view(),
        co: co.view(),
        cs_prev: Some(cs_prev.view()),
        cs_grad: vec![dcs.view()],
        h_grad: vec![dh.view()],
        peepholes: Vec::new(),
        cs: None,
    };
    let outputs = LstmCellGradOutputs {
        cs_prev_grad: cs_prev_grad.view_mut(),
        dicfo: dicfo.view_mut(),
        through_peepholes: Vec::new(),
        peephole_grads: Vec::new(),
    };
    let attributes = LstmCellGradAttributes {
        sums_to_gates: true,
        sums_to_cs_prev: false,
        sums_to_product: false,
        cell_clip: -1.0,
        columns: GateColumns::default(),
        activations,
    };
    let lists: [&[&[usize]]; 3] = [&[cs_prev.shape()], &[dcs.shape()], &[dh.shape()]];
    let mut scratch = vec![f32::NAN; lstm_cell_grad_scratch(size, co.shape(), lists, 0)];
    lstm_cell_grad(context, &attributes, inputs, outputs, &mut scratch).expect("it is right");
    (cs_prev_grad, dicfo)
}

/// `[r, u, c, h]` in float64, with a bias of the candidate.
fn gru_in_float64(
    Activations { state, gates }: Activations,
    [x, h_prev, w_ru, w_c]: &[Array2<f64>; 4],
    b_c: &Array2<f64>,
) -> [Array2<f64>; 4] {
    let z = concatenate![Axis(1), x.view(), h_prev.view()].dot(w_ru);
    let both = z.mapv(|x| function(gates, x));
    let (r, u) = both.view().split_at(Axis(1), h_prev.ncols());
    let hr = &r * h_prev;
    let c =
        (concatenate![Axis(1), x.view(), hr.view()].dot(w_c) + b_c).mapv(|x| function(state, x));
    let h = &u * h_prev + u.mapv(|u| 1.0 - u) * &c;
    [r.to_owned(), u.to_owned(), c, h]
}

#[test]
fn steps_of_a_gru() {
    const STEP: f64 = 1e-6;
    for activations in pairs() {
        for [batch, input, cell] in SIZES {
            let size = (batch, cell);
            let tensors = [
                matrix(1, batch, input),
                matrix(2, batch, cell),
                weights(3, [input + cell, 2 * cell]),
                weights(4, [input + cell, cell]),
            ];
            let precise = tensors.each_ref().map(wide);
            let none = Array2::zeros(size);
            let want = gru_in_float64(activations, &precise, &none);
            let [r, u, c, h] = &want;
            let dh = matrix(5, batch, cell);
            let d_c = Array2::from_shape_fn(size, |at| {
                let moved = |by: f64| {
                    let mut bias = none.clone();
                    bias[at] += by;
                    (&gru_in_float64(activations, &precise, &bias)[3] * &wide(&dh)).sum()
                };
                (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
            });
            for context in contexts() {
                let got = gru(&context, activations, &tensors);
                for (got, want) in got.iter().zip([r, u, c, h]) {
                    let largest = want.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
                    assert_close(got, want, 4e-6 * largest, &format!("{activations:?}"));
                }
                let got = gru_grad(&context, activations, &want, &tensors[1], &dh);
                let most = d_c.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
                assert_close(&got, &d_c, 2e-5 * most, &format!("{activations:?} d_c_bar"));
            }
        }
    }
}

fn gru(
    context: &Context<'_>,
    activations: Activations,
    [x, h_prev, w_ru, w_c]: &[Array2<f32>; 4],
) -> [Array2<f32>; 4] {
    let mut outputs = [(); 4].map(|()| Array2::from_elem(h_prev.dim(), f32::NAN));
    let [r, u, c, h] = outputs.each_mut().map(|output| output.view_mut());
    let (b_ru, b_c) = (Array1::zeros(w_ru.ncols()), Array1::zeros(w_c.ncols()));
    let inputs = GruCellInputs {
        x: x.view(),
        h_prev: h_prev.view(),
        w_ru: w_ru.view(),
        w_c: w_c.view(),
        b_ru: b_ru.view(),
        b_c: b_c.view(),
        w_ru_h: None,
        w_c_h: None,
    };
    let scratch = gru_cell_scratch([x.dim(), h_prev.dim()]);
    let [mut numbers, mut elements] = scratch.map(|len| vec![f32::NAN; len]);
    let memory = (&mut numbers[..], &mut elements[..]);
    let outputs_of = GruCellOutputs { r, u, c, h };
    let attributes = GruAttributes { activations, ..GruAttributes::default() };
    gru_cell(context, &attributes, inputs, outputs_of, memory).expect("it is right");
    outputs
}

/// `d_c_bar`
fn gru_grad(
    context: &Context<'_>,
    activations: Activations,
    [_, u, c, _]: &[Array2<f64>; 4],
    h_prev: &Array2<f32>,
    dh: &Array2<f32>,
) -> Array2<f32> {
    let [u, c] = [u, c].map(|tensor| tensor.mapv(|x| x as f32));
    let mut outputs = [(); 3].map(|()| Array2::from_elem(h_prev.dim(), f32::NAN));
    let [d_c_bar, d_u_bar, d_h_u] = outputs.each_mut().map(|output| output.view_mut());
    let inputs = GruCellGradCInputs {
        u: u.view(),
        h_prev: h_prev.view(),
        c: c.view(),
        d_h: dh.view().into_dyn(),
    };
    let outputs_of = GruCellGradCOutputs { d_c_bar, d_u_bar, d_h_u };
    let attributes = GruAttributes { activations, ..GruAttributes::default() };
    gru_cell_grad_c(context, &attributes, inputs, outputs_of, &mut []).expect("it is right");
    let [d_c_bar, ..] = outputs;
    d_c_bar
}

#[test]
fn names_that_are_not_known_are_refused() {
    let refused = Activations::new("Op", "gelu", "sigmoid").expect_err("not known").to_string();
    let want = "Op: activation must be one of tanh, sigmoid, relu, linear, hard_sigmoid, \
                hard_sigmoid_keras2, softsign, softplus, elu, selu, got gelu";
    assert_eq!(refused, want);
}
