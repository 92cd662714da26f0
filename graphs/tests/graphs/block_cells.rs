//! Steps of TensorFlow's own cells: loops of them, and steps one after the other.

use std::fmt::Write;

use crate::common::rewriting::rewriting;
use crate::layers::{self, stays, with, with_lists};
use crate::unrolled::{self, STEPS};

/// The changes that make a loop of TensorFlow's own LSTM cell. It takes the cell state first, and vectors in place of
/// peephole weights that it does not have.
pub(super) const LSTM: [(&str, &str); 1] = [(
    "cell = BlockcellLSTMCell(x_t, h_switch:1, w_in, b_in, c_switch:1) num_cs_prev=1 num_peepholes=0 forget_bias=1.0 cell_clip=-1.0 gate_order=[0,1,2,3]",
    "none = Const(^t) value=[0,0]
    cell = LSTMBlockCell(x_t, c_switch:1, h_switch:1, w_in, none, none, none, b_in) forget_bias=0.5 cell_clip=3.0 use_peephole=false",
)];

#[test]
fn a_loop_of_block_cells_becomes_a_layer() {
    let after = rewriting(&with(&LSTM));
    let text = after.text();
    let layer = layers::LAYER.replace(
        "bias=1.0 cell_clip=-1.0 gate_order=[0,1,2,3] broadcasts=true",
        "bias=0.5 cell_clip=3.0 gate_order=[0,1,2,3]",
    );
    assert!(text.contains(&format!("{layer} broadcasts=false\n")), "{text}");
    assert!(text.contains("result = Pack(cell, cell:2, cell:1)"), "{text}");
    assert!(!after.has("none"), "{text}");
    let text = rewriting(&with_lists(&LSTM)).text();
    assert!(text.contains("c0, w, b) num_rounds=1 num_sequence_length=1"), "{text}");
}

#[test]
fn a_loop_of_block_cells_with_peepholes_becomes_a_layer() {
    let entered = ["i", "f", "o"]
        .map(|gate| format!("p{gate}_in = Enter(p{gate}) frame_name=\"loop\" is_constant=true\n"))
        .concat();
    let weights = [
        ("none = Const(^t) value=[0,0]", &entered[..]),
        ("none, none, none", "pi_in, pf_in, po_in"),
        ("use_peephole=false", "use_peephole=true"),
    ];
    let text = rewriting(&with(&[&LSTM[..], &weights].concat())).text();
    assert!(text.contains("x, h0, c0, w, b, pi, pf, po) num_rounds=1"), "{text}");
    assert!(text.contains("num_peepholes=3 forget_bias=0.5"), "{text}");
    // Without peepholes, an error of these must not get lost.
    stays(&[&LSTM[..], &weights[..2]].concat());
}

#[test]
fn a_loop_of_malformed_block_cells_stays() {
    for (from, to) in [
        ("none = Const(^t) value=[0,0]", "none = Const(^t) value=0"),
        ("none = Const(^t) value=[0,0]", "none = Const(^t) value=zeros"),
        ("none = Const(^t) value=[0,0]", "none = Placeholder()"),
        ("none, b_in)", "x_t, b_in)"),
        ("none, none, none, b_in)", "none, none, b_in)"),
        ("cell_clip=3.0", ""),
    ] {
        stays(&[&LSTM[..], &[(from, to)]].concat());
    }
}

/// Without an optimizer, large vectors of zeros are not folded.
#[test]
fn what_a_layer_does_not_take_may_be_filled() {
    let filled = |size: &str, value: &str| {
        let nodes = format!(
            "size = Const(^t) T=int32 value={size}
            nothing_here = Const(^t) value={value}
            none = Fill(size, nothing_here)"
        );
        with(&[&LSTM[..], &[("none = Const(^t) value=[0,0]", &nodes)]].concat())
    };
    assert!(rewriting(&filled("[2]", "0.0")).text().contains("Layer("));
    for (size, value) in [("2", "0.0"), ("[2,2]", "0.0"), ("[-1]", "0.0"), ("[2]", "[0,0]")] {
        let text = rewriting(&filled(size, value)).text();
        assert!(!text.contains("Layer("), "{text}");
    }
}

/// Other tensors of a step than its states are what gradients take.
#[test]
fn a_loop_of_which_more_is_read_stays() {
    for (from, to) in [
        ("zeros_in, cell:6)", "zeros_in, cell:5)"),
        ("h_switch:1, cell:6)", "h_switch:1, cell:0)"),
        ("y = Select(", "kept = StackPushV2(stack, cell:2)\n y = Select("),
    ] {
        stays(&[&LSTM[..], &[(from, to)]].concat());
    }
}

