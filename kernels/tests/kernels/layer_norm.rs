//! Layer normalization and its gradient against sums in float64.

use blockcell_kernels::unfused::{
    LayerNormAttributes, LayerNormGradAttributes, LayerNormGradInputs, LayerNormGradOutputs,
    LayerNormInputs, LayerNormOutputs, layer_norm, layer_norm_grad, layer_norm_grad_scratch,
};
use blockcell_kernels::{Context, Error, Isa};
use ndarray::{Array1, Array2, ArrayD, Axis, IxDyn};

use crate::common::compare::same_bits;
use crate::common::executors::{contexts, executors};
use crate::unfused_numbers::{assert_close, matrix, numbers, wide};

/// Rows and columns.
const SIZES: [[usize; 2]; 12] = [
    [3, 5],
    [1, 1],
    [0, 4],
    [2, 0],
    [4, 1],
    [7, 15],
    [5, 16],
    [6, 17],
    [33, 31],
    [70, 64],
    [41, 200],
    [3, 9000],
];
const EPSILON: f32 = 1e-3;

fn vector(seed: u32, len: usize) -> Array1<f32> {
    matrix(seed, 1, len).remove_axis(Axis(0))
}

/// `x` normalized over an axis, and one divided by the deviations.
fn normalized(x: &ArrayD<f64>, axis: usize) -> [ArrayD<f64>; 2] {
    let count = x.shape()[axis] as f64;
    let mean = |x: &ArrayD<f64>| (x.sum_axis(Axis(axis)) / count).insert_axis(Axis(axis));
    let centered = x - &mean(x);
    let scale = mean(&centered.mapv(|v| v * v)).mapv(|v| (v + f64::from(EPSILON)).sqrt().recip());
    [centered * &scale, scale]
}

fn run(
    context: &Context<'_>,
    attributes: LayerNormAttributes,
    [x, gamma, beta]: [&ArrayD<f32>; 3],
    shape: &[usize],
) -> Result<ArrayD<f32>, Error> {
    let mut y = ArrayD::from_elem(IxDyn(shape), f32::NAN);
    let vector = |one: &ArrayD<f32>| one.clone().into_dimensionality().expect("a vector");
    let [gamma, beta]: [Array1<f32>; 2] = [vector(gamma), vector(beta)];
    let inputs = LayerNormInputs { x: x.view(), gamma: gamma.view(), beta: beta.view() };
    let outputs = LayerNormOutputs { y: y.view_mut() };
    layer_norm(context, &attributes, inputs, outputs)?;
    Ok(y)
}

#[test]
fn forward() {
    let shapes = SIZES.map(|[rows, cells]| (vec![rows, cells], cells));
    let others = [
        (vec![3, 1], 4),
        (vec![3, 4], 1),
        (vec![2, 3, 4], 4),
        (vec![2, 3, 1, 5], 5),
        (vec![6], 6),
        (vec![2, 1, 4], 1),
    ];
    for (shape, cells) in shapes.into_iter().chain(others) {
        let x = numbers(1, &shape);
        let [gamma, beta] = [2, 3].map(|seed| vector(seed, cells).into_dyn());
        for over_last_axis in [true, false] {
            let attributes = LayerNormAttributes { epsilon: EPSILON, over_last_axis, bias: 0.75 };
            if !over_last_axis && shape.len() < 2 {
                let error = run(&Context::default(), attributes, [&x, &gamma, &beta], &shape);
                let message = error.expect_err("there is no such axis").to_string();
                assert!(message.starts_with("BlockcellLayerNorm: x must have"), "{message}");
                continue;
            }
            let axis = if over_last_axis { shape.len() - 1 } else { 1 };
            let [n, _] = normalized(&wide(&x), axis);
            let want = n * wide(&gamma) + wide(&beta) + 0.75;
            for context in contexts() {
                let got = run(&context, attributes, [&x, &gamma, &beta], want.shape());
                assert_close(&got.expect("right shapes"), &want, 1e-5, "y");
            }
        }
    }
}

struct Gradient {
    rows: Option<usize>,
    x: Array2<f32>,
    gamma: Array1<f32>,
    dy: Array2<f32>,
}

impl Gradient {
    fn new([rows, columns]: [usize; 2], cells: usize) -> Gradient {
        let wide = if cells == 1 { columns } else { cells };
        let [x, dy] = [matrix(1, rows, columns), matrix(2, rows, wide)];
        Gradient { rows: None, x, gamma: vector(3, cells), dy }
    }

    /// The sizes of dx.
    fn size(&self) -> [usize; 2] {
        let columns = if self.rows.is_some() { self.gamma.len() } else { self.x.ncols() };
        [self.x.nrows(), columns]
    }

