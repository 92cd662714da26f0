//! The forward step as a cell of the engine.

use std::ops::Range;

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, s};

use super::Attributes;
use crate::activation::{Activations, Functions, Usual};
use crate::elementwise::{Computed, Elements, Equation, Row};
use crate::gemm::{RowLanes, gates, padded};
use crate::recurrence::{
    At, GroupedCell, GroupedProduct, Grouping, Input, Phase, Product, Products, RowStep, Step,
    StepCell, TiledCell,
};
use crate::simd::Simd;
use crate::tiles::{Place, Tiling, every_row};
use crate::{Isa, Storage};

/// The gates' columns in w and b: how many times `cell_size` each starts from the left, in the order
/// input gate, cell input, forget gate, output gate.
pub(crate) type GateOrder = [usize; 4];

/// Input gate, cell input, forget gate, output gate.
pub(crate) const ICFO: GateOrder = [0, 1, 2, 3];

/// Input gate, forget gate, cell input, output gate.
pub(crate) const IFCO: GateOrder = [0, 2, 1, 3];

/// The gates, given in the order of w and b.
#[inline(always)]
pub(crate) fn in_order<T>(order: GateOrder, gates: [T; 4]) -> [T; 4] {
    let mut gates = gates.map(Some);
    order.map(|gate| gates[gate].take().expect("every gate once"))
}

/// What a step adds to products.
#[derive(Clone, Copy)]
pub(crate) struct LstmStep<'a, E> {
    pub(crate) attributes: Attributes,
    pub(crate) activations: Activations,
    pub(crate) order: GateOrder,
    pub(crate) b: ArrayView1<'a, E>,
    /// wci, wcf, wco; any without peepholes.
    pub(crate) peepholes: [ArrayView1<'a, E>; 3],
}

impl<E: Storage> LstmStep<'_, E> {
    fn equation<F>(&self, functions: F) -> LstmEquation<F> {
        let clip = self.attributes.cell_clip_in::<E>().unwrap_or(f32::INFINITY);
        LstmEquation { forget_bias: self.attributes.forget_bias_in::<E>(), clip, functions }
    }

    /// A step whose products are `[x | h_prev] @ w`, in the order of w: i, cs, f, o, ci, co and h.
    pub(crate) fn run(
        &self,
        at: At<'_>,
        products: impl Products<4>,
        cs_prev: ArrayView2<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 7],
    ) {
        match self.activations.are_usual() {
            true => self.run_with(Usual, at, products, cs_prev, outputs),
            false => self.run_with(self.activations, at, products, cs_prev, outputs),
        }
    }

    fn run_with(
        &self,
        functions: impl Functions,
        at: At<'_>,
        products: impl Products<4>,
        cs_prev: ArrayView2<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 7],
    ) {
        let (rows, cells) = cs_prev.dim();
        let bias = |gate| every_row(self.b.slice_move(s![gate * cells..(gate + 1) * cells]), rows);
        let [b_i, b_ci, b_f, b_o] = self.order.map(bias);
        let equation = self.equation(functions);
        let products = Ordered { products, order: self.order };
        if self.attributes.use_peephole {
            let [wci, wcf, wco] = self.peepholes.map(|weights| every_row(weights, rows));
            let inputs = [cs_prev, b_i, b_ci, b_f, b_o, wci, wcf, wco];
            Phase::new(equation, inputs, outputs).run(at, products);
        } else {
            let inputs = [cs_prev, b_i, b_ci, b_f, b_o];
            Phase::new(equation, inputs, outputs).run(at, products);
        }
    }
}

/// Products in the order of w, as those of the gates.
struct Ordered<P> {
    products: P,
    order: GateOrder,
}

impl<P: Products<4>> Products<4> for Ordered<P> {
    fn tiles(&self) -> (Tiling, u64) {
        self.products.tiles()
    }

