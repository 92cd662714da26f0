//! Steps of LSTM cells with layer normalization, and loops of them, against sums in float64.

use blockcell_kernels::unfused::{
    Loop, NormalizedAttributes, NormalizedLstmCellInputs, NormalizedLstmCellOutputs,
    NormalizedLstmLayerInputs, NormalizedLstmLayerOutputs, normalized_lstm_cell,
    normalized_lstm_cell_scratch, normalized_lstm_layer, normalized_lstm_layer_scratch,
};
use blockcell_kernels::{Activations, Context, Error, Isa};
use ndarray::{Array1, Array2, Array3, ArrayD, ArrayView2, Axis, IxDyn, concatenate, s};

use crate::common::compare::same_bits;
use crate::common::executors::{contexts, executors};
use crate::common::kernels::pairs;
use crate::common::oracle::function;
use crate::unfused::{ORDERS, columns};
use crate::unfused_numbers::{assert_close, matrix, numbers, wide};

const SIZES: [[usize; 3]; 8] =
    [[3, 5, 7], [2, 3, 16], [4, 2, 33], [1, 1, 2], [0, 3, 4], [5, 0, 8], [9, 6, 17], [70, 4, 40]];
const TOLERANCE: f64 = 2e-5;

#[derive(Clone)]
struct Cell {
    attributes: NormalizedAttributes,
    w: Array2<f32>,
    /// Of i, ci, f, o and the state.
    norms: Vec<[Array1<f32>; 2]>,
}

fn vector(seed: u32, len: usize) -> Array1<f32> {
    matrix(seed, 1, len).remove_axis(Axis(0))
}

impl Cell {
    fn new([input, cell]: [usize; 2], order: [i64; 4]) -> Cell {
        let attributes = NormalizedAttributes {
            forget_bias: 0.7,
            epsilon: 1e-3,
            columns: columns(order),
            activations: Activations::default(),
            over_last_axis: false,
        };
        let norms = (0..5).map(|n| [vector(10 + n, cell), vector(20 + n, cell)]);
        Cell { attributes, w: matrix(3, input + cell, 4 * cell), norms: norms.collect() }
    }

    fn vectors(&self, place: usize) -> Vec<ndarray::ArrayView1<'_, f32>> {
        self.norms.iter().map(|both| both[place].view()).collect()
    }

    /// `[cs, h]` in float64.
    fn want(
        &self,
        order: [i64; 4],
        x: ArrayView2<'_, f64>,
        h_prev: ArrayView2<'_, f64>,
        cs_prev: &ArrayD<f64>,
    ) -> [ArrayD<f64>; 2] {
        let z = concatenate![Axis(1), x, h_prev].dot(&wide(&self.w));
        let cell = z.ncols() / 4;
        let NormalizedAttributes { forget_bias, epsilon, activations, .. } = self.attributes;
        let norm = |mut values: ArrayD<f64>, n: usize| {
            for mut lane in values.lanes_mut(Axis(1)) {
                let count = lane.len() as f64;
                let mean = lane.sum() / count;
                let variance = lane.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
                lane.mapv_inplace(|v| (v - mean) / (variance + f64::from(epsilon)).sqrt());
            }
            values * wide(&self.norms[n][0]) + wide(&self.norms[n][1])
        };
        let gate = |n: usize| {
            let place = order[n] as usize;
            norm(z.slice(s![.., place * cell..(place + 1) * cell]).to_owned().into_dyn(), n)
        };
        let Activations { state, gates } = activations;
        let (i, ci) = (gate(0).mapv(|v| function(gates, v)), gate(1).mapv(|v| function(state, v)));
        let f = gate(2).mapv(|v| function(gates, v + f64::from(forget_bias)));
        let o = gate(3).mapv(|v| function(gates, v));
        let cs = norm(f * cs_prev + i * ci, 4);
        let h = o * cs.mapv(|v| function(state, v));
        [cs, h]
    }

    fn run(
        &self,
        context: &Context<'_>,
        [x, h_prev]: [&Array2<f32>; 2],
        cs_prev: Option<&ArrayD<f32>>,
        shape: &[usize],
    ) -> Result<[ArrayD<f32>; 2], Error> {
        let mut outputs = [(); 2].map(|()| ArrayD::from_elem(IxDyn(shape), f32::NAN));
        let [cs, h] = outputs.each_mut().map(|one| one.view_mut());
        let needed = normalized_lstm_cell_scratch(x.nrows(), self.w.ncols() / 4);
        let mut scratch = vec![f32::NAN; needed];
        let inputs = NormalizedLstmCellInputs {
            x: x.view(),
            h_prev: h_prev.view(),
            w: self.w.view(),
            gamma: self.vectors(0),
            beta: self.vectors(1),
            cs_prev: cs_prev.map(|one| one.view()),
        };
        let outputs_of = NormalizedLstmCellOutputs { cs, h };
        normalized_lstm_cell(context, &self.attributes, inputs, outputs_of, &mut scratch)?;
        Ok(outputs)
    }
}

