//! Loops of Keras's layers for a batch of one row: Keras 3 takes the product of the state for a bias.

use super::keras::{LSTM, MASK, masked, stays, with};
use crate::common::rewriting::rewriting;

/// The pre-activations; the state, and the input that tells the number of rows.
const ONE_ROW: [(&str, &str); 3] = [
    ("sum = AddV2(of_x, of_h)", "row = Squeeze(of_h)\nsum = BiasAdd(of_x, row)"),
    ("zeros = Fill(sizes, nothing)", "zeros = Placeholder() shape=[1,5]"),
    ("x_shape = Const() T=int32 value=[-1,3]", "x_shape = Const() T=int32 value=[1,3]"),
];

#[test]
fn a_batch_of_one_row_becomes_a_layer() {
    let fused = [
        ("of_x = MatMul(x_t, w_x)\n", ""),
        (
            "sum = AddV2(of_x, of_h)",
            "row = Squeeze(of_h)\nsum = _FusedMatMul(x_t, w_x, row) fused_ops=[\"BiasAdd\"]",
        ),
        ONE_ROW[1],
        ONE_ROW[2],
    ];
    for changes in [&ONE_ROW[..], &fused[..]] {
        let text = rewriting(&with(LSTM, changes)).text();
        assert!(
            text.contains("split = BlockcellKerasLSTM(") && text.contains("x_sizes=[1,3]"),
            "{text}"
        );
    }
}

/// TensorFlow refuses such a product of several rows.
#[test]
fn other_batches_stay() {
    let with_rows = |state: &'static str, x: &'static str| {
        [ONE_ROW[0], (ONE_ROW[1].0, state), (ONE_ROW[2].0, x)]
    };
    let (state, x) = (ONE_ROW[1].1, ONE_ROW[2].1);
    for state in ["zeros = Fill(sizes, nothing)", "zeros = Placeholder() shape=[4,5]"] {
        stays(LSTM, &with_rows(state, x));
    }
    for rows in ["x_shape = Const() T=int32 value=[-1,3]", "x_shape = Const() T=int32 value=[4,3]"]
    {
        stays(LSTM, &with_rows(state, rows));
    }
    let other = (
        "sum = AddV2(of_x, of_h)",
        "row = Squeeze(of_h)\nrows = AddV2(row, row)\nsum = BiasAdd(of_x, rows)",
    );
    stays(LSTM, &[other, ONE_ROW[1], ONE_ROW[2]]);
    let of_x = ("sum = AddV2(of_x, of_h)", "row = Squeeze(c_switch:1)\nsum = BiasAdd(of_x, row)");
    stays(LSTM, &[of_x, ONE_ROW[1], ONE_ROW[2]]);
}

/// A mask of several rows makes as many of the state.
#[test]
fn the_mask_has_one_row() {
    let step = format!("{LSTM}{MASK}");
    let changes = [&ONE_ROW[..], &masked()].concat();
    stays(&step, &changes);
    let one =
        ("mask_shape = Const() T=int32 value=[-1,1]", "mask_shape = Const() T=int32 value=[1,1]");
    let text = rewriting(&with(&step, &[&changes[..], &[one]].concat())).text();
    assert!(text.contains("split = BlockcellKerasLSTM(") && text.contains("num_mask=1"), "{text}");
}
