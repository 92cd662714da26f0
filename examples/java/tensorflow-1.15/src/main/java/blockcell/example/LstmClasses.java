package blockcell.example;

import org.tensorflow.op.core.BlockLSTM;

/** Which ops the classes BlockLSTM and BlockLSTMGrad are. */
final class LstmClasses {
  static final String BLOCK_LSTM = "BlockLSTM";
  static final String BLOCK_LSTM_GRAD = "BlockLSTMGrad";

  private LstmClasses() {}

  /** The attributes of a BlockLSTM. */
  static BlockLSTM.Options[] options(Case call) {
    return new BlockLSTM.Options[] {
      BlockLSTM.forgetBias(call.attribute("forget_bias")),
      BlockLSTM.cellClip(call.attribute("cell_clip")),
      BlockLSTM.usePeephole(call.isOn("use_peephole"))
    };
  }
}
