package blockcell.example;

import java.util.HashMap;
import java.util.Map;
import org.tensorflow.EagerSession;
import org.tensorflow.op.Ops;

/** One call of an op, in an eager session of its own. */
final class EagerCall {
  private EagerCall() {}

  /** Runs the op on constants and returns its outputs. */
  static Map<String, Array> run(Case call) {
    try (EagerSession session = EagerSession.create()) {
      Ops tf = Ops.create(session);
      Map<String, Array> arrays = new HashMap<>();
      BlockOps.create(tf.scope(), call, (name, value) -> tf.constantOf(Tensors.of(value)))
          .forEach((name, output) -> arrays.put(name, Tensors.array(output.asTensor())));
      return arrays;
    }
  }
}
