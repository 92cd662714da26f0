package blockcell.example;

import org.tensorflow.Tensor;
import org.tensorflow.ndarray.Shape;
import org.tensorflow.ndarray.buffer.DataBuffers;
import org.tensorflow.types.TFloat32;
import org.tensorflow.types.TInt32;
import org.tensorflow.types.TInt64;
import org.tensorflow.types.TString;
import org.tensorflow.types.family.TType;

/** Arrays as tensors, and back. */
final class Tensors {
  private Tensors() {}

  /** A tensor of floats, or of integers where the array has some. */
  static TType of(Array array) {
    Shape shape = Shape.of(array.shape());
    return switch (array.type()) {
      case "i4" -> TInt32.tensorOf(shape, DataBuffers.of(array.ints()));
      case "i8" -> TInt64.tensorOf(shape, DataBuffers.of(array.longs()));
      default -> TFloat32.tensorOf(shape, DataBuffers.of(array.floats()));
    };
  }

  /** Copies a tensor of floats. */
  static Array array(Tensor tensor) {
    float[] values = new float[(int) tensor.shape().size()];
    tensor.asRawTensor().data().asFloats().read(values);
    return Array.of(tensor.shape().asArray(), values);
  }

  /** The string in a scalar. */
  static String text(Tensor tensor) {
    return ((TString) tensor).getObject();
  }
}
