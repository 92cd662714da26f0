//! The steps of a plain GRU cell against float64.

use blockcell_kernels::unfused::{
    GruCellGradCInputs, GruCellGradCOutputs, GruCellGradRuInputs, GruCellGradRuOutputs,
    GruCellInputs, GruCellOutputs, gru_cell, gru_cell_grad_c, gru_cell_grad_ru,
    gru_cell_grad_scratch, gru_cell_scratch,
};
use blockcell_kernels::{Activations, Context, Element, Error};
use half::{bf16, f16};
use ndarray::{Array1, Array2, ArrayD, Axis, concatenate, s};

use super::unfused_numbers::{self, assert_close, wide};
use crate::common::executors::contexts;

/// The largest error.
const TOLERANCE: f64 = 1e-6;

/// Numbers between 0 and 1 that depend on `seed`.
fn numbers(seed: u32, shape: &[usize]) -> ArrayD<f32> {
    unfused_numbers::numbers(seed, shape).mapv(|number| (number + 1.0) / 2.0)
}

fn matrix(seed: u32, size: [usize; 2]) -> Array2<f32> {
    numbers(seed, &size).into_dimensionality().expect("a matrix")
}

const SIZES: [[usize; 2]; 8] =
    [[1, 1], [3, 7], [2, 16], [5, 17], [0, 4], [3, 0], [1, 33], [64, 200]];

fn gradients(size: [usize; 2]) -> [Vec<usize>; 4] {
    [size.to_vec(), vec![1, size[1]], vec![size[1]], Vec::new()]
}

/// Each of these on each instruction set.
fn cases(size: [usize; 2]) -> impl Iterator<Item = (Vec<usize>, Context<'static>)> {
    let shapes = gradients(size).into_iter();
    shapes.flat_map(|shape| contexts().map(move |context| (shape.clone(), context)))
}

#[test]
pub(crate) fn candidate_and_update_gate() {
    for size in SIZES {
        for (shape, context) in cases(size) {
            let [u, h_prev, c] = [1, 2, 3].map(|seed| matrix(seed, size));
            let d_h = numbers(4, &shape);
            let mut got = [(); 3].map(|()| Array2::from_elem(size, f32::NAN));
            let [d_c_bar, d_u_bar, d_h_u] = got.each_mut().map(|output| output.view_mut());
            let inputs = GruCellGradCInputs {
                u: u.view(),
                h_prev: h_prev.view(),
                c: c.view(),
                d_h: d_h.view(),
            };
            let outputs = GruCellGradCOutputs { d_c_bar, d_u_bar, d_h_u };
            let mut scratch = vec![f32::NAN; gru_cell_grad_scratch((size[0], size[1]), &shape)];
            gru_cell_grad_c(&context, Activations::default(), inputs, outputs, &mut scratch)
                .expect("right");
            let d_h = d_h.mapv(f64::from).broadcast(size).expect("it fits").to_owned();
            let [u, h_prev, c] = [u, h_prev, c].map(|input| wide(&input));
            let rest = u.mapv(|u| 1.0 - u);
            assert_close(&got[0], &(&d_h * &rest * c.mapv(|c| 1.0 - c * c)), TOLERANCE, "d_c_bar");
            assert_close(&got[1], &(&d_h * (h_prev - c) * &u * rest), TOLERANCE, "d_u_bar");
            assert_close(&got[2], &(d_h * u), TOLERANCE, "d_h_u");
        }
    }
}

