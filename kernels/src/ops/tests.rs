use super::*;
use crate::Error;
use crate::ops::bound::Bound;

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

/// The operations whose tensors have exactly the shapes of their declarations, and are in no list.
fn exact() -> impl Iterator<Item = &'static Op> {
    let is_exact = |tensor: &Tensor| tensor.shape == Shape::Exact && tensor.list.is_none();
    all().filter(move |op| op.inputs.iter().chain(op.outputs).all(is_exact))
}

/// [`Op::infer`] of an operation without lists.
fn infer(op: &'static Op, use_optional: bool, shapes: &[PartialShape]) -> Result<Inferred, Error> {
    let [inputs, outputs] = [op.inputs, op.outputs].map(|tensors| vec![1; tensors.len()]);
    op.infer(use_optional, &Lists::new(op, &inputs, &outputs, shapes))
}

#[test]
fn known_shapes_give_known_outputs() {
    assert!(BLOCK.into_iter().all(|op| exact().any(|exact| exact.name == op.name)));
    assert!(exact().any(|op| op.name == UNFUSED_GRU_CELL.name));
    for op in exact() {
        for (use_optional, length) in [(false, 9), (true, 5)] {
            let shapes = known(op, &sizes(length));
            let views: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
            let sizes = op.check(use_optional, &views).expect("right shapes");
            let want: Vec<Vec<_>> = op
                .outputs
                .iter()
                .map(|t| t.dims.iter().map(|&d| Some(sizes.of(d))).collect())
                .collect();
            let inferred = infer(op, use_optional, &all_of(&shapes)).expect("right shapes");
            assert_eq!(inferred.outputs, want, "{}", op.name);
            let known = Sizes { optional: sizes.optional, ..inferred.sizes.in_numbers() };
            assert_eq!(known, sizes, "{}", op.name);
        }
    }
}

/// So [`Op::check`] need not multiply them.
#[test]
fn tensors_of_small_sizes_can_be_addressed() {
    for op in exact() {
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
    for op in exact() {
        let full = all_of(&known(op, &sizes(5)));
        let want = infer(op, true, &full).expect("right shapes").outputs;
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
            let got = infer(op, true, &shapes).expect("parts of right shapes").outputs;
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
    infer(&BLOCK_GRU, true, &shapes).err().map(|error| error.to_string())
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
    for op in all() {
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

#[test]
fn tensors_have_positions() {
    for op in all() {
        for tensors in [op.inputs, op.outputs] {
            let lists = tensors.iter().take_while(|tensor| tensor.list.is_none()).count();
            for (n, tensor) in tensors.iter().enumerate().take(lists + 1) {
                assert_eq!(
                    position_of(op, tensors, tensor.name),
                    n,
                    "{} of {}",
                    tensor.name,
                    op.name
                );
            }
        }
        let count = |list: &'static str| list.len() % 3;
        let mut begin = 0;
        for tensor in op.inputs {
            let end = begin + tensor.list.map_or(1, count);
            assert_eq!(op.input_range(tensor.name, count), begin..end);
            begin = end;
        }
        let lengths = op.lengths(|list| Ok::<_, Error>(count(list))).expect("no error");
        assert_eq!(lengths.inputs.iter().sum::<usize>(), begin);
    }
    let op = &UNFUSED_LSTM_CELL_GRAD;
    assert_eq!([op.input("i"), op.input("co"), op.input("cs_prev")], [0, 4, 5]);
    assert_eq!([op.output("dicfo"), op.output("through_peepholes")], [1, 2]);
    let count = |list: &str| match list {
        "num_cs_prev" | "num_cs" => 1,
        "num_cs_grad" => 0,
        "num_peepholes" => 3,
        _ => 2,
    };
    assert_eq!(op.input_range("cs_grad", count), 6..6);
    assert_eq!(op.input_range("h_grad", count), 6..8);
    assert_eq!(op.input_range("cs", count), 11..12);
    assert_eq!(KERAS_GRU.input_range("rounds", |_| 2), 1..3);
    assert_eq!(KERAS_GRU.input_range("before", |_| 1), 9..10);
}

fn position_of(op: &Op, tensors: &[Tensor], name: &str) -> usize {
    if std::ptr::eq(tensors, op.inputs) { op.input(name) } else { op.output(name) }
}

#[test]
#[should_panic(expected = "a list comes before the tensor")]
fn tensors_after_a_list_have_no_position() {
    let _ = LSTM_LAYER.input("x");
}

#[test]
#[should_panic(expected = "no tensor of this name")]
fn unknown_tensors_have_no_position() {
    let _ = GRU_BLOCK_CELL.output("hc");
}

#[test]
fn help_describes_all_tensors_and_attributes() {
    for op in all().filter(|op| !op.is_stock) {
        let help = op.help();
        let describes = |name: &str| {
            let start = format!("{name}: ");
            help.lines().any(|line| line.strip_prefix(&start).is_some_and(|text| !text.is_empty()))
        };
        for Tensor { name, doc, .. } in op.inputs.iter().chain(op.outputs) {
            assert!(!doc.is_empty() && describes(name), "{name} of {}", op.name);
        }
        for Attribute { name, .. } in op.attributes {
            assert!(describes(name), "{name} of {}", op.name);
        }
        assert!(!op.doc.is_empty(), "{}", op.name);
    }
}

#[test]
fn definitions_are_in_the_words_of_tensorflow() {
    let op = &UNFUSED_LSTM_CELL_GRAD;
    let inputs = [
        "i: T",
        "f: T",
        "o: T",
        "ci: T",
        "co: T",
        "cs_prev: num_cs_prev * T",
        "cs_grad: num_cs_grad * T",
        "h_grad: num_h_grad * T",
        "peepholes: num_peepholes * T",
        "cs: num_cs * T",
    ];
    assert_eq!(op.op_def_inputs(), inputs);
    let outputs = [
        "cs_prev_grad: T",
        "dicfo: T",
        "through_peepholes: num_through_peepholes * T",
        "peephole_grads: num_peepholes * T",
    ];
    assert_eq!(op.op_def_outputs(), outputs);
    let attributes = [
        "T: {bfloat16, half, float}",
        "num_cs_prev: int >= 0",
        "num_cs_grad: int >= 0",
        "num_h_grad: int >= 0",
        "num_peepholes: int >= 0",
        "num_through_peepholes: int >= 0",
        "num_cs: int >= 0",
        "sums_to_gates: bool = false",
        "cell_clip: float = -1.0",
        "gate_order: list(int) = [0, 1, 2, 3]",
        "activation: string = 'tanh'",
        "recurrent_activation: string = 'sigmoid'",
        "sums_to_cs_prev: bool = false",
        "sums_to_product: bool = false",
    ];
    assert_eq!(op.op_def_attributes(), attributes);
    assert_eq!(KERAS_LSTM.op_def_inputs()[..2], ["size: int32", "rounds: num_rounds * int32"]);
    assert_eq!(KERAS_LSTM.op_def_inputs()[8..], ["mask: num_mask * bool", "before: num_mask * T"]);
    assert_eq!(BLOCK_GRU.op_def_inputs()[0], "sequence_length: int64");
    assert_eq!(INFO.op_def_outputs(), ["info: string"]);
    assert!(INFO.op_def_attributes().is_empty());
}