    fn at(&self, isa: Isa, place: &Place, work: impl FnOnce([ArrayViewMut2<'_, f32>; 4])) {
        self.products.at(isa, place, |strips| work(in_order(self.order, strips)));
    }

    fn whole(self, isa: Isa, place: &Place, work: impl FnOnce([ArrayViewMut2<'_, f32>; 4])) {
        self.products.whole(isa, place, |strips| work(in_order(self.order, strips)));
    }
}

/// The cell over a sequence. It keeps i, f, o, ci and co; its states are cs and h.
pub(crate) struct Lstm<'a, 'w, E> {
    pub(crate) step: LstmStep<'a, E>,
    pub(crate) product: Product<'w, E, 4>,
}

impl<E: Storage> Lstm<'_, '_, E> {
    fn run(&self, step: Step<'_, '_, E, 2>, outputs: [ArrayViewMut2<'_, E>; 7]) {
        let Step { at, products, before: [cs_prev, h_prev] } = step;
        let products = self.product.after(Input::Products(products), at.rows, Some(h_prev));
        self.step.run(at, products, cs_prev, outputs);
    }
}

impl<E: Storage> StepCell<E, 5, 2> for Lstm<'_, '_, E> {
    const GATES: [usize; 2] = [4, 0];

    fn tiles(&self) -> (Tiling, u64) {
        (self.product.tiling, self.product.cost())
    }
}

impl<E: Storage> TiledCell<E, 5, 2> for Lstm<'_, '_, E> {
    fn step(
        &self,
        step: Step<'_, '_, E, 2>,
        [i, f, o, ci, co]: [ArrayViewMut2<'_, E>; 5],
        [cs, h]: [ArrayViewMut2<'_, E>; 2],
    ) {
        self.run(step, [i, cs, f, o, ci, co, h]);
    }
}

/// The same for few rows.
pub(crate) struct GroupedLstm<'a, 'w, E> {
    pub(crate) step: LstmStep<'a, E>,
    pub(crate) grouping: Grouping,
    pub(crate) product: GroupedProduct<'w, 4>,
}

impl<E: Storage> StepCell<E, 5, 2> for GroupedLstm<'_, '_, E> {
    const GATES: [usize; 2] = [4, 0];

    fn tiles(&self) -> (Tiling, u64) {
        (self.grouping.tiling, self.product.cost())
    }
}

impl<E: Storage> GroupedCell<E, 5, 2> for GroupedLstm<'_, '_, E> {
    fn row_lanes(&self) -> RowLanes {
        self.product.row_lanes()
    }

    fn group_width(&self) -> usize {
        self.grouping.width
    }

    #[inline(always)]
    fn sums<S: Simd>(
        &self,
        simd: S,
        rows: &[Option<RowStep<'_, E, 5, 2>>],
        cells: &Range<usize>,
        sums: &mut [f32],
    ) {
        let pitch = 4 * padded(cells.len());
        let rows = rows.iter().flatten().map(|row| (Some(row.products[0]), row.left));
        self.product.sum(simd, cells, rows, (sums, pitch));
    }

    #[inline(always)]
    fn finish<S: Simd>(
        &self,
        simd: S,
        row: &mut RowStep<'_, E, 5, 2>,
        cells: &Range<usize>,
        sums: &mut [f32],
    ) {
        match self.step.activations.are_usual() {
            true => self.finish_with(simd, Usual, row, cells, sums),
            false => self.finish_with(simd, self.step.activations, row, cells, sums),
        }
    }
}

impl<E: Storage> GroupedLstm<'_, '_, E> {
    #[inline(always)]
    fn finish_with<S: Simd>(
        &self,
        simd: S,
        functions: impl Functions,
        row: &mut RowStep<'_, E, 5, 2>,
        cells: &Range<usize>,
        sums: &mut [f32],
    ) {
        let [cs_prev, h_prev] = row.before;
        let ([i, f, o, ci, co], [cs, h]) = row.outputs(cells);
        let outputs = [i, cs, f, o, ci, co, h];
        let all = h_prev.len();
        let bias = self.step.b.to_slice().expect("a vector without gaps");
        let bias = |gate: usize| &bias[gate * all..(gate + 1) * all][cells.clone()];
        let [b_i, b_ci, b_f, b_o] = self.step.order;
        let (b_i, b_ci, b_f, b_o) = (bias(b_i), bias(b_ci), bias(b_f), bias(b_o));
        let cs_prev = &cs_prev[cells.clone()];
        let equation = self.step.equation(functions);
        let f32_operands = in_order(self.step.order, gates(sums, cells.len()));
        if self.step.attributes.use_peephole {
            let peephole = |n: usize| {
                &self.step.peepholes[n].to_slice().expect("a vector without gaps")[cells.clone()]
            };
            let inputs = [cs_prev, b_i, b_ci, b_f, b_o, peephole(0), peephole(1), peephole(2)];
            simd.enter(Row { equation, inputs, outputs, f32_operands, sums: [] });
        } else {
            let inputs = [cs_prev, b_i, b_ci, b_f, b_o];
            simd.enter(Row { equation, inputs, outputs, f32_operands, sums: [] });
        }
    }
}

/// The cell with a projection: products of its outputs with weights `[cell_size, num_proj]` take their place as the
/// state. It keeps the outputs, too, as the last tensor.
pub(crate) struct Projected<'a, 'w, 'p, E> {
    pub(crate) lstm: Lstm<'a, 'w, E>,
    pub(crate) projection: Product<'p, E, 1>,
    /// The magnitude that projected outputs are clipped to.
    pub(crate) clip: Option<f32>,
}

impl<E: Storage> StepCell<E, 6, 2> for Projected<'_, '_, '_, E> {
    const GATES: [usize; 2] = [4, 0];

    fn tiles(&self) -> (Tiling, u64) {
        self.lstm.tiles()
    }
}

impl<E: Storage> TiledCell<E, 6, 2> for Projected<'_, '_, '_, E> {
    fn step(
        &self,
        step: Step<'_, '_, E, 2>,
        [i, f, o, ci, co, mut output]: [ArrayViewMut2<'_, E>; 6],
        [cs, mut h]: [ArrayViewMut2<'_, E>; 2],
    ) {
        let at = step.at;
        self.lstm.run(step, [i, cs, f, o, ci, co, output.view_mut()]);
        self.projection.of(at.rows, Some(output.view())).store(at.context, h.view_mut(), None);
        if let Some(clip) = self.clip {
            // NaN stays.
            h.map_inplace(|h| *h = E::from_f32(h.to_f32().clamp(-clip, clip)));
        }
    }
}

#[derive(Clone, Copy)]
struct LstmEquation<F> {
    forget_bias: f32,
    /// Infinity for no clipping.
    clip: f32,
    functions: F,
}

impl<F: Functions> Equation<5, 7, 0, 4> for LstmEquation<F> {
    const PAIR_VECTORS: bool = true;
    const READ_ONLY: usize = 4;

    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 5, 7, 4>) -> Computed<S::F32, 7, 4> {
        let Elements { inputs: [cs_prev, biases @ ..], f32_operands: products, .. } = at;
        let [i_bar, ci_bar, f_bar, o_bar] = self.pre_activations(simd, products, biases);
        let (i, f) = (self.functions.gate(simd, i_bar), self.functions.gate(simd, f_bar));
        let (ci, cs) = self.cell(simd, i, f, ci_bar, cs_prev);
        let o = self.functions.gate(simd, o_bar);
        let co = self.functions.state(simd, cs);
        ([i, cs, f, o, ci, co, o * co], products, [])
    }
}

/// With peepholes.
impl<F: Functions> Equation<8, 7, 0, 4> for LstmEquation<F> {
    const PAIR_VECTORS: bool = true;
    const READ_ONLY: usize = 4;

    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 8, 7, 4>) -> Computed<S::F32, 7, 4> {
        let Elements {
            inputs: [cs_prev, b_i, b_ci, b_f, b_o, wci, wcf, wco],
            f32_operands: products,
            ..
        } = at;
        let [i_bar, ci_bar, f_bar, o_bar] =
            self.pre_activations(simd, products, [b_i, b_ci, b_f, b_o]);
        let i = self.functions.gate(simd, simd.mul_add(wci, cs_prev, i_bar));
        let f = self.functions.gate(simd, simd.mul_add(wcf, cs_prev, f_bar));
        let (ci, cs) = self.cell(simd, i, f, ci_bar, cs_prev);
        let o = self.functions.gate(simd, simd.mul_add(wco, cs, o_bar));
        let co = self.functions.state(simd, cs);
        ([i, cs, f, o, ci, co, o * co], products, [])
    }
}

impl<F: Functions> LstmEquation<F> {
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
        let ci = self.functions.state(simd, ci_bar);
        let cs = simd.mul_add(f, cs_prev, i * ci);
        // In this order of operands NaN survives.
        let clip = simd.splat(self.clip);
        let cs = simd.max(simd.splat(-self.clip), simd.min(clip, cs));
        (ci, cs)
    }
}
