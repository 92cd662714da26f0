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
    let errors = got.indexed_iter().map(|(at, &got)| (error(got, want[&at]), at));
    match errors.max_by(|a, b| a.0.total_cmp(&b.0)) {
        // Not `>`, which a NaN would pass.
        #[allow(clippy::neg_cmp_op_on_partial_ord)]
        Some((error, at)) if !(error <= tolerance * scale) => Err(format!(
            "{name}: scaled error {:.2e} exceeds {tolerance:.0e}, worst at {:?}: got {:e}, want {:e}",
            error / scale,
            at.as_array_view().to_vec(),
            got[&at],
            want[&at],
        )),
        _ => Ok(()),
    }
}

/// Whether two tensors are equal bit for bit, any two NaN counting as equal.
pub(crate) fn same_bits(name: &str, got: &ArrayD<f64>, want: &ArrayD<f64>) -> Result<(), String> {
    same_shape(name, got, want)?;
    let same =
        |got: f64, want: f64| got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
    let different: Vec<_> =
        want.indexed_iter().filter(|(at, want)| !same(got[at], **want)).map(|(at, _)| at).collect();
    match different.first() {
        Some(at) => Err(format!(
            "{name}: {} of {} elements differ, first at {:?}: got {:e}, want {:e}",
            different.len(),
            want.len(),
            at.as_array_view().to_vec(),
            got[at],
            want[at],
        )),
        None => Ok(()),
    }
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
