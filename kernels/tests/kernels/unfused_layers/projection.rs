//! Loops of LSTM cells whose outputs are projected, or have x added to them, against loops in float64.

use blockcell_kernels::lstm::Attributes;
use blockcell_kernels::unfused::{
    GateColumns, Loop, LstmLayerInputs, LstmLayerOutputs, copied_x, lstm_layer, lstm_layer_scratch,
    other_width_scratch, projection_scratch,
};
use blockcell_kernels::{Context, Element, Error};
use half::{bf16, f16};
use ndarray::{Array1, Array2, Array3, ArrayView1, Axis, concatenate, s};

use crate::common::executors::contexts;
use crate::unfused_numbers::{assert_close, matrix};

/// A call: `[time, batch, input, cell, output]`, and which parts it has.
#[derive(Clone, Copy, Debug)]
struct Case {
    sizes: [usize; 5],
    is_projected: bool,
    proj_clip: f32,
    adds_x: bool,
    is_apart: bool,
    ends: bool,
}

const ATTRIBUTES: Attributes = Attributes { use_peephole: false, forget_bias: 0.7, cell_clip: 0.8 };

fn logistic(value: f64) -> f64 {
    1.0 / (1.0 + (-value).exp())
}

/// Numbers as the element type has them.
fn stored<E: Element>(seed: u32, rows: usize, columns: usize) -> Array2<E> {
    matrix(seed, rows, columns).mapv(E::from_f32)
}

/// Weights that do not make a loop chaotic.
fn weights<E: Element>(seed: u32, rows: usize, columns: usize) -> Array2<E> {
    matrix(seed, rows, columns).mapv(|value| E::from_f32(0.25 * value))
}

fn wide<E: Element>(matrix: &Array2<E>) -> Array2<f64> {
    matrix.mapv(|value| f64::from(value.to_f32()))
}

struct Tensors<E> {
    x: Array3<E>,
    h_prev: Array2<E>,
    cs_prev: Array2<E>,
    w: Array2<E>,
    b: Array1<E>,
    projection: Array2<E>,
    lengths: Vec<i32>,
}

impl Case {
    fn tensors<E: Element>(&self) -> Tensors<E> {
        let [time, batch, input, cell, output] = self.sizes;
        let x = stored::<E>(1, time * batch, input);
        Tensors {
            x: x.into_shape_with_order((time, batch, input)).expect("as many"),
            h_prev: stored(2, batch, output),
            cs_prev: stored(3, batch, cell),
            w: weights(4, input + output, 4 * cell),
            b: stored(5, 1, 4 * cell).remove_axis(Axis(0)),
            projection: weights(6, cell, output),
            lengths: (0..batch).map(|row| [time, 0, time / 2][row % 3] as i32).collect(),
        }
    }

    fn run<E: Element>(
        &self,
        context: &Context<'_>,
        of: &Tensors<E>,
    ) -> Result<[Array3<E>; 3], Error> {
        let [time, batch, input, cell, output] = self.sizes;
        let nan = |time, width| Array3::from_elem((time, batch, width), E::from_f32(f32::NAN));
        let mut results = [nan(time, output), nan(1, output), nan(1, cell)];
        let of_projection = self.is_projected.then_some(output);
        let more = projection_scratch([batch, cell], of_projection);
        let needed = lstm_layer_scratch([time, batch, input, cell]);
        let other = other_width_scratch([batch, input, cell], [of.h_prev.ncols(), output]);
        let x = copied_x(of.x.shape(), batch);
        let mut numbers = vec![f32::NAN; needed[0] + more[0] + other[0]];
        let mut elements = vec![E::from_f32(f32::NAN); needed[1] + more[1] + other[1] + x];
        let [h, h_last, cs_last] = results.each_mut().map(|result| result.view_mut());
        let (w_x, w_h) = of.w.view().split_at(Axis(0), input);
        let inputs = LstmLayerInputs {
            time: time as i32,
            rounds: vec![time as i32],
            sequence_length: self.ends.then(|| ArrayView1::from(&of.lengths).into_dyn()),
            x: of.x.view(),
            h_prev: of.h_prev.view(),
            cs_prev: of.cs_prev.view().into_dyn(),
            w: if self.is_apart { w_x } else { of.w.view() },
            b: of.b.view(),
            peepholes: Vec::new(),
            w_h: self.is_apart.then_some(w_h),
            projection: self.is_projected.then(|| of.projection.view()),
        };
        let outputs = LstmLayerOutputs {
            h,
            h_last: h_last.index_axis_move(Axis(0), 0),
            cs_last: cs_last.index_axis_move(Axis(0), 0),
        };
        let kind = Loop { needs_h: false, adds_x: self.adds_x, ..Loop::default() };
        let attributes = (&ATTRIBUTES, GateColumns::default(), self.proj_clip);
        lstm_layer(context, attributes, &kind, inputs, outputs, (&mut numbers, &mut elements))?;
        Ok(results)
    }

