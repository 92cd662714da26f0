//! The steps of plain cells against sums in float64 that broadcast.

use blockcell_kernels::lstm::Attributes;
use blockcell_kernels::unfused::{
    GateColumns, LstmCellGradAttributes, LstmCellGradInputs, LstmCellGradOutputs, LstmCellInputs,
    LstmCellOutputs, lstm_cell, lstm_cell_grad, lstm_cell_grad_scratch, lstm_cell_scratch,
};
use blockcell_kernels::{Activations, Context, Error};
use ndarray::{
    Array, Array1, Array2, ArrayD, ArrayView2, Axis, IxDyn, RemoveAxis, Slice, concatenate,
};

use super::unfused_numbers::{assert_close, matrix, numbers, summed, wide};
use crate::common::executors::contexts;

const SIZES: [[usize; 4]; 8] = [
    [1, 1, 1, 1],
    [3, 5, 7, 7],
    [2, 3, 16, 4],
    [4, 2, 17, 17],
    [0, 3, 4, 4],
    [5, 0, 8, 8],
    [3, 4, 0, 2],
    [9, 6, 33, 15],
];

/// The largest error.
const TOLERANCE: f64 = 3e-6;

fn logistic(value: f64) -> f64 {
    1.0 / (1.0 + (-value).exp())
}

/// Orders of gates.
pub(crate) const ORDERS: [[i64; 4]; 4] = [[0, 1, 2, 3], [0, 3, 1, 2], [0, 2, 1, 3], [1, 3, 0, 2]];

pub(crate) fn columns(order: [i64; 4]) -> GateColumns {
    GateColumns::new("op", &order).expect("each once")
}

/// A tensor whose last axis has the gates in the order of `LSTMBlockCell`, in another one.
pub(crate) fn in_order<T: Clone, D: RemoveAxis>(
    tensor: &Array<T, D>,
    order: [i64; 4],
) -> Array<T, D> {
    let axis = Axis(tensor.ndim() - 1);
    let cells = tensor.len_of(axis) / 4;
    let mut moved = tensor.clone();
    for (gate, place) in order.into_iter().enumerate() {
        let columns = |first: usize| Slice::from(first * cells..(first + 1) * cells);
        let part = tensor.slice_axis(axis, columns(gate));
        moved.slice_axis_mut(axis, columns(place as usize)).assign(&part);
    }
    moved
}

