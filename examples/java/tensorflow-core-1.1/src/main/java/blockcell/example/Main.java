package blockcell.example;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * Shows the library at work in TensorFlow Java 1.1.0, which is TensorFlow 2.18, and checks what it
 * computes.
 */
public final class Main {
  private Main() {}

  /**
   * Exits with 0 if all is well.
   *
   * @param args libblockcell.so for TensorFlow 2.18, the folder of the values, the folder of the
   *     training graphs
   */
  public static void main(String[] args) throws IOException {
    Path library = Path.of(args[0]);
    Path values = Path.of(args[1]);
    Path graphs = Path.of(args[2]);
    Checks checks = new Checks();
    OpChecks.run(checks, library, values);
    for (String graph : Training.GRAPHS) {
      Map<String, Array> python = Npz.read(values.resolve(graph + ".npz"));
      checks.losses(
          graph,
          Training.losses(
              graphs.resolve(graph + ".meta"), python.get("inputs"), python.get("targets")),
          python.get("losses").values());
    }
    Serving.check(
        checks, values, List.of("2.15-lstm", "2.15-both_directions", "2.15-masked"));
    System.exit(checks.finish());
  }
}
