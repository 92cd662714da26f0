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
    /// Means are taken over axis 1 of a gate, and over `state_axis` of the state. The graph passes replace the small
    /// operations of a step with it if no gradients are computed.
    static NORMALIZED_LSTM_CELL = {
        name: "BlockcellLayerNormLSTMCell", types: [Float], is_stock: false,
        attributes: {
            num_norms: "int >= 0",
            num_cs_prev: "int >= 0",
            /// Added to the forget gate.
            forget_bias: "float = 1.0",
            /// Added to variances.
            epsilon: "float = 1e-12",
            /// The positions, from 0 on, of the input gate, the cell input, the forget gate and the output gate in the
            /// columns of `w`.
            gate_order: "list(int) = [0, 1, 2, 3]",
            /// The axis of the cell state over which means are taken, 1 or -1; for a matrix they are equivalent.
            state_axis: "int = 1",
            /// The function of the cell input and of the cell state: tanh, sigmoid, relu, linear, hard_sigmoid (as in
            /// Keras 3) or hard_sigmoid_keras2.
            activation: "string = 'tanh'",
            /// The function of the gates: one of the same.
            recurrent_activation: "string = 'sigmoid'",
        }
    };

    /// Inputs of [`normalized_lstm_cell`](crate::unfused::normalized_lstm_cell).
    #[derive(Clone, Debug)]
    struct NormalizedLstmCellInputs<'a, E> {
        /// Input.
        x: ArrayView2<'a, E> = [Batch, Input],
        /// Output of the previous step.
        h_prev: ArrayView2<'a, E> = [Batch, Output],
        /// Weights.
        w: ArrayView2<'a, E> = [InputOutput, Gates(4)],
        /// Scales of the normalized gates, in the order `i, ci, f, o`, and of the normalized state.
        gamma: Vec<ArrayView1<'a, E>> = num_norms * T [Cell],
        /// Offsets, in the order of `gamma`.
        beta: Vec<ArrayView1<'a, E>> = num_norms * T [Cell],
        /// Cell state of the previous step, of a shape that broadcasts with `[batch, cell_size]`. Optional; zero if
        /// omitted.
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
    /// A loop over a sequence whose iterations are steps of an LSTM cell that normalizes its gates and its state.
    ///
    /// Step t of a row computes `BlockcellLayerNormLSTMCell` from `x[t]` and the previous state of the row. The graph
    /// passes replace a loop of `tf.nn.dynamic_rnn` around `LayerNormBasicLSTMCell` with it, if the loop computes
    /// nothing else and no gradients are computed. A row that has ended keeps its state, and its outputs are zero, as
    /// are those of steps that the loop does not reach.
    ///
    /// The number of iterations is the smallest of `rounds`. An `InvalidArgumentError` is raised if it exceeds `time`,
    /// or if it is zero and `h_sizes` is unknown.
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
            /// The positions, from 0 on, of the input gate, the cell input, the forget gate and the output gate in the
            /// columns of `w`.
            gate_order: "list(int) = [0, 1, 2, 3]",
            /// The required sizes of a step of `x`, with -1 for any; empty if unknown.
            x_sizes: "list(int) = []",
            /// The same for a step of `h`.
            h_sizes: "list(int) = []",
            /// Whether `h` has a consumer. If not, its sizes may be unknown.
            needs_h: "bool = true",
            /// Whether the loop's arrays are tensor lists of TensorFlow 2. If so, `time` is the number of steps of `h`
            /// only, `x` may have another number, and a loop with zero iterations requires `h_sizes` for any `time`.
            lists: "bool = false",
            /// The function of the cell input and of the cell state: tanh, sigmoid, relu, linear, hard_sigmoid (as in
            /// Keras 3) or hard_sigmoid_keras2.
            activation: "string = 'tanh'",
            /// The function of the gates: one of the same.
            recurrent_activation: "string = 'sigmoid'",
        }
    };

    /// Inputs of [`normalized_lstm_layer`](crate::unfused::normalized_lstm_layer).
    #[derive(Clone, Debug)]
    struct NormalizedLstmLayerInputs<'a, E> {
        /// The number of steps of `x` and `h`.
        time: i32 = Int32 [],
        /// Limits on the number of iterations, of which the smallest applies. A negative number counts as 0.
        rounds: Vec<i32> = num_rounds * Int32 [],
        /// Optional: the number of steps of each row, `[batch]`, or a scalar for all rows. It may exceed the number of
        /// iterations; a negative number counts as 0.
        sequence_length: Option<ArrayViewD<'a, i32>> = num_sequence_length * Lengths [],
        /// Inputs of the steps.
        x: ArrayView3<'a, E> = [Time, Batch, Input],
        /// Output before the first step.
        h_prev: ArrayView2<'a, E> = [Batch, Cell],
        /// Cell state before the first step, `[batch, cell_size]`, or a shape that broadcasts to it, if there is no
        /// `sequence_length`.
        cs_prev: ArrayViewD<'a, E> = Checked [],
        /// Weights.
        w: ArrayView2<'a, E> = [InputCell, Gates(4)],
        /// Scales of the normalized gates, in the order `i, ci, f, o`, and of the normalized state.
        gamma: Vec<ArrayView1<'a, E>> = num_norms * T [Cell],
        /// Offsets, in the order of `gamma`.
        beta: Vec<ArrayView1<'a, E>> = num_norms * T [Cell],
    }

    /// Outputs of [`normalized_lstm_layer`](crate::unfused::normalized_lstm_layer). Previous contents do not matter.
    struct NormalizedLstmLayerOutputs<'a, E> {
        /// Outputs of the steps; zero in steps that a row does not have.
        h: ArrayViewMut3<'a, E> = [Time, Batch, Cell],
        /// Output of each row's last step; `h_prev` if it has none.
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
    /// Means are taken over `axis`. The graph passes replace the small operations of `tf.nn.moments` and
    /// `tf.nn.batch_normalization` with it if gradients are computed.
    static LAYER_NORM = {
        name: "BlockcellLayerNorm", types: [Float], is_stock: false,
        attributes: {
            /// Added to variances.
            epsilon: "float",
            /// The axis over which means are taken, 1 or -1.
            axis: "int = -1",
            /// Added to `beta`.
            bias: "float = 0.0",
        }
    };

    /// Inputs of [`layer_norm`](crate::unfused::layer_norm).
    #[derive(Clone, Debug)]
    struct LayerNormInputs<'a, E> {
        /// Input, of a shape that broadcasts with `[cell_size]`.
        x: ArrayViewD<'a, E> = Checked [],
        /// Scale.
        gamma: ArrayView1<'a, E> = [Cell],
        /// Offset.
        beta: ArrayView1<'a, E> = [Cell],
    }

    /// Outputs of [`layer_norm`](crate::unfused::layer_norm). Previous contents do not matter.
    struct LayerNormOutputs<'a, E> {
        /// Output, of the shape that `x` and `[cell_size]` broadcast to.
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
    /// The graph passes replace the small operations of this gradient with it.
    static LAYER_NORM_GRAD = {
        name: "BlockcellLayerNormGrad", types: [Float], is_stock: false,
        attributes: {
            /// Added to variances.
            epsilon: "float",
            /// The number of rows that `x` must have, or -1 for any. If it is given, `dx` is `[batch, cell_size]`, and
            /// `dy` may have a single row, which broadcasts. Otherwise `dx` has the shape of `x`.
            rows: "int = -1",
        }
    };

    /// Inputs of [`layer_norm_grad`](crate::unfused::layer_norm_grad).
    #[derive(Clone, Debug)]
    struct LayerNormGradInputs<'a, E> {
        /// Input of the normalization: `[batch, cell_size]`; or a single column, which broadcasts; or any matrix if
        /// `cell_size` is 1.
        x: ArrayView2<'a, E> = Checked [Any("batch"), Any("columns")],
        /// Scale of the normalization.
        gamma: ArrayView1<'a, E> = [Cell],
        /// Gradient with respect to the result.
        dy: ArrayView2<'a, E> = Checked [Any("batch"), Any("columns")],
    }

    /// Outputs of [`layer_norm_grad`](crate::unfused::layer_norm_grad). Previous contents do not matter.
    struct LayerNormGradOutputs<'a, E> {
        /// Gradient with respect to `x`.
        dx: ArrayViewMut2<'a, E> = Checked [Any("batch"), Any("columns")],
        /// Gradient with respect to `gamma`.
        dgamma: ArrayViewMut1<'a, E> = [Cell],
        /// Gradient with respect to `beta`.
        dbeta: ArrayViewMut1<'a, E> = [Cell],
    }
}
