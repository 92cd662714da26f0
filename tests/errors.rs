//! Bad calls: every one is an error that names the tensor, nothing panics, nothing is written.

mod common;

use blockcell::ops::{self, DataType, Op};
use blockcell::{Context, Error, gru};
use common::Tensors;
use common::compare::{Failures, same_bits};
use common::data::Sizes;
use common::kernels::{GruBlockCellGrad, Kernel, LstmBlockCellGrad, filled, kernels};
use ndarray::{Array1, Array2, ArrayD, Axis, IxDyn, s};

const SIZES: [(usize, usize, usize); 4] = [(2, 3, 4), (1, 1, 1), (3, 0, 2), (5, 8, 16)];

fn sizes() -> impl Iterator<Item = Sizes> {
    SIZES.into_iter().map(|(batch, input_size, cell_size)| Sizes { batch, input_size, cell_size })
}

/// [`Op::check`] on owned shapes.
fn check(kernel: &dyn Kernel, shapes: &[Vec<usize>]) -> Result<ops::Sizes, Error> {
    let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
    kernel.op().check(kernel.use_peephole(), &shapes)
}

/// The shape that the operation's table gives `tensor`.
fn shape(tensor: &ops::Tensor, sizes: &ops::Sizes) -> Vec<usize> {
    tensor.dims.iter().map(|&dim| sizes.of(dim)).collect()
}

