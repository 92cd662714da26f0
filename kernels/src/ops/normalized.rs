//! The operations of [`crate::unfused`] on LSTM cells that normalize their gates and their state, and on normalizations alone.

use ndarray::{ArrayView1, ArrayView2, ArrayView3, ArrayViewD};
use ndarray::{ArrayViewMut1, ArrayViewMut2, ArrayViewMut3, ArrayViewMutD};

op! {
    /// One step of an LSTM cell whose gates and state are normalized: `LayerNormBasicLSTMCell`.
    ///
    /// `@` is the matrix product, and `S` the logistic function:
    ///
    /// ```text
    /// [i_bar | ci_bar | f_bar | o_bar] = [x | h_prev] @ w
    /// norm(z, n) = (z - mean(z)) / sqrt(mean((z - mean(z))^2) + epsilon) * gamma[n] + beta[n]
    /// i  = S(norm(i_bar, 0))       ci = tanh(norm(ci_bar, 1))
    /// f  = S(norm(f_bar, 2) + forget_bias)
    /// o  = S(norm(o_bar, 3))       cs = norm(i * ci + f * cs_prev, 4)       h = o * tanh(cs)
    /// ```
    ///
    /// Means are those of a row: over the axis 1 of a gate, and over `state_axis` of the state. It is what graphs get in
    /// place of the small operations of a step that nobody takes gradients of.
    static NORMALIZED_LSTM_CELL = {
        name: "BlockcellLayerNormLSTMCell", types: [Float], is_stock: false,
        attributes: {
            num_norms: "int >= 0",
            num_cs_prev: "int >= 0",
            /// Added to the forget gate.
            forget_bias: "float = 1.0",
            /// Added to variances.
            epsilon: "float = 1e-12",
            /// How many gates stand before the input gate, the cell input, the forget gate and the output gate in the columns of
            /// `w`.
            gate_order: "list(int) = [0, 1, 2, 3]",
            /// Over which axis of the cell state means are taken, 1 or -1, which are the same for a matrix.
            state_axis: "int = 1",
            /// The function of the cell input and of the cell state: tanh, sigmoid, relu, linear, hard_sigmoid (that of
            /// Keras 3), hard_sigmoid_keras2, softsign, softplus, elu or selu.
            activation: "string = 'tanh'",
            /// The function of the gates, one of the same.
            recurrent_activation: "string = 'sigmoid'",
        }
    };

    /// Inputs of [`normalized_lstm_cell`](crate::unfused::normalized_lstm_cell).
    #[derive(Clone, Debug)]
    struct NormalizedLstmCellInputs<'a, E> {
        /// Input.
        x: ArrayView2<'a, E> = [Batch, Input],
        /// Output of the step before.
        h_prev: ArrayView2<'a, E> = [Batch, Output],
        /// Weights.
        w: ArrayView2<'a, E> = [InputOutput, Gates(4)],
        /// What the normalized gates are multiplied by, in the order `i, ci, f, o`, and the normalized state.
        gamma: Vec<ArrayView1<'a, E>> = num_norms * T [Cell],
        /// What is added to them.
        beta: Vec<ArrayView1<'a, E>> = num_norms * T [Cell],
        /// Cell state of the step before, of a shape that broadcasts with `[batch, cell_size]`; none for zeros.
        cs_prev: Option<ArrayViewD<'a, E>> = num_cs_prev * Checked [],
    }

    /// Outputs of [`normalized_lstm_cell`](crate::unfused::normalized_lstm_cell). Previous contents do not matter.
    struct NormalizedLstmCellOutputs<'a, E> {
        /// Cell state, normalized, of the shape that `[batch, cell_size]` and `cs_prev` broadcast to.
        cs: ArrayViewMutD<'a, E> = Checked [Batch, Cell],
        /// Output, of the shape of `cs`.
        h: ArrayViewMutD<'a, E> = Checked [Batch, Cell],
    }
}

