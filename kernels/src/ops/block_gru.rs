//! The operations of [`crate::block_gru`].

use ndarray::{ArrayView1, ArrayView2, ArrayView3, ArrayViewMut1, ArrayViewMut2, ArrayViewMut3};

op! {
    /// Gated recurrent unit over a sequence, with a length for each row of the batch.
    ///
    /// For row `b` of the batch and `t` from 0 to `sequence_length[b] - 1`, with `h'` the
    /// state before the step (`h_prev` for `t = 0`, otherwise `h[t-1]`), `S` the function
    /// `recurrent_activation`, by default the logistic one, `A` the function `activation`, by default
    /// tanh, `[a | b]` concatenation, `@` the matrix product, `*` the elementwise one, and D the
    /// `input_size`:
    ///
    /// ```text
    /// [r_bar | u_bar] = [x[t] | h'] @ w_ru + b_ru
    /// r = S(r_bar)
    /// u = S(u_bar)
    ///
    /// with reset_after = False:
    ///     hc = r * h'
    ///     c  = A(x[t] @ w_c[:D] + hc @ w_c[D:] + b_c)
    /// with reset_after = True:
    ///     hc = h' @ w_c[D:] + b_hc
    ///     c  = A(x[t] @ w_c[:D] + b_c + r * hc)
    ///
    /// h = u * h' + (1 - u) * c
    /// ```
    ///
    /// For `t >= sequence_length[b]` the elements of `r`, `u`, `c`, `hc` and `h` are zero,
    /// `x` is not read, and the state is carried on.
    ///
    /// Without `reset_after` this is the recurrence of the op `GRUBlockCell`, with the reset
    /// gate applied before the matrix product (Cho et al., 2014). With it, the gate is
    /// applied after the product, as Keras's GRU layer does by default, and cuDNN. The weights
    /// of such a layer, whose columns have the order z, r, h (z is `u` here), correspond to
    ///
    /// ```text
    /// w_ru = [[kernel_r, kernel_z], [recurrent_kernel_r, recurrent_kernel_z]]
    /// w_c  = [[kernel_h], [recurrent_kernel_h]]
    /// b_ru = [bias_r, bias_z], the sums of input bias and recurrent bias with reset_after
    /// b_c  = bias_h, the input bias with reset_after;  b_hc = the recurrent bias_h
    /// ```
    ///
    /// Half is computed in float32, and each output rounded once; the state that enters a
    /// step is that of the step before as it is returned.
    ///
    /// Lengths outside of 0 to `time` are an `InvalidArgumentError`.
    static BLOCK_GRU = {
        name: "BlockGRU", types: [Half, Float], is_stock: false,
        attributes: {
            /// Whether the reset gate is applied after the matrix product.
            reset_after: "bool = false",
            /// The function of the candidate: `tanh`, `sigmoid`, `relu`, `linear`, `hard_sigmoid`, which is Keras 3's, `hard_sigmoid_keras2`, `softsign`, `softplus`, `elu` or `selu`.
            activation: "string = 'tanh'",
            /// The function of the gates, one of the same.
            recurrent_activation: "string = 'sigmoid'",
        }
    };

    /// Inputs of [`forward`](crate::block_gru::forward), named and ordered as those of the op
    /// `BlockGRU`.
    ///
    /// `x[t, b]` is not read for `t >= sequence_length[b]`. With `reset_after = false`, `b_hc` is
    /// not read and may be of any length.
    #[derive(Clone, Copy, Debug)]
    struct Inputs<'a, E> {
        /// The number of steps of each row, from 0 to `time`.
        sequence_length: ArrayView1<'a, i64> = Steps [Batch],
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
    /// Gradients of a loss that depends on the outputs `h` and `h_last` of BlockGRU.
    ///
    /// For `t` from `time - 1` down to 0 and the rows `b` with `t < sequence_length[b]`, with
    /// `h'` the state before the step (`h_prev` for `t = 0`, otherwise `h[t-1]`), D the
    /// `input_size`, and `carry` the gradient with respect to the state after the step, at first
    /// `h_last_grad`:
    ///
    /// ```text
    /// d_h     = h_grad[t] + carry
    /// d_c_bar = d_h * (1 - u) * (1 - c * c)
    /// d_u_bar = d_h * (h' - c) * u * (1 - u)
    ///
    /// with reset_after = False:
    ///     d_hc    = d_c_bar @ w_c[D:]^T
    ///     d_r_bar = d_hc * h' * r * (1 - r)
    ///     carry   = d_h * u + d_hc * r + [d_r_bar | d_u_bar] @ w_ru[D:]^T
    /// with reset_after = True:
    ///     d_hc    = d_c_bar * r
    ///     d_r_bar = d_c_bar * hc * r * (1 - r)
    ///     carry   = d_h * u + d_hc @ w_c[D:]^T + [d_r_bar | d_u_bar] @ w_ru[D:]^T
    ///
    /// x_grad[t]     = d_c_bar @ w_c[:D]^T + [d_r_bar | d_u_bar] @ w_ru[:D]^T
    /// w_ru_grad    += [x[t] | h']^T @ [d_r_bar | d_u_bar]
    /// b_ru_grad    += sum over the rows of [d_r_bar | d_u_bar]
    /// w_c_grad[:D] += x[t]^T @ d_c_bar
    /// b_c_grad     += sum over the rows of d_c_bar
    /// with reset_after = False:
    ///     w_c_grad[D:] += hc^T @ d_c_bar
    ///     b_hc_grad     = 0
    /// with reset_after = True:
    ///     w_c_grad[D:] += h'^T @ d_hc
    ///     b_hc_grad    += sum over the rows of d_hc
    /// ```
    ///
    /// With other functions their derivatives take the place of `1 - c * c`, `u * (1 - u)` and
    /// `r * (1 - r)`, as with `BlockcellLSTMGrad`.
    ///
    /// In the other rows the carry stays as it is, `x_grad[t, b]` is zero, and nothing is read
    /// of the tensors that have steps. The carry that leaves the first step is `h_prev_grad`.
    /// The values of the biases are not read at all, nor is `h[time-1]`. Half is computed in
    /// float32, sums too, and each output is rounded once.
    ///
    /// Lengths outside of 0 to `time` are an `InvalidArgumentError`.
    static BLOCK_GRU_GRAD = {
        name: "BlockGRUGrad", types: [Half, Float], is_stock: false,
        attributes: {
            /// Whether the reset gate is applied after the matrix product.
            reset_after: "bool = false",
            /// As BlockGRU had it.
            activation: "string = 'tanh'",
            /// As BlockGRU had it.
            recurrent_activation: "string = 'sigmoid'",
        }
    };

    /// Inputs of [`grad`](crate::block_gru::grad) that are only read, named and ordered as those of
    /// the op `BlockGRUGrad`.
    ///
    /// `b_ru`, `b_c` and `b_hc` must have the right shapes; their values are not read. With
    /// `reset_after = false`, `b_hc` may be of any length. Where a row has ended no tensor is read,
    /// nor is h of the last of `time` steps.
    #[derive(Clone, Copy, Debug)]
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
        sequence_length: ArrayView1<'a, i64> = Steps [Batch],
        /// Inputs of the steps.
        x: ArrayView3<'a, E> = [Time, Batch, Input],
        /// State before the first step.
        h_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Weights of the reset and update gates, in this order of columns.
        w_ru: ArrayView2<'a, E> = [InputCell, Gates(2)],
        /// Weights of the candidate.
        w_c: ArrayView2<'a, E> = [InputCell, Cell],
        /// Biases of the gates; values unused.
        b_ru: ArrayView1<'a, E> = Unread [Gates(2)],
        /// Bias of the candidate; values unused.
        b_c: ArrayView1<'a, E> = Unread [Cell],
        /// Bias of the state's product in the candidate; values unused.
        b_hc: ArrayView1<'a, E> = Unread [Optional(0)],
    }
    in_place {
        /// Reset gate; becomes `d_r_bar`.
        r: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
        /// Update gate; becomes `d_u_bar`.
        u: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
        /// Candidate state; becomes `d_c_bar`.
        c: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
        /// What `BlockGRU` returned; becomes `d_hc` with `reset_after`,
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
