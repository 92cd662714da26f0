//! The operations of [`crate::unfused`] on single steps.

use ndarray::{ArrayView1, ArrayView2, ArrayViewD, ArrayViewMut1, ArrayViewMut2, ArrayViewMutD};

op! {
    /// One step of a plain LSTM cell, on tensors that broadcast.
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
    /// It is what graphs get in place of the small operations of `BasicLSTMCell` and `LSTMCell`. `LSTMBlockCell`
    /// computes the same for a `cs_prev` of `[batch, cell_size]`, and an `h_prev` as wide.
    static UNFUSED_LSTM_CELL = {
        name: "BlockcellLSTMCell", types: [Half, Float], is_stock: false,
        attributes: {
            num_cs_prev: "int >= 0",
            num_peepholes: "int >= 0",
            /// Added to the forget gate.
            forget_bias: "float = 1.0",
            /// The magnitude the cell state is clipped to; 0 and negative numbers mean no clipping.
            cell_clip: "float = -1.0",
            /// How many gates stand before the input gate, the cell input, the forget gate and the output gate in the columns of
            /// `w` and `b`.
            gate_order: "list(int) = [0, 1, 2, 3]",
            /// Whether the weights of `h_prev` are a tensor of their own.
            num_w_h: "int >= 0 = 0",
            /// Whether one row of `x` or `h_prev` stands for all, where the other one has more. That needs a `w_h`.
            broadcasts_rows: "bool = false",
            /// The function of the cell input and of the cell state: tanh, sigmoid, relu, linear, hard_sigmoid (that of
            /// Keras 3), hard_sigmoid_keras2, softsign, softplus, elu or selu.
            activation: "string = 'tanh'",
            /// The function of the gates, one of the same.
            recurrent_activation: "string = 'sigmoid'",
        }
    };

    /// Inputs of [`lstm_cell`](crate::unfused::lstm_cell).
    #[derive(Clone, Debug)]
    struct LstmCellInputs<'a, E> {
        /// Input.
        x: ArrayView2<'a, E> = [Batch, Input],
        /// Output of the step before. With a projection it is narrower than the state.
        h_prev: ArrayView2<'a, E> = [Batch, Output],
        /// Weights. With a `w_h` those of `x`, `[input_size, 4 * cell_size]`.
        w: ArrayView2<'a, E> = [InputOutput, Gates(4)],
        /// Biases.
        b: ArrayView1<'a, E> = [Gates(4)],
        /// Cell state of the step before, of a shape that broadcasts with `[batch, cell_size]`; none for zeros.
        cs_prev: Option<ArrayViewD<'a, E>> = num_cs_prev * Checked [],
        /// None, or the peephole weights of the input, forget and output gate. Without a `cs_prev` there may be that of the
        /// output gate alone, as the others would look at zeros.
        peepholes: Vec<ArrayView1<'a, E>> = num_peepholes * T [Cell],
        /// None, or the weights of `h_prev`: `[x | h_prev] @ w` is `x @ w + h_prev @ w_h` then.
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
    /// The backward step of a plain LSTM cell, on tensors that broadcast.
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
    /// The term in brackets and the last two lines exist only with peepholes. What was clipped has no gradient, as in
    /// `tf.clip_by_value`; the gradients of the block cells do not look at the clip. It is what graphs get in place of
    /// the small operations of a cell's gradient.
    static UNFUSED_LSTM_CELL_GRAD = {
        name: "BlockcellLSTMCellGrad", types: [Half, Float], is_stock: false,
        attributes: {
            num_cs_prev: "int >= 0",
            num_cs_grad: "int >= 0",
            num_h_grad: "int >= 0",
            num_peepholes: "int >= 0",
            num_through_peepholes: "int >= 0",
            num_cs: "int >= 0",
            /// Whether the cell state may be larger than `ci`. Then gradients are added up to `[batch, cell_size]` where
            /// pre-activations take them.
            sums_to_gates: "bool = false",
            /// What the magnitude of the cell state was clipped to. Values up to 0 mean no clipping.
            cell_clip: "float = -1.0",
            /// How many gates stand before the input gate, the cell input, the forget gate and the output gate in the columns of
            /// `dicfo`.
            gate_order: "list(int) = [0, 1, 2, 3]",
            /// The function of the cell input and of the cell state: tanh, sigmoid, relu, linear, hard_sigmoid (that of
            /// Keras 3), hard_sigmoid_keras2, softsign, softplus, elu or selu.
            activation: "string = 'tanh'",
            /// The function of the gates, one of the same.
            recurrent_activation: "string = 'sigmoid'",
            /// Whether `through_peepholes` is added up to the shape of `cs_prev`.
            sums_to_cs_prev: "bool = false",
            /// The same to the shape of the product of `cs_prev` and peephole weights, if it is not.
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
        /// `tanh(cs)`, of the shape of the cell state. That is `[batch, cell_size]`, or with `sums_to_gates` what
        /// `[batch, cell_size]` and `cs_prev` broadcast to.
        co: ArrayViewD<'a, E> = Checked [],
        /// Cell state of the step before, of a shape that broadcasts to that of the cell state; none for zeros.
        cs_prev: Option<ArrayViewD<'a, E>> = num_cs_prev * Checked [],
        /// Summands of the gradient with respect to the cell state, of shapes that broadcast to its shape; none for
        /// zeros.
        cs_grad: Vec<ArrayViewD<'a, E>> = num_cs_grad * Checked [],
        /// The same with respect to the output.
        h_grad: Vec<ArrayViewD<'a, E>> = num_h_grad * Checked [],
        /// None, or the peephole weights of the input, forget and output gate; without a `cs_prev` there may be that
        /// of the output gate alone.
        peepholes: Vec<ArrayView1<'a, E>> = num_peepholes * T [Cell],
        /// The cell state, with peepholes. Without it the last of `peephole_grads` is zero.
        cs: Option<ArrayViewD<'a, E>> = num_cs * Checked [],
    }

    /// Outputs of [`lstm_cell_grad`](crate::unfused::lstm_cell_grad). Previous contents do not matter.
    struct LstmCellGradOutputs<'a, E> {
        /// With respect to `cs_prev`, of the shape of the cell state, also where `cs_prev` has fewer rows. With
        /// peepholes, as far as it does not come through them.
        cs_prev_grad: ArrayViewMutD<'a, E> = Checked [],
        /// With respect to the gates' pre-activations.
        dicfo: ArrayViewMut2<'a, E> = [Batch, Gates(4)],
        /// With three peepholes, with respect to `cs_prev` through the input and the forget gate: of the shape of the cell
        /// state, or what `sums_to_cs_prev` and `sums_to_product` say.
        through_peepholes: Vec<ArrayViewMutD<'a, E>> = num_through_peepholes * Checked [],
        /// With respect to the peephole weights, in their order.
        peephole_grads: Vec<ArrayViewMut1<'a, E>> = num_peepholes * T [Cell],
    }
}

