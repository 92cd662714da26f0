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
    /// This is `AddN` of `MatMul(..., transpose_a=True)`, as in the gradient of a cell's weights over all time steps.
    /// No product is stored. Products and sums are computed in float32 for both types, and the result is rounded once.
    static MAT_MUL_ADD_N = {
        name: "BlockcellMatMulAddN", types: [Half, Float], is_stock: false,
        attributes: { num_addends: "int >= 0", num_a: "int >= 0", num_b: "int >= 0" }
    };

    /// Inputs of [`add_n`](crate::mat_mul::add_n). The number of left factors is a multiple of the number of right
    /// factors: those that belong to one right factor are concatenated along the columns.
    #[derive(Clone, Debug)]
    struct AddNInputs<'a, E> {
        /// The transposed left factors, `[k_i, m_p]`: part `p` of product `i` is at `i * parts + p`. The parts of a
        /// factor are concatenated along the columns; `m` is the sum of all `m_p`.
        a: Vec<ArrayView2<'a, E>> = num_a * Checked [Any("k_i"), Any("m_p")],
        /// The right factors.
        b: Vec<ArrayView2<'a, E>> = num_b * Checked [Any("k_i"), Any("n")],
        /// Other terms of the sum. The buffer of the first one is reused for the result if no other tensor shares it.
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
    /// This is `Slice` of `MatMul(a, b, transpose_b=True)`, as in the gradients of a cell's input and state. The
    /// product itself is not stored. Sums are computed in float32 for both types, and the result is rounded once. A
    /// part outside of the product raises an `InvalidArgumentError`.
    static MAT_MUL_SLICE = {
        name: "BlockcellMatMulSlice", types: [Half, Float], is_stock: false,
        attributes: {
            num_parts: "int >= 1",
            /// The first column of each part.
            begins: "list(int)",
            /// The number of columns of each part, or -1 for all that remain.
            sizes: "list(int)",
            /// The number of rows of each part, or -1 for all.
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
    /// This is `AddN` of `BiasAddGrad`, as in the gradient of a cell's biases over all time steps. Sums are computed
    /// in float32 for both types, and the result is rounded once.
    static BIAS_ADD_GRAD_ADD_N = {
        name: "BlockcellBiasAddGradAddN", types: [Half, Float], is_stock: false,
        attributes: { num_addends: "int >= 0", num_out_backprop: "int >= 0" }
    };

    /// Inputs of [`bias_add_grad_add_n`](crate::mat_mul::bias_add_grad_add_n).
    #[derive(Clone, Debug)]
    struct BiasInputs<'a, E> {
        /// The matrices.
        out_backprop: Vec<ArrayView2<'a, E>> = num_out_backprop * Checked [Any("k_i"), Any("n")],
        /// Other terms of the sum.
        addends: Vec<ArrayView1<'a, E>> = num_addends * Checked [Any("n")],
    }

    /// The output of [`bias_add_grad_add_n`](crate::mat_mul::bias_add_grad_add_n). Previous contents do not matter.
    struct BiasOutputs<'a, E> {
        /// The sum.
        sum: ArrayViewMut1<'a, E> = Checked [Any("n")],
    }
}
