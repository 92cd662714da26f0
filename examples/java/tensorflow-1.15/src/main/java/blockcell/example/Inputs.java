package blockcell.example;

import java.util.Map;
import org.tensorflow.Operand;

/**
 * The inputs of an op by TensorFlow's names, in the op's order.
 *
 * @param operands floats, and among them one length (of Long) where the op has one
 */
record Inputs(Map<String, Operand<?>> operands) {

  @SuppressWarnings("unchecked")
  Operand<Float> get(String name) {
    return (Operand<Float>) operands.get(name);
  }

  @SuppressWarnings("unchecked")
  Operand<Long> length(String name) {
    return (Operand<Long>) operands.get(name);
  }
}
