//! Steps of plain cells.

use crate::common::rewriting::{Rewriting, rewriting};

/// A forward step of `BasicLSTMCell` on x, h and c, whose nodes end with a number.
pub(super) fn step(number: usize, [x, h, c]: [&str; 3]) -> String {
    format!(
        "concat{number} = concat({x}, {h})
        z{number} = _FusedMatMul(concat{number}, w, b) fused_ops=[\"BiasAdd\"]
        split{number} = Split(axis, z{number}) num_split=4
        i{number} = Sigmoid(split{number})
        ci{number} = Tanh(split{number}:1)
        biased{number} = Add(split{number}:2, forget_bias)
        f{number} = Sigmoid(biased{number})
        o{number} = Sigmoid(split{number}:3)
        kept{number} = Mul({c}, f{number})
        new{number} = Mul(i{number}, ci{number})
        cs{number} = AddV2(kept{number}, new{number})
        co{number} = Tanh(cs{number})
        h{number} = Mul(co{number}, o{number})\n"
    )
}

/// The backward step, from the gradients of its outputs.
pub(super) fn step_grad(number: usize, c: &str, [dh, dc]: [&str; 2]) -> String {
    format!(
        "through_h{number} = Mul({dh}, o{number})
        through_co{number} = TanhGrad(co{number}, through_h{number})
        dcs{number} = AddN(through_co{number}, {dc}) N=2
        to_o{number} = Mul({dh}, co{number})
        to_i{number} = Mul(dcs{number}, ci{number})
        to_ci{number} = Mul(dcs{number}, i{number})
        to_f{number} = Mul(dcs{number}, {c})
        dc{number} = Mul(dcs{number}, f{number})
        do{number} = SigmoidGrad(o{number}, to_o{number})
        di{number} = SigmoidGrad(i{number}, to_i{number})
        dci{number} = TanhGrad(ci{number}, to_ci{number})
        df{number} = SigmoidGrad(f{number}, to_f{number})
        dz{number} = ConcatV2(di{number}, dci{number}, df{number}, do{number}, axis)\n"
    )
}

const FORGET_BIAS: &str = "forget_bias = Const() value=1.0\n";

pub(super) fn one_step(more: &str) -> String {
    format!("{FORGET_BIAS}{}{more}", step(0, ["x", "h", "c"]))
}

/// The node of a forward step.
fn cell(number: usize, [x, h, c]: [&str; 3]) -> String {
    format!(
        "h{number} = BlockcellLSTMCell({x}, {h}, w, b, {c}) num_cs_prev=1 num_peepholes=0 forget_bias=1.0 cell_clip=-1.0 gate_order=[0,1,2,3]\n"
    )
}

fn stays(text: &str) -> Rewriting {
    rewriting(text).stays()
}

#[test]
fn a_forward_step_becomes_one_node() {
    rewriting(&one_step("y = Neg(h0)\nnext = Neg(cs0)"))
        .becomes(&(cell(0, ["x", "h", "c"]) + "y = Neg(h0:6)\nnext = Neg(h0:1)"))
        .reports("h0 becomes BlockcellLSTMCell (parts: 1)");
}

#[test]
fn steps_follow_each_other() {
    let steps = step(0, ["x0", "h", "c"]) + &step(1, ["x1", "h0", "cs0"]) + "y = Neg(h1)";
    let cells = cell(0, ["x0", "h", "c"]) + &cell(1, ["x1", "h0:6", "h0:1"]) + "y = Neg(h1:6)";
    rewriting(&(FORGET_BIAS.to_owned() + &steps)).becomes(&cells);
}

#[test]
fn a_backward_step_becomes_one_node() {
    let text = one_step(&step_grad(0, "c", ["dh", "dcs"]));
    let product = "w_grad = MatMul(concat0, dz0) transpose_a=true\nout = Neg(dc0)";
    let grad = "dz0 = BlockcellLSTMCellGrad(h0, h0:2, h0:3, h0:4, h0:5, c, dcs, dh) num_cs_prev=1 num_cs_grad=1 num_h_grad=1 num_peepholes=0 num_through_peepholes=0 num_cs=0 sums_to_gates=false cell_clip=-1.0 gate_order=[0,1,2,3]\n";
    rewriting(&(text + product)).becomes(
        &(cell(0, ["x", "h", "c"])
            + grad
            + "w_grad = BlockcellMatMulAddN(x, h, dz0:1) num_a=2 num_b=1 num_addends=0\nout = Neg(dz0)"),
    );
}

#[test]
fn the_last_backward_step_has_no_gradient_of_the_state() {
    let text = one_step(&step_grad(0, "c", ["dh", "dcs"]))
        .replace("dcs0 = AddN(through_co0, dcs) N=2\n", "");
    let text = text.replace("dcs0", "through_co0") + "y = Neg(dz0)";
    let grad = "dz0 = BlockcellLSTMCellGrad(h0, h0:2, h0:3, h0:4, h0:5, c, dh) num_cs_prev=1 num_cs_grad=0 num_h_grad=1 num_peepholes=0 num_through_peepholes=0 num_cs=0 sums_to_gates=false cell_clip=-1.0 gate_order=[0,1,2,3]\n";
    rewriting(&text).becomes(&(cell(0, ["x", "h", "c"]) + grad + "y = Neg(dz0:1)"));
}

#[test]
fn the_last_backward_step_may_have_no_gradient_of_the_output() {
    for zeros in ["nothing = Const() value=zeros\n", "nothing = ZerosLike(split0:3)\n"] {
        let text = one_step(&step_grad(0, "c", ["dh", "dcs"]))
            .replace("dcs0 = AddN(through_co0, dcs) N=2\n", zeros)
            .replace("df0, do0, axis", "df0, nothing, axis")
            .replace("dcs0", "dcs");
        let rewriting = rewriting(&(text + "y = Neg(dz0)"));
        let grad = "dz0 = BlockcellLSTMCellGrad(h0, h0:2, h0:3, h0:4, h0:5, c, dcs) num_cs_prev=1 num_cs_grad=1 num_h_grad=0 num_peepholes=0 num_through_peepholes=0 num_cs=0 sums_to_gates=false cell_clip=-1.0 gate_order=[0,1,2,3]";
        assert!(rewriting.text().contains(grad), "{}", rewriting.text());
        assert!(!rewriting.has("di0") && !rewriting.has("to_f0"));
    }
}

#[test]
fn a_state_of_zeros_may_be_folded_away() {
    let text = one_step("y = Neg(h0)")
        .replace("kept0 = Mul(c, f0)\n", "")
        .replace("cs0 = AddV2(kept0, new0)", "cs0 = Identity(new0, ^f0)");
    let cell = "h0 = BlockcellLSTMCell(x, h, w, b) num_cs_prev=0 num_peepholes=0 forget_bias=1.0 cell_clip=-1.0 gate_order=[0,1,2,3]\n";
    rewriting(&text).becomes(&(cell.to_owned() + "y = Neg(h0:6)"));
}

/// The state comes from elsewhere, and gates are read by somebody who does not wait for it.
#[test]
fn a_gate_that_is_read_before_the_state_is_there_stays() {
    let late = "c = Dequeue(queue) waits\n";
    let text = one_step("y = Neg(h0)\nearly = Neg(i0)") + "\n" + late;
    stays(&text).reports("h0 (Mul) is not rewritten: early consumes i0 and may run before all inputs of the step are available");
    let text = one_step("y = Neg(h0)\nearly = Neg(i0, ^c)") + "\n" + late;
    assert!(!rewriting(&text).has("i0"));
}

#[test]
fn what_is_computed_from_a_gate_counts_too() {
    let text = one_step("y = Neg(h0)\nearly = Neg(new0)\nc = Dequeue(queue) waits");
    stays(&text)
        .reports("h0 (Mul) is not rewritten: early consumes new0 and may run before all inputs of the step are available");
}

#[test]
fn a_state_on_a_side_of_a_switch_is_not_waited_for_by_others() {
    let text = one_step("y = Neg(h0)\nearly = Neg(i0)\nc = Switch(state, p)");
    stays(&text).reports("h0 (Mul) is not rewritten: early consumes i0 and may run before all inputs of the step are available");
}

/// TensorFlow's optimizers leave conditionals that are decided, with one side.
#[test]
fn a_side_of_a_switch_by_a_constant_always_has_a_value() {
    let text = |side: &str, value: &str| {
        one_step("y = Neg(h0)\nearly = Neg(i0)\n").replace("Mul(c,", &format!("Mul({side},"))
            + &format!(
                "decided = Const() value={value}\np = Identity(decided)\nc = Switch(state, p)"
            )
    };
    for (side, value) in [("c", "false"), ("c:1", "true")] {
        assert!(!rewriting(&text(side, value)).has("i0"), "{side} {value}");
    }
    for (side, value) in [("c", "true"), ("c:1", "false"), ("c", "1")] {
        stays(&text(side, value));
    }
}

#[test]
fn a_state_that_depends_on_a_gate_stays() {
    let text = one_step("y = Neg(h0)\nc = Neg(i0)");
    stays(&text)
        .reports("h0 (Mul) is not rewritten: an input of h0 depends on a part of the same step");
}

#[test]
fn weights_may_be_written_only_after_the_step() {
    let early = "w = VariableV2()\nwritten = Assign(w, fed)\n";
    let rewriting = stays(&one_step(&format!("y = Neg(h0)\n{early}")));
    let why = "w may be the memory of a variable that is written before the new node would read it";
    rewriting.reports(&format!("h0 (Mul) is not rewritten: {why}"));
    let late = "w = VariableV2()\nwritten = Assign(w, fed, ^y)\n";
    assert!(
        !crate::common::rewriting::rewriting(&one_step(&format!("y = Neg(h0)\n{late}"))).has("i0")
    );
}

/// The concatenation is a snapshot, and stays for the product. Who follows it does not wait for the step.
#[test]
fn a_writer_that_follows_the_concatenation_is_too_early() {
    let more = "y = Neg(h0)\nh = VariableV2()\nmore = Neg(concat0)\nwritten = Assign(h, more)";
    let why = "h may be the memory of a variable that is written before the new node would read it";
    stays(&one_step(more)).reports(&format!("h0 (Mul) is not rewritten: {why}"));
    let later = more.replace("Assign(h, more)", "Assign(h, more, ^y)");
    assert!(!rewriting(&one_step(&later)).has("i0"));
}

/// Who waits for the step waited for the concatenation, too, which stays for another reader.
#[test]
fn a_writer_comes_after_what_stays_of_a_step() {
    let more =
        "y = Neg(h0)\nh = VariableV2()\nmore = Neg(concat0)\nwritten = Assign(h, fed, ^kept0)";
    let new = cell(0, ["x", "h", "c"]).replace(") num_cs_prev=1", ", ^concat0) num_cs_prev=1");
    let left = more.replace("Neg(h0)", "Neg(h0:6)").replace("^kept0", "^h0");
    rewriting(&one_step(more)).becomes(&format!("{new}concat0 = concat(x, h)\n{left}"));
}

#[test]
fn a_part_that_reads_a_variable_after_the_step_stays() {
    let more = "y = Neg(h0)\nc = VariableV2()\nmore = Neg(kept0)\nwritten = Assign(c, fed, ^h0)";
    let why = "c may be the memory of a variable that is written before the new node would read it";
    stays(&one_step(more)).reports(&format!("h0 (Mul) is not rewritten: {why}"));
}

#[test]
fn pre_activations_that_somebody_reads_stay() {
    stays(&one_step("y = Neg(h0)\nmore = Neg(z0)"))
        .reports("split0 (Split) is not rewritten: more depends on z0, too");
    stays(&one_step("y = Neg(h0)\nmore = Neg(split0:2)"))
        .reports("split0 (Split) is not rewritten: more depends on split0, too");
}

#[test]
fn a_part_on_another_device_stays() {
    let text =
        one_step("y = Neg(h0)").replace("f0 = Sigmoid(biased0)", "f0 = Sigmoid(biased0) @/cpu:1");
    stays(&text).reports("h0 (Mul) is not rewritten: f0 is on another device");
}

#[test]
fn other_equations_stay() {
    let text = one_step("y = Neg(h0)");
    for (from, to) in [
        ("ci0 = Tanh(", "ci0 = Relu("),
        ("co0 = Tanh(", "co0 = Relu("),
        ("i0 = Sigmoid(", "i0 = HardSigmoid("),
        ("num_split=4", "num_split=3"),
        ("Add(split0:2, forget_bias)", "Sub(split0:2, forget_bias)"),
        ("Add(split0:2, forget_bias)", "AddN(split0:2, split0:2, split0:2) N=3"),
        ("Add(split0:2, forget_bias)", "AddN(split0:2, split0:2) N=2"),
        ("[\"BiasAdd\"]", "[\"BiasAdd\",\"Relu\"]"),
        ("_FusedMatMul(concat0, w, b)", "_FusedMatMul(concat0, w, b) transpose_b=true"),
    ] {
        assert!(text.contains(from), "{from}");
        stays(&text.replace(from, to));
    }
}

#[test]
fn the_variables_of_a_loop_go_together() {
    let entered = "axis_in = Enter(axis) is_constant=true frame_name=\"f\"
        w_in = Enter(w) is_constant=true frame_name=\"f\"
        b_in = Enter(b) is_constant=true frame_name=\"f\"
        forget_in = Enter(forget_bias) is_constant=true frame_name=\"f\"
        n = Enter(zero) frame_name=\"f\"
        n_now = Merge(n, n_next)
        goes_on = Less(n_now, n_now)
        cond = LoopCond(goes_on)
        n_body = Switch(n_now, cond)
        n_next = NextIteration(n_body:1)\n";
    let variable = |name: &str, next: &str| {
        format!(
            "{name}_first = Enter({name}_start) frame_name=\"f\"
            {name}_now = Merge({name}_first, {name}_next)
            {name} = Switch({name}_now, cond)
            {name}_next = NextIteration({next})
            {name}_last = Exit({name})\n"
        )
    };
    let body = step(0, ["x:1", "h:1", "c:1"])
        .replace(", w, b)", ", w_in, b_in)")
        .replace("axis", "axis_in")
        .replace("forget_bias)", "forget_in)")
        .replace("concat(x:1, h:1)", "ConcatV2(x:1, h:1, axis_in)");
    let text = |next_c: &str| {
        FORGET_BIAS.to_owned()
            + entered
            + &variable("x", "x:1")
            + &variable("h", "h0")
            + &variable("c", next_c)
            + &body
            + "pushed = Neg(i0)\n"
    };
    assert!(!rewriting(&text("cs0")).has("ci0"));
    // A state that may be missing in a later round.
    let late = "late = Dequeue(cs0) waits\n";
    assert!(rewriting(&(text("late") + late)).has("ci0"));
    // A branch with an effect, which the end of the round waits for. It may be on the dead side.
    let branch = |effect: &str| {
        let nodes = format!(
            "flag = Identity(n_body:1)
            side = Switch(flag, flag)
            yes = Identity(side:1)
            no = Identity(side)
            slow = Dequeue(cs0) waits
            effect = {effect}
            any = Merge(yes, no, ^effect)
            after = Identity(cs0, ^any)\n"
        );
        rewriting(&(text("after") + &nodes))
    };
    assert!(!branch("Neg(cs0, ^yes)").has("ci0"));
    assert!(!branch("Neg(cs0, ^no)").has("ci0"));
    for other in
        ["Neg(cs0, ^yes, ^slow)", "Neg(other_side:1, ^yes)\nother_side = Switch(cs0, other)"]
    {
        assert!(branch(other).has("ci0"), "{other}");
    }
    // States that a variable keeps from one run to the next. What is assigned comes out of the last round.
    let kept =
        |value: &str| format!("c_start = VariableV2()\nwritten = Assign(c_start, {value})\n");
    assert!(!rewriting(&(text("cs0") + &kept("c_last"))).has("ci0"));
    assert!(!rewriting(&(text("cs0") + &kept("h_last"))).has("ci0"));
    // A loop that begins with what comes out of this one, as that of a gradient does by the number of rounds.
    let after = |value: &str| {
        format!(
            "later_first = Enter({value}) frame_name=\"g\"
            later_now = Merge(later_first, later_next)
            later_goes_on = Less(later_now, later_now)
            later_cond = LoopCond(later_goes_on)
            later = Switch(later_now, later_cond)
            later_next = NextIteration(later:1)
            sum_first = Enter(fed) frame_name=\"g\"
            sum_now = Merge(sum_first, sum_next)
            sum = Switch(sum_now, later_cond)
            sum_next = NextIteration(sum:1)
            sum_last = Exit(sum)\n"
        ) + &kept("sum_last")
    };
    assert!(!rewriting(&(text("cs0") + &after("h_last"))).has("ci0"));
    let either = "either = Merge(h_last, fed)\n".to_owned() + &kept("either");
    for early in [kept("x_last"), kept("fed"), after("x_last"), either] {
        let stays = rewriting(&(text("cs0") + &early));
        let why = "is not rewritten: c may be the memory of a variable that is written before the new node would read it";
        assert!(stays.has("ci0"));
        stays.reports_among_others(&format!("h0 (Mul) {why}"));
    }
}

/// A graph in which some tensors are kept on stacks, as the loop of a gradient has them, for those who take
/// them in `later`.
fn with_stacks(before: &str, later: &str, kept: &[&str]) -> String {
    let mut text = before.to_owned();
    let mut later = later.to_owned();
    for name in kept {
        text += &format!(
            "stack_{name} = StackV2()
            push_{name} = StackPushV2(stack_{name}, {name}, ^round)
            pop_{name} = StackPopV2(stack_{name}, ^round_back)
            next = NextIteration(round, ^push_{name})\n"
        )
        .replace("next =", &format!("next_{name} ="));
        for (before, after) in [("(", ","), ("(", ")"), (" ", ","), (" ", ")")] {
            let [from, to] =
                [*name, &format!("pop_{name}")].map(|tensor| [before, tensor, after].concat());
            later = later.replace(&from, &to);
        }
    }
    text + "round = Const()\nround_back = Const()\n" + &later
}

pub(super) const SAVED: [&str; 6] = ["i0", "f0", "o0", "ci0", "co0", "c"];

fn popped_grad() -> String {
    let grad = "BlockcellLSTMCellGrad(pop_i0, pop_f0, pop_o0, pop_ci0, pop_co0, pop_c, dcs, dh)";
    format!(
        "dz0 = {grad} num_cs_prev=1 num_cs_grad=1 num_h_grad=1 num_peepholes=0 num_through_peepholes=0 num_cs=0 sums_to_gates=false cell_clip=-1.0 gate_order=[0,1,2,3]\n"
    )
}

#[test]
fn what_a_backward_step_takes_may_come_from_stacks() {
    let grad = step_grad(0, "c", ["dh", "dcs"]);
    let text = with_stacks(&one_step("y = Neg(h0)\n"), &(grad + "z = Neg(dz0)\n"), &SAVED);
    let after = rewriting(&text);
    assert!(after.has("pop_i0") && after.has("push_i0"));
    assert!(after.text().contains(popped_grad().trim()), "{}", after.text());
    assert!(!after.has("ci0"), "{}", after.text());
    // A tensor that is pushed at two places may be another one.
    let twice = text.clone() + "more = StackPushV2(stack_i0, x, ^round)\n";
    assert!(rewriting(&twice).has("di0"));
    let other = text.replace("StackPushV2(stack_f0, f0", "StackPushV2(stack_f0, i0");
    assert!(rewriting(&other).has("di0"));
}

/// The gradient of the output gate, added up to the gate's shape.
pub(super) fn summed(shapes: [&str; 2]) -> String {
    let [own, other] = shapes;
    let sum = format!(
        "shape_own = Shape({own})
        shape_other = Shape({other})
        args = BroadcastGradientArgs(shape_own, shape_other)
        sum = Sum(to_o0, args)
        to_o = Reshape(sum, shape_own)
        do0 = SigmoidGrad(o0, to_o)"
    );
    step_grad(0, "c", ["dh", "dcs"]).replace("do0 = SigmoidGrad(o0, to_o0)", &sum)
}

#[test]
fn sums_to_the_shape_of_a_gate_are_a_part_of_the_step() {
    let text = |shapes| one_step("y = Neg(h0)\n") + &summed(shapes) + "z = Neg(dz0)\n";
    for shapes in [["o0", "co0"], ["i0", "cs0"], ["split0:3", "h0"]] {
        let after = rewriting(&text(shapes));
        assert!(!after.has("sum") && !after.has("args") && !after.has("ci0"), "{}", after.text());
    }
    let kept = text(["o0", "co0"]).replace("Sum(to_o0, args)", "Sum(to_o0, args) keep_dims=true");
    assert!(!rewriting(&kept).has("sum"));
    for shapes in [["co0", "o0"], ["o0", "c"], ["x", "co0"]] {
        let after = rewriting(&text(shapes));
        assert!(after.has("sum") && after.has("di0"), "{}", after.text());
    }
}

/// What is only known to be a shape, because it was pushed, goes with the stack.
#[test]
fn stacks_of_shapes_go_with_the_sums() {
    let grad = summed(["o0", "new0"]).replace("shape_other)", "shape_other)\n");
    let (shapes, grad) = grad.split_once("args =").expect("it has both");
    let [first, shapes] = shapes.split_once("shape_own =").map(|(a, b)| [a, b]).expect("both");
    let forward = one_step("y = Neg(h0)\n") + "shape_own =" + &shapes.replace("new0", "kept0");
    let later = first.to_owned() + "args =" + grad + "z = Neg(dz0)\n";
    let kept = [&SAVED[..], &["shape_own", "shape_other"]].concat();
    let after = rewriting(&with_stacks(&forward, &later, &kept));
    for gone in ["sum", "args", "shape_own", "push_shape_own", "stack_shape_own", "kept0", "ci0"] {
        assert!(!after.has(gone), "{gone}: {}", after.text());
    }
    // The round waits for what the push waited for.
    assert!(
        after.text().contains("next_shape_own = NextIteration(round, ^round)"),
        "{}",
        after.text()
    );
    // A shape that may be missing where the round is not.
    let late = with_stacks(&forward, &later, &kept)
        .replace("StackPushV2(stack_shape_own, shape_own", "StackPushV2(stack_shape_own, late")
        + "late = Identity(late_shape)\nlate_shape = Shape(slow)\nslow = Dequeue(o0) waits\n";
    assert!(rewriting(&late).has("push_shape_own"));
}
