package blockcell.example;

import java.io.IOException;
import java.nio.IntBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.tensorflow.Graph;
import org.tensorflow.Session;
import org.tensorflow.Tensor;
import org.tensorflow.framework.MetaGraphDef;

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
    MetaGraphDef meta = MetaGraphDef.parseFrom(Files.readAllBytes(file));
    double[] losses = new double[(int) inputs.shape()[0]];
    try (Graph graph = new Graph();
        Session session = new Session(graph)) {
      graph.importGraphDef(meta.getGraphDef().toByteArray());
      session.runner().addTarget(collected(meta, "char_lm/init_op")).run();
      for (int step = 0; step < losses.length; step++) {
        losses[step] = step(session, meta, inputs.part(step), targets.part(step));
      }
    }
    return losses;
  }

  private static double step(Session session, MetaGraphDef meta, Array inputs, Array targets) {
    try (Tensor<Integer> read = Tensor.create(inputs.shape(), IntBuffer.wrap(inputs.ints()));
        Tensor<Integer> next = Tensor.create(targets.shape(), IntBuffer.wrap(targets.ints()))) {
      List<Tensor<?>> results =
          session
              .runner()
              .feed(collected(meta, "char_lm/inputs"), read)
              .feed(collected(meta, "char_lm/targets"), next)
              .addTarget(collected(meta, "char_lm/train_op"))
              .fetch(collected(meta, "char_lm/loss"))
              .run();
      try (Tensor<?> loss = results.get(0)) {
        return loss.floatValue();
      }
    }
  }

  /** The name of the one tensor or operation in a collection. */
  private static String collected(MetaGraphDef meta, String key) {
    return meta.getCollectionDefOrThrow(key).getNodeList().getValue(0);
  }
}
