//! A call of an operation on a loop, and what it has to compute.

use std::iter;

use blockcell_kernels::unfused::{
    GateColumns, GruLayerInputs, GruLayerOutputs, Loop, LstmCellInputs, LstmCellOutputs,
    LstmLayerInputs, LstmLayerOutputs, copied_x, gru_layer, gru_layer_scratch, lstm_cell,
    lstm_layer, lstm_layer_scratch,
};
use blockcell_kernels::{Context, Element, Error};
use ndarray::{Array2, Array3, ArrayD, ArrayView1, ArrayView2, ArrayViewD, Axis, Ix2, IxDyn, s};

use crate::common::Tensors;
use crate::common::compare::same_bits;
use crate::common::data::{Data, Sizes};
use crate::common::kernels::tensors::{
    restored, round, stored, take_mut, typed, view, view_mut, views_mut,
};
use crate::common::kernels::{Attributes, GruBlockCell, Kernel, LstmBlockCell};

/// The cell of a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell {
    Lstm(Attributes),
    Gru,
}

impl Cell {
    /// All that there are, for all elements.
    pub(crate) fn all() -> impl Iterator<Item = Cell> {
        Attributes::of_floats().into_iter().map(Cell::Lstm).chain(iter::once(Cell::Gru))
    }

    /// How many elements of scratch memory a call needs, of both kinds.
    fn scratch(self, Sizes { time, batch, input_size, cell_size }: Sizes) -> [usize; 2] {
        let sizes = [time, batch, input_size, cell_size];
        match self {
            Cell::Lstm(_) => lstm_layer_scratch(sizes),
            Cell::Gru => gru_layer_scratch(sizes),
        }
    }
}

/// The steps of a loop: `rounds` of at most `time`, and how many each row takes part in, if they differ.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    pub(crate) time: i32,
    pub(crate) rounds: i32,
    pub(crate) sequence_length: Option<Vec<i32>>,
}

/// A loop of which nothing is known, and whose outputs nobody reads in steps that it does not reach.
pub(crate) fn any_loop() -> Loop {
    Loop { needs_h: false, ..Loop::default() }
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) cell: Cell,
    pub(crate) steps: Steps,
    pub(crate) kind: Loop,
    /// x, h_prev, cs_prev, w, b and the peephole weights; of a GRU x, h_prev, w_ru, w_c, b_ru and b_c.
    pub(crate) inputs: Tensors,
    /// The contents of h, h_last, and of an LSTM cs_last before the call.
    pub(crate) outputs: Tensors,
    pub(crate) scratch: [usize; 2],
    pub(crate) columns: GateColumns,
    /// Whether the weights of x and those of h_prev are tensors of their own.
    pub(crate) apart: bool,
}

impl Call {
    /// All rows take part in all steps. The inputs depend on `seed`.
    pub(crate) fn new<E: Element>(cell: Cell, sizes: Sizes, seed: u64) -> Self {
        let Sizes { time, batch, input_size, cell_size } = sizes;
        let mut data = Data::new(seed, round::<E>);
        let (rows, state) = (input_size + cell_size, [batch, cell_size]);
        let mut inputs =
            vec![data.uniform(&[time, batch, input_size], 1.0), data.uniform(&state, 1.0)];
        let mut shapes = vec![vec![time, batch, cell_size], state.to_vec()];
        match cell {
            Cell::Lstm(attributes) => {
                inputs.push(data.uniform(&state, 1.0));
                inputs.push(data.weights(&[rows, 4 * cell_size]));
                inputs.push(data.uniform(&[4 * cell_size], 0.5));
                let peepholes = if attributes.use_peephole { 3 } else { 0 };
                inputs.extend((0..peepholes).map(|_| data.uniform(&[cell_size], 0.5)));
                shapes.push(state.to_vec());
            }
            Cell::Gru => {
                for gates in [2, 1] {
                    inputs.push(data.weights(&[rows, gates * cell_size]));
                }
                inputs.extend([2, 1].map(|gates| data.uniform(&[gates * cell_size], 0.5)));
            }
        }
        let outputs = shapes.iter().map(|shape| ArrayD::from_elem(IxDyn(shape), f64::NAN));
        Call {
            cell,
            steps: Steps { time: time as i32, rounds: time as i32, sequence_length: None },
            kind: any_loop(),
            inputs,
            outputs: outputs.collect(),
            scratch: cell.scratch(sizes),
            columns: GateColumns::default(),
            apart: false,
        }
    }

    /// The call with weights of h_prev, and with a row of each of these tensors that stands for all.
    pub(crate) fn of_two_products(&self, rows: &[usize]) -> Self {
        let mut call = Call { apart: true, ..self.clone() };
        call.kind.broadcasts_rows = true;
        for &at in rows {
            let axis = Axis(call.inputs[at].ndim() - 2);
            call.inputs[at] = call.inputs[at].slice_axis(axis, (..1).into()).to_owned();
        }
        let batch = call.outputs[1].shape()[0];
        call.scratch[1] += copied_x(call.inputs[0].shape(), batch);
        call
    }

