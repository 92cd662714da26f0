//! The operations of [`crate::block_gru`].

use ndarray::{ArrayView1, ArrayView2, ArrayView3, ArrayViewMut1, ArrayViewMut2, ArrayViewMut3};

op! {
    /// `BlockGRU`: see [`crate::block_gru::forward`].
    static BLOCK_GRU = {
        name: "BlockGRU", types: [Float, Half], is_stock: false
    };

    /// Inputs of [`forward`](crate::block_gru::forward), named and ordered as those of the op
    /// `BlockGRU`.
    ///
    /// `x[t, b]` is not read for `t >= sequence_length[b]`. With `reset_after = false`, `b_hc` is
    /// not read and may be of any length.
    struct Inputs<'a, E> {
        /// The number of steps of each row, from 0 to `time`.
        sequence_length: ArrayView1<'a, i64> = steps [Batch],
        /// Inputs of the steps.
        x: ArrayView3<'a, E> = [Time, Batch, Input],
        /// State before the first step.
        h_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Weights of the reset and update gates, in this order of columns.
        w_ru: ArrayView2<'a, E> = [InputCell, Gates(2)],
        /// Weights of the candidate.
        w_c: ArrayView2<'a, E> = [InputCell, Cell],
        /// Biases of the gates, in the order of the columns of `w_ru`.
        b_ru: ArrayView1<'a, E> = [Gates(2)],
        /// Bias of the candidate.
        b_c: ArrayView1<'a, E> = [Cell],
        /// Bias of the state's product in the candidate.
        b_hc: ArrayView1<'a, E> = [Optional(0)],
    }

    /// Outputs of [`forward`](crate::block_gru::forward); those of the steps are zero where the row
    /// has ended. Previous contents do not matter.
    struct Outputs<'a, E> {
        /// Reset gate.
        r: ArrayViewMut3<'a, E> = [TimeOrOne, Batch, Cell],
        /// Update gate.
        u: ArrayViewMut3<'a, E> = [TimeOrOne, Batch, Cell],
        /// Candidate state.
        c: ArrayViewMut3<'a, E> = [TimeOrOne, Batch, Cell],
        /// `hc` in the equations: the gated state, or with `reset_after` the state's product.
        hc: ArrayViewMut3<'a, E> = [TimeOrOne, Batch, Cell],
        /// State after the step.
        h: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
        /// State after each row's last step: `h_prev` where the row has no step.
        h_last: ArrayViewMut2<'a, E> = [Batch, Cell],
    }
}

op! {
    /// `BlockGRUGrad`: see [`crate::block_gru::grad`].
    static BLOCK_GRU_GRAD = {
        name: "BlockGRUGrad", types: [Float, Half], is_stock: false
    };

    /// Inputs of [`grad`](crate::block_gru::grad) that are only read, named and ordered as those of
    /// the op `BlockGRUGrad`.
    ///
    /// `b_ru`, `b_c` and `b_hc` must have the right shapes; their values are not read. With
    /// `reset_after = false`, `b_hc` may be of any length. Where a row has ended no tensor is read,
    /// nor is h of the last of `time` steps.
    struct GradInputs<'a, E>;

    /// Inputs of [`grad`](crate::block_gru::grad) whose memory it works in: it reads the activations
    /// there, and leaves gradients of the loss. What it leaves where a row has ended is not
    /// specified.
    struct GradInPlace<'a, E>;

    /// Outputs of [`grad`](crate::block_gru::grad): gradients of the loss. Previous contents do not
    /// matter. Where nobody reads `x_grad`, `w_ru_grad` or `w_c_grad`, its first dimension may be 0: then it is not
    /// computed.
    struct GradOutputs<'a, E>;

    inputs {
        /// The number of steps of each row, from 0 to `time`.
        sequence_length: ArrayView1<'a, i64> = steps [Batch],
        /// Inputs of the steps.
        x: ArrayView3<'a, E> = [Time, Batch, Input],
        /// State before the first step.
        h_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Weights of the reset and update gates, in this order of columns.
        w_ru: ArrayView2<'a, E> = [InputCell, Gates(2)],
        /// Weights of the candidate.
        w_c: ArrayView2<'a, E> = [InputCell, Cell],
        /// Biases of the gates; values unused.
        b_ru: ArrayView1<'a, E> = [Gates(2)],
        /// Bias of the candidate; values unused.
        b_c: ArrayView1<'a, E> = [Cell],
        /// Bias of the state's product in the candidate; values unused.
        b_hc: ArrayView1<'a, E> = [Optional(0)],
    }
    in_place {
        /// Reset gate; becomes `d_r_bar`.
        r: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
        /// Update gate; becomes `d_u_bar`.
        u: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
        /// Candidate state; becomes `d_c_bar`.
        c: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
        /// What [`forward`](crate::block_gru::forward) returned; becomes `d_hc` with `reset_after`,
        /// and is left as it is without.
        hc: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
    }
    inputs {
        /// State after the step.
        h: ArrayView3<'a, E> = [Time, Batch, Cell],
        /// Gradient of the loss with respect to h.
        h_grad: ArrayView3<'a, E> = [Time, Batch, Cell],
        /// Gradient of the loss with respect to h_last.
        h_last_grad: ArrayView2<'a, E> = [Batch, Cell],
    }
    outputs {
        /// With respect to x; zero where the row has ended.
        x_grad: ArrayViewMut3<'a, E> = [TimeOrNone, Batch, Input],
        /// With respect to h_prev.
        h_prev_grad: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// With respect to w_ru.
        w_ru_grad: ArrayViewMut2<'a, E> = [InputCellOrNone, Gates(2)],
        /// With respect to w_c.
        w_c_grad: ArrayViewMut2<'a, E> = [InputCellOrNone, Cell],
        /// With respect to b_ru.
        b_ru_grad: ArrayViewMut1<'a, E> = [Gates(2)],
        /// With respect to b_c.
        b_c_grad: ArrayViewMut1<'a, E> = [Cell],
        /// With respect to b_hc, of its length; zeros with `reset_after = false`.
        b_hc_grad: ArrayViewMut1<'a, E> = [Optional(0)],
    }
}
