//! The backward step of a plain LSTM cell with peepholes and a clip, against float64.

use blockcell_kernels::unfused::{
    GateColumns, LstmCellGradAttributes, LstmCellGradInputs, LstmCellGradOutputs, lstm_cell_grad,
    lstm_cell_grad_scratch,
};
use blockcell_kernels::{Activations, Context, Element, Error, Isa};
use half::{bf16, f16};
use ndarray::{Array1, Array2, ArrayD, Axis, IxDyn, concatenate};

use super::unfused_numbers::{assert_close, matrix, numbers, summed, wide};

/// The tensors of a step with peepholes.
struct Step<E> {
    /// i, f, o
    gates: [ArrayD<E>; 3],
    ci: Array2<E>,
    co: ArrayD<E>,
    cs: ArrayD<E>,
    cs_prev: ArrayD<E>,
    cs_grad: ArrayD<E>,
    h_grad: ArrayD<E>,
    weights: [Array1<E>; 3],
}

/// `[cs_prev_grad, dicfo, through i, through f]`, and with respect to the weights.
type Grads<E> = ([ArrayD<E>; 4], [Array1<E>; 3]);

impl Step<f32> {
    fn random([rows, columns]: [usize; 2]) -> Self {
        Step::with_state([rows, columns], &[rows, columns])
    }

    /// A step whose cell state has this shape.
    fn with_state([rows, columns]: [usize; 2], state: &[usize]) -> Self {
        let tensor = |seed| numbers(seed, state);
        let vector = |seed| numbers(seed, &[columns]).into_dimensionality().expect("a vector");
        Step {
            gates: [1, 2, 3].map(tensor),
            ci: matrix(4, rows, columns),
            co: tensor(5),
            cs: tensor(6),
            cs_prev: tensor(7),
            cs_grad: tensor(8),
            h_grad: tensor(9),
            weights: [10, 11, 12].map(vector),
        }
    }

    fn stored<E: Element>(&self) -> Step<E> {
        let stored = |one: &ArrayD<f32>| one.mapv(E::from_f32);
        Step {
            gates: self.gates.each_ref().map(stored),
            ci: self.ci.mapv(E::from_f32),
            co: stored(&self.co),
            cs: stored(&self.cs),
            cs_prev: stored(&self.cs_prev),
            cs_grad: stored(&self.cs_grad),
            h_grad: stored(&self.h_grad),
            weights: self.weights.each_ref().map(|one| one.mapv(E::from_f32)),
        }
    }

    /// In float64, where i, f, o, ci, co and cs need not belong together.
    fn expected(&self, clip: f32, has_cs: bool) -> Grads<f64> {
        let [i, f, o] = self.gates.each_ref().map(wide);
        let ci = wide(&self.ci).into_dyn();
        let [co, cs, cs_prev] = [&self.co, &self.cs, &self.cs_prev].map(wide);
        let (cs_grad, dh) = (wide(&self.cs_grad), wide(&self.h_grad));
        let [wci, wcf, wco] = self.weights.each_ref().map(wide);
        let slope = |gate: &ArrayD<f64>| gate.mapv(|value| value * (1.0 - value));
        let tanh_slope = |value: &ArrayD<f64>| value.mapv(|value| 1.0 - value * value);
        let d_o = &dh * &co * slope(&o);
        let mut dcs = cs_grad + &dh * &o * tanh_slope(&co) + &d_o * &wco;
        let state = &i * &ci + &f * &cs_prev;
        dcs.zip_mut_with(&state, |gradient, &state| {
            *gradient *= f64::from(clip <= 0.0 || state.abs() <= f64::from(clip));
        });
        let di = &dcs * &ci * slope(&i);
        let df = &dcs * &cs_prev * slope(&f);
        let dci = &dcs * &i * tanh_slope(&ci);
        let dicfo = [&di, &dci, &df, &d_o].map(|part| summed(part, ci.shape()));
        let dicfo = concatenate(Axis(1), &dicfo.each_ref().map(|part| part.view()));
        let sums = [&di * &cs_prev, &df * &cs_prev, &d_o * &cs * f64::from(has_cs)];
        let sums = sums.map(|term| summed(&term, &[ci.shape()[1]]));
        let sums = sums.map(|sum| sum.into_dimensionality().expect("a vector"));
        ([&dcs * &f, dicfo.expect("of one height"), &di * &wci, &df * &wcf], sums)
    }
}

impl<E: Element> Step<E> {
    fn run(&self, isa: Isa, clip: f32, has_cs: bool) -> Result<Grads<E>, Error> {
        self.run_with(isa, attributes([false; 3], clip), has_cs)
    }

    fn run_with(
        &self,
        isa: Isa,
        attributes: LstmCellGradAttributes,
        has_cs: bool,
    ) -> Result<Grads<E>, Error> {
        self.run_of(isa, attributes, has_cs, true)
    }

