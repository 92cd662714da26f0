//! The operations of [`crate::unfused`] on single steps.

use ndarray::{ArrayView1, ArrayView2, ArrayViewD, ArrayViewMut1, ArrayViewMut2, ArrayViewMutD};

op! {
    /// One step of a plain LSTM cell, whose tensors may broadcast.
    ///
    /// `@` is the matrix product, `S` the logistic function, and the terms in brackets exist only with peepholes:
    ///
    /// ```text
    /// [i_bar | ci_bar | f_bar | o_bar] = [x | h_prev] @ w + b
    /// i  = S(i_bar [+ wci * cs_prev])     f  = S(f_bar + forget_bias [+ wcf * cs_prev])
    /// ci = tanh(ci_bar)                   cs = clip(i * ci + f * cs_prev)
    /// o  = S(o_bar [+ wco * cs])          co = tanh(cs)          h = o * co
    /// ```
    ///
    /// The graph passes replace the small operations of `BasicLSTMCell` and `LSTMCell` with it. `LSTMBlockCell`
    /// computes the same if `cs_prev` and `h_prev` are `[batch, cell_size]`.
    static UNFUSED_LSTM_CELL = {
        name: "BlockcellLSTMCell", types: [Half, Float], is_stock: false,
        attributes: {
            num_cs_prev: "int >= 0",
            num_peepholes: "int >= 0",
            /// Added to the forget gate.
            forget_bias: "float = 1.0",
            /// The magnitude the cell state is clipped to; 0 and negative numbers mean no clipping.
            cell_clip: "float = -1.0",
            /// The positions, from 0 on, of the input gate, the cell input, the forget gate and the output gate in the
            /// columns of `w` and `b`.
            gate_order: "list(int) = [0, 1, 2, 3]",
            /// Whether the weights of `h_prev` are a tensor of their own.
            num_w_h: "int >= 0 = 0",
            /// Whether a single row of `x` or `h_prev` broadcasts to the rows of the other one. Requires `w_h`.
            broadcasts_rows: "bool = false",
            /// The function of the cell input and of the cell state: tanh, sigmoid, relu, linear, hard_sigmoid (as in
            /// Keras 3) or hard_sigmoid_keras2.
            activation: "string = 'tanh'",
            /// The function of the gates: one of the same.
            recurrent_activation: "string = 'sigmoid'",
        }
    };

    /// Inputs of [`lstm_cell`](crate::unfused::lstm_cell).
    #[derive(Clone, Debug)]
    struct LstmCellInputs<'a, E> {
        /// Input.
        x: ArrayView2<'a, E> = [Batch, Input],
        /// Output of the previous step. With a projection it is narrower than the state.
        h_prev: ArrayView2<'a, E> = [Batch, Output],
        /// Weights. With `w_h`, only those of `x`, `[input_size, 4 * cell_size]`.
        w: ArrayView2<'a, E> = [InputOutput, Gates(4)],
        /// Biases.
        b: ArrayView1<'a, E> = [Gates(4)],
        /// Cell state of the previous step, of a shape that broadcasts with `[batch, cell_size]`. Optional; zero if
        /// omitted.
        cs_prev: Option<ArrayViewD<'a, E>> = num_cs_prev * Checked [],
        /// Optional: the peephole weights of the input, forget and output gate. Without `cs_prev`, only those of the
        /// output gate, because the others would be multiplied by zeros.
        peepholes: Vec<ArrayView1<'a, E>> = num_peepholes * T [Cell],
        /// Optional: separate weights of `h_prev`. Then `x @ w + h_prev @ w_h` replaces `[x | h_prev] @ w`.
        w_h: Option<ArrayView2<'a, E>> = num_w_h * T [Output, Gates(4)],
    }

    /// Outputs of [`lstm_cell`](crate::unfused::lstm_cell). Previous contents do not matter.
    struct LstmCellOutputs<'a, E> {
        /// Input gate, `[batch, cell_size]`, or with peepholes of the shape of `cs`.
        i: ArrayViewMutD<'a, E> = Checked [Batch, Cell],
        /// Cell state, of the shape that `[batch, cell_size]` and `cs_prev` broadcast to.
        cs: ArrayViewMutD<'a, E> = Checked [Batch, Cell],
        /// Forget gate, of the shape of `i`.
        f: ArrayViewMutD<'a, E> = Checked [Batch, Cell],
        /// Output gate, of the shape of `i`.
        o: ArrayViewMutD<'a, E> = Checked [Batch, Cell],
        /// Cell input.
        ci: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// `tanh(cs)`, of the shape of `cs`.
        co: ArrayViewMutD<'a, E> = Checked [Batch, Cell],
        /// Output before any projection, of the shape of `cs`.
        h: ArrayViewMutD<'a, E> = Checked [Batch, Cell],
    }
}