#[test]
fn steps() {
    for (number, [batch, input, cell]) in SIZES.into_iter().enumerate() {
        let order = ORDERS[number % ORDERS.len()];
        let (x, h_prev) = (matrix(1, batch, input), matrix(2, batch, cell));
        let mut states = vec![None];
        let shapes = [vec![batch, cell], vec![1, cell], vec![cell], vec![batch, 1], vec![]];
        states.extend(shapes.iter().map(|shape| Some(numbers(5, shape))));
        if batch > 0 {
            states.push(Some(numbers(5, &[2, batch, cell])));
        }
        if batch == 1 {
            states.push(Some(numbers(5, &[6, cell])));
        }
        for activations in pairs().chain([Activations::default()]) {
            let mut step = Cell::new([input, cell], order);
            step.attributes.activations = activations;
            for cs_prev in &states {
                let of_step = cs_prev.as_ref().map_or_else(|| ArrayD::zeros(vec![]), wide);
                let [x64, h64] = [wide(&x), wide(&h_prev)];
                let want = step.want(order, x64.view(), h64.view(), &of_step);
                for context in contexts() {
                    let got = step.run(&context, [&x, &h_prev], cs_prev.as_ref(), want[0].shape());
                    let got = got.expect("the shapes are right");
                    for ((got, want), name) in got.iter().zip(&want).zip(["cs", "h"]) {
                        let most = want.iter().fold(1.0, |most: f64, v| most.max(v.abs()));
                        assert_close(got, want, TOLERANCE * most, name);
                    }
                }
            }
        }
    }
}

/// Means that are large in terms of what differs from them.
#[test]
fn nearly_equal_numbers() {
    let cell = 37;
    let mut step = Cell::new([cell, cell], ORDERS[0]);
    step.attributes.epsilon = 1e-12;
    step.w.fill(0.0);
    for gate in 0..4 {
        (0..cell).for_each(|n| step.w[[n, gate * cell + n]] = 1.0);
    }
    let x = matrix(1, 3, cell).mapv(|v| 8.0 + 0.001 * v);
    let h_prev = Array2::zeros((3, cell));
    let cs_prev = ArrayD::zeros(IxDyn(&[3, cell]));
    let want = step.want(ORDERS[0], wide(&x).view(), wide(&h_prev).view(), &wide(&cs_prev));
    for context in contexts() {
        let got = step.run(&context, [&x, &h_prev], Some(&cs_prev), &[3, cell]).expect("right");
        assert_close(&got[1], &want[1], 2e-3, "h");
    }
}

#[derive(Clone)]
struct Layer {
    cell: Cell,
    order: [i64; 4],
    x: Array3<f32>,
    h_prev: Array2<f32>,
    cs_prev: ArrayD<f32>,
    rounds: i32,
    lengths: Option<Vec<i32>>,
}

impl Layer {
    fn new([time, batch, input, cell]: [usize; 4], seed: u32) -> Layer {
        let order = ORDERS[seed as usize % ORDERS.len()];
        let x = numbers(seed, &[time, batch, input]).into_dimensionality().expect("three axes");
        Layer {
            cell: Cell::new([input, cell], order),
            order,
            x,
            h_prev: matrix(2, batch, cell),
            cs_prev: numbers(5, &[batch, cell]),
            rounds: time as i32,
            lengths: None,
        }
    }

    /// `[h, h_last, cs_last]`
    fn run(&self, context: &Context<'_>) -> Result<[ArrayD<f32>; 3], Error> {
        let ((time, batch, input), cell) = (self.x.dim(), self.cell.w.ncols() / 4);
        let nan = |shape: &[usize]| ArrayD::from_elem(IxDyn(shape), f32::NAN);
        let mut outputs = [nan(&[time, batch, cell]), nan(&[batch, cell]), nan(&[batch, cell])];
        let scratch = normalized_lstm_layer_scratch([time, batch, input, cell]);
        let [mut floats, mut elements] = scratch.map(|len| vec![f32::NAN; len]);
        let lengths = self.lengths.clone().map(|all| Array1::from(all).into_dyn());
        let inputs = NormalizedLstmLayerInputs {
            time: time as i32,
            rounds: vec![self.rounds],
            sequence_length: lengths.as_ref().map(|all| all.view()),
            x: self.x.view(),
            h_prev: self.h_prev.view(),
            cs_prev: self.cs_prev.view(),
            w: self.cell.w.view(),
            gamma: self.cell.vectors(0),
            beta: self.cell.vectors(1),
        };
        let [h, h_last, cs_last] = outputs.each_mut().map(|one| one.view_mut());
        let outputs_of = NormalizedLstmLayerOutputs {
            h: h.into_dimensionality().expect("three axes"),
            h_last: h_last.into_dimensionality().expect("two axes"),
            cs_last: cs_last.into_dimensionality().expect("two axes"),
        };
        let kind = Loop { needs_h: false, ..Loop::default() };
        let memory = (&mut floats[..], &mut elements[..]);
        normalized_lstm_layer(context, &self.cell.attributes, &kind, inputs, outputs_of, memory)?;
        Ok(outputs)
    }

