package blockcell.example;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.tensorflow.Graph;
import org.tensorflow.Output;
import org.tensorflow.Session;
import org.tensorflow.op.Ops;
import org.tensorflow.op.Scope;

/** One call of an op, in a graph and a session of its own. */
final class GraphCall implements AutoCloseable {
  private final Graph graph = new Graph();
  private final Session session = new Session(graph);
  private final Session.Runner runner = session.runner();
  private final Scope scope = Ops.create(graph).scope();
  /** Each closes a tensor. */
  private final List<Runnable> fed = new ArrayList<>();

  private GraphCall() {}

  /** Feeds the inputs of a call and returns the op's outputs. */
  static Map<String, Array> run(Case call) {
    return run(call, Set.of());
  }

  /**
   * The same, with some inputs computed in the graph by an op, as half + half, instead of fed. Such
   * a buffer is a temporary, and nobody needs it after the call.
   */
  static Map<String, Array> run(Case call, Set<String> temporaries) {
    try (GraphCall graph = new GraphCall()) {
      return graph.fetch(
          BlockOps.create(
              graph.scope,
              call,
              (name, value) -> temporaries.contains(name) ? graph.sum(value) : graph.feed(value)));
    }
  }

  /** What the library says of itself, JSON. */
  static String info() {
    try (GraphCall call = new GraphCall()) {
      call.runner.fetch(Api.opBuilder(call.scope, "BlockcellInfo").build().output(0));
      return Api.run(call.runner, Tensors::text).get(0);
    }
  }

  private Output<?> feed(Array value) {
    var tensor = Tensors.of(value);
    fed.add(tensor::close);
    Output<?> placeholder =
        Api.opBuilder(scope, "Placeholder")
            .setAttr("dtype", tensor.dataType())
            .build()
            .output(0);
    runner.feed(placeholder, tensor);
    return placeholder;
  }

  private Output<?> sum(Array value) {
    Output<?> half = feed(value.half());
    return Api.opBuilder(scope, "Add").addInput(half).addInput(half).build().output(0);
  }

  private Map<String, Array> fetch(Map<String, Output<?>> outputs) {
    List<String> names = new ArrayList<>(outputs.keySet());
    names.forEach(name -> runner.fetch(outputs.get(name)));
    List<Array> results = Api.run(runner, Tensors::array);
    Map<String, Array> arrays = new HashMap<>();
    for (int n = 0; n < names.size(); n++) {
      arrays.put(names.get(n), results.get(n));
    }
    return arrays;
  }

  @Override
  public void close() {
    fed.forEach(Runnable::run);
    session.close();
    graph.close();
  }
}