#[test]
pub(crate) fn reset_gate() {
    for size in SIZES {
        for (shape, context) in cases(size) {
            let [r, h_prev, d_u_bar] = [1, 2, 3].map(|seed| matrix(seed, size));
            let d_hr = numbers(4, &shape);
            let mut both = Array2::from_elem([size[0], 2 * size[1]], f32::NAN);
            let mut d_hr_r = Array2::from_elem(size, f32::NAN);
            let inputs = GruCellGradRuInputs {
                r: r.view(),
                h_prev: h_prev.view(),
                d_u_bar: d_u_bar.view(),
                d_hr: d_hr.view(),
            };
            let outputs =
                GruCellGradRuOutputs { d_r_bar_u_bar: both.view_mut(), d_hr_r: d_hr_r.view_mut() };
            let mut scratch = vec![f32::NAN; gru_cell_grad_scratch((size[0], size[1]), &shape)];
            gru_cell_grad_ru(&context, inputs, outputs, &mut scratch).expect("right");
            let d_hr = d_hr.mapv(f64::from).broadcast(size).expect("it fits").to_owned();
            let [r, h_prev] = [r, h_prev].map(|input| wide(&input));
            let d_r_bar = &d_hr * &h_prev * r.mapv(|r| r * (1.0 - r));
            assert_close(&both.slice(s![.., ..size[1]]).to_owned(), &d_r_bar, TOLERANCE, "d_r_bar");
            assert_eq!(both.slice(s![.., size[1]..]), d_u_bar);
            assert_close(&d_hr_r, &(d_hr * r), TOLERANCE, "d_hr_r");
        }
    }
}

#[test]
fn other_shapes_are_refused() {
    let gate = matrix(1, [3, 4]);
    let wrong = [vec![2, 4], vec![3, 3], vec![1, 3, 4]];
    for shape in wrong {
        let d_h = numbers(2, &shape);
        let mut outputs = [(); 3].map(|()| Array2::zeros([3, 4]));
        let [d_c_bar, d_u_bar, d_h_u] = outputs.each_mut().map(|output| output.view_mut());
        let [u, h_prev, c] = [(); 3].map(|()| gate.view());
        let inputs = GruCellGradCInputs { u, h_prev, c, d_h: d_h.view() };
        let outputs = GruCellGradCOutputs { d_c_bar, d_u_bar, d_h_u };
        let refused =
            gru_cell_grad_c(&Context::default(), Activations::default(), inputs, outputs, &mut []);
        let message = refused.expect_err("of another shape").to_string();
        assert!(message.starts_with("BlockcellGRUCellGradC: d_h must have shape"), "{message}");
    }
    let (d_hr, narrow) = (numbers(2, &[3, 4]), matrix(1, [3, 3]));
    let [r, h_prev, d_u_bar] = [&gate, &narrow, &gate].map(|input| input.view());
    let inputs = GruCellGradRuInputs { r, h_prev, d_u_bar, d_hr: d_hr.view() };
    let (mut both, mut d_hr_r) = (Array2::zeros([3, 8]), Array2::zeros([3, 4]));
    let outputs =
        GruCellGradRuOutputs { d_r_bar_u_bar: both.view_mut(), d_hr_r: d_hr_r.view_mut() };
    let refused = gru_cell_grad_ru(&Context::default(), inputs, outputs, &mut []);
    let message = refused.expect_err("of another shape").to_string();
    assert!(message.starts_with("BlockcellGRUCellGradRU: h_prev must have shape"), "{message}");
    let number = numbers(5, &[]);
    let [r, h_prev, d_u_bar] = [(); 3].map(|()| gate.view());
    let inputs = GruCellGradRuInputs { r, h_prev, d_u_bar, d_hr: number.view() };
    let mut both = Array2::zeros([3, 8]);
    let outputs =
        GruCellGradRuOutputs { d_r_bar_u_bar: both.view_mut(), d_hr_r: d_hr_r.view_mut() };
    let refused = gru_cell_grad_ru(&Context::default(), inputs, outputs, &mut []);
    assert!(matches!(refused, Err(Error::Scratch { needed: 12, got: 0, .. })));
}

/// x, `h_prev`, `w_ru`, `w_c`, and the biases.
type Tensors<E> = ([Array2<E>; 4], [Array1<E>; 2]);

