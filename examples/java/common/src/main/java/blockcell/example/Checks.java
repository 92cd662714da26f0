package blockcell.example;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Prints what was checked, a line each, and remembers whether all was well. */
public final class Checks {
  /** Largest scaled error of an output; TensorFlow's own kernels stay below it as well. */
  private static final double OUTPUT_LIMIT = 4e-6;

  /** Largest scaled error of a model's output against what another TensorFlow computed. */
  private static final double MODEL_LIMIT = 2e-5;

  /** Largest relative difference of training losses, which amplify differences in rounding. */
  private static final double LOSS_LIMIT = 1e-4;

  private static final List<String> STOCK_OPS =
      List.of(
          "GRUBlockCell",
          "GRUBlockCellGrad",
          "LSTMBlockCell",
          "LSTMBlockCellGrad",
          "BlockLSTM",
          "BlockLSTMGrad",
          "BlockLSTMV2",
          "BlockLSTMGradV2");

  private int passed;
  private int failed;

  public void that(boolean good, String what) {
    System.out.println((good ? "ok      " : "FAILED  ") + what);
    if (good) {
      passed++;
    } else {
      failed++;
    }
  }

  /** Checks that {@code json}, from the op BlockcellInfo, names all of TensorFlow's ops. */
  public void takenOver(String json) {
    Matcher names = Pattern.compile("\"taken_over\":\\s*\\[([^]]*)]").matcher(json);
    List<String> takenOver =
        names.find() ? Arrays.asList(names.group(1).split("[\\s\",]+")) : List.of();
    that(takenOver.containsAll(STOCK_OPS), "BlockcellInfo: " + json);
  }

  /** Checks all outputs of a call. */
  public void outputs(String where, Case call, Map<String, Array> got) {
    double error = largestError(call, got);
    that(
        error <= OUTPUT_LIMIT,
        "%s, %s: %d outputs, largest scaled error %.1e"
            .formatted(call.name(), where, got.size(), error));
  }

  /** Checks that TensorFlow's own kernel gets a call wrong. */
  public void wrong(String where, Case call, Map<String, Array> got) {
    double error = largestError(call, got);
    that(
        error > 1e-2,
        "%s, %s: is wrong, scaled error %.1e".formatted(call.name(), where, error));
  }

  /** The largest scaled error among the outputs of a call. */
  private static double largestError(Case call, Map<String, Array> got) {
    if (!got.keySet().equals(call.outputs().keySet())) {
      throw new IllegalStateException(call.op() + " returned " + got.keySet());
    }
    double largest = 0;
    for (Map.Entry<String, Array> want : call.outputs().entrySet()) {
      largest = Math.max(largest, got.get(want.getKey()).scaledError(want.getValue()));
    }
    return largest;
  }

  /** Checks that a malformed call ends with an exception of this type, in the library's words. */
  public void refused(
      String where, BadCall bad, Class<? extends Exception> type, Callable<?> action) {
    Exception thrown = null;
    try {
      action.call();
    } catch (Exception exception) {
      thrown = exception;
    }
    that(
        type.isInstance(thrown) && thrown.getMessage().contains(bad.message()),
        where + ": " + (thrown == null ? bad.message() + " was not said" : firstLine(thrown)));
  }

  private static String firstLine(Exception exception) {
    return exception.toString().lines().findFirst().orElse("");
  }

  /** Checks the losses of a training against Python's. */
  public void losses(String graph, double[] got, double[] want) {
    double largest = got.length == want.length ? 0 : Double.NaN;
    for (int n = 0; n < Math.min(got.length, want.length); n++) {
      largest = Math.max(largest, Math.abs(got[n] - want[n]) / Math.abs(want[n]));
    }
    that(
        largest <= LOSS_LIMIT,
        "training of %s: %d steps, loss %.4f to %.4f, largest difference from Python's %.1e"
            .formatted(graph, got.length, got[0], got[got.length - 1], largest));
  }

  /** How many layers of Keras 2 run cuDNN's ops by now, as the JSON of the op BlockcellInfo says. */
  public static int cudnnLayers(String json) {
    Matcher counts = Pattern.compile("\"CudnnRNN(V3)?\":\\s*(\\d+)").matcher(json);
    return counts.results().mapToInt(count -> Integer.parseInt(count.group(2))).sum();
  }

  /** Checks the output of a model against Python's, and that its layers run cuDNN's ops. */
  public void served(String model, int layers, Array got, Array want) {
    double error = got.scaledError(want);
    that(
        layers > 0 && error <= MODEL_LIMIT,
        "%s, a SavedModel of Keras 2: %d layers run cuDNN's ops, largest scaled error %.1e"
            .formatted(model, layers, error));
  }

  /** Prints how many checks passed and returns the exit code of the program. */
  public int finish() {
    System.out.printf("%d checks passed, %d failed%n", passed, failed);
    return failed == 0 && passed > 0 ? 0 : 1;
  }
}
