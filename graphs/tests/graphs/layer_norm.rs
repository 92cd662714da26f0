//! Normalizations whose gradient is taken.

use crate::common::notation::graph;
use crate::common::rewriting::rewriting;
use crate::mutations::{Pattern, check, nodes_of, replaced, wrong};
use crate::normalized::norm;

const CONSTANTS: &str = "axes = Const() T=int32 value=[1]
    first = Const() T=int32 value=[0]
    epsilon = Const() value=0.001
    two = Const() value=2.0\n";

/// Of a graph that knows all shapes.
const KNOWN: &str = "dbeta_sum = Sum(dy, first)
    dbeta = Reshape(dbeta_sum, vector)
    of_x = Mul(dy, y_inverse)
    of_inverse = Mul(dy, x)
    negative = Neg(dy)
    of_mean = Mul(y_inverse, negative)
    of_inverse_too = Mul(y_mean, negative)
    dmean_sum = Sum(of_mean, axes)
    dmean = Reshape(dmean_sum, column)
    dinverse = AddN(of_inverse, of_inverse_too)
    of_scale = Mul(dinverse, y_gamma)
    dscale_sum = Sum(of_scale, axes)
    dscale = Reshape(dscale_sum, column)
    of_gamma = Mul(dinverse, y_scale)
    dgamma_sum = Sum(of_gamma, first)
    dgamma = Reshape(dgamma_sum, vector)
    dvariance = RsqrtGrad(y_scale, dscale)
    dvariance_column = Reshape(dvariance, column)
    dvariance_all = Tile(dvariance_column, times)
    dvariance_share = Mul(share, dvariance_all)
    dmean_all = Tile(dmean, times)
    dmean_share = Mul(share, dmean_all)
    centered = Sub(x, y_mean)
    twice = Mul(two, dvariance_share)
    of_squares = Mul(twice, centered)
    dx = AddN(of_x, of_squares, dmean_share)
    vector = Const() T=int32 value=[2]
    column = Const() T=int32 value=[3,1]
    times = Const() T=int32 value=[1,2]
    share = Const() value=0.5\n";

/// The gradient of a broadcast: `to` from `from`, by the shapes of the tensor and of another one.
fn summed(to: &str, from: &str, shapes: [&str; 2]) -> String {
    let [own, other] = shapes.map(|of| format!("{to}_{of}_shape"));
    let shape = |name: &str, of: &str| match of {
        "number" => format!("{name} = Const() T=int32 value=[]\n"),
        _ => format!("{name} = Shape({of})\n"),
    };
    shape(&own, shapes[0])
        + &(if own == other { String::new() } else { shape(&other, shapes[1]) })
        + &format!(
            "{to}_axes = BroadcastGradientArgs({own}, {other})
        {to}_sum = Sum({from}, {to}_axes)
        {to} = Reshape({to}_sum, {own})\n"
        )
}

/// The gradient of a mean.
fn spread(to: &str, from: &str, shape_of: &str, means: &str) -> String {
    format!(
        "{to}_shape = Shape({shape_of})
        {to}_means = Shape({means})
        {to}_ones = Fill(one, unit)
        {to}_kept = DynamicStitch(both_axes, axes, {to}_shape, {to}_ones)
        {to}_column = Reshape({from}, {to}_kept)
        {to}_most = Maximum({to}_kept, unit)
        {to}_times = FloorDiv({to}_shape, {to}_most)
        {to}_all = Tile({to}_column, {to}_times)
        {to}_size = Prod({to}_shape, first)
        {to}_mean_size = Prod({to}_means, first)
        {to}_most_means = Maximum({to}_mean_size, unit)
        {to}_number = FloorDiv({to}_size, {to}_most_means)
        {to}_count = Cast({to}_number)
        {to} = RealDiv({to}_all, {to}_count)\n"
    )
}

