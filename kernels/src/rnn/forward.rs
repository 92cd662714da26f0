//! The forward steps: one product and one elementwise pass each.

use ndarray::{ArrayView1, ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis, Slice};

use super::Activation;
use crate::Context;
use crate::elementwise::{self, Equation};
use crate::executor::for_each;
use crate::gemm;
use crate::lengths::Lengths;
use crate::sequence::{
    StepProduct, all_rows, at_step, input_products, state_before, steps_at_once,
};
use crate::simd::Simd;

/// What the steps of a sequence are computed from. Weights may lie in memory as their transposes.
#[derive(Clone, Copy)]
pub(crate) struct Sequence<'a> {
    pub(crate) activation: Activation,
    pub(crate) lengths: Lengths<'a>,
    pub(crate) x: ArrayView3<'a, f32>,
    pub(crate) h_prev: ArrayView2<'a, f32>,
    /// `[input_size, cell_size]`. Without them x is added as it is.
    pub(crate) w_x: Option<ArrayView2<'a, f32>>,
    /// `[cell_size, cell_size]`
    pub(crate) w_h: ArrayView2<'a, f32>,
    pub(crate) b: ArrayView1<'a, f32>,
}

/// How many elements of scratch memory [`Sequence::compute`] needs.
pub(crate) fn forward_scratch(time: usize, batch: usize, cell_size: usize) -> usize {
    let rows = steps_at_once(time, batch).saturating_mul(batch);
    StepProduct::memory(cell_size, cell_size).saturating_add(rows.saturating_mul(cell_size))
}

impl Sequence<'_> {
    /// All steps. `h` is zero in steps that a row does not have.
    pub(crate) fn compute(
        &self,
        context: &Context<'_>,
        h: ArrayViewMut3<'_, f32>,
        scratch: &mut [f32],
    ) {
        let (batch, cell_size) = self.h_prev.dim();
        let steps = self.lengths.longest();
        let mut outputs = [h];
        outputs[0].slice_axis_mut(Axis(0), Slice::from(steps..)).fill(0.0);
        if batch == 0 || cell_size == 0 {
            return;
        }
        let memory = StepProduct::memory(cell_size, cell_size);
        let (weights, products) = scratch.split_at_mut(memory);
        let of_state = StepProduct::pack(context, batch, self.w_h, weights);
        let at_once = steps_at_once(self.x.dim().0, batch);
        for first in (0..steps).step_by(at_once) {
            let steps = first..steps.min(first + at_once);
            let shape = (steps.len() * batch, cell_size);
            let products = &mut products[..shape.0 * shape.1];
            let mut products = ArrayViewMut2::from_shape(shape, products).expect("of this size");
            let x = all_rows(self.x, steps.clone());
            input_products(context, x, self.w_x.map(|w| [w]), [products.view_mut()]);
            for (t, products) in steps.zip(products.axis_chunks_iter(Axis(0), batch)) {
                let ([done], [h]) = at_step(&mut outputs, t);
                let h_prev = state_before(t, self.h_prev, done.view());
                self.step(context, t, of_state, products, h_prev, h);
            }
        }
    }

    /// Step `t`. `of_state` is the product with the state, and `products` are those of its x.
    fn step(
        &self,
        context: &Context<'_>,
        t: usize,
        of_state: StepProduct<'_>,
        products: ArrayView2<'_, f32>,
        h_prev: ArrayView2<'_, f32>,
        h: ArrayViewMut2<'_, f32>,
    ) {
        let Context { isa, executor } = *context;
        let tiles = of_state.tiling.tiles(h).collect();
        for_each(executor, of_state.cost(), tiles, |(place, mut h)| {
            gemm::tile_at(isa, &place, |tile| {
                tile.set(place.rows_of(products));
                tile.add(place.rows_of(h_prev), of_state.weights.at(&place));
                isa.run(elementwise::Pass {
                    equation: Cell(self.activation),
                    inputs: [place.broadcast(self.b, place.columns.clone())],
                    outputs: [h.view_mut()],
                    wide: tile.strips_mut(),
                    sums: [],
                });
            });
            self.lengths.clear_ended(place.rows.clone(), t, h);
        });
    }
}

#[derive(Clone, Copy)]
struct Cell(Activation);

impl Equation<1, 1, 0, 1> for Cell {
    const TWICE: bool = true;
    const READ: usize = 1;

    #[inline(always)]
    fn apply<S: Simd>(
        self,
        simd: S,
        [b]: [S::F32; 1],
        _: [S::F32; 1],
        [product]: [S::F32; 1],
    ) -> ([S::F32; 1], [S::F32; 1], [S::F32; 0]) {
        ([self.0.of(simd, product + b)], [product], [])
    }
}
