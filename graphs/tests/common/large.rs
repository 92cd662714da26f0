//! Large graphs, as text in the [notation](super::notation) of tests.

use std::fmt::Write;

/// The product of one step of one cell, and its bias' gradient, as `p` and `b`.
fn step(text: &mut String, name: &str) {
    let _ = writeln!(
        text,
        "cell{name} = lstm(x{name}, h{name}, w, bias)
        left{name} = concat(x{name}, h{name})
        p{name} = product(left{name}, cell{name})"
    );
}

/// Products of so many steps, added up one by one.
pub(crate) fn chain_of_sums(steps: usize) -> String {
    let mut text = String::new();
    step(&mut text, "0");
    let mut sum = "p0".to_owned();
    for number in 1..steps {
        step(&mut text, &number.to_string());
        let _ = writeln!(text, "sum{number} = Add({sum}, p{number})");
        sum = format!("sum{number}");
    }
    text + &format!("out = Apply({sum})")
}

/// Products of so many steps, added up in pairs, the sums in pairs, and so on.
pub(crate) fn tree_of_sums(steps: usize) -> String {
    let mut text = String::new();
    let mut level: Vec<_> = (0..steps).map(|number| format!("p{number}")).collect();
    (0..steps).for_each(|number| step(&mut text, &number.to_string()));
    let mut sums = 0;
    while level.len() > 1 {
        let mut pair = |pair: &[String]| match pair {
            [left, right] => {
                sums += 1;
                let _ = writeln!(text, "sum{sums} = Add({left}, {right})");
                format!("sum{sums}")
            }
            other => other[0].clone(),
        };
        level = level.chunks(2).map(&mut pair).collect();
    }
    text + &format!("out = Apply({})", level[0])
}

/// One product below so many sums that add nothing but other tensors.
pub(crate) fn product_below_sums(sums: usize) -> String {
    let mut text = String::new();
    step(&mut text, "");
    let mut below = "p".to_owned();
    for number in 0..sums {
        let _ = writeln!(text, "sum{number} = Add({below}, w)");
        below = format!("sum{number}");
    }
    text + &format!("out = Apply({below})")
}

/// The backward steps of a layer of cells over time, with the gradients of its weights, its bias and
/// its inputs.
pub(crate) fn training(steps: usize) -> String {
    let mut text = String::new();
    let list = |of: &str| {
        let names: Vec<_> = (0..steps).map(|number| format!("{of}{number}")).collect();
        names.join(", ")
    };
    for number in 0..steps {
        step(&mut text, &number.to_string());
        let _ = writeln!(
            text,
            "b{number} = bias_grad(cell{number})
            q{number} = dx_dh(cell{number})
            group{number} = NoOp(^cell{number}, ^left{number})
            dx{number} = columns(q{number}, 0, 200, ^cell{number})
            dh{number} = columns(q{number}, 200, 200, ^cell{number})
            out{number} = Apply(dx{number}, dh{number}, ^group{number})"
        );
    }
    let (products, row_sums) = (list("p"), list("b"));
    text + &format!(
        "w_grad = AddN({products})
        b_grad = AddN({row_sums})
        trained = Apply(w_grad, b_grad)"
    )
}

/// One cell among so many other nodes, some of them sums and products.
pub(crate) fn one_cell_among(nodes: usize) -> String {
    let mut text = training(1);
    let mut last = "start".to_owned();
    for number in 0..nodes {
        let op =
            ["Add", "MatMul", "Identity", "Mul", "AddN", "ConcatV2", "Merge", "Slice"][number % 8];
        let inputs = match op {
            "Identity" => last.clone(),
            "Slice" | "ConcatV2" => format!("{last}, other, axis"),
            _ => format!("{last}, other"),
        };
        let _ = writeln!(text, "\nn{number} = {op}({inputs})");
        last = format!("n{number}");
    }
    text
}
