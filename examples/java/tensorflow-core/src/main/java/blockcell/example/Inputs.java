package blockcell.example;

import java.util.Map;
import org.tensorflow.Operand;
import org.tensorflow.types.TFloat32;
import org.tensorflow.types.TInt64;

/**
 * The inputs of an op by TensorFlow's names, in the op's order.
 *
 * @param operands floats, and among them one length (of TInt64) where the op has one
 */
record Inputs(Map<String, Operand<?>> operands) {

  @SuppressWarnings("unchecked")
  Operand<TFloat32> get(String name) {
    return (Operand<TFloat32>) operands.get(name);
  }

  @SuppressWarnings("unchecked")
  Operand<TInt64> length(String name) {
    return (Operand<TInt64>) operands.get(name);
  }
}
