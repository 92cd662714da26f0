//! The operations of [`crate::unfused`] on loops over a sequence.

use ndarray::{ArrayView1, ArrayView2, ArrayView3, ArrayViewD, ArrayViewMut2, ArrayViewMut3};

op! {
    /// A loop over a sequence whose rounds are steps of an LSTM cell.
    ///
    /// Step t of a row computes what `BlockcellLSTMCell` does, from `x[t]` and the state of the row's step before. It is
    /// what graphs get in place of the loop of `tf.nn.dynamic_rnn` around `BasicLSTMCell`, `LSTMCell` or `LSTMBlockCell`,
    /// where nothing else happens in a round and nobody takes gradients. A row that has ended keeps its state, and its
    /// outputs are zero, as are those of steps that the loop does not reach.
    ///
    /// The loop ends after as many rounds as the least of `rounds` says. More rounds than `time`, and a loop without a
    /// round where `h_sizes` is not known, are an `InvalidArgumentError`, as are tensors of other shapes.
    static LSTM_LAYER = {
        name: "BlockcellLSTMLayer", types: [Half, Float], is_stock: false,
        attributes: {
            num_rounds: "int >= 1",
            num_sequence_length: "int >= 0",
            num_peepholes: "int >= 0",
            /// Added to the forget gate.
            forget_bias: "float = 1.0",
            /// The magnitude the cell state is clipped to; 0 and negative numbers mean no clipping.
            cell_clip: "float = -1.0",
            /// How many gates stand before the input gate, the cell input, the forget gate and the output gate in the columns of
            /// `w` and `b`.
            gate_order: "list(int) = [0, 1, 2, 3]",
            /// What the sizes of a step of `x` must be, -1 for any; empty if nothing is known.
            x_sizes: "list(int) = []",
            /// The same of a step of `h`.
            h_sizes: "list(int) = []",
            /// Whether somebody reads `h`. Otherwise its sizes may be unknown.
            needs_h: "bool = true",
            /// Whether the loop's arrays are lists of TensorFlow 2. Then `time` is the number of steps of `h` alone, `x`
            /// may have another one, and a loop without a round needs `h_sizes` for any `time`.
            lists: "bool = false",
            /// Whether `cs_prev` may have a shape that broadcasts. That of `LSTMBlockCell` may not.
            broadcasts: "bool = true",
            /// Whether the weights of `h_prev` are a tensor of their own.
            num_w_h: "int >= 0 = 0",
            /// Whether one row of `x` or `h_prev` stands for all, where the other one has more. That needs a `w_h`, and no
            /// `sequence_length`.
            broadcasts_rows: "bool = false",
            /// The function of the cell input and of the cell state: tanh, sigmoid, relu, linear, hard_sigmoid (that of
            /// Keras 3), hard_sigmoid_keras2, softsign, softplus, elu or selu.
            activation: "string = 'tanh'",
            /// The function of the gates, one of the same.
            recurrent_activation: "string = 'sigmoid'",
            /// Whether outputs are projected.
            num_projection: "int >= 0 = 0",
            /// The magnitude projected outputs are clipped to; 0 and negative numbers mean no clipping.
            proj_clip: "float = -1.0",
            /// Whether `h` has the sum of each output and the step's `x`, which is as wide, as that of `ResidualWrapper`.
            adds_x: "bool = false",
        }
    };

    /// Inputs of [`lstm_layer`](crate::unfused::lstm_layer).
    #[derive(Clone, Debug)]
    struct LstmLayerInputs<'a, E> {
        /// How many steps `x` and `h` have.
        time: i32 = Int32 [],
        /// How many rounds the loop has at most; the least of these counts. A negative number stands for 0.
        rounds: Vec<i32> = num_rounds * Int32 [],
        /// None, or the number of steps of each row, `[batch]` or a scalar. A row takes part in all rounds if its number
        /// is larger, and in none if it is negative.
        sequence_length: Option<ArrayViewD<'a, i32>> = num_sequence_length * Lengths [],
        /// Inputs of the steps.
        x: ArrayView3<'a, E> = [Time, Batch, Input],
        /// Output before the first step. Without a projection it is as wide as the cell state.
        h_prev: ArrayView2<'a, E> = [Batch, Output],
        /// Cell state before the first step, `[batch, cell_size]`, or a shape that broadcasts to that, if it may and there
        /// is no `sequence_length`.
        cs_prev: ArrayViewD<'a, E> = Checked [],
        /// Weights. With a `w_h` those of `x`, `[input_size, 4 * cell_size]`.
        w: ArrayView2<'a, E> = [InputOutput, Gates(4)],
        /// Biases.
        b: ArrayView1<'a, E> = [Gates(4)],
        /// None, or the peephole weights of the input, forget and output gate.
        peepholes: Vec<ArrayView1<'a, E>> = num_peepholes * T [Cell],
        /// None, or the weights of `h_prev`.
        w_h: Option<ArrayView2<'a, E>> = num_w_h * T [Output, Gates(4)],
        /// None, or what outputs are multiplied by, with at most as many columns as the cell state.
        projection: Option<ArrayView2<'a, E>> = num_projection * T [Cell, Output],
    }

    /// Outputs of [`lstm_layer`](crate::unfused::lstm_layer). Previous contents do not matter.
    struct LstmLayerOutputs<'a, E> {
        /// Outputs of the steps; zero in steps that a row does not take part in.
        h: ArrayViewMut3<'a, E> = [Time, Batch, Output],
        /// Output of each row's last step; `h_prev` where it has none.
        h_last: ArrayViewMut2<'a, E> = [Batch, Output],
        /// Cell state after each row's last step.
        cs_last: ArrayViewMut2<'a, E> = [Batch, Cell],
    }
}