    fn want<E: Element>(&self, of: &Tensors<E>) -> [Array3<f64>; 3] {
        let [time, batch, _, cell, output] = self.sizes;
        let round = |value: f64| f64::from(E::from_f32(value as f32).to_f32());
        let [w, projection, mut h, mut cs] =
            [&of.w, &of.projection, &of.h_prev, &of.cs_prev].map(wide);
        let b = of.b.mapv(|value| f64::from(value.to_f32()));
        let mut all = Array3::zeros((time, batch, output));
        for t in 0..time {
            let x = wide(&of.x.index_axis(Axis(0), t).to_owned());
            let z = concatenate![Axis(1), x, h].dot(&w) + &b;
            let gate =
                |number: usize| z.slice(s![.., number * cell..(number + 1) * cell]).to_owned();
            let (i, ci) = (gate(0).mapv(logistic), gate(1).mapv(f64::tanh));
            let f = gate(2).mapv(|value| logistic(value + f64::from(0.7f32)));
            let clip = round(f64::from(ATTRIBUTES.cell_clip));
            let new = (i * ci + f * &cs).mapv(|value| round(value.clamp(-clip, clip)));
            let mut output = gate(3).mapv(logistic) * new.mapv(f64::tanh);
            if self.is_projected {
                output = output.mapv(round).dot(&projection);
            }
            if self.proj_clip > 0.0 {
                let clip = round(f64::from(self.proj_clip));
                output.mapv_inplace(|value| value.clamp(-clip, clip));
            }
            let output = output.mapv(round);
            if !self.ends {
                (h, cs) = (output.clone(), new.clone());
            }
            for row in (0..batch).filter(|&row| !self.ends || (t as i32) < of.lengths[row]) {
                h.row_mut(row).assign(&output.row(row));
                cs.row_mut(row).assign(&new.row(row));
                let mut to = all.slice_mut(s![t, row, ..]);
                to.assign(&output.row(row));
                if self.adds_x {
                    to += &x.row(if x.nrows() == 1 { 0 } else { row });
                }
            }
        }
        [all, h.insert_axis(Axis(0)), cs.insert_axis(Axis(0))]
    }

    fn check<E: Element>(&self, tolerance: f64) {
        self.check_with(&self.tensors::<E>(), tolerance);
    }

    fn check_with<E: Element>(&self, tensors: &Tensors<E>, tolerance: f64) {
        let want = self.want(tensors);
        for context in contexts() {
            let got =
                self.run(&context, tensors).unwrap_or_else(|error| panic!("{self:?} {error}"));
            for ((got, want), name) in got.iter().zip(&want).zip(["h", "h_last", "cs_last"]) {
                let got = got.mapv(|value| value.to_f32()).into_dyn();
                assert_close(&got, &want.clone().into_dyn(), tolerance, name);
            }
        }
    }
}

fn cases() -> Vec<Case> {
    let sizes = [
        [3, 5, 7, 9, 4],
        [4, 3, 16, 33, 16],
        [20, 1, 17, 64, 17],
        [2, 64, 5, 8, 8],
        [1, 2, 1, 1, 1],
        [3, 0, 4, 6, 2],
        [9, 4, 2, 130, 65],
    ];
    let mut all = Vec::new();
    for sizes in sizes {
        for bits in 0..16 {
            let is = |bit: usize| bits >> bit & 1 == 1;
            let [time, batch, _, cell, output] = sizes;
            // What is added is as wide as the outputs.
            let is_projected = is(0);
            let output = if is_projected { output } else { cell };
            let input = if is(1) { output } else { sizes[2] };
            let sizes = [time, batch, input, cell, output];
            let proj_clip = if is_projected && is(2) { 0.3 } else { -1.0 };
            let (adds_x, is_apart, ends) = (is(1), is(3), is(2) != is(3));
            all.push(Case { sizes, is_projected, proj_clip, adds_x, is_apart, ends });
        }
    }
    all
}

