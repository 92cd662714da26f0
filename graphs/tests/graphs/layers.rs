//! Loops over a sequence that become one node for each layer.

use crate::common::rewriting::{Rewriting, rewriting};

/// The loop of `tf.nn.dynamic_rnn` around an LSTM cell, as TensorFlow 1.15 writes it.
const LOOP: &str = "zero = Const() T=int32 value=0
    one = Const() T=int32 value=1
    first_index = Const() T=int32 value=[0]
    second_index = Const() T=int32 value=[1]
    shape = Shape(x) T=int32
    time = StridedSlice(shape, first_index, second_index, second_index) T=int32 shrink_axis_mask=1
    in_array = TensorArrayV3(time) element_shape=[-1,7] dynamic_size=false
    in_range = Range(zero, time, one) T=int32
    filled = TensorArrayScatterV3(in_array, in_range, x, in_array:1)
    out_array = TensorArrayV3(time) element_shape=[-1,8] dynamic_size=false
    nothing = Const() value=0.0
    sizes = Other(x) T=int32
    zeros = Fill(sizes, nothing)
    w = Const() value=zeros
    b = Const() value=zeros
    in_handle = Enter(in_array) frame_name=\"loop\" is_constant=true
    in_flow = Enter(filled) frame_name=\"loop\" is_constant=true
    out_handle = Enter(out_array) frame_name=\"loop\" is_constant=true
    w_in = Enter(w) frame_name=\"loop\" is_constant=true
    b_in = Enter(b) frame_name=\"loop\" is_constant=true
    bound = Enter(time) frame_name=\"loop\" is_constant=true
    ended_in = Enter(lengths) frame_name=\"loop\" is_constant=true
    zeros_in = Enter(zeros) frame_name=\"loop\" is_constant=true
    t_in = Enter(zero) T=int32 frame_name=\"loop\" is_constant=false
    t_merge = Merge(t_in, t_next) T=int32
    less = Less(t_merge, bound)
    more = LoopCond(less)
    t_switch = Switch(t_merge, more) T=int32
    t = Identity(t_switch:1) T=int32
    step = Const(^t) T=int32 value=1
    t_sum = AddV2(t, step) T=int32
    t_next = NextIteration(t_sum) T=int32
    flow_first = Enter(out_array:1) frame_name=\"loop\" is_constant=false
    flow_merge = Merge(flow_first, flow_next)
    flow_switch = Switch(flow_merge, more)
    flow_next = NextIteration(write)
    flow = Exit(flow_switch)
    c_first = Enter(c0) frame_name=\"loop\" is_constant=false
    c_merge = Merge(c_first, c_next)
    c_switch = Switch(c_merge, more)
    c_next = NextIteration(c_new)
    c_last = Exit(c_switch)
    h_first = Enter(h0) frame_name=\"loop\" is_constant=false
    h_merge = Merge(h_first, h_next)
    h_switch = Switch(h_merge, more)
    h_next = NextIteration(h_new)
    h_last = Exit(h_switch)
    x_t = TensorArrayReadV3(in_handle, t, in_flow)
    cell = BlockcellLSTMCell(x_t, h_switch:1, w_in, b_in, c_switch:1) num_cs_prev=1 num_peepholes=0 forget_bias=1.0 cell_clip=-1.0 gate_order=[0,1,2,3]
    has_ended = GreaterEqual(t, ended_in)
    c_new = Select(has_ended, c_switch:1, cell:1)
    h_new = Select(has_ended, h_switch:1, cell:6)
    y = Select(has_ended, zeros_in, cell:6)
    write = TensorArrayWriteV3(out_handle, t, y, flow_switch:1)
    count = TensorArraySizeV3(out_array, flow) T=int32
    out_range = Range(zero, count, one) T=int32
    all = TensorArrayGatherV3(out_array, out_range, flow) element_shape=[-1,8]
    result = Pack(all, c_last, h_last)
    gradient = lstm(any_x, any_h)\n";

pub(super) const LAYER: &str = "cell = BlockcellLSTMLayer(time, time, lengths, x, h0, c0, w, b) num_rounds=1 num_sequence_length=1 \
    x_sizes=[-1,7] h_sizes=[-1,8] needs_h=true lists=false num_peepholes=0 forget_bias=1.0 cell_clip=-1.0 gate_order=[0,1,2,3] broadcasts=true";

