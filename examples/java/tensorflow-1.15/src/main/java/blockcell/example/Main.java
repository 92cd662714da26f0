package blockcell.example;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.tensorflow.TensorFlow;

/** Shows the library at work in TensorFlow 1.15's Java API, and checks what it computes. */
public final class Main {
  private Main() {}

  /**
   * Exits with 0 if all is well.
   *
   * @param args libblockcell.so for TensorFlow 1.15, the folder of the values, the folder of the
   *     training graphs
   */
  public static void main(String[] args) throws IOException {
    Path library = Path.of(args[0]).toAbsolutePath();
    Path values = Path.of(args[1]);
    Path graphs = Path.of(args[2]);
    List<Case> cases = Case.readAll(values.resolve("ops.npz"));
    Checks checks = new Checks();

    // TensorFlow's kernel may overwrite the peephole weights before it has read them.
    Case peepholes = Case.find(cases, "LSTMBlockCellGrad");
    Set<String> weights = Set.of("wci", "wcf", "wco");
    checks.wrong("TensorFlow's kernel", peepholes, GraphCall.run(peepholes, weights));
    TensorFlow.loadLibrary(library.toString());
    checks.outputs("graph, computed weights", peepholes, GraphCall.run(peepholes, weights));

    checks.takenOver(GraphCall.info());
    for (BadCall bad : BadCall.of(cases)) {
      checks.refused(
          "graph", bad, IllegalArgumentException.class, () -> GraphCall.run(bad.call()));
    }
    for (Case call : cases) {
      checks.outputs("graph", call, GraphCall.run(call));
    }
    for (String graph : Training.GRAPHS) {
      Map<String, Array> python = Npz.read(values.resolve(graph + ".npz"));
      checks.losses(
          graph,
          Training.losses(
              graphs.resolve(graph + ".meta"), python.get("inputs"), python.get("targets")),
          python.get("losses").values());
    }
    Serving.check(
        checks, values, List.of("2.4-lstm", "2.4-both_directions", "2.4-masked"));
    System.exit(checks.finish());
  }
}
