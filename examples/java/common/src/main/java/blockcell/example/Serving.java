package blockcell.example;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import org.tensorflow.SavedModelBundle;

/** Serves SavedModels that Keras 2 wrote, as they are. */
final class Serving {
  private Serving() {}

  /** Runs the model in a folder and compares its output with that which Python wrote beside it. */
  static void check(Checks checks, Path folder) throws IOException {
    Map<String, Array> python = Npz.read(folder.resolve("values.npz"));
    int before = Checks.cudnnLayers(GraphCall.info());
    Array got = output(folder, python.get("x"));
    int layers = Checks.cudnnLayers(GraphCall.info()) - before;
    checks.served(folder.getFileName().toString(), layers, got, python.get("output_0"));
  }

  /** The one output of a model for one input. */
  private static Array output(Path folder, Array x) throws IOException {
    try (SavedModelBundle model = SavedModelBundle.load(folder.toString(), "serve");
        var fed = Tensors.of(x)) {
      var signature = Api.metaGraph(model).getSignatureDefOrThrow("serving_default");
      String input = signature.getInputsMap().values().iterator().next().getName();
      String output = signature.getOutputsMap().values().iterator().next().getName();
      return Api.run(model.session().runner().feed(input, fed).fetch(output), Tensors::array)
          .get(0);
    }
  }
}
