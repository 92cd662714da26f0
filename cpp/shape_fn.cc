#ifdef BLOCKCELL_TENSORFLOW_1

#include "cpp/shape_fn.h"

#include <functional>
#include <vector>

#include "tensorflow/core/framework/op.h"

namespace blockcell {
namespace {

namespace tf = ::tensorflow;
using Context = tf::shape_inference::InferenceContext;

// How the running TensorFlow calls a std::function depends on the GCC that built it. From GCC 5 on
// the arguments are passed by reference, with GCC 4.8 by value. Python's TensorFlow 1.15.5 is built
// by GCC 7.3, Java's 1.15.0 by GCC 4.8. Returns true for references.
bool PassesReferences() {
  const tf::NodeDef node;
  const tf::OpDef op;
  const std::vector<tf::TensorShapeProto> no_shapes;
  Context context(0, &node, op, no_shapes, {}, no_shapes, {});
  // By value, the address of the context arrives where a reference is expected. Then what `given`
  // holds is the context's first word.
  bool same = false;
  const auto probe = [&same, &context](Context* given) {
    same = given == &context;
    return tf::Status();
  };
  context.Run(probe).IgnoreError();
  return same;
}

}  // namespace

void MendShapeFn(const char* op, ShapeFn function) {
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