op! {
    /// The backward step of a plain LSTM cell, whose tensors may broadcast.
    ///
    /// ```text
    /// do  = h_grad * co * o * (1 - o)
    /// dcs = cs_grad + h_grad * o * (1 - co * co) [+ do * wco]
    /// dcs = 0 where the magnitude of i * ci + f * cs_prev is above cell_clip, if that is above 0
    /// di  = dcs * ci * i * (1 - i)      dci = dcs * i * (1 - ci * ci)
    /// df  = dcs * cs_prev * f * (1 - f)
    /// dicfo = [di | dci | df | do]      cs_prev_grad = dcs * f
    /// through_peepholes = [di * wci, df * wcf]
    /// peephole_grads    = [sum_B di * cs_prev, sum_B df * cs_prev, sum_B do * cs]
    /// ```
    ///
    /// The term in brackets and the last two lines exist only with peepholes. Clipped elements get no gradient, as in
    /// `tf.clip_by_value`; the gradients of the block cells ignore the clipping. The graph passes replace the small
    /// operations of a cell's gradient with it.
    static UNFUSED_LSTM_CELL_GRAD = {
        name: "BlockcellLSTMCellGrad", types: [Half, Float], is_stock: false,
        attributes: {
            num_cs_prev: "int >= 0",
            num_cs_grad: "int >= 0",
            num_h_grad: "int >= 0",
            num_peepholes: "int >= 0",
            num_through_peepholes: "int >= 0",
            num_cs: "int >= 0",
            /// Whether the cell state may be larger than `ci`. If so, gradients with respect to pre-activations are
            /// summed to `[batch, cell_size]`.
            sums_to_gates: "bool = false",
            /// The magnitude the cell state was clipped to; 0 and negative numbers mean no clipping.
            cell_clip: "float = -1.0",
            /// The positions, from 0 on, of the input gate, the cell input, the forget gate and the output gate in the
            /// columns of `dicfo`.
            gate_order: "list(int) = [0, 1, 2, 3]",
            /// The function of the cell input and of the cell state: tanh, sigmoid, relu, linear, hard_sigmoid (as in
            /// Keras 3) or hard_sigmoid_keras2.
            activation: "string = 'tanh'",
            /// The function of the gates: one of the same.
            recurrent_activation: "string = 'sigmoid'",
            /// Whether `through_peepholes` is summed to the shape of `cs_prev`.
            sums_to_cs_prev: "bool = false",
            /// Whether it is otherwise summed to the shape of the product of `cs_prev` and the peephole weights.
            sums_to_product: "bool = false",
        }
    };

    /// Inputs of [`lstm_cell_grad`](crate::unfused::lstm_cell_grad).
    #[derive(Clone, Debug)]
    struct LstmCellGradInputs<'a, E> {
        /// Input gate, `[batch, cell_size]`, or with peepholes of the shape of the cell state.
        i: ArrayViewD<'a, E> = Checked [],
        /// Forget gate, of the shape of `i`.
        f: ArrayViewD<'a, E> = Checked [],
        /// Output gate, of the shape of `i`.
        o: ArrayViewD<'a, E> = Checked [],
        /// Cell input.
        ci: ArrayView2<'a, E> = [Batch, Cell],
        /// `tanh(cs)`, of the shape of the cell state: `[batch, cell_size]`, or with `sums_to_gates` the shape that
        /// `[batch, cell_size]` and `cs_prev` broadcast to.
        co: ArrayViewD<'a, E> = Checked [],
        /// Cell state of the previous step, of a shape that broadcasts to that of the cell state. Optional; zero if
        /// omitted.
        cs_prev: Option<ArrayViewD<'a, E>> = num_cs_prev * Checked [],
        /// Terms of the gradient with respect to the cell state, which are added; zero if there are none. Their shapes
        /// broadcast to that of the cell state.
        cs_grad: Vec<ArrayViewD<'a, E>> = num_cs_grad * Checked [],
        /// The same for the output.
        h_grad: Vec<ArrayViewD<'a, E>> = num_h_grad * Checked [],
        /// Optional: the peephole weights of the input, forget and output gate; without `cs_prev`, only those of the
        /// output gate.
        peepholes: Vec<ArrayView1<'a, E>> = num_peepholes * T [Cell],
        /// Optional, with peepholes: the cell state. If omitted, the last of `peephole_grads` is zero.
        cs: Option<ArrayViewD<'a, E>> = num_cs * Checked [],
    }

    /// Outputs of [`lstm_cell_grad`](crate::unfused::lstm_cell_grad). Previous contents do not matter.
    struct LstmCellGradOutputs<'a, E> {
        /// Gradient with respect to `cs_prev`, of the shape of the cell state, even if `cs_prev` has fewer rows. With
        /// three peepholes, it excludes the part in `through_peepholes`.
        cs_prev_grad: ArrayViewMutD<'a, E> = Checked [],
        /// Gradient with respect to the gates' pre-activations.
        dicfo: ArrayViewMut2<'a, E> = [Batch, Gates(4)],
        /// With three peepholes: the gradients with respect to `cs_prev` through the input and the forget gate. They
        /// have the shape of the cell state, unless `sums_to_cs_prev` or `sums_to_product` is set.
        through_peepholes: Vec<ArrayViewMutD<'a, E>> = num_through_peepholes * Checked [],
        /// Gradient with respect to the peephole weights, in their order.
        peephole_grads: Vec<ArrayViewMut1<'a, E>> = num_peepholes * T [Cell],
    }
}

