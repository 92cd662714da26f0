package blockcell.example;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.function.UnaryOperator;
import org.tensorflow.Graph;
import org.tensorflow.Session;

/** Trains a graph that TensorFlow 1.15's Python wrote, as it is. */
final class Training {
  static final List<String> GRAPHS =
      List.of(
          "gru_block_cell",
          "lstm_block_cell",
          "lstm_block_fused_cell",
          "cudnn_lstm",
          "basic_lstm_cell");

  private Training() {}

  /**
   * Sets the initial values and runs a training step for each part of the symbols.
   *
   * @param file a MetaGraph; its collections name what is fed, run and fetched
   * @param inputs symbols read, int32 [steps, batch, time]
   * @param targets symbols to predict, of the same shape
   * @return the loss of each step, before its update
   */
  static double[] losses(Path file, Array inputs, Array targets) throws IOException {
    double[] losses = new double[(int) inputs.shape()[0]];
    try (Graph graph = new Graph();
        Session session = new Session(graph)) {
      var meta = Api.importMetaGraph(graph, file);
      UnaryOperator<String> collected =
          key -> meta.getCollectionDefOrThrow("char_lm/" + key).getNodeList().getValue(0);
      Api.run(session.runner().addTarget(collected.apply("init_op")), Tensors::array);
      for (int step = 0; step < losses.length; step++) {
        losses[step] = step(session, collected, inputs.part(step), targets.part(step));
      }
    }
    return losses;
  }

  private static double step(
      Session session, UnaryOperator<String> collected, Array inputs, Array targets) {
    try (var read = Tensors.of(inputs);
        var next = Tensors.of(targets)) {
      Session.Runner runner =
          session
              .runner()
              .feed(collected.apply("inputs"), read)
              .feed(collected.apply("targets"), next)
              .addTarget(collected.apply("train_op"))
              .fetch(collected.apply("loss"));
      return Api.run(runner, Tensors::array).get(0).values()[0];
    }
  }
}