op! {
    /// A loop over a sequence whose rounds are steps of a GRU cell.
    ///
    /// Step t of a row computes what `BlockcellGRUCell` does, from `x[t]` and the state of the row's step before. It is what graphs
    /// get in place of the loop of `tf.nn.dynamic_rnn` around `GRUCell` or `GRUBlockCell`, where nothing else happens in
    /// a round and nobody takes gradients. A row that has ended keeps its state, and its outputs are zero, as are those
    /// of steps that the loop does not reach.
    ///
    /// The loop ends after as many rounds as the least of `rounds` says. More rounds than `time`, and a loop without a
    /// round where `h_sizes` is not known, are an `InvalidArgumentError`, as are tensors of other shapes.
    static GRU_LAYER = {
        name: "BlockcellGRULayer", types: [Half, Float], is_stock: false,
        attributes: {
            num_rounds: "int >= 1",
            num_sequence_length: "int >= 0",
            /// What the sizes of a step of `x` must be, -1 for any; empty if nothing is known.
            x_sizes: "list(int) = []",
            /// The same of a step of `h`.
            h_sizes: "list(int) = []",
            /// Whether somebody reads `h`. Otherwise its sizes may be unknown.
            needs_h: "bool = true",
            /// Whether the loop's arrays are lists of TensorFlow 2. Then `time` is the number of steps of `h` alone, `x`
            /// may have another one, and a loop without a round needs `h_sizes` for any `time`.
            lists: "bool = false",
            /// The function of the candidate: tanh, sigmoid, relu, linear, hard_sigmoid (that of Keras 3),
            /// hard_sigmoid_keras2, softsign, softplus, elu or selu.
            activation: "string = 'tanh'",
            /// The function of the gates, one of the same.
            recurrent_activation: "string = 'sigmoid'",
            /// Whether `h` has the sum of each output and the step's `x`, which is as wide, as that of `ResidualWrapper`.
            adds_x: "bool = false",
            /// Whether the columns of the update gate come before those of the reset gate.
            update_first: "bool = false",
            /// Whether the state is `(1 - u) * h_prev + u * c`.
            u_weighs_c: "bool = false",
            /// Whether the weights of the state are tensors of their own.
            num_w_h: "int >= 0 = 0",
            /// Whether one row of `x` or `h_prev` stands for all, where the other one has more. That needs weights of their
            /// own, and no `sequence_length`.
            broadcasts_rows: "bool = false",
        }
    };

    /// Inputs of [`gru_layer`](crate::unfused::gru_layer).
    #[derive(Clone, Debug)]
    struct GruLayerInputs<'a, E> {
        /// How many steps `x` and `h` have.
        time: i32 = Int32 [],
        /// How many rounds the loop has at most; the least of these counts. A negative number stands for 0.
        rounds: Vec<i32> = num_rounds * Int32 [],
        /// None, or the number of steps of each row, `[batch]` or a scalar. A row takes part in all rounds if its number
        /// is larger, and in none if it is negative.
        sequence_length: Option<ArrayViewD<'a, i32>> = num_sequence_length * Lengths [],
        /// Inputs of the steps.
        x: ArrayView3<'a, E> = [Time, Batch, Input],
        /// State before the first step.
        h_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Weights of the reset and update gates. With a `w_ru_h` those of `x`, `[input_size, 2 * cell_size]`.
        w_ru: ArrayView2<'a, E> = [InputCell, Gates(2)],
        /// Weights of the candidate. With a `w_c_h` those of `x`, `[input_size, cell_size]`.
        w_c: ArrayView2<'a, E> = [InputCell, Cell],
        /// Biases of the gates, in the order of the columns of `w_ru`.
        b_ru: ArrayView1<'a, E> = [Gates(2)],
        /// Bias of the candidate.
        b_c: ArrayView1<'a, E> = [Cell],
        /// None, or the weights of the state in the gates.
        w_ru_h: Option<ArrayView2<'a, E>> = num_w_h * T [Cell, Gates(2)],
        /// None, or those of `r * h_prev` in the candidate.
        w_c_h: Option<ArrayView2<'a, E>> = num_w_h * T [Cell, Cell],
    }

    /// Outputs of [`gru_layer`](crate::unfused::gru_layer). Previous contents do not matter.
    struct GruLayerOutputs<'a, E> {
        /// Outputs of the steps; zero in steps that a row does not take part in.
        h: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
        /// State after each row's last step; `h_prev` where it has none.
        h_last: ArrayViewMut2<'a, E> = [Batch, Cell],
    }
}

