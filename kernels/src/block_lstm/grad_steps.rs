//! The backward steps: one product and one elementwise pass each, from the last step to the first.

use std::ops::Range;

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, Axis};

use super::grad::GradSequence;
use crate::elementwise::{self, Equation};
use crate::executor::for_each;
use crate::gemm::{self, Right, Weights};
use crate::lstm::cell_grad::{gradients, peephole_gradients};
use crate::lstm::step::GateOrder;
use crate::simd::Simd;
use crate::tiles::{Place, Tiling};
use crate::{Context, Isa, Storage};

/// Sums over the batch: the biases' gradients in the order of [`GateOrder`], then those of wci, wcf
/// and wco.
pub(crate) const SUMS: usize = 7;

/// What is the same in every step.
pub(super) struct GradSteps<'a, 'w, E> {
    isa: Isa,
    order: GateOrder,
    tiling: Tiling,
    cell_size: usize,
    /// The transpose of the weights that h is multiplied by.
    weights: Weights<'w>,
    /// wci, wcf, wco.
    peepholes: Option<[ArrayView1<'a, E>; 3]>,
}

/// Inputs of one step, `[batch, cell_size]` each.
#[derive(Clone, Copy)]
pub(super) struct StepInputs<'a, E> {
    pub(super) cs_prev: ArrayView2<'a, E>,
    pub(super) cs: ArrayView2<'a, E>,
    pub(super) co: ArrayView2<'a, E>,
    pub(super) cs_grad: ArrayView2<'a, E>,
    pub(super) h_grad: ArrayView2<'a, E>,
}

/// What a step hands on to the one before it, in `f32`.
pub(super) struct Carried<'a> {
    /// Gradient with respect to the cell state, `[batch, cell_size]`.
    pub(super) dcs: ArrayViewMut2<'a, f32>,
    /// Gradients with respect to the pre-activations of this step, `[batch, 4 * cell_size]`, in w's order.
    pub(super) dz: ArrayViewMut2<'a, f32>,
    /// What each row of tiles has summed, `[SUMS, rows of tiles, cell_size]`.
    pub(super) sums: &'a mut [f32],
}

impl<'a, 'w, E: Storage> GradSteps<'a, 'w, E> {
    /// Packs `factor`: the weights that h is multiplied by, in the next step or at once.
    pub(super) fn new(
        context: &Context<'_>,
        &GradSequence { order, cs_prev, peepholes, .. }: &GradSequence<'a, E>,
        factor: ArrayView2<'_, E>,
        weights: &'w mut [f32],
    ) -> Self {
        let (batch, cell_size) = cs_prev.dim();
        let tiling = gemm::step_tiling(context, (batch, cell_size), 4);
        let (depth, factor) = (factor.ncols(), Right::of(factor.reversed_axes()));
        let strips = |cells: &Range<usize>| [cells.clone()];
        let weights = Weights::pack(context, tiling, cell_size, depth, factor, strips, weights);
        GradSteps { isa: context.isa, order, tiling, cell_size, weights, peepholes }
    }

