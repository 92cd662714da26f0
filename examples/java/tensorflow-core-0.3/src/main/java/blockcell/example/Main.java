package blockcell.example;

import java.io.IOException;
import org.tensorflow.exceptions.TFInvalidArgumentException;

/**
 * Shows the library at work in TensorFlow Java 0.3.3, which is TensorFlow 2.4, and checks what it
 * computes.
 */
public final class Main {
  private Main() {}

  /** Exits with 0 if all is well; the arguments are those of {@link Program}. */
  public static void main(String[] args) throws IOException {
    Program program = new Program(args);
    program.callOps(
        TFInvalidArgumentException.class,
        new Program.Way("graph", GraphCall::run),
        new Program.Way("eager", EagerCall::run));
    program.serve("2.4");
    program.exit();
  }
}