    fn run(&self, context: &Context<'_>) -> Result<[ArrayD<f32>; 3], Error> {
        let cells = self.gamma.len();
        let mut dx = Array2::from_elem(self.size(), f32::NAN);
        let [mut dgamma, mut dbeta] = [(); 2].map(|()| Array1::from_elem(cells, f32::NAN));
        let mut scratch = vec![f32::NAN; layer_norm_grad_scratch(self.x.nrows(), cells)];
        let attributes = LayerNormGradAttributes { epsilon: EPSILON, rows: self.rows };
        let inputs =
            LayerNormGradInputs { x: self.x.view(), gamma: self.gamma.view(), dy: self.dy.view() };
        let outputs = LayerNormGradOutputs {
            dx: dx.view_mut(),
            dgamma: dgamma.view_mut(),
            dbeta: dbeta.view_mut(),
        };
        layer_norm_grad(context, &attributes, inputs, outputs, &mut scratch)?;
        Ok([dx.into_dyn(), dgamma.into_dyn(), dbeta.into_dyn()])
    }

    /// `sum(y * dy)`, whose gradients these are.
    fn sum(&self, x: &ArrayD<f64>, gamma: &ArrayD<f64>) -> f64 {
        let [n, _] = normalized(x, 1);
        (n * gamma * wide(&self.dy)).sum()
    }

    /// The gradients by their equations.
    fn want(&self) -> [ArrayD<f64>; 3] {
        let [x, gamma, dy] =
            [wide(&self.x).into_dyn(), wide(&self.gamma).into_dyn(), wide(&self.dy).into_dyn()];
        let [n, scale] = normalized(&x, 1);
        let [rows, columns] = self.size();
        let whole = IxDyn(&[rows, dy.shape()[1]]);
        let all = dy.broadcast(whole).expect("its rows").to_owned();
        let scaled = &all * &gamma;
        let sum = |tensor: &ArrayD<f64>| tensor.sum_axis(Axis(1)).insert_axis(Axis(1));
        let own = match scaled.shape()[1] == columns {
            true => scaled.clone(),
            false => sum(&scaled),
        };
        let count = columns as f64;
        let dx = (own - sum(&scaled) / count - &n * (sum(&(&scaled * &n)) / count)) * scale;
        let of_vector = |tensor: ArrayD<f64>| match gamma.len() == tensor.shape()[1] {
            true => tensor.sum_axis(Axis(0)),
            false => ArrayD::from_elem(IxDyn(&[gamma.len()]), tensor.sum()),
        };
        [dx, of_vector(&all * &n), of_vector(dy)]
    }

    fn check(&self) {
        let want = self.want();
        for context in contexts() {
            let got = self.run(&context).expect("right shapes");
            for ((got, want), name) in got.iter().zip(&want).zip(["dx", "dgamma", "dbeta"]) {
                let most = want.iter().fold(1.0, |most: f64, v| most.max(v.abs()));
                assert_close(got, want, 2e-5 * most, name);
            }
        }
    }
}

#[test]
fn gradients() {
    for [rows, cells] in SIZES {
        let mut call = Gradient::new([rows, cells], cells);
        call.check();
        call.rows = Some(rows);
        call.check();
        if rows > 0 {
            call.dy = matrix(2, 1, cells);
            call.check();
        }
    }
}

#[test]
fn gradients_of_what_was_broadcast() {
    for (size, cells) in [([3, 1], 4), ([3, 4], 1), ([20, 1], 17)] {
        let mut call = Gradient::new(size, cells);
        call.check();
        if size[1] == 1 {
            call.rows = Some(size[0]);
            call.check();
        }
    }
}

/// The equations themselves, by finite differences.
#[test]
fn gradients_are_slopes() {
    let call = Gradient::new([3, 5], 5);
    let [dx, dgamma, _] = call.want();
    let (x, gamma) = (wide(&call.x).into_dyn(), wide(&call.gamma).into_dyn());
    let step = 1e-6;
    for at in 0..x.len() {
        let moved = |by: f64| {
            let mut x = x.clone();
            x.as_slice_mut().expect("no gaps")[at] += by;
            call.sum(&x, &gamma)
        };
        let slope = (moved(step) - moved(-step)) / (2.0 * step);
        assert!((slope - dx.as_slice().expect("no gaps")[at]).abs() < 1e-6, "{at}");
    }
    for at in 0..gamma.len() {
        let moved = |by: f64| {
            let mut gamma = gamma.clone();
            gamma[at] += by;
            call.sum(&x, &gamma)
        };
        let slope = (moved(step) - moved(-step)) / (2.0 * step);
        assert!((slope - dgamma[at]).abs() < 1e-6, "{at}");
    }
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let call = Gradient::new([150, 130], 130);
    let serial = call.run(&Context::default()).expect("right shapes");
    for (_, executor) in executors() {
        let got = call.run(&Context::new(Isa::get(), &**executor)).expect("right shapes");
        for (got, want) in got.iter().zip(&serial) {
            let [got, want] = [got, want].map(|one| one.mapv(f64::from));
            same_bits("output", &got, &want).expect("the same");
        }
    }
}

#[test]
fn errors_name_tensors() {
    let context = &Context::default();
    let mut call = Gradient::new([3, 4], 4);
    call.rows = Some(2);
    let message = call.run(context).expect_err("other rows").to_string();
    assert!(message.starts_with("BlockcellLayerNormGrad: x must have shape [rows"), "{message}");
    call.rows = None;
    call.dy = matrix(2, 1, 4);
    let message = call.run(context).expect_err("one row").to_string();
    assert!(message.starts_with("BlockcellLayerNormGrad: dy must have shape [3, 4]"), "{message}");
}