op! {
    /// A loop over a sequence whose rounds are steps of the LSTM cell of Keras.
    ///
    /// Step t of a row computes, from `x[t]` and the states of the row's step before:
    ///
    /// ```text
    /// [i | f | ci | o] = x[t] @ w_x + h_prev @ w_h + b
    /// cs = sigmoid(f) * cs_prev + sigmoid(i) * tanh(ci)
    /// h  = sigmoid(o) * tanh(cs)
    /// ```
    ///
    /// It is what graphs get in place of the loop of a layer `LSTM` that Keras 3 has exported,
    /// where nothing else happens in a round and nobody takes gradients.
    ///
    /// The loop ends after as many rounds as the least of `rounds` says. In a step that is masked, a row keeps its state.
    /// More rounds than `x` or `h` have steps, and a loop without a round where `h_sizes` is not known, are an
    /// `InvalidArgumentError`, as are tensors of other shapes. Where the batch is larger, one row of a tensor stands for
    /// all.
    static KERAS_LSTM = {
        name: "BlockcellKerasLSTM", types: [Half, Float], is_stock: false,
        attributes: {
            num_rounds: "int >= 1",
            num_mask: "int >= 0",
            /// Whether each round writes its output to the first step of `h`, so that the output of the last round is
            /// left.
            last_only: "bool = false",
            /// Whether the output of a row in a masked step is that of its step before, and not `before`.
            repeats: "bool = true",
            /// What the sizes of a step of `x` must be, -1 for any; empty if nothing is known.
            x_sizes: "list(int) = []",
            /// The same of a step of `h`.
            h_sizes: "list(int) = []",
            /// Whether somebody reads `h`. Otherwise its sizes may be unknown.
            needs_h: "bool = true",
            /// The function of the cell input and of the cell state: tanh, sigmoid, relu, linear, hard_sigmoid (that of
            /// Keras 3), hard_sigmoid_keras2, softsign, softplus, elu or selu.
            activation: "string = 'tanh'",
            /// The function of the gates, one of the same.
            recurrent_activation: "string = 'sigmoid'",
        }
    };

    /// Inputs of [`keras_lstm`](crate::unfused::keras_lstm). Where the batch is larger, one row of a tensor stands for all.
    #[derive(Clone, Debug)]
    struct KerasLstmInputs<'a, E> {
        /// How many steps `h` has.
        size: i32 = Int32 [],
        /// How many rounds the loop has at most; the least of these counts. A negative number stands for 0.
        rounds: Vec<i32> = num_rounds * Int32 [],
        /// Inputs of the steps.
        x: ArrayView3<'a, E> = [Any("time"), Any("batch"), Input],
        /// Output before the first step.
        h_prev: ArrayView2<'a, E> = [Any("batch"), Cell],
        /// Cell state before the first step.
        cs_prev: ArrayView2<'a, E> = [Any("batch"), Cell],
        /// Weights of `x`: of the input gate, forget gate, cell input and output gate.
        w_x: ArrayView2<'a, E> = [Input, Gates(4)],
        /// Weights of the state.
        w_h: ArrayView2<'a, E> = [Cell, Gates(4)],
        /// Biases.
        b: ArrayView1<'a, E> = [Gates(4)],
        /// None, or whether a row takes part in a step.
        mask: Option<ArrayView3<'a, u8>> = num_mask * Bool [Any("time"), Any("batch"), Any("1")],
        /// With a mask, the output before the first step.
        before: Option<ArrayView2<'a, E>> = num_mask * T [Any("batch"), Cell],
    }

    /// Outputs of [`keras_lstm`](crate::unfused::keras_lstm). Previous contents do not matter.
    struct KerasLstmOutputs<'a, E> {
        /// Outputs of the steps; zero from the last round on.
        h: ArrayViewMut3<'a, E> = Checked [Any("size"), Batch, Cell],
        /// Output of each row's last step; `h_prev` where it has none.
        h_last: ArrayViewMut2<'a, E> = Checked [Batch, Cell],
        /// Cell state after each row's last step.
        cs_last: ArrayViewMut2<'a, E> = Checked [Batch, Cell],
    }
}

