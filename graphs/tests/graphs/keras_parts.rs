//! Steps of Keras's cells with other parts: a GRU that resets its state before the product, hard gates, and no bias.

use crate::common::rewriting::rewriting;
use crate::keras::{GRU, LSTM, stays, with};
use crate::mutations::{check, loop_of_keras, replaced};

/// The step of a GRU that resets the state before its product.
pub(super) fn reset_before() -> String {
    let changes = [
        ("biases = Split(parts_axis, b) num_split=2", ""),
        ("b_x = Squeeze(biases)", ""),
        ("b_h = Squeeze(biases:1)", ""),
        (
            "of_x = _FusedMatMul(x_t, w_x, b_x) fused_ops=[\"BiasAdd\"]",
            "of_x0 = MatMul(x_t, w_x)\nof_x = BiasAdd(of_x0, b)",
        ),
        (
            "of_h = _FusedMatMul(h_switch:1, w_h, b_h) fused_ops=[\"BiasAdd\"]",
            "w_zr = StridedSlice(w_h, at_0, at_2, ones) begin_mask=1 end_mask=1
            of_h = MatMul(h_switch:1, w_zr)",
        ),
        ("h_c = StridedSlice(of_h, at_2, at_0, ones) begin_mask=1 end_mask=3", ""),
        (
            "reset = Mul(r, h_c)",
            "reset_h = Mul(r, h_switch:1)
            w_c = StridedSlice(w_h, at_2, at_0, ones) begin_mask=1 end_mask=3
            reset = MatMul(reset_h, w_c)",
        ),
    ];
    changes.into_iter().fold(GRU.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

/// Keras 2 takes the columns of the state's product by a `SplitV`.
fn by_sizes(step: &str) -> String {
    let changes = [
        ("h_z = StridedSlice(of_h, at_0, at_1, ones) begin_mask=1 end_mask=1", ""),
        (
            "h_r = StridedSlice(of_h, at_1, at_2, ones) begin_mask=1 end_mask=1",
            "sizes_h = Const(^pivot) T=int32 value=[5,5,-1]
            parts_h = SplitV(of_h, sizes_h, columns) num_split=3",
        ),
        ("AddV2(split, h_z)", "AddV2(split, parts_h)"),
        ("AddV2(split:1, h_r)", "AddV2(split:1, parts_h:1)"),
    ];
    let text = replaced(step, &changes);
    text.replace("h_c = StridedSlice(of_h, at_2, at_0, ones) begin_mask=1 end_mask=3", "")
        .replace("h_c", "parts_h:2")
}

#[test]
fn columns_may_be_taken_by_their_sizes() {
    let known = ("recurrent = VarHandleOp()", "recurrent = VarHandleOp() shape=[5,15]");
    for (step, reset_after) in [(GRU.to_owned(), ""), (reset_before(), "reset_after=false")] {
        let step = by_sizes(&step);
        let text = rewriting(&with(&step, &[known])).text();
        assert!(text.contains("BlockcellKerasGRU(") && text.contains(reset_after), "{text}");
        for (from, to) in [
            ("value=[5,5,-1]", "value=[5,4,-1]"),
            ("value=[5,5,-1]", "value=[4,5,-1]"),
            ("value=[5,5,-1]", "value=[5,5,4]"),
            ("value=[5,5,-1]", "value=[5,5]"),
            ("SplitV(of_h, sizes_h, columns)", "SplitV(of_h, sizes_h, parts_axis)"),
            ("AddV2(split, parts_h)", "AddV2(split, parts_h:1)"),
            ("AddV2(split:1, parts_h:1)", "AddV2(split:1, parts_h)"),
        ] {
            stays(&step, &[known, (from, to)]);
        }
        // Five columns are not a third of these.
        let wide = ("recurrent = VarHandleOp()", "recurrent = VarHandleOp() shape=[5,16]");
        stays(&step, &[wide]);
    }
}

#[test]
fn near_misses_of_columns_by_their_sizes() {
    for (step, shape) in [(GRU.to_owned(), "[2,15]"), (reset_before(), "[15]")] {
        check(&loop_of_keras(
            &by_sizes(&step),
            ["[3,15]", "[5,15]", shape],
            &["BlockcellKerasGRU("],
        ));
    }
}

/// The number of `hard_sigmoid` is added to a summand of each gate.
pub(super) const HARD_GATES: [(&str, &str); 4] = [
    ("z_sum = AddV2(split, h_z)", "z_three = AddV2(split, three)\nz_sum = AddV2(z_three, h_z)"),
    (
        "r_sum = AddV2(split:1, h_r)",
        "r_three = AddV2(three, h_r)
        r_sum = AddV2(split:1, r_three)
        three = Const(^pivot) value=3.0
        six = Const(^pivot) value=6.0
        sixth = Const(^pivot) value=0.16666667",
    ),
    ("z = Sigmoid(z_sum)", "z_relu = Relu6(z_sum)\nz = Mul(z_relu, sixth)"),
    ("r = Sigmoid(r_sum)", "r_relu = Relu6(r_sum)\nr = RealDiv(r_relu, six)"),
];

#[test]
fn the_state_may_be_reset_before_its_product() {
    let known = ("recurrent = VarHandleOp()", "recurrent = VarHandleOp() shape=[5,15]");
    let after = rewriting(&with(&reset_before(), &[known]));
    let text = after.text();
    assert!(text.contains("reset_after=false"), "{text}");
    assert!(!text.contains("Enter") && !text.contains("Tanh"), "{text}");
    // One product has a zero in place of the biases of the state.
    assert!(text.contains("split/blockcell/Const_3 = Const(^x)"), "{text}");
    // Another variable that is read a second time.
    let again = (
        "w_c = StridedSlice(w_h,",
        "w_h_again = ReadVariableOp(recurrent_in, ^pivot)\nw_c = StridedSlice(w_h_again,",
    );
    let text = rewriting(&with(&reset_before(), &[known, again])).text();
    assert!(text.contains("reset_after=false"), "{text}");
    let of_x = (
        "w_c = StridedSlice(w_h,",
        "other = ReadVariableOp(kernel_in, ^pivot)\nw_c = StridedSlice(other,",
    );
    stays(&reset_before(), &[known, of_x]);
    // There may be more columns than three parts, in the last one.
    stays(&reset_before(), &[]);
    let wide = ("recurrent = VarHandleOp()", "recurrent = VarHandleOp() shape=[5,16]");
    stays(&reset_before(), &[wide]);
    stays(&reset_before(), &[known, ("Mul(r, h_switch:1)", "Mul(r, of_h)")]);
    stays(&reset_before(), &[known, ("Mul(r, h_switch:1)", "Mul(z, h_switch:1)")]);
    stays(
        &reset_before(),
        &[known, ("w_c = StridedSlice(w_h, at_2,", "w_c = StridedSlice(w_h, at_1,")],
    );
}

#[test]
fn gates_may_be_hard() {
    for step in [GRU.to_owned(), reset_before()] {
        let known = ("recurrent = VarHandleOp()", "recurrent = VarHandleOp() shape=[5,15]");
        let changes = [&HARD_GATES[..], &[known]].concat();
        let text = rewriting(&with(&step, &changes)).text();
        assert!(text.contains("recurrent_activation=\"hard_sigmoid\""), "{text}");
        for near in [
            ("three = Const(^pivot) value=3.0", "three = Const(^pivot) value=3.000001"),
            ("value=0.16666667", "value=0.166667"),
            ("AddV2(split, three)", "AddV2(three, three)"),
            ("AddV2(z_three, h_z)", "AddV2(z_three, z_three)"),
        ] {
            let changes: Vec<_> =
                changes.iter().map(|&(from, to)| (from, to.replace(near.0, near.1))).collect();
            let changes: Vec<_> = changes.iter().map(|(from, to)| (*from, &to[..])).collect();
            stays(&step, &changes);
        }
    }
}

#[test]
fn there_may_be_no_bias() {
    let known = ("recurrent = VarHandleOp()", "recurrent = VarHandleOp() shape=[5,20]");
    let without =
        [("biased = BiasAdd(sum, b)", ""), ("Split(one, biased)", "Split(one, sum)"), known];
    let unread = [
        ("b = ReadVariableOp(bias_in, ^pivot)", ""),
        ("NoOp(^w_x, ^w_h, ^b)", "NoOp(^w_x, ^w_h)"),
        ("bias_in = Enter(bias) frame_name=\"loop\" is_constant=true", ""),
    ];
    let changes = [&without[..], &unread].concat();
    let text = rewriting(&with(LSTM, &changes)).text();
    assert!(
        text.contains("BlockcellKerasLSTM(") && text.contains("split/blockcell/Const_2)"),
        "{text}"
    );
    // The number of columns is not known.
    let unknown = [&without[..2], &unread].concat();
    assert!(!rewriting(&with(LSTM, &unknown)).text().contains("BlockcellKeras"));
}
