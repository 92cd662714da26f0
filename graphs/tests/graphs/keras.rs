//! Loops of Keras's layers that become one node.

use crate::common::rewriting::{Rewriting, rewriting};

/// What all loops have around their steps, as Keras 3.15 in TensorFlow 2.21 writes it.
const AROUND: &str = "zero = Const() T=int32 value=0
    first_index = Const() T=int32 value=[0]
    second_index = Const() T=int32 value=[1]
    x_shape = Const() T=int32 value=[-1,3]
    h_shape = Const() T=int32 value=[-1,5]
    shape = Shape(x) T=int32
    time = StridedSlice(shape, first_index, second_index, second_index) T=int32 shrink_axis_mask=1
    sizes = Other(x) T=int32
    nothing = Const() value=0.0
    zeros = Fill(sizes, nothing)
    in_list = TensorListFromTensor(x, x_shape)
    out_list = TensorListReserve(h_shape, time)
    count_in = Enter(zero) T=int32 frame_name=\"loop\" is_constant=false
    t_in = Enter(zero) T=int32 frame_name=\"loop\" is_constant=false
    most_in = Enter(time) T=int32 frame_name=\"loop\" is_constant=false
    time_in = Enter(time) T=int32 frame_name=\"loop\" is_constant=false
    x_in = Enter(in_list) frame_name=\"loop\" is_constant=false
    y_in = Enter(out_list) frame_name=\"loop\" is_constant=false
    count_merge = Merge(count_in, count_next) T=int32
    t_merge = Merge(t_in, t_next) T=int32
    most_merge = Merge(most_in, most_next) T=int32
    time_merge = Merge(time_in, time_next) T=int32
    x_merge = Merge(x_in, x_next)
    y_merge = Merge(y_in, y_next)
    less = Less(t_merge, time_merge, ^count_merge)
    less_most = Less(count_merge, most_merge)
    both = LogicalAnd(less, less_most)
    more = LoopCond(both)
    count_switch = Switch(count_merge, more) T=int32
    t_switch = Switch(t_merge, more) T=int32
    most_switch = Switch(most_merge, more) T=int32
    time_switch = Switch(time_merge, more) T=int32
    x_switch = Switch(x_merge, more)
    y_switch = Switch(y_merge, more)
    count_exit = Exit(count_switch)
    t_exit = Exit(t_switch)
    x_exit = Exit(x_switch)
    y_exit = Exit(y_switch)
    pivot = Identity(count_switch:1) T=int32
    t = Identity(t_switch:1, ^pivot) T=int32
    one = Const(^pivot) T=int32 value=1
    element = Const(^pivot) T=int32 value=[-1,3]
    count_sum = AddV2(count_switch:1, one) T=int32
    t_sum = AddV2(t, one) T=int32
    count_next = NextIteration(count_sum, ^done)
    t_next = NextIteration(t_sum, ^done)
    most_next = NextIteration(most_switch:1, ^done, ^pivot)
    time_next = NextIteration(time_switch:1, ^done, ^pivot)
    x_next = NextIteration(x_switch:1, ^done, ^pivot)
    y_next = NextIteration(write, ^done)
    x_t = TensorListGetItem(x_switch:1, t, element)
    write = TensorListSetItem(y_switch:1, t, y)
    all = TensorListStack(y_exit, h_shape) num_elements=-1
    end = NoOp(^count_exit, ^t_exit, ^x_exit, ^y_exit, ^h_exit)
    kernel_in = Enter(kernel) frame_name=\"loop\" is_constant=true
    recurrent_in = Enter(recurrent) frame_name=\"loop\" is_constant=true
    bias_in = Enter(bias) frame_name=\"loop\" is_constant=true
    w_x = ReadVariableOp(kernel_in, ^pivot)
    w_h = ReadVariableOp(recurrent_in, ^pivot)
    b = ReadVariableOp(bias_in, ^pivot)
    done = NoOp(^w_x, ^w_h, ^b)
    h_in = Enter(zeros) frame_name=\"loop\" is_constant=false
    h_merge = Merge(h_in, h_next)
    h_switch = Switch(h_merge, more)
    h_next = NextIteration(h_new, ^done)
    h_exit = Exit(h_switch)
    result = Pack(all, h_exit, ^end)
    x = Placeholder()
    kernel = VarHandleOp()
    recurrent = VarHandleOp()
    bias = VarHandleOp()\n";

