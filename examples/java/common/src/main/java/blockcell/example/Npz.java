package blockcell.example;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/** Reads what {@code numpy.savez} writes: a zip file of arrays, each in NumPy's .npy format. */
public final class Npz {
  private static final Pattern HEADER =
      Pattern.compile(
          "\\{'descr': '[<|](\\w\\d)', 'fortran_order': False, 'shape': \\(([\\d, ]*)\\), \\}\\s*");

  private Npz() {}

  /** Returns the arrays of a file by name, in the order in which they were written. */
  public static Map<String, Array> read(Path path) throws IOException {
    Map<String, Array> arrays = new LinkedHashMap<>();
    try (ZipFile zip = new ZipFile(path.toFile())) {
      for (ZipEntry entry : Collections.list(zip.entries())) {
        try (InputStream stream = zip.getInputStream(entry)) {
          arrays.put(entry.getName().replaceFirst("\\.npy$", ""), array(stream.readAllBytes()));
        }
      }
    }
    return arrays;
  }

  /** Version 1.0 of the format: magic number, version, length of the header, header, elements. */
  private static Array array(byte[] bytes) throws IOException {
    ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    int start = 10;
    int length = buffer.getShort(8);
    Matcher header =
        HEADER.matcher(new String(bytes, start, length, StandardCharsets.ISO_8859_1));
    if (bytes[6] != 1 || !header.matches()) {
      throw new IOException("not an array of a kind that is read here");
    }
    String type = header.group(1);
    long[] shape =
        Arrays.stream(header.group(2).split(","))
            .map(String::strip)
            .filter(text -> !text.isEmpty())
            .mapToLong(Long::parseLong)
            .toArray();
    double[] values = new double[(int) Arrays.stream(shape).reduce(1, (a, b) -> a * b)];
    buffer.position(start + length);
    for (int n = 0; n < values.length; n++) {
      values[n] = element(buffer, type);
    }
    return new Array(type, shape, values);
  }

  private static double element(ByteBuffer buffer, String type) throws IOException {
    return switch (type) {
      case "f4" -> buffer.getFloat();
      case "f8" -> buffer.getDouble();
      case "i4" -> buffer.getInt();
      case "i8" -> buffer.getLong();
      case "b1" -> buffer.get();
      default -> throw new IOException("elements of type " + type + " are not read here");
    };
  }
}