op! {
    /// A loop over a sequence whose rounds are steps of an LSTM cell that normalizes its gates and its state.
    ///
    /// Step t of a row computes what `BlockcellLayerNormLSTMCell` does, from `x[t]` and the state of the row's step before.
    /// It is what graphs get in place of the loop of `tf.nn.dynamic_rnn` around `LayerNormBasicLSTMCell`, where nothing else
    /// happens in a round and nobody takes gradients. A row that has ended keeps its state, and its outputs are zero, as are
    /// those of steps that the loop does not reach.
    ///
    /// The loop ends after as many rounds as the least of `rounds` says. More rounds than `time`, and a loop without a
    /// round where `h_sizes` is not known, are an `InvalidArgumentError`, as are tensors of other shapes.
    static NORMALIZED_LSTM_LAYER = {
        name: "BlockcellLayerNormLSTMLayer", types: [Float], is_stock: false,
        attributes: {
            num_rounds: "int >= 1",
            num_sequence_length: "int >= 0",
            num_norms: "int >= 0",
            /// Added to the forget gate.
            forget_bias: "float = 1.0",
            /// Added to variances.
            epsilon: "float = 1e-12",
            /// How many gates stand before the input gate, the cell input, the forget gate and the output gate in the columns of
            /// `w`.
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
            /// The function of the cell input and of the cell state: tanh, sigmoid, relu, linear, hard_sigmoid (that of
            /// Keras 3), hard_sigmoid_keras2, softsign, softplus, elu or selu.
            activation: "string = 'tanh'",
            /// The function of the gates, one of the same.
            recurrent_activation: "string = 'sigmoid'",
        }
    };

    /// Inputs of [`normalized_lstm_layer`](crate::unfused::normalized_lstm_layer).
    #[derive(Clone, Debug)]
    struct NormalizedLstmLayerInputs<'a, E> {
        /// How many steps `x` and `h` have.
        time: i32 = Int32 [],
        /// How many rounds the loop has at most; the least of these counts. A negative number stands for 0.
        rounds: Vec<i32> = num_rounds * Int32 [],
        /// None, or the number of steps of each row, `[batch]` or a scalar. A row takes part in all rounds if its number
        /// is larger, and in none if it is negative.
        sequence_length: Option<ArrayViewD<'a, i32>> = num_sequence_length * Lengths [],
        /// Inputs of the steps.
        x: ArrayView3<'a, E> = [Time, Batch, Input],
        /// Output before the first step.
        h_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Cell state before the first step, `[batch, cell_size]`, or a shape that broadcasts to that, if there is no
        /// `sequence_length`.
        cs_prev: ArrayViewD<'a, E> = Checked [],
        /// Weights.
        w: ArrayView2<'a, E> = [InputCell, Gates(4)],
        /// What the normalized gates are multiplied by, in the order `i, ci, f, o`, and the normalized state.
        gamma: Vec<ArrayView1<'a, E>> = num_norms * T [Cell],
        /// What is added to them.
        beta: Vec<ArrayView1<'a, E>> = num_norms * T [Cell],
    }

    /// Outputs of [`normalized_lstm_layer`](crate::unfused::normalized_lstm_layer). Previous contents do not matter.
    struct NormalizedLstmLayerOutputs<'a, E> {
        /// Outputs of the steps; zero in steps that a row does not take part in.
        h: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
        /// Output of each row's last step; `h_prev` where it has none.
        h_last: ArrayViewMut2<'a, E> = [Batch, Cell],
        /// Cell state after each row's last step.
        cs_last: ArrayViewMut2<'a, E> = [Batch, Cell],
    }
}

op! {
    /// Layer normalization with a scale and an offset.
    ///
    /// ```text
    /// y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * gamma + (beta + bias)
    /// ```
    ///
    /// Means are those over `axis`. It is what graphs get in place of the small operations of `tf.nn.moments` and
    /// `tf.nn.batch_normalization`, where gradients are taken of them.
    static LAYER_NORM = {
        name: "BlockcellLayerNorm", types: [Float], is_stock: false,
        attributes: {
            /// Added to variances.
            epsilon: "float",
            /// Over which axis means are taken, 1 or -1.
            axis: "int = -1",
            /// Added to `beta`.
            bias: "float = 0.0",
        }
    };

    /// Inputs of [`layer_norm`](crate::unfused::layer_norm).
    #[derive(Clone, Debug)]
    struct LayerNormInputs<'a, E> {
        /// What is normalized, of a shape that broadcasts with `[cell_size]`.
        x: ArrayViewD<'a, E> = Checked [],
        /// What the normalized numbers are multiplied by.
        gamma: ArrayView1<'a, E> = [Cell],
        /// What is added to them.
        beta: ArrayView1<'a, E> = [Cell],
    }

    /// Outputs of [`layer_norm`](crate::unfused::layer_norm). Previous contents do not matter.
    struct LayerNormOutputs<'a, E> {
        /// Of the shape that `x` and `[cell_size]` broadcast to.
        y: ArrayViewMutD<'a, E> = Checked [],
    }
}

op! {
    /// The gradient of a layer normalization of the rows of a matrix.
    ///
    /// ```text
    /// n  = (x - mean(x)) * r        r = 1 / sqrt(mean((x - mean(x))^2) + epsilon)
    /// dx = r * (dy * gamma - mean(dy * gamma) - n * mean(dy * gamma * n))
    /// dgamma = sum_B dy * n         dbeta = sum_B dy
    /// ```
    ///
    /// It is what graphs get in place of the small operations of that gradient.
    static LAYER_NORM_GRAD = {
        name: "BlockcellLayerNormGrad", types: [Float], is_stock: false,
        attributes: {
            /// Added to variances.
            epsilon: "float",
            /// How many rows `x` must have, -1 for any. If that is given, `dx` is `[batch, cell_size]`, and one row of `dy`
            /// may stand for all. Otherwise `dx` has the shape of `x`.
            rows: "int = -1",
        }
    };

    /// Inputs of [`layer_norm_grad`](crate::unfused::layer_norm_grad).
    #[derive(Clone, Debug)]
    struct LayerNormGradInputs<'a, E> {
        /// What was normalized, `[batch, cell_size]`; or one column, which stands for all; or a matrix, if `cell_size` is 1.
        x: ArrayView2<'a, E> = Checked [Any("batch"), Any("columns")],
        /// What the normalized numbers were multiplied by.
        gamma: ArrayView1<'a, E> = [Cell],
        /// Gradient with respect to the result.
        dy: ArrayView2<'a, E> = Checked [Any("batch"), Any("columns")],
    }

    /// Outputs of [`layer_norm_grad`](crate::unfused::layer_norm_grad). Previous contents do not matter.
    struct LayerNormGradOutputs<'a, E> {
        /// With respect to `x`.
        dx: ArrayViewMut2<'a, E> = Checked [Any("batch"), Any("columns")],
        /// With respect to `gamma`.
        dgamma: ArrayViewMut1<'a, E> = [Cell],
        /// With respect to `beta`.
        dbeta: ArrayViewMut1<'a, E> = [Cell],
    }
}
