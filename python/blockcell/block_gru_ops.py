"""The library's own ops as functions. They call `blockcell.load()` if it has not been called."""

from typing import Any, Optional

from blockcell import loader


def block_gru(
    x: Any,
    w_ru: Any,
    w_c: Any,
    b_ru: Any,
    b_c: Any,
    b_hc: Any = None,
    h_prev: Any = None,
    sequence_length: Any = None,
    reset_after: bool = False,
    name: Optional[str] = None,
    activation: str = "tanh",
    recurrent_activation: str = "sigmoid",
) -> Any:
    """Gated recurrent unit over a sequence, with a length for each row of the batch.

    For row b and t from 0 to sequence_length[b] - 1, with h' the state before the step (`h_prev`
    for t = 0, otherwise h[t-1]), S the logistic function, [a | b] concatenation, @ the matrix
    product, * the elementwise one, and D the input_size:

        [r_bar | u_bar] = [x[t] | h'] @ w_ru + b_ru
        r = S(r_bar)
        u = S(u_bar)

        with reset_after=False:
            hc = r * h'
            c  = tanh(x[t] @ w_c[:D] + hc @ w_c[D:] + b_c)
        with reset_after=True:
            hc = h' @ w_c[D:] + b_hc
            c  = tanh(x[t] @ w_c[:D] + b_c + r * hc)

        h = u * h' + (1 - u) * c

    Without `reset_after` this is the recurrence of `tf.raw_ops.GRUBlockCell` (Cho et al., 2014);
    with it, that of Keras's GRU layer and of cuDNN. `blockcell.gru_from_keras` makes the weights
    of such a layer into those of this op.

    Can be differentiated with respect to every argument of type T, twice.

    Args:
      x: The inputs of all steps, `[time, batch, input_size]`, of type T: float32 or float16.
      w_ru: Weights of the gates, `[input_size + cell_size, 2 * cell_size]`: rows for x, then for
        the state; columns of the reset gate, then of the update gate.
      w_c: Weights of the candidate, `[input_size + cell_size, cell_size]`.
      b_ru: Biases of the gates, `[2 * cell_size]`.
      b_c: Bias of the candidate, `[cell_size]`.
      b_hc: Bias of the state's product in the candidate, `[cell_size]`; zeros by default. Used
        with `reset_after` only.
      h_prev: The state before the first step, `[batch, cell_size]`; zeros by default.
      sequence_length: The number of steps of each row, int64 `[batch]`, each from 0 to time; all
        steps by default.
      reset_after: Whether the reset gate is applied after the matrix product.
      name: A name for the operation.
      activation: The function in place of tanh: `"tanh"`, `"sigmoid"`, `"relu"`, `"linear"`,
        `"hard_sigmoid"`, which is Keras 3's, `"hard_sigmoid_keras2"`, `"softsign"`, `"softplus"`,
        `"elu"` or `"selu"`.
      recurrent_activation: The function in place of S, one of the same.

    Returns:
      A named tuple of tensors of type T. `r`, `u`, `c`, `hc` and `h` are `[time, batch,
      cell_size]`, and zero from the end of a row on. `h_last`, `[batch, cell_size]`, is the state
      after each row's last step.

    Raises:
      tf.errors.InvalidArgumentError: A shape or a length is not as described (ValueError while a
        graph is built).
      LibraryError: As `load`.
    """
    import tensorflow as tf

    from blockcell.sequence_lengths import size

    module = loader.module()
    x = tf.convert_to_tensor(x, name="x")
    w_c = tf.convert_to_tensor(w_c, dtype=x.dtype, name="w_c")
    time, batch, cell_size = size(x, 0), size(x, 1), size(w_c, 1)
    if b_hc is None:
        b_hc = tf.zeros([cell_size], x.dtype)
    if h_prev is None:
        h_prev = tf.zeros([batch, cell_size], x.dtype)
    if sequence_length is None:
        sequence_length = tf.fill([batch], tf.cast(time, tf.int64))
    return module.block_gru(
        sequence_length=tf.cast(sequence_length, tf.int64),
        x=x,
        h_prev=h_prev,
        w_ru=w_ru,
        w_c=w_c,
        b_ru=b_ru,
        b_c=b_c,
        b_hc=b_hc,
        reset_after=reset_after,
        activation=activation,
        recurrent_activation=recurrent_activation,
        name=name,
    )


def block_gru_grad(
    sequence_length: Any,
    x: Any,
    h_prev: Any,
    w_ru: Any,
    w_c: Any,
    b_ru: Any,
    b_c: Any,
    b_hc: Any,
    r: Any,
    u: Any,
    c: Any,
    hc: Any,
    h: Any,
    h_grad: Any,
    h_last_grad: Any,
    reset_after: bool = False,
    name: Optional[str] = None,
    activation: str = "tanh",
    recurrent_activation: str = "sigmoid",
) -> Any:
    """Gradients of a loss that depends on the outputs `h` and `h_last` of `block_gru`.

    TensorFlow calls it when `block_gru` is differentiated; programs rarely need to call it.
    The equations are in the op's own documentation (`help(blockcell.load().block_gru_grad)`).

    Args:
      sequence_length: As `block_gru` had it, int64 `[batch]`; it and the next seven are required.
      x: `[time, batch, input_size]`, of type T: float32 or float16.
      h_prev: `[batch, cell_size]`.
      w_ru: `[input_size + cell_size, 2 * cell_size]`.
      w_c: `[input_size + cell_size, cell_size]`.
      b_ru: `[2 * cell_size]`.
      b_c: `[cell_size]`.
      b_hc: `[cell_size]`.
      r: As `block_gru` returned it, `[time, batch, cell_size]`; so are the next four.
      u: The update gate.
      c: The candidate.
      hc: What the equations call hc.
      h: The state after each step.
      h_grad: The gradient with respect to `h`, `[time, batch, cell_size]`.
      h_last_grad: The gradient with respect to `h_last`, `[batch, cell_size]`.
      reset_after: As `block_gru` had it.
      name: A name for the operation.
      activation: As `block_gru` had it.
      recurrent_activation: As `block_gru` had it.

    Returns:
      A named tuple of the gradients `x_grad`, `h_prev_grad`, `w_ru_grad`, `w_c_grad`, `b_ru_grad`,
      `b_c_grad` and `b_hc_grad`, of type T and of the shapes of what they belong to.

    Raises:
      tf.errors.InvalidArgumentError: A shape or a length is not as described (ValueError while a
        graph is built).
      LibraryError: As `load`.
    """
    arguments = dict(locals())
    return loader.module().block_gru_grad(**arguments)
