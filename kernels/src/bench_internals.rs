//! What `benches/products.rs` measures: products and activations by themselves. They are no part of the crate's
//! interface, and exist only with the feature `bench_internals`.

use std::slice;

use ndarray::{Array2, ArrayView2, ArrayViewMut2};

use crate::constants::Packing;
use crate::elementwise::{Computed, Elements, Equation, Pass};
use crate::gemm::{self, Right};
use crate::simd::Simd;
use crate::{Isa, activation};

/// How the factors of a product are stored.
#[derive(Clone, Copy, Debug)]
pub enum Factors {
    /// Forward: both row-major.
    Rows,
    /// A step of a sequence: the right factor packed before.
    Packed,
    /// Backward: the right factor's transpose, packed on the way.
    Transpose,
    /// A single backward step of few rows: the same by dot products.
    Dots,
    /// The gradient with respect to weights: the left factor's transpose.
    Columns,
}

impl Factors {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Rows, Self::Packed, Self::Transpose, Self::Dots, Self::Columns];
}

/// A product in one tile, on one thread.
#[derive(Debug)]
pub struct Product {
    isa: Isa,
    factors: Factors,
    left: Array2<f32>,
    right: Array2<f32>,
    packed: Vec<f32>,
    out: Array2<f32>,
}

impl Product {
    /// The product of `left`, `[rows, depth]`, and `right`, `[depth, columns]`.
    #[must_use]
    pub fn new(isa: Isa, factors: Factors, left: Array2<f32>, right: Array2<f32>) -> Self {
        let transposed = |matrix: Array2<f32>| matrix.t().as_standard_layout().into_owned();
        let out = Array2::zeros((left.nrows(), right.ncols()));
        let (depth, columns) = right.dim();
        let (mut left, mut right, mut packed) = (left, right, Vec::new());
        match factors {
            Factors::Rows => {}
            Factors::Packed => {
                packed = vec![0.0; gemm::weights_len(depth, 1, columns)];
                gemm::pack_whole(isa, right.view(), &mut packed);
            }
            Factors::Transpose | Factors::Dots => right = transposed(right),
            Factors::Columns => left = transposed(left),
        }
        Product { isa, factors, left, right, packed, out }
    }

    /// Computes it.
    pub fn run(&mut self) -> ArrayView2<'_, f32> {
        let Product { isa, factors, ref left, ref right, ref packed, ref mut out } = *self;
        let (left, right) = (left.view(), right.view());
        let columns = 0..out.ncols();
        gemm::tile(isa, out.nrows(), slice::from_ref(&columns), |tile| {
            match factors {
                Factors::Rows => tile.add(left, Right::RowMajor(right)),
                Factors::Packed => tile.add(
                    left,
                    Right::Packed::<f32> { data: packed, vectors: 2, packing: Packing::Floats },
                ),
                Factors::Transpose => tile.add(left, Right::Transposed(right)),
                Factors::Dots => tile.add_dots(left, right),
                Factors::Columns => {
                    tile.add_tn(left, None, right);
                }
            }
            tile.store(out.view_mut());
        });
        out.view()
    }
}

/// A function of each element.
#[derive(Clone, Copy, Debug)]
pub enum Activation {
    /// The logistic function.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
}

impl Activation {
    /// Applies it to all of `from`.
    pub fn run(self, isa: Isa, from: ArrayView2<'_, f32>, to: ArrayViewMut2<'_, f32>) {
        isa.run(Pass { equation: self, inputs: [from], outputs: [to], f32_operands: [], sums: [] });
    }
}

impl Equation<1, 1> for Activation {
    const PAIR_VECTORS: bool = true;

    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 1, 1>) -> Computed<S::F32, 1> {
        let Elements { inputs: [x], .. } = at;
        let y = match self {
            Activation::Sigmoid => activation::sigmoid(simd, x),
            Activation::Tanh => activation::tanh(simd, x),
        };
        ([y], [], [])
    }
}