    fn want(&self) -> [ArrayD<f64>; 3] {
        let ((time, batch, _), cell) = (self.x.dim(), self.cell.w.ncols() / 4);
        let mut h = ArrayD::zeros(IxDyn(&[time, batch, cell]));
        let whole = self.cs_prev.broadcast(IxDyn(&[batch, cell])).expect("it broadcasts");
        let (mut last, mut cs) = (wide(&self.h_prev), whole.mapv(f64::from));
        for t in 0..usize::try_from(self.rounds).unwrap_or(0) {
            let x = wide(&self.x.index_axis(Axis(0), t).to_owned());
            let [next_cs, next_h] = self.cell.want(self.order, x.view(), last.view(), &cs);
            for row in 0..batch {
                if self.lengths.as_ref().is_some_and(|all| t as i32 >= all[row]) {
                    continue;
                }
                cs.slice_mut(s![row, ..]).assign(&next_cs.slice(s![row, ..]));
                last.row_mut(row).assign(&next_h.slice(s![row, ..]));
                h.slice_mut(s![t, row, ..]).assign(&next_h.slice(s![row, ..]));
            }
        }
        [h, last.into_dyn(), cs]
    }
}

const LAYERS: [[usize; 4]; 7] = [
    [1, 1, 1, 2],
    [5, 3, 5, 7],
    [9, 5, 3, 17],
    [20, 2, 33, 8],
    [4, 64, 7, 9],
    [3, 0, 2, 5],
    [3, 2, 4, 0],
];

#[test]
fn layers() {
    for (seed, sizes) in LAYERS.into_iter().enumerate() {
        let whole = Layer::new(sizes, seed as u32);
        let [time, batch, _, cell] = sizes;
        let lengths = (0..batch).map(|row| [time as i32, 1, 0, -3, 2, i32::MAX][row % 6]);
        let ended = Layer { lengths: Some(lengths.collect()), ..whole.clone() };
        let fewer = Layer { rounds: time as i32 / 2, ..whole.clone() };
        let one_row = Layer { cs_prev: numbers(6, &[1, cell]), ..whole.clone() };
        for layer in [whole, ended, fewer, one_row] {
            let want = layer.want();
            for context in contexts() {
                let got = layer.run(&context).expect("the shapes are right");
                for ((got, want), name) in got.iter().zip(&want).zip(["h", "h_last", "cs_last"]) {
                    assert_close(got, want, 2e-4, name);
                }
            }
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let layer = Layer::new([6, 33, 20, 70], 3);
    let serial = layer.run(&Context::default()).expect("it is right");
    for (_, executor) in executors() {
        let got = layer.run(&Context::new(Isa::get(), &**executor)).expect("it is right");
        for (got, want) in got.iter().zip(&serial) {
            let [got, want] = [got, want].map(|one| one.mapv(f64::from));
            same_bits("output", &got, &want).expect("the same");
        }
    }
}

#[test]
fn wrong_calls_say_what_is_wrong() {
    let step = Cell::new([3, 4], ORDERS[0]);
    let [x, h_prev] = [matrix(1, 2, 3), matrix(2, 2, 4)];
    let error = |step: &Cell, cs_prev: &[usize]| {
        let cs_prev = numbers(5, cs_prev);
        let ran = step.run(&Context::default(), [&x, &h_prev], Some(&cs_prev), &[2, 4]);
        ran.expect_err("it is wrong").to_string()
    };
    let of_state = error(&step, &[3, 4]);
    assert!(of_state.starts_with("BlockcellLayerNormLSTMCell: cs_prev must have"), "{of_state}");
    let mut other = step.clone();
    other.norms[2][0] = vector(1, 5);
    let of_scale = error(&other, &[2, 4]);
    assert!(of_scale.starts_with("BlockcellLayerNormLSTMCell: gamma[2] must have"), "{of_scale}");
    let mut fewer = step;
    fewer.norms.pop();
    let of_count = error(&fewer, &[2, 4]);
    assert!(of_count.starts_with("BlockcellLayerNormLSTMCell: "), "{of_count}");
    assert!(of_count.contains("gamma"), "{of_count}");
    let mut layer = Layer::new([3, 2, 3, 4], 1);
    layer.cs_prev = numbers(5, &[3, 4]);
    let of_layer = layer.run(&Context::default()).expect_err("it is wrong").to_string();
    assert!(of_layer.starts_with("BlockcellLayerNormLSTMLayer: cs_prev must have"), "{of_layer}");
    let mut layer = Layer::new([3, 2, 3, 4], 1);
    layer.rounds = 4;
    let of_layer = layer.run(&Context::default()).expect_err("it is wrong").to_string();
    assert!(of_layer.starts_with("BlockcellLayerNormLSTMLayer: rounds must"), "{of_layer}");
}