    /// A run with a cs_prev and all peepholes, or without the ones that look at it.
    fn run_of(
        &self,
        isa: Isa,
        attributes: LstmCellGradAttributes,
        has_cs: bool,
        has_state: bool,
    ) -> Result<Grads<E>, Error> {
        let (size, whole) = (self.ci.dim(), self.co.shape());
        let first = if has_state { 0 } else { 2 };
        let unknown = E::from_f32(f32::NAN);
        let product = [&self.cs_prev.shape()[..self.cs_prev.ndim().saturating_sub(1)], &[size.1]];
        let product = product.concat();
        let of_state = match (attributes.sums_to_cs_prev, attributes.sums_to_product) {
            (true, _) if has_state => self.cs_prev.shape(),
            (_, true) if has_state => &product,
            _ => whole,
        };
        let [mut cs_prev_grad, mut through_i, mut through_f] =
            [whole, of_state, of_state].map(|shape| ArrayD::from_elem(IxDyn(shape), unknown));
        let mut dicfo = Array2::from_elem((size.0, 4 * size.1), unknown);
        let mut sums = [(); 3].map(|()| Array1::from_elem(size.1, unknown));
        let [i, f, o] = self.gates.each_ref().map(|one| one.view());
        let inputs = LstmCellGradInputs {
            i,
            f,
            o,
            ci: self.ci.view(),
            co: self.co.view(),
            cs_prev: has_state.then(|| self.cs_prev.view()),
            cs_grad: vec![self.cs_grad.view()],
            h_grad: vec![self.h_grad.view()],
            peepholes: self.weights[first..].iter().map(|one| one.view()).collect(),
            cs: has_cs.then(|| self.cs.view()),
        };
        let outputs = LstmCellGradOutputs {
            cs_prev_grad: cs_prev_grad.view_mut(),
            dicfo: dicfo.view_mut(),
            through_peepholes: [through_i.view_mut(), through_f.view_mut()]
                .into_iter()
                .skip(first)
                .collect(),
            peephole_grads: sums[first..].iter_mut().map(|one| one.view_mut()).collect(),
        };
        let context = Context { isa, ..Context::default() };
        let cs_prev = if has_state { &[self.cs_prev.shape()][..] } else { &[] };
        let lists = [cs_prev, &[whole], &[whole]];
        let needed = lstm_cell_grad_scratch(size, whole, lists, 3 - first);
        let mut scratch = vec![unknown; needed];
        lstm_cell_grad(&context, &attributes, inputs, outputs, &mut scratch)?;
        Ok(([cs_prev_grad, dicfo.into_dyn(), through_i, through_f], sums))
    }
}

fn attributes(
    [sums_to_gates, sums_to_cs_prev, sums_to_product]: [bool; 3],
    cell_clip: f32,
) -> LstmCellGradAttributes {
    LstmCellGradAttributes {
        sums_to_gates,
        sums_to_cs_prev,
        sums_to_product,
        cell_clip,
        columns: GateColumns::default(),
        activations: Activations::default(),
    }
}

const NAMES: [&str; 4] = ["cs_prev_grad", "dicfo", "through i", "through f"];

fn check(got: Grads<f32>, want: &Grads<f64>, tolerance: f64, rows: usize) {
    for ((got, want), name) in got.0.iter().zip(&want.0).zip(NAMES) {
        assert_close(got, want, tolerance, name);
    }
    for (got, want) in got.1.iter().zip(&want.1) {
        assert_close(got, want, tolerance * (rows as f64).max(1.0), "weights");
    }
}

#[test]
fn peepholes_and_a_clip() {
    for size in [[1, 1], [3, 7], [2, 16], [70, 17], [0, 4], [3, 0], [5, 300]] {
        let step = Step::random(size);
        for (clip, has_cs) in [(-1.0, true), (0.3, true), (0.3, false)] {
            let want = step.expected(clip, has_cs);
            for isa in Isa::available() {
                check(step.run(isa, clip, has_cs).expect("right"), &want, 2e-6, size[0]);
            }
        }
    }
}

#[test]
fn without_a_state_the_output_gate_has_the_only_peephole() {
    for size in [[1, 1], [3, 7], [70, 17], [0, 4], [3, 0]] {
        let mut step = Step::random(size);
        step.cs_prev.fill(0.0);
        for (clip, has_cs) in [(-1.0, true), (0.3, false)] {
            let ([cs_prev_grad, dicfo, ..], [.., wco]) = step.expected(clip, has_cs);
            for isa in Isa::available() {
                let attributes = attributes([true; 3], clip);
                let found = step.run_of(isa, attributes, has_cs, false).expect("right");
                assert_close(&found.0[0], &cs_prev_grad, 2e-6, "cs_prev_grad");
                assert_close(&found.0[1], &dicfo, 2e-6, "dicfo");
                assert_close(&found.1[2], &wco, 2e-6 * (size[0] as f64).max(1.0), "weights");
            }
        }
    }
}

