//! What the operations on loops refuse. `Call::run` sees that nothing is written then.

use blockcell_kernels::ops::{GRU_LAYER, LSTM_LAYER, Lists, PartialShape};
use blockcell_kernels::unfused::{Loop, gru_layer_shapes, lstm_layer_shapes};
use blockcell_kernels::{Context, Error};
use ndarray::{ArrayD, IxDyn, ShapeBuilder};

use super::call::{Call, Cell, any_loop};
use crate::common::Tensors;
use crate::common::data::Sizes;
use crate::common::kernels::Attributes;

const SIZES: Sizes = Sizes::new(4, 3, 5, 7);
const PLAIN: Attributes = Attributes { use_peephole: false, forget_bias: 1.0, cell_clip: 0.0 };
const PEEPHOLE: Attributes = Attributes { use_peephole: true, ..PLAIN };
const CELLS: [Cell; 3] = [Cell::Lstm(PLAIN), Cell::Lstm(PEEPHOLE), Cell::Gru];

fn name(call: &Call) -> &'static str {
    if matches!(call.cell, Cell::Gru) { GRU_LAYER.name } else { LSTM_LAYER.name }
}

/// Valid calls.
fn calls() -> [Call; 3] {
    CELLS.map(|cell| Call::new::<f32>(cell, SIZES, 1))
}

fn run(call: &Call) -> Result<Tensors, Error> {
    call.run::<f32>(&Context::default())
}

fn refused(call: &Call) -> Error {
    run(call).expect_err("it is wrong")
}

/// Panics unless a call is refused for the shape of a tensor, of this name if there is one.
#[track_caller]
fn expect_shape(call: &Call, wanted: Option<&str>) {
    match refused(call) {
        Error::Shape { op, tensor, .. } => {
            assert_eq!(op, name(call));
            assert!(wanted.is_none_or(|wanted| wanted == tensor), "{tensor}, not {wanted:?}");
        }
        other => panic!("{other}"),
    }
}

/// The tensors, one of them with another size along one axis, for all of them.
fn resized(tensors: &Tensors) -> Vec<Tensors> {
    let mut all = Vec::new();
    for (at, tensor) in tensors.iter().enumerate() {
        for axis in 0..tensor.ndim() {
            for change in [-1, 1] {
                let mut shape = tensor.shape().to_vec();
                shape[axis] = shape[axis].wrapping_add_signed(change);
                let mut other = tensors.clone();
                other[at] = ArrayD::zeros(IxDyn(&shape));
                all.push(other);
            }
        }
    }
    all
}

#[test]
fn every_size_is_checked() {
    for call in calls() {
        run(&call).expect("it is right");
        for inputs in resized(&call.inputs) {
            let mut call = Call { inputs, ..call.clone() };
            // Numbers that are not those of x would be another error.
            let time = call.inputs[0].shape()[0] as i32;
            (call.steps.time, call.steps.rounds) = (time, time);
            expect_shape(&call, None);
        }
        for outputs in resized(&call.outputs) {
            expect_shape(&Call { outputs, ..call.clone() }, None);
        }
    }
}

#[test]
fn weights_of_another_cell_are_refused() {
    let [mut call, ..] = calls();
    for columns in [29, 32] {
        call.inputs[3] = ArrayD::zeros(IxDyn(&[12, columns]));
        call.inputs[4] = ArrayD::zeros(IxDyn(&[columns]));
        expect_shape(&call, Some("w"));
    }
}

#[test]
fn weights_of_the_state_are_checked() {
    let [plain, ..] = calls();
    let call = plain.of_two_products(&[]);
    run(&call).expect("it is right");
    // They have as many rows as x and the state have columns.
    for (at, shape, wanted) in [
        (3, &[11, 28][..], "w_h"),
        (3, &[13, 28], "w_h"),
        (3, &[4, 28], "w"),
        (3, &[12, 27], "w"),
        (1, &[2, 7], "h_prev"),
        (0, &[4, 2, 5], "h_prev"),
    ] {
        let mut call = call.clone();
        call.inputs[at] = ArrayD::zeros(IxDyn(shape));
        expect_shape(&call, Some(wanted));
    }
    let message = {
        let mut call = call.clone();
        call.inputs[3] = ArrayD::zeros(IxDyn(&[4, 28]));
        refused(&call).to_string()
    };
    assert!(
        message.contains("w must have shape [input_size, 4 * cell_size] = [5, 28]"),
        "{message}"
    );
}