op! {
    /// A loop over a sequence whose rounds are steps of the GRU cell of Keras.
    ///
    /// Step t of a row computes, from `x[t]` and the state of the row's step before:
    ///
    /// ```text
    /// [x_z | x_r | x_c] = x[t] @ w_x + b_x
    /// [h_z | h_r | h_c] = h_prev @ w_h + b_h
    /// z = sigmoid(x_z + h_z)
    /// r = sigmoid(x_r + h_r)
    /// h = z * h_prev + (1 - z) * tanh(x_c + r * h_c)
    /// ```
    ///
    /// Without `reset_after`, `(r * h_prev) @ w_h` is in the place of `r * h_c`, with the same columns of `w_h` and `b_h`.
    /// It is what graphs get in place of the loop of a layer `GRU` that Keras 3 has exported, where nothing else happens
    /// in a round and nobody takes gradients.
    ///
    /// The loop ends after as many rounds as the least of `rounds` says. In a step that is masked, a row keeps its state.
    /// More rounds than `x` or `h` have steps, and a loop without a round where `h_sizes` is not known, are an
    /// `InvalidArgumentError`, as are tensors of other shapes. Where the batch is larger, one row of a tensor stands for
    /// all.
    static KERAS_GRU = {
        name: "BlockcellKerasGRU", types: [Half, Float], is_stock: false,
        attributes: {
            num_rounds: "int >= 1",
            num_mask: "int >= 0",
            /// Whether each round writes its output to the first step of `h`, so that the output of the last round is
            /// left.
            last_only: "bool = false",
            /// Whether the output of a row in a masked step is that of its step before, and not `before`.
            repeats: "bool = true",
            /// What the sizes of a step of `x` must be, -1 for any; empty if nothing is known.
            x_sizes: "list(int) = []",
            /// The same of a step of `h`.
            h_sizes: "list(int) = []",
            /// Whether somebody reads `h`. Otherwise its sizes may be unknown.
            needs_h: "bool = true",
            /// The function of the candidate: tanh, sigmoid, relu, linear, hard_sigmoid (that of Keras 3),
            /// hard_sigmoid_keras2, softsign, softplus, elu or selu.
            activation: "string = 'tanh'",
            /// The function of the gates, one of the same.
            recurrent_activation: "string = 'sigmoid'",
            /// Whether the reset gate is multiplied by a part of the product with the state, and not by the state.
            reset_after: "bool = true",
        }
    };

    /// Inputs of [`keras_gru`](crate::unfused::keras_gru). Where the batch is larger, one row of a tensor stands for all.
    #[derive(Clone, Debug)]
    struct KerasGruInputs<'a, E> {
        /// How many steps `h` has.
        size: i32 = Int32 [],
        /// How many rounds the loop has at most; the least of these counts. A negative number stands for 0.
        rounds: Vec<i32> = num_rounds * Int32 [],
        /// Inputs of the steps.
        x: ArrayView3<'a, E> = [Any("time"), Any("batch"), Input],
        /// State before the first step.
        h_prev: ArrayView2<'a, E> = [Any("batch"), Cell],
        /// Weights of `x`: of the update gate, reset gate and candidate.
        w_x: ArrayView2<'a, E> = [Input, Gates(3)],
        /// Weights of the state.
        w_h: ArrayView2<'a, E> = [Cell, Gates(3)],
        /// Biases of the products with `x`.
        b_x: ArrayView1<'a, E> = [Gates(3)],
        /// Biases of the products with the state.
        b_h: ArrayView1<'a, E> = [Gates(3)],
        /// None, or whether a row takes part in a step.
        mask: Option<ArrayView3<'a, u8>> = num_mask * Bool [Any("time"), Any("batch"), Any("1")],
        /// With a mask, the output before the first step.
        before: Option<ArrayView2<'a, E>> = num_mask * T [Any("batch"), Cell],
    }

    /// Outputs of [`keras_gru`](crate::unfused::keras_gru). Previous contents do not matter.
    struct KerasGruOutputs<'a, E> {
        /// Outputs of the steps; zero from the last round on.
        h: ArrayViewMut3<'a, E> = Checked [Any("size"), Batch, Cell],
        /// State after each row's last step; `h_prev` where it has none.
        h_last: ArrayViewMut2<'a, E> = Checked [Batch, Cell],
    }
}