/// A call: `[i, cs, f, o, ci, co, h]`.
fn call(
    context: &Context<'_>,
    attributes: (&Attributes, GateColumns, Activations),
    [x, h_prev, w]: [ArrayView2<'_, f32>; 3],
    b: &Array1<f32>,
    cs_prev: Option<&ArrayD<f32>>,
    peepholes: &[Array1<f32>],
    state: &[usize],
) -> Result<[ArrayD<f32>; 7], Error> {
    let rows = x.nrows();
    call_with(context, attributes, [x, h_prev, w], (b, rows), cs_prev, peepholes, state, None)
}

/// The same with so many rows, and perhaps with weights of `h_prev`, and whether a row of one stands for all.
#[allow(clippy::too_many_arguments)]
fn call_with(
    context: &Context<'_>,
    attributes: (&Attributes, GateColumns, Activations),
    [x, h_prev, w]: [ArrayView2<'_, f32>; 3],
    (b, rows): (&Array1<f32>, usize),
    cs_prev: Option<&ArrayD<f32>>,
    peepholes: &[Array1<f32>],
    state: &[usize],
    w_h: Option<(ArrayView2<'_, f32>, bool)>,
) -> Result<[ArrayD<f32>; 7], Error> {
    let gate = [rows, b.len() / 4];
    let nan = |shape: &[usize]| ArrayD::from_elem(IxDyn(shape), f32::NAN);
    let of_gates = if peepholes.is_empty() { &gate[..] } else { state };
    let mut gates = [(); 3].map(|()| nan(of_gates));
    let mut new = Array2::from_elem(gate, f32::NAN);
    let mut states = [(); 3].map(|()| nan(state));
    let cs_shape = cs_prev.map(|cs_prev| cs_prev.shape());
    let needed = lstm_cell_scratch([x.dim(), h_prev.dim()], gate[1], cs_shape);
    let mut scratch = vec![f32::NAN; needed];
    let [i, f, o] = gates.each_mut().map(|gate| gate.view_mut());
    let [cs, co, h] = states.each_mut().map(|state| state.view_mut());
    let inputs = LstmCellInputs {
        x,
        h_prev,
        w,
        b: b.view(),
        cs_prev: cs_prev.map(|cs_prev| cs_prev.view()),
        peepholes: peepholes.iter().map(|one| one.view()).collect(),
        w_h: w_h.map(|(w_h, _)| w_h),
    };
    let outputs = LstmCellOutputs { i, cs, f, o, ci: new.view_mut(), co, h };
    let broadcasts_rows = w_h.is_some_and(|(_, broadcasts_rows)| broadcasts_rows);
    lstm_cell(context, attributes, broadcasts_rows, inputs, outputs, &mut scratch)?;
    let ([i, f, o], [cs, co, h]) = (gates, states);
    Ok([i, cs, f, o, new.into_dyn(), co, h])
}

fn check_forward([batch, input, cell, output]: [usize; 4], cs_prev: Option<&[usize]>, clip: f32) {
    let attributes = Attributes { use_peephole: false, forget_bias: 0.7, cell_clip: clip };
    let (x, h) = (matrix(1, batch, input), matrix(2, batch, output));
    let w = matrix(3, input + output, 4 * cell);
    let b: Array1<f32> = matrix(4, 1, 4 * cell).remove_axis(Axis(0));
    let cs_prev = cs_prev.map(|shape| numbers(5, shape));
    let z = concatenate![Axis(1), x, h].mapv(f64::from).dot(&w.mapv(f64::from)) + b.mapv(f64::from);
    let gate = |number: usize| {
        z.slice_axis(Axis(1), (number * cell..(number + 1) * cell).into()).to_owned().into_dyn()
    };
    let (i, ci) = (gate(0).mapv(logistic), gate(1).mapv(f64::tanh));
    let (f, o) =
        (gate(2).mapv(|value| logistic(value + f64::from(0.7f32))), gate(3).mapv(logistic));
    let kept = cs_prev.as_ref().map_or(&f * 0.0, |cs_prev| &f * &wide(cs_prev));
    let clip = if clip > 0.0 { f64::from(clip) } else { f64::INFINITY };
    let cs = (kept + &i * &ci).mapv(|value| value.clamp(-clip, clip));
    let co = cs.mapv(f64::tanh);
    let h_new = &co * &o;
    let want = [i, cs, f, o, ci, co, h_new];
    let names = ["i", "cs", "f", "o", "ci", "co", "h"];
    for context in contexts() {
        for order in ORDERS {
            let (w, b) = (in_order(&w, order), in_order(&b, order));
            let views = [x.view(), h.view(), w.view()];
            let call_of = (&attributes, columns(order), Activations::default());
            let got = call(&context, call_of, views, &b, cs_prev.as_ref(), &[], want[1].shape());
            let got = got.expect("the shapes are right");
            for ((got, want), name) in got.iter().zip(&want).zip(names) {
                assert_close(got, want, TOLERANCE, name);
            }
        }
    }
}

#[test]
pub(crate) fn a_state_broadcasts_or_is_left_out() {
    for sizes in SIZES {
        let [batch, _, cell, _] = sizes;
        for clip in [-1.0, 0.3] {
            check_forward(sizes, None, clip);
            for shape in
                [&[batch, cell][..], &[1, cell], &[cell], &[batch, 1], &[], &[2, batch, cell]]
            {
                check_forward(sizes, Some(shape), clip);
            }
        }
    }
    check_forward([1, 3, 4, 4], Some(&[6, 4]), -1.0);
}

/// One row of x or of h_prev may stand for all, where each has weights of its own.
#[test]
fn the_state_may_have_weights_of_its_own() {
    let attributes = Attributes { use_peephole: false, forget_bias: 0.7, cell_clip: 0.3 };
    for (seed, [batch, input, cell, output]) in (0..).zip(SIZES) {
        let (x, h) = (matrix(seed, batch, input), matrix(seed + 1, batch, output));
        let w = matrix(3, input + output, 4 * cell);
        let b: Array1<f32> = matrix(4, 1, 4 * cell).remove_axis(Axis(0));
        let (w_x, w_h) = w.view().split_at(Axis(0), input);
        for cs_prev in [None, Some(&[batch, cell][..]), Some(&[1, cell])] {
            let cs_prev = cs_prev.map(|shape| numbers(5, shape));
            let cs_prev = cs_prev.as_ref();
            for context in contexts() {
                for order in ORDERS {
                    let call_of = (&attributes, columns(order), Activations::default());
                    let state = &[batch, cell];
                    let one = |x: &Array2<f32>, h: &Array2<f32>| {
                        let views = [x.view(), h.view(), w.view()];
                        call(&context, call_of, views, &b, cs_prev, &[], state).expect("right")
                    };
                    let two = |x: ArrayView2<'_, f32>, h: ArrayView2<'_, f32>, all: bool| {
                        let w_h = Some((w_h, all));
                        let views = [x, h, w_x];
                        call_with(&context, call_of, views, (&b, batch), cs_prev, &[], state, w_h)
                    };
                    assert_eq!(two(x.view(), h.view(), false).expect("right"), one(&x, &h));
                    if batch < 2 {
                        continue;
                    }
                    let row =
                        |matrix: &Array2<f32>| matrix.slice_axis(Axis(0), (..1).into()).to_owned();
                    let all = |row: &Array2<f32>| {
                        row.broadcast((batch, row.ncols())).expect("a row").to_owned()
                    };
                    let (one_x, one_h) = (row(&x), row(&h));
                    let got = two(one_x.view(), h.view(), true).expect("a row stands for all");
                    assert_eq!(got, one(&all(&one_x), &h));
                    let got = two(x.view(), one_h.view(), true).expect("a row stands for all");
                    assert_eq!(got, one(&x, &all(&one_h)));
                    two(x.view(), one_h.view(), false).expect_err("it does not");
                }
            }
        }
    }
}

#[test]
fn peepholes_are_those_of_the_block_cell() {
    let (x, c, h) = (matrix(1, 3, 5), matrix(2, 3, 7), matrix(3, 3, 7));
    let w = matrix(4, 12, 28);
    let b: Array1<f32> = matrix(5, 1, 28).remove_axis(Axis(0));
    let peepholes = [6, 7, 8].map(|seed| matrix(seed, 1, 7).remove_axis(Axis(0)));
    let attributes = Attributes { use_peephole: true, forget_bias: 1.0, cell_clip: 0.5 };
    let views = [x.view(), h.view(), w.view()];
    let c = c.into_dyn();
    let context = Context::default();
    let got = call(
        &context,
        (&attributes, GateColumns::default(), Activations::default()),
        views,
        &b,
        Some(&c),
        &peepholes,
        &[3, 7],
    );
    let got = got.expect("right");
    let mut outputs = [(); 7].map(|()| Array2::<f32>::zeros((3, 7)));
    let [i, cs, f, o, ci, co, h_new] = outputs.each_mut().map(|output| output.view_mut());
    let [wci, wcf, wco] = peepholes.each_ref().map(|weights| weights.view());
    let cs_prev = c.view().into_dimensionality().expect("a matrix");
    let inputs = blockcell_kernels::lstm::BlockCellInputs {
        x: x.view(),
        cs_prev,
        h_prev: h.view(),
        w: w.view(),
        wci,
        wcf,
        wco,
        b: b.view(),
    };
    let block = blockcell_kernels::lstm::BlockCellOutputs { i, cs, f, o, ci, co, h: h_new };
    blockcell_kernels::lstm::block_cell(&context, &attributes, inputs, block).expect("right");
    for (got, want) in got.iter().zip(outputs) {
        assert_eq!(*got, want.into_dyn());
    }
}

/// It is what a step with all peepholes computes from a state of zeros, but that weights of the other gates do not matter.
#[test]
fn without_a_state_the_output_gate_may_have_the_only_peephole() {
    for rows in [0, 1, 3] {
        let (x, h, w) = (matrix(1, rows, 5), matrix(3, rows, 7), matrix(4, 12, 28));
        let b: Array1<f32> = matrix(5, 1, 28).remove_axis(Axis(0));
        let mut weights = [0, 0, 8].map(|seed| matrix(seed, 1, 7).remove_axis(Axis(0)));
        weights[..2].iter_mut().for_each(|one| one.fill(0.0));
        let attributes = Attributes { use_peephole: false, forget_bias: 1.0, cell_clip: 0.5 };
        let state = ArrayD::zeros(IxDyn(&[rows, 7]));
        let call = |c: Option<&ArrayD<f32>>, weights: &[Array1<f32>]| {
            let views = [x.view(), h.view(), w.view()];
            call(
                &Context::default(),
                (&attributes, GateColumns::default(), Activations::default()),
                views,
                &b,
                c,
                weights,
                &[rows, 7],
            )
        };
        let want = call(Some(&state), &weights).expect("all of them");
        assert_eq!(call(None, &weights[2..]).expect("one"), want);
        assert_eq!(call(None, &weights).expect("all of them"), want);
        weights[2].fill(f32::NAN);
        let [i, cs, f, o, ..] = call(None, &weights[2..]).expect("one");
        assert_eq!([&i, &cs, &f], [&want[0], &want[1], &want[2]]);
        assert!(o.iter().all(|value| value.is_nan()));
        for (c, count) in [(Some(&state), 1), (Some(&state), 2), (None, 2)] {
            let message = call(c, &weights[..count]).expect_err("too few").to_string();
            assert!(message.starts_with("BlockcellLSTMCell: "), "{message}");
        }
    }
}

#[test]
fn peepholes_look_at_a_state_that_broadcasts() {
    let (x, h, w) = (matrix(1, 3, 5), matrix(3, 3, 7), matrix(4, 12, 28));
    let b: Array1<f32> = matrix(5, 1, 28).remove_axis(Axis(0));
    let peepholes = [6, 7, 8].map(|seed| matrix(seed, 1, 7).remove_axis(Axis(0)));
    let attributes = Attributes { use_peephole: true, forget_bias: 1.0, cell_clip: 0.5 };
    let call = |c: &ArrayD<f32>| {
        let views = [x.view(), h.view(), w.view()];
        call(
            &Context::default(),
            (&attributes, GateColumns::default(), Activations::default()),
            views,
            &b,
            Some(c),
            &peepholes,
            &[3, 7],
        )
    };
    for shape in [&[1, 7][..], &[7], &[3, 1], &[]] {
        let c = numbers(2, shape);
        let whole = c.broadcast(IxDyn(&[3, 7])).expect("it does").to_owned();
        assert_eq!(call(&c).expect("right"), call(&whole).expect("right"));
    }
    let message = call(&numbers(2, &[2, 7])).expect_err("two rows for three").to_string();
    assert!(message.starts_with("BlockcellLSTMCell: cs_prev must have"), "{message}");
}

/// One row of x and h_prev may meet many rows of states. It is as if these had as many rows, but that ci has not.
#[test]
fn peepholes_look_at_a_state_that_is_larger() {
    let peepholes = [6, 7, 8].map(|seed| matrix(seed, 1, 7).remove_axis(Axis(0)));
    let (w, b) = (matrix(4, 12, 28), matrix(5, 1, 28).remove_axis(Axis(0)));
    for (rows, shape) in [(1, &[4, 7][..]), (1, &[0, 7]), (3, &[2, 3, 7]), (1, &[2, 3, 7])] {
        let (x, h) = (matrix(1, rows, 5), matrix(3, rows, 7));
        let c = numbers(2, shape);
        let all = c.len() / 7;
        let spread = |matrix: &Array2<f32>| -> Array2<f32> {
            let shape = [&shape[..shape.len() - 1], &[matrix.ncols()]].concat();
            let whole = matrix.broadcast(IxDyn(&shape)).expect("it does").to_owned();
            whole.into_shape_with_order((all, matrix.ncols())).expect("as many")
        };
        let rows_of_c = c.clone().into_shape_with_order(IxDyn(&[all, 7])).expect("as many");
        for (clip, context) in
            [-1.0, 0.3].into_iter().flat_map(|clip| contexts().map(move |one| (clip, one)))
        {
            let attributes = Attributes { use_peephole: true, forget_bias: 0.7, cell_clip: clip };
            let run = |x: &Array2<f32>, h: &Array2<f32>, c: &ArrayD<f32>| {
                let views = [x.view(), h.view(), w.view()];
                let call_of = (&attributes, columns([0, 2, 1, 3]), Activations::default());
                call(&context, call_of, views, &b, Some(c), &peepholes, c.shape()).expect("right")
            };
            let got = run(&x, &h, &c);
            let want = run(&spread(&x), &spread(&h), &rows_of_c);
            for (number, (got, want)) in got.into_iter().zip(want).enumerate() {
                let is_new = number == 4;
                let got = match is_new {
                    true => spread(&got.into_dimensionality().expect("a matrix")).into_dyn(),
                    false => got.into_shape_with_order(want.raw_dim()).expect("as many"),
                };
                assert_close(&got, &wide(&want), TOLERANCE, "an output");
            }
        }
    }
}

#[test]
fn other_shapes_are_refused() {
    let attributes = Attributes { use_peephole: false, forget_bias: 1.0, cell_clip: -1.0 };
    let (x, h, w) = (matrix(1, 3, 5), matrix(2, 3, 7), matrix(3, 12, 28));
    let b = Array1::zeros(28);
    let c = numbers(4, &[2, 7]);
    let context = &Context::default();
    let views = [x.view(), h.view(), w.view()];
    let refused = call(
        context,
        (&attributes, GateColumns::default(), Activations::default()),
        views,
        &b,
        Some(&c),
        &[],
        &[3, 7],
    );
    let message = refused.expect_err("two rows for three").to_string();
    assert!(message.starts_with("BlockcellLSTMCell: cs_prev must have shape"), "{message}");
    let fewer = matrix(2, 2, 7);
    let views = [x.view(), fewer.view(), w.view()];
    let refused = call(
        context,
        (&attributes, GateColumns::default(), Activations::default()),
        views,
        &b,
        None,
        &[],
        &[3, 7],
    );
    let message = refused.expect_err("two rows for three").to_string();
    assert!(message.starts_with("BlockcellLSTMCell: h_prev must have shape"), "{message}");
}

/// The gradient of a state before it was clipped: none where it was.
fn unclipped(mut gradient: ArrayD<f64>, state: &ArrayD<f64>, clip: f32) -> ArrayD<f64> {
    let passes = |state: f64| clip <= 0.0 || state.abs() <= f64::from(clip);
    gradient.zip_mut_with(state, |gradient, &state| *gradient *= f64::from(passes(state)));
    gradient
}

fn attributes(sums_to_gates: bool, cell_clip: f32) -> LstmCellGradAttributes {
    let (columns, activations) = (GateColumns::default(), Activations::default());
    let [sums_to_cs_prev, sums_to_product] = [false; 2];
    LstmCellGradAttributes {
        sums_to_gates,
        sums_to_cs_prev,
        sums_to_product,
        cell_clip,
        columns,
        activations,
    }
}

fn check_backward(
    size: [usize; 2],
    state: &[usize],
    cs_prev: Option<&[usize]>,
    cs_grad: &[&[usize]],
    h_grad: &[&[usize]],
    clip: f32,
) {
    let gates = [1, 2, 3, 4].map(|seed| matrix(seed, size[0], size[1]));
    let co = numbers(5, state);
    let cs_prev = cs_prev.map(|shape| numbers(6, shape));
    let list = |first: u32, shapes: &[&[usize]]| -> Vec<_> {
        shapes.iter().enumerate().map(|(k, shape)| numbers(first + k as u32, shape)).collect()
    };
    let (cs_grad, h_grad) = (list(10, cs_grad), list(20, h_grad));
    let zeros = ArrayD::<f64>::zeros(IxDyn(state));
    let sum = |list: &[ArrayD<f32>]| list.iter().fold(zeros.clone(), |sum, one| sum + wide(one));
    let (dcs, dh) = (sum(&cs_grad), sum(&h_grad));
    let [i, f, o, ci] = gates.each_ref().map(|one| wide(&one.clone().into_dyn()));
    let co_wide = wide(&co);
    let slope = |gate: &ArrayD<f64>| gate.mapv(|value| value * (1.0 - value));
    let tanh_slope = |value: &ArrayD<f64>| value.mapv(|value| 1.0 - value * value);
    let d_o = summed(&(&dh * &co_wide), &size) * slope(&o);
    let dcs = dcs + &dh * &o * tanh_slope(&co_wide);
    let c = cs_prev.as_ref().map_or(zeros.clone(), |cs_prev| &zeros + &wide(cs_prev));
    let dcs = unclipped(dcs, &(&zeros + &(&i * &ci) + &f * &c), clip);
    let (new, kept) = (summed(&dcs, &size), summed(&(&dcs * &c), &size));
    let parts = [&new * &ci * slope(&i), &new * &i * tanh_slope(&ci), kept * slope(&f), d_o];
    let dicfo = concatenate(Axis(1), &parts.each_ref().map(|part| part.view())).expect("equal");
    let shapes =
        |list: &[ArrayD<f32>]| list.iter().map(|one| one.shape().to_vec()).collect::<Vec<_>>();
    let lists = [shapes(cs_prev.as_slice()), shapes(&cs_grad), shapes(&h_grad)];
    let lists = lists.each_ref().map(|list| list.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let lists = lists.each_ref().map(Vec::as_slice);
    let with_orders = |context| ORDERS.map(|order| (context, order));
    for (context, order) in contexts().flat_map(with_orders) {
        let mut cs_prev_grad = ArrayD::from_elem(state, f32::NAN);
        let mut got = Array2::from_elem([size[0], 4 * size[1]], f32::NAN);
        let inputs = LstmCellGradInputs {
            i: gates[0].view().into_dyn(),
            f: gates[1].view().into_dyn(),
            o: gates[2].view().into_dyn(),
            ci: gates[3].view(),
            co: co.view(),
            cs_prev: cs_prev.as_ref().map(|cs_prev| cs_prev.view()),
            cs_grad: cs_grad.iter().map(|one| one.view()).collect(),
            h_grad: h_grad.iter().map(|one| one.view()).collect(),
            peepholes: Vec::new(),
            cs: None,
        };
        let outputs = LstmCellGradOutputs {
            cs_prev_grad: cs_prev_grad.view_mut(),
            dicfo: got.view_mut(),
            through_peepholes: Vec::new(),
            peephole_grads: Vec::new(),
        };
        let mut scratch =
            vec![f32::NAN; lstm_cell_grad_scratch((size[0], size[1]), state, lists, 0)];
        let attributes = attributes(*state != size, clip);
        let attributes = LstmCellGradAttributes { columns: columns(order), ..attributes };
        lstm_cell_grad(&context, &attributes, inputs, outputs, &mut scratch).expect("right shapes");
        assert_close(&got.into_dyn(), &in_order(&dicfo, order), TOLERANCE, "dicfo");
        assert_close(&cs_prev_grad, &(&dcs * &f), TOLERANCE, "cs_prev_grad");
    }
}

#[test]
pub(crate) fn a_state_larger_than_the_gates_is_added_up() {
    for (size, state) in [
        ([1, 4], &[5, 4][..]),
        ([3, 1], &[3, 6]),
        ([1, 1], &[2, 3]),
        ([3, 4], &[2, 3, 4]),
        ([1, 4], &[2, 3, 4]),
        ([1, 0], &[3, 0]),
        ([0, 4], &[2, 0, 4]),
        ([1, 4], &[0, 4]),
    ] {
        for cs_grad in [&[][..], &[state]] {
            for clip in [-1.0, 0.3] {
                check_backward(size, state, Some(state), cs_grad, &[state], clip);
            }
        }
    }
}

#[test]
fn an_order_has_each_gate_once() {
    for order in
        [&[][..], &[0, 1, 2], &[0, 1, 2, 3, 4], &[0, 1, 1, 3], &[0, 1, 2, 4], &[-1, 0, 1, 2]]
    {
        let refused = GateColumns::new("op", order).expect_err("no order").to_string();
        let got = format!("{order:?}");
        assert_eq!(
            refused,
            format!("op: gate_order must have each of 0, 1, 2 and 3 once, got {got}")
        );
    }
}

/// Without a word that sums are wanted, it is an error, as it is one of `SigmoidGrad`.
#[test]
fn other_states_are_refused_in_the_backward_step() {
    let (gate, state) = (matrix(1, 1, 4), numbers(2, &[3, 4]));
    let [i, f, o] = [(); 3].map(|()| gate.view().into_dyn());
    let inputs = LstmCellGradInputs {
        i,
        f,
        o,
        ci: gate.view(),
        co: state.view(),
        cs_prev: Some(state.view()),
        cs_grad: Vec::new(),
        h_grad: vec![state.view()],
        peepholes: Vec::new(),
        cs: None,
    };
    let (mut cs_prev_grad, mut dicfo) = (numbers(3, &[3, 4]), matrix(3, 1, 16));
    let outputs = LstmCellGradOutputs {
        cs_prev_grad: cs_prev_grad.view_mut(),
        dicfo: dicfo.view_mut(),
        through_peepholes: Vec::new(),
        peephole_grads: Vec::new(),
    };
    let refused =
        lstm_cell_grad(&Context::default(), &attributes(false, -1.0), inputs, outputs, &mut []);
    let message = refused.expect_err("three rows for one").to_string();
    assert!(message.starts_with("BlockcellLSTMCellGrad: co must have shape"), "{message}");
}

#[test]
pub(crate) fn gradients_are_lists_of_summands() {
    for size in [[1, 1], [3, 7], [2, 16], [5, 17], [0, 4], [3, 0], [1, 33]] {
        let whole = &size[..];
        let row = &[1, size[1]][..];
        for cs_prev in [None, Some(whole), Some(row), Some(&[][..])] {
            for cs_grad in [&[][..], &[whole], &[row], &[whole, whole, row]] {
                for h_grad in [&[][..], &[whole], &[row], &[whole, whole]] {
                    for clip in [-1.0, 0.3] {
                        check_backward(size, whole, cs_prev, cs_grad, h_grad, clip);
                    }
                }
            }
        }
    }
}
