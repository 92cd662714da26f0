#include "cpp/tensors.h"

namespace blockcell {

namespace tf = ::tensorflow;

rust::Slice<const std::size_t> Append(const tf::Tensor& tensor, std::vector<std::size_t>* dims) {
  for (int axis = 0; axis < tensor.dims(); ++axis) dims->push_back(tensor.dim_size(axis));
  return {dims->data() + dims->size() - tensor.dims(), static_cast<std::size_t>(tensor.dims())};
}

rust::Slice<const std::uint8_t> BytesOf(const tf::Tensor& tensor) {
  const auto bytes = tensor.tensor_data();
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

rust::Slice<std::uint8_t> MutableBytesOf(tf::Tensor* tensor) {
  const auto bytes = tensor->tensor_data();
  return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(bytes.data())), bytes.size()};
}

tf::TensorShape TensorShapeOf(const Shape& shape) {
  tf::TensorShape all;
  for (std::size_t axis = 0; axis < shape.rank; ++axis) all.AddDim(shape.dims[axis]);
  return all;
}

void KnownShapes::Add(const tf::TensorShape& shape) {
  Known known{true, {}};
  for (int axis = 0; axis < shape.dims(); ++axis) known.dims.push_back(shape.dim_size(axis));
  all_.push_back(known);
}

void KnownShapes::Add(tf::shape_inference::InferenceContext* context,
                      tf::shape_inference::ShapeHandle shape) {
  Known known{context->RankKnown(shape), {}};
  for (int axis = 0; known.has_rank && axis < context->Rank(shape); ++axis) {
    known.dims.push_back(context->Value(context->Dim(shape, axis)));
  }
  all_.push_back(known);
}

std::vector<PartialShape> KnownShapes::Get() const {
  std::vector<PartialShape> shapes;
  for (const Known& known : all_) {
    shapes.push_back({known.has_rank, {known.dims.data(), known.dims.size()}});
  }
  return shapes;
}

void SetOutput(tf::shape_inference::InferenceContext* context, int index, const Shape& shape) {
  std::vector<tf::shape_inference::DimensionHandle> dims;
  for (std::size_t axis = 0; axis < shape.rank; ++axis) {
    dims.push_back(context->MakeDim(shape.dims[axis]));
  }
  context->set_output(index, context->MakeShape(dims));
}

}  // namespace blockcell
