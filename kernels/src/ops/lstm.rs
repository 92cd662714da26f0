//! The operations of [`crate::lstm`].

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2};

op! {
    /// One step of an LSTM cell, with optional peepholes (Gers et al., 2002). The columns of weights have the order ICFO.
    static LSTM_BLOCK_CELL = {
        name: "LSTMBlockCell", types: [Half, Float], is_stock: true,
        attributes: {
            /// Added to the forget gate.
            forget_bias: "float = 1.0",
            /// The magnitude the cell state is clipped to; 0 and negative numbers mean no clipping.
            cell_clip: "float = 3.0",
            /// Whether peephole weights are used.
            use_peephole: "bool = false",
        }
    };

    /// Inputs of [`block_cell`](crate::lstm::block_cell), named and ordered as in
    /// `tf.raw_ops.LSTMBlockCell`.
    ///
    /// Without peepholes `wci`, `wcf` and `wco` are not read and may be of any length.
    #[derive(Clone, Copy, Debug)]
    struct BlockCellInputs<'a, E> {
        /// Input of the step.
        x: ArrayView2<'a, E> = [Batch, Input],
        /// Cell state before the step.
        cs_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Output of the previous step.
        h_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Weights, columns in the order ICFO.
        w: ArrayView2<'a, E> = [InputCell, Gates(4)],
        /// Peephole weights of the input gate.
        wci: ArrayView1<'a, E> = [Optional(0)],
        /// Peephole weights of the forget gate.
        wcf: ArrayView1<'a, E> = [Optional(1)],
        /// Peephole weights of the output gate.
        wco: ArrayView1<'a, E> = [Optional(2)],
        /// Biases, in the order of the columns of w.
        b: ArrayView1<'a, E> = [Gates(4)],
    }

    /// Outputs of [`block_cell`](crate::lstm::block_cell). Previous contents do not matter.
    struct BlockCellOutputs<'a, E> {
        /// Input gate.
        i: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// Cell state.
        cs: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// Forget gate.
        f: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// Output gate.
        o: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// Cell input.
        ci: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// `tanh(cs)`.
        co: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// Output.
        h: ArrayViewMut2<'a, E> = [Batch, Cell],
    }
}

op! {
    /// The gradients of a loss that depends on the outputs `cs` and `h` of `LSTMBlockCell`.
    static LSTM_BLOCK_CELL_GRAD = {
        name: "LSTMBlockCellGrad", types: [Half, Float], is_stock: true,
        attributes: {
            /// Whether peephole weights are used.
            use_peephole: "bool",
        }
    };

    /// Inputs of [`block_cell_grad`](crate::lstm::block_cell_grad), named and ordered as in
    /// `tf.raw_ops.LSTMBlockCellGrad`.
    ///
    /// `x`, `h_prev`, `w` and `b` must have the right shapes; their values are not read. Without
    /// peepholes neither are those of `wci`, `wcf`, `wco` and `cs`, and the first three may be of
    /// any length.
    #[derive(Clone, Copy, Debug)]
    struct BlockCellGradInputs<'a, E> {
        /// Input of the step; values unused.
        x: ArrayView2<'a, E> = Unread [Batch, Input],
        /// Cell state before the step.
        cs_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Output of the previous step; values unused.
        h_prev: ArrayView2<'a, E> = Unread [Batch, Cell],
        /// Weights; values unused.
        w: ArrayView2<'a, E> = Unread [InputCell, Gates(4)],
        /// Peephole weights of the input gate.
        wci: ArrayView1<'a, E> = [Optional(0)],
        /// Peephole weights of the forget gate.
        wcf: ArrayView1<'a, E> = [Optional(1)],
        /// Peephole weights of the output gate.
        wco: ArrayView1<'a, E> = [Optional(2)],
        /// Biases; values unused.
        b: ArrayView1<'a, E> = Unread [Gates(4)],
        /// Input gate.
        i: ArrayView2<'a, E> = [Batch, Cell],
        /// Cell state.
        cs: ArrayView2<'a, E> = Switched [Batch, Cell],
        /// Forget gate.
        f: ArrayView2<'a, E> = [Batch, Cell],
        /// Output gate.
        o: ArrayView2<'a, E> = [Batch, Cell],
        /// Cell input.
        ci: ArrayView2<'a, E> = [Batch, Cell],
        /// `tanh(cs)`.
        co: ArrayView2<'a, E> = [Batch, Cell],
        /// Gradient of the loss with respect to cs.
        cs_grad: ArrayView2<'a, E> = [Batch, Cell],
        /// Gradient of the loss with respect to h.
        h_grad: ArrayView2<'a, E> = [Batch, Cell],
    }

    /// Outputs of [`block_cell_grad`](crate::lstm::block_cell_grad): gradients of the loss. Previous
    /// contents do not matter.
    struct BlockCellGradOutputs<'a, E> {
        /// Gradient with respect to cs_prev.
        cs_prev_grad: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// Gradient with respect to the four pre-activations, in the order ICFO.
        dicfo: ArrayViewMut2<'a, E> = [Batch, Gates(4)],
        /// Gradient with respect to wci, of its length; zeros without peepholes.
        wci_grad: ArrayViewMut1<'a, E> = [Optional(0)],
        /// Gradient with respect to wcf, of its length; zeros without peepholes.
        wcf_grad: ArrayViewMut1<'a, E> = [Optional(1)],
        /// Gradient with respect to wco, of its length; zeros without peepholes.
        wco_grad: ArrayViewMut1<'a, E> = [Optional(2)],
    }
}
