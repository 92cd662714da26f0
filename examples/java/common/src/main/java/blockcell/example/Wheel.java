package blockcell.example;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.tensorflow.TensorFlow;

/**
 * Loads the library out of a Python wheel, which is a zip file: a Java program needs no Python for
 * it. To copy into your own program.
 */
public final class Wheel {
  private Wheel() {}

  /**
   * Loads the library for the TensorFlow that runs.
   *
   * @param file a wheel of blockcell, or a libblockcell.so
   */
  public static void load(Path file) throws IOException {
    if (!file.toString().endsWith(".whl")) {
      TensorFlow.loadLibrary(file.toAbsolutePath().toString());
      return;
    }
    // It is mapped into memory while the program runs, so it stays until the end.
    Path library = Files.createTempFile("libblockcell", ".so");
    library.toFile().deleteOnExit();
    String minor = TensorFlow.version().replaceFirst("^(\\d+\\.\\d+).*$", "$1");
    String name = "blockcell/lib/tf-" + minor + "/libblockcell.so";
    try (ZipFile wheel = new ZipFile(file.toFile())) {
      ZipEntry entry = wheel.getEntry(name);
      if (entry == null) {
        throw new FileNotFoundException(file + " has no " + name);
      }
      try (InputStream stream = wheel.getInputStream(entry)) {
        Files.copy(stream, library, StandardCopyOption.REPLACE_EXISTING);
      }
    }
    TensorFlow.loadLibrary(library.toString());
  }
}
