"""What the ops compute, as NumPy code. Works without TensorFlow.

For the command line tools, the tests and the benchmark. `blockcell.op_table` has the ops' tensors.

    oracle      every op in float64, written from its equations
    cudnn       the same for cuDNN's ops, and the layout of their parameters
    inputs      random but reproducible inputs, and how far an output is off
"""