pub(super) fn with(changes: &[(&str, &str)]) -> String {
    let mut text = LOOP.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text + "lengths = Placeholder() T=int32\n"
}

pub(super) fn stays(changes: &[(&str, &str)]) -> Rewriting {
    let after = rewriting(&with(changes));
    assert!(!after.text().contains("Layer("), "{}", after.text());
    after
}

#[test]
fn a_loop_becomes_a_layer() {
    let after = rewriting(&with(&[]));
    let text = after.text();
    assert!(text.contains(LAYER), "{text}");
    assert!(text.contains("result = Pack(cell, cell:2, cell:1)"), "{text}");
    for op in ["Enter", "Merge", "Exit", "TensorArray", "NextIteration", "Range", "Select"] {
        assert!(!text.contains(op), "{op}: {text}");
    }
    assert!(after.has("time") && after.has("zeros"));
    after.reports("cell becomes BlockcellLSTMLayer (parts: 1)");
}

/// The changes of a loop whose rows do not end.
pub(super) fn without_lengths() -> [(&'static str, &'static str); 4] {
    [
        ("Select(has_ended, c_switch:1, cell:1)", "Identity(cell:1)"),
        ("Select(has_ended, h_switch:1, cell:6)", "Identity(cell:6)"),
        ("Select(has_ended, zeros_in, cell:6)", "Identity(cell:6)"),
        ("has_ended = GreaterEqual(t, ended_in)", ""),
    ]
}

#[test]
fn rows_need_not_end() {
    let text = rewriting(&with(&without_lengths())).text();
    assert!(
        text.contains(
            "BlockcellLSTMLayer(time, time, x, h0, c0, w, b) num_rounds=1 num_sequence_length=0"
        ),
        "{text}"
    );
}

#[test]
fn who_asks_for_the_size_asks_the_array() {
    let text = rewriting(&with(&[("Pack(all,", "Pack(all, count,")])).text();
    assert!(text.contains("count = TensorArraySizeV3(out_array, out_array:1)"), "{text}");
    assert!(text.contains("result = Pack(cell, count, cell:2, cell:1)"), "{text}");
}

#[test]
fn the_condition_may_have_two_bounds() {
    let text = rewriting(&with(&[(
        "less = Less(t_merge, bound)",
        "most_in = Enter(most) frame_name=\"loop\" is_constant=true
        first = Less(t_merge, bound)
        second = Less(t_merge, most_in)
        less = LogicalAnd(first, second)",
    )]))
    .text();
    assert!(text.contains("BlockcellLSTMLayer(time, time, most, lengths, x,"), "{text}");
}

