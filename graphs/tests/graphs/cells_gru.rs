//! Steps of plain GRU cells.

use crate::common::rewriting::{Rewriting, rewriting};

pub(super) const FORWARD: &str = "w_ru = VarHandleOp() shape=[7,8]
    w_c = VarHandleOp() shape=[7,4]
    b_ru = Placeholder() shape=[8]
    b_c = Placeholder() shape=[4]
    read_ru = ReadVariableOp(w_ru)
    read_c = ReadVariableOp(w_c)
    one = Const() value=1.0
    concat_ru = concat(x, h)
    z = _FusedMatMul(concat_ru, read_ru, b_ru) fused_ops=[\"BiasAdd\"]
    gates = Sigmoid(z)
    split = Split(axis, gates) num_split=2
    hr = Mul(h, split)
    concat_c = concat(x, hr)
    z_c = _FusedMatMul(concat_c, read_c, b_c) fused_ops=[\"BiasAdd\"]
    c = Tanh(z_c)
    rest = Sub(one, split:1)
    kept = Mul(split:1, h)
    new = Mul(rest, c)
    next = AddV2(kept, new)
    y = Neg(next)\n";

pub(super) const BACKWARD: &str = "d_c = Mul(dh, rest)
    d_c_bar = TanhGrad(c, d_c)
    d_hr = Other(d_c_bar)
    du_kept = Mul(dh, h)
    du_new = Mul(dh, c)
    negative = Neg(du_new)
    du = AddN(du_kept, negative) N=2
    dh_u = Mul(dh, split:1)
    dr = Mul(d_hr, h)
    dhr_r = Mul(d_hr, split)
    both = ConcatV2(dr, du, axis)
    d_ru_bar = SigmoidGrad(gates, both)
    out = Pack(d_ru_bar, dh_u, dhr_r)\n";

pub(super) const CELL: &str =
    "next = GRUBlockCell(x, h, read_ru, read_c, b_ru, b_c) _kernel=\"blockcell\"\n";

fn stays(text: &str) -> Rewriting {
    rewriting(text).stays()
}

#[test]
fn a_forward_step_becomes_a_block_cell() {
    let after = rewriting(FORWARD);
    assert!(after.text().contains(CELL.trim()), "{}", after.text());
    assert!(after.text().contains("y = Neg(next:3)"), "{}", after.text());
    assert!(!after.has("gates") && !after.has("concat_c") && !after.has("rest"));
}

#[test]
fn a_backward_step_becomes_two_nodes() {
    let after = rewriting(&(FORWARD.to_owned() + BACKWARD));
    let text = after.text();
    for line in [
        CELL,
        "d_c_bar = BlockcellGRUCellGradC(next:1, h, next:2, dh)",
        "d_hr = Other(d_c_bar)",
        "d_ru_bar = BlockcellGRUCellGradRU(next, h, d_c_bar:1, d_hr)",
        "out = Pack(d_ru_bar, d_c_bar:2, d_ru_bar:1)",
    ] {
        assert!(text.contains(line.trim()), "{line}\n{text}");
    }
    assert!(!after.has("du") && !after.has("negative") && !after.has("rest"), "{text}");
}

/// One state of one column, or one unit, could be broadcast.
/// On processors with AVX-512, TensorFlow 2 fuses the activations with the products.
#[test]
fn activations_may_be_fused() {
    let mut text = FORWARD.to_owned() + BACKWARD;
    for (z, activation, name) in [("z", "Sigmoid", "gates"), ("z_c", "Tanh", "c")] {
        let line = format!("{name} = {activation}({z})");
        assert!(text.contains(&line));
        text = text.replace(&line, "");
        text = text.replace(&format!(" {z} = _Fused"), &format!(" {name} = _Fused"));
        let fused = format!("fused_ops=[\"BiasAdd\",\"{activation}\"]");
        let start = text.find(&format!(" {name} = _Fused")).expect("it was put there");
        let plain = "fused_ops=[\"BiasAdd\"]";
        let place = start + text[start..].find(plain).expect("it has one");
        text.replace_range(place..place + plain.len(), &fused);
    }
    let after = rewriting(&text);
    for line in [CELL.trim(), "d_c_bar = BlockcellGRUCellGradC(next:1, h, next:2, dh)"] {
        assert!(after.text().contains(line), "{}", after.text());
    }
    let other = rewriting(&text.replace("\"Tanh\"", "\"Elu\""));
    assert!(!other.text().contains("GRUBlockCell"), "{}", other.text());
}

#[test]
fn the_shapes_of_weights_tell_those_of_the_state() {
    for (from, to) in [
        ("w_c = VarHandleOp() shape=[7,4]", "w_c = VarHandleOp()"),
        ("w_ru = VarHandleOp() shape=[7,8]", "w_ru = VarHandleOp() shape=[4,8]"),
        ("shape=[7,8]", "shape=[7,4]"),
    ] {
        assert!(FORWARD.contains(from), "{from}");
        stays(&FORWARD.replace(from, to));
    }
    stays(&FORWARD.replace("shape=[7,8]", "shape=[7,2]").replace("shape=[7,4]", "shape=[7,1]"));
    // A function takes its variables.
    let taken = FORWARD.replace("VarHandleOp() shape=", "_Arg() _handle_shapes=");
    assert!(rewriting(&taken).text().contains(CELL.trim()));
    stays(&taken.replace("_handle_shapes=[7,8]", "_handle_shapes=[7,4]"));
    stays(&taken.replace("_handle_shapes=[7,8]", "_handle_shapes=?"));
}

#[test]
fn other_equations_stay() {
    for (from, to) in [
        ("c = Tanh(", "c = Elu("),
        ("value=1.0", "value=2.0"),
        ("hr = Mul(h, split)", "hr = Mul(h, split:1)"),
        ("concat(x, hr)", "concat(x2, hr)"),
        ("kept = Mul(split:1, h)", "kept = Mul(split:1, h2)"),
        ("next = AddV2(kept, new)", "next = Sub(kept, new)"),
        ("gates = Sigmoid(z)", "gates = Relu(z)"),
        ("y = Neg(next)", "y = Neg(next)\nmore = Neg(z_c)"),
        ("y = Neg(next)", "y = Neg(next)\nmore = Neg(gates)"),
    ] {
        assert!(FORWARD.contains(from), "{from}");
        stays(&FORWARD.replace(from, to));
    }
    for (from, to) in [
        ("negative = Neg(du_new)", "negative = Identity(du_new)"),
        ("d_c = Mul(dh, rest)", "d_c = Mul(dh2, rest)"),
        ("dr = Mul(d_hr, h)", "dr = Mul(d_hr, h2)"),
        ("ConcatV2(dr, du, axis)", "ConcatV2(du, dr, axis)"),
    ] {
        assert!(BACKWARD.contains(from), "{from}");
        let after = rewriting(&(FORWARD.to_owned() + &BACKWARD.replace(from, to)));
        assert!(after.has("du") && after.has("rest"), "{from}: {}", after.text());
    }
}

/// `GRUBlockCell` has no half.
#[test]
fn half_has_a_cell_of_its_own() {
    let typed = |line: &str| match line.contains("Op(") || line.contains("Const(") {
        true => format!("{line}\n"),
        false => format!("{line} T=half\n"),
    };
    let text: String = (FORWARD.to_owned() + BACKWARD).lines().map(typed).collect();
    let more = "dw_c = MatMul(concat_c, d_c_bar) transpose_a=true T=half
        dw_ru = MatMul(concat_ru, d_ru_bar) transpose_a=true T=half\n";
    let after = rewriting(&(text + more));
    for line in [
        "next = BlockcellGRUCell(x, h, read_ru, read_c, b_ru, b_c) T=half",
        "d_c_bar = BlockcellGRUCellGradC(next:1, h, next:2, dh) T=half",
        "dw_ru = BlockcellMatMulAddN(x, h, d_ru_bar) T=half num_a=2 num_b=1 num_addends=0",
    ] {
        assert!(after.text().contains(line), "{line}\n{}", after.text());
    }
}

/// A step whose state is zero, as TensorFlow's optimizers leave it.
fn folded(changes: &[(&str, &str)]) -> Rewriting {
    let mut text = FORWARD.to_owned() + BACKWARD;
    let zeros = [
        ("concat_ru = concat(x, h)", "h = Const() value=zeros\nconcat_ru = concat(x, h)"),
        ("hr = Mul(h, split)", "hr = Const(^split) value=zeros"),
        ("kept = Mul(split:1, h)\n", ""),
        ("next = AddV2(kept, new)\n", ""),
        ("new = Mul(rest, c)", "next = Mul(rest, c)"),
        ("du_kept = Mul(dh, h)", "du_kept = Const(^dh) value=zeros"),
        ("dh_u = Mul(dh, split:1)\n", ""),
        ("dr = Mul(d_hr, h)", "dr = Const(^d_hr) value=zeros"),
        ("dhr_r = Mul(d_hr, split)\n", ""),
        ("Pack(d_ru_bar, dh_u, dhr_r)", "Pack(d_ru_bar, d_hr)"),
    ];
    for (from, to) in zeros.iter().chain(changes) {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    rewriting(&text)
}

#[test]
fn a_state_of_zeros_may_be_folded_away() {
    let after = folded(&[]);
    for line in [
        CELL,
        "y = Neg(next:3)",
        "d_c_bar = BlockcellGRUCellGradC(next:1, h, next:2, dh)",
        "d_ru_bar = BlockcellGRUCellGradRU(next, h, d_c_bar:1, dr",
        "out = Pack(d_ru_bar, d_hr)",
    ] {
        assert!(after.text().contains(line.trim()), "{line}\n{}", after.text());
    }
    assert!(!after.has("du") && !after.has("rest") && !after.has("gates"), "{}", after.text());
}

#[test]
fn a_state_that_is_not_zero_is_not_folded_away() {
    let other = folded(&[("h = Const() value=zeros\n", "")]);
    assert!(other.has("rest") && other.has("gates"), "{}", other.text());
    let other = folded(&[("hr = Const(^split) value=zeros", "hr = Neg(split)")]);
    assert!(other.has("rest") && other.has("gates"), "{}", other.text());
    for (from, to) in [
        ("du_kept = Const(^dh) value=zeros", "du_kept = Neg(dh)"),
        ("dr = Const(^d_hr) value=zeros", "dr = Neg(d_hr)"),
    ] {
        let other = folded(&[(from, to)]);
        assert!(other.has("du"), "{}", other.text());
    }
}
