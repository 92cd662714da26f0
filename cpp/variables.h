// Buffers of variables that are held from call to call.

#pragma once

#include <cstddef>
#include <memory>

namespace tensorflow {
class OpKernelContext;
class Tensor;
}  // namespace tensorflow

namespace blockcell {

// A tensor whose buffer stays as it is as long as this is there: TensorFlow writes to a variable's
// buffer in place only where nobody else holds it, and otherwise gives the variable another one.
class HeldTensor {
 public:
  explicit HeldTensor(std::unique_ptr<tensorflow::Tensor> tensor);
  ~HeldTensor();

  // Whether nobody else holds the buffer: the variable is gone, or has another one.
  bool is_last() const;

 private:
  const std::unique_ptr<tensorflow::Tensor> tensor_;
};

// The input tensors of a call.
class Tensors {
 public:
  explicit Tensors(tensorflow::OpKernelContext* context);

  // Holds an input; null where TensorFlow does not own its memory, such as that of a NumPy array.
  std::unique_ptr<HeldTensor> hold(std::size_t input) const;

 private:
  tensorflow::OpKernelContext* const context_;
};

}  // namespace blockcell
