package blockcell.example;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.tensorflow.Graph;
import org.tensorflow.OperationBuilder;
import org.tensorflow.Result;
import org.tensorflow.SavedModelBundle;
import org.tensorflow.Session;
import org.tensorflow.Tensor;
import org.tensorflow.op.Scope;
import org.tensorflow.proto.MetaGraphDef;

/** What is called in another way in 1.1.0 than in other APIs, for the sources that all share. */
final class Api {
  /** The TensorFlow whose Keras 2 wrote the models that are served. */
  static final String KERAS = "2.15";

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

  /** The description of a SavedModel. */
  static MetaGraphDef metaGraph(SavedModelBundle model) {
    return model.metaGraphDef();
  }

  /** Adds the graph of a file to a graph. */
  static MetaGraphDef importMetaGraph(Graph graph, Path file) throws IOException {
    MetaGraphDef meta = MetaGraphDef.parseFrom(Files.readAllBytes(file));
    graph.importGraphDef(meta.getGraphDef());
    return meta;
  }
}
