//! The operations of [`crate::block_lstm`].

use ndarray::{ArrayView1, ArrayView2, ArrayView3, ArrayViewMut1, ArrayViewMut2, ArrayViewMut3};

use super::Op;

op! {
    /// An LSTM over a sequence. The columns of weights have the order ICFO; those of `BlockLSTMV2` the order IFCO.
    static BLOCK_LSTM = {
        name: "BlockLSTM", types: [Half, Float], is_stock: true,
        attributes: {
            /// Added to the forget gate.
            forget_bias: "float = 1.0",
            /// The magnitude the cell state is clipped to; 0 and negative numbers mean no clipping.
            cell_clip: "float = 3.0",
            /// Whether peephole weights are used.
            use_peephole: "bool = false",
        }
    };

    /// Inputs of [`forward`](crate::block_lstm::forward), named and ordered as in
    /// `tf.raw_ops.BlockLSTM` and `BlockLSTMV2`.
    ///
    /// `x` is not read in steps from `seq_len_max` on. Without peepholes `wci`, `wcf` and `wco` are
    /// not read and may be of any length.
    #[derive(Clone, Copy, Debug)]
    struct Inputs<'a, E> {
        /// The number of steps to compute, at most `time`.
        seq_len_max: usize = Steps [],
        /// Inputs of the steps.
        x: ArrayView3<'a, E> = [Time, Batch, Input],
        /// Cell state before the first step.
        cs_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Output before the first step.
        h_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Weights, columns in the order of the variant.
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

    /// Outputs of [`forward`](crate::block_lstm::forward), zero in steps from `seq_len_max` on.
    /// Previous contents do not matter.
    struct Outputs<'a, E> {
        /// Input gate.
        i: ArrayViewMut3<'a, E> = [TimeOrOne, Batch, Cell],
        /// Cell state.
        cs: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
        /// Forget gate.
        f: ArrayViewMut3<'a, E> = [TimeOrOne, Batch, Cell],
        /// Output gate.
        o: ArrayViewMut3<'a, E> = [TimeOrOne, Batch, Cell],
        /// Cell input.
        ci: ArrayViewMut3<'a, E> = [TimeOrOne, Batch, Cell],
        /// `tanh(cs)`.
        co: ArrayViewMut3<'a, E> = [TimeOrOne, Batch, Cell],
        /// Output.
        h: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
    }
}

/// `BlockLSTMV2`: see [`crate::block_lstm::forward`].
pub static BLOCK_LSTM_V2: Op = Op {
    name: "BlockLSTMV2",
    attributes: &attributes!({
        /// The magnitude the cell state is clipped to; 0 and negative numbers mean no clipping.
        cell_clip: "float = 0.0",
        /// Whether peephole weights are used.
        use_peephole: "bool = false",
    }),
    ..BLOCK_LSTM
};

op! {
    /// The gradients of a loss that depends on the outputs `cs` and `h` of `BlockLSTM`, or of `BlockLSTMV2`.
    static BLOCK_LSTM_GRAD = {
        name: "BlockLSTMGrad", types: [Half, Float], is_stock: true,
        attributes: {
            /// Whether peephole weights are used.
            use_peephole: "bool",
        }
    };

    /// Inputs of [`grad`](crate::block_lstm::grad) that are only read, named and ordered as in
    /// `tf.raw_ops.BlockLSTMGrad` and `BlockLSTMGradV2`.
    ///
    /// `b` must have the right shape; its values are not read. Steps from `seq_len_max` on are not
    /// read of any tensor, nor is `h[seq_len_max - 1]`. Without peepholes `wci`, `wcf` and `wco` are
    /// not read and may be of any length.
    #[derive(Clone, Copy, Debug)]
    struct GradInputs<'a, E>;

    /// Inputs of [`grad`](crate::block_lstm::grad) whose memory it works in: it reads the gates
    /// there, and leaves the gradients of the loss with respect to their pre-activations. What it
    /// leaves in steps from `seq_len_max` on is not specified.
    struct GradInPlace<'a, E>;

    /// Outputs of [`grad`](crate::block_lstm::grad): gradients of the loss. Previous contents do not
    /// matter. Where nobody reads `x_grad` or `w_grad`, its first dimension may be 0: then it is not computed.
    struct GradOutputs<'a, E>;

    inputs {
        /// The number of steps that were computed, at most `time`.
        seq_len_max: usize = Steps [],
        /// Inputs of the steps.
        x: ArrayView3<'a, E> = [Time, Batch, Input],
        /// Cell state before the first step.
        cs_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Output before the first step.
        h_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Weights, columns in the order of the variant.
        w: ArrayView2<'a, E> = [InputCell, Gates(4)],
        /// Peephole weights of the input gate.
        wci: ArrayView1<'a, E> = [Optional(0)],
        /// Peephole weights of the forget gate.
        wcf: ArrayView1<'a, E> = [Optional(1)],
        /// Peephole weights of the output gate.
        wco: ArrayView1<'a, E> = [Optional(2)],
        /// Biases, in the order of the columns of w; values unused.
        b: ArrayView1<'a, E> = Unread [Gates(4)],
    }
    in_place {
        /// Input gate; becomes `di`.
        i: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
    }
    inputs {
        /// Cell state.
        cs: ArrayView3<'a, E> = [Time, Batch, Cell],
    }
    in_place {
        /// Forget gate; becomes `df`.
        f: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
        /// Output gate; becomes `do`.
        o: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
        /// Cell input; becomes `dci`.
        ci: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
    }
    inputs {
        /// `tanh(cs)`.
        co: ArrayView3<'a, E> = [Time, Batch, Cell],
        /// Output.
        h: ArrayView3<'a, E> = [Time, Batch, Cell],
        /// Gradient of the loss with respect to cs.
        cs_grad: ArrayView3<'a, E> = [Time, Batch, Cell],
        /// Gradient of the loss with respect to h.
        h_grad: ArrayView3<'a, E> = [Time, Batch, Cell],
    }
    outputs {
        /// Gradient with respect to x; zero in steps from `seq_len_max` on.
        x_grad: ArrayViewMut3<'a, E> = [TimeOrNone, Batch, Input],
        /// Gradient with respect to cs_prev.
        cs_prev_grad: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// Gradient with respect to h_prev.
        h_prev_grad: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// Gradient with respect to w.
        w_grad: ArrayViewMut2<'a, E> = [InputCellOrNone, Gates(4)],
        /// Gradient with respect to wci, of its length; zeros without peepholes.
        wci_grad: ArrayViewMut1<'a, E> = [Optional(0)],
        /// Gradient with respect to wcf, of its length; zeros without peepholes.
        wcf_grad: ArrayViewMut1<'a, E> = [Optional(1)],
        /// Gradient with respect to wco, of its length; zeros without peepholes.
        wco_grad: ArrayViewMut1<'a, E> = [Optional(2)],
        /// Gradient with respect to b.
        b_grad: ArrayViewMut1<'a, E> = [Gates(4)],
    }
}

/// `BlockLSTMGradV2`: see [`crate::block_lstm::grad`].
pub static BLOCK_LSTM_GRAD_V2: Op = Op { name: "BlockLSTMGradV2", ..BLOCK_LSTM_GRAD };