#[test]
fn constants_leave_the_loop() {
    let text = rewriting(&with(&[(
        "cell = BlockcellLSTMCell(x_t, h_switch:1, w_in,",
        "folded = Const(^w_in) value=zeros
        cell = BlockcellLSTMCell(x_t, h_switch:1, folded,",
    )]))
    .text();
    assert!(text.contains("folded = Const(^cell/blockcell/NoOp) value=zeros"), "{text}");
    assert!(text.contains("x, h0, c0, folded, b)"), "{text}");
}

#[test]
fn what_the_loop_waits_for_the_layer_waits_for() {
    let after = rewriting(&with(&[(
        "ended_in = Enter(lengths)",
        "assertion = NoOp(x)
        ended_in = Enter(lengths, ^assertion)",
    )]));
    assert!(after.text().contains("w, b, ^assertion) num_rounds=1"), "{}", after.text());
    let after = rewriting(&with(&[("result = Pack(", "late = Apply(^h_last)\n result = Pack(")]));
    assert!(after.text().contains("late = Apply(^cell)"), "{}", after.text());
}

#[test]
fn layers_take_the_outputs_of_those_before() {
    let second = "d_first = Enter(d0) frame_name=\"loop\" is_constant=false
        d_merge = Merge(d_first, d_next)
        d_switch = Switch(d_merge, more)
        d_next = NextIteration(d_new)
        d_last = Exit(d_switch)
        g_first = Enter(g0) frame_name=\"loop\" is_constant=false
        g_merge = Merge(g_first, g_next)
        g_switch = Switch(g_merge, more)
        g_next = NextIteration(g_new)
        upper = BlockcellLSTMCell(cell:6, g_switch:1, w_in, b_in, d_switch:1) num_cs_prev=1 num_peepholes=0 forget_bias=0.5 cell_clip=2.0 gate_order=[0,1,2,3]
        d_new = Select(has_ended, d_switch:1, upper:1)
        g_new = Select(has_ended, g_switch:1, upper:6)
        y = Select(has_ended, zeros_in, upper:6)";
    let changes =
        [("y = Select(has_ended, zeros_in, cell:6)", second), ("Pack(all,", "Pack(all, d_last,")];
    let text = rewriting(&with(&changes)).text();
    for line in [
        "cell = BlockcellLSTMLayer(time, time, lengths, x, h0, c0, w, b) num_rounds=1 num_sequence_length=1 x_sizes=[-1,7] h_sizes=[] needs_h=false lists=false",
        "upper = BlockcellLSTMLayer(time, time, lengths, cell, g0, d0, w, b) num_rounds=1 num_sequence_length=1 x_sizes=[] h_sizes=[-1,8] needs_h=true lists=false",
        "result = Pack(upper, upper:2, cell:2, cell:1)",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
}

/// The changes that make a loop of a GRU cell.
pub(super) const GRU: [(&str, &str); 9] = [
    (
        "cell = BlockcellLSTMCell(x_t, h_switch:1, w_in, b_in, c_switch:1) num_cs_prev=1 num_peepholes=0 forget_bias=1.0 cell_clip=-1.0 gate_order=[0,1,2,3]",
        "cell = GRUBlockCell(x_t, h_switch:1, w_in, w_in, b_in, b_in)",
    ),
    ("c_first = Enter(c0) frame_name=\"loop\" is_constant=false", ""),
    ("c_merge = Merge(c_first, c_next)", ""),
    ("c_switch = Switch(c_merge, more)", ""),
    ("c_next = NextIteration(c_new)", ""),
    ("c_last = Exit(c_switch)", ""),
    ("c_new = Select(has_ended, c_switch:1, cell:1)", ""),
    ("Pack(all, c_last,", "Pack(all,"),
    ("cell:6", "cell:3"),
];

#[test]
fn a_loop_of_gru_cells_becomes_a_layer() {
    let text = rewriting(&with(&GRU)).text();
    assert!(
        text.contains(
            "cell = BlockcellGRULayer(time, time, lengths, x, h0, w, w, b, b) num_rounds=1"
        ),
        "{text}"
    );
    assert!(text.contains("result = Pack(cell, cell:1)"), "{text}");
}

/// The changes that make a loop of TensorFlow 2: lists in place of arrays, and variables of the loop in place of what
/// comes in as a constant.
const LISTS: [(&str, &str); 6] = [
    (
        "in_array = TensorArrayV3(time) element_shape=[-1,7] dynamic_size=false",
        "x_sizes = Const() T=int32 value=[-1,7]
        h_sizes = Const() T=int32 value=[-1,8]
        x_list = TensorListFromTensor(x, x_sizes)
        x_in = Enter(x_list) frame_name=\"loop\" is_constant=false
        x_merge = Merge(x_in, x_next)
        x_switch = Switch(x_merge, more)
        x_next = NextIteration(x_switch:1)
        in_array = TensorArrayV3(time) element_shape=[-1,7] dynamic_size=false",
    ),
    (
        "out_array = TensorArrayV3(time) element_shape=[-1,8] dynamic_size=false",
        "out_array = TensorListReserve(h_sizes, time)",
    ),
    ("flow_first = Enter(out_array:1)", "flow_first = Enter(out_array)"),
    (
        "x_t = TensorArrayReadV3(in_handle, t, in_flow)",
        "x_t = TensorListGetItem(x_switch:1, t, step)",
    ),
    (
        "write = TensorArrayWriteV3(out_handle, t, y, flow_switch:1)",
        "write = TensorListSetItem(flow_switch:1, t, y)",
    ),
    (
        "count = TensorArraySizeV3(out_array, flow) T=int32
    out_range = Range(zero, count, one) T=int32
    all = TensorArrayGatherV3(out_array, out_range, flow) element_shape=[-1,8]",
        "left = Identity(flow)
        all = TensorListStack(left, h_sizes) num_elements=-1",
    ),
];

/// A loop of TensorFlow 2 has none of the arrays.
pub(super) fn with_lists(changes: &[(&str, &str)]) -> String {
    let text = with(&[&LISTS[..], changes].concat());
    let arrays = ["in_array", "in_range", "filled", "in_handle", "in_flow", "out_handle"];
    let is_array = |line: &&str| {
        arrays.iter().any(|name| line.trim_start().starts_with(&format!("{name} = ")))
    };
    text.lines().filter(|line| !is_array(line)).map(|line| line.to_owned() + "\n").collect()
}

#[test]
fn a_loop_of_lists_becomes_a_layer() {
    let text = rewriting(&with_lists(&[])).text();
    assert!(text.contains(&LAYER.replace("lists=false", "lists=true")), "{text}");
    assert!(text.contains("result = Pack(cell, cell:2, cell:1)"), "{text}");
    for op in ["Enter", "Merge", "Switch", "Exit", "TensorList", "left"] {
        assert!(!text.contains(op), "{op}: {text}");
    }
}

#[test]
fn other_lists_stay() {
    for change in [
        ("flow_switch:1, t, y)", "flow_switch:1, one_in, y)"),
        ("left = Identity(flow)", "left = Identity(flow, ^h_last)"),
        ("left = Identity(flow)", "left = Identity(flow)\n other = Other(flow)"),
        ("x_next = NextIteration(x_switch:1)", "x_next = NextIteration(write)"),
        ("num_elements=-1", "num_elements=3"),
        ("out_array = TensorListReserve(", "out_array = EmptyTensorList("),
    ] {
        let text = with_lists(&[])
            .replace("step = Const(^t)", "one_in = Const(^t) T=int32 value=1\n step = Const(^t)");
        assert!(text.contains(change.0), "{}", change.0);
        let after = rewriting(&text.replace(change.0, change.1));
        assert!(!after.text().contains("Layer("), "{change:?} {}", after.text());
    }
}

#[test]
fn variables_that_rounds_read_are_read_once_if_there_is_a_round() {
    let read = "w_read = ReadVariableOp(w_in, ^t)
        cell = BlockcellLSTMCell(x_t, h_switch:1, w_read,";
    let change = ("cell = BlockcellLSTMCell(x_t, h_switch:1, w_in,", read);
    let text = rewriting(&with(&[change])).text();
    assert!(text.contains("cell/blockcell/Less_0 = Less(zero, time)"), "{text}");
    let line = "w_read = ReadVariableOp(cell/blockcell/Switch_1:1, ^cell/blockcell/NoOp)";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("x, h0, c0, cell/blockcell/Merge_3, b)"), "{text}");
    let early = read.replace(", ^t", "");
    stays(&[(change.0, &early)]);
    // A side of a switch has no value, though the switch has run.
    let switched = ("h_first = Enter(h0)", "sides = Switch(h0, w)\n h_first = Enter(sides:1)");
    stays(&[change, switched]);
}

#[test]
fn a_tensor_of_the_last_round_that_is_no_state_stays() {
    let more = "last_first = Enter(h0) frame_name=\"loop\" is_constant=false
        last_merge = Merge(last_first, last_next)
        last_switch = Switch(last_merge, more)
        last_next = NextIteration(h_new)
        last = Exit(last_switch)
        result = Pack(last, ";
    stays(&[("result = Pack(", more)]);
    // What is the same in every round is what comes in.
    let same = more.replace("NextIteration(h_new)", "NextIteration(last_switch:1)");
    let text = rewriting(&with(&[("result = Pack(", &same)])).text();
    assert!(text.contains("result = Pack(h0, cell, cell:2, cell:1)"), "{text}");
}

#[test]
fn a_loop_that_does_something_else_stays() {
    for more in ["Print(cell:6)", "Assign(cell)", "Other(^t)"] {
        let added = format!("more_of_it = {more}\n y = Select(");
        let after = stays(&[("y = Select(", &added)]);
        after.reports_among_others(
            "more (LoopCond) is not rewritten: its iterations also compute more_of_it",
        );
    }
}

#[test]
fn a_loop_that_keeps_tensors_for_gradients_is_no_place() {
    let kept = "kept = StackPushV2(stack, cell:6)\n y = Select(";
    stays(&[("y = Select(", kept)]).reports("");
}

#[test]
fn a_loop_of_another_form_stays() {
    let changes: [(&str, &str); 22] = [
        // The count.
        ("step = Const(^t) T=int32 value=1", "step = Const(^t) T=int32 value=2"),
        ("t_in = Enter(zero)", "t_in = Enter(one)"),
        ("Less(t_merge, bound)", "LessEqual(t_merge, bound)"),
        ("Less(t_merge, bound)", "Less(bound, t_merge)"),
        ("result = Pack(", "t_last = Exit(t_switch)\n result = Pack(t_last, "),
        // The arrays.
        ("TensorArrayReadV3(in_handle, t,", "TensorArrayReadV3(in_handle, t_switch2,"),
        ("Range(zero, time, one) T=int32", "Range(one, time, one) T=int32"),
        ("Range(zero, count, one)", "Range(zero, count, count)"),
        ("out_array = TensorArrayV3(time)", "out_array = TensorArrayV3(other)"),
        ("element_shape=[-1,8] dynamic_size=false", "element_shape=[-1,8] dynamic_size=true"),
        (
            "result = Pack(",
            "again = TensorArrayReadV3(out_array, one, flow)\n result = Pack(again, ",
        ),
        (
            "result = Pack(",
            "again = TensorArrayReadV3(in_array, one, filled)\n result = Pack(again, ",
        ),
        (
            "all = TensorArrayGatherV3(out_array, out_range, flow)",
            "all = TensorArrayGatherV3(out_array, out_range, flow, ^h_last)",
        ),
        // The states.
        (
            "c_new = Select(has_ended, c_switch:1, cell:1)",
            "c_new = Select(has_ended, c_switch:1, cell:5)",
        ),
        (
            "c_new = Select(has_ended, c_switch:1, cell:1)",
            "c_new = Select(has_ended, cell:1, c_switch:1)",
        ),
        ("c_new = Select(has_ended, c_switch:1, cell:1)", "c_new = Identity(cell:1)"),
        (
            "c_new = Select(has_ended, c_switch:1, cell:1)",
            "c_new = Select(has_ended, h_switch:1, cell:1)",
        ),
        ("h_switch:1, w_in, b_in, c_switch:1)", "c_switch:1, w_in, b_in, h_switch:1)"),
        // The outputs.
        ("zeros = Fill(sizes, nothing)", "zeros = Apply(x)"),
        ("y = Select(has_ended, zeros_in, cell:6)", "y = Select(has_ended, zeros_in, cell:1)"),
        ("GreaterEqual(t, ended_in)", "GreaterEqual(ended_in, t)"),
        ("GreaterEqual(t, ended_in)", "Greater(t, ended_in)"),
    ];
    for change in changes {
        stays(&[change]);
    }
}

#[test]
fn a_loop_elsewhere_or_with_targets_stays() {
    stays(&[(
        "x_t = TensorArrayReadV3(in_handle, t, in_flow)",
        "x_t = TensorArrayReadV3(in_handle, t, in_flow) @/cpu:1",
    )]);
    stays(&[(
        "write = TensorArrayWriteV3(out_handle, t, y, flow_switch:1)",
        "write = TensorArrayWriteV3(out_handle, t, y, flow_switch:1) target",
    )]);
}

#[test]
fn what_a_step_asks_for_may_be_a_result() {
    for (from, to) in [
        ("h_last = Exit(h_switch)", "h_last = Exit(h_switch) target"),
        (
            "all = TensorArrayGatherV3(out_array, out_range, flow) element_shape=[-1,8]",
            "all = TensorArrayGatherV3(out_array, out_range, flow) element_shape=[-1,8] target",
        ),
    ] {
        let after = rewriting(&with(&[(from, to)]));
        assert!(after.text().contains(&format!("{LAYER} target")), "{}", after.text());
    }
}

#[test]
fn the_memory_of_variables_that_are_written_is_read_in_the_loop() {
    let written = "variable = VariableV2() shape=[15,32]
        value = Other(x)
        update = Assign(variable, value)
        w = Identity(variable)";
    stays(&[("w = Const() value=zeros", written)]);
    let read = rewriting(&with(&[(
        "w = Const() value=zeros",
        "v = VariableV2() shape=[15,32]\n w = Identity(v)",
    )]));
    assert!(read.text().contains("BlockcellLSTMLayer("), "{}", read.text());
}

#[test]
fn what_comes_later_than_the_outputs_is_not_waited_for() {
    // Without a round, the loop gives the states it began with before the weights are there.
    stays(&[("w = Const() value=zeros", "w = Placeholder() waits")]);
}
