package blockcell.example;

import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import org.tensorflow.Tensor;

/** Arrays as tensors, and back. */
final class Tensors {
  private Tensors() {}

  /** A tensor of floats, or of integers where the array has some. */
  static Tensor<?> of(Array array) {
    return switch (array.type()) {
      case "i4" -> Tensor.create(array.shape(), IntBuffer.wrap(array.ints()));
      case "i8" -> Tensor.create(array.shape(), LongBuffer.wrap(array.longs()));
      default -> Tensor.create(array.shape(), FloatBuffer.wrap(array.floats()));
    };
  }

  /** Copies a tensor of floats. */
  static Array array(Tensor<?> tensor) {
    FloatBuffer values = FloatBuffer.allocate(tensor.numElements());
    tensor.writeTo(values);
    return Array.of(tensor.shape(), values.array());
  }

  /** The string in a scalar. */
  static String text(Tensor<?> tensor) {
    return new String(tensor.bytesValue(), StandardCharsets.UTF_8);
  }
}
