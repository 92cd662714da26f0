package blockcell.example;

import java.util.Arrays;

/**
 * A NumPy array, in C order.
 *
 * @param type its element type in NumPy's words: f4, f8, i4, i8 or b1
 * @param shape its dimensions
 * @param values its elements; a double holds each of them exactly
 */
public record Array(String type, long[] shape, double[] values) {

  /** An array of float. */
  public static Array of(long[] shape, float[] values) {
    double[] elements = new double[values.length];
    Arrays.setAll(elements, n -> values[n]);
    return new Array("f4", shape, elements);
  }

  /** An array of zeros, of the same element type. */
  public Array zeros(long... shape) {
    int size = (int) Arrays.stream(shape).reduce(1, (a, b) -> a * b);
    return new Array(type, shape, new double[size]);
  }

  /** A scalar of the same element type. */
  public Array scalar(double value) {
    return new Array(type, new long[0], new double[] {value});
  }

  /** Half of each element. */
  public Array half() {
    return new Array(type, shape, Arrays.stream(values).map(value -> value / 2).toArray());
  }

  /** Part {@code index} along the first dimension. */
  public Array part(int index) {
    int size = values.length / (int) shape[0];
    long[] rest = Arrays.copyOfRange(shape, 1, shape.length);
    return new Array(type, rest, Arrays.copyOfRange(values, index * size, (index + 1) * size));
  }

  public float[] floats() {
    float[] result = new float[values.length];
    for (int n = 0; n < result.length; n++) {
      result[n] = (float) values[n];
    }
    return result;
  }

  public int[] ints() {
    return Arrays.stream(values).mapToInt(value -> (int) value).toArray();
  }

  public long[] longs() {
    return Arrays.stream(values).mapToLong(value -> (long) value).toArray();
  }

  /**
   * The largest difference from {@code want}, divided by the largest element of {@code want}, or by
   * 1 where that is zero. It is infinite where the shapes differ, and NaN where an element is.
   */
  public double scaledError(Array want) {
    if (!Arrays.equals(shape, want.shape)) {
      return Double.POSITIVE_INFINITY;
    }
    double error = 0;
    double scale = 0;
    for (int n = 0; n < values.length; n++) {
      error = Math.max(error, Math.abs(values[n] - want.values[n]));
      scale = Math.max(scale, Math.abs(want.values[n]));
    }
    return error / (scale > 0 ? scale : 1);
  }
}
