//! Loops of Keras's layers, against steps in float64, with and without masks.

use blockcell_kernels::ops::KERAS_LSTM;
use blockcell_kernels::unfused::{
    KerasGruInputs, KerasGruOutputs, KerasLstmInputs, KerasLstmOutputs, Loop, Numbers, keras_gru,
    keras_gru_scratch, keras_lstm, keras_lstm_scratch,
};
use blockcell_kernels::{
    Activations, Constant, Constants, Context, Copies, Element, Error, Isa, Serial, Weights,
};
use half::{bf16, f16};
use ndarray::{Array1, Array3, ArrayD, Axis, Ix1, Ix2, Ix3, IxDyn, concatenate, s};

use crate::common::Tensors;
use crate::common::compare::{Failures, close_to_scale, same_bits, scale};
use crate::common::data::{Data, Sizes};
use crate::common::executors::executors;
use crate::common::kernels::pairs;
use crate::common::kernels::tensors::{restored, round, stored, typed, view, views_mut};
use crate::common::oracle::function;
use crate::constants::Number;

#[derive(Clone, Copy, Debug)]
enum Cell {
    Lstm,
    Gru,
    /// With the state reset before the product.
    GruBefore,
}

const CELLS: [Cell; 3] = [Cell::Lstm, Cell::Gru, Cell::GruBefore];

#[derive(Clone, Debug)]
struct Call {
    cell: Cell,
    kind: Loop,
    /// How many steps h has.
    size: i32,
    rounds: i32,
    /// Whether rows take part in steps, `[time, batch, 1]`.
    mask: Option<Array3<u8>>,
    /// Whether a call with a mask has the output before.
    has_before: bool,
    /// The output before, x, the states, and the weights as the operation takes them.
    inputs: Tensors,
    outputs: Tensors,
    scratch: [usize; 2],
}

impl Call {
    fn new<E: Element>(cell: Cell, sizes: Sizes, seed: u64) -> Call {
        let Sizes { time, batch, input_size, cell_size } = sizes;
        let mut data = Data::new(seed, round::<E>);
        let state = [batch, cell_size];
        let mut inputs = vec![data.uniform(&state, 1.0)];
        inputs.push(data.uniform(&[time, batch, input_size], 1.0));
        let (states, gates, biases) = match cell {
            Cell::Lstm => (2, 4, 1),
            Cell::Gru | Cell::GruBefore => (1, 3, 2),
        };
        inputs.extend((0..states).map(|_| data.uniform(&state, 1.0)));
        inputs.push(data.weights(&[input_size, gates * cell_size]));
        inputs.push(data.weights(&[cell_size, gates * cell_size]));
        inputs.extend((0..biases).map(|_| data.uniform(&[gates * cell_size], 0.5)));
        let mut call = Call {
            cell,
            kind: Loop {
                lists: true,
                needs_h: false,
                reset_after: !matches!(cell, Cell::GruBefore),
                ..Loop::default()
            },
            size: time as i32,
            rounds: time as i32,
            mask: None,
            has_before: true,
            inputs,
            outputs: Vec::new(),
            scratch: [0; 2],
        };
        let all = [time, batch, input_size, cell_size];
        call.scratch = match cell {
            Cell::Lstm => keras_lstm_scratch(all),
            Cell::Gru | Cell::GruBefore => keras_gru_scratch(all),
        };
        call.make_outputs(batch, cell_size);
        call
    }

    fn make_outputs(&mut self, batch: usize, cell: usize) {
        let h = vec![usize::try_from(self.size).unwrap_or(0), batch, cell];
        let states = vec![vec![batch, cell]; self.states()];
        let shapes = [vec![h], states].concat();
        self.outputs =
            shapes.iter().map(|shape| ArrayD::from_elem(IxDyn(shape), f64::NAN)).collect();
    }

    fn states(&self) -> usize {
        match self.cell {
            Cell::Lstm => 2,
            Cell::Gru | Cell::GruBefore => 1,
        }
    }

    /// With a mask of one of some kinds.
    fn masked(mut self, kind: usize, seed: u64) -> Call {
        let [time, batch] = [0, 1].map(|axis| self.inputs[1].shape()[axis]);
        let mut data = Data::new(seed, |value| value);
        let random = data.uniform(&[time, batch], 1.0);
        self.mask = Some(Array3::from_shape_fn((time, batch, 1), |(t, row, _)| {
            u8::from(match kind {
                // Rows end after different numbers of steps.
                0 => t < (row * 7 + 3) % (time + 2),
                // They have holes.
                1 => random[[t, row]] > 0.0,
                2 => true,
                _ => false,
            })
        }));
        self.kind.repeats = kind != 1 || seed.is_multiple_of(2);
        self
    }

