//! Steps of LSTM cells whose gates have other columns than those of `BasicLSTMCell`.

use crate::common::rewriting::rewriting;
use crate::mutations::replaced;
use crate::{cells, layers};

/// A step, and perhaps its backward step, with so many gates before i, ci, f and o.
pub(super) fn in_order(text: &str, [i, ci, f, o]: [usize; 4]) -> String {
    let forward = [
        ("i0 = Sigmoid(split0)", format!("i0 = Sigmoid(split0:{i})")),
        ("ci0 = Tanh(split0:1)", format!("ci0 = Tanh(split0:{ci})")),
        ("biased0 = Add(split0:2,", format!("biased0 = Add(split0:{f},")),
        ("o0 = Sigmoid(split0:3)", format!("o0 = Sigmoid(split0:{o})")),
    ];
    let mut slopes = ["di0"; 4];
    (slopes[ci], slopes[f], slopes[o]) = ("dci0", "df0", "do0");
    let dz = format!("ConcatV2({}, axis)", slopes.join(", "));
    let mut changes: Vec<_> = forward.iter().map(|(from, to)| (*from, &to[..])).collect();
    if text.contains(CONCAT) {
        changes.push((CONCAT, &dz));
    }
    replaced(text, &changes)
}

const CONCAT: &str = "ConcatV2(di0, dci0, df0, do0, axis)";

/// All orders.
fn orders() -> Vec<[usize; 4]> {
    let all = (0..256).map(|n| [n / 64, n / 16 % 4, n / 4 % 4, n % 4]);
    all.filter(|order| (0..4).all(|place| order.contains(&place))).collect()
}

fn attribute(order: [usize; 4]) -> String {
    format!("gate_order={order:?}").replace(", ", ",")
}

fn training() -> String {
    cells::one_step(&cells::step_grad(0, "c", ["dh", "dc"])) + "y = Apply(dz0, dc0, h0)\n"
}

#[test]
fn each_order_is_read() {
    assert_eq!(orders().len(), 24);
    for order in orders() {
        let text = rewriting(&in_order(&training(), order)).text();
        for op in ["BlockcellLSTMCell(", "BlockcellLSTMCellGrad("] {
            let node = text.lines().find(|line| line.contains(op)).expect(&text);
            assert!(node.contains(&attribute(order)), "{text}");
        }
    }
}

/// A backward step whose gradients have other columns than the gates is none of this forward step.
#[test]
fn both_steps_have_one_order() {
    for order in orders().into_iter().filter(|order| *order != [0, 1, 2, 3]) {
        let text = in_order(&training(), order);
        let dz = text.lines().find(|line| line.contains("dz0 =")).expect("it is there");
        let text = rewriting(&text.replace(dz, &format!("dz0 = {CONCAT}"))).text();
        assert!(!text.contains("BlockcellLSTMCellGrad("), "{text}");
    }
}

/// A gate that is there twice is no gate of a step.
#[test]
fn each_gate_has_columns_of_its_own() {
    for order in
        [[0, 0, 2, 3], [0, 1, 0, 3], [0, 1, 2, 0], [0, 1, 1, 3], [0, 1, 2, 1], [0, 1, 2, 2]]
    {
        let step = cells::one_step("y = Neg(h0)");
        let after = rewriting(&in_order(&step, order));
        assert!(!after.text().contains("BlockcellLSTMCell"), "{}", after.text());
    }
}

#[test]
fn a_loop_has_the_order_of_its_steps() {
    let of_cell = ("cell_clip=-1.0 gate_order=[0,1,2,3]", "cell_clip=-1.0 gate_order=[0,3,1,2]");
    let text = rewriting(&layers::with(&[of_cell])).text();
    assert!(
        text.contains("BlockcellLSTMLayer(") && text.contains("gate_order=[0,3,1,2]"),
        "{text}"
    );
}
