package blockcell.example;

import org.tensorflow.op.nn.BlockLSTM;

/** Which ops the classes BlockLSTM and BlockLSTMGrad are. */
final class LstmClasses {
  static final String BLOCK_LSTM = "BlockLSTMV2";
  static final String BLOCK_LSTM_GRAD = "BlockLSTMGradV2";

  private LstmClasses() {}

  /** The attributes of a BlockLSTM. */
  static BlockLSTM.Options[] options(Case call) {
    return new BlockLSTM.Options[] {
      BlockLSTM.cellClip(call.attribute("cell_clip")),
      BlockLSTM.usePeephole(call.isOn("use_peephole"))
    };
  }
}
