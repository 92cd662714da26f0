//! Bad calls: every one is an error that names the tensor, nothing panics, nothing is written.
//!
//! Sizes that overflow are in `overflow.rs`, numbers of steps and scratch memory in `sequences.rs`.

use crate::common::Tensors;
use crate::common::compare::{Failures, same_bits};
use crate::common::data::Sizes;
use crate::common::kernels::{
    Attributes, BlockGru, BlockGruGrad, BlockLstm, BlockLstmGrad, GruBlockCellGrad, Kernel,
    LstmBlockCellGrad, Row, filled, kernels,
};
use blockcell_kernels::ops::{self, DataType, Dim, Op};
use blockcell_kernels::{Context, Error, gru};
use ndarray::{Array1, Array2, ArrayD, Axis, IxDyn, s};

const SIZES: [Sizes; 4] = [
    Sizes::new(3, 2, 3, 4),
    Sizes::new(1, 1, 1, 1),
    Sizes::new(2, 3, 0, 2),
    Sizes::new(4, 5, 8, 16),
];

/// [`Op::check`] on owned shapes.
pub(crate) fn check(kernel: &dyn Kernel, shapes: &[Vec<usize>]) -> Result<ops::Sizes, Error> {
    let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
    kernel.op().check(kernel.uses_optional(), &shapes)
}

/// The shape that the operation's table gives `tensor`.
fn shape(tensor: &ops::Tensor, sizes: &ops::Sizes) -> Vec<usize> {
    tensor.dims.iter().map(|&dim| sizes.of(dim)).collect()
}

/// The tensor that is found wrong when dimension `dim` of input `n` is, if any. A size is taken from
/// the first tensor that has it; if it is wrong there, the next tensor that has it is at odds.
fn blamed(kernel: &dyn Kernel, n: usize, dim: usize) -> Option<usize> {
    let rows = kernel.input_rows();
    let symbol = match rows[n].dims[dim] {
        // Peephole weights and such have the length of a cell, or any.
        "I" | "F" | "O" | "H" if kernel.uses_optional() => "C",
        symbol => symbol,
    };
    if symbol.len() > 1 {
        return Some(n);
    }
    let has = |row: &Row| row.dims.iter().any(|dims| dims.contains(symbol));
    if rows[..n].iter().any(has) {
        return Some(n);
    }
    (n + 1..rows.len()).find(|&later| has(&rows[later]))
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
        Error::Shape { op: in_op, tensor: of, index: None, got: shape, .. }
            if *in_op == op.name
                && *of == tensor
                && shape.iter().copied().eq(got.iter().copied().map(Some))
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
    let names =
        |tensors: &[ops::Tensor]| -> Vec<_> { tensors.iter().map(|tensor| tensor.name).collect() };
    let own_names = |rows: &[Row]| -> Vec<_> { rows.iter().map(|row| row.name).collect() };
    for kernel in kernels() {
        let op = kernel.op();
        assert_eq!(names(op.inputs), own_names(&kernel.input_rows()), "{}", op.name);
        assert_eq!(names(op.outputs), own_names(&kernel.output_rows()), "{}", op.name);
        for tensor in op.inputs.iter().chain(op.outputs) {
            let steps = ["seq_len_max", "sequence_length"].contains(&tensor.name);
            assert_eq!(tensor.is_steps(), steps, "{}", tensor.name);
        }
        let same = kernels().into_iter().filter(|other| std::ptr::eq(other.op(), op));
        let types: Vec<_> = same.map(|other| other.element()).collect();
        for of in [DataType::BFloat16, DataType::Half, DataType::Float] {
            assert_eq!(op.types.contains(&of), types.contains(&of), "{}", op.name);
        }
        assert!(op.types.contains(&DataType::Float), "{}", op.name);
    }
    let all: Vec<_> = ops::BLOCK.iter().map(|op| (op.name, op.is_stock)).collect();
    let want = [
        ("GRUBlockCell", true),
        ("GRUBlockCellGrad", true),
        ("LSTMBlockCell", true),
        ("LSTMBlockCellGrad", true),
        ("BlockLSTM", true),
        ("BlockLSTMV2", true),
        ("BlockLSTMGrad", true),
        ("BlockLSTMGradV2", true),
        ("BlockGRU", false),
        ("BlockGRUGrad", false),
        ("BlockcellLSTM", false),
        ("BlockcellLSTMGrad", false),
    ];
    assert_eq!(all, want);
    for op in ops::all() {
        assert!(std::ptr::eq(Op::by_name(op.name).expect("its own name"), op));
    }
    assert!(Op::by_name("GRUBlockCell2").is_none());
}

