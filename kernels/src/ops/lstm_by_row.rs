//! The operations [`forward_by_row`](crate::block_lstm::forward_by_row) and
//! [`grad_by_row`](crate::block_lstm::grad_by_row).

use ndarray::{ArrayView1, ArrayView2, ArrayView3, ArrayViewMut1, ArrayViewMut2, ArrayViewMut3};

op! {
    /// An LSTM over a sequence, with a length for each row of the batch and a choice of activations.
    ///
    /// For row `b` of the batch and `t` from 0 to `sequence_length[b] - 1`, with `h'` and `cs'` the
    /// states before the step (`h_prev` and `cs_prev` for `t = 0`, otherwise `h[t-1]` and `cs[t-1]`),
    /// `A` the function `activation`, `S` the function `recurrent_activation`, `[a | b]`
    /// concatenation, `@` the matrix product, and `*` the elementwise one:
    ///
    /// ```text
    /// [i_bar | f_bar | ci_bar | o_bar] = [x[t] | h'] @ w + b
    /// i  = S(i_bar)      f  = S(f_bar)      o = S(o_bar)
    /// ci = A(ci_bar)     cs = i * ci + f * cs'
    /// co = A(cs)         h  = o * co
    /// ```
    ///
    /// For `t >= sequence_length[b]` all outputs are zero, and `x` is not read.
    ///
    /// With tanh, the logistic function and rows of equal length, this is `BlockLSTMV2` without peepholes and
    /// clipping. Half is computed in float32, and each output is rounded once. The state that enters a step is the
    /// rounded output of the previous step.
    ///
    /// Lengths outside 0 to `time` raise an `InvalidArgumentError`.
    static LSTM = {
        name: "BlockcellLSTM", types: [Half, Float], is_stock: false,
        attributes: {
            /// The function of `ci` and `co`: `tanh`, `sigmoid`, `relu`, `linear`, `hard_sigmoid` (as in Keras 3) or
            /// `hard_sigmoid_keras2`.
            activation: "string = 'tanh'",
            /// The function of the gates: one of the same.
            recurrent_activation: "string = 'sigmoid'",
        }
    };

    /// Inputs of [`forward_by_row`](crate::block_lstm::forward_by_row), named and ordered as those of the op
    /// `BlockcellLSTM`.
    ///
    /// `x[t, b]` is not read for `t >= sequence_length[b]`.
    #[derive(Clone, Copy, Debug)]
    struct ByRowInputs<'a, E> {
        /// The number of steps of each row, from 0 to `time`.
        sequence_length: ArrayView1<'a, i64> = Steps [Batch],
        /// Inputs of the steps.
        x: ArrayView3<'a, E> = [Time, Batch, Input],
        /// Cell state before the first step.
        cs_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Output before the first step.
        h_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Weights, with columns in the order input gate, forget gate, cell input, output gate.
        w: ArrayView2<'a, E> = [InputCell, Gates(4)],
        /// Biases, in the order of the columns of w.
        b: ArrayView1<'a, E> = [Gates(4)],
    }

    /// Outputs of [`forward_by_row`](crate::block_lstm::forward_by_row), zero after the end of a row. Previous
    /// contents do not matter.
    struct ByRowOutputs<'a, E> {
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
        /// `A(cs)`.
        co: ArrayViewMut3<'a, E> = [TimeOrOne, Batch, Cell],
        /// Output.
        h: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
    }
}