op! {
    /// One step of a plain GRU cell, in half, with other functions than tanh and sigmoid, or with separate weights for the
    /// state.
    ///
    /// `@` is the matrix product, and `S` the logistic function:
    ///
    /// ```text
    /// [r_bar | u_bar] = [x | h_prev] @ w_ru + b_ru
    /// r = S(r_bar)    u = S(u_bar)
    /// c = tanh([x | r * h_prev] @ w_c + b_c)
    /// h = u * h_prev + (1 - u) * c
    /// ```
    ///
    /// The graph passes replace the small operations of a GRU cell with it where `GRUBlockCell` does not compute the same.
    static UNFUSED_GRU_CELL = {
        name: "BlockcellGRUCell", types: [Half, Float], is_stock: false,
        attributes: {
            /// The function of the candidate: tanh, sigmoid, relu, linear, hard_sigmoid (as in Keras 3) or
            /// hard_sigmoid_keras2.
            activation: "string = 'tanh'",
            /// The function of the gates: one of the same.
            recurrent_activation: "string = 'sigmoid'",
            /// Whether the columns of the update gate come before those of the reset gate.
            update_first: "bool = false",
            /// Whether `h` is `(1 - u) * h_prev + u * c`.
            u_weighs_c: "bool = false",
            /// Whether the weights of the state are tensors of their own.
            num_w_h: "int >= 0 = 0",
            /// Whether `x` or `h_prev` may have a single row, which broadcasts. That needs separate weights.
            broadcasts_rows: "bool = false",
        }
    };

    /// Inputs of [`gru_cell`](crate::unfused::gru_cell).
    #[derive(Clone, Copy, Debug)]
    struct GruCellInputs<'a, E> {
        /// Input of the step.
        x: ArrayView2<'a, E> = [Batch, Input],
        /// State before the step.
        h_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Weights of the reset and update gates. With a `w_ru_h` those of `x`, `[input_size, 2 * cell_size]`.
        w_ru: ArrayView2<'a, E> = [InputCell, Gates(2)],
        /// Weights of the candidate. With a `w_c_h` those of `x`, `[input_size, cell_size]`.
        w_c: ArrayView2<'a, E> = [InputCell, Cell],
        /// Biases of the gates, in the order of the columns of `w_ru`.
        b_ru: ArrayView1<'a, E> = [Gates(2)],
        /// Bias of the candidate.
        b_c: ArrayView1<'a, E> = [Cell],
        /// None, or the weights of `h_prev`: `[x | h_prev] @ w_ru` is `x @ w_ru + h_prev @ w_ru_h` then.
        w_ru_h: Option<ArrayView2<'a, E>> = num_w_h * T [Cell, Gates(2)],
        /// None, or those of `r * h_prev` in the candidate.
        w_c_h: Option<ArrayView2<'a, E>> = num_w_h * T [Cell, Cell],
    }

    /// Outputs of [`gru_cell`](crate::unfused::gru_cell). Previous contents do not matter.
    struct GruCellOutputs<'a, E> {
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
    /// The part of the backward step of a plain GRU cell that ends at the candidate and the update gate.
    ///
    /// ```text
    /// d_c_bar = d_h * (1 - u) * (1 - c * c)
    /// d_u_bar = d_h * (h_prev - c) * u * (1 - u)        d_h_u = d_h * u
    /// ```
    ///
    /// With `u_weighs_c`, `u` and `1 - u` are swapped, and so are `h_prev` and `c`.
    ///
    /// The graph passes replace the small operations of a cell's gradient with it, up to the product of `d_c_bar` with
    /// the candidate's weights.
    static UNFUSED_GRU_CELL_GRAD_C = {
        name: "BlockcellGRUCellGradC", types: [Half, Float], is_stock: false,
        attributes: {
            /// The function of the candidate: tanh, sigmoid, relu, linear, hard_sigmoid (as in Keras 3) or
            /// hard_sigmoid_keras2.
            activation: "string = 'tanh'",
            /// The function of the gates: one of the same.
            recurrent_activation: "string = 'sigmoid'",
            /// As BlockcellGRUCell had it.
            u_weighs_c: "bool = false",
        }
    };

    /// Inputs of [`gru_cell_grad_c`](crate::unfused::gru_cell_grad_c).
    #[derive(Clone, Debug)]
    struct GruCellGradCInputs<'a, E> {
        /// Update gate.
        u: ArrayView2<'a, E> = [Batch, Cell],
        /// State before the step.
        h_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Candidate.
        c: ArrayView2<'a, E> = [Batch, Cell],
        /// Gradient with respect to the state after the step; it may broadcast.
        d_h: ArrayViewD<'a, E> = Broadcast [Batch, Cell],
    }

    /// Outputs of [`gru_cell_grad_c`](crate::unfused::gru_cell_grad_c). Previous contents do not matter.
    struct GruCellGradCOutputs<'a, E> {
        /// Gradient with respect to the candidate's pre-activation.
        d_c_bar: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// Gradient with respect to the update gate's pre-activation.
        d_u_bar: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// Gradient with respect to `h_prev` through the update gate.
        d_h_u: ArrayViewMut2<'a, E> = [Batch, Cell],
    }
}

