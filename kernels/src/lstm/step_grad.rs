//! The backward step as a cell of the engine.

use ndarray::{ArrayView1, ArrayViewMut2, Axis, Zip};

use super::cell_grad::{gradients, peephole_gradients};
use super::step::{GateOrder, in_order};
use crate::Storage;
use crate::activation::{Activations, Functions, Usual};
use crate::elementwise::{Computed, Elements, Equation};
use crate::recurrence::{CellGrad, GradStep, Phase, Product, Products, StepsLeft};
use crate::simd::Simd;
use crate::tiles::{Tiling, every_row};

/// Sums over the batch: the biases' gradients in the order of [`GateOrder`], then those of wci, wcf
/// and wco.
pub(crate) const BIAS_SUMS: usize = 7;

/// The tensors that a step reads: cs, co, and the gradients with respect to cs and h, if there are any.
pub(crate) const SAVED: usize = 4;

/// The gradient of [`Lstm`](super::step::Lstm). It works in place of i, ci, f and o.
pub(crate) struct LstmGrad<'a, 'w, E> {
    pub(crate) order: GateOrder,
    /// The usual ones where there are peepholes.
    pub(crate) activations: Activations,
    /// wci, wcf, wco.
    pub(crate) peepholes: Option<[ArrayView1<'a, E>; 3]>,
    /// The transpose of the weights that h is multiplied by.
    pub(crate) product: Product<'w, E, 1>,
}

impl<E: Storage> LstmGrad<'_, '_, E> {
    /// The elementwise part, where `products` are gradients with respect to h.
    fn run(
        &self,
        step: GradStep<'_, E, SAVED>,
        products: impl Products<1>,
        outputs: [ArrayViewMut2<'_, E>; 4],
    ) {
        let GradStep { at, before: cs_prev, saved, d, carried, sums, .. } = step;
        let [cs, co, cs_grad, h_grad] = saved;
        let [d_i, d_ci, d_f, d_o] = gates_of(d, self.order);
        let f32_operands = [carried, d_i, d_ci, d_f, d_o];
        let inputs = [cs_prev, co, cs_grad, h_grad];
        let Some(peepholes) = self.peepholes else {
            return match self.activations {
                one if one.are_usual() => {
                    let equation = Gradients(Usual);
                    Phase { equation, inputs, outputs, f32_operands, sums }.run(at, products)
                }
                any => {
                    let equation = Gradients(any);
                    Phase { equation, inputs, outputs, f32_operands, sums }.run(at, products)
                }
            };
        };
        let [wci, wcf, wco] = peepholes.map(|weights| every_row(weights, cs.nrows()));
        let inputs = [cs_prev, co, cs_grad, h_grad, cs, wci, wcf, wco];
        let equation = Gradients(Usual);
        Phase { equation, inputs, outputs, f32_operands, sums }.run(at, products);
    }
}

impl<E: Storage> CellGrad<E, SAVED, 4, 2> for LstmGrad<'_, '_, E> {
    const BIAS_SUMS: usize = BIAS_SUMS;
    const GATES: usize = 4;

    fn tiles(&self) -> (Tiling, u64) {
        (self.product.tiling, self.product.cost())
    }

    fn step(&self, step: GradStep<'_, E, SAVED>, gates: [ArrayViewMut2<'_, E>; 4]) {
        let products = self.product.of(step.at.rows.next(), step.d_next);
        self.run(step, products, gates);
    }

    fn finish(&self, left: StepsLeft<'_>, states: [ArrayViewMut2<'_, E>; 2]) {
        finish(&self.product, left, states);
    }
}

/// The gradient of [`Projected`](super::step::Projected). It works in place of the gradient with respect to the
/// projection's products, too, which is the last tensor.
pub(crate) struct ProjectedGrad<'a, 'w, 'p, E> {
    /// Its product is that with the transpose of the projection's weights.
    pub(crate) lstm: LstmGrad<'a, 'w, E>,
    /// The transpose of the weights that the projection is multiplied by.
    pub(crate) product: Product<'p, E, 1>,
}