op! {
    /// One step of a plain GRU cell, in half, with other functions than tanh and sigmoid, or with weights of its own for the
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
    /// It is what graphs get in place of the small operations of a GRU cell where `GRUBlockCell` does not compute the same.
    static UNFUSED_GRU_CELL = {
        name: "BlockcellGRUCell", types: [Half, Float], is_stock: false,
        attributes: {
            /// The function of the candidate: tanh, sigmoid, relu, linear, hard_sigmoid (that of Keras 3),
            /// hard_sigmoid_keras2, softsign, softplus, elu or selu.
            activation: "string = 'tanh'",
            /// The function of the gates, one of the same.
            recurrent_activation: "string = 'sigmoid'",
            /// Whether the columns of the update gate come before those of the reset gate.
            update_first: "bool = false",
            /// Whether `h` is `(1 - u) * h_prev + u * c`.
            u_weighs_c: "bool = false",
            /// Whether the weights of the state are tensors of their own.
            num_w_h: "int >= 0 = 0",
            /// Whether one row of `x` or `h_prev` stands for all, where the other one has more. That needs weights of their
            /// own.
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
    /// The backward step of a plain GRU cell, down to the candidate and the update gate.
    ///
    /// ```text
    /// d_c_bar = d_h * (1 - u) * (1 - c * c)
    /// d_u_bar = d_h * (h_prev - c) * u * (1 - u)        d_h_u = d_h * u
    /// ```
    ///
    /// With `u_weighs_c`, `u` and `1 - u` change places, and `h_prev` and `c`.
    ///
    /// It is what graphs get in place of the small operations of a cell's gradient, before the product of `d_c_bar`
    /// with the candidate's weights.
    static UNFUSED_GRU_CELL_GRAD_C = {
        name: "BlockcellGRUCellGradC", types: [Half, Float], is_stock: false,
        attributes: {
            /// The function of the candidate: tanh, sigmoid, relu, linear, hard_sigmoid (that of Keras 3),
            /// hard_sigmoid_keras2, softsign, softplus, elu or selu.
            activation: "string = 'tanh'",
            /// The function of the gates, one of the same.
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
        /// Gradient with respect to the state after the step, or of a shape that broadcasts to that.
        d_h: ArrayViewD<'a, E> = Broadcast [Batch, Cell],
    }

    /// Outputs of [`gru_cell_grad_c`](crate::unfused::gru_cell_grad_c). Previous contents do not matter.
    struct GruCellGradCOutputs<'a, E> {
        /// With respect to the candidate's pre-activation.
        d_c_bar: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// With respect to the update gate's pre-activation.
        d_u_bar: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// With respect to `h_prev`, as far as it does not come through the products.
        d_h_u: ArrayViewMut2<'a, E> = [Batch, Cell],
    }
}

op! {
    /// The backward step of a plain GRU cell, down to the reset gate.
    ///
    /// ```text
    /// d_r_bar = d_hr * h_prev * r * (1 - r)        d_hr_r = d_hr * r
    /// d_r_bar_u_bar = [d_r_bar | d_u_bar]
    /// ```
    ///
    /// It is what graphs get in place of the small operations of a cell's gradient, after the product of `d_c_bar` with
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
        /// Gradient with respect to `r * h_prev`, or of a shape that broadcasts to that.
        d_hr: ArrayViewD<'a, E> = Broadcast [Batch, Cell],
    }

    /// Outputs of [`gru_cell_grad_ru`](crate::unfused::gru_cell_grad_ru). Previous contents do not matter.
    struct GruCellGradRuOutputs<'a, E> {
        /// With respect to the gates' pre-activations, the reset gate's first, unless `update_first` says otherwise.
        d_r_bar_u_bar: ArrayViewMut2<'a, E> = [Batch, Gates(2)],
        /// With respect to `h_prev`, as far as it comes through the reset gate.
        d_hr_r: ArrayViewMut2<'a, E> = [Batch, Cell],
    }
}
