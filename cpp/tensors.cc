#include "cpp/tensors.h"

#include "tensorflow/core/lib/core/errors.h"

namespace blockcell {

namespace tf = ::tensorflow;

std::vector<Input> InputsOf(tf::OpKernelContext* context, std::vector<std::size_t>* sizes) {
  std::size_t ranks = 0;
  for (int i = 0; i < context->num_inputs(); ++i) ranks += context->input(i).dims();
  sizes->resize(ranks);
  std::size_t* next = sizes->data();
  std::vector<Input> inputs;
  inputs.reserve(context->num_inputs());
  for (int i = 0; i < context->num_inputs(); ++i) {
    const tf::Tensor& tensor = context->input(i);
    const std::size_t rank = tensor.dims();
    for (std::size_t axis = 0; axis < rank; ++axis) next[axis] = tensor.dim_size(axis);
    inputs.push_back({{next, rank}, BytesOf(tensor)});
    next += rank;
  }
  return inputs;
}

rust::Slice<const std::uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

rust::Slice<const std::uint8_t> BytesOf(const tf::Tensor& tensor) {
  const auto bytes = tensor.tensor_data();
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

rust::Slice<std::uint8_t> MutableBytesOf(tf::Tensor* tensor) {
  const auto bytes = tensor->tensor_data();
  return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(bytes.data())), bytes.size()};
}

rust::Slice<const std::size_t> SizesOf(const Shape& shape) {
  return {shape.dims.data(), shape.rank};
}

tf::TensorShape TensorShapeOf(const Shape& shape) {
  tf::TensorShape all;
  const std::size_t* const sizes = shape.dims.data();
  for (std::size_t axis = 0; axis < shape.rank; ++axis) all.AddDim(sizes[axis]);
  return all;
}

tf::Status ToTensorFlow(const Status& status) {
  const std::string message = StringOf(status.message);
  switch (status.code) {
    case Code::Ok:
      return tf::Status();
    case Code::InvalidArgument:
      return tf::errors::InvalidArgument(message);
    case Code::Unimplemented:
      return tf::errors::Unimplemented(message);
    case Code::ResourceExhausted:
      return tf::errors::ResourceExhausted(message);
    default:
      return tf::errors::Internal(message);
  }
}

}  // namespace blockcell
