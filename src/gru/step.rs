//! The elementwise part of the forward step.

use std::ops::Range;

use crate::activation::{sigmoid, tanh};
use crate::elementwise::Equation;
use crate::gemm;
use crate::simd::Simd;
use crate::tiles::Tiling;

/// The columns of the reset and the update gate that belong to some cells.
pub(crate) fn gates(cell_size: usize, cells: &Range<usize>) -> [Range<usize>; 2] {
    [cells.clone(), cell_size + cells.start..cell_size + cells.end]
}

/// Tiles of the part of a step that has `gates` products: rows of the batch by cells.
pub(crate) fn tiling(batch: usize, cell_size: usize, gates: usize) -> Tiling {
    // Narrow tiles let small cells use several threads, where there is work for them.
    let narrow = cell_size < 512 && batch > 8;
    let columns = if narrow { gemm::STRIP / 2 } else { gemm::STRIP };
    Tiling {
        rows: gemm::even(batch, gemm::most_rows(gates), 1),
        columns: gemm::even(cell_size, columns, gemm::UNIT),
    }
}

/// The gates, and the state as it enters the candidate's product where the reset comes before it:
/// from h_prev and the biases, `[r, u, r * h_prev]`.
#[derive(Clone, Copy)]
pub(crate) struct Gates;

impl Equation<3, 3, 0, 2> for Gates {
    #[inline(always)]
    fn apply<S: Simd>(
        self,
        simd: S,
        [h_prev, b_r, b_u]: [S::F32; 3],
        _: [S::F32; 3],
        products: [S::F32; 2],
    ) -> ([S::F32; 3], [S::F32; 2], [S::F32; 0]) {
        let r = sigmoid(simd, products[0] + b_r);
        let u = sigmoid(simd, products[1] + b_u);
        ([r, u, r * h_prev], products, [])
    }
}

/// The candidate and the new state, from h_prev, u and the bias: `[c, h]`.
#[derive(Clone, Copy)]
pub(crate) struct Candidate;

impl Equation<3, 2, 0, 1> for Candidate {
    #[inline(always)]
    fn apply<S: Simd>(
        self,
        simd: S,
        [h_prev, u, b_c]: [S::F32; 3],
        _: [S::F32; 2],
        [product]: [S::F32; 1],
    ) -> ([S::F32; 2], [S::F32; 1], [S::F32; 0]) {
        let c = tanh(simd, product + b_c);
        ([c, state(simd, h_prev, u, c)], [product], [])
    }
}

/// `u * h_prev + (1 - u) * c`
#[inline(always)]
pub(crate) fn state<S: Simd>(simd: S, h_prev: S::F32, u: S::F32, c: S::F32) -> S::F32 {
    simd.mul_add(u, h_prev - c, c)
}

/// A whole step where the reset comes after the product, from h_prev and the biases:
/// `[r, u, c, hc, h]`. The products are those of r, of u, of the state for the candidate and of x
/// for the candidate.
#[derive(Clone, Copy)]
pub(crate) struct ResetAfter;

impl Equation<5, 5, 0, 4> for ResetAfter {
    #[inline(always)]
    fn apply<S: Simd>(
        self,
        simd: S,
        [h_prev, b_r, b_u, b_c, b_hc]: [S::F32; 5],
        _: [S::F32; 5],
        products: [S::F32; 4],
    ) -> ([S::F32; 5], [S::F32; 4], [S::F32; 0]) {
        let [z_r, z_u, z_hc, z_c] = products;
        let r = sigmoid(simd, z_r + b_r);
        let u = sigmoid(simd, z_u + b_u);
        let hc = z_hc + b_hc;
        let c = tanh(simd, simd.mul_add(r, hc, z_c + b_c));
        ([r, u, c, hc, state(simd, h_prev, u, c)], products, [])
    }
}
