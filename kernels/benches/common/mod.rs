//! What the benches have in common.

use std::time::Duration;

use criterion::Criterion;

/// Measurements of about a second, of so many samples.
pub(crate) fn short(samples: usize) -> Criterion {
    Criterion::default()
        .sample_size(samples)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .nresamples(2_000)
}
