package blockcell.example;

import java.util.Map;
import org.tensorflow.op.nn.*;

/** The classes that these APIs have for ops: none for TensorFlow's BlockLSTM and BlockLSTMGrad. */
final class OpClasses {
  static final Map<String, Class<?>> BY_OP =
      Map.of(
          "GRUBlockCell", GRUBlockCell.class,
          "GRUBlockCellGrad", GRUBlockCellGrad.class,
          "LSTMBlockCell", LSTMBlockCell.class,
          "LSTMBlockCellGrad", LSTMBlockCellGrad.class,
          "BlockLSTMV2", BlockLSTM.class,
          "BlockLSTMGradV2", BlockLSTMGrad.class);

  private OpClasses() {}
}
