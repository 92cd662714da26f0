package blockcell.example;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.tensorflow.TensorFlow;
import org.tensorflow.exceptions.TFInvalidArgumentException;

/** Shows the library at work, and checks what its ops compute. */
final class OpChecks {
  private OpChecks() {}

  /**
   * Loads the library and calls all ops.
   *
   * @param checks remembers what was found
   * @param library libblockcell.so for the TensorFlow that runs, not loaded before
   * @param values the folder of the values
   */
  static void run(Checks checks, Path library, Path values) throws IOException {
    List<Case> cases = Case.readAll(values.resolve("ops.npz"));

    // TensorFlow's kernel may overwrite the peephole weights before it has read them.
    Case peepholes = Case.find(cases, "LSTMBlockCellGrad");
    Set<String> weights = Set.of("wci", "wcf", "wco");
    checks.wrong("TensorFlow's kernel", peepholes, GraphCall.run(peepholes, weights));
    TensorFlow.loadLibrary(library.toAbsolutePath().toString());
    checks.outputs("graph, computed weights", peepholes, GraphCall.run(peepholes, weights));

    checks.takenOver(GraphCall.info());
    for (BadCall bad : BadCall.of(cases)) {
      checks.refused(
          "graph", bad, TFInvalidArgumentException.class, () -> GraphCall.run(bad.call()));
      checks.refused(
          "eager", bad, TFInvalidArgumentException.class, () -> EagerCall.run(bad.call()));
    }
    for (Case call : cases) {
      checks.outputs("graph", call, GraphCall.run(call));
      checks.outputs("eager", call, EagerCall.run(call));
    }
  }
}
