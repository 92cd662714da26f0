package blockcell.example;

import java.util.LinkedHashMap;
import java.util.Map;
import org.tensorflow.Operation;
import org.tensorflow.OperationBuilder;
import org.tensorflow.Output;
import org.tensorflow.op.Scope;
import org.tensorflow.op.core.*;
import org.tensorflow.op.nn.*;

/**
 * Adds the op of a case to a graph, or runs it in an eager session, by its class where all APIs
 * have one. The classes are in op.core in 1.15.0, and in op.nn in later APIs. There, BlockLSTM and
 * BlockLSTMGrad are other ops: see {@link LstmClasses}.
 */
final class BlockOps {
  private BlockOps() {}

  /** Returns the op's outputs by TensorFlow's names. */
  static Map<String, Output<?>> create(Scope scope, Case call, Inputs in) {
    return switch (call.op()) {
      case "GRUBlockCell" -> gruBlockCell(scope, in);
      case "GRUBlockCellGrad" -> gruBlockCellGrad(scope, in);
      case "LSTMBlockCell" -> lstmBlockCell(scope, call, in);
      case "LSTMBlockCellGrad" -> lstmBlockCellGrad(scope, call, in);
      case LstmClasses.BLOCK_LSTM -> blockLSTM(scope, call, in);
      case LstmClasses.BLOCK_LSTM_GRAD -> blockLSTMGrad(scope, call, in);
      default -> byName(scope, call, in);
    };
  }

  private static Map<String, Output<?>> gruBlockCell(Scope scope, Inputs in) {
    var op =
        GRUBlockCell.create(
            scope,
            in.get("x"),
            in.get("h_prev"),
            in.get("w_ru"),
            in.get("w_c"),
            in.get("b_ru"),
            in.get("b_c"));
    return Map.of(
        "r", op.r(),
        "u", op.u(),
        "c", op.c(),
        "h", op.h());
  }

  private static Map<String, Output<?>> gruBlockCellGrad(Scope scope, Inputs in) {
    var op =
        GRUBlockCellGrad.create(
            scope,
            in.get("x"),
            in.get("h_prev"),
            in.get("w_ru"),
            in.get("w_c"),
            in.get("b_ru"),
            in.get("b_c"),
            in.get("r"),
            in.get("u"),
            in.get("c"),
            in.get("d_h"));
    return Map.of(
        "d_x", op.dX(),
        "d_h_prev", op.dHPrev(),
        "d_c_bar", op.dCBar(),
        "d_r_bar_u_bar", op.dRBarUBar());
  }

  private static Map<String, Output<?>> lstmBlockCell(Scope scope, Case call, Inputs in) {
    var op =
        LSTMBlockCell.create(
            scope,
            in.get("x"),
            in.get("cs_prev"),
            in.get("h_prev"),
            in.get("w"),
            in.get("wci"),
            in.get("wcf"),
            in.get("wco"),
            in.get("b"),
            LSTMBlockCell.forgetBias(call.attribute("forget_bias")),
            LSTMBlockCell.cellClip(call.attribute("cell_clip")),
            LSTMBlockCell.usePeephole(call.isOn("use_peephole")));
    return Map.of(
        "i", op.i(),
        "cs", op.cs(),
        "f", op.f(),
        "o", op.o(),
        "ci", op.ci(),
        "co", op.co(),
        "h", op.h());
  }

  private static Map<String, Output<?>> lstmBlockCellGrad(Scope scope, Case call, Inputs in) {
    var op =
        LSTMBlockCellGrad.create(
            scope,
            in.get("x"),
            in.get("cs_prev"),
            in.get("h_prev"),
            in.get("w"),
            in.get("wci"),
            in.get("wcf"),
            in.get("wco"),
            in.get("b"),
            in.get("i"),
            in.get("cs"),
            in.get("f"),
            in.get("o"),
            in.get("ci"),
            in.get("co"),
            in.get("cs_grad"),
            in.get("h_grad"),
            call.isOn("use_peephole"));
    return Map.of(
        "cs_prev_grad", op.csPrevGrad(),
        "dicfo", op.dicfo(),
        "wci_grad", op.wciGrad(),
        "wcf_grad", op.wcfGrad(),
        "wco_grad", op.wcoGrad());
  }

  private static Map<String, Output<?>> blockLSTM(Scope scope, Case call, Inputs in) {
    var op =
        BlockLSTM.create(
            scope,
            in.length("seq_len_max"),
            in.get("x"),
            in.get("cs_prev"),
            in.get("h_prev"),
            in.get("w"),
            in.get("wci"),
            in.get("wcf"),
            in.get("wco"),
            in.get("b"),
            LstmClasses.options(call));
    return Map.of(
        "i", op.i(),
        "cs", op.cs(),
        "f", op.f(),
        "o", op.o(),
        "ci", op.ci(),
        "co", op.co(),
        "h", op.h());
  }

  private static Map<String, Output<?>> blockLSTMGrad(Scope scope, Case call, Inputs in) {
    var op =
        BlockLSTMGrad.create(
            scope,
            in.length("seq_len_max"),
            in.get("x"),
            in.get("cs_prev"),
            in.get("h_prev"),
            in.get("w"),
            in.get("wci"),
            in.get("wcf"),
            in.get("wco"),
            in.get("b"),
            in.get("i"),
            in.get("cs"),
            in.get("f"),
            in.get("o"),
            in.get("ci"),
            in.get("co"),
            in.get("h"),
            in.get("cs_grad"),
            in.get("h_grad"),
            call.isOn("use_peephole"));
    return Map.of(
        "x_grad", op.xGrad(),
        "cs_prev_grad", op.csPrevGrad(),
        "h_prev_grad", op.hPrevGrad(),
        "w_grad", op.wGrad(),
        "wci_grad", op.wciGrad(),
        "wcf_grad", op.wcfGrad(),
        "wco_grad", op.wcoGrad(),
        "b_grad", op.bGrad());
  }

  /** How any op is added by its name; inputs and outputs come in the op's order. */
  private static Map<String, Output<?>> byName(Scope scope, Case call, Inputs in) {
    OperationBuilder builder = Api.opBuilder(scope, call.op());
    in.operands().values().forEach(operand -> builder.addInput(operand.asOutput()));
    call.attributes().keySet().forEach(
        name -> {
          if (call.attributes().get(name).type().equals("b1")) {
            builder.setAttr(name, call.isOn(name));
          } else {
            builder.setAttr(name, call.attribute(name));
          }
        });
    Operation op = builder.build();
    Map<String, Output<?>> outputs = new LinkedHashMap<>();
    call.outputs().keySet().forEach(name -> outputs.put(name, op.output(outputs.size())));
    return outputs;
  }
}