impl<E: Storage> CellGrad<E, SAVED, 5, 2> for ProjectedGrad<'_, '_, '_, E> {
    const BIAS_SUMS: usize = BIAS_SUMS;
    const GATES: usize = 4;

    fn tiles(&self) -> (Tiling, u64) {
        self.lstm.tiles()
    }

    fn step(
        &self,
        step: GradStep<'_, E, SAVED>,
        [i, ci, f, o, mut h_grad]: [ArrayViewMut2<'_, E>; 5],
    ) {
        let at = step.at;
        if let Some(d) = step.d_next {
            self.product.of(at.rows.next(), Some(d)).add(at.context, h_grad.view_mut());
        }
        let products = self.lstm.product.of(at.rows, Some(h_grad.view()));
        self.lstm.run(step, products, [i, ci, f, o]);
    }

    fn finish(&self, left: StepsLeft<'_>, states: [ArrayViewMut2<'_, E>; 2]) {
        finish(&self.product, left, states);
    }
}

/// The gradients with respect to cs and h before step 0, where h is multiplied by the transpose of `product`.
fn finish<E: Storage>(
    product: &Product<'_, E, 1>,
    StepsLeft { at, d, carried }: StepsLeft<'_>,
    [mut cs_prev_grad, h_prev_grad]: [ArrayViewMut2<'_, E>; 2],
) {
    product.of(at.rows, d).store(at.context, h_prev_grad, None);
    Zip::from(&mut cs_prev_grad).and(&carried).for_each(|to, &d| *to = E::from_f32(d));
}

/// The columns of each gate, in the order of [`GateOrder`].
pub(crate) fn gates_of<T>(d: ArrayViewMut2<'_, T>, order: GateOrder) -> [ArrayViewMut2<'_, T>; 4] {
    let cells = d.ncols() / 4;
    let (first, rest) = d.split_at(Axis(1), cells);
    let (second, rest) = rest.split_at(Axis(1), cells);
    let (third, fourth) = rest.split_at(Axis(1), cells);
    in_order(order, [first, second, third, fourth])
}

#[derive(Clone, Copy)]
struct Gradients<F>(F);

impl<F: Functions> Equation<4, 4, 4, 6> for Gradients<F> {
    const READ_ONLY: usize = 1;

    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 4, 4, 6>) -> Computed<S::F32, 4, 6, 4> {
        let Elements {
            inputs: [cs_prev, co, cs_grad, h_grad],
            before: [i, ci, f, o],
            f32_operands: [dh, dcs, ..],
        } = at;
        let inputs = [cs_prev, i, f, o, ci, co, cs_grad + dcs, h_grad + dh];
        let [dcs, dz @ ..] = gradients(simd, self.0, inputs);
        let [di, dci, df, d_o] = dz;
        (dz, [dh, dcs, di, dci, df, d_o], dz)
    }
}

/// With peepholes.
impl Equation<8, 4, 7, 6> for Gradients<Usual> {
    const READ_ONLY: usize = 1;

    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 8, 4, 6>) -> Computed<S::F32, 4, 6, 7> {
        let Elements {
            inputs: [cs_prev, co, cs_grad, h_grad, cs, wci, wcf, wco],
            before: [i, ci, f, o],
            f32_operands: [dh, dcs, ..],
        } = at;
        let inputs = [cs_prev, i, f, o, ci, co, cs_grad + dcs, h_grad + dh];
        let (gradients, [d_wci, d_wcf, d_wco]) =
            peephole_gradients(simd, inputs, cs, [wci, wcf, wco]);
        let [dcs, dz @ ..] = gradients;
        let [di, dci, df, d_o] = dz;
        let sums = [di, dci, df, d_o, d_wci, d_wcf, d_wco];
        (dz, [dh, dcs, di, dci, df, d_o], sums)
    }
}