#[test]
fn states_that_do_not_broadcast_are_refused() {
    let [plain, peephole, _] = calls();
    let mut ending = plain.clone();
    ending.end_rows(4);
    let with = |call: &Call, shape: &[usize]| {
        let mut call = call.clone();
        call.inputs[2] = ArrayD::from_elem(IxDyn(shape), 0.25);
        call
    };
    for shape in [&[2, 7][..], &[3, 2], &[6], &[3], &[1, 3, 7], &[1, 1, 7], &[0, 7], &[3, 0]] {
        for call in [&plain, &peephole, &ending] {
            expect_shape(&with(call, shape), Some("cs_prev"));
        }
    }
    // Rows that end need a state of full size, and so do block cells.
    let mut block = plain.clone();
    block.kind.broadcasts = false;
    run(&block).expect("it has full size");
    for shape in [&[1, 7][..], &[7], &[], &[3, 1]] {
        for call in [&plain, &peephole] {
            let [got, want] = [shape, &[3, 7]].map(|shape| run(&with(call, shape)));
            assert_eq!(got.expect("it broadcasts"), want.expect("it is whole"));
        }
        for call in [&ending, &block] {
            expect_shape(&with(call, shape), Some("cs_prev"));
        }
    }
    let one_row = Call::new::<f32>(Cell::Lstm(PLAIN), Sizes { batch: 1, ..SIZES }, 1);
    expect_shape(&with(&one_row, &[3, 7]), Some("cs_prev"));
}

/// The tensors, each matrix in turn with its columns one after the other.
fn in_columns(tensors: &Tensors) -> Vec<Tensors> {
    let matrices = (0..tensors.len()).filter(|&at| tensors[at].ndim() > 1);
    let change = |at: usize| {
        let mut all = tensors.clone();
        all[at] = ArrayD::zeros(IxDyn(tensors[at].shape()).f());
        all[at].assign(&tensors[at]);
        all
    };
    matrices.map(change).collect()
}

#[test]
fn other_layouts_are_refused() {
    for call in calls() {
        let inputs = in_columns(&call.inputs);
        let outputs = in_columns(&call.outputs);
        let inputs = inputs.into_iter().map(|inputs| Call { inputs, ..call.clone() });
        let outputs = outputs.into_iter().map(|outputs| Call { outputs, ..call.clone() });
        for call in inputs.chain(outputs) {
            let error = refused(&call);
            assert!(matches!(error, Error::Layout { op, .. } if op == name(&call)), "{error}");
        }
    }
}

#[test]
fn numbers_of_steps_are_checked() {
    for call in calls() {
        let expect = |call: &Call, tensor, got: i32| {
            let (op, got) = (name(call), got.into());
            assert_eq!(refused(call), Error::Value { op, tensor, index: None, time: 4, got });
        };
        for rounds in [5, 6, i32::MAX] {
            let mut call = call.clone();
            call.steps.rounds = rounds;
            expect(&call, "rounds", rounds);
        }
        for time in [3, 5, 0, -1, i32::MAX] {
            let mut call = call.clone();
            call.steps.time = time;
            expect(&call, "time", time);
        }
        for rows in [0, 1, 2, 4] {
            let mut call = call.clone();
            call.steps.sequence_length = Some(vec![2; rows]);
            expect_shape(&call, None);
        }
    }
}

#[test]
fn outputs_without_a_round_need_a_known_shape() {
    let unknown = [None, Some(vec![None, Some(7)]), Some(vec![Some(3), None])];
    for mut call in calls() {
        for rounds in [0, -1, i32::MIN] {
            call.steps.rounds = rounds;
            for h in unknown.clone() {
                call.kind = Loop { h, ..Loop::default() };
                assert_eq!(refused(&call), Error::NoSteps { op: name(&call), time: 4 });
                call.kind.needs_h = false;
                assert_eq!(run(&call).expect("nobody needs h"), call.want::<f32>());
            }
            call.kind = Loop { h: Some(vec![Some(3), Some(7)]), ..call.kind };
            call.kind.needs_h = true;
            assert_eq!(run(&call).expect("h is known"), call.want::<f32>());
        }
        // A round of no row is one.
        call.kind = Loop::default();
        call.steps.rounds = 1;
        call.steps.sequence_length = Some(vec![0; 3]);
        assert_eq!(run(&call).expect("a round"), call.want::<f32>());
    }
}

#[test]
fn elements_of_another_shape_are_refused() {
    for mut call in calls() {
        for (sizes, is_right) in [
            (vec![Some(3), Some(5)], true),
            (vec![None, Some(5)], true),
            (vec![Some(4), None], false),
            (vec![None, Some(6)], false),
        ] {
            call.kind = Loop { x: Some(sizes), ..any_loop() };
            if is_right { drop(run(&call).expect("right")) } else { expect_shape(&call, Some("x")) }
        }
        for sizes in [[Some(2), None], [None, Some(5)], [Some(7), Some(3)]] {
            let h = Some(sizes.to_vec());
            call.kind = Loop { h, ..any_loop() };
            expect_shape(&call, Some("h"));
        }
    }
}

