//! Comparisons that say what differs and where, and a list of all that failed.

use std::fmt::Display;

use ndarray::{ArrayD, Axis, Dimension};

/// All failing cases of a test that goes through many.
#[derive(Default)]
pub(crate) struct Failures {
    cases: usize,
    messages: Vec<String>,
}

impl Failures {
    /// Counts a case, and notes its failure.
    pub(crate) fn note(&mut self, case: impl Display, result: Result<(), String>) {
        self.cases += 1;
        if let Err(message) = result {
            self.messages.push(format!("{case}: {message}"));
        }
    }

    /// [`Failures::note`] for cases that are many and take long to describe.
    pub(crate) fn note_as(&mut self, case: impl Fn() -> String, result: Result<(), String>) {
        self.cases += 1;
        if let Err(message) = result {
            self.messages.push(format!("{}: {message}", case()));
        }
    }

    /// Counts a case that fails unless `right`.
    pub(crate) fn check(&mut self, case: impl Display, right: bool, message: impl Display) {
        self.note(case, if right { Ok(()) } else { Err(message.to_string()) });
    }

    /// Panics with the failed cases, if there are any, or if there were no cases at all.
    #[track_caller]
    pub(crate) fn finish(self) {
        const SHOWN: usize = 50;
        let Failures { cases, messages } = self;
        assert!(cases > 0, "no case was tested");
        let shown = messages[..messages.len().min(SHOWN)].join("\n  ");
        let failed = messages.len();
        assert!(failed == 0, "{failed} of {cases} cases failed:\n  {shown}");
    }
}

/// The largest finite magnitude in `tensor`.
pub(crate) fn scale(tensor: &ArrayD<f64>) -> f64 {
    tensor.iter().filter(|v| v.is_finite()).fold(0.0, |max, v| v.abs().max(max))
}

/// Whether `max|got - want| <= tolerance * max|want|`, and NaN and infinities are where `want` has
/// them.
pub(crate) fn close(
    name: &str,
    got: &ArrayD<f64>,
    want: &ArrayD<f64>,
    tolerance: f64,
) -> Result<(), String> {
    close_to_scale(name, got, want, tolerance, scale(want))
}

/// [`close`] with the error measured against a given `scale` instead of `max|want|`.
pub(crate) fn close_to_scale(
    name: &str,
    got: &ArrayD<f64>,
    want: &ArrayD<f64>,
    tolerance: f64,
    scale: f64,
) -> Result<(), String> {
    same_shape(name, got, want)?;
    let error = |got: f64, want: f64| match want {
        _ if want.is_nan() && got.is_nan() => 0.0,
        _ if want.is_finite() && got.is_finite() => (got - want).abs(),
        _ if want == got => 0.0,
        _ => f64::INFINITY,
    };
    let errors = got.iter().zip(want).map(|(&got, &want)| error(got, want));
    match errors.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)) {
        // Not `>`, which a NaN would pass.
        #[allow(clippy::neg_cmp_op_on_partial_ord)]
        Some((n, error)) if !(error <= tolerance * scale) => Err(format!(
            "{name}: scaled error {:.2e} exceeds {tolerance:.0e}, worst at {}",
            error / scale,
            both_at(n, got, want),
        )),
        _ => Ok(()),
    }
}

/// Whether two tensors are equal bit for bit, any two NaN counting as equal.
pub(crate) fn same_bits(name: &str, got: &ArrayD<f64>, want: &ArrayD<f64>) -> Result<(), String> {
    same_shape(name, got, want)?;
    let same =
        |got: f64, want: f64| got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
    let pairs = got.iter().zip(want).enumerate();
    let different: Vec<_> = pairs.filter(|(_, (got, want))| !same(**got, **want)).collect();
    match different.first() {
        Some((n, _)) => Err(format!(
            "{name}: {} of {} elements differ, first at {}",
            different.len(),
            want.len(),
            both_at(*n, got, want),
        )),
        None => Ok(()),
    }
}

/// Where element `n` of two tensors of one shape is, counted in row-major order, and what they have there.
fn both_at(n: usize, got: &ArrayD<f64>, want: &ArrayD<f64>) -> String {
    let (at, got) = got.indexed_iter().nth(n).expect("an element");
    format!("{:?}: got {got:e}, want {:e}", at.as_array_view().to_vec(), want[&at])
}

fn same_shape(name: &str, got: &ArrayD<f64>, want: &ArrayD<f64>) -> Result<(), String> {
    if got.shape() == want.shape() {
        return Ok(());
    }
    Err(format!("{name}: got shape {:?}, want {:?}", got.shape(), want.shape()))
}

/// Rows `rows` of a tensor whose rows are along `axis`.
pub(crate) fn rows_of(tensor: &ArrayD<f64>, axis: Axis, rows: &[usize]) -> ArrayD<f64> {
    tensor.select(axis, rows).as_standard_layout().into_owned()
}