#[test]
fn outputs_are_projected_and_have_x_added() {
    for case in cases() {
        case.check::<f32>(5e-6);
        case.check::<f16>(2e-2);
        case.check::<bf16>(1.6e-1);
    }
}

/// In a loop of one round, no other round takes an output of the width that the first one has.
#[test]
fn one_round_from_an_output_of_another_width() {
    fn check<E: Element>(case: Case, before: usize, tolerance: f64) {
        let [_, batch, input, cell, _] = case.sizes;
        let mut tensors = case.tensors::<E>();
        tensors.h_prev = stored(2, batch, before);
        tensors.w = weights(4, input + before, 4 * cell);
        case.check_with(&tensors, tolerance);
        // Neither more rounds nor other weights go with that.
        tensors.w = weights(4, input + before + 1, 4 * cell);
        assert!(case.run(&Context::default(), &tensors).is_err(), "a row too many");
        let more = Case { sizes: [2, batch, input, cell, case.sizes[4]], ..case };
        let mut tensors = more.tensors::<E>();
        tensors.h_prev = stored(2, batch, before);
        tensors.w = weights(4, input + before, 4 * cell);
        assert!(more.run(&Context::default(), &tensors).is_err(), "two rounds");
    }
    for case in cases()
        .into_iter()
        .filter(|case| !case.ends && case.sizes[1..4].iter().all(|&size| (1..20).contains(&size)))
    {
        let [_, batch, input, cell, output] = case.sizes;
        let case = Case { sizes: [1, batch, input, cell, output], ..case };
        for before in [0, 1, 3, 20].into_iter().filter(|&before| before != output) {
            check::<f32>(case, before, 5e-6);
            check::<f16>(case, before, 2e-2);
            check::<bf16>(case, before, 1.6e-1);
        }
    }
}

/// Nor does one take as few rows.
#[test]
fn one_round_from_one_row_and_many_states() {
    for case in cases().into_iter().filter(|case| !case.ends && case.sizes[1] > 1) {
        let [_, batch, input, cell, output] = case.sizes;
        let few = Case { sizes: [1, 1, input, cell, output], ..case };
        let mut tensors = few.tensors::<f32>();
        tensors.cs_prev = stored(3, batch, cell);
        let many = Case { sizes: [1, batch, input, cell, output], ..case };
        many.check_with(&tensors, 5e-6);
    }
}

#[test]
fn other_projections_are_refused() {
    let case = cases()[3];
    assert!(case.is_projected && case.adds_x);
    let refused = |change: &dyn Fn(&mut Case, &mut Tensors<f32>)| {
        let (mut case, mut tensors) = (case, case.tensors::<f32>());
        change(&mut case, &mut tensors);
        case.run(&Context::default(), &tensors).expect_err("it is wrong").to_string()
    };
    let [.., cell, output] = case.sizes;
    let message = refused(&|_, of| of.projection = Array2::zeros((cell + 1, output)));
    assert!(
        message.contains("projection must have shape [cell_size, output_size] = [9, 4]"),
        "{message}"
    );
    let message = refused(&|case, of| {
        case.adds_x = false;
        case.sizes[4] = 12;
        of.projection = Array2::zeros((cell, 12));
        of.h_prev = Array2::zeros((5, 12));
        of.w = Array2::zeros((case.sizes[2] + 12, 4 * cell));
    });
    assert!(message.contains("with an output_size of at most 9, got [9, 12]"), "{message}");
    let message = refused(&|case, of| {
        case.sizes[2] += 1;
        *of = case.tensors();
    });
    assert!(
        message.contains("x must have shape [time, batch, width of h = 4], got [3, 5, 5]"),
        "{message}"
    );
    let message = refused(&|case, of| {
        case.is_projected = false;
        case.adds_x = false;
        of.projection = Array2::zeros((cell, output));
    });
    assert!(message.contains("must have shape"), "{message}");
}
