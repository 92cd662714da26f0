//! Long chains of `Add`: how much of them is taken in.

use crate::common::rewriting::rewriting;

/// `0 + p + other0 + other1 + ...`, in a chain.
fn chain(others: usize) -> String {
    let mut text = "cell1 = lstm(x1, h1)\np = product(left, cell1)\n".to_owned();
    let mut before = "p".to_owned();
    for number in 0..others {
        text += &format!("sum{number} = AddN({before}, other{number})\n");
        before = format!("sum{number}");
    }
    text + &format!("out = Apply({before})")
}

/// Others would wait in memory for the end of the chain.
#[test]
fn only_one_addition_of_others_is_taken_in() {
    let mut want =
        "sum0 = BlockcellMatMulAddN(left, cell1:1, other0) num_a=1 num_b=1 num_addends=1\n"
            .to_owned();
    for number in 1..4 {
        want += &format!("sum{number} = AddN(sum{}, other{number})\n", number - 1);
    }
    rewriting(&chain(4)).becomes(&(want + "out = Apply(sum3)"));
}

#[test]
fn one_addition_of_others_on_top_of_products_is_taken_in() {
    rewriting(
        "cell1 = lstm(x1, h1)
        cell2 = lstm(x2, h2)
        p1 = product(left1, cell1)
        p2 = product(left2, cell2)
        inner = AddN(p1, p2)
        middle = AddN(inner, other1)
        outer = AddN(middle, other2)",
    )
    .becomes(
        "middle = BlockcellMatMulAddN(left1, left2, cell1:1, cell2:1, other1) num_a=2 num_b=2 num_addends=1
        outer = AddN(middle, other2)",
    );
}

#[test]
fn a_sum_with_many_more_others_than_products_stays() {
    let text = |others: usize| {
        let others: Vec<_> = (0..others).map(|number| format!("other{number}")).collect();
        format!(
            "cell1 = lstm(x1, h1)
            p = product(left, cell1)
            sum = AddN(p, {})",
            others.join(", ")
        )
    };
    rewriting(&text(8)).reports("sum becomes BlockcellMatMulAddN (parts: 1)");
    rewriting(&text(9))
        .stays()
        .reports("p (MatMul) is not rewritten: the sum has too many inputs that are not products");
}

#[test]
fn a_chain_of_thousands_of_others_keeps_all_but_the_first() {
    let rewriting = rewriting(&chain(3000));
    assert!(!rewriting.has("p"));
    rewriting.reports("sum0 becomes BlockcellMatMulAddN (parts: 1)");
}

/// A product at each end: between them lies what would have to be kept.
#[test]
fn a_chain_of_thousands_of_others_between_two_products_stays() {
    let end = "last = AddN(sum2999, q)\nq = product(left, cell1)";
    let rewriting = rewriting(&chain(3000).replace("out = Apply(sum2999)", end)).stays();
    rewriting.reports_among_others(
        "p (MatMul) is not rewritten: the sum has too many inputs that are not products
        q (MatMul) is not rewritten: the sum has too many inputs that are not products",
    );
}
