package blockcell.example;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.tensorflow.OperationBuilder;
import org.tensorflow.Result;
import org.tensorflow.Session;
import org.tensorflow.Tensor;
import org.tensorflow.op.Scope;

/** What is called in another way in 1.1.0 than in 0.3.3, for the sources that both share. */
final class Api {
  private Api() {}

  /** The builder of an op that is added by its name. */
  static OperationBuilder opBuilder(Scope scope, String op) {
    return scope.opBuilder(op, op);
  }

  /** Runs the session, reads what was fetched, in the order of the fetches, and closes it. */
  static <T> List<T> run(Session.Runner runner, Function<Tensor, T> read) {
    List<T> values = new ArrayList<>();
    try (Result results = runner.run()) {
      for (int n = 0; n < results.size(); n++) {
        values.add(read.apply(results.get(n)));
      }
    }
    return values;
  }
}
