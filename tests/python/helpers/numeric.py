"""Gradients by finite differences, in float64."""

import numpy as np


def numeric_gradients(cell, inputs, weights, step=1e-6):
    """Gradients of sum(weights[output] * cell(**inputs)[output]) by central differences.

    Args:
      cell: A forward function of `blockcell_tools.reference.oracle`.
      inputs: Dictionary of its array inputs. Integers are lengths, and have no gradients.
      weights: Dictionary of arrays, for some of its outputs: the gradients that flow in there.
      step: Half the distance of the two points.

    Returns:
      A dictionary with the gradient of every other input.
    """

    def loss(**changed):
        outputs = cell(**changed)
        return sum(
            np.sum(np.asarray(weights[name], np.float64) * outputs[name]) for name in weights
        )

    lengths = {n: v for n, v in inputs.items() if np.issubdtype(np.asarray(v).dtype, np.integer)}
    inputs = {n: np.array(v, dtype=np.float64) for n, v in inputs.items() if n not in lengths}
    gradients = {}
    for name, value in inputs.items():
        gradient = np.zeros_like(value)
        for index in np.ndindex(*value.shape):
            at = value[index]
            value[index] = at + step
            above = loss(**lengths, **inputs)
            value[index] = at - step
            below = loss(**lengths, **inputs)
            value[index] = at
            gradient[index] = (above - below) / (2 * step)
        gradients[name] = gradient
    return gradients
