package blockcell.example;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A call of an op, and what it must return.
 *
 * @param name what messages call it, unique
 * @param op the op's type
 * @param attributes float and boolean attributes (0 or 1); the others have their default
 * @param inputs by TensorFlow's names, in the op's order
 * @param outputs the same
 */
public record Case(
    String name,
    String op,
    Map<String, Array> attributes,
    Map<String, Array> inputs,
    Map<String, Array> outputs) {

  /** Reads the file written by make_values.py; its arrays are called case/kind/name. */
  public static List<Case> readAll(Path path) throws IOException {
    Map<String, Case> cases = new LinkedHashMap<>();
    for (Map.Entry<String, Array> entry : Npz.read(path).entrySet()) {
      String[] words = entry.getKey().split("/");
      Case found = cases.computeIfAbsent(words[0], Case::empty);
      Map<String, Array> arrays =
          switch (words[1]) {
            case "attribute" -> found.attributes;
            case "input" -> found.inputs;
            case "output" -> found.outputs;
            default -> throw new IOException("unknown kind of array: " + entry.getKey());
          };
      arrays.put(words[2], entry.getValue());
    }
    return new ArrayList<>(cases.values());
  }

  private static Case empty(String name) {
    String op = name.split(" ")[0];
    return new Case(
        name, op, new LinkedHashMap<>(), new LinkedHashMap<>(), new LinkedHashMap<>());
  }

  /** The first case of an op with all its attributes that switch something on. */
  public static Case find(List<Case> cases, String op) {
    return cases.stream()
        .filter(some -> some.op.equals(op) && !some.name.contains("=false"))
        .findFirst()
        .orElseThrow();
  }

  /** The same call with another value for an input. */
  public Case with(String input, Array value) {
    Map<String, Array> changed = new LinkedHashMap<>(inputs);
    if (changed.put(input, value) == null) {
      throw new IllegalArgumentException(op + " has no input " + input);
    }
    return new Case(name, op, attributes, changed, outputs);
  }

  /** The value of an attribute: a Boolean or a Float. */
  public Object value(String attribute) {
    Array array = attributes.get(attribute);
    float value = (float) array.values()[0];
    return array.type().equals("b1") ? (Object) (value != 0) : (Object) value;
  }
}