    /// One step. `gates` holds i, ci, f and o, and then the gradients with respect to their pre-activations;
    /// `factor` is what the weights are multiplied by, if that is not zero: what the step done before left in
    /// [`Carried::dz`], or the gradient with respect to a projection.
    pub(super) fn step(
        &self,
        context: &Context<'_>,
        inputs: StepInputs<'_, E>,
        gates: [ArrayViewMut2<'_, E>; 4],
        factor: Option<ArrayView2<'_, f32>>,
        carried: Carried<'_>,
    ) {
        let Carried { dcs, dz, sums } = carried;
        let tiling = self.tiling;
        let [dz_i, dz_ci, dz_f, dz_o] = gates_of(dz, self.order);
        let wide = tiling.tiles_of([dcs, dz_i, dz_ci, dz_f, dz_o]);
        let sums = tiling.sums_of(self.cell_size, sums);
        let tiles = tiling.tiles_of(gates).into_iter().zip(wide).zip(sums);
        let cost = gemm::cost(tiling, 1, 4 * self.cell_size);
        for_each(context.executor, cost, tiles.collect(), |(((place, gates), (_, wide)), sums)| {
            gemm::tile_at(self.isa, &place, |tile| {
                if let Some(factor) = factor {
                    self.add_product(tile, &place, factor);
                }
                let [dh] = tile.strips_mut();
                let [dcs, dz_i, dz_ci, dz_f, dz_o] = wide;
                let wide = [dh, dcs, dz_i, dz_ci, dz_f, dz_o];
                self.elementwise(&place, inputs, gates, wide, sums);
            });
        });
    }

    /// `dz @ w_h^T`, the gradient with respect to the state before the first step.
    pub(super) fn state_gradient(
        &self,
        context: &Context<'_>,
        dz: ArrayView2<'_, f32>,
        out: ArrayViewMut2<'_, E>,
    ) {
        let cost = gemm::cost(self.tiling, 1, 4 * self.cell_size);
        let tiles = self.tiling.tiles(out).collect();
        for_each(context.executor, cost, tiles, |(place, out)| {
            gemm::tile_at(self.isa, &place, |tile| {
                self.add_product(tile, &place, dz);
                tile.store(out);
            });
        });
    }

    fn add_product(&self, tile: &mut gemm::Tile<'_>, place: &Place, factor: ArrayView2<'_, f32>) {
        let factor = place.rows_of(factor);
        tile.add(factor, self.weights.at(place));
    }

    fn elementwise(
        &self,
        place: &Place,
        StepInputs { cs_prev, cs, co, cs_grad, h_grad }: StepInputs<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 4],
        wide: [ArrayViewMut2<'_, f32>; 6],
        sums: [&mut [f32]; SUMS],
    ) {
        let inputs = [cs_prev, co, cs_grad, h_grad].map(|input| place.of(input));
        match self.peepholes {
            Some(weights) => {
                let [wci, wcf, wco] =
                    weights.map(|weight| place.broadcast(weight, place.columns.clone()));
                let [cs_prev, co, cs_grad, h_grad] = inputs;
                let inputs = [cs_prev, co, cs_grad, h_grad, place.of(cs), wci, wcf, wco];
                let equation = WithPeepholes;
                self.isa.run(elementwise::Pass { equation, inputs, outputs, wide, sums });
            }
            None => {
                let [b_i, b_ci, b_f, b_o, ..] = sums;
                let (equation, sums) = (WithoutPeepholes, [b_i, b_ci, b_f, b_o]);
                self.isa.run(elementwise::Pass { equation, inputs, outputs, wide, sums });
            }
        }
    }
}

/// The columns of each gate, in the order of [`GateOrder`].
pub(super) fn gates_of<T>(dz: ArrayViewMut2<'_, T>, order: GateOrder) -> [ArrayViewMut2<'_, T>; 4] {
    let cell_size = dz.ncols() / 4;
    let (first, rest) = dz.split_at(Axis(1), cell_size);
    let (second, rest) = rest.split_at(Axis(1), cell_size);
    let (third, fourth) = rest.split_at(Axis(1), cell_size);
    let mut gates = [first, second, third, fourth].map(Some);
    order.map(|gate| gates[gate].take().expect("every gate once"))
}

#[derive(Clone, Copy)]
struct WithoutPeepholes;

impl Equation<4, 4, 4, 6> for WithoutPeepholes {
    const READ: usize = 1;

    #[inline(always)]
    fn apply<S: Simd>(
        self,
        simd: S,
        [cs_prev, co, cs_grad, h_grad]: [S::F32; 4],
        [i, ci, f, o]: [S::F32; 4],
        [dh, dcs, ..]: [S::F32; 6],
    ) -> ([S::F32; 4], [S::F32; 6], [S::F32; 4]) {
        let inputs = [cs_prev, i, f, o, ci, co, cs_grad + dcs, h_grad + dh];
        let [dcs, dz @ ..] = gradients(simd, inputs);
        let [di, dci, df, d_o] = dz;
        (dz, [dh, dcs, di, dci, df, d_o], dz)
    }
}

#[derive(Clone, Copy)]
struct WithPeepholes;

impl Equation<8, 4, 7, 6> for WithPeepholes {
    const READ: usize = 1;

    #[inline(always)]
    fn apply<S: Simd>(
        self,
        simd: S,
        [cs_prev, co, cs_grad, h_grad, cs, wci, wcf, wco]: [S::F32; 8],
        [i, ci, f, o]: [S::F32; 4],
        [dh, dcs, ..]: [S::F32; 6],
    ) -> ([S::F32; 4], [S::F32; 6], [S::F32; 7]) {
        let inputs = [cs_prev, i, f, o, ci, co, cs_grad + dcs, h_grad + dh];
        let (gradients, [d_wci, d_wcf, d_wco]) =
            peephole_gradients(simd, inputs, cs, [wci, wcf, wco]);
        let [dcs, dz @ ..] = gradients;
        let [di, dci, df, d_o] = dz;
        let sums = [di, dci, df, d_o, d_wci, d_wcf, d_wco];
        (dz, [dh, dcs, di, dci, df, d_o], sums)
    }
}
