package blockcell.example;

import java.util.Map;
import java.util.function.Function;
import org.tensorflow.exceptions.TFInvalidArgumentException;
import org.tensorflow.op.nn.*;

/** How ops can be called in these APIs. */
final class Calls {
  /** What calls an op and returns its outputs. */
  static final Map<String, Function<Case, Map<String, Array>>> WAYS =
      Map.of("graph", GraphCall::run, "eager", EagerCall::run);

  /** What a malformed call throws. */
  static final Class<? extends Exception> REFUSAL = TFInvalidArgumentException.class;

  /** The classes of the ops that have one: TensorFlow's BlockLSTM and BlockLSTMGrad have none. */
  static final Map<String, Class<?>> CLASSES =
      Map.of(
          "GRUBlockCell", GRUBlockCell.class,
          "GRUBlockCellGrad", GRUBlockCellGrad.class,
          "LSTMBlockCell", LSTMBlockCell.class,
          "LSTMBlockCellGrad", LSTMBlockCellGrad.class,
          "BlockLSTMV2", BlockLSTM.class,
          "BlockLSTMGradV2", BlockLSTMGrad.class);

  private Calls() {}
}
