package blockcell.example;

import java.io.IOException;

/** Shows the library at work in TensorFlow 1.15's Java API, and checks what it computes. */
public final class Main {
  private Main() {}

  /** Exits with 0 if all is well; the arguments are those of {@link Program}. */
  public static void main(String[] args) throws IOException {
    Program program = new Program(args);
    program.callOps(IllegalArgumentException.class, new Program.Way("graph", GraphCall::run));
    program.train();
    program.serve("2.4");
    program.exit();
  }
}
