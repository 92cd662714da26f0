//! Random tensors of realistic magnitude.

use std::fmt;

use ndarray::{ArrayD, IxDyn};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// The sizes of a call. Operations of one step ignore `time`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) time: usize,
    pub(crate) batch: usize,
    pub(crate) input_size: usize,
    pub(crate) cell_size: usize,
}

impl Sizes {
    pub(crate) const fn new(
        time: usize,
        batch: usize,
        input_size: usize,
        cell_size: usize,
    ) -> Self {
        Sizes { time, batch, input_size, cell_size }
    }
}

impl fmt::Debug for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sizes { time, batch, input_size, cell_size } = self;
        write!(f, "time {time}, batch {batch}, input_size {input_size}, cell_size {cell_size}")
    }
}

/// A source of random tensors, rounded to an element type.
pub(crate) struct Data {
    rng: SmallRng,
    round: fn(f64) -> f64,
}

impl Data {
    /// Data that depends on `seed` alone. `round` rounds to the element type.
    pub(crate) fn new(seed: u64, round: fn(f64) -> f64) -> Self {
        Data { rng: SmallRng::seed_from_u64(seed), round }
    }

    /// Uniform in `-limit ..= limit`.
    pub(crate) fn uniform(&mut self, shape: &[usize], limit: f64) -> ArrayD<f64> {
        let Data { rng, round } = self;
        ArrayD::from_shape_simple_fn(IxDyn(shape), || round(rng.random_range(-limit..=limit)))
    }

    /// A weight matrix whose products with data of magnitude 1 have magnitude 1.
    pub(crate) fn weights(&mut self, shape: &[usize]) -> ArrayD<f64> {
        self.uniform(shape, (3.0 / shape[0].max(1) as f64).sqrt())
    }

    /// Numbers of time steps: in two of three calls the most there are, at least once.
    pub(crate) fn steps(&mut self, shape: &[usize], time: usize) -> ArrayD<f64> {
        let rng = &mut self.rng;
        let all = rng.random_range(0..3) > 0;
        let mut steps = ArrayD::from_shape_simple_fn(IxDyn(shape), || {
            if all && rng.random() { time as f64 } else { rng.random_range(0..=time) as f64 }
        });
        if let Some(last) = steps.last_mut().filter(|_| all) {
            *last = time as f64;
        }
        steps
    }

    /// `values`, rounded.
    pub(crate) fn rounded<D: ndarray::Dimension>(
        &self,
        values: &ndarray::Array<f64, D>,
    ) -> ArrayD<f64> {
        values.mapv(self.round).into_dyn()
    }
}
