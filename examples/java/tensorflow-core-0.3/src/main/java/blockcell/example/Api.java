package blockcell.example;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.tensorflow.OperationBuilder;
import org.tensorflow.Session;
import org.tensorflow.Tensor;
import org.tensorflow.op.Scope;

/** What is called in another way in 0.3.3 than in 1.1.0, for the sources that both share. */
final class Api {
  private Api() {}

  /** The builder of an op that is added by its name. */
  static OperationBuilder opBuilder(Scope scope, String op) {
    return scope.env().opBuilder(op, scope.makeOpName(op));
  }

  /** Runs the session, reads what was fetched, in the order of the fetches, and closes it. */
  static <T> List<T> run(Session.Runner runner, Function<Tensor, T> read) {
    List<T> values = new ArrayList<>();
    for (Tensor result : runner.run()) {
      try (result) {
        values.add(read.apply(result));
      }
    }
    return values;
  }
}