/// What comes through peepholes is added up to the shape of cs_prev.
#[test]
fn a_state_that_broadcasts() {
    for size in [[1, 1], [3, 7], [70, 17], [0, 4], [3, 0]] {
        for shape in [&[1, size[1]][..], &[size[1]], &[size[0], 1], &[1, 1], &[1], &[]] {
            let mut step = Step::random(size);
            step.cs_prev = numbers(7, shape);
            for (clip, has_cs) in [(-1.0, true), (0.3, false)] {
                let (mut want, sums) = step.expected(clip, has_cs);
                let tolerance = 2e-6 * ((size[0] * size[1]) as f64).max(1.0);
                let product = [&shape[..shape.len().saturating_sub(1)], &[size[1]]].concat();
                let whole = size;
                for (adds_up, to) in [
                    ([false; 3], &whole[..]),
                    ([false, false, true], &product),
                    ([false, true, false], shape),
                ] {
                    for through in want[2..].iter_mut().filter(|_| to != whole) {
                        *through = summed(through, to);
                    }
                    for isa in Isa::available() {
                        let attributes = attributes(adds_up, clip);
                        let got = step.run_with(isa, attributes, has_cs).expect("right");
                        check(got, &(want.clone(), sums.clone()), tolerance, 1);
                    }
                }
            }
        }
    }
}

/// Gates that look at a larger state are as large, and ci is not.
#[test]
fn a_state_that_is_larger() {
    for (size, state) in [
        ([1, 4], &[5, 4][..]),
        ([3, 4], &[2, 3, 4]),
        ([1, 17], &[2, 3, 17]),
        ([1, 4], &[0, 4]),
        ([1, 0], &[3, 0]),
    ] {
        let step = Step::with_state(size, state);
        let message = step.run(Isa::get(), -1.0, true).expect_err("it is larger").to_string();
        assert!(message.starts_with("BlockcellLSTMCellGrad: co must have"), "{message}");
        for (clip, has_cs) in [(-1.0, true), (0.3, true), (0.3, false)] {
            let want = step.expected(clip, has_cs);
            let attributes = attributes([true; 3], clip);
            let got = step.run_with(Isa::get(), attributes, has_cs).expect("right");
            check(got, &want, 1e-5, 1);
        }
    }
}

fn check_stored<E: Element>(tolerance: f64) {
    let size = [3, 37];
    let step = Step::random(size).stored::<E>();
    let wide = |one: &ArrayD<E>| one.mapv(E::to_f32);
    let exact = Step {
        gates: step.gates.each_ref().map(wide),
        ci: step.ci.mapv(E::to_f32),
        co: wide(&step.co),
        cs: wide(&step.cs),
        cs_prev: wide(&step.cs_prev),
        cs_grad: wide(&step.cs_grad),
        h_grad: wide(&step.h_grad),
        weights: step.weights.each_ref().map(|one| one.mapv(E::to_f32)),
    };
    for clip in [-1.0, 0.3] {
        let want = exact.expected(E::from_f32(clip).to_f32(), true);
        for isa in Isa::available() {
            let (matrices, sums) = step.run(isa, clip, true).expect("right");
            let sums = sums.map(|one| one.mapv(E::to_f32));
            check((matrices.each_ref().map(wide), sums), &want, tolerance, size[0]);
        }
    }
}

#[test]
fn in_half_and_bfloat16() {
    check_stored::<f16>(2e-3);
    check_stored::<bf16>(1.6e-2);
}

/// The state is compared as it is stored, and what is equal to the bound passes, as `tf.minimum` has it.
#[test]
fn what_is_equal_to_the_clip_is_not_clipped() {
    let mut step = Step::random([1, 1]);
    for (value, passes) in [(0.5, true), (-0.5, true), (0.500_01, false), (f32::NAN, false)] {
        step.gates = [1.0, 0.25, 0.5].map(|one| ArrayD::from_elem(IxDyn(&[1, 1]), one));
        step.ci.fill(value);
        step.cs_prev.fill(0.0);
        for isa in Isa::available() {
            let ([cs_prev_grad, ..], _) = step.run(isa, 0.5, true).expect("right");
            assert_eq!(cs_prev_grad[[0, 0]] != 0.0, passes, "{value}");
            if !value.is_nan() {
                // In half, 0.50001 is 0.5.
                let ([cs_prev_grad, ..], _) =
                    step.stored::<f16>().run(isa, 0.5, true).expect("right");
                assert_ne!(cs_prev_grad[[0, 0]].to_f32(), 0.0, "{value}");
            }
        }
    }
}

#[test]
fn other_shapes_are_refused() {
    let mut step = Step::random([3, 4]);
    step.cs_prev = numbers(7, &[2, 4]);
    let attributes = attributes([true; 3], -1.0);
    let message = step.run_with(Isa::get(), attributes, true).expect_err("two rows").to_string();
    assert!(message.starts_with("BlockcellLSTMCellGrad: cs_prev must have"), "{message}");
    let mut step = Step::random([3, 4]);
    step.gates[1] = numbers(7, &[1, 4]);
    let message = step.run(Isa::get(), -1.0, true).expect_err("one row").to_string();
    assert!(message.starts_with("BlockcellLSTMCellGrad: f must have"), "{message}");
    let mut step = Step::random([3, 4]);
    step.weights[1] = Array1::zeros(5);
    let message = step.run(Isa::get(), -1.0, true).expect_err("five").to_string();
    assert!(message.starts_with("BlockcellLSTMCellGrad: peepholes[1] must have"), "{message}");
}