/// The tensor that is found wrong when dimension `dim` of `tensor` is. A size is taken from the
/// first tensor that has it; if it is wrong there, the second tensor that has it is at odds.
fn blamed(op: &Op, tensor: &'static str, dim: usize) -> &'static str {
    match (op.name, tensor, dim) {
        ("GRUBlockCellGrad", "x", 0) => "h_prev",
        ("GRUBlockCellGrad", "x", 1) => "w_ru",
        ("GRUBlockCellGrad", "h_prev", 1) => "w_ru",
        ("LSTMBlockCellGrad", "x", 0) => "cs_prev",
        ("LSTMBlockCellGrad", "x", 1) => "w",
        ("LSTMBlockCellGrad", "cs_prev", 1) => "h_prev",
        _ => tensor,
    }
}

/// Without peepholes the weights are vectors of any length.
fn is_free(kernel: &dyn Kernel, tensor: &str) -> bool {
    !kernel.use_peephole() && ["wci", "wcf", "wco"].contains(&tensor)
}

/// Whether `result` is the error of `tensor` in `op` having the shape `got`.
fn is_shape_error<T>(
    result: Result<T, Error>,
    op: &Op,
    tensor: &str,
    got: &[usize],
) -> Result<(), String> {
    let Err(error) = result else { return Err("no error".to_owned()) };
    let message = error.to_string();
    let start = format!("{}: {tensor} must have shape [", op.name);
    let end = format!(", got {got:?}");
    match &error {
        Error::Shape { op: in_op, tensor: of, got: shape, .. }
            if *in_op == op.name
                && *of == tensor
                && shape == got
                && message.starts_with(&start)
                && message.ends_with(&end) =>
        {
            Ok(())
        }
        _ => Err(format!("expected an error about {tensor} of shape {got:?}, got {message:?}")),
    }
}

#[test]
fn tables_are_those_of_tensorflow() {
    let names = |tensors: &[ops::Tensor]| -> String {
        tensors.iter().map(|tensor| tensor.name).collect::<Vec<_>>().join(" ")
    };
    let table: Vec<_> = ops::ALL
        .iter()
        .map(|op| (op.name, names(op.inputs), names(op.outputs), op.types))
        .collect();
    let want: [(_, _, _, &[DataType]); 2] = [
        (
            "GRUBlockCellGrad",
            "x h_prev w_ru w_c b_ru b_c r u c d_h".to_owned(),
            "d_x d_h_prev d_c_bar d_r_bar_u_bar".to_owned(),
            &[DataType::Float],
        ),
        (
            "LSTMBlockCellGrad",
            "x cs_prev h_prev w wci wcf wco b i cs f o ci co cs_grad h_grad".to_owned(),
            "cs_prev_grad dicfo wci_grad wcf_grad wco_grad".to_owned(),
            &[DataType::Float, DataType::Half],
        ),
    ];
    assert_eq!(table, want);
    for op in ops::ALL {
        assert!(std::ptr::eq(Op::by_name(op.name).expect("its own name"), op));
    }
    assert!(Op::by_name("GRUBlockCell2").is_none());
}

/// What the tests below vary must be right to begin with, and every operation must be there.
#[test]
fn right_shapes_pass() {
    for op in ops::ALL {
        assert!(kernels().iter().any(|kernel| kernel.op().name == op.name), "{}", op.name);
    }
    for kernel in kernels() {
        for sizes in sizes().chain([Sizes::new(0, 0, 0), Sizes::new(1 << 40, 7, 2)]) {
            let got = check(&*kernel, &kernel.input_shapes(sizes)).expect("right shapes");
            assert_eq!(got.batch, sizes.batch);
            assert_eq!(got.input_size, sizes.input_size);
            assert_eq!(got.cell_size, sizes.cell_size);
            let outputs: Vec<_> =
                kernel.op().outputs.iter().map(|tensor| shape(tensor, &got)).collect();
            assert_eq!(outputs, kernel.output_shapes(sizes), "{}", kernel.name());
            let outputs: Vec<_> = outputs.iter().map(Vec::as_slice).collect();
            assert_eq!(kernel.op().check_outputs(&got, &outputs), Ok(()));
        }
    }
}

#[test]
fn every_wrong_rank_is_an_error() {
    let mut failures = Failures::default();
    for kernel in kernels() {
        for sizes in sizes() {
            let right = kernel.input_shapes(sizes);
            for (n, tensor) in kernel.op().inputs.iter().enumerate() {
                let shape = &right[n];
                let wrong = [
                    vec![],
                    shape[1..].to_vec(),
                    shape[..shape.len() - 1].to_vec(),
                    [&shape[..], &[1]].concat(),
                    [&[1], &shape[..]].concat(),
                    [&shape[..], &[0, 2]].concat(),
                ];
                for wrong in wrong {
                    let mut shapes = right.clone();
                    shapes[n].clone_from(&wrong);
                    let error =
                        is_shape_error(check(&*kernel, &shapes), kernel.op(), tensor.name, &wrong);
                    failures.note(format!("{}, {sizes:?}", kernel.name()), error);
                }
            }
        }
    }
    failures.finish();
}

/// `shapes` with one dimension one smaller or larger, for every dimension of every tensor, and
/// which tensor and dimension that is.
fn wrong_dimensions(shapes: &[Vec<usize>]) -> Vec<(usize, usize, Vec<Vec<usize>>)> {
    let mut all = Vec::new();
    for (n, shape) in shapes.iter().enumerate() {
        for (dim, &size) in shape.iter().enumerate() {
            for wrong in [size.checked_sub(1), Some(size + 1)].into_iter().flatten() {
                let mut shapes = shapes.to_vec();
                shapes[n][dim] = wrong;
                all.push((n, dim, shapes));
            }
        }
    }
    all
}

#[test]
fn every_wrong_dimension_of_an_input_is_an_error() {
    let mut failures = Failures::default();
    for kernel in kernels() {
        let op = kernel.op();
        for sizes in sizes() {
            for (n, dim, shapes) in wrong_dimensions(&kernel.input_shapes(sizes)) {
                let name = op.inputs[n].name;
                let case = format!("{}, {sizes:?}, {name} {:?}", kernel.name(), shapes[n]);
                let checked = check(&*kernel, &shapes);
                let mut outputs = filled(&kernel.output_shapes(sizes), 7.0);
                let before = outputs.clone();
                let context = Context::default();
                let ran = kernel.run(&context, &filled(&shapes, 0.5), &mut outputs);
                if is_free(&*kernel, name) {
                    // Then it is the output of the same shape that does not fit.
                    let output = format!("{name}_grad");
                    let at = op.outputs.iter().position(|t| t.name == output).expect("a gradient");
                    let got = before[at].shape();
                    failures.check(&case, checked.is_ok(), "not accepted");
                    failures.note(&case, is_shape_error(ran, op, &output, got));
                } else {
                    let blamed = blamed(op, name, dim);
                    let got = &shapes[kernel.input(blamed)];
                    failures.note(&case, is_shape_error(checked, op, blamed, got));
                    failures.note(&case, is_shape_error(ran, op, blamed, got));
                }
                failures.note(&case, kernel.compare(&outputs, &before, same_bits));
            }
        }
    }
    failures.finish();
}

#[test]
fn every_wrong_dimension_of_an_output_is_an_error() {
    let mut failures = Failures::default();
    for kernel in kernels() {
        let op = kernel.op();
        for sizes in sizes() {
            let inputs = kernel.inputs(sizes, 1);
            for (n, _, shapes) in wrong_dimensions(&kernel.output_shapes(sizes)) {
                let name = op.outputs[n].name;
                let case = format!("{}, {sizes:?}, {name} {:?}", kernel.name(), shapes[n]);
                let mut outputs = filled(&shapes, 7.0);
                let before = outputs.clone();
                let ran = kernel.run(&Context::default(), &inputs, &mut outputs);
                failures.note(&case, is_shape_error(ran, op, name, &shapes[n]));
                failures.note(&case, kernel.compare(&outputs, &before, same_bits));
            }
        }
    }
    failures.finish();
}

#[test]
fn messages_say_what_is_expected() {
    let gru: &dyn Kernel = &GruBlockCellGrad;
    let without: &dyn Kernel = &LstmBlockCellGrad::<f32>::new(false);
    let with: &dyn Kernel = &LstmBlockCellGrad::<f32>::new(true);
    let sizes = Sizes::new(4, 2, 3);
    let cases: [(&dyn Kernel, &str, &[usize], &str); 11] = [
        (
            gru,
            "w_ru",
            &[5, 7],
            "GRUBlockCellGrad: w_ru must have shape \
             [input_size + cell_size, 2 * cell_size] = [5, 6], got [5, 7]",
        ),
        (gru, "x", &[4], "GRUBlockCellGrad: x must have shape [batch, input_size], got [4]"),
        (
            gru,
            "h_prev",
            &[5, 3],
            "GRUBlockCellGrad: h_prev must have shape [batch, cell_size] = [4, ?], got [5, 3]",
        ),
        (
            gru,
            "w_c",
            &[3, 5],
            "GRUBlockCellGrad: w_c must have shape \
             [input_size + cell_size, cell_size] = [5, 3], got [3, 5]",
        ),
        (
            gru,
            "b_ru",
            &[3],
            "GRUBlockCellGrad: b_ru must have shape [2 * cell_size] = [6], got [3]",
        ),
        (
            gru,
            "d_h",
            &[],
            "GRUBlockCellGrad: d_h must have shape [batch, cell_size] = [4, 3], got []",
        ),
        (with, "wci", &[4], "LSTMBlockCellGrad: wci must have shape [cell_size] = [3], got [4]"),
        (
            without,
            "wci",
            &[1, 3],
            "LSTMBlockCellGrad: wci must have shape [any length], got [1, 3]",
        ),
        (
            with,
            "w",
            &[5, 13],
            "LSTMBlockCellGrad: w must have shape \
             [input_size + cell_size, 4 * cell_size] = [5, 12], got [5, 13]",
        ),
        (with, "b", &[3], "LSTMBlockCellGrad: b must have shape [4 * cell_size] = [12], got [3]"),
        (
            without,
            "h_grad",
            &[3, 4],
            "LSTMBlockCellGrad: h_grad must have shape [batch, cell_size] = [4, 3], got [3, 4]",
        ),
    ];
    let mut failures = Failures::default();
    for (kernel, tensor, shape, want) in cases {
        let mut shapes = kernel.input_shapes(sizes);
        shapes[kernel.input(tensor)] = shape.to_vec();
        let got = check(kernel, &shapes).map_err(|error| error.to_string());
        failures.check(tensor, got == Err(want.to_owned()), format!("{got:?}\n   want {want:?}"));
    }
    failures.finish();

    let mut outputs = filled(&gru.output_shapes(sizes), 0.0);
    outputs[3] = ArrayD::zeros(IxDyn(&[4, 5]));
    let ran = gru.run(&Context::default(), &gru.inputs(sizes, 1), &mut outputs);
    let message = ran.expect_err("a wrong output").to_string();
    assert_eq!(message, "GRUBlockCellGrad: d_r_bar_u_bar must have shape [4, 6], got [4, 5]");
}

#[test]
fn a_wrong_number_of_tensors_is_an_error() {
    for kernel in kernels() {
        let op = kernel.op();
        let sizes = Sizes::new(2, 3, 4);
        let inputs = kernel.input_shapes(sizes);
        let known = check(&*kernel, &inputs).expect("right shapes");
        for got in [0, inputs.len() - 1, inputs.len() + 1] {
            let shapes: Vec<_> = inputs.iter().cycle().take(got).cloned().collect();
            let (name, expected) = (op.name, inputs.len());
            let error = check(&*kernel, &shapes).expect_err("a wrong number");
            assert_eq!(error, Error::Count { op: name, what: "inputs", expected, got });
            let message = format!("{name}: expected {expected} inputs, got {got}");
            assert_eq!(error.to_string(), message);
        }
        let expected = op.outputs.len();
        let error = op.check_outputs(&known, &[&[]]).expect_err("a wrong number");
        assert_eq!(error, Error::Count { op: op.name, what: "outputs", expected, got: 1 });
    }
}

#[test]
fn sizes_that_overflow_are_errors() {
    const HALF: usize = usize::MAX / 2;
    let gru: &dyn Kernel = &GruBlockCellGrad;
    let lstm: &dyn Kernel = &LstmBlockCellGrad::<f32>::new(true);
    // Consistent sizes, and the tensor whose size in bytes is the first not to fit.
    let cases: [(&dyn Kernel, [usize; 3], &str); 10] = [
        (gru, [1 << 61, 1, 0], "x"),
        (gru, [1 << 40, 1 << 40, 0], "x"),
        (gru, [1 << 57, 1, 16], "h_prev"),
        (gru, [HALF, 1, 1], "x"),
        (gru, [1, 1 << 59, 4], "w_ru"),
        (gru, [0, 0, 1 << 31], "w_ru"),
        (gru, [1 << 60, 0, 1], "d_r_bar_u_bar"),
        (lstm, [1 << 60, 0, 1], "dicfo"),
        (lstm, [1 << 58, 2, 2], "dicfo"),
        (lstm, [0, 0, 1 << 30], "w"),
    ];
    let mut failures = Failures::default();
    for (kernel, [batch, input_size, cell_size], tensor) in cases {
        let sizes = Sizes { batch, input_size, cell_size };
        let got = check(kernel, &kernel.input_shapes(sizes));
        let name = kernel.op().name;
        let right = matches!(&got, Err(Error::Overflow { op, tensor: of, .. })
            if (*op, *of) == (name, tensor));
        failures.check(format!("{name}, {sizes:?}"), right, format!("{tensor}: {got:?}"));
        let start = format!("{name}: the size of {tensor}, [");
        let message = got.err().map(|error| error.to_string()).unwrap_or_default();
        let right = message.starts_with(&start) && message.ends_with("], is too large");
        failures.check(name, right, message);
    }
    failures.finish();
}

/// Sizes whose sum or multiple is more than a `usize`: no shape can be right then.
#[test]
fn dimensions_that_overflow_are_errors() {
    let mut failures = Failures::default();
    for kernel in kernels() {
        for huge in [usize::MAX, usize::MAX / 2, usize::MAX / 2 + 1, usize::MAX / 4 + 1, 1 << 62] {
            for n in 0..kernel.op().inputs.len() {
                for dim in 0..kernel.op().inputs[n].dims.len() {
                    let mut shapes = kernel.input_shapes(Sizes::new(2, 3, 4));
                    shapes[n][dim] = huge;
                    let name = kernel.op().inputs[n].name;
                    let case = format!("{}, {name}, {huge}", kernel.name());
                    failures.check(case, check(&*kernel, &shapes).is_err(), "no error");
                }
            }
            for (input_size, cell_size) in [(huge, 1), (1, huge), (huge, huge)] {
                let mut shapes = kernel.input_shapes(Sizes::new(0, 1, 1));
                for shape in shapes.iter_mut().filter(|shape| shape.len() == 2) {
                    shape[1] = if shape[0] == 0 { cell_size } else { shape[1] };
                }
                shapes[0][1] = input_size;
                let result = check(&*kernel, &shapes);
                failures.check(kernel.name(), result.is_err(), format!("{shapes:?}"));
            }
        }
    }
    failures.finish();
}

/// An array of the same shape and elements whose rows, or elements, are not in order.
fn rearranged(tensor: &ArrayD<f64>) -> ArrayD<f64> {
    let mut tensor = tensor.clone();
    if tensor.ndim() == 1 {
        tensor.invert_axis(Axis(0));
        return tensor;
    }
    // The transpose of a copy of the transpose.
    let transpose = tensor.t().as_standard_layout().into_owned();
    transpose.reversed_axes()
}

#[test]
fn layouts_that_are_not_standard_are_errors() {
    let mut failures = Failures::default();
    let sizes = Sizes::new(2, 3, 4);
    for kernel in kernels() {
        let op = kernel.op();
        let inputs = kernel.inputs(sizes, 1);
        let outputs = filled(&kernel.output_shapes(sizes), 7.0);
        let tensors = op.inputs.iter().chain(op.outputs);
        for (n, tensor) in tensors.enumerate() {
            let (mut inputs, mut outputs): (Tensors, Tensors) = (inputs.clone(), outputs.clone());
            let before = outputs.clone();
            let at =
                if n < inputs.len() { &mut inputs[n] } else { &mut outputs[n - op.inputs.len()] };
            if at.len() < 2 {
                continue;
            }
            *at = rearranged(at);
            assert!(!at.is_standard_layout());
            let got = kernel.run(&Context::default(), &inputs, &mut outputs);
            let want = Err(Error::Layout { op: op.name, tensor: tensor.name });
            let case = format!("{}, {}", kernel.name(), tensor.name);
            failures.check(&case, got == want, format!("{got:?}"));
            failures.note(&case, kernel.compare(&outputs, &before, same_bits));
        }
    }
    failures.finish();
}

/// A part of the columns of a wider matrix has gaps between its rows.
#[test]
fn gaps_between_rows_are_errors() {
    let wide = Array2::<f32>::from_elem((2, 9), 0.5);
    let state = wide.slice(s![.., ..4]);
    let right = Array2::<f32>::from_elem((2, 4), 0.5);
    let (w_ru, w_c) = (Array2::zeros((4, 8)), Array2::zeros((4, 4)));
    let (b_ru, b_c) = (Array1::zeros(8), Array1::zeros(4));
    let x = Array2::zeros((2, 0));
    let inputs = gru::BlockCellGradInputs {
        x: x.view(),
        h_prev: right.view(),
        w_ru: w_ru.view(),
        w_c: w_c.view(),
        b_ru: b_ru.view(),
        b_c: b_c.view(),
        r: right.view(),
        u: state,
        c: right.view(),
        d_h: right.view(),
    };
    let (mut d_x, mut d_h_prev) = (Array2::zeros((2, 0)), right.clone());
    let (mut d_c_bar, mut d_r_bar_u_bar) = (right.clone(), Array2::zeros((2, 8)));
    let outputs = gru::BlockCellGradOutputs {
        d_x: d_x.view_mut(),
        d_h_prev: d_h_prev.view_mut(),
        d_c_bar: d_c_bar.view_mut(),
        d_r_bar_u_bar: d_r_bar_u_bar.view_mut(),
    };
    let error = gru::block_cell_grad(&Context::default(), inputs, outputs).expect_err("gaps");
    let message = "GRUBlockCellGrad: u must be in standard (row-major, gap-free) layout";
    assert_eq!(error.to_string(), message);
}