pub(super) const LSTM: &str = "c_in = Enter(zeros) frame_name=\"loop\" is_constant=false
    c_merge = Merge(c_in, c_next)
    c_switch = Switch(c_merge, more)
    c_next = NextIteration(c_new, ^done)
    c_exit = Exit(c_switch)
    of_x = MatMul(x_t, w_x)
    of_h = MatMul(h_switch:1, w_h)
    sum = AddV2(of_x, of_h)
    biased = BiasAdd(sum, b)
    split = Split(one, biased) num_split=4
    i = Sigmoid(split)
    f = Sigmoid(split:1)
    ci = Tanh(split:2)
    o = Sigmoid(split:3)
    kept = Mul(c_switch:1, f)
    new = Mul(i, ci)
    cs = AddV2(kept, new)
    co = Tanh(cs)
    h = Mul(o, co)
    c_new = Identity(cs)
    h_new = Identity(h)
    y = Identity(h)\n";

pub(super) const GRU: &str = "parts_axis = Const(^pivot) T=int32 value=0
    columns = Const(^pivot) T=int32 value=-1
    biases = Split(parts_axis, b) num_split=2
    b_x = Squeeze(biases)
    b_h = Squeeze(biases:1)
    of_x = _FusedMatMul(x_t, w_x, b_x) fused_ops=[\"BiasAdd\"]
    of_h = _FusedMatMul(h_switch:1, w_h, b_h) fused_ops=[\"BiasAdd\"]
    split = Split(columns, of_x) num_split=3
    ones = Const(^pivot) T=int32 value=[1,1]
    at_0 = Const(^pivot) T=int32 value=[0,0]
    at_1 = Const(^pivot) T=int32 value=[0,5]
    at_2 = Const(^pivot) T=int32 value=[0,10]
    h_z = StridedSlice(of_h, at_0, at_1, ones) begin_mask=1 end_mask=1
    h_r = StridedSlice(of_h, at_1, at_2, ones) begin_mask=1 end_mask=1
    h_c = StridedSlice(of_h, at_2, at_0, ones) begin_mask=1 end_mask=3
    z_sum = AddV2(split, h_z)
    r_sum = AddV2(split:1, h_r)
    z = Sigmoid(z_sum)
    r = Sigmoid(r_sum)
    reset = Mul(r, h_c)
    c_sum = AddV2(reset, split:2)
    c = Tanh(c_sum)
    float_one = Const(^pivot) value=1.0
    rest = Sub(float_one, z)
    kept = Mul(h_switch:1, z)
    new = Mul(c, rest)
    h = AddV2(kept, new)
    h_new = Identity(h)
    y = Identity(h)\n";

/// A mask of the rows in each step, and the output before each.
pub(super) const MASK: &str = "mask_shape = Const() T=int32 value=[-1,1]
    mask_list = TensorListFromTensor(valid, mask_shape)
    mask_in = Enter(mask_list) frame_name=\"loop\" is_constant=true
    valid = Placeholder()
    mask_t = TensorListGetItem(mask_in, t, element)
    before = ZerosLike(zeros)
    before_in = Enter(before) frame_name=\"loop\" is_constant=false
    before_merge = Merge(before_in, before_next)
    before_switch = Switch(before_merge, more)
    before_next = NextIteration(y, ^done)\n";

pub(super) fn with(step: &str, changes: &[(&str, &str)]) -> String {
    let mut text = AROUND.to_owned() + step;
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    // Fused biases are known to be vectors.
    let is_known = !text.contains("_FusedMatMul") || changes.iter().any(|change| change.0 == BIAS);
    if is_known { text } else { text.replace(BIAS, "bias = VarHandleOp() shape=[2,15]") }
}

const BIAS: &str = "bias = VarHandleOp()";

pub(super) fn stays(step: &str, changes: &[(&str, &str)]) -> Rewriting {
    let after = rewriting(&with(step, changes));
    assert!(!after.text().contains("BlockcellKeras"), "{}", after.text());
    assert!(after.has("more"));
    after
}

pub(super) fn masked() -> [(&'static str, &'static str); 3] {
    [
        ("c_new = Identity(cs)", "c_new = SelectV2(mask_t, cs, c_switch:1)"),
        ("h_new = Identity(h)", "h_new = SelectV2(mask_t, h, h_switch:1)"),
        ("y = Identity(h)", "y = SelectV2(mask_t, h, before_switch:1)"),
    ]
}

#[test]
fn a_loop_of_an_lstm_becomes_a_layer() {
    let after = rewriting(&with(LSTM, &[]));
    let text = after.text();
    let layer = "split = BlockcellKerasLSTM(time, time, time, x, zeros, zeros, \
        split/blockcell/Merge_5, split/blockcell/Merge_6, split/blockcell/Merge_7) num_rounds=2 num_mask=0 \
        last_only=false repeats=true x_sizes=[-1,3] h_sizes=[-1,5] needs_h=true";
    assert!(text.contains(layer), "{text}");
    assert!(text.contains("result = Pack(split, split:1, ^end)"), "{text}");
    assert!(text.contains("end = NoOp(^split)"), "{text}");
    let begin = "split/blockcell/NoOp = NoOp(^zero, ^time, ^zeros, ^x, ^kernel, ^recurrent, ^bias)";
    assert!(text.contains(begin), "{text}");
    for op in ["Enter", "Exit", "TensorList", "NextIteration", "Sigmoid", "MatMul"] {
        assert!(!text.contains(op), "{op}: {text}");
    }
    after.reports("split becomes BlockcellKerasLSTM (parts: 1)");
}

#[test]
fn variables_are_read_only_if_there_is_a_round() {
    let text = rewriting(&with(LSTM, &[])).text();
    for line in [
        "split/blockcell/Less_0 = Less(zero, time) T=int32",
        "split/blockcell/Switch_1 = Switch(kernel, split/blockcell/Less_0)",
        "w_x = ReadVariableOp(split/blockcell/Switch_1:1, ^split/blockcell/NoOp)",
        "split/blockcell/Switch_4 = Switch(x, split/blockcell/Less_0)",
        "split/blockcell/Merge_5 = Merge(w_x, split/blockcell/Switch_4) N=2",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    // Two numbers of rounds, of which each may be zero.
    let most = (
        "most_in = Enter(time)",
        "most = Placeholder() T=int32
        most_in = Enter(most)",
    );
    let text = rewriting(&with(LSTM, &[most])).text();
    assert!(text.contains("LogicalAnd(split/blockcell/Less_0, split/blockcell/Less_1)"), "{text}");
    // A loop that certainly has a round.
    let time =
        "StridedSlice(shape, first_index, second_index, second_index) T=int32 shrink_axis_mask=1";
    let steps = (time, "Const() T=int32 value=7");
    let text = rewriting(&with(LSTM, &[steps])).text();
    assert!(text.contains("x, zeros, zeros, w_x, w_h, b)"), "{text}");
    assert!(text.contains("w_x = ReadVariableOp(kernel, ^split/blockcell/NoOp)"), "{text}");
    assert!(!text.contains("Switch"), "{text}");
}

#[test]
fn a_loop_of_a_gru_becomes_a_layer() {
    let text = rewriting(&with(GRU, &[])).text();
    assert!(text.contains("BlockcellKerasGRU(time, time, time, x, zeros, split/"), "{text}");
    // The parts of the biases leave the loop with them.
    assert!(text.contains("biases = Split(parts_axis, b) num_split=2"), "{text}");
    assert!(text.contains("parts_axis = Const(^split/blockcell/NoOp)"), "{text}");
    assert!(!text.contains("Enter") && !text.contains("Tanh"), "{text}");
}

#[test]
fn columns_may_be_split_in_either_product() {
    let text = rewriting(&with(
        GRU,
        &[
            ("h_z = StridedSlice(of_h, at_0, at_1, ones) begin_mask=1 end_mask=1", ""),
            ("h_r = StridedSlice(of_h, at_1, at_2, ones) begin_mask=1 end_mask=1", ""),
            ("h_c = StridedSlice(of_h, at_2, at_0, ones) begin_mask=1 end_mask=3", ""),
            (
                "z_sum = AddV2(split, h_z)",
                "of_state = Split(columns, of_h) num_split=3
                z_sum = AddV2(of_state, split)",
            ),
            ("AddV2(split:1, h_r)", "AddV2(split:1, of_state:1)"),
            ("Mul(r, h_c)", "Mul(of_state:2, r)"),
        ],
    ))
    .text();
    assert!(text.contains("BlockcellKerasGRU("), "{text}");
}

#[test]
fn the_last_output_may_be_all() {
    let text = rewriting(&with(
        LSTM,
        &[
            (
                "TensorListReserve(h_shape, time)",
                "TensorListReserve(h_shape, single)
                single = Const() T=int32 value=1",
            ),
            (
                "SetItem(y_switch:1, t, y)",
                "SetItem(y_switch:1, place, y)
                place = Const(^pivot) T=int32 value=0",
            ),
            ("num_elements=-1", "num_elements=1"),
        ],
    ))
    .text();
    assert!(text.contains("BlockcellKerasLSTM(single, time, time, x,"), "{text}");
    assert!(text.contains("last_only=true"), "{text}");
}

#[test]
fn constants_leave_the_loop() {
    let text = rewriting(&with(
        LSTM,
        &[
            ("w_x = ReadVariableOp(kernel_in, ^pivot)", "w_x = Const(^pivot) value=zeros"),
            (
                "less = Less(t_merge, time_merge, ^count_merge)",
                "bound = Const(^count_merge) T=int32 value=7
                less = Less(t_merge, bound)",
            ),
        ],
    ))
    .text();
    assert!(text.contains("w_x = Const(^split/blockcell/NoOp) value=zeros"), "{text}");
    assert!(text.contains("bound = Const(^split/blockcell/NoOp)"), "{text}");
    assert!(text.contains("x, zeros, zeros, w_x, split/blockcell/Merge_4,"), "{text}");
}

#[test]
fn nobody_need_read_the_outputs() {
    let text = rewriting(&with(
        LSTM,
        &[("all = TensorListStack(y_exit, h_shape) num_elements=-1", ""), ("Pack(all, ", "Pack(")],
    ))
    .text();
    assert!(text.contains("needs_h=false"), "{text}");
}

#[test]
fn a_step_may_ask_for_what_leaves_the_loop() {
    let asked = ("h_exit = Exit(h_switch)", "h_exit = Exit(h_switch) target");
    let text = rewriting(&with(LSTM, &[asked])).text();
    assert!(text.contains("needs_h=true target"), "{text}");
}

#[test]
fn a_mask_goes_into_the_layer() {
    let text = rewriting(&with(&(LSTM.to_owned() + MASK), &masked())).text();
    assert!(text.contains("BlockcellKerasLSTM(time, time, time, x, zeros, zeros, "), "{text}");
    assert!(
        text.contains(", valid, before) num_rounds=2 num_mask=1 last_only=false repeats=true"),
        "{text}"
    );
    assert!(!text.contains("Select"), "{text}");
}

#[test]
fn masked_steps_may_give_zeros() {
    let mut changes = masked().to_vec();
    changes.push((
        "y = SelectV2(mask_t, h, before_switch:1)",
        "always = Enter(before) frame_name=\"loop\" is_constant=true
        y = SelectV2(mask_t, h, always)",
    ));
    let text = rewriting(&with(&(LSTM.to_owned() + MASK), &changes)).text();
    assert!(
        text.contains(", valid, before) num_rounds=2 num_mask=1 last_only=false repeats=false"),
        "{text}"
    );
}

#[test]
fn a_mask_must_be_that_of_all_and_a_column() {
    let step = LSTM.to_owned() + MASK;
    for change in [
        (masked()[0].1, "c_new = Identity(cs)"),
        (masked()[1].1, "h_new = SelectV2(mask_t, h, before_switch:1)"),
        (masked()[2].1, "y = SelectV2(mask_t, h, c_switch:1)"),
        (masked()[2].1, "y = SelectV2(mask_t, before_switch:1, h)"),
        ("mask_shape = Const() T=int32 value=[-1,1]", "mask_shape = Const() T=int32 value=[-1,5]"),
    ] {
        let changes = [&masked()[..], &[change]].concat();
        stays(&step, &changes);
    }
}

/// A loop, and another one of the same cell and weights after it, which begins with these states.
fn followed(x: &str, states: [&str; 2]) -> String {
    let first = with(LSTM, &[]);
    let names: Vec<_> = first.lines().filter_map(|line| line.split_once(" = ")).collect();
    let mut second = String::new();
    for (name, rest) in names {
        let name = name.trim();
        if matches!(name, "x" | "kernel" | "recurrent" | "bias") {
            continue;
        }
        let (op, arguments) = rest.split_once('(').expect("an operation");
        let (arguments, attributes) = arguments.split_once(')').expect("arguments");
        let renamed = arguments.split(", ").filter(|one| !one.is_empty()).map(|one| {
            let mark = if one.starts_with('^') { "^" } else { "" };
            match (name, one.trim_start_matches('^')) {
                (_, "x") => x.to_owned(),
                ("h_in", _) => states[0].to_owned(),
                ("c_in", _) => states[1].to_owned(),
                (_, other) if matches!(other, "kernel" | "recurrent" | "bias") => other.to_owned(),
                (_, other) => format!("{mark}2_{other}"),
            }
        });
        let attributes = attributes.replace("loop", "second");
        second +=
            &format!("2_{name} = {op}({}){attributes}\n", renamed.collect::<Vec<_>>().join(", "));
    }
    first + &second
}

#[test]
fn two_loops_that_follow_each_other_become_two_layers() {
    let text = rewriting(&followed("all", ["2_zeros"; 2])).text();
    assert!(text.contains("2_split = BlockcellKerasLSTM(2_time, 2_time, 2_time, split,"), "{text}");
}

/// A decoder begins where its encoder ends.
#[test]
fn a_loop_may_begin_with_the_states_of_another() {
    let text = rewriting(&followed("other", ["h_exit", "c_exit"])).text();
    assert!(
        text.contains(
            "2_split = BlockcellKerasLSTM(2_time, 2_time, 2_time, other, split:1, split:2,"
        ),
        "{text}"
    );
}

#[test]
fn other_equations_stay() {
    for change in [
        ("ci = Tanh(split:2)", "ci = Relu(split:2)"),
        ("o = Sigmoid(split:3)", "o = Sigmoid(split:1)"),
        ("kept = Mul(c_switch:1, f)", "kept = Mul(c_switch:1, i)"),
        ("new = Mul(i, ci)", "new = Mul(o, ci)"),
        ("co = Tanh(cs)", "co = Tanh(new)"),
        ("h = Mul(o, co)", "h = Mul(i, co)"),
        ("biased = BiasAdd(sum, b)", "biased = Identity(sum)"),
        ("of_h = MatMul(h_switch:1, w_h)", "of_h = MatMul(h_switch:1, w_h) transpose_b=true"),
        ("of_h = MatMul(h_switch:1, w_h)", "of_h = MatMul(c_switch:1, w_h)"),
        ("sum = AddV2(of_x, of_h)", "sum = Sub(of_x, of_h)"),
        ("h_new = Identity(h)", "h_new = Identity(cs)"),
        ("y = Identity(h)", "y = Identity(cs)"),
        ("y = Identity(h)", "y = Identity(i)"),
    ] {
        stays(LSTM, &[change]);
    }
    for change in [
        ("c = Tanh(c_sum)", "c = Elu(c_sum)"),
        ("z_sum = AddV2(split, h_z)", "z_sum = AddV2(split:1, h_z)"),
        ("r_sum = AddV2(split:1, h_r)", "r_sum = AddV2(split:1, h_z)"),
        ("reset = Mul(r, h_c)", "reset = Mul(z, h_c)"),
        ("c_sum = AddV2(reset, split:2)", "c_sum = AddV2(reset, split:1)"),
        ("rest = Sub(float_one, z)", "rest = Sub(z, float_one)"),
        ("rest = Sub(float_one, z)", "rest = Sub(float_one, r)"),
        ("float_one = Const(^pivot) value=1.0", "float_one = Const(^pivot) value=2.0"),
        ("kept = Mul(h_switch:1, z)", "kept = Mul(c, z)"),
        ("at_2 = Const(^pivot) T=int32 value=[0,10]", "at_2 = Const(^pivot) T=int32 value=[0,9]"),
        // The list says that there are five cells.
        ("h_shape = Const() T=int32 value=[-1,5]", "h_shape = Const() T=int32 value=[-1,6]"),
        (
            "h_z = StridedSlice(of_h, at_0, at_1, ones) begin_mask=1 end_mask=1",
            "h_z = StridedSlice(of_h, at_0, at_1, ones) begin_mask=1 end_mask=0",
        ),
        (
            "of_h = _FusedMatMul(h_switch:1, w_h, b_h) fused_ops=[\"BiasAdd\"]",
            "of_h = _FusedMatMul(h_switch:1, w_h, b_h) fused_ops=[\"BiasAdd\",\"Tanh\"]",
        ),
    ] {
        stays(GRU, &[change]);
    }
}

/// `Add` broadcasts, unlike `BiasAdd`.
#[test]
fn a_bias_that_add_adds_is_a_vector_for_certain() {
    let add = ("biased = BiasAdd(sum, b)", "biased = AddV2(sum, b)");
    let shaped =
        |shape: &str| ("bias = VarHandleOp()", format!("bias = VarHandleOp() shape={shape}"));
    let (from, to) = shaped("[20]");
    let text = rewriting(&with(LSTM, &[add, (from, &to)])).text();
    assert!(text.contains("BlockcellKerasLSTM("), "{text}");
    for shape in ["[1,20]", "[]", "[1]", "[4,20]", "?", "[-1]"] {
        let (from, to) = shaped(shape);
        stays(LSTM, &[add, (from, &to)]).reports_among_others(
            "more (LoopCond) is not rewritten: the shape of the bias of the loop at more does not match a supported loop",
        );
    }
    let adds = [
        (
            "of_x = _FusedMatMul(x_t, w_x, b_x) fused_ops=[\"BiasAdd\"]",
            "raw_x = MatMul(x_t, w_x)\nof_x = AddV2(raw_x, b_x)",
        ),
        (
            "of_h = _FusedMatMul(h_switch:1, w_h, b_h) fused_ops=[\"BiasAdd\"]",
            "raw_h = MatMul(h_switch:1, w_h)\nof_h = AddV2(b_h, raw_h)",
        ),
    ];
    stays(GRU, &[adds[0], adds[1], (BIAS, "bias = VarHandleOp() shape=?")]);
    let known = [adds[0], adds[1], ("bias = VarHandleOp()", "bias = VarHandleOp() shape=[2,15]")];
    let text = rewriting(&with(GRU, &known)).text();
    assert!(text.contains("BlockcellKerasGRU("), "{text}");
}

/// TensorFlow 2 fuses a sum with one row, too.
#[test]
fn a_fused_bias_is_a_vector_for_certain() {
    let fused = [
        (
            "of_h = MatMul(h_switch:1, w_h)",
            "of_h = _FusedMatMul(h_switch:1, w_h, b) fused_ops=[\"BiasAdd\"]",
        ),
        ("biased = BiasAdd(sum, b)", "biased = Identity(sum)"),
        ("Split(one, biased)", "Split(one, sum)"),
    ];
    for (shape, is_vector) in [("[20]", true), ("[1,20]", false), ("[1]", false), ("?", false)] {
        let bias = format!("bias = VarHandleOp() shape={shape}");
        let changes = [&fused[..], &[(BIAS, &bias)]].concat();
        let text = rewriting(&with(LSTM, &changes)).text();
        assert_eq!(text.contains("BlockcellKerasLSTM("), is_vector, "{text}");
    }
    for shape in ["[2,1]", "?", "[15]"] {
        stays(GRU, &[(BIAS, &format!("bias = VarHandleOp() shape={shape}"))]);
    }
}

/// The first state may be another one than the next, if there is one round.
#[test]
fn weights_of_another_state_stay() {
    let with_shape = |shape: &str| {
        [("recurrent = VarHandleOp()", format!("recurrent = VarHandleOp() shape={shape}"))]
    };
    for shape in ["[1,20]", "[4,20]", "[20]"] {
        let [(from, to)] = with_shape(shape);
        stays(LSTM, &[(from, &to)]);
    }
    let [(from, to)] = with_shape("[5,20]");
    assert!(rewriting(&with(LSTM, &[(from, &to)])).text().contains("BlockcellKerasLSTM("));
    stays(GRU, &[("recurrent = VarHandleOp()", "recurrent = VarHandleOp() shape=[5,20]")]);
}

#[test]
fn other_rounds_stay() {
    let more = |node| stays(LSTM, &[("result = Pack", node)]);
    more("printed = Print(i, h)\nresult = Pack");
    more("written = AssignVariableOp(kernel_in, w_x, ^pivot)\nresult = Pack");
    for change in [
        ("count_in = Enter(zero) T=int32", "count_in = Enter(time) T=int32"),
        ("t_sum = AddV2(t, one)", "t_sum = AddV2(t, t)"),
        ("less = Less(t_merge, time_merge, ^count_merge)", "less = Greater(t_merge, time_merge)"),
        ("most_next = NextIteration(most_switch:1,", "most_next = NextIteration(t_sum,"),
        ("x_next = NextIteration(x_switch:1,", "x_next = NextIteration(write,"),
        (
            "x_t = TensorListGetItem(x_switch:1, t, element)",
            "x_t = TensorListGetItem(x_switch:1, one, element)",
        ),
        ("SetItem(y_switch:1, t, y)", "SetItem(y_switch:1, one, y)"),
        ("SetItem(y_switch:1, t, y)", "SetItem(x_switch:1, t, y)"),
        (
            "SetItem(y_switch:1, t, y)",
            "SetItem(y_switch:1, t, y) resize_if_index_out_of_bounds=true",
        ),
        (
            "in_list = TensorListFromTensor(x, x_shape)",
            "in_list = TensorListReserve(x_shape, time)",
        ),
        ("w_x = ReadVariableOp(kernel_in, ^pivot)", "w_x = ReadVariableOp(kernel_in)"),
        ("w_x = ReadVariableOp(kernel_in, ^pivot)", "w_x = Other(kernel_in, ^pivot)"),
        ("h_shape = Const() T=int32 value=[-1,5]", "h_shape = Other() T=int32"),
        ("num_elements=-1", "num_elements=7"),
    ] {
        stays(LSTM, &[change]);
    }
}

#[test]
fn other_readers_and_places_stay() {
    for change in [
        ("result = Pack(all, h_exit, ^end)", "result = Pack(all, t_exit, ^end)"),
        ("result = Pack(all, h_exit, ^end)", "result = Pack(all, y_exit, ^end)"),
        (
            "all = TensorListStack(y_exit, h_shape)",
            "all = TensorListStack(y_exit, h_shape, ^result)",
        ),
        ("t_exit = Exit(t_switch)", "t_exit = Exit(t_switch) target"),
        (
            "split = Split(one, biased) num_split=4",
            "split = Split(one, biased) num_split=4 @/cpu:1",
        ),
        ("biased = BiasAdd(sum, b)", "biased = BiasAdd(sum, b) @/gpu:0"),
    ] {
        stays(LSTM, &[change]);
    }
}

#[test]
fn a_loop_whose_input_comes_late_stays() {
    stays(LSTM, &[("x = Placeholder()", "x = Placeholder() waits")]);
}
