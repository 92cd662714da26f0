package blockcell.example;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** Shows the library at work in an API of TensorFlow, and checks what it computes. */
public final class Main {
  private final Checks checks = new Checks();
  private final Path values;

  private Main(Path values) {
    this.values = values;
  }

  /**
   * Exits with 0 if all is well.
   *
   * @param args a wheel, or libblockcell.so for the TensorFlow that runs; the folder of the values;
   *     the folder of the training graphs
   */
  public static void main(String[] args) throws IOException {
    Main program = new Main(Path.of(args[1]));
    program.callOps(Path.of(args[0]));
    program.train(Path.of(args[2]));
    program.serve();
    System.exit(program.checks.finish());
  }

  /** Loads the library, which was not loaded before, and calls all ops. */
  private void callOps(Path library) throws IOException {
    List<Case> cases = Case.readAll(values.resolve("ops.npz"));

    // TensorFlow's kernel may overwrite the peephole weights before it has read them.
    Case peepholes = Case.find(cases, "LSTMBlockCellGrad");
    Set<String> weights = Set.of("wci", "wcf", "wco");
    checks.wrong("TensorFlow's kernel", peepholes, GraphCall.run(peepholes, weights));
    Wheel.load(library);
    checks.outputs("graph, computed weights", peepholes, GraphCall.run(peepholes, weights));

    checks.takenOver(GraphCall.info());
    var ways = new TreeMap<>(Calls.WAYS);
    for (BadCall bad : BadCall.of(cases)) {
      ways.forEach(
          (way, run) -> checks.refused(way, bad, Calls.REFUSAL, () -> run.apply(bad.call())));
    }
    for (Case call : cases) {
      ways.forEach((way, run) -> checks.outputs(way, call, run.apply(call)));
    }
  }

  /** Trains the graphs and compares the losses with those of Python. */
  private void train(Path graphs) throws IOException {
    for (String graph : Training.GRAPHS) {
      Map<String, Array> python = Npz.read(values.resolve(graph + ".npz"));
      checks.losses(
          graph,
          Training.losses(
              graphs.resolve(graph + ".meta"), python.get("inputs"), python.get("targets")),
          python.get("losses").values());
    }
  }

  /** Serves SavedModels of Keras 2 and compares the outputs with those of Python. */
  private void serve() throws IOException {
    for (String layers : List.of("lstm", "both_directions", "masked")) {
      Serving.check(checks, values.resolve("keras2").resolve(Api.KERAS + "-" + layers));
    }
  }
}
