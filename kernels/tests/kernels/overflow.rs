//! Sizes that do not fit in memory addresses, whatever they are multiplied with.

use crate::common::compare::Failures;
use crate::common::data::Sizes;
use crate::common::kernels::{
    Attributes, BlockGru, BlockLstm, BlockLstmGrad, GruBlockCell, GruBlockCellGrad, Kernel,
    LstmBlockCellGrad, kernels,
};
use crate::errors::check;
use blockcell_kernels::mat_mul::{
    AddNInputs, AddNOutputs, BiasInputs, BiasOutputs, add_n, bias_add_grad_add_n,
};
use blockcell_kernels::ops::Lists;
use blockcell_kernels::unfused::{Loop, gru_layer_shapes, lstm_cell_shapes};
use blockcell_kernels::{Context, Error, block_gru, block_lstm, gru, ops};
use ndarray::{Array1, Array2};

#[test]
fn sizes_that_overflow_are_errors() {
    const HALF: usize = usize::MAX / 2;
    let gru: &dyn Kernel = &GruBlockCellGrad;
    let gru_forward: &dyn Kernel = &GruBlockCell;
    let lstm: &dyn Kernel = &LstmBlockCellGrad::<f32>::new(true);
    let block_lstm: &dyn Kernel = &BlockLstm::<f32>::v1(Attributes::of_floats()[0]);
    let block_lstm_grad: &dyn Kernel = &BlockLstmGrad::<f32>::v2(true);
    let block_gru: &dyn Kernel = &BlockGru::<f32>::new(false);
    // Consistent sizes, and the tensor whose size in bytes is the first not to fit.
    let cases: [(&dyn Kernel, [usize; 4], &str); 18] = [
        (gru, [1, 1 << 61, 1, 0], "x"),
        (gru, [1, 1 << 40, 1 << 40, 0], "x"),
        (gru, [1, 1 << 57, 1, 16], "h_prev"),
        (gru, [1, HALF, 1, 1], "x"),
        (gru, [1, 1, 1 << 59, 4], "w_ru"),
        (gru, [1, 0, 0, 1 << 31], "w_ru"),
        (gru, [1, 1 << 60, 0, 1], "d_r_bar_u_bar"),
        (gru_forward, [1, 1 << 57, 1, 16], "h_prev"),
        (gru_forward, [1, 0, 0, 1 << 31], "w_ru"),
        (lstm, [1, 1 << 60, 0, 1], "dicfo"),
        (lstm, [1, 1 << 58, 2, 2], "dicfo"),
        (lstm, [1, 0, 0, 1 << 30], "w"),
        (block_lstm, [1 << 61, 0, 3, 4], "x"),
        (block_lstm, [1 << 30, 1 << 31, 1, 1], "x"),
        (block_lstm, [1 << 30, 1 << 30, 1, 2], "i"),
        (block_lstm, [HALF, 0, 0, 1], "x"),
        (block_lstm_grad, [1 << 30, 1 << 30, 1, 2], "i"),
        (block_gru, [1, 1 << 60, 0, 0], "sequence_length"),
    ];
    let mut failures = Failures::default();
    for (kernel, [time, batch, input_size, cell_size], tensor) in cases {
        let sizes = Sizes { time, batch, input_size, cell_size };
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
                    let mut shapes = kernel.input_shapes(Sizes::new(3, 2, 3, 4));
                    shapes[n][dim] = huge;
                    let name = kernel.op().inputs[n].name;
                    let case = format!("{}, {name}, {huge}", kernel.name());
                    failures.check(case, check(&*kernel, &shapes).is_err(), "no error");
                }
            }
            for (input_size, cell_size) in [(huge, 1), (1, huge), (huge, huge)] {
                let mut shapes = kernel.input_shapes(Sizes::new(1, 0, 1, 1));
                for (shape, row) in shapes.iter_mut().zip(kernel.input_rows()) {
                    for (size, dim) in shape.iter_mut().zip(row.dims) {
                        match dim {
                            "D" => *size = input_size,
                            "C" => *size = cell_size,
                            _ => {}
                        }
                    }
                }
                let result = check(&*kernel, &shapes);
                failures.check(kernel.name(), result.is_err(), format!("{shapes:?}"));
            }
        }
    }
    failures.finish();
}

