package blockcell.example;

import java.util.List;

/**
 * A malformed call. TensorFlow's own kernels end the process at most of these, or read memory that
 * is not theirs; this library's refuse them.
 *
 * @param call the call; its outputs mean nothing
 * @param message what the exception's message contains
 */
public record BadCall(Case call, String message) {

  /** Malformed variants of good calls. */
  public static List<BadCall> of(List<Case> cases) {
    Case gru = Case.find(cases, "GRUBlockCellGrad");
    long[] step = gru.inputs().get("r").shape();
    Case lstm = Case.find(cases, "LSTMBlockCellGrad");
    Case forward = Case.find(cases, "BlockLSTM");
    long time = forward.inputs().get("x").shape()[0];
    Case gradient = Case.find(cases, "BlockLSTMGrad");
    return List.of(
        of(gru, "r", gru.inputs().get("r").zeros(step[0] * step[1]), "r must have"),
        of(lstm, "wci", lstm.inputs().get("wci").zeros(step[1] - 1), "wci must have"),
        of(
            forward,
            "seq_len_max",
            forward.inputs().get("seq_len_max").scalar(time + 1),
            "seq_len_max must be between 0 and time = " + time),
        of(
            gradient,
            "cs_prev",
            gradient.inputs().get("cs_prev").zeros(step[0] + 1, step[1]),
            "cs_prev must have"));
  }

  private static BadCall of(Case good, String input, Array value, String message) {
    return new BadCall(good.with(input, value), good.op() + ": " + message);
  }
}
