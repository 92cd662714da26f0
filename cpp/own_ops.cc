// Registers the operations that this library defines, as Rust declares them.

#include <functional>
#include <string>
#include <vector>

#include "blockcell/src/bridge.rs.h"
#include "cpp/attributes.h"
#include "cpp/library.h"
#include "cpp/tensors.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace blockcell {
namespace {

namespace tf = ::tensorflow;
using tf::shape_inference::InferenceContext;

// A function of one pointer, for TensorFlow to call.
template <typename T>
using Callback = std::function<tf::Status(T*)>;

#ifdef BLOCKCELL_TENSORFLOW_1

// Has TensorFlow call a function, and looks at what arrives.
bool Probe() {
  const tf::NodeDef node;
  const tf::OpDef op;
  const std::vector<tf::TensorShapeProto> no_shapes;
  InferenceContext context(0, &node, op, no_shapes, {}, no_shapes, {});
  // By value, the address of the context arrives where a reference is expected. Then what `given`
  // holds is the context's first word.
  bool same = false;
  const auto probe = [&same, &context](InferenceContext* given) {
    same = given == &context;
    return tf::Status();
  };
  context.Run(probe).IgnoreError();
  return same;
}

// Makes `function` one that the running TensorFlow can call.
//
// How it calls a std::function depends on the GCC that built it. From GCC 5 on the arguments are
// passed by reference, with GCC 4.8 by value. Python's TensorFlow 1.15.5 is built by GCC 7.3,
// Java's 1.15.0 by GCC 4.8.
template <typename T>
Callback<T> CallbackOf(Callback<T> function) {
  static const bool passes_references = Probe();
  if (passes_references) return function;
  // A reference is passed as an address, which is what GCC 4.8 makes of a pointer.
  std::function<tf::Status(T&)> by_value = [function](T& value) { return function(&value); };
  return reinterpret_cast<Callback<T>&>(by_value);
}

#else

template <typename T>
Callback<T> CallbackOf(Callback<T> function) {
  return function;
}

#endif

// What is known of the sizes of each input; of an input without a rank, nothing.
std::vector<std::vector<std::int64_t>> KnownSizes(InferenceContext* context) {
  std::vector<std::vector<std::int64_t>> all(context->num_inputs());
  for (int i = 0; i < context->num_inputs(); ++i) {
    const auto shape = context->input(i);
    for (int axis = 0; context->RankKnown(shape) && axis < context->Rank(shape); ++axis) {
      all[i].push_back(context->Value(context->Dim(shape, axis)));
    }
  }
  return all;
}

void SetOutput(InferenceContext* context, int index, const Shape& shape) {
  std::vector<tf::shape_inference::DimensionHandle> dims;
  for (const std::size_t size : SizesOf(shape)) {
    dims.push_back(context->MakeDim(static_cast<std::int64_t>(size)));
  }
  context->set_output(index, context->MakeShape(dims));
}

// Asks Rust what follows from the inputs' shapes, as far as they are known, for the outputs.
tf::Status InferShapes(const std::string& op, InferenceContext* context) {
  const auto sizes = KnownSizes(context);
  std::vector<PartialShape> inputs;
  for (int i = 0; i < context->num_inputs(); ++i) {
    inputs.push_back({context->RankKnown(context->input(i)), SliceOf(sizes[i])});
  }
  std::vector<Shape> outputs(context->num_outputs());
  TF_RETURN_IF_ERROR(
      ToTensorFlow(infer(StrOf(op), NodeAttributes(context), SliceOf(inputs), SliceOf(&outputs))));
  for (int i = 0; i < context->num_outputs(); ++i) SetOutput(context, i, outputs[i]);
  return tf::Status();
}

// What the macro REGISTER_OP does, which takes no strings that are made at run time.
void Register(const OpDefinition& op) {
  const std::string name = StringOf(op.name);
  tf::OpDefBuilder builder(name);
  for (const rust::String& input : op.inputs) builder.Input(StringOf(input));
  for (const rust::String& output : op.outputs) builder.Output(StringOf(output));
  for (const rust::String& attribute : op.attributes) builder.Attr(StringOf(attribute));
  if (op.is_stateful) builder.SetIsStateful();
  builder.SetShapeFn(CallbackOf<InferenceContext>(
      [name](InferenceContext* context) { return InferShapes(name, context); }));
  builder.Doc(StringOf(op.doc));
  tf::OpRegistry::Global()->Register(CallbackOf<tf::OpRegistrationData>(
      [builder](tf::OpRegistrationData* data) { return builder.Finalize(data); }));
}

}  // namespace

void RegisterOwnOps() {
  for (const OpDefinition& op : own_ops()) Register(op);
}

}  // namespace blockcell