#[test]
fn scratch_memory_is_checked() {
    for call in calls() {
        for kind in 0..2 {
            let mut short = call.clone();
            short.scratch[kind] -= 1;
            let (needed, got) = (call.scratch[kind], short.scratch[kind]);
            assert_eq!(refused(&short), Error::Scratch { op: name(&call), needed, got });
        }
    }
}

/// What is known of the shapes of a call's numbers, of its lengths, and of its other tensors, from x on.
type Known<'s> = (&'s [PartialShape], &'s [PartialShape], &'s [PartialShape]);

/// The shapes of the outputs of an LSTM without peepholes, or of a GRU. There are two numbers at least.
fn inferred(
    (cell, kind): (Cell, &Loop),
    (scalars, lengths, fixed): Known<'_>,
) -> Result<Vec<Vec<Option<usize>>>, Error> {
    let mut scalars = scalars.to_vec();
    scalars.resize(scalars.len().max(2), None);
    let all = [&scalars, lengths, fixed].concat();
    let counts = [vec![1, scalars.len() - 1, lengths.len()], vec![1; fixed.len()]].concat();
    let found = if matches!(cell, Cell::Gru) {
        let counts = [counts, vec![0; 2]].concat();
        gru_layer_shapes(kind, None, &Lists::new(&GRU_LAYER, &counts, &[1; 2], &all))
    } else {
        let counts = [counts, vec![0; 3]].concat();
        lstm_layer_shapes(kind, None, &Lists::new(&LSTM_LAYER, &counts, &[1; 3], &all))
    };
    found.map(|found| found.outputs)
}

#[test]
fn unknown_shapes_are_checked_as_far_as_they_are_known() {
    let lstm = |scalars: &[_], lengths: &[_], fixed: [PartialShape; 5]| {
        inferred((Cell::Lstm(PLAIN), &any_loop()), (scalars, lengths, &fixed))
    };
    let gru = |scalars: &[_], lengths: &[_], fixed: [PartialShape; 6]| {
        inferred((Cell::Gru, &any_loop()), (scalars, lengths, &fixed))
    };
    let number = || Some(Vec::new());
    let matrix = |rows: usize, columns: usize| Some(vec![Some(rows), Some(columns)]);
    let (rows, state) = (vec![None, Some(3), None], vec![Some(3), None]);
    let lengths = [Some(vec![Some(3)])];
    let got = lstm(&[number(), number()], &lengths, [const { None }; 5]).expect("right");
    assert_eq!(got, [rows.clone(), state.clone(), state.clone()]);
    let got = gru(&[number(), None], &lengths, [const { None }; 6]).expect("right");
    assert_eq!(got, [rows, state]);
    let got = lstm(&[], &[number()], [None, matrix(3, 7), None, None, None]).expect("right");
    assert_eq!(got[0], [None, Some(3), Some(7)]);
    for (scalars, name) in [
        (vec![lengths[0].clone()], "time must"),
        (vec![None, number(), lengths[0].clone()], "rounds[1]"),
    ] {
        let errors = [
            lstm(&scalars, &[], [const { None }; 5]).expect_err("no number").to_string(),
            gru(&scalars, &[], [const { None }; 6]).expect_err("no number").to_string(),
        ];
        assert!(errors.iter().all(|error| error.contains(name)), "{errors:?}");
    }
    let x = Some(vec![Some(1 << 40), Some(1 << 20), Some(0)]);
    let h_prev = matrix(1 << 20, 1 << 20);
    let error = lstm(&[], &[], [x.clone(), h_prev.clone(), None, None, None]);
    assert!(matches!(error, Err(Error::Overflow { tensor: "h", .. })), "{error:?}");
    let error = gru(&[], &[], [x, h_prev, None, None, None, None]);
    assert!(matches!(error, Err(Error::Overflow { tensor: "h", .. })), "{error:?}");
    // What other tensors tell of x is checked, too.
    let kind = Loop { x: Some(vec![Some(4), None]), ..any_loop() };
    let fixed = [None, matrix(3, 7), None, None, None, None];
    for (cell, fixed) in [(Cell::Lstm(PLAIN), &fixed[..5]), (Cell::Gru, &fixed[..])] {
        let error = inferred((cell, &kind), (&[], &[], fixed)).expect_err("three rows for four");
        let wanted = "x must have shape [time, batch, input_size] = [?, 4, ?], got [?, 3, ?]";
        assert!(error.to_string().ends_with(wanted), "{error}");
    }
}
