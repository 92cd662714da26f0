//! The operations [`forward_by_row`](crate::block_lstm::forward_by_row) and
//! [`grad_by_row`](crate::block_lstm::grad_by_row).

use ndarray::{ArrayView1, ArrayView2, ArrayView3, ArrayViewMut1, ArrayViewMut2, ArrayViewMut3};

op! {
    /// An LSTM over a sequence, with a length for each row of the batch, and with functions that can be chosen.
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
    /// With tanh, the logistic function and rows of one length, this is `BlockLSTMV2` without
    /// peepholes and clipping. Half is computed in float32, and each output rounded once; the state
    /// that enters a step is that of the step before as it is returned.
    ///
    /// Lengths outside of 0 to `time` are an `InvalidArgumentError`.
    static LSTM = {
        name: "BlockcellLSTM", types: [Half, Float], is_stock: false,
        attributes: {
            /// The function of `ci` and `co`: `tanh`, `sigmoid`, `relu`, `linear`, `hard_sigmoid`, which is Keras 3's, `hard_sigmoid_keras2`, `softsign`, `softplus`, `elu` or `selu`.
            activation: "string = 'tanh'",
            /// The function of the gates, one of the same.
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
        /// Weights, columns of the input gate, the forget gate, the cell input and the output gate.
        w: ArrayView2<'a, E> = [InputCell, Gates(4)],
        /// Biases, in the order of the columns of w.
        b: ArrayView1<'a, E> = [Gates(4)],
    }

    /// Outputs of [`forward_by_row`](crate::block_lstm::forward_by_row), zero where the row has ended. Previous
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
    /// Gradients of a loss that depends on the outputs `cs` and `h` of BlockcellLSTM.
    ///
    /// For `t` from `time - 1` down to 0 and the rows `b` with `t < sequence_length[b]`, with `cs'`
    /// and `h'` the states before the step, `A'` and `S'` the derivatives of the two functions as
    /// numbers that follow from the functions' values, and `dcs_next` and `dh_next`, zero at first,
    /// from the step done before (`t + 1`):
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
    /// The derivatives from a value `y` are `1 - y * y` of tanh, `y * (1 - y)` of the logistic
    /// function, 1 of `linear`, 1 where `y > 0` of `relu`, 1/6 or 0.2 where `0 < y < 1` of the two
    /// `hard_sigmoid`, elsewhere 0; `(1 - |y|)^2` of `softsign`, `1 - e^-y` of `softplus`, `1 + min(y, 0)` of
    /// `elu`, and of `selu` `y + 1.7581` where `y < 0` and 1.0507 elsewhere.
    ///
    /// In the other rows `x_grad[t, b]` is zero, and nothing is read of the tensors that have steps.
    /// At the end `cs_prev_grad = dcs_next` and `h_prev_grad = dh_next`. The values of `b` are not
    /// read at all, nor is `h[time-1]`. Half is computed in float32, sums too, and each output is
    /// rounded once.
    ///
    /// Lengths outside of 0 to `time` are an `InvalidArgumentError`.
    static LSTM_GRAD = {
        name: "BlockcellLSTMGrad", types: [Half, Float], is_stock: false,
        attributes: {
            /// As BlockcellLSTM had it.
            activation: "string = 'tanh'",
            /// As BlockcellLSTM had it.
            recurrent_activation: "string = 'sigmoid'",
        }
    };

    /// Inputs of [`grad_by_row`](crate::block_lstm::grad_by_row) that are only read, named and ordered as those of
    /// the op `BlockcellLSTMGrad`.
    ///
    /// `b` must have the right shape; its values are not read. Where a row has ended no tensor is read, nor is h of the
    /// last of `time` steps.
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
        /// Weights, columns of the input gate, the forget gate, the cell input and the output gate.
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
        /// With respect to x; zero where a row has ended.
        x_grad: ArrayViewMut3<'a, E> = [TimeOrNone, Batch, Input],
        /// With respect to cs_prev.
        cs_prev_grad: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// With respect to h_prev.
        h_prev_grad: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// With respect to w.
        w_grad: ArrayViewMut2<'a, E> = [InputCellOrNone, Gates(4)],
        /// With respect to b.
        b_grad: ArrayViewMut1<'a, E> = [Gates(4)],
    }
}
