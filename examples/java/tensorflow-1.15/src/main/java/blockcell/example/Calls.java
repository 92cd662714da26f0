package blockcell.example;

import java.util.Map;
import java.util.function.Function;
import org.tensorflow.op.core.*;

/** How ops can be called in this API. */
final class Calls {
  /** What calls an op and returns its outputs. */
  static final Map<String, Function<Case, Map<String, Array>>> WAYS =
      Map.of("graph", GraphCall::run);

  /** What a malformed call throws. */
  static final Class<? extends Exception> REFUSAL = IllegalArgumentException.class;

  /** The classes of the ops that have one. */
  static final Map<String, Class<?>> CLASSES =
      Map.of(
          "GRUBlockCell", GRUBlockCell.class,
          "GRUBlockCellGrad", GRUBlockCellGrad.class,
          "LSTMBlockCell", LSTMBlockCell.class,
          "LSTMBlockCellGrad", LSTMBlockCellGrad.class,
          "BlockLSTM", BlockLSTM.class,
          "BlockLSTMGrad", BlockLSTMGrad.class,
          "BlockLSTMV2", BlockLSTMV2.class,
          "BlockLSTMGradV2", BlockLSTMGradV2.class);

  private Calls() {}
}