/// Of a graph that knows no shape but those of gamma and beta.
fn open() -> String {
    let dy = summed("dscaled", "dy", ["y_scaled", "y_offset"])
        + &summed("doffset", "dy", ["y_offset", "y_scaled"])
        + &summed("dbeta", "doffset", ["y_beta", "y_moved"])
        + "negative = Neg(doffset)\n"
        + &summed("dmoved", "negative", ["y_moved", "y_beta"]);
    let inverse = "of_x = Mul(dscaled, y_inverse)
        of_inverse = Mul(dscaled, x)
        of_mean = Mul(dmoved, y_inverse)
        of_inverse_too = Mul(dmoved, y_mean)\n"
        .to_owned()
        + &summed("dx_scaled", "of_x", ["x", "y_inverse"])
        + &summed("dinverse_scaled", "of_inverse", ["y_inverse", "x"])
        + &summed("dmean", "of_mean", ["y_mean", "y_inverse"])
        + &summed("dinverse_moved", "of_inverse_too", ["y_inverse", "y_mean"])
        + "dinverse = AddN(dinverse_scaled, dinverse_moved)\n";
    let scale = "of_scale = Mul(dinverse, y_gamma)
        of_gamma = Mul(dinverse, y_scale)\n"
        .to_owned()
        + &summed("dscale", "of_scale", ["y_scale", "y_gamma"])
        + &summed("dgamma", "of_gamma", ["y_gamma", "y_scale"])
        + "drsqrt = RsqrtGrad(y_scale, dscale)\n"
        + &summed("dvariance", "drsqrt", ["y_variance", "number"]);
    let x = spread("variance_spread", "dvariance", "y_squares", "y_variance")
        + "centered = Sub(x, y_mean)
        twice = Mul(two, variance_spread)
        of_squares = Mul(twice, centered)\n"
        + &summed("dx_squares", "of_squares", ["x", "y_mean"])
        + &spread("mean_spread", "dmean", "x", "y_mean")
        + "dx = AddN(dx_scaled, dx_squares, mean_spread)
        both_axes = Const() T=int32 value=[0,1]
        one = Const() T=int32 value=[1]
        unit = Const() T=int32 value=1\n";
    dy + &inverse + &scale + &x
}

fn with(gradient: &str, [x, dy]: [&str; 2]) -> String {
    let sources = format!(
        "x = Placeholder() sizes={x}
        dy = Placeholder() sizes={dy}
        out = Apply(dx, dgamma, dbeta)\n"
    );
    CONSTANTS.to_owned() + &norm("y", "x") + gradient + &sources
}

fn pattern(text: String) -> Pattern {
    let becomes = &["BlockcellLayerNorm(x, ", "BlockcellLayerNormGrad(x, y_gamma, dy)"];
    Pattern { text, observed: &["out", "y"], becomes, stride: 2 }
}

#[test]
fn both_become_one_node() {
    for (gradient, rows) in [(KNOWN.to_owned(), "rows=3"), (open(), "rows=-1")] {
        let text = rewriting(&with(&gradient, ["[3,2]"; 2])).text();
        for want in [
            "y = BlockcellLayerNorm(x, y_gamma, y_beta) epsilon=0.001 axis=1 bias=0.0",
            &format!("dx = BlockcellLayerNormGrad(x, y_gamma, dy) epsilon=0.001 {rows}"),
            "out = Apply(dx, dx:1, dx:2)",
        ] {
            assert!(text.contains(want), "{want}\n{text}");
        }
        for gone in ["Mean(", "Rsqrt", "Mul(", "Sum(", "Shape(", "Tile(", "FloorDiv("] {
            assert!(!text.contains(gone), "{gone}\n{text}");
        }
    }
}

