"""Gradients of the block RNN ops and of their gradient ops, written in TensorFlow's Python.

The gradient of an op runs the op's own gradient kernel, such as `BlockLSTMGrad`, as long as
gradients arrive only at the outputs which that kernel knows: h, cs, and the last state. For any
other output, and for gradients of gradient ops, the equations stand a second time, in plain
TensorFlow ops that TensorFlow can differentiate:

    arithmetic  products and sums that accumulate in float32
    forward_call   an op's tensors by name, and which gradients arrive at all
    partial     gradients of a function of plain ops, with respect to each argument
    time_loop   the loop over time, from the last step to the first
    gru, lstm   the equations of one step; of the single-step ops, and of the sequence ops
    rules       which equations belong to which op; kernel or equations, first and second order
    registry    puts all of them into TensorFlow
"""
