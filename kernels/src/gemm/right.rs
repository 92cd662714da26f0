//! The right factor of a product.

use ndarray::ArrayView2;

use super::units::QuadWeights;
use crate::constants::{Packing, Source};

/// The right factor of a product, `[k, n]`.
#[derive(Clone, Copy)]
pub(crate) enum Right<'a, E> {
    /// Row-major, without gaps.
    RowMajor(ArrayView2<'a, E>),
    /// The transpose of a matrix `[n, k]` whose rows are contiguous.
    Transposed(ArrayView2<'a, E>),
    /// What [`pack_slice`](super::pack::pack_slice) made of one of the others, for the strips of this tile, in groups
    /// that are `vectors` wide.
    Packed { data: &'a [f32], vectors: usize, packing: Packing },
    /// Weights in int8, for the strips of this tile.
    Quads(QuadWeights<'a>),
}

impl<'a, E> Right<'a, E> {
    /// A matrix that is row-major without gaps, or the transpose of one whose rows are contiguous.
    pub(crate) fn of(matrix: ArrayView2<'a, E>) -> Self {
        if matrix.is_standard_layout() {
            Right::RowMajor(matrix)
        } else {
            Right::Transposed(matrix.reversed_axes())
        }
    }

    /// The matrix that it is, if it is not packed already.
    pub(super) fn source(self) -> Option<Source<'a, E>> {
        match self {
            Right::RowMajor(matrix) => Some(Source { matrix, is_transposed: false }),
            Right::Transposed(matrix) => Some(Source { matrix, is_transposed: true }),
            Right::Packed { .. } | Right::Quads(_) => None,
        }
    }
}
