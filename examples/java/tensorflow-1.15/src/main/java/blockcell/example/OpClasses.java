package blockcell.example;

import java.util.Map;
import org.tensorflow.op.core.*;

/** The classes that this API has for ops. */
final class OpClasses {
  static final Map<String, Class<?>> BY_OP =
      Map.of(
          "GRUBlockCell", GRUBlockCell.class,
          "GRUBlockCellGrad", GRUBlockCellGrad.class,
          "LSTMBlockCell", LSTMBlockCell.class,
          "LSTMBlockCellGrad", LSTMBlockCellGrad.class,
          "BlockLSTM", BlockLSTM.class,
          "BlockLSTMGrad", BlockLSTMGrad.class,
          "BlockLSTMV2", BlockLSTMV2.class,
          "BlockLSTMGradV2", BlockLSTMGradV2.class);

  private OpClasses() {}
}
