package blockcell.example;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.tensorflow.TensorFlow;

/** Shows the library at work, and checks what it computes; each program calls what its API has. */
final class Program {
  private final Checks checks = new Checks();
  private final Path library;
  private final Path values;
  private final Path graphs;

  /**
   * Does nothing yet.
   *
   * @param args libblockcell.so for the TensorFlow that runs, the folder of the values, the folder
   *     of the training graphs
   */
  Program(String[] args) {
    library = Path.of(args[0]).toAbsolutePath();
    values = Path.of(args[1]);
    graphs = Path.of(args[2]);
  }

  /**
   * How an op is called.
   *
   * @param name what messages call it
   * @param run returns the outputs of a call
   */
  record Way(String name, Function<Case, Map<String, Array>> run) {}

  /**
   * Loads the library and calls all ops.
   *
   * @param refusal what a malformed call throws
   * @param ways in which ops are called
   */
  void callOps(Class<? extends Exception> refusal, Way... ways) throws IOException {
    List<Case> cases = Case.readAll(values.resolve("ops.npz"));

    // TensorFlow's kernel may overwrite the peephole weights before it has read them.
    Case peepholes = Case.find(cases, "LSTMBlockCellGrad");
    Set<String> weights = Set.of("wci", "wcf", "wco");
    checks.wrong("TensorFlow's kernel", peepholes, GraphCall.run(peepholes, weights));
    TensorFlow.loadLibrary(library.toString());
    checks.outputs("graph, computed weights", peepholes, GraphCall.run(peepholes, weights));

    checks.takenOver(GraphCall.info());
    for (BadCall bad : BadCall.of(cases)) {
      for (Way way : ways) {
        checks.refused(way.name, bad, refusal, () -> way.run.apply(bad.call()));
      }
    }
    for (Case call : cases) {
      for (Way way : ways) {
        checks.outputs(way.name, call, way.run.apply(call));
      }
    }
  }

  /** Trains the graphs and compares the losses with those of Python. */
  void train() throws IOException {
    for (String graph : Training.GRAPHS) {
      Map<String, Array> python = Npz.read(values.resolve(graph + ".npz"));
      checks.losses(
          graph,
          Training.losses(
              graphs.resolve(graph + ".meta"), python.get("inputs"), python.get("targets")),
          python.get("losses").values());
    }
  }

  /** Serves the SavedModels that were written in a version of TensorFlow. */
  void serve(String version) throws IOException {
    for (String layers : List.of("lstm", "both_directions", "masked")) {
      Serving.check(checks, values.resolve("keras2").resolve(version + "-" + layers));
    }
  }

  /** Ends the program, with 0 if all is well. */
  void exit() {
    System.exit(checks.finish());
  }
}