    /// Makes `rounds`, and lets rows end after different numbers of them.
    pub(crate) fn end_rows(&mut self, rounds: i32) {
        let all = rounds.max(0);
        let lengths = [all, all / 2, i32::MAX, 0, -3, 1, all + 1, i32::MIN, all - 1];
        let batch = self.outputs[1].shape()[0];
        self.steps.rounds = rounds;
        self.steps.sequence_length = Some((0..batch).map(|row| lengths[row % 9]).collect());
    }

    /// The elements' shapes are known in part, and outputs are wanted.
    pub(crate) fn know_elements(&mut self) {
        let sizes = |tensor: &ArrayD<f64>| -> Vec<_> {
            tensor.shape()[1..].iter().copied().map(Some).collect()
        };
        let x = Some(vec![None, sizes(&self.inputs[0])[1]]);
        self.kind = Loop { x, h: Some(sizes(&self.outputs[0])), ..Loop::default() };
    }

    /// How many steps a row takes part in.
    pub(crate) fn length(&self, row: usize) -> usize {
        let rounds = usize::try_from(self.steps.rounds).unwrap_or(0);
        let length = |lengths: &Vec<i32>| usize::try_from(lengths[row]).unwrap_or(0);
        self.steps.sequence_length.as_ref().map_or(rounds, length).min(rounds)
    }

