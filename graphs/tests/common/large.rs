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

/// Forward steps of a cell that follow each other without a loop, with one reader of the last output; with their
/// backward steps and all gradients, if `trains`. Text of one step comes from `forward` and `backward`.
fn unrolled(
    steps: usize,
    trains: bool,
    forward: fn(usize) -> String,
    backward: fn(usize) -> String,
    before: &str,
    after: &str,
) -> String {
    let mut text = format!("{before}x = Unpack(all_x) num={steps} axis=0\n");
    (0..steps).for_each(|number| text += &forward(number + 1));
    let _ = writeln!(text, "y = Apply(h{steps})");
    if trains {
        let _ = writeln!(text, "dh{steps} = Other(y)");
        (0..steps).rev().for_each(|number| text += &backward(number + 1));
        let list = |of: &str| {
            let names: Vec<_> = (1..=steps).map(|number| format!("{of}{number}")).collect();
            names.join(", ")
        };
        for sum in after.split(' ') {
            let _ = writeln!(text, "all_{sum} = AddN({})\nout_{sum} = Apply(all_{sum})", list(sum));
        }
    }
    text
}

/// `tf.nn.static_rnn` of so many steps of `BasicLSTMCell`.
pub(crate) fn unrolled_lstm(steps: usize, trains: bool) -> String {
    let forward = |t: usize| {
        let before = t - 1;
        format!(
            "xh{t} = concat(x:{before}, h{before})
            z{t} = _FusedMatMul(xh{t}, w, b) fused_ops=[\"BiasAdd\"]
            split{t} = Split(axis, z{t}) num_split=4
            i{t} = Sigmoid(split{t})
            ci{t} = Tanh(split{t}:1)
            biased{t} = Add(split{t}:2, forget_bias)
            f{t} = Sigmoid(biased{t})
            o{t} = Sigmoid(split{t}:3)
            kept{t} = Mul(cs{before}, f{t})
            new{t} = Mul(i{t}, ci{t})
            cs{t} = AddV2(kept{t}, new{t})
            co{t} = Tanh(cs{t})
            h{t} = Mul(co{t}, o{t})\n"
        )
    };
    let backward = |t: usize| {
        let before = t - 1;
        format!(
            "through_h{t} = Mul(dh{t}, o{t})
            through_co{t} = TanhGrad(co{t}, through_h{t})
            dcs_sum{t} = AddN(through_co{t}, dcs{t}) N=2
            to_o{t} = Mul(dh{t}, co{t})
            to_i{t} = Mul(dcs_sum{t}, ci{t})
            to_ci{t} = Mul(dcs_sum{t}, i{t})
            to_f{t} = Mul(dcs_sum{t}, cs{before})
            dcs{before} = Mul(dcs_sum{t}, f{t})
            do{t} = SigmoidGrad(o{t}, to_o{t})
            di{t} = SigmoidGrad(i{t}, to_i{t})
            dci{t} = TanhGrad(ci{t}, to_ci{t})
            df{t} = SigmoidGrad(f{t}, to_f{t})
            dz{t} = ConcatV2(di{t}, dci{t}, df{t}, do{t}, axis)
            p{t} = MatMul(xh{t}, dz{t}) transpose_a=true
            r{t} = BiasAddGrad(dz{t})
            dxh{t} = MatMul(dz{t}, w) transpose_b=true
            dx{t} = columns(dxh{t}, 0, 200)
            dh{before} = columns(dxh{t}, 200, 200)
            out{t} = Apply(dx{t})\n"
        )
    };
    unrolled(steps, trains, forward, backward, "forget_bias = Const() value=1.0\n", "p r")
}

/// The same of `GRUCell`.
pub(crate) fn unrolled_gru(steps: usize, trains: bool) -> String {
    let before = "w_ru_handle = VarHandleOp() shape=[7,8]
        w_c_handle = VarHandleOp() shape=[7,4]
        b_ru = Placeholder() shape=[8]
        b_c = Placeholder() shape=[4]
        w_ru = ReadVariableOp(w_ru_handle)
        w_c = ReadVariableOp(w_c_handle)
        one = Const() value=1.0\n";
    let forward = |t: usize| {
        let before = t - 1;
        format!(
            "xh{t} = concat(x:{before}, h{before})
            z{t} = _FusedMatMul(xh{t}, w_ru, b_ru) fused_ops=[\"BiasAdd\"]
            gates{t} = Sigmoid(z{t})
            split{t} = Split(axis, gates{t}) num_split=2
            hr{t} = Mul(h{before}, split{t})
            xhr{t} = concat(x:{before}, hr{t})
            z_c{t} = _FusedMatMul(xhr{t}, w_c, b_c) fused_ops=[\"BiasAdd\"]
            c{t} = Tanh(z_c{t})
            rest{t} = Sub(one, split{t}:1)
            kept{t} = Mul(split{t}:1, h{before})
            new{t} = Mul(rest{t}, c{t})
            h{t} = AddV2(kept{t}, new{t})\n"
        )
    };
    let backward = |t: usize| {
        let before = t - 1;
        format!(
            "d_c{t} = Mul(dh{t}, rest{t})
            d_c_bar{t} = TanhGrad(c{t}, d_c{t})
            dxhr{t} = MatMul(d_c_bar{t}, w_c) transpose_b=true
            dx_c{t} = columns(dxhr{t}, 0, 3)
            d_hr{t} = columns(dxhr{t}, 3, 4)
            du_kept{t} = Mul(dh{t}, h{before})
            du_new{t} = Mul(dh{t}, c{t})
            negative{t} = Neg(du_new{t})
            du{t} = AddN(du_kept{t}, negative{t}) N=2
            dh_u{t} = Mul(dh{t}, split{t}:1)
            dr{t} = Mul(d_hr{t}, h{before})
            dhr_r{t} = Mul(d_hr{t}, split{t})
            both{t} = ConcatV2(dr{t}, du{t}, axis)
            d_ru_bar{t} = SigmoidGrad(gates{t}, both{t})
            dxh{t} = MatMul(d_ru_bar{t}, w_ru) transpose_b=true
            dx{t} = columns(dxh{t}, 0, 3)
            dh_x{t} = columns(dxh{t}, 3, 4)
            dh{before} = AddN(dh_u{t}, dhr_r{t}, dh_x{t}) N=3
            p_ru{t} = MatMul(xh{t}, d_ru_bar{t}) transpose_a=true
            p_c{t} = MatMul(xhr{t}, d_c_bar{t}) transpose_a=true
            r_ru{t} = BiasAddGrad(d_ru_bar{t})
            r_c{t} = BiasAddGrad(d_c_bar{t})
            out{t} = Apply(dx{t}, dx_c{t})\n"
        )
    };
    unrolled(steps, trains, forward, backward, before, "p_ru p_c r_ru r_c")
}