op! {
    /// The part of the backward step of a plain GRU cell that ends at the reset gate.
    ///
    /// ```text
    /// d_r_bar = d_hr * h_prev * r * (1 - r)        d_hr_r = d_hr * r
    /// d_r_bar_u_bar = [d_r_bar | d_u_bar]
    /// ```
    ///
    /// The graph passes replace the small operations of a cell's gradient with it, after the product of `d_c_bar` with
    /// the candidate's weights.
    static UNFUSED_GRU_CELL_GRAD_RU = {
        name: "BlockcellGRUCellGradRU", types: [Half, Float], is_stock: false,
        attributes: {
            /// Whether the columns of the update gate come before those of the reset gate.
            update_first: "bool = false",
        }
    };

    /// Inputs of [`gru_cell_grad_ru`](crate::unfused::gru_cell_grad_ru).
    #[derive(Clone, Debug)]
    struct GruCellGradRuInputs<'a, E> {
        /// Reset gate.
        r: ArrayView2<'a, E> = [Batch, Cell],
        /// State before the step.
        h_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Gradient with respect to the update gate's pre-activation.
        d_u_bar: ArrayView2<'a, E> = [Batch, Cell],
        /// Gradient with respect to `r * h_prev`; it may broadcast.
        d_hr: ArrayViewD<'a, E> = Broadcast [Batch, Cell],
    }

    /// Outputs of [`gru_cell_grad_ru`](crate::unfused::gru_cell_grad_ru). Previous contents do not matter.
    struct GruCellGradRuOutputs<'a, E> {
        /// Gradient with respect to the gates' pre-activations, the reset gate's first, unless `update_first` is true.
        d_r_bar_u_bar: ArrayViewMut2<'a, E> = [Batch, Gates(2)],
        /// Gradient with respect to `h_prev` through the reset gate.
        d_hr_r: ArrayViewMut2<'a, E> = [Batch, Cell],
    }
}
