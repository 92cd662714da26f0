use super::*;

/// Sizes with no two alike, nor alike to a sum or multiple that occurs.
fn sizes(optional: usize) -> Sizes {
    Sizes { time: 11, batch: 3, input_size: 2, cell_size: 5, optional: [optional; 3] }
}

fn known(op: &Op, sizes: &Sizes) -> Vec<Vec<usize>> {
    let shape = |tensor: &Tensor| tensor.dims.iter().map(|&dim| sizes.of(dim)).collect();
    op.inputs.iter().map(shape).collect()
}

fn all_of(shapes: &[Vec<usize>]) -> Vec<PartialShape> {
    shapes.iter().map(|shape| Some(shape.iter().map(|&n| Some(n)).collect())).collect()
}

#[test]
fn known_shapes_give_known_outputs() {
    for op in ALL {
        for (use_optional, length) in [(false, 9), (true, 5)] {
            let shapes = known(op, &sizes(length));
            let views: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
            let sizes = op.check(use_optional, &views).expect("right shapes");
            let want: Vec<Vec<_>> = op
                .outputs
                .iter()
                .map(|t| t.dims.iter().map(|&d| Some(sizes.of(d))).collect())
                .collect();
            assert_eq!(op.infer(use_optional, &all_of(&shapes)), Ok(want), "{}", op.name);
        }
    }
}

/// So [`Op::check`] need not multiply them.
#[test]
fn tensors_of_small_sizes_can_be_addressed() {
    for op in ALL {
        let mut bound = Bound::new(false);
        let tensors = || op.inputs.iter().chain(op.outputs);
        for dim in tensors().flat_map(|tensor| tensor.dims) {
            if let Some(slot) = bound.slot(*dim) {
                *slot = Some(bound::SMALL);
            }
        }
        assert!(bound.is_small());
        for tensor in tensors() {
            assert!(bound.bytes(tensor).is_some(), "{} of {}", tensor.name, op.name);
        }
    }
}

/// Whatever is left out of right shapes, what is inferred is right, and all ranks are known.
#[test]
fn what_is_inferred_from_less_is_right() {
    for op in ALL {
        let full = all_of(&known(op, &sizes(5)));
        let want = op.infer(true, &full).expect("right shapes");
        for seed in 0..200_u64 {
            // A multiplicative hash of the place decides what is left out.
            let hash = |n: u64| (seed * 1_000 + n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            let shapes: Vec<PartialShape> = (0..)
                .zip(&full)
                .map(|(n, shape)| {
                    let dims = (0..).zip(shape.as_ref()?);
                    let dims = dims.map(|(m, &dim)| dim.filter(|_| hash(10 * n + m) % 3 == 0));
                    (hash(10 * n + 9) % 3 > 0).then(|| dims.collect())
                })
                .collect();
            let got = op.infer(true, &shapes).expect("parts of right shapes");
            assert_eq!(got.len(), want.len());
            for (got, want) in got.iter().zip(&want) {
                assert_eq!(got.len(), want.len());
                let right = got.iter().zip(want).all(|(got, want)| got.is_none() || got == want);
                assert!(right, "{}: {got:?}, {want:?} from {shapes:?}", op.name);
            }
        }
    }
}

/// The message of what is wrong with some inputs of `BlockGRU`, the others being unknown.
fn complaint(inputs: &[(&str, &[Option<usize>])]) -> Option<String> {
    let mut shapes = vec![None; BLOCK_GRU.inputs.len()];
    for (name, shape) in inputs {
        let at = BLOCK_GRU.inputs.iter().position(|tensor| tensor.name == *name);
        shapes[at.expect("an input")] = Some(shape.to_vec());
    }
    BLOCK_GRU.infer(true, &shapes).err().map(|error| error.to_string())
}

/// An input's name, and what is known of its shape.
type Partial<'a> = (&'a str, &'a [Option<usize>]);

#[test]
fn contradictions_of_partial_shapes_are_errors() {
    let unknown = None;
    let cases: [(&[Partial<'_>], &str); 8] = [
        (&[("x", &[unknown; 2])], "x must have shape [time, batch, input_size], got [?, ?]"),
        (
            &[("sequence_length", &[Some(4)]), ("h_prev", &[Some(3), unknown])],
            "h_prev must have shape [batch, cell_size] = [4, ?], got [3, ?]",
        ),
        (&[("b_ru", &[Some(7)])], "b_ru must have shape [2 * cell_size], got [7]"),
        (
            &[("b_ru", &[Some(8)]), ("b_hc", &[Some(5)])],
            "b_hc must have shape [cell_size] = [4], got [5]",
        ),
        (
            &[("w_ru", &[Some(6), unknown]), ("w_c", &[Some(7), unknown])],
            "w_c must have shape [input_size + cell_size, cell_size] = [6, ?], got [7, ?]",
        ),
        (
            &[("w_ru", &[Some(3), Some(8)])],
            "w_ru must have shape [input_size + cell_size, 2 * cell_size], got [3, 8]",
        ),
        (
            // Only a later tensor tells that there are more cells than rows.
            &[("w_ru", &[Some(3), unknown]), ("b_ru", &[Some(8)])],
            "w_ru must have shape [input_size + cell_size, 2 * cell_size], got [3, ?]",
        ),
        (
            &[
                ("x", &[unknown, unknown, Some(3)]),
                ("w_ru", &[Some(6), unknown]),
                ("b_c", &[Some(4)]),
            ],
            "b_c must have shape [cell_size] = [3], got [4]",
        ),
    ];
    for (inputs, want) in cases {
        assert_eq!(complaint(inputs), Some(format!("BlockGRU: {want}")));
    }
    assert_eq!(complaint(&[("w_ru", &[Some(6), Some(8)]), ("x", &[unknown; 3])]), None);
}

#[test]
fn numbers_of_steps_are_checked() {
    let sizes = sizes(5);
    for op in ALL {
        assert_eq!(op.check_steps(&sizes, [0, 11, 1]), Ok(()));
    }
    let message = |op: &'static Op, steps: &[i128]| {
        op.check_steps(&sizes, steps.iter().copied()).map_err(|error| error.to_string())
    };
    let cases: [(&Op, &[i128], &str); 4] = [
        (&BLOCK_LSTM, &[12], "BlockLSTM: seq_len_max must be between 0 and time = 11, got 12"),
        (&BLOCK_LSTM, &[-1], "BlockLSTM: seq_len_max must be between 0 and time = 11, got -1"),
        (
            &BLOCK_GRU,
            &[1, 11, i64::MIN as i128],
            "BlockGRU: sequence_length[2] must be between 0 and time = 11, \
             got -9223372036854775808",
        ),
        (
            &BLOCK_LSTM_GRAD_V2,
            &[usize::MAX as i128],
            "BlockLSTMGradV2: seq_len_max must be between 0 and time = 11, \
             got 18446744073709551615",
        ),
    ];
    for (op, steps, want) in cases {
        let op = Op::by_name(op.name).expect("its own name");
        assert_eq!(message(op, steps), Err(want.to_owned()));
    }
    assert_eq!(message(&GRU_BLOCK_CELL, &[99]), Ok(()));
}
