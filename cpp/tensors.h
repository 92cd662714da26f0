// TensorFlow's tensors, shapes and strings as the bridge takes them.

#ifndef BLOCKCELL_CPP_TENSORS_H_
#define BLOCKCELL_CPP_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "blockcell/src/bridge.rs.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace blockcell {

template <typename T>
rust::Slice<T> SliceOf(std::vector<T>* all) {
  return {all->data(), all->size()};
}

// From a rust::Str or rust::String. Their own conversions are compiled with cxx, which may have
// another layout of std::string.
template <typename Text>
std::string StringOf(const Text& text) {
  return std::string(text.data(), text.size());
}

// The inputs of a call. Their sizes are in `sizes`, which must not change as long as they are used.
std::vector<Input> InputsOf(tensorflow::OpKernelContext* context, std::vector<std::size_t>* sizes);

rust::Slice<const std::uint8_t> BytesOf(const tensorflow::Tensor& tensor);

rust::Slice<std::uint8_t> MutableBytesOf(tensorflow::Tensor* tensor);

// The dimensions of an output, as long as `shape` is there.
rust::Slice<const std::size_t> SizesOf(const Shape& shape);

// The shape of an output, all of whose dimensions are known.
tensorflow::TensorShape TensorShapeOf(const Shape& shape);

}  // namespace blockcell

#endif  // BLOCKCELL_CPP_TENSORS_H_
