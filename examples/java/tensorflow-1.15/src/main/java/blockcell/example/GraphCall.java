package blockcell.example;

import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.tensorflow.Graph;
import org.tensorflow.Operand;
import org.tensorflow.Output;
import org.tensorflow.Session;
import org.tensorflow.Tensor;
import org.tensorflow.op.Ops;

/** One call of an op, in a graph and a session of its own. */
final class GraphCall implements AutoCloseable {
  private final Graph graph = new Graph();
  private final Session session = new Session(graph);
  private final Session.Runner runner = session.runner();
  private final Ops tf = Ops.create(graph);
  private final List<Tensor<?>> tensors = new ArrayList<>();

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
      Map<String, Operand<?>> inputs = new LinkedHashMap<>();
      call.inputs()
          .forEach(
              (name, value) ->
                  inputs.put(
                      name, temporaries.contains(name) ? graph.sum(value) : graph.feed(value)));
      return graph.fetch(BlockOps.create(graph.tf.scope(), call, new Inputs(inputs)));
    }
  }

  /** What the library says of itself, JSON. */
  static String info() {
    try (GraphCall call = new GraphCall()) {
      call.runner.fetch(call.graph.opBuilder("BlockcellInfo", "info").build().output(0));
      call.tensors.addAll(call.runner.run());
      return new String(call.tensors.get(0).bytesValue(), StandardCharsets.UTF_8);
    }
  }

  private Operand<?> feed(Array value) {
    return value.isLong()
        ? feed(Long.class, Tensor.create(value.shape(), LongBuffer.wrap(value.longs())))
        : feedFloats(value);
  }

  private Operand<Float> feedFloats(Array value) {
    return feed(Float.class, Tensor.create(value.shape(), FloatBuffer.wrap(value.floats())));
  }

  private <T> Operand<T> feed(Class<T> type, Tensor<T> tensor) {
    tensors.add(tensor);
    Operand<T> placeholder = tf.placeholder(type);
    runner.feed(placeholder, tensor);
    return placeholder;
  }

  private Operand<Float> sum(Array value) {
    Operand<Float> half = feedFloats(value.half());
    return tf.math.add(half, half);
  }

  private Map<String, Array> fetch(Map<String, Output<Float>> outputs) {
    List<String> names = new ArrayList<>(outputs.keySet());
    names.forEach(name -> runner.fetch(outputs.get(name)));
    List<Tensor<?>> results = runner.run();
    tensors.addAll(results);
    Map<String, Array> arrays = new HashMap<>();
    for (int n = 0; n < names.size(); n++) {
      arrays.put(names.get(n), array(results.get(n)));
    }
    return arrays;
  }

  private static Array array(Tensor<?> tensor) {
    FloatBuffer values = FloatBuffer.allocate(tensor.numElements());
    tensor.writeTo(values);
    return Array.of(tensor.shape(), values.array());
  }

  @Override
  public void close() {
    tensors.forEach(Tensor::close);
    session.close();
    graph.close();
  }
}
