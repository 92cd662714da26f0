//! The elementwise part of a step, forward and backward.

use std::ops::Range;

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2};

use crate::activation::{sigmoid, tanh};
use crate::elementwise::{self, Equation};
use crate::simd::Simd;
use crate::tiles::Place;
use crate::{Isa, Storage, gemm};

/// The columns of the reset and the update gate that belong to some cells.
pub(crate) fn gates(cell_size: usize, cells: &Range<usize>) -> [Range<usize>; 2] {
    [cells.clone(), cell_size + cells.start..cell_size + cells.end]
}

/// What is the same for every tile of a forward step.
#[derive(Clone, Copy)]
pub(crate) struct GruStep<'a, E> {
    pub(crate) isa: Isa,
    pub(crate) cell_size: usize,
    pub(crate) b_ru: ArrayView1<'a, E>,
    pub(crate) b_c: ArrayView1<'a, E>,
}

impl<E: Storage> GruStep<'_, E> {
    /// Completes the gates where the reset comes before the candidate's product: those of a tile
    /// whose sums are the products `[x | h_prev] @ w_ru`. The outputs, `[r, u, r * h_prev]`, are those
    /// at `place`, and `h_prev` is all of it.
    pub(crate) fn finish_gates(
        &self,
        tile: &mut gemm::Tile<'_>,
        place: &Place,
        h_prev: ArrayView2<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 3],
    ) {
        let [b_r, b_u] = self.gate_biases(place);
        self.isa.run(elementwise::Pass {
            equation: Gates,
            inputs: [place.of(h_prev), b_r, b_u],
            outputs,
            wide: tile.strips_mut(),
            sums: [],
        });
    }

    /// Completes a step whose gates are known: a tile whose sums are the products
    /// `[x | r * h_prev] @ w_c`. The outputs, `[c, h]`, are those at `place`.
    pub(crate) fn finish_candidate(
        &self,
        tile: &mut gemm::Tile<'_>,
        place: &Place,
        h_prev: ArrayView2<'_, E>,
        u: ArrayView2<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 2],
    ) {
        let b_c = place.broadcast(self.b_c, place.columns.clone());
        self.isa.run(elementwise::Pass {
            equation: Candidate,
            inputs: [place.of(h_prev), place.of(u), b_c],
            outputs,
            wide: tile.strips_mut(),
            sums: [],
        });
    }

    /// Completes a step where the reset comes after the product. `products` are those of
    /// [`ResetAfter`] at `place`, and so are the outputs, `[r, u, c, hc, h]`.
    pub(crate) fn finish_reset_after(
        &self,
        products: [ArrayViewMut2<'_, f32>; 4],
        place: &Place,
        b_hc: ArrayView1<'_, E>,
        h_prev: ArrayView2<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 5],
    ) {
        let [b_r, b_u] = self.gate_biases(place);
        let [b_c, b_hc] = [self.b_c, b_hc].map(|b| place.broadcast(b, place.columns.clone()));
        self.isa.run(elementwise::Pass {
            equation: ResetAfter,
            inputs: [place.of(h_prev), b_r, b_u, b_c, b_hc],
            outputs,
            wide: products,
            sums: [],
        });
    }

    fn gate_biases(&self, place: &Place) -> [ArrayView2<'_, E>; 2] {
        gates(self.cell_size, &place.columns).map(|columns| place.broadcast(self.b_ru, columns))
    }
}

/// The gates, and the state as it enters the candidate's product where the reset comes before it:
/// from h_prev and the biases, `[r, u, r * h_prev]`.
#[derive(Clone, Copy)]
struct Gates;

impl Equation<3, 3, 0, 2> for Gates {
    const TWICE: bool = true;
    const READ: usize = 2;

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
struct Candidate;

impl Equation<3, 2, 0, 1> for Candidate {
    const TWICE: bool = true;
    const READ: usize = 1;

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
fn state<S: Simd>(simd: S, h_prev: S::F32, u: S::F32, c: S::F32) -> S::F32 {
    simd.mul_add(u, h_prev - c, c)
}

/// A whole step where the reset comes after the product, from h_prev and the biases:
/// `[r, u, c, hc, h]`. The products are those of r, of u, of the state for the candidate and of x
/// for the candidate.
#[derive(Clone, Copy)]
struct ResetAfter;

impl Equation<5, 5, 0, 4> for ResetAfter {
    const TWICE: bool = true;
    const READ: usize = 4;

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

/// `[d_c_bar, d_u_bar]`, from the gradient with respect to the new state: backward through
/// `h = u * h_prev + (1 - u) * c`.
#[inline(always)]
pub(crate) fn through_state<S: Simd>(
    simd: S,
    d_h: S::F32,
    h_prev: S::F32,
    u: S::F32,
    c: S::F32,
) -> [S::F32; 2] {
    let one = simd.splat(1.0);
    let d_c_bar = d_h * (one - u) * (one - c * c);
    let d_u_bar = d_h * (h_prev - c) * u * (one - u);
    [d_c_bar, d_u_bar]
}

/// `d_r_bar`: backward through `r * factor`, where r is a gate. `d` is the gradient with respect to that product.
#[inline(always)]
pub(crate) fn through_reset<S: Simd>(simd: S, d: S::F32, factor: S::F32, r: S::F32) -> S::F32 {
    d * factor * r * (simd.splat(1.0) - r)
}
