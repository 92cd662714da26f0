package blockcell.example;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/**
 * Shows the library at work in TensorFlow Java 0.3.3, which is TensorFlow 2.4, and checks what it
 * computes.
 */
public final class Main {
  private Main() {}

  /**
   * Exits with 0 if all is well.
   *
   * @param args libblockcell.so for TensorFlow 2.4, the folder of the values
   */
  public static void main(String[] args) throws IOException {
    Checks checks = new Checks();
    Path values = Path.of(args[1]);
    OpChecks.run(checks, Path.of(args[0]), values);
    Serving.check(
        checks, values, List.of("2.4-lstm", "2.4-both_directions", "2.4-masked"));
    System.exit(checks.finish());
  }
}
