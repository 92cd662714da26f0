package blockcell.example;

import org.tensorflow.Tensor;
import org.tensorflow.ndarray.Shape;
import org.tensorflow.ndarray.buffer.DataBuffers;
import org.tensorflow.types.TFloat32;
import org.tensorflow.types.TInt64;

/** Arrays as tensors, and back. */
final class Tensors {
  private Tensors() {}

  static TFloat32 floats(Array array) {
    return TFloat32.tensorOf(Shape.of(array.shape()), DataBuffers.of(array.floats()));
  }

  static TInt64 longs(Array array) {
    return TInt64.tensorOf(Shape.of(array.shape()), DataBuffers.of(array.longs()));
  }

  /** Copies a tensor of floats. */
  static Array array(Tensor tensor) {
    float[] values = new float[(int) tensor.shape().size()];
    tensor.asRawTensor().data().asFloats().read(values);
    return Array.of(tensor.shape().asArray(), values);
  }
}