/// TensorFlow's optimizers put constants for shapes that they find out.
#[test]
fn shapes_may_be_constants() {
    let mut text = with(&open(), ["[3,2]"; 2]);
    for (of, sizes) in [
        ("x", "[3,2]"),
        ("y_squares", "[3,2]"),
        ("y_scaled", "[3,2]"),
        ("y_offset", "[3,2]"),
        ("y_moved", "[3,2]"),
        ("y_inverse", "[3,2]"),
        ("y_mean", "[3,1]"),
        ("y_variance", "[3,1]"),
        ("y_scale", "[3,1]"),
        ("y_gamma", "[2]"),
        ("y_beta", "[2]"),
    ] {
        let constant = format!("Const() T=int32 value={sizes}");
        text = replaced(&text, &[(&format!("Shape({of})"), &constant)]);
    }
    let after = rewriting(&text).text();
    assert!(after.contains("epsilon=0.001 rows=3"), "{after}");
    check(&Pattern { stride: 8, ..pattern(text) });
}

/// They take away a Reshape that changes nothing.
#[test]
fn sums_may_have_their_shape() {
    let text = replaced(
        &with(KNOWN, ["[3,2]"; 2]),
        &[
            ("dbeta_sum = Sum(dy, first)\n", "dbeta = Sum(dy, first)\n"),
            ("dbeta = Reshape(dbeta_sum, vector)\n", ""),
            ("dgamma_sum = Sum(of_gamma, first)\n", "dgamma = Sum(of_gamma, first)\n"),
            ("dgamma = Reshape(dgamma_sum, vector)\n", ""),
            ("dvariance_column = Reshape(dvariance, column)\n", ""),
            ("Tile(dvariance_column, times)", "Tile(dvariance, times)"),
        ],
    );
    check(&Pattern { stride: 8, ..pattern(text) });
}

/// As TensorFlow's optimizers leave a forget gate: nobody reads the normalized tensor but its sum with a number, which has
/// summands of its own, and its shape.
#[test]
fn a_number_may_be_added() {
    let more = "shifted_offset = Sub(one_half, y_moved)
        shifted_scaled = AddN(y_scaled, shifted_offset)
        shifted = Add(shifted_scaled, y_beta)
        one_half = Const() value=0.5
        sizes = Shape(y)
        seen = Apply(shifted, sizes)\n";
    let text = with(&open(), ["[3,2]"; 2]) + more;
    let after = rewriting(&text).text();
    for want in [
        "shifted = BlockcellLayerNorm(x, y_gamma, y_beta) epsilon=0.001 axis=1 bias=0.5",
        "sizes = Shape(shifted)",
    ] {
        assert!(after.contains(want), "{want}\n{after}");
    }
    check(&Pattern { observed: &["out", "seen"], stride: 16, ..pattern(text) });
}

#[test]
fn others_stay() {
    for reader in ["y_mean", "y_inverse", "y_scale", "dinverse", "dmean", "negative"] {
        let seen = format!("seen = Apply({reader})\n");
        let text = with(KNOWN, ["[3,2]"; 2]) + &seen;
        let after = rewriting(&text).text();
        let is_inside = reader.starts_with("y_");
        assert!(!is_inside || !after.contains("BlockcellLayerNorm("), "{reader}\n{after}");
        assert_eq!(wrong(nodes_of(&graph(&text)), &["out", "y", "seen"]), Some(Ok(true)));
    }
    for (from, to) in [
        ("y_gamma = Placeholder() shape=[2]", "y_gamma = Placeholder()"),
        ("y_beta = Placeholder() shape=[2]", "y_beta = Placeholder() shape=[1,2]"),
        ("share = Const() value=0.5", "share = Const() value=0.25"),
        ("times = Const() T=int32 value=[1,2]", "times = Const() T=int32 value=[1,1]"),
        ("first = Const() T=int32 value=[0]", "first = Const() T=int32 value=[1]"),
    ] {
        rewriting(&replaced(&with(KNOWN, ["[3,2]"; 2]), &[(from, to)])).stays();
    }
}

#[test]
fn near_misses_with_known_shapes() {
    check(&pattern(with(KNOWN, ["[3,2]"; 2])));
}

#[test]
fn near_misses_with_open_shapes() {
    check(&pattern(with(&open(), ["[3,2]"; 2])));
}
