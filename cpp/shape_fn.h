// Shape functions that every build of TensorFlow 1.15 can call.

#ifndef BLOCKCELL_CPP_SHAPE_FN_H_
#define BLOCKCELL_CPP_SHAPE_FN_H_

#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/public/version.h"

namespace blockcell {

// In TensorFlow 1.15, mends the shape function of an op that was just registered, where the running
// TensorFlow could not call it. Nothing is to be mended in TensorFlow 2.
class MendShapeFn {
 public:
  using Function = tensorflow::Status (*)(tensorflow::shape_inference::InferenceContext*);
#if TF_MAJOR_VERSION == 1
  MendShapeFn(const char* op, Function function);
#else
  MendShapeFn(const char*, Function) {}
#endif
};

}  // namespace blockcell

#endif  // BLOCKCELL_CPP_SHAPE_FN_H_