/// What the tests below vary must be right to begin with, and every operation must be there.
#[test]
fn right_shapes_pass() {
    for op in ops::BLOCK {
        assert!(kernels().iter().any(|kernel| kernel.op().name == op.name), "{}", op.name);
    }
    for kernel in kernels() {
        for sizes in SIZES.into_iter().chain([Sizes::new(0, 0, 0, 0), Sizes::new(3, 1 << 40, 7, 2)])
        {
            let got = check(&*kernel, &kernel.input_shapes(sizes)).expect("right shapes");
            assert_eq!(got.time, if kernel.is_sequence() { sizes.time } else { 0 });
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
        for sizes in SIZES {
            let right = kernel.input_shapes(sizes);
            for (n, tensor) in kernel.op().inputs.iter().enumerate() {
                let shape = &right[n];
                let wrong = [
                    vec![],
                    shape.iter().skip(1).copied().collect(),
                    shape.iter().rev().skip(1).rev().copied().collect(),
                    [&shape[..], &[1]].concat(),
                    [&[1], &shape[..]].concat(),
                    [&shape[..], &[0, 2]].concat(),
                ];
                for wrong in wrong.into_iter().filter(|wrong| wrong.len() != shape.len()) {
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
        for sizes in SIZES {
            for (n, dim, shapes) in wrong_dimensions(&kernel.input_shapes(sizes)) {
                let name = op.inputs[n].name;
                let case = format!("{}, {sizes:?}, {name} {:?}", kernel.name(), shapes[n]);
                let checked = check(&*kernel, &shapes);
                let mut outputs = filled(&kernel.output_shapes(sizes), 7.0);
                let before = outputs.clone();
                let context = Context::default();
                let ran = kernel.call(&context, &filled(&shapes, 0.5), &mut outputs);
                if let Some(blamed) = blamed(&*kernel, n, dim) {
                    let (tensor, got) = (op.inputs[blamed].name, &shapes[blamed]);
                    failures.note(&case, is_shape_error(checked, op, tensor, got));
                    failures.note(&case, is_shape_error(ran, op, tensor, got));
                    failures.note(&case, kernel.compare(&outputs, &before, same_bits));
                    continue;
                }
                // No other input has the size. Then it is an output that does not fit, or all does.
                failures.check(&case, checked.is_ok(), "not accepted");
                let symbol = kernel.input_rows()[n].dims[dim];
                match kernel.output_rows().iter().position(|row| row.dims.contains(&symbol)) {
                    Some(at) => {
                        let (tensor, got) = (op.outputs[at].name, before[at].shape());
                        failures.note(&case, is_shape_error(ran, op, tensor, got));
                        failures.note(&case, kernel.compare(&outputs, &before, same_bits));
                    }
                    None => failures.check(&case, ran.is_ok(), format!("{ran:?}")),
                }
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
        for sizes in SIZES {
            let inputs = kernel.inputs(sizes, 1);
            for (n, _, shapes) in wrong_dimensions(&kernel.output_shapes(sizes)) {
                let name = op.outputs[n].name;
                // Without memory it counts as not read.
                let may_miss = [Dim::TimeOrNone, Dim::InputCellOrNone];
                if shapes[n].first() == Some(&0) && may_miss.contains(&op.outputs[n].dims[0]) {
                    continue;
                }
                let case = format!("{}, {sizes:?}, {name} {:?}", kernel.name(), shapes[n]);
                let mut outputs = filled(&shapes, 7.0);
                let before = outputs.clone();
                let ran = kernel.call(&Context::default(), &inputs, &mut outputs);
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
    let lstm: &dyn Kernel = &BlockLstm::<f32>::v2(Attributes::of_floats()[0]);
    let lstm_grad: &dyn Kernel = &BlockLstmGrad::<f32>::v1(true);
    let before: &dyn Kernel = &BlockGru::<f32>::new(false);
    let after: &dyn Kernel = &BlockGruGrad::<f32>::new(true);
    let sizes = Sizes::new(6, 4, 2, 3);
    let cases: [(&dyn Kernel, &str, &[usize], &str); 19] = [
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
        (lstm, "seq_len_max", &[1], "BlockLSTMV2: seq_len_max must have shape [], got [1]"),
        (
            lstm,
            "x",
            &[6, 4],
            "BlockLSTMV2: x must have shape [time, batch, input_size], got [6, 4]",
        ),
        (
            lstm,
            "w",
            &[5, 13],
            "BlockLSTMV2: w must have shape \
             [input_size + cell_size, 4 * cell_size] = [5, 12], got [5, 13]",
        ),
        (
            lstm_grad,
            "o",
            &[7, 4, 3],
            "BlockLSTMGrad: o must have shape [time, batch, cell_size] = [6, 4, 3], got [7, 4, 3]",
        ),
        (
            lstm_grad,
            "cs_grad",
            &[6, 3, 3],
            "BlockLSTMGrad: cs_grad must have shape \
             [time, batch, cell_size] = [6, 4, 3], got [6, 3, 3]",
        ),
        (
            before,
            "x",
            &[6, 5, 2],
            "BlockGRU: x must have shape [time, batch, input_size] = [?, 4, ?], got [6, 5, 2]",
        ),
        (before, "b_hc", &[3, 1], "BlockGRU: b_hc must have shape [any length], got [3, 1]"),
        (after, "b_hc", &[4], "BlockGRUGrad: b_hc must have shape [cell_size] = [3], got [4]"),
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
    let ran = gru.call(&Context::default(), &gru.inputs(sizes, 1), &mut outputs);
    let message = ran.expect_err("a wrong output").to_string();
    assert_eq!(message, "GRUBlockCellGrad: d_r_bar_u_bar must have shape [4, 6], got [4, 5]");
}

#[test]
fn a_wrong_number_of_tensors_is_an_error() {
    for kernel in kernels() {
        let op = kernel.op();
        let sizes = Sizes::new(3, 2, 3, 4);
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
    let sizes = Sizes::new(3, 2, 3, 4);
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
            let got = kernel.call(&Context::default(), &inputs, &mut outputs);
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
