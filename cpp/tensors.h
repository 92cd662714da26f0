// TensorFlow's tensors and shapes as the bridge takes them.

#ifndef BLOCKCELL_CPP_TENSORS_H_
#define BLOCKCELL_CPP_TENSORS_H_

#include <cstdint>
#include <vector>

#include "blockcell/src/bridge.rs.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace blockcell {

template <typename T>
rust::Slice<T> SliceOf(std::vector<T>* all) {
  return {all->data(), all->size()};
}

// Appends the shape of `tensor` to `dims`, which has room for it, and returns where it lies.
rust::Slice<const std::size_t> Append(const tensorflow::Tensor& tensor,
                                      std::vector<std::size_t>* dims);

rust::Slice<const std::uint8_t> BytesOf(const tensorflow::Tensor& tensor);

rust::Slice<std::uint8_t> MutableBytesOf(tensorflow::Tensor* tensor);

// The shape of an output, all of whose dimensions are known.
tensorflow::TensorShape TensorShapeOf(const Shape& shape);

// What is known of the shapes of some tensors.
class KnownShapes {
 public:
  void Add(const tensorflow::TensorShape& shape);
  void Add(tensorflow::shape_inference::InferenceContext* context,
           tensorflow::shape_inference::ShapeHandle shape);

  // The shapes, as long as this object is not changed.
  std::vector<PartialShape> Get() const;

 private:
  struct Known {
    bool has_rank;
    std::vector<std::int64_t> dims;
  };
  std::vector<Known> all_;
};

// Sets the shape of an output while a graph is built.
void SetOutput(tensorflow::shape_inference::InferenceContext* context, int index,
               const Shape& shape);

}  // namespace blockcell

#endif  // BLOCKCELL_CPP_TENSORS_H_