    /// Only the last output is left.
    fn last_only(mut self) -> Call {
        let [batch, cell] = [1, 2].map(|axis| self.outputs[0].shape()[axis]);
        self.kind.last_only = true;
        self.size = 1;
        self.make_outputs(batch, cell);
        self
    }

    fn run<E: Number>(&self, context: &Context<'_>) -> Result<Tensors, Error> {
        self.run_with_constants::<E>(context, &[])
    }

    /// The same, where the first of the weights are constants with these copies.
    fn run_with_constants<E: Number>(
        &self,
        context: &Context<'_>,
        copies: &[Copies],
    ) -> Result<Tensors, Error> {
        let inputs: Vec<ArrayD<E>> = stored(&self.inputs);
        let constants = inputs[2 + self.states()..].iter().zip(copies).map(|(weights, copies)| {
            let elements = weights.as_slice().expect("a matrix without gaps");
            Constant { bytes: bytemuck::cast_slice(elements), copies }
        });
        let constants: Vec<_> = constants.collect();
        let context = &Context { constants: Constants(&constants), ..*context };
        let mut results: Vec<ArrayD<E>> = stored(&self.outputs);
        let mut numbers = vec![f32::NAN; self.scratch[0]];
        let mut elements = vec![E::from_f32(f32::NAN); self.scratch[1]];
        let memory = (&mut numbers[..], &mut elements[..]);
        let (kind, size, rounds) = (&self.kind, self.size, vec![self.rounds]);
        let mask = self.mask.as_ref().map(|mask| mask.view());
        let before = mask.filter(|_| self.has_before).map(|_| view(&inputs[0]));
        let ran = match self.cell {
            Cell::Lstm => {
                let inputs = KerasLstmInputs {
                    size,
                    rounds,
                    x: view(&inputs[1]),
                    h_prev: view(&inputs[2]),
                    cs_prev: view(&inputs[3]),
                    w_x: view(&inputs[4]),
                    w_h: view(&inputs[5]),
                    b: view(&inputs[6]),
                    mask,
                    before,
                };
                let outputs = views_mut!(KerasLstmOutputs, &mut results, [h, h_last, cs_last]);
                keras_lstm(context, kind, inputs, outputs, memory)
            }
            Cell::Gru | Cell::GruBefore => {
                let inputs = KerasGruInputs {
                    size,
                    rounds,
                    x: view(&inputs[1]),
                    h_prev: view(&inputs[2]),
                    w_x: view(&inputs[3]),
                    w_h: view(&inputs[4]),
                    b_x: view(&inputs[5]),
                    b_h: view(&inputs[6]),
                    mask,
                    before,
                };
                let outputs = views_mut!(KerasGruOutputs, &mut results, [h, h_last]);
                keras_gru(context, kind, inputs, outputs, memory)
            }
        };
        let results = restored(&results);
        if ran.is_err() {
            for (now, before) in results.iter().zip(&self.outputs) {
                same_bits("output", now, before).expect("a call that fails writes nothing");
            }
        }
        ran.map(|()| results)
    }

    /// One row of a step in float64: the states after it, h first.
    fn step(&self, x: &Array1<f64>, states: &[Array1<f64>]) -> Vec<Array1<f64>> {
        let weights = &self.inputs[2 + self.states()..];
        let [w_x, w_h] = [0, 1].map(|n| typed::<Ix2>(&weights[n]));
        let Activations { state, gates } = self.kind.activations;
        let (tanh, sigmoid) = (|v| function(state, v), |v| function(gates, v));
        let h = &states[0];
        let cell = h.len();
        let part =
            |z: &Array1<f64>, gate: usize| z.slice(s![gate * cell..(gate + 1) * cell]).to_owned();
        match self.cell {
            Cell::Lstm => {
                let z = x.dot(&w_x) + h.dot(&w_h) + typed::<Ix1>(&weights[2]);
                let [i, f, o] = [0, 1, 3].map(|gate| part(&z, gate).mapv(sigmoid));
                let cs = f * &states[1] + i * part(&z, 2).mapv(tanh);
                vec![o * cs.mapv(tanh), cs]
            }
            Cell::Gru | Cell::GruBefore => {
                let of_x = x.dot(&w_x) + typed::<Ix1>(&weights[2]);
                let of_h = h.dot(&w_h) + typed::<Ix1>(&weights[3]);
                let gate = |n| (part(&of_x, n) + part(&of_h, n)).mapv(sigmoid);
                let (z, r) = (gate(0), gate(1));
                let reset = match self.cell {
                    Cell::GruBefore => (r * h).dot(&w_h) + typed::<Ix1>(&weights[3]),
                    _ => concatenate![Axis(0), Array1::zeros(2 * cell), r * part(&of_h, 2)],
                };
                let c = (part(&of_x, 2) + part(&reset, 2)).mapv(tanh);
                vec![&z * h + (1.0 - &z) * c]
            }
        }
    }