/// Steps of TensorFlow's own cell, without a gradient.
fn gru_steps() -> String {
    let mut text = "parts = Unpack(x) num=5 axis=0\n".to_owned();
    for t in 0..STEPS {
        let h = t.checked_sub(1).map_or("h0".to_owned(), |before| format!("step{before}:3"));
        writeln!(text, "step{t} = GRUBlockCell(parts:{t}, {h}, w_ru, w_c, b_ru, b_c)")
            .expect("text takes all");
    }
    text + "y = Apply(step4:3)"
}

#[test]
fn steps_of_a_gru() {
    let after = rewriting(&gru_steps());
    let layer = "step4 = BlockcellGRULayer(step4/blockcell/Const, step4/blockcell/Const, x, h0, w_ru, w_c, b_ru, b_c)";
    assert!(after.text().contains(layer), "{}", after.text());
}

/// A program may have asked for another kernel.
#[test]
fn steps_that_others_have_claimed() {
    let third = "step2 = GRUBlockCell(parts:2, step1:3, w_ru, w_c, b_ru, b_c)";
    let claimed = gru_steps().replace(third, &format!("{third} _kernel=\"other\""));
    assert!(claimed.contains("other"));
    let after = rewriting(&claimed);
    assert!(!after.text().contains("Layer("), "{}", after.text());
}

/// Steps of TensorFlow's own LSTM cell, each with vectors of its own in place of peephole weights.
pub(super) fn steps(more: &str) -> String {
    let mut text = "w = Const() value=zeros\nb = Const() value=zeros\n".to_owned();
    for t in 0..STEPS {
        let [cs, h] = match t.checked_sub(1) {
            None => ["cs0", "h0"].map(str::to_owned),
            Some(before) => [1, 6].map(|output| format!("step{before}:{output}")),
        };
        writeln!(
            text,
            "none{t} = Const(^begun) value=[0,0]
            step{t} = LSTMBlockCell(x{t}, {cs}, {h}, w, none{t}, none{t}, none{t}, b) forget_bias=0.5 cell_clip=3.0 use_peephole=false"
        )
        .expect("text takes all");
    }
    text + more
}

#[test]
fn steps_of_an_lstm() {
    let after = rewriting(&steps("y = Apply(step4:6)\nlast = Apply(step4:1)"));
    let text = after.text();
    let layer = unrolled::LAYER.replace(
        "bias=1.0 cell_clip=-1.0 gate_order=[0,1,2,3] broadcasts=true",
        "bias=0.5 cell_clip=3.0 gate_order=[0,1,2,3]",
    );
    let inputs =
        "step4/blockcell/Const, step4/blockcell/Const, step4/blockcell/Pack, h0, cs0, w, b, ^begun";
    let layer = format!("step4 = BlockcellLSTMLayer({inputs}) {layer} broadcasts=false\n");
    assert!(text.contains(&layer), "{text}");
    assert!(
        text.contains("y = Apply(step4:1)") && text.contains("last = Apply(step4:2)"),
        "{text}"
    );
    assert!(!after.has("none0") && !after.has("none3"), "{text}");
}

#[test]
fn steps_with_peepholes() {
    let text = (0..STEPS).fold(steps("y = Apply(step4:6)"), |text, t| {
        text.replace(&format!("none{t}, none{t}, none{t}"), "wci, wcf, wco")
    });
    let with_peepholes = text.replace("use_peephole=false", "use_peephole=true");
    let after = rewriting(&with_peepholes);
    assert!(after.text().contains("h0, cs0, w, b, wci, wcf, wco)"), "{}", after.text());
    let other = with_peepholes.replacen("wci, wcf", "wcf, wci", 1);
    assert!(rewriting(&other).text().contains("step0:6, step0:1, w, b, wci, wcf, wco)"));
    // Without them, an error of these must not get lost.
    assert!(!rewriting(&text).text().contains("Layer("));
}

/// A layer does not give the gates, which gradients take.
#[test]
fn steps_of_which_more_is_read() {
    for output in [0, 1, 2, 3, 4, 5] {
        let more = format!("y = Apply(step4:6)\ninner = Apply(step2:{output})");
        let text = rewriting(&steps(&more)).text();
        assert!(!text.contains("Layer("), "{text}");
    }
}
