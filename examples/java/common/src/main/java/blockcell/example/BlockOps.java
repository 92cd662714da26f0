package blockcell.example;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.tensorflow.Operand;
import org.tensorflow.Operation;
import org.tensorflow.OperationBuilder;
import org.tensorflow.Output;
import org.tensorflow.op.Scope;

/** Adds the op of a case to a graph, or runs it in an eager session. */
final class BlockOps {
  private BlockOps() {}

  /**
   * Adds it by its class where this API has one, else by its name.
   *
   * @param operand makes an input of its name and its value
   * @return the op's outputs by TensorFlow's names
   */
  static Map<String, Output<?>> create(
      Scope scope, Case call, BiFunction<String, Array, Operand<?>> operand) {
    List<Operand<?>> inputs = new ArrayList<>();
    call.inputs().forEach((name, value) -> inputs.add(operand.apply(name, value)));
    Class<?> type = Calls.CLASSES.get(call.op());
    try {
      return type == null ? byName(scope, call, inputs) : byClass(type, scope, call, inputs);
    } catch (InvocationTargetException exception) {
      throw (RuntimeException) exception.getCause();
    } catch (ReflectiveOperationException exception) {
      throw new IllegalStateException(exception);
    }
  }

  /**
   * Adds it as a program would, for example by
   *
   * <pre>
   * LSTMBlockCell.create(
   *     scope, x, csPrev, hPrev, w, wci, wcf, wco, b, LSTMBlockCell.usePeephole(true))
   * </pre>
   *
   * and reads its outputs, {@code i()}, {@code cs()} and so on. As all classes are alike,
   * reflection does so for each of them.
   */
  private static Map<String, Output<?>> byClass(
      Class<?> type, Scope scope, Case call, List<Operand<?>> inputs)
      throws ReflectiveOperationException {
    Method create =
        Arrays.stream(type.getMethods())
            .filter(method -> method.getName().equals("create"))
            .findFirst()
            .orElseThrow();
    List<Object> arguments = new ArrayList<>();
    arguments.add(scope);
    arguments.addAll(inputs);
    if (create.isVarArgs()) {
      arguments.add(options(create, type, call));
    } else {
      call.attributes().keySet().forEach(name -> arguments.add(call.value(name)));
    }
    Object op = create.invoke(null, arguments.toArray());
    Map<String, Output<?>> outputs = new LinkedHashMap<>();
    for (String name : call.outputs().keySet()) {
      outputs.put(name, (Output<?>) type.getMethod(inJava(name)).invoke(op));
    }
    return outputs;
  }

  /** The attributes that may be left out, as the array of options that {@code create} ends with. */
  private static Object options(Method create, Class<?> type, Case call)
      throws ReflectiveOperationException {
    Class<?> option = create.getParameterTypes()[create.getParameterCount() - 1].componentType();
    List<String> names = List.copyOf(call.attributes().keySet());
    Object options = java.lang.reflect.Array.newInstance(option, names.size());
    for (int n = 0; n < names.size(); n++) {
      Object value = call.value(names.get(n));
      Method set = type.getMethod(inJava(names.get(n)), value.getClass());
      java.lang.reflect.Array.set(options, n, set.invoke(null, value));
    }
    return options;
  }

  /** TensorFlow's name of an attribute or an output, as methods have it. */
  private static String inJava(String name) {
    StringBuilder result = new StringBuilder();
    for (String word : name.split("_")) {
      boolean first = result.isEmpty();
      result.append(first ? word : word.substring(0, 1).toUpperCase() + word.substring(1));
    }
    return result.toString();
  }

  /** How any op is added by its name; inputs and outputs come in the op's order. */
  private static Map<String, Output<?>> byName(Scope scope, Case call, List<Operand<?>> inputs) {
    OperationBuilder builder = Api.opBuilder(scope, call.op());
    inputs.forEach(operand -> builder.addInput(operand.asOutput()));
    for (String name : call.attributes().keySet()) {
      if (call.value(name) instanceof Boolean on) {
        builder.setAttr(name, on);
      } else {
        builder.setAttr(name, (float) call.value(name));
      }
    }
    Operation op = builder.build();
    Map<String, Output<?>> outputs = new LinkedHashMap<>();
    call.outputs().keySet().forEach(name -> outputs.put(name, op.output(outputs.size())));
    return outputs;
  }
}