fn tensors([batch, input, cell]: [usize; 3]) -> Tensors<f32> {
    let sizes = [[batch, input], [batch, cell], [input + cell, 2 * cell], [input + cell, cell]];
    let mut seeds = 0..;
    let matrices = sizes.map(|size| matrix(seeds.next().expect("endless"), size).mapv(|v| v - 0.5));
    let vector = |seed, size: usize| matrix(seed, [1, size]).remove_axis(Axis(0));
    (matrices, [vector(5, 2 * cell), vector(6, cell)])
}

/// `[r, u, c, h]`
fn forward<E: Element>(
    ([x, h_prev, w_ru, w_c], [b_ru, b_c]): &Tensors<E>,
) -> Result<[Array2<E>; 4], Error> {
    let nan = E::from_f32(f32::NAN);
    let mut outputs = [(); 4].map(|()| Array2::from_elem((x.nrows(), b_c.len()), nan));
    let [r, u, c, h] = outputs.each_mut().map(|output| output.view_mut());
    let inputs = GruCellInputs {
        x: x.view(),
        h_prev: h_prev.view(),
        w_ru: w_ru.view(),
        w_c: w_c.view(),
        b_ru: b_ru.view(),
        b_c: b_c.view(),
    };
    let [numbers, elements] = gru_cell_scratch([x.nrows(), x.ncols(), b_c.len()]);
    let mut scratch = (vec![f32::NAN; numbers], vec![nan; elements]);
    let memory = (&mut scratch.0[..], &mut scratch.1[..]);
    gru_cell(
        &Context::default(),
        Activations::default(),
        inputs,
        GruCellOutputs { r, u, c, h },
        memory,
    )?;
    Ok(outputs)
}

fn expected(([x, h_prev, w_ru, w_c], [b_ru, b_c]): &Tensors<f32>) -> [Array2<f64>; 4] {
    let [x, h_prev, w_ru, w_c] = [x, h_prev, w_ru, w_c].map(wide);
    let logistic = |value: f64| 1.0 / (1.0 + (-value).exp());
    let z = concatenate![Axis(1), x, h_prev].dot(&w_ru) + wide(b_ru);
    let gates = z.mapv(logistic);
    let (r, u) = gates.view().split_at(Axis(1), b_c.len());
    let c = (concatenate![Axis(1), x, &r * &h_prev].dot(&w_c) + wide(b_c)).mapv(f64::tanh);
    let h = &u * &h_prev + u.mapv(|u| 1.0 - u) * &c;
    [r.to_owned(), u.to_owned(), c, h]
}

#[test]
fn forward_step() {
    for sizes in [[1, 1, 1], [3, 5, 7], [2, 3, 16], [4, 2, 17], [0, 3, 4], [5, 0, 8], [9, 6, 33]] {
        let all = tensors(sizes);
        let (got, want) = (forward(&all).expect("right"), expected(&all));
        for ((got, want), name) in got.iter().zip(&want).zip(["r", "u", "c", "h"]) {
            assert_close(got, want, 3e-6, name);
        }
        check_rounded::<f16>(&all, 2e-3);
        check_rounded::<bf16>(&all, 1.6e-2);
    }
}

fn check_rounded<E: Element>((matrices, vectors): &Tensors<f32>, tolerance: f64) {
    let rounded = (
        matrices.each_ref().map(|one| one.mapv(E::from_f32)),
        vectors.each_ref().map(|one| one.mapv(E::from_f32)),
    );
    let back = (
        rounded.0.each_ref().map(|one| one.mapv(E::to_f32)),
        rounded.1.each_ref().map(|one| one.mapv(E::to_f32)),
    );
    let (got, want) = (forward(&rounded).expect("right"), expected(&back));
    for ((got, want), name) in got.iter().zip(&want).zip(["r", "u", "c", "h"]) {
        assert_close(&got.mapv(E::to_f32), want, tolerance, name);
    }
}

#[test]
fn other_shapes_are_refused_in_the_forward_step() {
    let mut all = tensors([3, 5, 7]);
    all.0[3] = matrix(1, [12, 6]);
    let message = forward(&all).expect_err("six columns for seven").to_string();
    assert!(message.starts_with("BlockcellGRUCell: w_c must have shape"), "{message}");
}
