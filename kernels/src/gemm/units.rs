//! Weights in int8, as products read them.
//!
//! A *unit* has [`UNIT`] columns. For each slice of the terms it has a row of what sums begin with, the rows of the slice's
//! lanes, and a row of scales. All rows and tiles have the same units.

use std::ops::Range;

use super::lanes::{Lanes, Quads, lanes, packed_rows};
use super::micro_kernel::Columns;
use super::prefetch::{NoPrefetch, Prefetch};
use crate::simd::Simd;
use crate::tuning::UNIT;

/// Weights of some gates, in units.
#[derive(Clone, Copy)]
pub(crate) struct QuadWeights<'a> {
    /// From the first unit on.
    pub(super) units: &'a [f32],
    /// Terms.
    pub(super) depth: usize,
    /// Units from the first one of a gate to that of the next.
    pub(super) pitch: usize,
}

/// Elements of a unit.
pub(super) fn unit_len(depth: usize) -> usize {
    UNIT * packed_rows::<Quads>(depth)
}

impl<'a> QuadWeights<'a> {
    /// Those of each gate, from the first on.
    pub(super) fn gates(self) -> impl Iterator<Item = Self> {
        let size = unit_len(self.depth) * self.pitch;
        (0..).map(move |gate| QuadWeights { units: &self.units[gate * size..], ..self })
    }

    /// From the unit that begins with this cell on.
    #[inline(always)]
    pub(super) fn from(self, cell: usize) -> Self {
        QuadWeights { units: &self.units[cell / UNIT * unit_len(self.depth)..], ..self }
    }

    /// The rows of a unit that belong to a slice.
    #[inline(always)]
    pub(super) fn rows(&self, unit: usize, slice: &Range<usize>) -> &'a [[f32; UNIT]] {
        let at = unit * unit_len(self.depth) + UNIT * packed_rows::<Quads>(slice.start);
        let rows = lanes::<Quads>(slice.len()) + Quads::AROUND;
        &self.units[at..][..rows * UNIT].as_chunks().0[..rows]
    }

    /// What a block of `vectors` vectors of each gate multiplies, in one slice.
    #[inline(always)]
    pub(super) fn block<S: Simd, const V: usize>(
        &self,
        slice: &Range<usize>,
        vectors: usize,
    ) -> Units<'a, NoPrefetch, V> {
        let mut units = [&[] as &[_]; V];
        let (mut gate, mut vector) = (0, 0);
        for unit in &mut units {
            *unit = self.rows(gate * self.pitch + vector * S::LANES / UNIT, slice);
            vector += 1;
            if vector == vectors {
                (gate, vector) = (gate + 1, 0);
            }
        }
        Units { units, k: 0, prefetch: NoPrefetch }
    }
}

/// The units of `V` vectors, read row by row, and what to prefetch with each row.
pub(super) struct Units<'a, P, const V: usize> {
    /// For each vector the rows of its unit.
    units: [&'a [[f32; UNIT]]; V],
    /// The next row.
    k: usize,
    prefetch: P,
}

impl<'a, P, const V: usize> Units<'a, P, V> {
    /// Their rows.
    pub(super) fn rows(&self) -> usize {
        self.units[0].len()
    }

    /// What follows the last unit, to be prefetched.
    pub(super) fn next_unit(&self) -> *const u8 {
        self.units[V - 1].as_ptr_range().end.cast()
    }

    /// The same, and what to prefetch.
    pub(super) fn with<Q>(&self, prefetch: Q) -> Units<'a, Q, V> {
        Units { units: self.units, k: self.k, prefetch }
    }
}

impl<S: Simd, P: Prefetch, const V: usize> Columns<S, V> for Units<'_, P, V> {
    #[inline(always)]
    fn next(&mut self, simd: S) -> [S::F32; V] {
        self.prefetch.fetch(simd);
        let mut vectors = [simd.splat(0.0); V];
        for (v, (vector, unit)) in vectors.iter_mut().zip(self.units).enumerate() {
            *vector = simd.load(&unit[self.k][v * S::LANES % UNIT..][..S::LANES]);
        }
        self.k += 1;
        vectors
    }
}
