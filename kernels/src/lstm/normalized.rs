//! The cell with layer normalization (Ba, Kiros and Hinton, "Layer Normalization", 2016) as a cell of the engine.
//!
//! The products of a step are complete before anything is normalized. So a step has two passes: the products of all
//! gates, tile by tile, and then the equations row by row.

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, Axis};

use super::step::{GateOrder, in_order};
use crate::Storage;
use crate::activation::{Activations, Functions, Usual};
use crate::elementwise::{Computed, Elements, Equation};
use crate::executor::for_each;
use crate::recurrence::{At, Input, Phase, Product, Products, Step, StepCell, TiledCell};
use crate::simd::{Simd, WithSimd};
use crate::tiles::{Tiling, row, row_mut};
use crate::tuning::{PASS_CYCLES_PER_ELEMENT, PASS_ELEMENTS};

/// Processor cycles for each element of a row, with all its gates.
const CYCLES_PER_CELL: usize = 8 * PASS_CYCLES_PER_ELEMENT;

/// What a step does with products.
#[derive(Clone, Copy)]
pub(crate) struct NormalizedStep<'a, E> {
    pub(crate) forget_bias: f32,
    pub(crate) epsilon: f32,
    pub(crate) activations: Activations,
    pub(crate) order: GateOrder,
    /// Of i, ci, f, o and the state.
    pub(crate) norms: [[ArrayView1<'a, E>; 2]; 5],
}

/// The cell over a sequence. It keeps the products; its states are cs and h.
pub(crate) struct NormalizedLstm<'a, 'w, E> {
    pub(crate) step: NormalizedStep<'a, E>,
    pub(crate) product: Product<'w, E, 4>,
}

impl<E: Storage> StepCell<E, 4, 2> for NormalizedLstm<'_, '_, E> {
    const GATES: [usize; 2] = [4, 0];

    fn tiles(&self) -> (Tiling, u64) {
        (self.product.tiling, self.product.cost())
    }
}

impl<E: Storage> TiledCell<E, 4, 2> for NormalizedLstm<'_, '_, E> {
    fn step(
        &self,
        step: Step<'_, '_, E, 2>,
        z: [ArrayViewMut2<'_, E>; 4],
        [cs, h]: [ArrayViewMut2<'_, E>; 2],
    ) {
        let Step { at, products, before: [cs_prev, h_prev] } = step;
        let products = self.product.after(Input::Products(products), at.rows, Some(h_prev));
        self.step.run(at, products, cs_prev, z, [cs, h]);
    }
}

impl<E: Storage> NormalizedStep<'_, E> {
    /// A step whose products are those of the gates, in the order of the weights: cs and h. `z` is memory for the products.
    pub(crate) fn run(
        &self,
        at: At<'_>,
        products: impl Products<4>,
        cs_prev: ArrayView2<'_, E>,
        mut z: [ArrayViewMut2<'_, E>; 4],
        [cs, h]: [ArrayViewMut2<'_, E>; 2],
    ) {
        let outputs = z.each_mut().map(|gate| gate.view_mut());
        Phase::new(Store, [], outputs).run(at, products);
        let z = in_order(self.order, z);
        let z = z.each_ref().map(|gate| gate.view());
        match self.activations.are_usual() {
            true => self.rows(at, Usual, cs_prev, z, [cs, h]),
            false => self.rows(at, self.activations, cs_prev, z, [cs, h]),
        }
    }

    /// The equations, row by row, from the products of i, ci, f and o.
    fn rows(
        &self,
        At { context, rows }: At<'_>,
        functions: impl Functions,
        cs_prev: ArrayView2<'_, E>,
        z: [ArrayView2<'_, E>; 4],
        outputs: [ArrayViewMut2<'_, E>; 2],
    ) {
        let (batch, cells) = cs_prev.dim();
        if batch == 0 || cells == 0 {
            return;
        }
        let at_once = (PASS_ELEMENTS / (8 * cells)).max(1);
        let [mut cs, mut h] = outputs;
        let parts = cs.axis_chunks_iter_mut(Axis(0), at_once);
        let parts = parts.zip(h.axis_chunks_iter_mut(Axis(0), at_once)).enumerate();
        let cost = (CYCLES_PER_CELL * at_once.min(batch) * cells) as u64;
        let isa = context.isa;
        let norms = self.norms.each_ref();
        let norms = norms
            .map(|both| both.each_ref().map(|one| one.to_slice().expect("a vector without gaps")));
        for_each(context.executor, cost, parts.collect(), |(part, (mut cs, mut h))| {
            let first = part * at_once;
            for at in 0..cs.nrows() {
                let (b, cs, h) = (first + at, row_mut(&mut cs, at), row_mut(&mut h, at));
                if !rows.has(b) {
                    cs.fill(E::ZERO);
                    h.fill(E::ZERO);
                    continue;
                }
                isa.run(Row {
                    forget_bias: self.forget_bias,
                    epsilon: self.epsilon,
                    functions,
                    norms,
                    cs_prev: row(cs_prev, b),
                    z: z.map(|gate| row(gate, b)),
                    cs,
                    h,
                });
            }
        });
    }
}

/// Leaves products as they are.
#[derive(Clone, Copy)]
struct Store;

impl Equation<0, 4, 0, 4> for Store {
    const READ_ONLY: usize = 4;

    #[inline(always)]
    fn apply<S: Simd>(self, _: S, at: Elements<S::F32, 0, 4, 4>) -> Computed<S::F32, 4, 4> {
        (at.f32_operands, at.f32_operands, [])
    }
}

/// One row of a step.
struct Row<'r, E, F> {
    forget_bias: f32,
    epsilon: f32,
    functions: F,
    /// gamma and beta of i, ci, f, o and the state.
    norms: [[&'r [E]; 2]; 5],
    cs_prev: &'r [E],
    z: [&'r [E]; 4],
    cs: &'r mut [E],
    h: &'r mut [E],
}

impl<E: Storage, F: Functions> WithSimd for Row<'_, E, F> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Row { forget_bias, epsilon, functions, norms, cs_prev, z, cs, h } = self;
        let [of_i, of_ci, of_f, of_o] = z.map(|gate| Moments::of(simd, gate, epsilon));
        let [n_i, n_ci, n_f, n_o, n_state] = norms;
        let [z_i, z_ci, z_f, z_o] = z;
        // h holds the output gate for now, and cs the state that is not yet normalized.
        for from in (0..cs.len()).step_by(S::LANES) {
            let at = from..cs.len().min(from + S::LANES);
            let i = functions.gate(simd, of_i.normalized(simd, &z_i[at.clone()], n_i, from));
            let ci = functions.state(simd, of_ci.normalized(simd, &z_ci[at.clone()], n_ci, from));
            let f_bar = of_f.normalized(simd, &z_f[at.clone()], n_f, from);
            let f = functions.gate(simd, f_bar + simd.splat(forget_bias));
            let o = functions.gate(simd, of_o.normalized(simd, &z_o[at.clone()], n_o, from));
            let before = E::load(simd, &cs_prev[at.clone()]);
            E::store(simd, simd.mul_add(f, before, i * ci), &mut cs[at.clone()]);
            E::store(simd, o, &mut h[at]);
        }
        let of_state = Moments::of(simd, cs, epsilon);
        for from in (0..cs.len()).step_by(S::LANES) {
            let at = from..cs.len().min(from + S::LANES);
            let state = of_state.normalized(simd, &cs[at.clone()], n_state, from);
            let o = E::load(simd, &h[at.clone()]);
            E::store(simd, state, &mut cs[at.clone()]);
            E::store(simd, o * functions.state(simd, state), &mut h[at]);
        }
    }
}

/// The mean of some numbers, and one divided by their standard deviation.
#[derive(Clone, Copy)]
pub(crate) struct Moments {
    mean: f32,
    pub(crate) inverse: f32,
}

impl Moments {
    #[inline(always)]
    pub(crate) fn of<S: Simd, E: Storage>(simd: S, values: &[E], epsilon: f32) -> Moments {
        let count = values.len() as f32;
        let mean = values.chunks(S::LANES).map(|part| E::load(simd, part));
        let mean = simd.sum(mean.fold(simd.splat(0.0), |sum, part| sum + part)) / count;
        // The last vector would have zeros behind the values, which are not at the mean.
        let whole = values.chunks_exact(S::LANES);
        let rest = whole.remainder().iter().map(|value| value.to_f32() - mean);
        let rest: f32 = rest.map(|value| value * value).sum();
        let squares = whole.fold(simd.splat(0.0), |sum, part| {
            let centered = E::load(simd, part) - simd.splat(mean);
            simd.mul_add(centered, centered, sum)
        });
        let variance = (simd.sum(squares) + rest) / count;
        Moments { mean, inverse: 1.0 / (variance + epsilon).sqrt() }
    }

    /// The same of numbers one by one.
    pub(crate) fn of_numbers(values: impl Iterator<Item = f32> + Clone, epsilon: f32) -> Moments {
        let count = values.clone().count() as f32;
        let mean = values.clone().sum::<f32>() / count;
        let squares = values.map(|value| (value - mean).powi(2)).sum::<f32>();
        Moments { mean, inverse: 1.0 / (squares / count + epsilon).sqrt() }
    }

    /// Some of the values, normalized, scaled and moved. The vectors for that are those of all values, of which these are
    /// the ones from `from` on.
    #[inline(always)]
    pub(crate) fn normalized<S: Simd, E: Storage>(
        self,
        simd: S,
        values: &[E],
        [gamma, beta]: [&[E]; 2],
        from: usize,
    ) -> S::F32 {
        let at = from..from + values.len();
        let [gamma, beta] = [gamma, beta].map(|all| E::load(simd, &all[at.clone()]));
        simd.mul_add(self.all_centered(simd, E::load(simd, values)), gamma, beta)
    }

    /// Some values, normalized.
    #[inline(always)]
    pub(crate) fn all_centered<S: Simd>(self, simd: S, values: S::F32) -> S::F32 {
        (values - simd.splat(self.mean)) * simd.splat(self.inverse)
    }

    /// One value, normalized.
    pub(crate) fn centered(self, value: f32) -> f32 {
        (value - self.mean) * self.inverse
    }
}
