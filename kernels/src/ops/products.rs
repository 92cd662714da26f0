//! The operations of [`crate::mat_mul`].

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2};

op! {
    /// A sum of matrix products with transposed left factors, and of other matrices.
    ///
    /// With `parts = num_a / num_b`, and `[a | b]` concatenation along the columns:
    ///
    /// ```text
    /// sum = addends[0] + addends[1] + ...
    ///       + sum over i of [a[i * parts] | a[i * parts + 1] | ...]^T @ b[i]
    /// ```
    ///
    /// It is what `AddN` makes of products `MatMul(..., transpose_a=True)`, such as the gradient of a cell's weights,
    /// which every time step adds to. No product is stored. Products and sums are in float32 whatever the type, and
    /// the result is rounded once.
    static MAT_MUL_ADD_N = {
        name: "BlockcellMatMulAddN", types: [BFloat16, Half, Float], is_stock: false,
        attributes: { num_addends: "int >= 0", num_a: "int >= 0", num_b: "int >= 0" }
    };

    /// Inputs of [`add_n`](crate::mat_mul::add_n). There are as many left factors as right ones, or some times as many:
    /// then the first of these that belong to a right factor stand side by side.
    #[derive(Clone, Debug)]
    struct AddNInputs<'a, E> {
        /// The transposed left factors, `[k_i, m_p]`: part `p` of product `i` is at `i * parts + p`. The parts of a
        /// factor stand side by side; `m` is the sum of all `m_p`.
        a: Vec<ArrayView2<'a, E>> = num_a * Checked [Any("k_i"), Any("m_p")],
        /// The right factors.
        b: Vec<ArrayView2<'a, E>> = num_b * Checked [Any("k_i"), Any("n")],
        /// Other summands. The buffer of the first one becomes that of the result where nothing else holds it.
        addends: Vec<ArrayView2<'a, E>> = num_addends * Checked [Any("m"), Any("n")],
    }

    /// The output of [`add_n`](crate::mat_mul::add_n).
    struct AddNOutputs<'a, E> {
        /// The sum.
        sum: ArrayViewMut2<'a, E> = Checked [Any("m"), Any("n")],
    }
}

op! {
    /// Parts of a matrix product with a transposed right factor.
    ///
    /// ```text
    /// parts[p] = (a @ b^T)[:rows, begins[p] : begins[p] + sizes[p]]
    /// ```
    ///
    /// It is what `Slice` makes of `MatMul(a, b, transpose_b=True)`, such as the gradients of a cell's input and state.
    /// The product itself is not stored. Sums are in float32 whatever the type, and the result is rounded once. Parts
    /// that are not inside of the product are an `InvalidArgumentError`.
    static MAT_MUL_SLICE = {
        name: "BlockcellMatMulSlice", types: [BFloat16, Half, Float], is_stock: false,
        attributes: {
            num_parts: "int >= 1",
            /// The first column of each part.
            begins: "list(int)",
            /// The number of columns of each part, or -1 for all from its first one on.
            sizes: "list(int)",
            /// The number of rows, from the first one on, or -1 for all.
            rows: "int = -1",
        }
    };

    /// Inputs of [`slice()`](crate::mat_mul::slice()).
    #[derive(Clone, Copy, Debug)]
    struct SliceInputs<'a, E> {
        /// The left factor.
        a: ArrayView2<'a, E> = Checked [Any("k"), Any("n")],
        /// The transposed right factor.
        b: ArrayView2<'a, E> = Checked [Any("m"), Any("n")],
    }

    /// The outputs of [`slice()`](crate::mat_mul::slice()). Previous contents do not matter.
    struct SliceOutputs<'a, E> {
        /// The parts.
        parts: Vec<ArrayViewMut2<'a, E>> = num_parts * Checked [Any("rows"), Any("sizes[p]")],
    }
}

op! {
    /// The sum of all rows of some matrices, and of vectors.
    ///
    /// ```text
    /// sum = addends[0] + ... + sum over i of the sum over the rows of out_backprop[i]
    /// ```
    ///
    /// It is what `AddN` makes of `BiasAddGrad`s, such as the gradient of a cell's biases, which every time step adds
    /// to. Sums are in float32 whatever the type, and the result is rounded once.
    static BIAS_ADD_GRAD_ADD_N = {
        name: "BlockcellBiasAddGradAddN", types: [BFloat16, Half, Float], is_stock: false,
        attributes: { num_addends: "int >= 0", num_out_backprop: "int >= 0" }
    };

    /// Inputs of [`bias_add_grad_add_n`](crate::mat_mul::bias_add_grad_add_n).
    #[derive(Clone, Debug)]
    struct BiasInputs<'a, E> {
        /// The matrices.
        out_backprop: Vec<ArrayView2<'a, E>> = num_out_backprop * Checked [Any("k_i"), Any("n")],
        /// Other summands.
        addends: Vec<ArrayView1<'a, E>> = num_addends * Checked [Any("n")],
    }

    /// The output of [`bias_add_grad_add_n`](crate::mat_mul::bias_add_grad_add_n). Previous contents do not matter.
    struct BiasOutputs<'a, E> {
        /// The sum.
        sum: ArrayViewMut1<'a, E> = Checked [Any("n")],
    }
}
