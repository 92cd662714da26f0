//! The simple recurrent network over a sequence: `h' = act(x @ w_x + h @ w_h + b)`, with a length for each row of the
//! batch. It is a part of [`crate::cudnn_rnn`], in `f32`.

use ndarray::{ArrayView1, ArrayViewMut2};

use crate::activation;
use crate::elementwise::{Computed, Elements, Equation};
use crate::recurrence::{
    CellGrad, GradStep, Input, Phase, Product, Step, StepCell, StepsLeft, TiledCell,
};
use crate::simd::Simd;
use crate::tiles::{Tiling, every_row};

/// What is applied to the sums of products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    Tanh,
    Relu,
}

impl Activation {
    /// A NaN remains NaN.
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::F32) -> S::F32 {
        match self {
            Activation::Tanh => activation::tanh(simd, x),
            Activation::Relu => simd.max(simd.splat(0.0), x),
        }
    }

    /// The derivative where the value is `h`. That of the rectifier at 0 is 0.
    #[inline(always)]
    fn derivative<S: Simd>(self, simd: S, h: S::F32) -> S::F32 {
        let one = simd.splat(1.0);
        match self {
            Activation::Tanh => simd.neg_mul_add(h, h, one),
            Activation::Relu => {
                // 1 for the least positive number, too, and NaN for NaN.
                let large = simd.splat(f32::MAX);
                simd.min(one, h * large * large)
            }
        }
    }
}

/// The cell over a sequence. It keeps nothing; its state is h.
pub(crate) struct Rnn<'a, 'w> {
    pub(crate) activation: Activation,
    pub(crate) b: ArrayView1<'a, f32>,
    pub(crate) product: Product<'w, f32, 1>,
}

impl StepCell<f32, 0, 1> for Rnn<'_, '_> {
    const GATES: [usize; 2] = [1, 0];

    fn tiles(&self) -> (Tiling, u64) {
        (self.product.tiling, self.product.cost())
    }
}

impl TiledCell<f32, 0, 1> for Rnn<'_, '_> {
    fn step(
        &self,
        step: Step<'_, '_, f32, 1>,
        _: [ArrayViewMut2<'_, f32>; 0],
        outputs: [ArrayViewMut2<'_, f32>; 1],
    ) {
        let Step { at, products, before: [h_prev] } = step;
        let products = self.product.after(Input::Products(products), at.rows, Some(h_prev));
        let inputs = [every_row(self.b, h_prev.nrows())];
        Phase::new(Forward(self.activation), inputs, outputs).run(at, products);
    }
}

#[derive(Clone, Copy)]
struct Forward(Activation);

impl Equation<1, 1, 0, 1> for Forward {
    const PAIR_VECTORS: bool = true;
    const READ_ONLY: usize = 1;

    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 1, 1, 1>) -> Computed<S::F32, 1, 1> {
        let Elements { inputs: [b], f32_operands: [product], .. } = at;
        ([self.0.of(simd, product + b)], [product], [])
    }
}

/// The gradient of [`Rnn`]. It reads h, and works in place of the gradient with respect to h, which becomes that with
/// respect to the pre-activation.
pub(crate) struct RnnGrad<'a> {
    pub(crate) activation: Activation,
    /// The transpose of the weights of the state.
    pub(crate) product: Product<'a, f32, 1>,
}

impl CellGrad<f32, 1, 1, 1> for RnnGrad<'_> {
    const BIAS_SUMS: usize = 1;
    const GATES: usize = 1;

    fn tiles(&self) -> (Tiling, u64) {
        (self.product.tiling, self.product.cost())
    }

    fn step(&self, step: GradStep<'_, f32, 1>, outputs: [ArrayViewMut2<'_, f32>; 1]) {
        let GradStep { at, saved: inputs, d_next, d, sums, .. } = step;
        let (equation, f32_operands) = (Backward(self.activation), [d]);
        let products = self.product.of(at.rows.next(), d_next);
        Phase { equation, inputs, outputs, f32_operands, sums }.run(at, products);
    }

    fn finish(&self, left: StepsLeft<'_>, [h_prev_grad]: [ArrayViewMut2<'_, f32>; 1]) {
        let StepsLeft { at, d, .. } = left;
        self.product.of(at.rows, d).store(at.context, h_prev_grad, None);
    }
}

#[derive(Clone, Copy)]
struct Backward(Activation);

impl Equation<1, 1, 1, 2> for Backward {
    const READ_ONLY: usize = 1;

    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 1, 1, 2>) -> Computed<S::F32, 1, 2, 1> {
        let Elements { inputs: [h], before: [h_grad], f32_operands: [strip, _] } = at;
        let d = (h_grad + strip) * self.0.derivative(simd, h);
        ([d], [strip, d], [d])
    }
}