    /// What is right, with states rounded as they are stored.
    fn want<E: Element>(&self) -> Tensors {
        let mut outputs = self.outputs.clone();
        let batch = outputs[1].shape()[0];
        outputs[0].fill(0.0);
        let row_of = |tensor: &ArrayD<f64>, row: usize| {
            let tensor = typed::<Ix2>(tensor);
            tensor.row(if tensor.nrows() == 1 { 0 } else { row }).to_owned()
        };
        let x = typed::<Ix3>(&self.inputs[1]);
        for row in 0..batch {
            let states = self.inputs[2..2 + self.states()].iter();
            let mut states: Vec<_> = states.map(|state| row_of(state, row)).collect();
            let before = row_of(&self.inputs[0], row);
            let mut output = before.clone();
            for t in 0..usize::try_from(self.rounds).unwrap_or(0) {
                let from = if x.dim().1 == 1 { 0 } else { row };
                let is_valid = self
                    .mask
                    .as_ref()
                    .is_none_or(|mask| mask[[t, if mask.dim().1 == 1 { 0 } else { row }, 0]] != 0);
                if is_valid {
                    let next = self.step(&x.slice(s![t, from, ..]).to_owned(), &states);
                    states = next.into_iter().map(|state| state.mapv(round::<E>)).collect();
                    output = states[0].clone();
                } else if !self.kind.repeats {
                    output = before.clone();
                }
                let place = if self.kind.last_only { 0 } else { t };
                outputs[0].slice_mut(s![place, row, ..]).assign(&output);
            }
            for (last, state) in outputs[1..].iter_mut().zip(states) {
                last.slice_mut(s![row, ..]).assign(&state);
            }
        }
        outputs
    }
}

/// Calls of some size: without a mask, with each kind of mask, with fewer rounds and with the last output alone.
fn calls<E: Element>(cell: Cell, sizes: Sizes, seed: u64) -> Vec<Call> {
    let whole = Call::new::<E>(cell, sizes, seed);
    let mut all = vec![whole.clone()];
    all.extend((0..4).map(|kind| whole.clone().masked(kind, seed)));
    let mut fewer = all.clone();
    for call in &mut fewer {
        call.rounds = (sizes.time as i32 - 1).max(1);
    }
    all.extend(fewer);
    let last: Vec<_> = all.iter().cloned().map(Call::last_only).collect();
    all.extend(last);
    all
}

fn check<E: Number>(tolerance: f64) {
    let mut failures = Failures::default();
    for cell in CELLS {
        for (seed, &[time, batch, input, size]) in SIZES.iter().enumerate() {
            for call in calls::<E>(cell, Sizes::new(time, batch, input, size), seed as u64) {
                let want = call.want::<E>();
                for isa in Isa::available() {
                    let got = call.run::<E>(&Context::new(isa, &Serial)).expect("it is right");
                    let same = got.iter().zip(&want).try_for_each(|(got, want)| {
                        close_to_scale("output", got, want, tolerance, scale(want).max(0.1))
                    });
                    failures.note_as(|| format!("{call:?}"), same);
                }
            }
        }
    }
    failures.finish();
}

/// The state is rounded in every step, to 8 bits.
const BFLOAT16: f64 = 2e-2;

/// Time, batch, input and cell.
const SIZES: [[usize; 4]; 9] = [
    [1, 1, 1, 1],
    [2, 3, 5, 4],
    [9, 5, 3, 17],
    [20, 2, 33, 8],
    [4, 64, 7, 9],
    [3, 0, 2, 5],
    [3, 2, 0, 5],
    [3, 2, 4, 0],
    [7, 3, 1, 33],
];

#[test]
fn floats_are_close_to_the_oracle() {
    check::<f32>(2e-6);
}

#[test]
fn halves_are_close_to_the_oracle() {
    check::<f16>(2e-3);
}

#[test]
fn bfloat16_is_close_to_the_oracle() {
    check::<bf16>(BFLOAT16);
}

