"""Gradients of the ops that TensorFlow has kernels for but no gradient registered."""