op! {
    /// The gradients of a loss that depends on the outputs `cs` and `h` of BlockcellLSTM.
    ///
    /// For `t` from `time - 1` down to 0 and the rows `b` with `t < sequence_length[b]`, with `cs'` and `h'` the
    /// states before the step, `A'` and `S'` the derivatives of the two functions in terms of the functions' values,
    /// and `dcs_next` and `dh_next` the gradients from step `t + 1`, initially zero:
    ///
    /// ```text
    /// dh  = h_grad[t] + dh_next
    /// do  = dh * co * S'(o)
    /// dcs = cs_grad[t] + dcs_next + dh * o * A'(co)
    /// di  = dcs * ci * S'(i)      dci = dcs * i * A'(ci)
    /// df  = dcs * cs' * S'(f)
    /// dz  = [di | df | dci | do]
    /// dcs_next = dcs * f
    /// [x_grad[t] | dh_next] = dz @ w^T
    /// w_grad += [x[t] | h']^T @ dz      b_grad += sum over the rows of dz
    /// ```
    ///
    /// In terms of a value `y`, the derivatives are `1 - y * y` of tanh, `y * (1 - y)` of the logistic function, 1 of
    /// `linear`, 1 where `y > 0` of `relu`, and 1/6 or 0.2 where `0 < y < 1` of the two `hard_sigmoid`; elsewhere 0.
    ///
    /// In the other rows `x_grad[t, b]` is zero, and no tensor that has steps is read. At the end `cs_prev_grad =
    /// dcs_next` and `h_prev_grad = dh_next`. The values of `b` and `h[time-1]` are not read. Half is computed in
    /// float32, including sums, and each output is rounded once.
    ///
    /// Lengths outside 0 to `time` raise an `InvalidArgumentError`.
    static LSTM_GRAD = {
        name: "BlockcellLSTMGrad", types: [Half, Float], is_stock: false,
        attributes: {
            /// As in `BlockcellLSTM`.
            activation: "string = 'tanh'",
            /// As in `BlockcellLSTM`.
            recurrent_activation: "string = 'sigmoid'",
        }
    };

    /// Inputs of [`grad_by_row`](crate::block_lstm::grad_by_row) that are only read, named and ordered as those of
    /// the op `BlockcellLSTMGrad`.
    ///
    /// `b` must have the right shape; its values are not read. No tensor is read in steps after a row has ended, and h
    /// of the last step is not read.
    #[derive(Clone, Copy, Debug)]
    struct ByRowGradInputs<'a, E>;

    /// Inputs of [`grad_by_row`](crate::block_lstm::grad_by_row) whose memory it works in: it reads the gates there,
    /// and leaves the gradients of the loss with respect to their pre-activations. What it leaves where a row has
    /// ended is not specified.
    struct ByRowGradInPlace<'a, E>;

    /// Outputs of [`grad_by_row`](crate::block_lstm::grad_by_row): gradients of the loss. Previous contents do not
    /// matter. Where nobody reads `x_grad` or `w_grad`, its first dimension may be 0: then it is not computed.
    struct ByRowGradOutputs<'a, E>;

    inputs {
        /// The number of steps of each row, from 0 to `time`.
        sequence_length: ArrayView1<'a, i64> = Steps [Batch],
        /// Inputs of the steps.
        x: ArrayView3<'a, E> = [Time, Batch, Input],
        /// Cell state before the first step.
        cs_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Output before the first step.
        h_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Weights, with columns in the order input gate, forget gate, cell input, output gate.
        w: ArrayView2<'a, E> = [InputCell, Gates(4)],
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
        /// `A(cs)`.
        co: ArrayView3<'a, E> = [Time, Batch, Cell],
        /// Output.
        h: ArrayView3<'a, E> = [Time, Batch, Cell],
        /// Gradient of the loss with respect to cs.
        cs_grad: ArrayView3<'a, E> = [Time, Batch, Cell],
        /// Gradient of the loss with respect to h.
        h_grad: ArrayView3<'a, E> = [Time, Batch, Cell],
    }
    outputs {
        /// Gradient with respect to x; zero after the end of a row.
        x_grad: ArrayViewMut3<'a, E> = [TimeOrNone, Batch, Input],
        /// Gradient with respect to cs_prev.
        cs_prev_grad: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// Gradient with respect to h_prev.
        h_prev_grad: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// Gradient with respect to w.
        w_grad: ArrayViewMut2<'a, E> = [InputCellOrNone, Gates(4)],
        /// Gradient with respect to b.
        b_grad: ArrayViewMut1<'a, E> = [Gates(4)],
    }
}