    /// Calls the operation. Panics if one that fails writes to its outputs.
    pub(crate) fn run<E: Element>(&self, context: &Context<'_>) -> Result<Tensors, Error> {
        let inputs: Vec<ArrayD<E>> = stored(&self.inputs);
        let mut results: Vec<ArrayD<E>> = stored(&self.outputs);
        let mut numbers = vec![f32::NAN; self.scratch[0]];
        let mut elements = vec![E::from_f32(f32::NAN); self.scratch[1]];
        let memory = (&mut numbers[..], &mut elements[..]);
        let ran = match self.cell {
            Cell::Lstm(attributes) => {
                let outputs = views_mut!(LstmLayerOutputs, &mut results, [h, h_last, cs_last]);
                // The tensors say whether there are peepholes.
                let attributes = Attributes { use_peephole: false, ..attributes }.of_call();
                let weights: ArrayView2<'_, E> = view(&inputs[3]);
                let input_size = inputs[0].shape()[2].min(weights.nrows());
                let (w, w_h) = weights.split_at(Axis(0), input_size);
                let mut inputs = lstm(&self.steps, &inputs);
                if self.apart {
                    (inputs.w, inputs.w_h) = (w, Some(w_h));
                }
                let attributes = (&attributes, self.columns, -1.0);
                lstm_layer(context, attributes, &self.kind, inputs, outputs, memory)
            }
            Cell::Gru => {
                let outputs = views_mut!(GruLayerOutputs, &mut results, [h, h_last]);
                let weights: [ArrayView2<'_, E>; 2] = [2, 3].map(|n| view(&inputs[n]));
                let input_size = inputs[0].shape()[2].min(weights[0].nrows());
                let [ru, c] = weights.map(|w| w.split_at(Axis(0), input_size.min(w.nrows())));
                let mut inputs = gru(&self.steps, &inputs);
                if self.apart {
                    (inputs.w_ru, inputs.w_ru_h) = (ru.0, Some(ru.1));
                    (inputs.w_c, inputs.w_c_h) = (c.0, Some(c.1));
                }
                gru_layer(context, &self.kind, inputs, outputs, memory)
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

    /// The same of a loop whose rounds are `step`: from x and the states before it to those after it, of which h
    /// is the first.
    fn of_loop(&self, step: impl Fn(&Array2<f64>, &[Array2<f64>]) -> Vec<Array2<f64>>) -> Tensors {
        let size = typed::<Ix2>(&self.outputs[1]).dim();
        let states = &self.inputs[1..self.outputs.len()];
        let whole = |state: &ArrayD<f64>| state.broadcast(size).expect("it broadcasts").to_owned();
        let mut states: Vec<Array2<f64>> = states.iter().map(whole).collect();
        let mut h = Array3::zeros((self.inputs[0].shape()[0], size.0, size.1));
        for (t, x) in self.inputs[0].axis_iter(Axis(0)).enumerate() {
            let whole = x.broadcast((size.0, x.shape()[1])).expect("it broadcasts").to_owned();
            let next = step(&typed(&whole.into_dyn()), &states);
            for row in (0..size.0).filter(|&row| t < self.length(row)) {
                for (state, next) in states.iter_mut().zip(&next) {
                    state.row_mut(row).assign(&next.row(row));
                }
                h.slice_mut(s![t, row, ..]).assign(&states[0].row(row));
            }
        }
        iter::once(h.into_dyn()).chain(states.into_iter().map(|state| state.into_dyn())).collect()
    }

    /// In float64, with states rounded as they are stored.
    pub(crate) fn want<E: Element>(&self) -> Tensors {
        let rounded = |state: &ArrayD<f64>| typed(&state.mapv(round::<E>));
        self.of_loop(|x, states| {
            let tensors = self.tensors_of_step(x, states);
            match self.cell {
                Cell::Lstm(attributes) => {
                    let all = LstmBlockCell::<E>::new(attributes).want(&tensors);
                    vec![rounded(&all[6]), rounded(&all[1])]
                }
                Cell::Gru => vec![rounded(&GruBlockCell.want(&tensors)[3])],
            }
        })
    }

    /// With steps of the library, which has those of a GRU for float alone.
    pub(crate) fn of_cells<E: Element>(&self, context: &Context<'_>) -> Tensors {
        self.of_loop(|x, states| match self.cell {
            Cell::Lstm(attributes) => self.lstm_step::<E>(context, attributes, x, states),
            Cell::Gru => {
                let sizes = Sizes::new(0, x.nrows(), x.ncols(), states[0].ncols());
                let tensors = self.tensors_of_step(x, states);
                let cell: &dyn Kernel = &GruBlockCell;
                vec![typed(&cell.outputs(context, sizes, &tensors)[3])]
            }
        })
    }

    /// The inputs of `LSTMBlockCell` or `GRUBlockCell`.
    fn tensors_of_step(&self, x: &Array2<f64>, states: &[Array2<f64>]) -> Tensors {
        let mut all = vec![x.clone().into_dyn()];
        all.extend(states.iter().rev().map(|state| state.clone().into_dyn()));
        match self.cell {
            Cell::Lstm(_) => {
                let [w, b, peepholes @ ..] = &self.inputs[3..] else { unreachable!("w and b") };
                all.push(w.clone());
                // Without peepholes nobody reads these.
                let peepholes = if peepholes.is_empty() {
                    [(); 3].map(|()| b)
                } else {
                    [&peepholes[0], &peepholes[1], &peepholes[2]]
                };
                all.extend(peepholes.map(|weights| weights.clone()));
                all.push(b.clone());
            }
            Cell::Gru => all.extend(self.inputs[2..].iter().cloned()),
        }
        all
    }

    fn lstm_step<E: Element>(
        &self,
        context: &Context<'_>,
        attributes: Attributes,
        x: &Array2<f64>,
        states: &[Array2<f64>],
    ) -> Vec<Array2<f64>> {
        let step = [x, &states[0], &states[1]].map(|tensor| tensor.clone().into_dyn());
        let [x, h_prev, cs_prev] = &stored::<E>(&step)[..] else { unreachable!("three") };
        let rest = stored::<E>(&self.inputs[3..]);
        let inputs = LstmCellInputs {
            x: view(x),
            h_prev: view(h_prev),
            w: view(&rest[0]),
            b: view(&rest[1]),
            cs_prev: Some(cs_prev.view()),
            peepholes: rest[2..].iter().map(|one| view(one)).collect(),
            w_h: None,
        };
        let mut results = vec![cs_prev.clone(); 7];
        let [i, cs, f, o, ci, co, h] = take_mut(&mut results);
        let [i, f, o, cs, co, h] = [i, f, o, cs, co, h].map(|tensor| tensor.view_mut());
        let outputs = LstmCellOutputs { i, cs, f, o, ci: view_mut(ci), co, h };
        let attributes = (&attributes.of_call(), self.columns, self.kind.activations);
        lstm_cell(context, attributes, false, inputs, outputs, &mut []).expect("it is right");
        let results = restored(&results);
        vec![typed(&results[6]), typed(&results[1])]
    }
}

impl Steps {
    fn sequence_length(&self) -> Option<ArrayViewD<'_, i32>> {
        self.sequence_length.as_ref().map(|lengths| ArrayView1::from(lengths).into_dyn())
    }
}

fn lstm<'a, E: Element>(steps: &'a Steps, inputs: &'a [ArrayD<E>]) -> LstmLayerInputs<'a, E> {
    LstmLayerInputs {
        time: steps.time,
        rounds: vec![steps.rounds],
        sequence_length: steps.sequence_length(),
        x: view(&inputs[0]),
        h_prev: view(&inputs[1]),
        cs_prev: inputs[2].view(),
        w: view(&inputs[3]),
        b: view(&inputs[4]),
        peepholes: inputs[5..].iter().map(view).collect(),
        w_h: None,
        projection: None,
    }
}

fn gru<'a, E: Element>(steps: &'a Steps, inputs: &'a [ArrayD<E>]) -> GruLayerInputs<'a, E> {
    GruLayerInputs {
        time: steps.time,
        rounds: vec![steps.rounds],
        sequence_length: steps.sequence_length(),
        x: view(&inputs[0]),
        h_prev: view(&inputs[1]),
        w_ru: view(&inputs[2]),
        w_c: view(&inputs[3]),
        b_ru: view(&inputs[4]),
        b_c: view(&inputs[5]),
        w_ru_h: None,
        w_c_h: None,
    }
}
