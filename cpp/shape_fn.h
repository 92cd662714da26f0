// Shape functions that every build of TensorFlow 1.15 can call.

#ifndef BLOCKCELL_CPP_SHAPE_FN_H_
#define BLOCKCELL_CPP_SHAPE_FN_H_

#include "tensorflow/core/framework/shape_inference.h"

namespace blockcell {

using ShapeFn = tensorflow::Status (*)(tensorflow::shape_inference::InferenceContext*);

// In TensorFlow 1.15, mends the shape function of an op that was just registered, where the running
// TensorFlow could not call it. Nothing is to be mended in TensorFlow 2.
#ifdef BLOCKCELL_TENSORFLOW_1
void MendShapeFn(const char* op, ShapeFn function);
#else
inline void MendShapeFn(const char*, ShapeFn) {}
#endif

}  // namespace blockcell

#endif  // BLOCKCELL_CPP_SHAPE_FN_H_