/// The scratch memory of such sizes is as much as can be counted, and counting it does not overflow.
#[test]
fn scratch_of_sizes_that_overflow_saturates() {
    let values = [0, 1, 1 << 31, usize::MAX / 2 + 1, usize::MAX];
    let pairs = || values.iter().flat_map(|&a| values.iter().map(move |&b| (a, b)));
    for ((batch, input_size), cell_size) in pairs().flat_map(|pair| values.map(|c| (pair, c))) {
        let sizes = ops::Sizes { time: cell_size, batch, input_size, cell_size, optional: [0; 3] };
        let lengths = [
            gru::block_cell_scratch(&sizes),
            block_lstm::forward_scratch(&sizes),
            block_lstm::grad_scratch(&sizes, false),
            block_lstm::grad_scratch(&sizes, true),
            block_gru::forward_scratch(&sizes),
            block_gru::grad_scratch(&sizes, false),
            block_gru::grad_scratch(&sizes, true),
        ];
        if batch == usize::MAX && cell_size > 0 {
            assert_eq!(lengths, [usize::MAX; 7], "{sizes:?}");
        }
    }
}

/// The shapes of plain cells are checked while a graph is built, when nobody has made the tensors.
#[test]
fn dimensions_of_plain_cells_that_overflow_are_errors() {
    let known = |dims: &[usize]| Some(dims.iter().copied().map(Some).collect::<Vec<_>>());
    for huge in [usize::MAX, usize::MAX / 2 + 1] {
        let fixed = [[1, huge], [1, huge]].map(|dims| known(&dims));
        let [x, h_prev] = fixed.clone();
        let fixed = [x, h_prev, known(&[3, 4]), known(&[4])];
        let cell = &ops::UNFUSED_LSTM_CELL;
        let shapes = Lists::new(cell, &[1, 1, 1, 1, 0, 0, 0], &[1; 7], &fixed);
        assert!(lstm_cell_shapes(false, &shapes).is_err(), "{huge}");
        let (x, h_prev) = (known(&[1, 1, huge]), known(&[1, huge]));
        let weights = [known(&[3, 4]), known(&[3, 2]), known(&[4]), known(&[2])];
        let fixed = [vec![known(&[]), known(&[]), x, h_prev], weights.to_vec()].concat();
        let lengths = [1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 0];
        let shapes = Lists::new(&ops::GRU_LAYER, &lengths, &[1; 2], &fixed);
        let kind = Loop { needs_h: false, ..Loop::default() };
        assert!(gru_layer_shapes(&kind, None, &shapes).is_err(), "{huge}");
    }
}

/// Matrices without columns have no elements, and together more rows than can be counted.
#[test]
fn rows_of_products_that_overflow_are_no_work() {
    const MANY: usize = 1 << 62;
    let (context, tall) = (Context::default(), Array2::<f32>::zeros((MANY, 0)));
    let tall = vec![tall.view(); 5];
    let mut sum = Array1::zeros(0);
    let inputs = BiasInputs { addends: Vec::new(), out_backprop: tall.clone() };
    let outputs = BiasOutputs { sum: sum.view_mut() };
    assert_eq!(bias_add_grad_add_n(&context, inputs, outputs), Ok(()));
    let mut sum = Array2::zeros((0, 0));
    let inputs = AddNInputs { addends: Vec::new(), a: tall.clone(), b: tall };
    let outputs = AddNOutputs { sum: sum.view_mut() };
    assert_eq!(add_n(&context, inputs, false, outputs), Ok(()));
}
