#include "cpp/shape_fn.h"

#if TF_MAJOR_VERSION == 1

#include <functional>
#include <vector>

#include "tensorflow/core/framework/op.h"

namespace blockcell {
namespace {

namespace tf = ::tensorflow;
using Context = tf::shape_inference::InferenceContext;

// Whether the running TensorFlow calls a std::function with references to the arguments, as GCC's
// std::function has it now, or with the arguments themselves, as that of GCC 4.8 had it. Python's
// 1.15.5 is built by GCC 7.3, Java's 1.15.0 by GCC 4.8.
bool PassesReferences() {
  const tf::NodeDef node;
  const tf::OpDef op;
  const std::vector<tf::TensorShapeProto> no_shapes;
  Context context(0, &node, op, no_shapes, {}, no_shapes, {});
  // If the context itself is taken for a reference here, then its first word is compared.
  bool same = false;
  const auto probe = [&same, &context](Context* given) {
    same = given == &context;
    return tf::Status();
  };
  context.Run(probe).IgnoreError();
  return same;
}

}  // namespace

MendShapeFn::MendShapeFn(const char* op, Function function) {
  static const bool references = PassesReferences();
  if (references) return;
  const tf::OpRegistrationData* data = nullptr;
  if (!tf::OpRegistry::Global()->LookUp(op, &data).ok()) return;
  // A reference is passed as an address, which is what GCC 4.8 makes of a pointer.
  std::function<tf::Status(Context&)> by_value = [function](Context& context) {
    return function(&context);
  };
  const_cast<tf::OpRegistrationData*>(data)->shape_inference_fn =
      reinterpret_cast<tf::OpShapeInferenceFn&>(by_value);
}

}  // namespace blockcell

#endif
