//! The forward step of one tile: cells of some columns, for some rows of the batch.

use std::ops::Range;

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2};

use super::Attributes;
use crate::activation::{sigmoid, tanh};
use crate::elementwise::{self, Equation};
use crate::simd::Simd;
use crate::tiles::Place;
use crate::{Isa, Storage, gemm};

/// The gates' columns in w and b: how many times `cell_size` each starts from the left, in the order
/// input gate, cell input, forget gate, output gate.
pub(crate) type GateOrder = [usize; 4];

/// Input gate, cell input, forget gate, output gate.
pub(crate) const ICFO: GateOrder = [0, 1, 2, 3];

/// Input gate, forget gate, cell input, output gate.
pub(crate) const IFCO: GateOrder = [0, 2, 1, 3];

/// Columns of all gates that belong to some cells, in the order of [`GateOrder`].
pub(crate) fn strips(
    order: GateOrder,
    cell_size: usize,
    cells: &Range<usize>,
) -> [Range<usize>; 4] {
    order.map(|gate| gate * cell_size + cells.start..gate * cell_size + cells.end)
}

/// What is the same for every tile of a forward step.
#[derive(Clone, Copy)]
pub(crate) struct LstmStep<'a, E> {
    pub(crate) isa: Isa,
    pub(crate) attributes: Attributes,
    pub(crate) order: GateOrder,
    pub(crate) b: ArrayView1<'a, E>,
    /// wci, wcf, wco; any without peepholes.
    pub(crate) peepholes: [ArrayView1<'a, E>; 3],
}

impl<E: Storage> LstmStep<'_, E> {
    /// Completes a step whose products `[x | h_prev] @ w` are the sums of `tile`. `cs_prev` and the
    /// outputs (i, cs, f, o, ci, co, h) are those at `place`.
    pub(crate) fn finish(
        &self,
        tile: &mut gemm::Tile<'_>,
        place: &Place,
        cell_size: usize,
        cs_prev: ArrayView2<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 7],
    ) {
        let biases = strips(self.order, cell_size, &place.columns);
        let [b_i, b_ci, b_f, b_o] = biases.map(|columns| place.broadcast(self.b, columns));
        let clip = self.attributes.cell_clip_in::<E>().unwrap_or(f32::INFINITY);
        let equation = Cell { forget_bias: self.attributes.forget_bias_in::<E>(), clip };
        let (wide, sums) = (tile.strips_mut(), []);
        if self.attributes.use_peephole {
            let [wci, wcf, wco] = self.peepholes.map(|w| place.broadcast(w, place.columns.clone()));
            let inputs = [cs_prev, b_i, b_ci, b_f, b_o, wci, wcf, wco];
            self.isa.run(elementwise::Pass { equation, inputs, outputs, wide, sums });
        } else {
            let inputs = [cs_prev, b_i, b_ci, b_f, b_o];
            self.isa.run(elementwise::Pass { equation, inputs, outputs, wide, sums });
        }
    }
}

#[derive(Clone, Copy)]
struct Cell {
    forget_bias: f32,
    /// Infinity for no clipping.
    clip: f32,
}

impl Equation<5, 7, 0, 4> for Cell {
    const TWICE: bool = true;
    const READ: usize = 4;

    #[inline(always)]
    fn apply<S: Simd>(
        self,
        simd: S,
        [cs_prev, biases @ ..]: [S::F32; 5],
        _: [S::F32; 7],
        products: [S::F32; 4],
    ) -> ([S::F32; 7], [S::F32; 4], [S::F32; 0]) {
        let [i_bar, ci_bar, f_bar, o_bar] = self.pre_activations(simd, products, biases);
        let (i, f) = (sigmoid(simd, i_bar), sigmoid(simd, f_bar));
        let (ci, cs) = self.cell(simd, i, f, ci_bar, cs_prev);
        let o = sigmoid(simd, o_bar);
        let co = tanh(simd, cs);
        ([i, cs, f, o, ci, co, o * co], products, [])
    }
}

/// With peepholes.
impl Equation<8, 7, 0, 4> for Cell {
    const TWICE: bool = true;
    const READ: usize = 4;

    #[inline(always)]
    fn apply<S: Simd>(
        self,
        simd: S,
        [cs_prev, b_i, b_ci, b_f, b_o, wci, wcf, wco]: [S::F32; 8],
        _: [S::F32; 7],
        products: [S::F32; 4],
    ) -> ([S::F32; 7], [S::F32; 4], [S::F32; 0]) {
        let [i_bar, ci_bar, f_bar, o_bar] =
            self.pre_activations(simd, products, [b_i, b_ci, b_f, b_o]);
        let i = sigmoid(simd, simd.mul_add(wci, cs_prev, i_bar));
        let f = sigmoid(simd, simd.mul_add(wcf, cs_prev, f_bar));
        let (ci, cs) = self.cell(simd, i, f, ci_bar, cs_prev);
        let o = sigmoid(simd, simd.mul_add(wco, cs, o_bar));
        let co = tanh(simd, cs);
        ([i, cs, f, o, ci, co, o * co], products, [])
    }
}

impl Cell {
    /// `[i_bar, ci_bar, f_bar, o_bar]`, without peepholes.
    #[inline(always)]
    fn pre_activations<S: Simd>(
        self,
        simd: S,
        [z_i, z_ci, z_f, z_o]: [S::F32; 4],
        [b_i, b_ci, b_f, b_o]: [S::F32; 4],
    ) -> [S::F32; 4] {
        [z_i + b_i, z_ci + b_ci, z_f + b_f + simd.splat(self.forget_bias), z_o + b_o]
    }

    /// `ci` and the clipped `cs`.
    #[inline(always)]
    fn cell<S: Simd>(
        self,
        simd: S,
        i: S::F32,
        f: S::F32,
        ci_bar: S::F32,
        cs_prev: S::F32,
    ) -> (S::F32, S::F32) {
        let ci = tanh(simd, ci_bar);
        let cs = simd.mul_add(f, cs_prev, i * ci);
        // In this order of operands NaN survives.
        let clip = simd.splat(self.clip);
        let cs = simd.max(simd.splat(-self.clip), simd.min(clip, cs));
        (ci, cs)
    }
}
