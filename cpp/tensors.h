// TensorFlow's tensors, shapes, strings and statuses as the bridge has them.

#pragma once

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

template <typename T>
rust::Slice<const T> SliceOf(const std::vector<T>& all) {
  return {all.data(), all.size()};
}

// From a rust::Str or rust::String. Their own conversions are compiled with cxx, which may have
// another layout of std::string.
template <typename Text>
std::string StringOf(const Text& text) {
  return std::string(text.data(), text.size());
}

inline rust::Str StrOf(const std::string& text) { return {text.data(), text.size()}; }

// The bytes of a text, or of a tensor.
rust::Slice<const std::uint8_t> BytesOf(const std::string& text);
rust::Slice<const std::uint8_t> BytesOf(const tensorflow::Tensor& tensor);
rust::Slice<std::uint8_t> MutableBytesOf(tensorflow::Tensor* tensor);

// The inputs of a call. Their sizes are in `sizes`, which must not change as long as they are used.
std::vector<Input> InputsOf(tensorflow::OpKernelContext* context, std::vector<std::size_t>* sizes);

// The dimensions of an output, as long as `shape` is there.
rust::Slice<const std::size_t> SizesOf(const Shape& shape);

// The shape of an output, all of whose dimensions are known.
tensorflow::TensorShape TensorShapeOf(const Shape& shape);

// How a call of the Rust side ended.
tensorflow::Status ToTensorFlow(const Status& status);

}  // namespace blockcell
