package blockcell.example;

import java.io.IOException;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.tensorflow.SavedModelBundle;
import org.tensorflow.Tensor;
import org.tensorflow.framework.MetaGraphDef;
import org.tensorflow.framework.SignatureDef;

/** Serves SavedModels that Keras 2 wrote, as they are. */
final class Serving {
  private Serving() {}

  /** Runs models of these names and compares their outputs with those that Python wrote. */
  static void check(Checks checks, Path values, List<String> models) throws IOException {
    for (String model : models) {
      Path folder = values.resolve("keras2").resolve(model);
      Map<String, Array> python = Npz.read(folder.resolve("values.npz"));
      int before = Checks.cudnnLayers(GraphCall.info());
      Array got = output(folder, python.get("x"));
      int layers = Checks.cudnnLayers(GraphCall.info()) - before;
      checks.served(model, layers, got, python.get("output_0"));
    }
  }

  /** The one output of a model for one input. */
  private static Array output(Path folder, Array x) throws IOException {
    try (SavedModelBundle model = SavedModelBundle.load(folder.toString(), "serve");
        Tensor<Float> fed = Tensor.create(x.shape(), FloatBuffer.wrap(x.floats()))) {
      SignatureDef signature =
          MetaGraphDef.parseFrom(model.metaGraphDef()).getSignatureDefOrThrow("serving_default");
      String input = signature.getInputsMap().values().iterator().next().getName();
      String output = signature.getOutputsMap().values().iterator().next().getName();
      try (Tensor<?> result =
          model.session().runner().feed(input, fed).fetch(output).run().get(0)) {
        FloatBuffer read = FloatBuffer.allocate(result.numElements());
        result.writeTo(read);
        return Array.of(result.shape(), read.array());
      }
    }
  }
}