#[test]
fn one_row_stands_for_all() {
    for cell in CELLS {
        let wide = Call::new::<f32>(cell, Sizes::new(5, 3, 4, 6), 1).masked(1, 2);
        for tensor in 0..4 + wide.states() - 1 {
            let mut call = wide.clone();
            let axis = Axis(usize::from(tensor == 1));
            if tensor == 3 + wide.states() - 1 {
                let mask = call.mask.take().expect("there is one");
                call.mask = Some(mask.slice(s![.., ..1, ..]).to_owned());
            } else {
                let whole = call.inputs[tensor].clone();
                call.inputs[tensor] =
                    whole.slice_axis(axis, (..1).into()).as_standard_layout().to_owned();
            }
            let want = call.want::<f32>();
            let got = call.run::<f32>(&Context::default()).expect("it broadcasts");
            for (got, want) in got.iter().zip(&want) {
                close_to_scale("output", got, want, 2e-6, 1.0).expect("close");
            }
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same() {
    for cell in CELLS {
        let call = Call::new::<f32>(cell, Sizes::new(6, 33, 20, 70), 3).masked(1, 4);
        let serial = call.run::<f32>(&Context::default());
        let serial = serial.expect("it is right");
        for (_, executor) in executors() {
            let got = call.run::<f32>(&Context::new(Isa::get(), &**executor));
            for (got, want) in got.expect("it is right").iter().zip(&serial) {
                same_bits("output", got, want).expect("the same");
            }
        }
    }
}

/// As in the tests of [`crate::constants`]: two calls, the second with weights that change although they are said to be
/// constants.
fn twice(call: &Call, context: &Context<'_>, what: &str) -> Tensors {
    let copies = <[Copies; 2]>::default();
    let mut call = call.clone();
    let first = call.run_with_constants::<f32>(context, &copies).expect("it is right");
    let kept = copies.each_ref().map(Copies::bytes);
    assert!(kept.iter().all(|&bytes| bytes > 0), "{what}: nothing is kept");
    let weights = 2 + call.states();
    call.inputs[weights..weights + 2].iter_mut().for_each(|weights| weights.fill(0.1));
    let second = call.run_with_constants::<f32>(context, &copies).expect("it is right");
    for (first, second) in first.iter().zip(&second) {
        same_bits("output", first, second).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    assert_eq!(copies.each_ref().map(Copies::bytes), kept, "{what}");
    first
}

const SIZES_OF_CONSTANTS: [Sizes; 4] = [
    Sizes::new(20, 1, 40, 65),
    Sizes::new(30, 3, 33, 130),
    Sizes::new(12, 23, 67, 72),
    Sizes::new(13, 40, 64, 257),
];

#[test]
fn copies_of_constants_are_kept() {
    for cell in CELLS {
        for sizes in SIZES_OF_CONSTANTS {
            let call = Call::new::<f32>(cell, sizes, 9);
            for isa in Isa::available() {
                for (name, executor) in executors() {
                    let context = Context::new(isa, &**executor);
                    let what = format!("{cell:?}, {sizes:?}, {}, {name}", isa.name());
                    let got = twice(&call, &context, &what);
                    let want = call.run::<f32>(&context).expect("it is right");
                    for (got, want) in got.iter().zip(&want) {
                        same_bits("output", got, want).unwrap_or_else(|_| panic!("{what}"));
                    }
                }
            }
        }
    }
}

#[test]
fn constants_in_int8_are_close() {
    for cell in CELLS {
        for sizes in SIZES_OF_CONSTANTS {
            let call = Call::new::<f32>(cell, sizes, 9);
            let want = call.want::<f32>();
            let in_float32 = call.run::<f32>(&Context::default()).expect("it is right");
            for isa in Isa::choices() {
                let weights = Weights::Int8;
                let context = Context { weights, ..Context::new(isa, &Serial) };
                let what = format!("{cell:?}, {sizes:?}, {}", isa.name());
                let got = twice(&call, &context, &what);
                for (got, want) in got.iter().zip(&want) {
                    close_to_scale("output", got, want, 2e-2, scale(want))
                        .unwrap_or_else(|error| panic!("{what}: {error}"));
                }
                assert_ne!(got, in_float32, "{what}");
            }
        }
    }
}

#[test]
fn other_functions() {
    for (number, activations) in pairs().enumerate() {
        for cell in CELLS {
            for [time, batch, input, cell_size] in SIZES {
                let sizes = Sizes::new(time, batch, input, cell_size);
                let whole = Call::new::<f32>(cell, sizes, number as u64);
                for mut call in [whole.clone().masked(1, 2), whole] {
                    call.kind.activations = activations;
                    // Otherwise states grow from step to step where functions do.
                    let weights = 2 + call.states();
                    call.inputs[weights..].iter_mut().for_each(|one| *one *= 0.2);
                    let want = call.want::<f32>();
                    for isa in Isa::available() {
                        let got = call.run::<f32>(&Context { isa, ..Context::default() });
                        for (got, want) in got.expect("it is right").iter().zip(&want) {
                            let close =
                                close_to_scale("output", got, want, 4e-6, scale(want).max(1.0));
                            close.unwrap_or_else(|error| {
                                panic!("{activations:?}, {sizes:?}: {error}")
                            });
                        }
                    }
                }
            }
        }
    }
}

/// What a change of a call leads to.
fn error_of(cell: Cell, change: impl Fn(&mut Call)) -> String {
    let mut call = Call::new::<f32>(cell, Sizes::new(3, 2, 4, 5), 1).masked(0, 1);
    change(&mut call);
    let ran = call.run::<f32>(&Context::default());
    ran.expect_err("it is wrong").to_string()
}

#[test]
fn wrong_calls_say_what_is_wrong() {
    for cell in CELLS {
        let w_x = match cell {
            Cell::Lstm => 4,
            Cell::Gru | Cell::GruBefore => 3,
        };
        let add = |tensor: usize, axis: usize| {
            error_of(cell, |call| {
                let whole = &call.inputs[tensor];
                let more = whole.slice_axis(Axis(axis), (..1).into());
                let longer = concatenate(Axis(axis), &[whole.view(), more]).expect("it fits");
                call.inputs[tensor] = longer.as_standard_layout().to_owned();
            })
        };
        let before = "before must have shape [batch, cell_size] with a batch of 1 or 2";
        assert!(add(0, 0).contains(before), "{}", add(0, 0));
        assert!(add(1, 1).contains("[batch, cell_size] with a batch of 1 or 3"), "{}", add(1, 1));
        assert!(add(1, 2).contains("w_x must have shape [input_size, "), "{}", add(1, 2));
        assert!(add(2, 1).contains("must have shape"), "{}", add(2, 1));
        for (tensor, name) in [(w_x, "w_x must have"), (w_x + 1, "w_h must have")] {
            assert!(add(tensor, 1).contains(name), "{}", add(tensor, 1));
        }
        let wrong = error_of(cell, |call| call.rounds = 4);
        assert!(wrong.contains("rounds"), "{wrong}");
        let wrong = error_of(cell, |call| call.size = -1);
        assert!(wrong.contains("size"), "{wrong}");
        let wrong = error_of(cell, |call| call.scratch[1] -= 1);
        assert!(wrong.contains("scratch"), "{wrong}");
        let wrong = error_of(cell, |call| call.kind.x = Some(vec![None, Some(3)]));
        assert!(wrong.contains(" x must have shape"), "{wrong}");
        let wrong = error_of(cell, |call| call.kind.h = Some(vec![None, Some(3)]));
        assert!(wrong.contains(" h must have shape"), "{wrong}");
        let wrong = error_of(cell, |call| {
            let mask = call.mask.take().expect("there is one");
            call.mask = Some(mask.slice(s![..2, .., ..]).to_owned());
        });
        let shorter = "mask must have shape [time, batch, 1] with at least 3 steps, got [2, 2, 1]";
        assert!(wrong.contains(shorter), "{wrong}");
        let wrong = error_of(cell, |call| call.has_before = false);
        assert!(wrong.contains("expected 1 tensors in before, got 0"), "{wrong}");
    }
}

#[test]
fn without_rounds_the_sizes_of_the_outputs_must_be_known() {
    let op = &KERAS_LSTM;
    let numbers = Numbers { size: 2, rounds: -1 };
    let sizes =
        |rows, columns| Loop { h: Some(vec![rows, columns]), lists: true, ..Loop::default() };
    let known = |kind: &Loop| kind.without_rounds(op, numbers, &[0, 3, 4]);
    assert_eq!(known(&sizes(Some(3), Some(5))), Ok(Some(vec![2, 3, 5])));
    assert!(known(&sizes(None, Some(5))).is_err());
    let unread = Loop { needs_h: false, ..sizes(None, None) };
    assert_eq!(known(&unread), Ok(Some(vec![2, 0, 0])));
    let narrow = Loop { x: Some(vec![None, Some(9)]), ..sizes(Some(3), Some(5)) };
    assert!(known(&narrow).is_err());
    let rounds = Numbers { rounds: 1, ..numbers };
    assert_eq!(sizes(None, None).without_rounds(op, rounds, &[1, 3, 4]), Ok(None));
}
