//! The operations of [`crate::gru`].

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2};

op! {
    /// One step of a gated recurrent unit (Cho et al., 2014), with the reset gate applied before the matrix product:
    ///
    /// ```text
    /// [r_bar | u_bar] = [x | h_prev] @ w_ru + b_ru
    /// r = S(r_bar)    u = S(u_bar)
    /// c = tanh([x | r * h_prev] @ w_c + b_c)
    /// h = u * h_prev + (1 - u) * c
    /// ```
    static GRU_BLOCK_CELL = {
        name: "GRUBlockCell", types: [Float], is_stock: true
    };

    /// Inputs of [`block_cell`](crate::gru::block_cell), named and ordered as in
    /// `tf.raw_ops.GRUBlockCell`.
    #[derive(Clone, Copy, Debug)]
    struct BlockCellInputs<'a, E> {
        /// Input of the step.
        x: ArrayView2<'a, E> = [Batch, Input],
        /// State before the step.
        h_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Weights of the reset and update gates, in this order of columns.
        w_ru: ArrayView2<'a, E> = [InputCell, Gates(2)],
        /// Weights of the candidate.
        w_c: ArrayView2<'a, E> = [InputCell, Cell],
        /// Biases of the gates, in the order of the columns of `w_ru`.
        b_ru: ArrayView1<'a, E> = [Gates(2)],
        /// Bias of the candidate.
        b_c: ArrayView1<'a, E> = [Cell],
    }

    /// Outputs of [`block_cell`](crate::gru::block_cell). Previous contents do not matter.
    struct BlockCellOutputs<'a, E> {
        /// Reset gate.
        r: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// Update gate.
        u: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// Candidate state.
        c: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// State after the step.
        h: ArrayViewMut2<'a, E> = [Batch, Cell],
    }
}

op! {
    /// The gradients of a loss that depends on the state after a step of `GRUBlockCell`.
    static GRU_BLOCK_CELL_GRAD = {
        name: "GRUBlockCellGrad", types: [Float], is_stock: true
    };

    /// Inputs of [`block_cell_grad`](crate::gru::block_cell_grad), named and ordered as in
    /// `tf.raw_ops.GRUBlockCellGrad`.
    ///
    /// `x`, `b_ru` and `b_c` must have the right shapes; their values are not read.
    #[derive(Clone, Copy, Debug)]
    struct BlockCellGradInputs<'a> {
        /// Input of the step; values unused.
        x: ArrayView2<'a, f32> = Unread [Batch, Input],
        /// State before the step.
        h_prev: ArrayView2<'a, f32> = [Batch, Cell],
        /// Weights of the reset and update gates, in this order of columns.
        w_ru: ArrayView2<'a, f32> = [InputCell, Gates(2)],
        /// Weights of the candidate.
        w_c: ArrayView2<'a, f32> = [InputCell, Cell],
        /// Biases of the gates; values unused.
        b_ru: ArrayView1<'a, f32> = Unread [Gates(2)],
        /// Bias of the candidate; values unused.
        b_c: ArrayView1<'a, f32> = Unread [Cell],
        /// Reset gate.
        r: ArrayView2<'a, f32> = [Batch, Cell],
        /// Update gate.
        u: ArrayView2<'a, f32> = [Batch, Cell],
        /// Candidate state.
        c: ArrayView2<'a, f32> = [Batch, Cell],
        /// Gradient of the loss with respect to the new state h.
        d_h: ArrayView2<'a, f32> = [Batch, Cell],
    }

    /// Outputs of [`block_cell_grad`](crate::gru::block_cell_grad): gradients of the loss. Previous
    /// contents do not matter.
    struct BlockCellGradOutputs<'a> {
        /// Gradient with respect to x.
        d_x: ArrayViewMut2<'a, f32> = [Batch, Input],
        /// Gradient with respect to h_prev.
        d_h_prev: ArrayViewMut2<'a, f32> = [Batch, Cell],
        /// Gradient with respect to the candidate's pre-activation.
        d_c_bar: ArrayViewMut2<'a, f32> = [Batch, Cell],
        /// Gradient with respect to the gates' pre-activations, the reset gate's first.
        d_r_bar_u_bar: ArrayViewMut2<'a, f32> = [Batch, Gates(2)],
    }
}
